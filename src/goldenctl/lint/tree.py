"""Lint many files: find them, read them side by side, and compare them with each other (GV006)."""

from __future__ import annotations

import gc
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from goldenctl.config import Settings
from goldenctl.errors import RepoError, UsageError
from goldenctl.forked import side_by_side
from goldenctl.lint.check import check
from goldenctl.lint.rules import finding, selected
from goldenctl.model import Finding, GoldenKey

PARALLEL_BYTES = 4 * 1024 * 1024
"""Below this a second process costs more than it saves."""
_OWN_WORK = 1_000_000
"""What the parent does besides its files (twins, printing), in bytes linted in that time."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What linting a set of files gave."""

    files: tuple[str, ...]
    """Paths checked, relative to the repository's top."""
    findings: tuple[Finding, ...]
    """Sorted by path; those of one file in rule order."""


def golden_files(settings: Settings) -> list[str]:
    """Golden files below root, sorted: every ``*.json`` whose name begins as the layout's does.

    Raises
    ------
    UsageError
        There is no root.
    RepoError
        The root cannot be read.
    """
    settings.need_root()
    if not settings.root_path.is_dir():
        raise UsageError("root is no folder", place=str(settings.root_path), hint="set root in goldenctl.toml")
    prefix = settings.layout.rsplit("/", 1)[-1].partition("{")[0].rstrip("_")
    return sorted(_walk(settings.root_path, settings.top, prefix))


def _walk(folder: Path, top: Path, prefix: str) -> Iterator[str]:
    def fail(error: OSError) -> None:
        raise RepoError(f"cannot be read: {error.strerror}", place=str(error.filename)) from error

    base = str(top) + os.sep
    for here, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [f for f in folders if not f.startswith(".")]
        for name in names:
            if name.startswith(prefix) and name.endswith(".json"):
                yield f"{here.removeprefix(base)}/{name}".replace(os.sep, "/")


def check_files(paths: Sequence[str], settings: Settings, *, whole: bool = True, workers: int = 1) -> Checked:
    """Lint files of the work tree.

    Parameters
    ----------
    paths
        Relative to the repository's top, or absolute.
    settings
        Rules, layout, platforms and limits.
    whole
        Whether ``paths`` are all files below root, so that twin folders can be told too.
    workers
        Processes; more than one forks, which a program with threads must not do.

    Returns
    -------
    Checked
        A file that cannot be read is a finding (GV002, whatever rules are selected), and the others are checked.

    Raises
    ------
    UsageError
        A rule code in the settings is unknown.
    """
    twins = "GV006" in selected(settings.lint)
    parts = _split(paths, settings.top, workers)  # hashes agree between the parts, since a fork keeps the seed
    results = side_by_side([lambda part=part: _check_part(part, settings, twins) for part in parts])  # type: ignore[misc]
    found = [f for part in results for f in part[0]]
    if twins:
        digests: dict[tuple[int, int], list[str]] = defaultdict(list)
        for part in results:
            for path, size, content in part[1]:
                digests[size, content].append(path)
        found += _twins(digests.values(), settings)
        found += _near_folders(paths) if whole else ()
    return Checked(tuple(paths), tuple(sorted(found, key=lambda f: f.path)))


_Part = tuple[list[Finding], list[tuple[str, int, int]]]


def _check_part(paths: Sequence[str], settings: Settings, twins: bool) -> _Part:
    """Findings, and path, size and hash of each content."""
    found: list[Finding] = []
    contents: list[tuple[str, int, int]] = []
    collecting = gc.isenabled()
    gc.disable()  # parsed documents hold no cycles, and walking them costs a fifth of the time
    try:
        for path in paths:
            try:
                raw = read(settings.top, path)
            except RepoError as exc:
                found.append(finding("GV002", path, "", exc.fact, kind="unreadable"))
                continue
            found += check(path, raw, settings)
            if twins and len(raw) > 2:
                contents.append((path, len(raw), hash(raw)))
    finally:
        if collecting:
            gc.enable()
    return found, contents


def read(top: Path, path: str) -> bytes:
    """The bytes of a file named from the top.

    Raises
    ------
    RepoError
        It cannot be read: a dangling link, a folder, no permission.
    """
    try:
        # Not blocking, since a pipe may lie there; Path objects cost more than the read.
        handle = os.open(os.path.join(top, path), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))  # noqa: PTH118
        with os.fdopen(handle, "rb", buffering=0) as stream:
            return stream.read()
    except OSError as exc:
        raise RepoError(f"cannot be read: {exc.strerror}", place=path) from exc


def _split(paths: Sequence[str], top: Path, workers: int) -> list[list[str]]:
    """Paths in as many parts as there are workers, of about the same number of bytes."""
    if workers < 2 or len(paths) < 2 or not hasattr(os, "fork"):
        return [list(paths)]
    sizes = {p: _size(top, p) for p in paths}
    if sum(sizes.values()) < PARALLEL_BYTES:
        return [list(paths)]
    parts: list[list[str]] = [[] for _ in range(workers)]
    loads = [_OWN_WORK] + [0] * (workers - 1)
    for path in sorted(paths, key=lambda p: -sizes[p]):
        least = loads.index(min(loads))
        parts[least].append(path)
        loads[least] += sizes[path] + 2000
    return parts


def _size(top: Path, path: str) -> int:
    try:
        return os.stat(os.path.join(top, path)).st_size  # noqa: PTH116, PTH118  as in _read
    except OSError:
        return 0


def _twins(groups: Iterable[Sequence[str]], settings: Settings) -> Iterator[Finding]:
    """GV006: the same bytes under two platforms or two cases."""
    layout, prefix = settings.compiled_layout, settings.prefix
    for group in groups:
        if len(group) < 2:
            continue
        keys = {p: layout.parse(p.removeprefix(prefix)) for p in sorted(group)}
        for path, key in keys.items():
            other = next((o for o, k in keys.items() if o != path and key and k and _distinct(key, k)), None)
            if other is not None:
                message = f"the same content as {other}; measured times and memory cannot be equal"
                yield finding("GV006", path, "", message, kind="same content")


def _distinct(one: GoldenKey, two: GoldenKey) -> bool:
    return one.platform != two.platform or one.case != two.case


def _near_folders(paths: Sequence[str]) -> Iterator[Finding]:
    """GV006: case folders whose names differ by case, separators or one missing letter."""
    folders: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in paths:
        folder, _, _ = path.rpartition("/")
        parent, _, name = folder.rpartition("/")
        folders[parent, name].append(path)
    by_signature: dict[tuple[str, str], set[str]] = defaultdict(set)
    for parent, name in folders:
        for signature in _signatures(name):
            by_signature[parent, signature].add(name)
    for (parent, name), inside in folders.items():
        near = sorted(n for s in _signatures(name) for n in by_signature[parent, s] if n != name and _near(n, name))
        if near and len(inside) <= len(folders[parent, near[0]]):
            message = f"folder {name!r} is nearly {near[0]!r}: one of them may be a slip"
            yield finding("GV006", sorted(inside)[0], "", message, kind="twin folder")


def _signatures(name: str) -> set[str]:
    """The name without separators, and that with each single letter left out."""
    plain = "".join(c for c in name.lower() if c.isalnum())
    return {plain} | {plain[:i] + plain[i + 1 :] for i, c in enumerate(plain) if c.isalpha()}


def _near(one: str, two: str) -> bool:
    """Whether the names are the same without separators, or one has one letter more."""
    a, b = sorted(("".join(c for c in n.lower() if c.isalnum()) for n in (one, two)), key=len)
    return a == b or (len(b) == len(a) + 1 and a in _signatures(b))
