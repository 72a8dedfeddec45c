"""Fetch a run's candidates and give them their golden paths; open any side a user can name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from goldenctl import sides, syncs
from goldenctl.candidates import Known, Placed, resolve
from goldenctl.config import Settings
from goldenctl.errors import UsageError
from goldenctl.git import Repo
from goldenctl.model import Artifact, GoldenKey, Run, SourceProblem
from goldenctl.selection import Selection
from goldenctl.sides import Side
from goldenctl.sources import FetchOptions, open_source, provider_of
from goldenctl.words import nearest


@dataclass(frozen=True, slots=True)
class Collected:
    """A run with the candidates of its artifacts."""

    run: Run
    placed: Placed
    problems: tuple[SourceProblem, ...] = ()
    """What the source could not list or deliver."""


def known_goldens(settings: Settings) -> Known:
    """The cases and goldens of the work tree; a case is a folder as deep as the layout's, with or without goldens."""
    pattern = "/".join("*" * settings.layout.count("/"))
    folders = (p.relative_to(settings.root_path).as_posix() for p in settings.root_path.glob(pattern or ".") if p.is_dir())
    return Known(settings, frozenset(sides.names(settings)), frozenset(folders))


def collect(
    ref: str,
    settings: Settings,
    *,
    selection: Selection | None = None,
    options: FetchOptions | None = None,
    known: Known | None = None,
) -> Collected:
    """List a run, fetch the artifacts asked for, place their golden files.

    Raises
    ------
    SourceError
        The run itself cannot be had.
    UsageError
        The reference is of no known form.
    """
    selection = selection or Selection()
    source = open_source(ref, settings, options)
    run = source.describe()
    wanted: list[Artifact] = [a for a in run.artifacts if selection.may_take(a)]
    fetched = list(source.fetch(wanted))
    placed = resolve(run, fetched, known or known_goldens(settings))
    chosen = tuple(c for c in placed.candidates if selection.takes(c.key))
    problems = (*run.problems, *(p for f in fetched for p in f.problems))
    return Collected(run, replace(placed, candidates=chosen), problems)


def resolver(settings: Settings) -> Callable[[str], str]:
    """Revision → commit: plain revisions, branches, ``sync:DATE`` and ``sync:SHA``."""
    return partial(syncs.resolve, Repo(settings.top), settings)


def revision_side(rev: str, settings: Settings) -> Side:
    """The goldens of a revision, a branch, ``sync:DATE`` or ``sync:SHA``.

    Raises
    ------
    UsageError
        There is no such revision.
    """
    return sides.revision(rev, resolver(settings)(rev), Repo(settings.top), settings)


def open_side(name: str, settings: Settings) -> Side:
    """The side a name stands for: ``WORKTREE``, ``INDEX``, a revision, a folder, a file or a run.

    A folder with a ``run.json`` is a recorded run.

    Raises
    ------
    UsageError
        The name is none of these, or two of them at once.
    SourceError
        The run cannot be had, or a folder holds no golden.
    """
    if name.startswith("git:"):
        return revision_side(name.removeprefix("git:"), settings)
    if not (Path(name) / "run.json").is_file() and (provider_of(name, settings) == "tree" or name.isdecimal()):
        side = sides.local(name, settings, resolver(settings))
        if side is not None:
            return side
    if provider_of(name, settings) == "tree" and not Path(name).exists():
        raise UsageError(
            f"{name} is no revision, file, folder or run", hint="see `git branch -a`; runs are URLs, github:N, gitlab:N, s3://…"
        )
    return _run_side(name, settings)


def _run_side(name: str, settings: Settings) -> Side:
    found = collect(name, settings)
    contents = {c.path: c.content for c in found.placed.candidates}
    problems = [f"{p.subject}: {p.message}" for p in found.problems]
    problems += [f"{u.artifact}: {u.member} has no golden path: {u.reason}" for u in found.placed.unplaced]
    return replace(sides.of_bytes(name, contents, settings, tuple(problems)), partial=True)


def chooser(selection: Selection, settings: Settings, paths: Iterable[str]) -> Callable[[str], bool]:
    """Whether a golden path is asked for.

    Raises
    ------
    UsageError
        A case or platform asked for matches none of ``paths``; the nearest name is given.
    """
    if not (selection.cases or selection.platforms):
        return lambda _: True
    keys = {p: k for p in paths if (k := sides.key_of(p, settings)) is not None}
    selection.check(keys.values(), {*settings.platforms, *(k.platform for k in keys.values())})
    return lambda path: path in keys and selection.takes(keys[path])


def named(words: Sequence[str], settings: Settings, paths: Collection[str]) -> Callable[[str], bool]:
    """Whether a golden path is meant by one of some words; every path is when there are none.

    Parameters
    ----------
    words
        Files or folders (relative to the current folder), or globs of cases or golden paths.

    Raises
    ------
    UsageError
        A word means none of ``paths``; the nearest case is given.
    """
    found: set[str] = set()
    for word in words:
        meant = {p for p in paths if _means(word, p, settings)}
        if not meant:
            cases = {k.case for p in paths if (k := sides.key_of(p, settings)) is not None}
            near = nearest(word, cases, 0.3)
            raise UsageError(
                f"{word} means no golden file here", hint=f"did you mean {near}?" if near else "goldenctl coverage"
            )
        found |= meant
    return found.__contains__ if words else lambda _: True


def _means(word: str, path: str, settings: Settings) -> bool:
    key = sides.key_of(path, settings)
    if fnmatchcase(path, word) or (key is not None and Selection((word,)).takes(key)):
        return True
    place = Path(word).absolute()
    return place == settings.top or (settings.top / path).is_relative_to(place)


def golden_keys(settings: Settings) -> tuple[dict[str, GoldenKey], list[str]]:
    """Golden path → key of the work tree's goldens, older spellings included, and the paths that fit no layout."""
    paths = sorted(sides.names(settings))
    keys = {p: k for p in paths if (k := sides.key_of(p, settings)) is not None}
    return keys, [p for p in paths if p not in keys]
