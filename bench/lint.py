"""How long ``goldenctl lint`` takes beside the reference checker, on the same files, in cold processes.

Both are started alternately and the fastest of each is taken, so that another load on the machine
hits both alike. goldenctl is run from an installed copy whose byte code is compiled, as a user's is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE_LIMIT = 0.35
FILE_LIMIT = 2.5
ROUNDS = 7
HEAVY = {"polars", "duckdb", "boto3", "mlflow", "httpx", "requests", "urllib3", "http.client"}
"""What neither may load: the data frames, the database, the clouds and every HTTP client."""


def corpus() -> Path:
    """The folder that holds the bundle of real golden files."""
    return Path(os.environ["GOLDENCTL_CORPUS"])


@contextmanager
def checkout() -> Iterator[Path]:
    """A clone of the corpus at dev's tip."""
    with tempfile.TemporaryDirectory(prefix="goldenctl-bench-") as folder:
        clone = Path(folder) / "clone"
        subprocess.run(["git", "clone", "-q", "-b", "dev", corpus() / "megatron-goldens.bundle", clone], check=True)
        yield clone


def seconds(commands: Sequence[Sequence[str]], where: Path) -> list[float]:
    """Fastest time of each command, run in turns."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    best = [float("inf")] * len(commands)
    for _ in range(ROUNDS):
        for i, command in enumerate(commands):
            started = time.perf_counter()
            subprocess.run(
                command, cwd=where, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
            )
            best[i] = min(best[i], time.perf_counter() - started)
    return best


def heavy_loaded(arguments: Sequence[str], where: Path) -> int:
    """How many heavy clients a command imports, as the interpreter itself tells."""
    command = [sys.executable, "-X", "importtime", "-m", "goldenctl", *arguments]
    told = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False).stderr.splitlines()
    names = {line.rpartition("|")[2].strip() for line in told if line.startswith("import time:")}
    if "goldenctl.cli.entry" not in names:
        raise RuntimeError(f"goldenctl did not start: {told[-1:]}")
    return len(names & HEAVY)


def rows() -> list[tuple[str, float, float]]:
    """Name, ratio, limit."""
    with checkout() as clone:
        files = sorted(
            str(p.relative_to(clone)) for p in clone.glob("tests/functional_tests/test_cases/**/golden_values*.json")
        )
        one = min(files, key=lambda f: abs((clone / f).stat().st_size - 15_000))
        ours, reference = [sys.executable, "-m", "goldenctl", "lint"], [sys.executable, str(HERE / "reference_checker.py")]
        tree, tree_reference = seconds([ours, [*reference, *files]], clone)
        loaded = sum(heavy_loaded(arguments, clone) for arguments in (["--help"], ["lint", one]))
        single, single_reference = seconds([[*ours, one], [*reference, one]], clone)
    return [
        (f"lint of {len(files)} files", tree / tree_reference, TREE_LIMIT),
        ("lint of one changed file", single / single_reference, FILE_LIMIT),
        ("heavy clients that --help and lint load", float(loaded), 0.0),
    ]
