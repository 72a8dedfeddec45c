"""The entry point: errors become exit codes here, and what runs often starts without the option parser."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from goldenctl.cli import output
from goldenctl.errors import ExitCode, GoldenctlError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return the exit code."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    return guarded(lambda: _run(args))


def _run(args: Sequence[str]) -> int:
    if _plain_lint(args):
        return _lint(args[1:])
    if args[:1] == ["textconv"] and len(args) == 2 and not args[1].startswith("-"):
        return _textconv(args[1])
    if args in (["catalog", "build"], ["catalog", "update"]):
        return _fill(new_only=args[1] == "update")
    return _parsed(args)


def _plain_lint(args: Sequence[str]) -> bool:
    """Whether this is ``lint`` with nothing but file names, as pre-commit calls it.

    The option parser costs more than linting a file does, and there is nothing to parse.
    """
    return args[:1] == ["lint"] and not any(a.startswith("-") for a in args)


def _lint(paths: Sequence[str]) -> int:
    from goldenctl.cli import linting, recovery

    recovery.settle()
    return linting.run(linting.LintOptions(tuple(paths)))


def _textconv(path: str) -> int:
    """One file for ``git diff``, which starts this twice a golden."""
    from goldenctl.cli import recovery, showing

    recovery.settle()
    return showing.table(path)


def _fill(new_only: bool) -> int:
    """The catalog of this repository, filled or updated, as a hook or a cron job does all day long."""
    from goldenctl.cli import filling, recovery

    recovery.settle()
    return filling.fill(new_only=new_only)


def _parsed(args: Sequence[str]) -> int:
    from goldenctl.cli import app

    return app.run(list(args))


def guarded(action: Callable[[], int]) -> int:
    """The exit code of an action, its errors said on stderr."""
    try:
        return action()
    except GoldenctlError as exc:
        output.error(str(exc))
        return int(exc.exit_code)
    except KeyboardInterrupt:
        output.error("interrupted; every file is whole, as it was or as it was to be\n  next: run the command again")
        return int(ExitCode.INTERRUPTED)
    except OSError as exc:
        # A full disk, a file that nobody may read: whatever no place nearer to it has foreseen.
        output.error(f"{exc.filename}: {exc.strerror}" if exc.filename else str(exc.strerror or exc))
        return int(ExitCode.STATE)


class _Pipe(io.FileIO):
    """An output whose reader may go away (``head``, ``less``): the rest is dropped, the work and its exit code stay."""

    def write(self, data: Buffer) -> int:
        """Write to the reader, or to nobody once it is gone; a full disk is said once and nothing more goes there."""
        try:
            return super().write(data)
        except OSError as exc:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if not isinstance(exc, BrokenPipeError):
                raise
            return super().write(data)


def _output(stream: TextIO | None) -> TextIO:
    """The stream as it is to be written to."""
    if stream is None:  # closed by the caller, so that nobody hears what is said
        return Path(os.devnull).open("w", encoding="utf-8")
    raw = io.BufferedWriter(_Pipe(stream.fileno(), "w", closefd=False))
    # Names need not be UTF-8, nor the terminal.
    return io.TextIOWrapper(raw, stream.encoding, "backslashreplace", line_buffering=stream.isatty() or stream is sys.stderr)


def _flushed(code: int) -> int:
    sys.stdout.flush()
    return code


def entry() -> None:
    """Console script: run and leave with the exit code."""
    sys.stdout, sys.stderr = _output(sys.stdout), _output(sys.stderr)
    sys.exit(guarded(lambda: _flushed(main())))
