"""One side of a comparison: the goldens of a revision, the work tree, the index, a folder, a file or a run.

A side lists content ids (git's blob ids, whatever the side) before any content is read, so that what is the same on
two sides is never read at all.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from goldenctl.config import Settings
from goldenctl.errors import RepoError, SourceError, UsageError
from goldenctl.git import Repo, TreeEntry
from goldenctl.model import GoldenKey

WORKTREE = "WORKTREE"
INDEX = "INDEX"
_LINK = "120000"

Contents = Callable[[Iterable[str]], Iterator[tuple[str, bytes]]]
"""Content ids → (id, bytes), in the order asked."""


@dataclass(frozen=True, slots=True)
class Side:
    """The goldens of one side."""

    name: str
    """As the user named it."""
    entries: Mapping[str, str]
    """Golden path from the repository's top → content id."""
    contents: Contents
    """Reads contents by id."""
    commit: str = ""
    """Hex commit for revisions; empty otherwise."""
    partial: bool = False
    """The side holds some goldens only (a run, a file): what it lacks is not removed."""
    single: bool = False
    """The side is one file, whatever its name."""
    problems: tuple[str, ...] = ()
    """What the side could not deliver, one sentence each."""

    def read(self, path: str) -> bytes | None:
        """Bytes of one golden, or None when the side does not have it."""
        blob = self.entries.get(path)
        return None if blob is None else next(iter(self.contents([blob])))[1]

    def only(self, paths: Iterable[str]) -> Side:
        """The same side with these paths alone."""
        wanted = set(paths)
        return replace(self, entries={p: b for p, b in self.entries.items() if p in wanted})


def is_golden(path: str, settings: Settings) -> bool:
    """Whether a path is that of a golden file, by its name."""
    return is_golden_name(path.rpartition("/")[2], settings)


def is_golden_name(name: str, settings: Settings) -> bool:
    """Whether a file name is that of a golden, older spellings without environment or platform included."""
    last = settings.layout.rsplit("/", 1)[-1]
    prefix, suffix = last.partition("{")[0].rstrip("_"), last.rpartition("}")[2]
    if not prefix:
        return settings.compiled_layout.parse_name(name) is not None
    return name.startswith(prefix) and name.endswith(suffix)


def key_of(path: str, settings: Settings) -> GoldenKey | None:
    """The key of a golden path from the repository's top; older spellings get empty parts."""
    prefix = settings.prefix
    relative = path.removeprefix(prefix)
    return settings.compiled_layout.parse(relative) or settings.compiled_layout.parse_legacy(relative)


