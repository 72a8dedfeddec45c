"""Coverage-guided campaigns: ``python -m tests.fuzz.campaign --seconds 120 [--runs N] [--seed N] [--keep DIR] [TARGET…]``.

Every target runs in a process of its own under libFuzzer (by atheris), with bounded memory and time for each case.
A case that breaks a promise is written to the folder of ``--keep`` and its path is said; it becomes a test beside
the code it broke. Exit code 1 when there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz import seeds

MEMORY = 1536
"""MiB a process may use."""
CASE = 20
"""Seconds one case may take."""
_DONE = re.compile(r"(?:Done (\d+) in|stat::number_of_executed_units: +(\d+))")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaigns one after the other and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", help="targets to run, all without")
    parser.add_argument("--seconds", type=float, default=120.0, help="time for all targets together")
    parser.add_argument("--runs", type=int, default=0, help="cases of each target instead of a time")
    parser.add_argument("--seed", type=int, default=0, help="0 takes a new one")
    parser.add_argument("--keep", type=Path, default=None, help="folder for corpora and finds that outlives the run")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    parsed, rest = parser.parse_known_args(arguments)
    if parsed.child:
        return _child(parsed.child, rest)
    from tests.fuzz.targets import SHARES, TARGETS

    names = parsed.targets or list(TARGETS)
    parts = sum(SHARES.get(n, 1) for n in names)
    seed = parsed.seed or int(time.time())
    keep = parsed.keep or Path(tempfile.mkdtemp(prefix="goldenctl-fuzz-"))
    failed = 0
    for name in names:
        seconds = max(1, round(parsed.seconds * SHARES.get(name, 1) / parts))
        failed += _campaign(name, seconds, parsed.runs, seed, keep)
    sys.stdout.write(f"seed {seed}, corpora and finds in {keep}\n")
    return 1 if failed else 0


def _campaign(name: str, seconds: int, runs: int, seed: int, keep: Path) -> bool:
    """Run one target; whether it broke."""
    corpus = keep / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed_case in enumerate(seeds.of(name)):
        (corpus / f"seed-{number:03}").write_bytes(seed_case)
    options = [f"-runs={runs}"] if runs else [f"-max_total_time={seconds}"]
    options += [f"-rss_limit_mb={MEMORY}", f"-timeout={CASE}", f"-seed={seed}", f"-artifact_prefix={keep}/{name}-"]
    options += ["-print_final_stats=1", "-max_len=16384", "-len_control=20"]
    command = [sys.executable, "-m", "tests.fuzz.campaign", "--child", name, *options, str(corpus)]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="goldenctl-fuzz-") as folder:
        environment = os.environ | {"GOLDENCTL_FUZZ_TMP": folder}
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment, check=False)
    counts = [int(a or b) for a, b in _DONE.findall(done.stderr)]
    passed = time.monotonic() - started
    told = {"target": name, "cases": max(counts, default=0), "seconds": round(passed), "exit": done.returncode}
    sys.stdout.write(f"{json.dumps(told)}\n")
    sys.stdout.flush()
    if done.returncode:
        sys.stderr.write(done.stderr[-4000:] + done.stdout[-4000:])
    return done.returncode != 0


def _child(name: str, options: Sequence[str]) -> int:
    import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]

    with atheris.instrument_imports(include=["goldenctl", "tests.fuzz"]):
        from tests.fuzz.targets import TARGETS
    atheris.Setup(["campaign", *options], TARGETS[name])
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
