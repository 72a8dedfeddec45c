"""Speed and size of the catalog against reading and parsing the same bytes.

The references do the least that has to be done without a catalog: git hands over the blobs, orjson parses them.
Everything runs in turns on a clone of the corpus named by ``GOLDENCTL_CORPUS``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROUNDS = 5
ROOT = "tests/functional_tests/test_cases"
PARENTS = "e2d9e480297189473e36aa900c025c1c5403a7d0^1", "e2d9e480297189473e36aa900c025c1c5403a7d0^2"
"""Downstream and upstream side of the sync of 2026-04-28."""


def rows() -> list[tuple[str, float, float]]:
    """Measure: (label, ratio, limit), less is better."""
    bundle = Path(os.environ["GOLDENCTL_CORPUS"], "megatron-goldens.bundle")
    with tempfile.TemporaryDirectory() as scratch:
        repo = Path(scratch, "repo")
        subprocess.run(["git", "clone", "-q", "-b", "dev", str(bundle), str(repo)], check=True)
        subprocess.run(["git", "branch", "-q", "main", "origin/main"], cwd=repo, check=True)
        return [*_build_rows(repo), _between_row(repo)]


def _build_rows(repo: Path) -> list[tuple[str, float, float]]:
    blobs = _history(repo)
    raw = sum(size for _, size in blobs)
    listing = repo / "blobs.txt"
    listing.write_text("".join(f"{blob}\n" for blob, _ in blobs))
    reference = [sys.executable, str(Path(__file__).absolute()), str(listing)]
    builds, references, updates, shares = [], [], [], []
    for _ in range(ROUNDS):
        for stale in (repo / ".goldenctl").glob("*"):
            stale.unlink()
        references.append(_seconds(reference, repo))
        builds.append(_seconds([sys.executable, "-m", "goldenctl", "catalog", "build"], repo))
        shares.append((repo / ".goldenctl" / "catalog.duckdb").stat().st_size / raw)
        updates.append(_seconds([sys.executable, "-m", "goldenctl", "catalog", "update"], repo))
    return [
        ("catalog build ÷ git cat-file + orjson", min(builds) / min(references), 2.5),
        ("catalog size ÷ raw JSON", max(shares), 0.3),
        ("catalog update with nothing new ÷ build", min(updates) / min(builds), 0.05),
    ]


def _history(repo: Path) -> list[tuple[str, int]]:
    """Every golden blob of the history with its size in bytes."""
    listed = _git(repo, "rev-list", "--objects", "--no-object-names", "main", "dev")
    checked = subprocess.run(["git", "cat-file", "--batch-check"], input=listed, cwd=repo, check=True, capture_output=True)
    words = [line.split() for line in checked.stdout.decode().splitlines()]
    return [(w[0], int(w[2])) for w in words if w[1] == "blob"]


def _between_row(repo: Path) -> tuple[str, float, float]:
    from goldenctl import open_catalog

    trees = [_tree(repo, rev) for rev in PARENTS]
    commits = [_git(repo, "rev-parse", rev).decode().strip() for rev in PARENTS]
    with open_catalog(repo / ".goldenctl" / "catalog.duckdb").session() as catalog:
        pairs = [
            (_timed(lambda: catalog.largest_changes(*commits)), _timed(lambda: [reference(repo, tree) for tree in trees]))
            for _ in range(2 * ROUNDS)
        ]
    ratio = min(p[0] for p in pairs) / min(p[1] for p in pairs)
    return ("largest relative changes of two revisions ÷ parsing two trees", ratio, 0.25)


def _tree(repo: Path, rev: str) -> list[str]:
    return [line.split()[2].decode() for line in _git(repo, "ls-tree", "-r", rev, "--", ROOT).splitlines()]


def reference(repo: Path, blobs: list[str]) -> int:
    """Parse blobs as they come from one ``git cat-file --batch``; returns how many."""
    import orjson

    with tempfile.TemporaryFile() as listing:
        listing.write("".join(f"{blob}\n" for blob in blobs).encode())
        listing.seek(0)
        command = ["git", "cat-file", "--batch"]
        process = subprocess.Popen(command, cwd=repo, stdin=listing, stdout=subprocess.PIPE, bufsize=1 << 20)
    with process:
        assert process.stdout is not None
        for _ in blobs:
            content = process.stdout.read(int(process.stdout.readline().split()[2]) + 1)
            try:
                orjson.loads(content)
            except orjson.JSONDecodeError:
                json.loads(content or b"null") if content.strip() else None
    return len(blobs)


def _git(repo: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True).stdout


def _seconds(command: list[str], repo: Path) -> float:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}  # compiled, as when installed
    return _timed(lambda: subprocess.run(command, check=True, cwd=repo, stdout=subprocess.DEVNULL, env=environment))


def _timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


if __name__ == "__main__":
    reference(Path.cwd(), Path(sys.argv[1]).read_text().split())
