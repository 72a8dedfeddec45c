"""The report of a refresh made earlier, from what the catalog and the repository keep of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from goldenctl import catalog, sides
from goldenctl.api import reporting
from goldenctl.catalog.places import chosen
from goldenctl.config import Settings
from goldenctl.errors import NotFoundError, UsageError
from goldenctl.git import Repo
from goldenctl.model import Action, Conclusion, FileResult, GoldenKey, Match, MatchLevel, RefreshResult, Run
from goldenctl.report import Report
from goldenctl.report.recorded import document
from goldenctl.selection import Selection

# Every query names one refresh by an id that has been checked to hold no quote.
_HEAD = "SELECT started_at, command, \"commit\" FROM refresh WHERE id = '{id}'"
_RUNS = """SELECT ref, provider, run_id, attempt, "commit", branch, conclusion, url, repository FROM run
WHERE id IN (SELECT unnest(runs) FROM refresh WHERE id = '{id}') ORDER BY id"""
_FILES = """SELECT f.path, f.action, f.reason, f.job, f.attempt, f.artifact, f.sha256, f.document, f.matches, d.shape
FROM refresh_file AS f LEFT JOIN document AS d ON d.id = f.document WHERE f.refresh = '{id}' ORDER BY f.path"""
_OF_REFRESH = "document IN (SELECT document FROM refresh_file WHERE refresh = '{id}')"
_SERIES = f"""SELECT s.document, s.metric, s.form, s.start_step, s.end_step, s.step_interval, s."precision",
list(v.step ORDER BY v.step) AS steps, list(v."value" ORDER BY v.step) AS "values"
FROM series AS s JOIN "value" AS v ON v.content = s.content WHERE s.{_OF_REFRESH}
GROUP BY ALL ORDER BY s.document, any_value(s.position)"""  # noqa: S608 - our own words
_TEXTS = f'SELECT document, name, "text" FROM "text" WHERE {_OF_REFRESH}'  # noqa: S608 - our own words


def of_recorded(ident: str, settings: Settings, *, selection: Selection, metrics: Collection[str] = ()) -> Report:
    """The report of a refresh: its documents against what the repository held before it.

    Raises
    ------
    UsageError
        The id has a character no id has.
    NotFoundError
        The catalog does not know the refresh.
    CatalogError
        There is no catalog, or it cannot be read.
    """
    if not re.fullmatch(r"[\w:-]+", ident):
        raise UsageError(f"{ident!r} is no id of a refresh", hint="goldenctl catalog sql 'FROM refresh'")
    head = _rows(settings, _HEAD, ident)
    if not head:
        raise NotFoundError(f"the catalog knows no refresh {ident}", hint="goldenctl catalog sql 'FROM refresh'")
    ((started, command, commit),) = head
    files = _rows(settings, _FILES, ident)
    results = [r for r in (_result(row, settings) for row in files) if selection.takes(r.key)]
    runs = tuple(_run(row) for row in _rows(settings, _RUNS, ident))
    result = RefreshResult(ident, runs, tuple(results), started_at=started, command=command)
    shapes = {row[7]: row[9] for row in files if row[7] is not None}
    contents = _documents(settings, ident, shapes)
    new = {row[0]: contents[row[7]] for row in files if row[7] in contents and any(r.path == row[0] for r in results)}
    written = {row[0]: row[7] for row in files if row[1] == Action.WRITTEN and row[7]}
    old = _before(Repo(settings.top), settings, commit, str(started), written).only(new)
    named = sides.of_bytes(", ".join(r.ref for r in runs) or ident, new, settings)
    return reporting.refreshed(result, old, named, settings, metrics=metrics)


def _rows(settings: Settings, query: str, ident: str) -> list[tuple[Any, ...]]:
    return catalog.sql(chosen(settings), query.replace("{id}", ident)).rows()


def _result(row: tuple[Any, ...], settings: Settings) -> FileResult:
    path, action, reason, job, attempt, artifact, sha256, _, matches, _ = row
    key = sides.key_of(path, settings) or GoldenKey("", Path(path).name, "", "")
    matched = tuple(Match(m["rev"], MatchLevel(m["level"]), m["commit"], m["detail"]) for m in matches)
    return FileResult(path, key, Action(action), reason, job, attempt, artifact, sha256, matches=matched)


def _run(row: tuple[Any, ...]) -> Run:
    ref, provider, ident, attempt, commit, branch, conclusion, url, repository = row
    known = Conclusion(conclusion) if conclusion in list(Conclusion) else Conclusion.UNKNOWN
    return Run(ref, provider, ident, attempt, commit, branch, known, url=url, repository=repository)


def _documents(settings: Settings, ident: str, shapes: Mapping[str, str]) -> dict[str, bytes]:
    """Blob id → a document with the recorded numbers, whether or not git or the work tree still has the bytes."""
    series: dict[str, list[Any]] = {}
    for blob, *rest in _rows(settings, _SERIES, ident):
        series.setdefault(blob, []).append(tuple(rest))
    texts: dict[str, dict[str, str]] = {}
    for blob, name, text in _rows(settings, _TEXTS, ident):
        texts.setdefault(blob, {})[name] = text
    return dict(_made(shapes.items(), series, texts))


def _made(
    shapes: Iterable[tuple[str, str]], series: Mapping[str, list[Any]], texts: Mapping[str, dict[str, str]]
) -> Iterator[tuple[str, bytes]]:
    for blob, shape in shapes:
        if blob in series or blob in texts:
            yield blob, document(shape, series.get(blob, []), texts.get(blob, {}))


def _before(repo: Repo, settings: Settings, commit: str, started: str, written: Mapping[str, str]) -> sides.Side:
    """The goldens before a refresh: of its commit's parent, or of the newest commit made before it began.

    Git's times have whole seconds: a commit that holds what the refresh wrote was made after it.
    """
    rev = f"{commit}^" if commit else repo.text("rev-list", "-1", "--first-parent", f"--before={started}Z", "HEAD")
    while rev and repo.succeeds("rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}"):
        side = sides.revision("golden", repo.commit_of(rev), repo, settings)
        if not written or any(side.entries.get(path) != blob for path, blob in written.items()):
            return side
        rev += "^"
    return sides.of_bytes("golden", {}, settings)
