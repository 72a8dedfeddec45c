"""How cost grows with the corpus: ``python bench/growth.py [SCALE…]``, by default 1 10 100.

Prints, for each scale, processor seconds and peak memory of every command that reads everything, and both as multiples of
what they are at the first scale. The repository of a scale holds the goldens of dev's tip that many times in one tree,
each copy with other values, and a second commit in which every file changed again.
Needs ``GOLDENCTL_CORPUS``; scale 100 needs about 15 GB below ``TMPDIR`` and a quarter of an hour.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = "tests/functional_tests/test_cases"
_FIRST_VALUE = re.compile(rb'("values": \{\s*"\d+": )(?=\d)')
COMMANDS = (
    ("lint", "lint"),
    ("catalog build", "catalog", "build"),
    ("catalog update, nothing new", "catalog", "update"),
    ("diff of two revisions", "diff", "HEAD~1", "HEAD", "--format", "json"),
    ("verify against a revision", "verify", "--against", "HEAD~1", "--format", "json"),
)


def changed(raw: bytes, number: int) -> bytes:
    """A golden with another first value in every metric; ``number`` of at least 1 tells the copies apart."""
    return _FIRST_VALUE.sub(rb"\g<1>%d" % number, raw)


def files(clone: Path) -> dict[str, bytes]:
    """Path below root → bytes of the goldens at dev's tip."""
    root = clone / ROOT
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.glob("**/golden_values*.json"))}


def stream(base: dict[str, bytes], scale: int) -> Iterator[bytes]:
    """Two commits for ``git fast-import``."""
    for commit in range(2):
        yield b"commit refs/heads/dev\ncommitter bench <bench@example.invalid> %d +0000\ndata 5\nstate\n" % (
            1_700_000_000 + commit
        )
        for copy in range(scale):
            for path, raw in base.items():
                content = changed(raw, 1 + copy + commit * scale)
                model, _, rest = path.partition("/")
                name = f"{ROOT}/{model}{copy or ''}/{rest}".encode()
                yield b"M 100644 inline %s\ndata %d\n%s\n" % (name, len(content), content)


def build(folder: Path, base: dict[str, bytes], scale: int) -> Path:
    """The repository of a scale, checked out."""
    repo = folder / f"x{scale}"
    subprocess.run(["git", "init", "-q", "-b", "dev", str(repo)], check=True)
    importing = ["git", "-c", "core.compression=1", "fast-import", "--quiet", "--depth=0"]
    with subprocess.Popen(importing, cwd=repo, stdin=subprocess.PIPE) as process:
        if process.stdin is None:
            raise RuntimeError("git fast-import has no stdin")
        for part in stream(base, scale):
            process.stdin.write(part)
    if process.returncode:
        raise RuntimeError("git fast-import failed")
    subprocess.run(["git", "checkout", "-q", "dev"], cwd=repo, check=True)
    return repo


def measure(repo: Path, arguments: tuple[str, ...]) -> tuple[float, float]:
    """Seconds of all processors, and megabytes of resident memory at the peak of the largest process."""
    program = (
        "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode;"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(code, used.ru_maxrss, used.ru_utime + used.ru_stime)"
    )
    command = [sys.executable, "-c", program, sys.executable, "-m", "goldenctl", *arguments]
    done = subprocess.run(command, cwd=repo, check=True, capture_output=True, text=True)
    code, peak, seconds = done.stdout.split()
    if code not in ("0", "1"):
        raise RuntimeError(f"{' '.join(arguments)} ended with {code}: {done.stderr}")
    return float(seconds), int(peak) / 1024


def main() -> int:
    """Measure and print."""
    if not os.environ.get("GOLDENCTL_CORPUS"):
        print("GOLDENCTL_CORPUS is not set: nothing to measure on")
        return 2
    scales = [int(a) for a in sys.argv[1:]] or [1, 10, 100]
    first: dict[str, tuple[float, float]] = {}
    print(f"{'work':<30} {'scale':>6} {'CPU s':>9} {'MB':>8} {'time x':>8} {'memory x':>9}")
    with tempfile.TemporaryDirectory(prefix="goldenctl-growth-") as scratch:
        clone = Path(scratch, "clone")
        bundle = Path(os.environ["GOLDENCTL_CORPUS"], "megatron-goldens.bundle")
        subprocess.run(["git", "clone", "-q", "-b", "dev", str(bundle), str(clone)], check=True)
        base = files(clone)
        for scale in scales:
            repo = build(Path(scratch), base, scale)
            for name, *arguments in COMMANDS:
                seconds, peak = measure(repo, tuple(arguments))
                then = first.setdefault(name, (seconds, peak))
                growth = f"{seconds / then[0]:>8.1f} {peak / then[1]:>9.1f}"
                print(f"{name:<30} {scale:>6} {seconds:>9.2f} {peak:>8.0f} {growth}", flush=True)
            subprocess.run(["rm", "-rf", str(repo)], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
