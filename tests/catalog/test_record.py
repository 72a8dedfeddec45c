"""What a refresh or a run leaves in the catalog, once and for all."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from goldenctl.catalog import record_refresh, record_run, store
from goldenctl.model import (
    Action,
    Artifact,
    Candidate,
    Conclusion,
    FileResult,
    Finding,
    GoldenKey,
    Job,
    Match,
    MatchLevel,
    RefreshResult,
    Run,
    Severity,
)
from tests.conftest import golden_json

KEY = GoldenKey("moe", "tiny", "dev", "dgx_h100")
PATH = "goldens/moe/tiny/golden_values_dev_dgx_h100.json"
OTHER = "goldens/moe/tiny/golden_values_dev_dgx_gb200.json"
ENDED = datetime(2026, 6, 1, 14, 30, tzinfo=timezone(timedelta(hours=2)))
JOB = Job("77", "moe/tiny", "moe", "tiny", conclusion=Conclusion.SUCCESS, completed_at=ENDED)
ARTIFACT = Artifact("9", "logs-tiny", 1234, "ab" * 32, JOB)
RUN = Run("github:5", "github", "5", 2, "c0ffee", conclusion=Conclusion.FAILURE, jobs=(JOB,), artifacts=(ARTIFACT,))
LOSS = golden_json(lm_loss={1: 10.5, 2: "nan"})
SAME_LOSS = golden_json(indent=None, lm_loss={1: 10.5, 2: "nan"})
TIMES = golden_json(lm_loss={1: 10.5, 2: "nan"}, iteration_time={1: "inf", 2: 0.5})


def candidate(content: bytes, path: str = PATH, replicate: str = "") -> Candidate:
    digest = hashlib.sha256(content).hexdigest()
    return Candidate(path, KEY, content, digest, RUN, JOB, ARTIFACT, f"a/{replicate}.json", replicate)


def refresh(identity: str = "20260601T120000-aaaaaa") -> RefreshResult:
    written = FileResult(
        PATH, KEY, Action.WRITTEN, job="moe/tiny", attempt=1, artifact="logs-tiny", sha256="cd" * 32,
        matches=(Match("sync:2026-04-28", MatchLevel.IDENTICAL, "e2d9"),),
    )  # fmt: skip
    finding = Finding("GV003", Severity.ERROR, OTHER, "", 1)
    refused = FileResult(OTHER, replace(KEY, platform="dgx_gb200"), Action.REFUSED, "it is empty", findings=(finding,))
    return RefreshResult(
        identity, (RUN,), (written, refused), started_at=ENDED, command="goldenctl refresh --from-job github:5"
    )


def ask(path: Path, query: str) -> list[tuple[object, ...]]:
    with store.reading(path) as connection:
        return connection.execute(query).fetchall()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".goldenctl" / "catalog.duckdb"


def test_a_refresh_leaves_its_run_job_artifact_files_and_matches(path: Path) -> None:
    record_refresh(path, refresh(), {PATH: LOSS})
    assert ask(path, 'SELECT id, run_id, attempt, "commit", conclusion FROM run') == [
        ("github:5#2", "5", 2, "c0ffee", "failure")
    ]
    assert ask(path, "SELECT run, id, model, test_case FROM job") == [("github:5#2", "77", "moe", "tiny")]
    assert ask(path, "SELECT run, id, size, sha256, job FROM artifact") == [("github:5#2", "9", 1234, "ab" * 32, "77")]
    assert ask(path, "SELECT id, runs, dry_run FROM refresh") == [("20260601T120000-aaaaaa", ["github:5#2"], False)]
    assert ask(path, "SELECT path, action, reason, n_findings, sha256 FROM refresh_file ORDER BY action DESC") == [
        (PATH, "written", "", 0, "cd" * 32),
        (OTHER, "refused", "it is empty", 1, ""),
    ]
    assert ask(path, "SELECT m.rev, m.commit, m.level FROM (SELECT unnest(matches) AS m FROM refresh_file)") == [
        ("sync:2026-04-28", "e2d9", "identical")
    ]


def test_times_are_stored_in_utc(path: Path) -> None:
    record_refresh(path, refresh(), {})
    assert ask(path, "SELECT started_at FROM refresh") == [(datetime(2026, 6, 1, 12, 30),)]


def test_a_written_file_leaves_its_document_series_and_values_under_its_git_blob_id(path: Path) -> None:
    record_refresh(path, refresh(), {PATH: b"{}"})
    # `printf '{}' | git hash-object --stdin`
    assert ask(path, "SELECT id, shape, size FROM document") == [("9e26dfeeb6e641a33dae4961196235bdb965b21b", "empty", 2)]
    record_refresh(path, refresh(), {PATH: LOSS})
    assert ask(path, "SELECT metric, start_step, end_step, step_interval, n_values, n_nan FROM series") == [
        ("lm loss", 1, 2, 1, 2, 1)
    ]
    assert ask(path, "SELECT count(*) FROM refresh_file JOIN document ON document = id WHERE shape = 'metrics'") == [(1,)]


def test_non_finite_values_are_ieee_and_never_null(path: Path) -> None:
    record_refresh(path, refresh(), {PATH: TIMES})
    values = [row[0] for row in ask(path, 'SELECT "value" FROM "value" ORDER BY "value"')]
    assert values[:3] == [0.5, 10.5, math.inf]
    assert isinstance(values[3], float)
    assert math.isnan(values[3])


def test_each_distinct_series_content_is_stored_once(path: Path) -> None:
    record_refresh(path, refresh(), {PATH: LOSS, OTHER: TIMES})
    record_run(path, RUN, [candidate(SAME_LOSS)])
    assert ask(path, "SELECT count(*), count(DISTINCT content) FROM series") == [(4, 2)]
    assert ask(path, 'SELECT count(*) FROM "value"') == [(4,)]


def test_documents_that_differ_in_format_only_share_a_content_id(path: Path) -> None:
    record_run(path, RUN, [candidate(LOSS), candidate(SAME_LOSS, OTHER), candidate(TIMES, replicate="1")])
    assert ask(path, "SELECT count(*), count(DISTINCT content) FROM document") == [(3, 2)]


def test_recording_the_same_refresh_again_changes_nothing(path: Path) -> None:
    tables = ("golden", "document", "series", "value", "job", "artifact", "refresh", "refresh_file")
    counts = ", ".join(f'(SELECT count(*) FROM "{t}")' for t in tables)
    record_refresh(path, refresh(), {PATH: LOSS})
    before = ask(path, f"SELECT {counts}")
    record_refresh(path, refresh(), {PATH: LOSS})
    assert ask(path, f"SELECT {counts}") == before == [(2, 1, 1, 2, 1, 1, 1, 2)]


def test_observations_are_counted_once_a_job_attempt_and_replicate(path: Path) -> None:
    found = [candidate(LOSS), candidate(LOSS, replicate="1"), candidate(LOSS, OTHER)]
    assert record_run(path, RUN, found) == 3
    assert record_run(path, RUN, [*found, *found]) == 0
    assert ask(path, "SELECT count(DISTINCT golden), count(DISTINCT document) FROM observation") == [(2, 1)]


def test_an_observation_knows_when_its_job_ended(path: Path) -> None:
    record_run(path, RUN, [candidate(LOSS)])
    assert ask(path, "SELECT observed_at, run, job FROM observation") == [(datetime(2026, 6, 1, 12, 30), "github:5#2", "77")]


def test_a_golden_has_one_row_whoever_speaks_of_it(path: Path) -> None:
    record_run(path, RUN, [candidate(LOSS)])
    record_refresh(path, refresh(), {PATH: LOSS})
    assert ask(path, "SELECT path, model, platform FROM golden ORDER BY path DESC") == [
        (PATH, "moe", "dgx_h100"),
        (OTHER, "moe", "dgx_gb200"),
    ]
    assert ask(
        path, "SELECT count(DISTINCT golden) FROM (FROM observation SELECT golden UNION ALL FROM refresh_file SELECT golden)"
    ) == [(2,)]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"{", "not JSON: Expecting property name enclosed in double quotes at line 1, column 2"),
        (b'{"a": {"start_step": 1, "values": {"99999999999999999999": 1.0}}}', "a step or grid number does not fit 64 bits"),
        (b"[1]", "no known document shape: top level is a list"),
    ],
)
def test_a_document_that_cannot_be_read_is_kept_with_the_reason(path: Path, content: bytes, error: str) -> None:
    record_run(path, RUN, [candidate(content)])
    assert ask(path, "SELECT shape, n_series, error FROM document") == [("unknown", 0, error)]


def test_names_no_database_takes_are_stored_readably(path: Path) -> None:
    record_run(path, RUN, [candidate(b'{"lm \\ud800 loss": {"values": {"1": NaN}}}', "goldens/a\udcff/b.json")])
    assert ask(path, "SELECT metric FROM series") == [("lm ? loss",)]
    assert ask(path, "SELECT path FROM observation") == [("goldens/a?/b.json",)]


def test_an_empty_refresh_is_recorded_too(path: Path) -> None:
    record_refresh(path, RefreshResult("r", (), ()), {})
    assert ask(path, "SELECT id, started_at, runs FROM refresh") == [("r", None, [])]
