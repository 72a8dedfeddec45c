"""What ``textconv`` prints, without the option parser."""

from __future__ import annotations

from pathlib import Path

from goldenctl.cli import output
from goldenctl.errors import ExitCode, RepoError


def table(path: str) -> int:
    """Print a golden file as one line a metric.

    Raises
    ------
    RepoError
        The file cannot be read.
    """
    from goldenctl.sync.textconv import as_text

    try:
        raw = Path(path).read_bytes()
    except OSError as exc:
        raise RepoError(f"cannot be read: {exc.strerror}", place=path) from exc
    output.result(as_text(raw))
    return int(ExitCode.OK)
