"""The catalog in Python: methods that answer with Polars frames.

Every method opens the file, asks, and closes it again, so that a notebook never keeps others from writing; see
:meth:`Catalog.session` for many questions in a row. Times are UTC without zone. Commits, branches and syncs are
named as on the command line: a branch the catalog was built from, a commit or its unambiguous beginning,
``sync:SHA``, ``sync:YYYY-MM-DD``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from goldenctl.catalog import query, states, store
from goldenctl.catalog.blame import blame
from goldenctl.catalog.frames import frame, temporary
from goldenctl.catalog.homes import gather
from goldenctl.catalog.log import goldens_named, log, on_line
from goldenctl.catalog.places import Place, chosen, lake, on_server
from goldenctl.catalog.store import reading as opening

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Connection


@dataclass(frozen=True)
class Catalog:
    """A catalog file, or one version of a shared store.

    Every method raises :class:`~goldenctl.errors.CatalogError` when the file cannot be read, and
    :class:`~goldenctl.errors.UsageError` for a name the catalog does not know.

    Parameters
    ----------
    path
        The DuckDB file, or the lake.
    wait
        Seconds to wait for a process that writes.
    """

    path: Place
    wait: float = store.WAIT
    _held: Connection | None = field(default=None, repr=False, compare=False)

    @contextmanager
    def session(self) -> Iterator[Catalog]:
        """The same catalog, kept open for a block: later questions find its values in memory, and writers wait.

        Examples
        --------
        >>> with goldenctl.open_catalog().session() as catalog:  # doctest: +SKIP
        ...     changes = [catalog.largest_changes(a, b) for a, b in pairs]
        """
        with store.reading(self.path, self.wait) as connection:
            yield replace(self, _held=connection)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        if self._held is not None:
            yield self._held
            return
        with store.reading(self.path, self.wait) as connection:
            yield connection

    def sql(self, text: str) -> pl.DataFrame:
        """The result of one SQL query over the public tables; it can only read."""
        with self._reading() as connection:
            return query.ask(connection, text)

    def goldens(self) -> pl.DataFrame:
        """Every golden file, one row through all its renames.

        Returns
        -------
        polars.DataFrame
            ``id`` int64; ``path``, ``model``, ``test_case``, ``environment``, ``platform``, ``variant``,
            ``born_path`` string (empty where the path does not say); ``alive`` bool: at the tip of a branch.
        """
        return self._frame("SELECT * FROM golden ORDER BY path")

    def commits(self) -> pl.DataFrame:
        """Every commit of the branches.

        Returns
        -------
        polars.DataFrame
            ``id`` string, ``parents`` list of string (the first is the branch's own line), ``committed_at``
            datetime, ``subject`` string; oldest first.
        """
        return self._frame('SELECT * FROM "commit" ORDER BY committed_at, id')

    def syncs(self) -> pl.DataFrame:
        """Every landing of upstream on downstream.

        Returns
        -------
        polars.DataFrame
            ``commit`` string, ``landed_at`` datetime, ``kind`` string (merge, squash, revert), ``base``,
            ``downstream``, ``upstream``, ``subject`` string, ``files`` int64 (goldens it changed); oldest first.
        """
        return self._frame(
            """
            SELECT s.*, count(DISTINCT r.path) AS files FROM sync AS s LEFT JOIN revision AS r USING ("commit")
            GROUP BY ALL ORDER BY s.landed_at
            """
        )

    def tree(self, rev: str) -> pl.DataFrame:
        """The goldens at a commit.

        Returns
        -------
        polars.DataFrame
            ``path`` string, ``document`` string (git blob id), ``shape`` string, ``n_series`` int32, ``n_values``
            and ``n_nonfinite`` int64.
        """
        with self._reading() as connection:
            temporary(connection, "tree", states.tree(connection, states.commit_of(connection, rev)))
            return frame(
                connection,
                """
                SELECT t.*, d.shape, d.n_series, d.n_values, d.n_nonfinite
                FROM tree AS t JOIN document AS d ON d.id = t.document ORDER BY t.path
                """,
            )

    def values(self, pattern: str, rev: str = "", metric: str = "") -> pl.DataFrame:
        """Steps and values of goldens at a commit.

        Parameters
        ----------
        pattern
            A golden's path, a case, or a glob of either.
        rev
            A commit, branch or sync; empty means the tip of the first branch.
        metric
            One metric; empty means all.

        Returns
        -------
        polars.DataFrame
            ``path``, ``metric`` string, ``step`` int64, ``value`` float64 in the metric's unit (``iteration-time``
            seconds, ``mem-*`` bytes, losses none); NaN and infinities as they are, never null.
        """
        with self._reading() as connection:
            commit = states.commit_of(connection, rev or _first_branch(connection))
            temporary(connection, "tree", states.tree(connection, commit))
            goldens = goldens_named(connection, pattern)
            temporary(connection, "wanted", pl.DataFrame({"golden": goldens}, schema={"golden": pl.Int64}))
            found = frame(
                connection,
                """
                SELECT t.path, s.metric, v.step, v."value" FROM tree AS t
                JOIN series AS s USING (document) JOIN "value" AS v USING (content)
                WHERE t.path IN (SELECT path FROM revision JOIN wanted USING (golden))
                ORDER BY t.path, s.position, v.step
                """,
            )
        return found.filter(metric=metric) if metric else found

    def history(self, pattern: str, metric: str, branch: str = "") -> pl.DataFrame:
        """One metric of goldens at each of their revisions on a branch.

        Returns
        -------
        polars.DataFrame
            ``path``, ``commit`` string, ``committed_at`` datetime, ``step`` int64, ``value`` float64 in the
            metric's unit; oldest revision first.
        """
        with self._reading() as connection:
            revisions = on_line(connection, goldens_named(connection, pattern), branch)
            temporary(connection, "life", revisions.select("path", "commit", "committed_at", "position", "document"))
            found = frame(
                connection,
                """
                SELECT l.path, l."commit", l.committed_at, s.metric, v.step, v."value" FROM life AS l
                JOIN series AS s USING (document) JOIN "value" AS v USING (content)
                ORDER BY l.position, l.path, v.step
                """,
            )
        return found.filter(metric=metric).drop("metric")

    def log(self, pattern: str, branch: str = "", metric: str = "") -> pl.DataFrame:
        """Revisions of goldens on a branch with what each changed; see :func:`goldenctl.catalog.log.log`.

        Returns
        -------
        polars.DataFrame
            ``golden`` int64; ``path``, ``commit`` string; ``committed_at`` datetime; ``subject`` string; ``parents``
            list of string; ``document``, ``old_document``, ``change``, ``sync``, ``branch`` string; ``position``
            int32; ``metrics`` list of string; ``nan_in``, ``nan_out``, ``missing_steps``, ``extra_steps``,
            ``n_values``, ``n_nonfinite`` int64 (numbers of values); ``max_rel_diff`` float64 (share of the value
            before, null where there is none); ``worst_metric`` string. Oldest first.
        """
        with self._reading() as connection:
            return log(connection, pattern, branch, metric)

    def blame(self, pattern: str, branch: str = "") -> pl.DataFrame:
        """Where today's values come from; see :func:`goldenctl.catalog.blame.blame`.

        Returns
        -------
        polars.DataFrame
            ``path``, ``metric``, ``commit`` string; ``date`` datetime; ``via``, ``run`` string; ``unchanged_since``
            datetime; ``landed``, ``subject`` string.
        """
        with self._reading() as connection:
            return blame(connection, pattern, branch)

    def changes(self, old: str, new: str) -> pl.DataFrame:
        """Every metric that differs between two commits.

        Returns
        -------
        polars.DataFrame
            ``path``, ``metric`` string; ``n_obtained`` (at ``new``), ``n_golden`` (at ``old``), ``missing_steps``,
            ``extra_steps``, ``n_nonfinite``, ``nan_in``, ``nan_out`` int64 (numbers of values); ``max_abs_diff``
            float64 (metric's unit); ``max_rel_diff`` float64 (share of ``|golden|``; null without a finite pair
            whose golden is not 0); ``worst_step`` int64. Largest relative difference first.
        """
        with self._reading() as connection:
            pairs = states.changed_files(connection, states.commit_of(connection, old), states.commit_of(connection, new))
            series = states.changed_series(connection, pairs)
            found = states.differences(connection, series)
        return (
            pairs.join(series, on=["new", "old"], nulls_equal=True)
            .join(found, on=["obtained", "golden"], nulls_equal=True)
            .drop("new", "old", "obtained", "golden")
            .sort("max_rel_diff", "path", "metric", descending=[True, False, False], nulls_last=True)
        )

    def largest_changes(self, old: str, new: str) -> pl.DataFrame:
        """The largest relative change per file and metric between two commits.

        Returns
        -------
        polars.DataFrame
            ``path``, ``metric`` string; ``max_rel_diff`` float64 (share of the value at ``old``); ``worst_step``
            int64. Only metrics with a common finite step whose value at ``old`` is not 0; largest first.
        """
        with self._reading() as connection:
            pairs = states.changed_files(connection, states.commit_of(connection, old), states.commit_of(connection, new))
            series = states.changed_series(connection, pairs)
            found = states.largest(connection, series)
        return (
            pairs.join(series, on=["new", "old"])
            .join(found, on=["obtained", "golden"])
            .select("path", "metric", "max_rel_diff", "worst_step")
            .sort("max_rel_diff", "path", "metric", descending=[True, False, False])
        )

    def runs(self) -> pl.DataFrame:
        """Every recorded run.

        Returns
        -------
        polars.DataFrame
            ``id`` string (``provider:run_id#attempt``), ``provider``, ``run_id`` string, ``attempt`` int32, ``ref``,
            ``repository``, ``commit``, ``branch``, ``conclusion`` string, ``started_at``, ``completed_at`` datetime
            (null when unknown), ``url`` string, ``recorded_at`` datetime, ``observations`` int64; oldest first.
        """
        return self._frame(
            """
            SELECT r.*, (SELECT count(*) FROM observation AS o WHERE o.run = r.id) AS observations
            FROM run AS r ORDER BY coalesce(r.completed_at, r.recorded_at), r.id
            """
        )

    def observations(self, pattern: str, metric: str) -> pl.DataFrame:
        """One metric of goldens as runs produced it.

        Returns
        -------
        polars.DataFrame
            ``path``, ``run``, ``job`` string, ``attempt`` int32, ``replicate`` string, ``observed_at`` datetime,
            ``step`` int64, ``value`` float64 in the metric's unit; oldest first.
        """
        with self._reading() as connection:
            goldens = goldens_named(connection, pattern)
            temporary(connection, "wanted", pl.DataFrame({"golden": goldens}, schema={"golden": pl.Int64}))
            observed = frame(
                connection,
                """
                SELECT o.path, o.run, o.job, o.attempt, o.replicate, o.observed_at, s.metric, s.content
                FROM observation AS o JOIN wanted USING (golden) JOIN series AS s USING (document)
                """,
            ).filter(metric=metric)
            gather(connection, observed.select("content"), goldens)
            temporary(connection, "observed", observed)
            return frame(
                connection,
                """
                SELECT o.* EXCLUDE (metric, content), v.step, v."value" FROM observed AS o JOIN gathered AS v USING (content)
                ORDER BY o.observed_at, o.path, o.replicate, v.step
                """,
            )

    def refreshes(self) -> pl.DataFrame:
        """Every file of every refresh.

        Returns
        -------
        polars.DataFrame
            ``refresh`` string, ``started_at`` datetime, ``runs`` list of string, ``path``, ``action``, ``reason``,
            ``sha256``, ``document`` string, ``matches`` list of struct (``rev``, ``commit``, ``level``, ``detail``).
        """
        return self._frame(
            """
            SELECT r.id AS refresh, r.started_at, r.runs, f.path, f.action, f.reason, f.sha256, f.document, f.matches
            FROM refresh AS r JOIN refresh_file AS f ON f.refresh = r.id ORDER BY r.started_at, r.id, f.path
            """
        )

    def _frame(self, text: str) -> pl.DataFrame:
        with self._reading() as connection:
            return frame(connection, text)


def _first_branch(connection: Connection) -> str:
    from goldenctl.catalog.log import branches

    return next(iter(branches(connection)), "")


def open_catalog(path: Path | str | None = None, *, store: bool | str | None = None, as_of: str | int = "") -> Catalog:
    """The catalog of a file, of the repository around the current folder, or of a team.

    Parameters
    ----------
    path
        The DuckDB file, or the ``postgres://…`` of a store; None means what the settings say.
    store
        True means the shared store of the settings, a text the metadata of another: ``postgres://…`` or a file.
        None leaves it to ``store.always`` of the settings.
    as_of
        A version number or a moment (ISO 8601, UTC without a zone) of the shared store; empty means the newest.

    Raises
    ------
    CatalogError
        There is no such file or store.
    ConfigError
        The settings name no store.
    UsageError
        The store had no such version.
    """
    from goldenctl import config

    place: Place
    metadata = store if isinstance(store, str) else path if isinstance(path, str) and on_server(path) else ""
    if metadata:
        place = lake(metadata, "", str(as_of))
    elif path is not None and not store and as_of == "":
        place = Path(path)
    else:
        wanted = None if store is None else bool(store)
        file = None if path is None else Path(path)
        place = chosen(config.load(Path.cwd()), catalog=file, store=wanted, as_of=str(as_of))
    with opening(place):
        return Catalog(place)
