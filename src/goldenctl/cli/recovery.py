"""What every command does first: finish or undo a write-back that was interrupted."""

from __future__ import annotations

from pathlib import Path

from goldenctl.cli import output
from goldenctl.config import find_top
from goldenctl.errors import UsageError


def settle() -> None:
    """Finish or undo an interrupted write-back and say so; costs one look where there is none.

    Raises
    ------
    UsageError
        The current folder is gone.
    RepoError
        The journal cannot be settled.
    """
    try:
        top = find_top(Path.cwd())
    except FileNotFoundError as exc:
        raise UsageError("the current folder does not exist any more", hint="cd to the repository") from exc
    if (top / ".goldenctl" / "journal").exists():
        from goldenctl.writeback import recover

        for sentence in recover(top):
            output.note(sentence)
