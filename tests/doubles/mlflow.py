"""A real MLflow tracking server on loopback, in a process of its own."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.doubles.server import serve

START_SECONDS = 180.0
"""It takes ten seconds on an idle machine."""


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """The address of a server that keeps everything in a folder."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", str(folder / "artifacts")]
    command = [sys.executable, "-m", "mlflow", "server", *options, "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(f"{url}/health", process, folder / "log")
        yield url
    finally:
        os.killpg(process.pid, 15)
        process.wait(30)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"the MLflow server did not start: {log.read_text()[-2000:]}")


def main() -> None:
    """Serve until stopped: ``python -m tests.doubles.mlflow --port-file F``."""
    parser = argparse.ArgumentParser(prog="python -m tests.doubles.mlflow")
    parser.add_argument("--port-file", type=Path, required=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="goldenctl-mlflow-") as folder, server(Path(folder)) as url:
        serve(int(url.rpartition(":")[2]), parser.parse_args().port_file)


if __name__ == "__main__":
    main()
