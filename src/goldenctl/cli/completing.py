"""What the shell offers for cases, platforms, metrics, rules and revisions; a mistake offers nothing and says nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from goldenctl.errors import GoldenctlError
from goldenctl.model import GoldenKey

SAMPLE = 24
"""Goldens read for the names of their metrics: one a model and platform, so that a key press stays quick."""


def _offered(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """A completion of typer: the names that begin with what has been typed."""

    def complete(incomplete: str) -> list[str]:
        try:
            known = sorted(set(names()))
        except (GoldenctlError, OSError):
            return []
        return [_for_shell(n) for n in known if n.startswith(incomplete)]

    complete.__doc__ = names.__doc__
    return complete


def _for_shell(name: str) -> str:
    """Bash puts a completion into the line as it is, so blanks are escaped there; zsh and fish do it themselves."""
    if os.environ.get("_GOLDENCTL_COMPLETE") != "complete_bash":
        return name
    return re.sub(r"([\s'\"\\$&;()<>|*?\[\]])", r"\\\1", name)


@_offered
def cases() -> Iterable[str]:
    """``model/test_case`` of every golden here."""
    return (key.case for _, key in _keys())


@_offered
def platforms() -> Iterable[str]:
    """Platforms of the settings and of the goldens here."""
    from goldenctl import config

    return {*config.load(Path.cwd()).platforms, *(key.platform for _, key in _keys() if key.platform)}


@_offered
def metrics() -> Iterable[str]:
    """Metrics with a tolerance, and those of a sample of the goldens here."""
    from goldenctl import config
    from goldenctl.goldenfile import DocumentError, Shape, read

    settings = config.load(Path.cwd())
    names = {name.partition("@")[0] for name in settings.tolerance}
    samples = {(key.model, key.platform): path for path, key in _keys()}
    for path in list(samples.values())[:SAMPLE]:
        try:
            document = read(path.read_bytes())
        except (OSError, DocumentError):
            continue
        if document.shape is Shape.METRICS:
            names.update(s.metric for s in document.series)
    return names


@_offered
def rules() -> Iterable[str]:
    """Codes of the lint rules."""
    from goldenctl.lint import RULES

    return RULES


@_offered
def revisions() -> Iterable[str]:
    """Branches, tags and WORKTREE."""
    from goldenctl import config
    from goldenctl.git import Repo

    names = Repo(config.load(Path.cwd()).top).text("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags")
    return [*names.split(), "WORKTREE"]


def _keys() -> list[tuple[Path, GoldenKey]]:
    from goldenctl import config, sides

    settings = config.load(Path.cwd())
    found = []
    for path in settings.root_path.glob("*/*/*.json"):
        key = sides.key_of(path.relative_to(settings.top).as_posix(), settings)
        if key is not None and sides.is_golden_name(path.name, settings):
            found.append((path, key))
    return found
