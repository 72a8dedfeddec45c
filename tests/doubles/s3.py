"""S3 on loopback, by moto: ``python -m tests.doubles.s3 --port-file F``."""

from __future__ import annotations

import argparse
from pathlib import Path

from moto.server import ThreadedMotoServer

from tests.doubles.server import serve


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(prog="python -m tests.doubles.s3")
    parser.add_argument("--port-file", type=Path, required=True)
    made = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    made.start()
    serve(made.get_host_and_port()[1], parser.parse_args().port_file)


if __name__ == "__main__":
    main()
