"""Run a command, interrupt it after some seconds, and say its exit code and how long it took to end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time


def main() -> None:
    """``interrupt.py SECONDS COMMAND…``; ends with 0 when the command ended with 130 within a second."""
    # A shell without job control starts its children deaf to interrupts.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(sys.argv[2:])
    time.sleep(float(sys.argv[1]))
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    code = process.wait(60)
    seconds = time.monotonic() - start
    sys.stdout.write(f"exit code {code} after {seconds:.2f} s\n")
    sys.exit(0 if code == 130 and seconds < 1 else 1)


if __name__ == "__main__":
    main()
