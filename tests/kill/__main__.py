"""Kill every writing command again and again: ``python -m tests.kill [COMMAND…] [--kills N] [--every]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.kill.campaign import Campaign
from tests.kill.commands import CASES, planted
from tests.kill.processes import load


def main() -> int:
    """Print a line a command; 1 when something was not in order."""
    parser = argparse.ArgumentParser(prog="python -m tests.kill", description=__doc__)
    parser.add_argument("commands", nargs="*", default=list(CASES), metavar="COMMAND", help=", ".join(CASES))
    parser.add_argument("--kills", type=int, default=50, help="kills a command")
    parser.add_argument("--every", action="store_true", help="at each step of the journal at least once")
    asked = parser.parse_args()
    load()
    broken = 0
    with tempfile.TemporaryDirectory(prefix="goldenctl-kill-") as folder:
        planted(Path(folder, "planted"))
        for name in asked.commands:
            tally = Campaign(name, Path(folder)).run(asked.kills, every=asked.every)
            sys.stdout.write(tally.line(name) + "\n")
            sys.stdout.flush()
            sys.stderr.writelines(f"  {line}\n" for line in tally.broken)
            broken += len(tally.broken)
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