def content_id(content: bytes, algorithm: str = "sha1") -> str:
    """Git's blob id of a content."""
    digest = hashlib.new(algorithm, b"blob %d\0" % len(content), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


def revision(name: str, commit: str, repo: Repo, settings: Settings) -> Side:
    """The goldens of a commit."""
    entries = _goldens(repo.tree(commit, settings.root), settings)
    return Side(name, entries, repo.blobs, commit)


def index(repo: Repo, settings: Settings) -> Side:
    """The goldens as they are staged."""
    found: dict[str, TreeEntry] = {}
    for record in repo.run("ls-files", "-s", "-z", "--", settings.root or ".").split(b"\0"):
        if record:
            head, _, path = record.partition(b"\t")
            mode, blob, _stage = head.decode().split()
            found[path.decode("utf-8", "surrogateescape")] = TreeEntry(mode, blob)
    return Side(INDEX, _goldens(found, settings), repo.blobs)


def _goldens(tree: Mapping[str, TreeEntry], settings: Settings) -> dict[str, str]:
    """Golden path → blob; links are left out."""
    names = ((p, e) for p, e in tree.items() if e.mode != _LINK)
    return {p: e.blob for p, e in names if is_golden(p, settings)}


def worktree(settings: Settings) -> Side:
    """The goldens on disk, tracked or not."""
    side = of_files(WORKTREE, _walk(settings.root_path, settings), settings)
    prefix = settings.prefix
    return replace(side, entries={prefix + p: b for p, b in side.entries.items()})


def names(settings: Settings) -> list[str]:
    """Paths of the goldens on disk, from the repository's top; nothing is read."""
    prefix = settings.prefix
    return [prefix + p for p in _walk(settings.root_path, settings)]


def on_disk(settings: Settings, path: str) -> bytes | None:
    """Bytes of a file named from the repository's top, None when there is none.

    Raises
    ------
    RepoError
        It is there and cannot be read.
    """
    try:
        return (settings.top / path).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise RepoError(f"cannot be read: {exc.strerror}", place=path) from exc


def folder(name: str, path: Path, settings: Settings) -> Side:
    """The goldens below a folder, placed by the last levels of their paths where these fit the layout.

    Raises
    ------
    SourceError
        The folder holds no golden file.
    """
    files = _walk(path, settings)
    if not files:
        raise SourceError("holds no golden files", place=name, hint=f"expected files like {settings.layout}")
    side = of_files(name, files, settings)
    return replace(side, entries={_golden_path(p, path, settings): b for p, b in side.entries.items()})


def file(name: str, path: Path, settings: Settings) -> Side:
    """One file, be its name a golden's or not."""
    side = of_files(name, {path.name: path}, settings)
    placed = {_golden_path(n, path.parent, settings): b for n, b in side.entries.items()}
    return replace(side, entries=placed, partial=True, single=True)


def of_files(name: str, files: Mapping[str, Path], settings: Settings) -> Side:
    """A side of files on disk, none of which is held; one that cannot be read is a problem."""
    algorithm = object_format(settings.top)
    ids: dict[str, str] = {}
    problems = []
    for relative, path in files.items():
        try:
            ids[relative] = content_id(path.read_bytes(), algorithm)
        except OSError as exc:
            problems.append(f"{path}: cannot be read: {exc.strerror}")
    places = {blob: files[relative] for relative, blob in ids.items()}
    return Side(name, ids, partial(_from_disk, places, algorithm), problems=tuple(problems))


def _from_disk(places: Mapping[str, Path], algorithm: str, wanted: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    for blob in dict.fromkeys(wanted):
        path = places[blob]
        try:
            content = path.read_bytes()
        except OSError as exc:
            raise RepoError(f"cannot be read: {exc.strerror}", place=str(path)) from exc
        if content_id(content, algorithm) != blob:
            raise RepoError("was changed while it was compared", place=str(path), hint="run the command again")
        yield blob, content


def of_bytes(name: str, contents: Mapping[str, bytes], settings: Settings, problems: tuple[str, ...] = ()) -> Side:
    """A side of contents already at hand, keyed by golden path."""
    algorithm = object_format(settings.top)
    ids = {path: content_id(content, algorithm) for path, content in contents.items()}
    by_id = {ids[path]: content for path, content in contents.items()}
    return Side(name, ids, partial(_from_memory, by_id), problems=problems)


def _from_memory(by_id: Mapping[str, bytes], wanted: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    return ((i, by_id[i]) for i in dict.fromkeys(wanted))


def object_format(top: Path) -> str:
    """``sha1`` or ``sha256``, as the repository names its objects; ``sha1`` outside git."""
    done = Repo(top).run("rev-parse", "--show-object-format", check=False).decode().strip()
    return done if done == "sha256" else "sha1"


def _walk(top: Path, settings: Settings) -> dict[str, Path]:
    """Golden files below a folder, links left out: path from the folder → path."""
    found: dict[str, Path] = {}
    for here, folders, names in os.walk(top):
        folders[:] = sorted(f for f in folders if f != ".git")
        for name in sorted(names):
            path = Path(here, name)
            if is_golden_name(name, settings) and not path.is_symlink():
                found[path.relative_to(top).as_posix()] = path
    return found


def _golden_path(relative: str, base: Path, settings: Settings) -> str:
    """The golden path a file stands for: its place below root, or what its last folders say, or itself."""
    prefix = settings.prefix
    absolute = (base / relative).absolute()
    if absolute.is_relative_to(settings.root_path):
        return prefix + absolute.relative_to(settings.root_path).as_posix()
    depth = settings.layout.count("/") + 1
    tail = "/".join(absolute.parts[-depth:])
    if key_of(prefix + tail, settings) is not None and len(Path(relative).parts) >= depth:
        return prefix + tail
    return prefix + relative


def local(name: str, settings: Settings, resolve: Callable[[str], str]) -> Side | None:
    """The side of a local name: ``WORKTREE``, ``INDEX``, a file, a folder or a revision; None when it is none of them.

    Parameters
    ----------
    name
        A path with a separator in front (``./main``) is never a revision.
    resolve
        Revision → commit, raising :class:`~goldenctl.errors.UsageError`.

    Raises
    ------
    UsageError
        The name is a revision and a path at once.
    """
    if name == WORKTREE:
        return worktree(settings)
    repo, path = Repo(settings.top), Path(name)
    if name == INDEX:
        return index(repo, settings)
    commit = "" if name.startswith(("/", "./", "../")) else _commit(name, resolve)
    if commit and path.exists() and "/" not in name:
        raise UsageError(
            f"{name} is a revision and a path", hint=f"write ./{name} for the path, refs/heads/{name} for the branch"
        )
    if commit:
        return revision(name, commit, repo, settings)
    if path.is_file() and path.suffix.lower() != ".zip":
        return file(name, path, settings)
    return folder(name, path, settings) if path.is_dir() else None


def _commit(name: str, resolve: Callable[[str], str]) -> str:
    try:
        return resolve(name)
    except (UsageError, RepoError):
        if name.startswith("sync:"):
            raise
        return ""
