"""Write a history into the tables; every function here is one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb

from goldenctl import syncs
from goldenctl.catalog import store
from goldenctl.catalog.arrow import Rows, insert, replace, write_batch
from goldenctl.catalog.columns import COMMIT, GOLDEN, LINE, LIVING, META, REFRESH, REFRESH_FILE, REVISION, RUN, SYNC, Schema
from goldenctl.catalog.history import Commit, Lives, Revision
from goldenctl.catalog.places import Lake, Place
from goldenctl.catalog.rows import Batch, utf8
from goldenctl.config import Settings
from goldenctl.layout import Layout
from goldenctl.model import GoldenKey
from goldenctl.syncs import Sync
from goldenctl.trailers import Provenance, RunTrailer, parse


@dataclass(frozen=True, slots=True)
class History:
    """What git says about the golden files of some branches."""

    commits: Sequence[Commit]
    lives: Lives
    tips: Mapping[str, str]
    """Branch → commit, the one that tells where a golden is now first."""
    landings: Sequence[Sync]


def missing(path: Place, documents: Iterable[str], wait: float) -> list[str]:
    """Those of the blob ids the catalog has no document for, in the same order; a lake is made when there is none."""
    if isinstance(path, Lake):
        make(path, wait)
    with store.reading(path, wait) as connection:
        known = {row[0] for row in connection.execute("SELECT id FROM document").fetchall()}
    return [blob for blob in documents if blob not in known]


def make(path: Place, wait: float) -> None:
    """Have the tables there, and of the newest version."""
    with store.writing(path, wait, about="catalog build: schema"):
        pass


def add(path: Place, batch: Batch, wait: float) -> None:
    """Add the documents of one batch with their series and values."""
    with store.writing(path, wait, about="catalog build: documents") as connection:
        write_batch(connection, batch)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The rows of a history, made before the catalog is locked."""

    tables: Sequence[tuple[str, Rows, Schema]]
    """Tables to be filled anew."""
    notes: Rows
    provenance: tuple[Rows, Rows, Rows]
    goldens: Rows
    living: Rows


def prepare(found: History, settings: Settings) -> Prepared:
    """Make the rows of commits, lines, revisions, goldens, syncs and of what trailers say."""
    return Prepared(
        tables=(
            ("commit", [(c.id, c.parents, c.committed_at, utf8(c.subject)) for c in found.commits], COMMIT),
            ("line", _lines(found), LINE),
            ("revision", _revisions(found.lives), REVISION),
            ("sync", _syncs(found.landings), SYNC),
        ),
        notes=[("root", utf8(settings.root)), ("branches", utf8(json.dumps(list(found.tips))))],
        provenance=_provenance(found),
        goldens=_goldens(found, settings),
        living=[(utf8(path), golden) for path, golden in found.lives.paths.items()],
    )


def replace_history(path: Place, prepared: Prepared, wait: float, done: Callable[[], None]) -> None:
    """Put a history in the place of what was there; what was recorded stays.

    ``done`` is called once the file is closed, before anybody else may write it.
    """
    with store.writing(path, wait, done, about="catalog build: history") as connection:
        for table, rows, schema in prepared.tables:
            connection.execute(f'DELETE FROM "{table}"')  # noqa: S608 - our own names
            insert(connection, table, rows, schema)
        replace(connection, "meta", ("key",), prepared.notes, META)
        _replace_provenance(connection, prepared.provenance)
        _replace_goldens(connection, prepared.goldens, prepared.living)


def _lines(found: History) -> Rows:
    by_id = {c.id: c for c in found.commits}
    return [(utf8(b), i, sha) for b, tip in found.tips.items() for i, sha in enumerate(syncs.first_parents(by_id, tip))]


def _revisions(lives: Lives) -> Rows:
    return [
        (
            r.golden, r.commit, utf8(r.edit.path), r.edit.document, r.edit.change,
            None if r.edit.old_path is None else utf8(r.edit.old_path), r.edit.old_document,
        )
        for r in lives.revisions
    ]  # fmt: skip


def _syncs(landings: Sequence[Sync]) -> Rows:
    return [(s.sha, s.date.replace(tzinfo=None), s.kind, s.base, s.downstream, s.upstream, utf8(s.subject)) for s in landings]


def _goldens(found: History, settings: Settings) -> Rows:
    """One row per life: where it is at the first tip that has it, or else was last."""
    lives, layout = found.lives, settings.compiled_layout
    alive: dict[int, str] = {}
    for tip in reversed(list(found.tips.values())):
        alive |= {golden: path for path, golden in lives.at.get(tip, {}).items()}
    where = {r.golden: r.edit.path for r in lives.revisions} | alive
    prefix = settings.prefix
    rows = []
    for golden, born in lives.born.items():
        key = _key(where[golden].removeprefix(prefix), layout)
        parts = (key.model, key.test_case, key.environment, key.platform, key.variant)
        rows.append((golden, utf8(where[golden]), *map(utf8, parts), utf8(born), golden in alive))
    return rows


def _key(relative: str, layout: Layout) -> GoldenKey:
    """The key of a path below root; of a name no layout ever had, the folders alone."""
    folders = relative.split("/")[:-1]
    return (
        layout.parse(relative)
        or layout.parse_legacy(relative)
        or GoldenKey("".join(folders[:1]), "/".join(folders[1:]), "", "")
    )


def _provenance(found: History) -> tuple[Rows, Rows, Rows]:
    """Rows of run, refresh and refresh_file that the trailers of commit messages tell."""
    runs: list[tuple[object, ...]] = []
    refreshes: list[tuple[object, ...]] = []
    files: list[tuple[object, ...]] = []
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
        yield (refresh, golden, utf8(path), "written", "", "", 0, "", digests.get(path, ""), document, 0, [], matches)


def _replace_provenance(connection: duckdb.DuckDBPyConnection, rows: tuple[Rows, Rows, Rows]) -> None:
    runs, refreshes, files = rows
    connection.execute("DELETE FROM refresh_file WHERE starts_with(refresh, 'commit:')")
    connection.execute("DELETE FROM refresh WHERE starts_with(id, 'commit:')")
    unknown = "WHERE NOT EXISTS (SELECT 1 FROM run AS old WHERE old.id = new.id)"
    insert(connection, "run", list({row[0]: row for row in reversed(runs)}.values()), RUN, unknown)
    insert(connection, "refresh", refreshes, REFRESH)
    insert(connection, "refresh_file", files, REFRESH_FILE)


def _replace_goldens(connection: duckdb.DuckDBPyConnection, goldens: Rows, living: Rows) -> None:
    """Put the goldens of the history in place and let what was recorded by path point to them."""
    connection.execute("CREATE TEMP TABLE living (path VARCHAR, golden BIGINT)")
    insert(connection, "living", living, LIVING)
    for table in ("observation", "refresh_file"):
        connection.execute(
            f"UPDATE {table} AS t SET golden = l.golden FROM living AS l WHERE l.path = t.path AND l.golden <> t.golden"  # noqa: S608
        )
    recorded = "SELECT golden FROM observation UNION ALL SELECT golden FROM refresh_file"
    connection.execute(f"DELETE FROM golden WHERE id NOT IN ({recorded})")  # noqa: S608 - our own names
    replace(connection, "golden", ("id",), goldens, GOLDEN)
