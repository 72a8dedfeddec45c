"""Write a history into the tables; every function here is one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import polars as pl

from goldenctl.catalog import history, store
from goldenctl.catalog.columns import COMMIT, GOLDEN, LINE, REFRESH, REFRESH_FILE, REVISION, RUN, SYNC
from goldenctl.catalog.frames import clear, insert, register, rows_frame, write_batch
from goldenctl.catalog.history import Commit, Lives, Revision
from goldenctl.catalog.places import Place
from goldenctl.catalog.rows import Batch, utf8
from goldenctl.config import Settings
from goldenctl.layout import Layout
from goldenctl.model import GoldenKey
from goldenctl.syncs import Sync
from goldenctl.trailers import Provenance, RunTrailer, parse

_PATHS = {"path": pl.String, "golden": pl.Int64}


@dataclass(frozen=True, slots=True)
class History:
    """What git says about the golden files of some branches."""

    commits: Sequence[Commit]
    lives: Lives
    tips: Mapping[str, str]
    """Branch → commit, the one that tells where a golden is now first."""
    landings: Sequence[Sync]


def missing(path: Place, documents: Iterable[str], wait: float) -> list[str]:
    """Those of the blob ids the catalog has no document for, in the same order."""
    with store.reading(path, wait) as connection:
        known = {row[0] for row in connection.execute("SELECT id FROM document").fetchall()}
    return [blob for blob in documents if blob not in known]


def add(path: Place, batch: Batch, wait: float) -> None:
    """Add the documents of one batch with their series and values."""
    with store.writing(path, wait, about="catalog build: documents") as connection:
        write_batch(connection, batch)


def replace_history(path: Place, found: History, settings: Settings, wait: float, done: Callable[[], None]) -> None:
    """Put commits, lines, revisions, goldens, syncs and what trailers say in the place of what was there.

    ``done`` is called once the file is closed, before anybody else may write it.
    """
    frames = {
        "commit": _commits(found.commits),
        "line": _lines(found),
        "revision": _revisions(found.lives),
        "sync": _syncs(found.landings),
    }
    goldens = _goldens(found, settings)
    provenance = _provenance(found)
    with store.writing(path, wait, done, about="catalog build: history") as connection:
        for table, data in frames.items():
            connection.execute(f'DELETE FROM "{table}"')  # noqa: S608 - our own names
            insert(connection, table, data)
        _replace_meta(connection, {"root": settings.root, "branches": json.dumps(list(found.tips))})
        _replace_provenance(connection, provenance)
        _replace_goldens(connection, goldens, found.lives)


def _replace_meta(connection: duckdb.DuckDBPyConnection, notes: Mapping[str, str]) -> None:
    data = pl.DataFrame({"key": list(notes), "value": list(map(utf8, notes.values()))})
    clear(connection, "meta", ("key",), data)
    insert(connection, "meta", data)


def _commits(commits: Sequence[Commit]) -> pl.DataFrame:
    return rows_frame([(c.id, list(c.parents), c.committed_at, utf8(c.subject)) for c in commits], COMMIT)


def _lines(found: History) -> pl.DataFrame:
    by_id = {c.id: c for c in found.commits}
    rows = [(utf8(b), i, sha) for b, tip in found.tips.items() for i, sha in enumerate(history.line(by_id, tip))]
    return rows_frame(rows, LINE)


def _revisions(lives: Lives) -> pl.DataFrame:
    """Built column by column: this is the only one of these tables with many rows."""
    edits = [r.edit for r in lives.revisions]
    columns: tuple[list[object], ...] = (
        [r.golden for r in lives.revisions],
        [r.commit for r in lives.revisions],
        [utf8(e.path) for e in edits],
        [e.document for e in edits],
        [e.change for e in edits],
        [None if e.old_path is None else utf8(e.old_path) for e in edits],
        [e.old_document for e in edits],
    )
    return pl.DataFrame(dict(zip(REVISION, columns, strict=True)), schema=REVISION)


def _syncs(landings: Sequence[Sync]) -> pl.DataFrame:
    rows = [(s.sha, s.date.replace(tzinfo=None), s.kind, s.base, s.downstream, s.upstream, utf8(s.subject)) for s in landings]
    return rows_frame(rows, SYNC)


def _goldens(found: History, settings: Settings) -> pl.DataFrame:
    """One row per life: where it is at the first tip that has it, or else was last."""
    lives, layout = found.lives, settings.compiled_layout
    alive: dict[int, str] = {}
    for tip in reversed(list(found.tips.values())):
        alive |= {golden: path for path, golden in lives.at.get(tip, {}).items()}
    where = {r.golden: r.edit.path for r in lives.revisions} | alive
    prefix = settings.root.rstrip("/") + "/" if settings.root else ""
    rows = []
    for golden, born in lives.born.items():
        key = _key(where[golden].removeprefix(prefix), layout)
        parts = (key.model, key.test_case, key.environment, key.platform, key.variant)
        rows.append((golden, utf8(where[golden]), *map(utf8, parts), utf8(born), golden in alive))
    return rows_frame(rows, GOLDEN)


def _key(relative: str, layout: Layout) -> GoldenKey:
    """The key of a path below root; of a name no layout ever had, the folders alone."""
    folders = relative.split("/")[:-1]
    return (
        layout.parse(relative)
        or layout.parse_legacy(relative)
        or GoldenKey("".join(folders[:1]), "/".join(folders[1:]), "", "")
    )


Rows = list[tuple[object, ...]]


def _provenance(found: History) -> tuple[Rows, Rows, Rows]:
    """Rows of run, refresh and refresh_file that the trailers of commit messages tell."""
    runs: Rows = []
    refreshes: Rows = []
    files: Rows = []
    edits = {(r.commit, r.edit.path): r for r in found.lives.revisions}
    for commit in found.commits:
        if "Golden-" not in commit.message:
            continue
        said = parse(commit.message)
        if said.runs or said.artifacts or said.matches:
            ids = [f"{r.provider}:{r.id}#{r.attempt}" for r in said.runs]
            runs += [_run(r, commit) for r in said.runs]
            identity = f"commit:{commit.id}"
            refreshes.append((identity, commit.committed_at, "", False, ids, commit.id))
            files += _files(identity, commit, said, found.lives, edits)
    return runs, refreshes, files


def _run(said: RunTrailer, commit: Commit) -> tuple[object, ...]:
    identity = f"{said.provider}:{said.id}#{said.attempt}"
    ref = f"{said.provider}:{said.id}"
    return (
        identity,
        said.provider,
        said.id,
        said.attempt,
        ref,
        "",
        "",
        "",
        "unknown",
        None,
        None,
        said.url,
        commit.committed_at,
    )


def _files(
    refresh: str, commit: Commit, said: Provenance, lives: Lives, edits: Mapping[tuple[str, str], Revision]
) -> Iterator[tuple[object, ...]]:
    digests = {a.path: a.sha256 for a in said.artifacts}
    for path in dict.fromkeys([*digests, *(m.path for m in said.matches)]):
        revision = edits.get((commit.id, path))
        golden = revision.golden if revision else lives.paths.get(path)
        if golden is None:
            continue
        matches = [
            {"rev": m.rev, "commit": m.commit, "level": str(m.level), "detail": ""} for m in said.matches if m.path == path
        ]
        document = revision.edit.document if revision else None
        yield (refresh, golden, utf8(path), "written", "", "", 0, "", digests.get(path, ""), document, 0, matches)


def _replace_provenance(connection: duckdb.DuckDBPyConnection, rows: tuple[Rows, Rows, Rows]) -> None:
    runs, refreshes, files = rows
    connection.execute("DELETE FROM refresh_file WHERE starts_with(refresh, 'commit:')")
    connection.execute("DELETE FROM refresh WHERE starts_with(id, 'commit:')")
    unknown = "WHERE NOT EXISTS (SELECT 1 FROM run AS old WHERE old.id = new.id)"
    insert(connection, "run", rows_frame(runs, RUN).unique("id", keep="first"), unknown)
    insert(connection, "refresh", rows_frame(refreshes, REFRESH))
    insert(connection, "refresh_file", rows_frame(files, REFRESH_FILE))


def _replace_goldens(connection: duckdb.DuckDBPyConnection, goldens: pl.DataFrame, lives: Lives) -> None:
    """Put the goldens of the history in place and let what was recorded by path point to them."""
    paths = pl.DataFrame({"path": [utf8(p) for p in lives.paths], "golden": list(lives.paths.values())}, schema=_PATHS)
    for table in ("observation", "refresh_file"):
        register(connection, "living", paths)
        connection.execute(
            f"UPDATE {table} AS t SET golden = l.golden FROM living AS l WHERE l.path = t.path AND l.golden <> t.golden"  # noqa: S608
        )
        connection.unregister("living")
    recorded = "SELECT golden FROM observation UNION ALL SELECT golden FROM refresh_file"
    connection.execute(f"DELETE FROM golden WHERE id NOT IN ({recorded})")  # noqa: S608 - our own names
    clear(connection, "golden", ("id",), goldens)
    insert(connection, "golden", goldens)
