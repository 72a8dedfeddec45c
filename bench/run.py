"""Print every measured row as a ratio beside its limit: ``python bench/run.py [--enforce] [NAME…]``.

Needs ``GOLDENCTL_CORPUS``. Ratios are of two things run side by side on this machine, never times;
with ``--enforce`` a ratio above its limit fails.
"""

from __future__ import annotations

import importlib
import os
import sys

MODULES = ("lint", "refresh", "catalog", "diff")


def main() -> int:
    """Measure and print."""
    arguments = [a for a in sys.argv[1:] if a != "--enforce"]
    if not os.environ.get("GOLDENCTL_CORPUS"):
        print("GOLDENCTL_CORPUS is not set: nothing to measure on")
        return 2
    above = False
    print(f"{'work':<64} {'ratio':>8} {'limit':>8}")
    for name in arguments or MODULES:
        for work, ratio, limit in importlib.import_module(name).rows():
            over = ratio > limit
            above = above or over
            print(f"{work:<64} {ratio:>8.3f} {limit:>8.3f}{'  above' if over else ''}", flush=True)
    return int(above and "--enforce" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
