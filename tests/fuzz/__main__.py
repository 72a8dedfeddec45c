"""Coverage-guided campaigns: ``python -m tests.fuzz [--seconds 120] [--runs N] [--seed N] [--keep DIR] [TARGET…]``.

Every target runs in a process of its own under libFuzzer (by atheris), with bounded memory and time for each case,
and may write nowhere but into its own temporary folder. A case that breaks a promise is printed as a line of Python;
it becomes a test beside the code it broke. Exit code 1 when there is one.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz import guard, seeds
from tests.fuzz.targets import ALL, SHARES, TARGETS

MEMORY = 1536
"""MiB a process may use."""
CASE = 20
"""Seconds one case may take."""
OVER = 60.0
"""Seconds a process may take beyond its time, for its start and its last case."""
_COUNT = re.compile(r"stat::number_of_executed_units: +(\d+)")


def main(arguments: Sequence[str]) -> int:
    """Run the campaigns one after the other and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all without")
    parser.add_argument("--seconds", type=float, default=120.0, help="time for all targets together")
    parser.add_argument("--runs", type=int, default=0, help="cases of each target instead of a time")
    parser.add_argument("--seed", type=int, default=0, help="0 takes a new one")
    parser.add_argument("--keep", type=Path, default=None, help="folder for corpora and finds that outlives the run")
    parsed = parser.parse_args(arguments)
    names = parsed.targets or list(TARGETS)
    if unknown := [n for n in names if n not in ALL]:
        parser.error(f"no target {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    parts = sum(SHARES.get(n, 1) for n in names)
    seed = parsed.seed or int(time.time())
    keep = parsed.keep or Path(tempfile.mkdtemp(prefix="goldenctl-fuzz-"))
    seconds = {n: max(1, round(parsed.seconds * SHARES.get(n, 1) / parts)) for n in names}
    broken = [n for n in names if _campaign(n, parsed.runs, seconds[n], seed, keep)]
    print(f"seed {seed}, corpora and finds in {keep}; broken: {', '.join(broken) or 'none'}")
    return 1 if broken else 0


def _campaign(name: str, runs: int, seconds: int, seed: int, keep: Path) -> bool:
    """Run one target; whether it broke."""
    corpus = keep / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, case in enumerate(seeds.of(name)):
        (corpus / f"seed-{number:03}").write_bytes(case)
    bound = [f"-runs={runs}"] if runs else [f"-max_total_time={seconds}"]
    options = [f"-rss_limit_mb={MEMORY}", f"-timeout={CASE}", f"-seed={seed}", f"-artifact_prefix={keep}/{name}-"]
    options += ["-print_final_stats=1", "-max_len=4096", "-len_control=20"]
    before = set(keep.glob(f"{name}-*"))
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="goldenctl-fuzz-") as folder:
        command = [sys.executable, "-B", "-m", "tests.fuzz.child", name, *bound, *options, str(corpus)]
        code, said = _run(command, guard.environment(Path(folder)), None if runs else seconds + CASE + OVER)
        whole = guard.counted(Path(folder))
    cases = max(map(int, _COUNT.findall(said)), default=0)
    took = round(time.monotonic() - started)
    print(json.dumps({"target": name, "cases": cases, "whole": whole, "seconds": took, "exit": code}), flush=True)
    if code:
        _tell(name, sorted(set(keep.glob(f"{name}-*")) - before), said)
    return code != 0


def _run(command: Sequence[str], environment: dict[str, str], limit: float | None) -> tuple[int, str]:
    """Exit code and standard error; 124 for a process that does not end."""
    try:
        done = subprocess.run(command, capture_output=True, env=environment, timeout=limit, check=False)
    except subprocess.TimeoutExpired as exc:
        return 124, (exc.stderr or b"").decode(errors="replace")
    return done.returncode, (done.stderr + done.stdout).decode(errors="replace")


def _tell(name: str, finds: Sequence[Path], said: str) -> None:
    """The cases that broke the target, ready for a test, and what happened."""
    print(said[said.find(" === Uncaught") :][-4000:], file=sys.stderr)
    for find in finds:
        print(f"from tests.fuzz.targets import TARGETS; TARGETS[{name!r}]({find.read_bytes()!r})", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
