"""Write the files of a report."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path

from goldenctl import report as drawing
from goldenctl.cli import output
from goldenctl.errors import RepoError, UsageError
from goldenctl.files import write_whole
from goldenctl.report import Report

SUFFIXES = (".html", ".htm", ".md")


def check_target(path: Path) -> None:
    """Refuse, before any work is done, a file that no report can be written to.

    Raises
    ------
    UsageError
        The name ends neither in ``.html`` nor in ``.md``, its folder does not exist, or jinja2 is not installed.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path} is neither HTML nor Markdown", hint="name a file that ends in .html or .md")
    if not path.parent.is_dir():
        raise UsageError("no such folder", place=str(path.parent), hint=f"mkdir -p {shlex.quote(str(path.parent))}")
    if path.suffix.lower() != ".md" and find_spec("jinja2") is None:
        raise UsageError("the HTML report needs jinja2", hint="pip install 'goldenctl[report]'")


def write(report: Report, path: Path) -> None:
    """Draw a report into a file, whole or not at all.

    Raises
    ------
    RepoError
        The file cannot be written.
    """
    text = drawing.markdown(report) if path.suffix.lower() == ".md" else drawing.html(report)
    raw = text.encode("utf-8", "replace")
    try:
        write_whole(path, raw)
    except OSError as exc:
        raise RepoError(f"cannot be written: {exc.strerror or exc}", place=str(path), hint="name another file") from exc
    output.note(f"wrote {path}: {len(report.entries)} goldens, {len(raw) / 1e6:.2f} MB")
