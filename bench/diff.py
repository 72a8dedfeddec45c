"""Speed of ``goldenctl diff`` against a comparator that works the way Megatron-LM's does.

The reference lists the changed files, reads each side of each with its own ``git show``, parses with the standard
library and takes the signed mean relative difference per metric. Both run as cold processes, in turns.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LANDING = "e2d9e480297189473e36aa900c025c1c5403a7d0"
"""The sync of 2026-04-28; its two parents differ in 381 goldens."""
LIMIT = 0.3
ROUNDS = 5


def rows() -> list[tuple[str, float, float]]:
    """Measure on the corpus named by ``GOLDENCTL_CORPUS``: (label, ratio, limit), less is better."""
    bundle = Path(os.environ["GOLDENCTL_CORPUS"], "megatron-goldens.bundle")
    with tempfile.TemporaryDirectory() as scratch:
        repo = Path(scratch, "repo")
        subprocess.run(["git", "clone", "-q", "-b", "dev", str(bundle), str(repo)], check=True)
        sides = [f"{LANDING}^1", f"{LANDING}^2"]
        ours = [sys.executable, "-m", "goldenctl", "diff", *sides, "--format", "json"]
        theirs = [sys.executable, str(Path(__file__).absolute()), *sides]
        times = [(_seconds(ours, repo), _seconds(theirs, repo)) for _ in range(ROUNDS)]
    ratio = min(t[0] for t in times) / min(t[1] for t in times)
    return [("diff of two revisions ÷ Megatron-LM's comparator", ratio, LIMIT)]


def _seconds(command: list[str], repo: Path) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, cwd=repo, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def reference(old: str, new: str) -> list[tuple[str, str, float]]:
    """File, metric and signed mean relative difference of every metric that both revisions have."""
    names = subprocess.run(
        ["git", "diff", "--name-only", "--no-renames", old, new, "--", "tests/functional_tests/test_cases"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    found = []
    for name in sorted(n for n in names if n.endswith(".json")):
        before, after = _show(old, name), _show(new, name)
        if before is None or after is None:
            continue
        for metric in sorted(set(before) & set(after)):
            mean = _signed_mean(_series(before[metric]), _series(after[metric]))
            if mean is not None:
                found.append((name, metric, mean))
    return sorted(found, key=lambda row: -abs(row[2]))


def _show(revision: str, name: str) -> dict[str, Any] | None:
    done = subprocess.run(["git", "show", f"{revision}:{name}"], check=False, capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else None


def _series(block: Any) -> dict[int, float]:
    values = block.get("values") if isinstance(block, dict) else None
    out = {}
    for key, value in values.items() if isinstance(values, dict) else ():
        number = float(value)
        if math.isfinite(number):
            out[int(key)] = number
    return out


def _signed_mean(before: dict[int, float], after: dict[int, float]) -> float | None:
    shared = [s for s in sorted(set(before) & set(after)) if abs(before[s]) >= 1e-12]
    return sum((before[s] - after[s]) / before[s] for s in shared) / len(shared) if shared else None


if __name__ == "__main__":
    for row in reference(*sys.argv[1:3]):
        print(*row)
