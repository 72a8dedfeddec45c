"""The main job on our own data: repair NaN goldens from a recorded CI run, in a scratch repository.

The scratch repository replays what happens between two branches: ``main`` and ``dev`` agree since a
sync of 2026-04-28; then a refresh on ``dev`` brings the goldens as they lie under ``goldens/``, some
with ``nan``. A recorded run (``data/runs/``) has the values that repair them. Every figure that is
printed is checked at the end; the demo fails when one is off.

``python data/demo.py``            run and print
``python data/demo.py --readme``   put the transcript into README.md
``python data/demo.py --check``    fail when README.md has another transcript
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import make_goldens

TOP = Path(__file__).resolve().parent.parent
RUN = "ci-run"
IDENTITY = {
    "GIT_AUTHOR_NAME": "demo",
    "GIT_AUTHOR_EMAIL": "demo@example.invalid",
    "GIT_COMMITTER_NAME": "demo",
    "GIT_COMMITTER_EMAIL": "demo@example.invalid",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "COLUMNS": "120",
    "NO_COLOR": "1",
}
STEPS = (
    ("goldenctl lint goldens/moe", 1),
    (f"goldenctl refresh --from-job {RUN} --only nonfinite --fix --match sync:2026-04-28 --yes", 1),
    ("git diff --stat", 0),
    ("goldenctl lint", 1),
    (f"goldenctl refresh --from-job {RUN} --only nonfinite --fix --allow-shrink --dry-run", 0),
    ("goldenctl catalog status", 0),
    ('goldenctl catalog sql "SELECT action, count(*) AS files FROM refresh_file GROUP BY action ORDER BY action"', 0),
)
"""Command and the exit code it must give: 1 says that something is still not in order."""
SHOWN = 2
"""How many of the steps the README shows."""


def git(top: Path, *arguments: str, date: str = "2026-04-27T12:00:00Z") -> None:
    """Run git in the scratch repository with fixed dates."""
    environment = os.environ | IDENTITY | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    subprocess.run(["git", *arguments], cwd=top, check=True, env=environment, stdout=subprocess.DEVNULL)


def scratch(top: Path) -> None:
    """Build the scratch repository."""
    (top / "goldenctl.toml").write_text('root = "goldens"\nplatforms = ["dgx_h100", "dgx_gb200"]\n')
    (top / ".gitignore").write_text(f".goldenctl/\n{RUN}/\n")
    git(top, "init", "-q", "-b", "main")
    make_goldens.write(top / "goldens", damage=False, image=2)
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "Add golden values")
    git(top, "checkout", "-q", "-b", "dev")
    git(top, "commit", "-q", "--allow-empty", "-m", "Work on dev")
    git(top, "checkout", "-q", "main")
    make_goldens.write(top / "goldens", damage=False)
    git(top, "commit", "-q", "-a", "-m", "Refresh golden values")
    git(top, "checkout", "-q", "dev")
    git(top, "merge", "-q", "--no-ff", "-m", "chore: sync main into dev", "main", date="2026-04-28T15:00:00Z")
    make_goldens.write(top / "goldens")
    git(top, "commit", "-q", "-a", "-m", "Copy golden values from CI", date="2026-05-01T09:00:00Z")
    (top / RUN).symlink_to(TOP / "data/runs/github-17000000001")


def run(top: Path, command: str, expected: int) -> str:
    """The output of one command; anything but the expected exit code ends the demo."""
    done = subprocess.run(
        shlex.split(command),
        check=False,
        cwd=top,
        env=os.environ | IDENTITY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != expected:
        sys.exit(f"{command}\n{done.stdout}\nexit code {done.returncode}, expected {expected}")
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


@contextmanager
def repository() -> Iterator[Path]:
    """A scratch repository that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="goldenctl-demo-") as folder:
        scratch(Path(folder))
        yield Path(folder)


def transcript(steps: int) -> Iterator[str]:
    """Commands with their output, one text a step."""
    with repository() as top:
        for command, code in STEPS[:steps]:
            yield f"$ {command}\n{run(top, command, code)}\n"


def check(text: str) -> None:
    """Fail when the demo did not do what it is there to show."""
    for fact in (
        "7 written, 0 unchanged, 1 refused, 0 missing",
        "identical to sync:2026-04-28",
        "equal to sync:2026-04-28",
        "job ended as cancelled",
        "42 golden files, 5 findings in 1 of them: GV001 5",
    ):
        if fact not in text:
            sys.exit(f"{text}\nthe demo should have printed: {fact}")


def readme(text: str, *, only_check: bool) -> None:
    """Put the transcript between its marks in README.md, or compare it."""
    path = TOP / "README.md"
    old = path.read_text("utf-8")
    block = f"<!-- transcript: python data/demo.py --readme -->\n```console\n{text}```\n<!-- /transcript -->"
    new = re.sub(r"<!-- transcript: .*?<!-- /transcript -->", lambda _: block, old, flags=re.DOTALL)
    if only_check and new != old:
        sys.exit("README.md has another transcript than the demo; run: python data/demo.py --readme")
    path.write_text(new, "utf-8")


if __name__ == "__main__":
    if sys.argv[1:] in (["--readme"], ["--check"]):
        readme("\n".join(transcript(SHOWN)), only_check=sys.argv[1] == "--check")
    else:
        parts = []
        for part in transcript(len(STEPS)):
            print(part, flush=True)
            parts.append(part)
        check("\n".join(parts))
        print("The demo did what it should; the scratch repository is gone again.")
