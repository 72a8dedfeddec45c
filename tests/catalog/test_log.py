"""log says what each revision changed; blame says where today's values come from."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from goldenctl import open_catalog
from goldenctl.catalog import build as filling
from goldenctl.catalog import record_refresh, record_run
from goldenctl.catalog.api import Catalog
from goldenctl.cli.entry import main
from goldenctl.config import load
from goldenctl.errors import CatalogError, UsageError
from goldenctl.git import Repo
from tests.catalog.test_record import RUN, candidate, refresh
from tests.catalog.world import A100, BROKEN, FIRST, FORMATTED, H100, REPAIRED, World

MOVED = "goldens/moe/tiny_new_name/golden_values_dev_dgx_h100.json"


@pytest.fixture
def told(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Day 1 added, 2 format, 3 NaN, 4 repaired with one step more, 5 renamed, 6 deleted."""
    world.commit({H100: FIRST, A100: FIRST})
    world.commit({H100: FORMATTED})
    world.commit({H100: BROKEN})
    world.commit({H100: REPAIRED})
    world.move(H100, MOVED)
    world.commit()
    world.remove(MOVED)
    world.commit()
    world.build()
    monkeypatch.chdir(world.scratch.top)
    return world


def test_log_tells_the_whole_life_through_a_rename(told: World) -> None:
    rows = open_catalog(told.path).log(H100)
    assert rows["committed_at"].to_list() == [datetime(2026, 1, day, 12) for day in range(1, 7)]
    assert rows["change"].to_list() == ["added", "format", "modified", "modified", "renamed", "deleted"]
    assert rows["path"].to_list() == [H100] * 4 + [MOVED] * 2
    both, loss = ["iteration time", "lm loss"], ["lm loss"]
    assert rows["metrics"].to_list() == [both, [], loss, loss, [], both]
    assert rows["n_values"].to_list() == [4, 4, 4, 5, 5, 0]
    assert rows["n_nonfinite"].to_list() == [1, 1, 3, 1, 1, 0]
    assert rows["nan_in"].to_list() == [1, 0, 2, 0, 0, 0]
    assert rows["nan_out"].to_list() == [0, 0, 0, 2, 0, 1]
    assert rows["extra_steps"].to_list() == [4, 0, 0, 1, 0, 0]
    assert rows["missing_steps"].to_list() == [0, 0, 0, 0, 0, 5]


def test_log_of_a_metric_leaves_out_what_did_not_touch_it(told: World) -> None:
    rows = open_catalog(told.path).log(H100, metric="iteration time")
    assert rows["change"].to_list() == ["added", "renamed", "deleted"]
    assert rows["n_nonfinite"].to_list() == [1, 1, 0]


def test_log_gives_the_largest_relative_change_and_its_metric(world: World) -> None:
    world.commit({H100: FIRST})
    world.commit({H100: REPAIRED})
    world.build()
    last = open_catalog(world.path).log(H100).row(-1, named=True)
    assert last["max_rel_diff"] == pytest.approx(0.1)  # step 2: 9.0 became 9.9
    assert last["worst_metric"] == "lm loss"


@pytest.mark.parametrize("pattern", [H100, MOVED, "moe/tiny", "moe/*", "goldens/moe/*", H100.removeprefix("goldens/")])
def test_a_path_it_has_or_had_a_case_or_a_glob_name_a_golden(told: World, pattern: str) -> None:
    assert set(open_catalog(told.path).log(pattern)["path"]) == {H100, MOVED}


def test_a_name_that_fits_nothing_gets_the_nearest(told: World) -> None:
    with pytest.raises(UsageError, match="no golden 'moe/tinny'") as caught:
        open_catalog(told.path).log("moe/tinny")
    assert caught.value.hint == "did you mean 'moe/tiny'?"


def test_log_json_has_the_keys_of_the_contract(told: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", H100, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["path"] == H100
    assert len(found["revisions"]) == 6
    third = found["revisions"][2]
    assert third["date"] == "2026-01-03T12:00:00Z"
    assert {k: third[k] for k in ("sync", "change", "metrics", "nan_in", "nan_out")} == {
        "sync": None, "change": "modified", "metrics": ["lm loss"], "nan_in": 2, "nan_out": 0,
    }  # fmt: skip


@pytest.mark.parametrize("format_", ["table", "markdown"])
def test_log_prints_the_newest_first(told: World, capsys: pytest.CaptureFixture[str], format_: str) -> None:
    assert main(["log", "moe/tiny", "--format", format_]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if "2026-01-" in line]
    assert len(rows) == 6
    assert "2026-01-06" in rows[0]


def test_log_takes_a_path_as_the_shell_completes_it(
    told: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(told.scratch.top / "goldens" / "gpt")
    assert main(["log", "small/golden_values_dev_dgx_a100.json"]) == 0
    assert A100 in capsys.readouterr().out


def test_log_follows_the_line_of_the_branch_asked_for(world: World) -> None:
    world.commit({H100: FIRST})
    world.checkout("-b", "dev")
    world.checkout("main")
    world.commit({H100: BROKEN})
    world.commit({H100: REPAIRED})
    world.checkout("dev")
    landing = world.merge("main")
    world.build()
    catalog = open_catalog(world.path)
    assert catalog.log(H100)["sync"].to_list() == [None, "merge"]
    assert catalog.log(H100)["commit"].to_list()[-1] == landing
    assert len(catalog.log(H100, branch="main")) == 3
    with pytest.raises(UsageError, match="no branch 'trunk'"):
        catalog.log(H100, branch="trunk")


@pytest.fixture
def synced(world: World) -> World:
    """dev has its own change of the loss; a sync brings main's repair over it; then dev reformats."""
    world.commit({H100: FIRST}, "first")
    world.checkout("-b", "dev")
    world.commit({A100: FIRST}, "own golden from pipeline 1234567")
    world.checkout("main")
    world.commit({H100: REPAIRED}, "repair from run 34695381473")
    world.checkout("dev")
    world.merge("main", "chore: nightly sync main into dev")
    return world


def blamed(world: World, path: str = H100) -> dict[str, dict[str, object]]:
    world.build()
    return {row["metric"]: row for row in open_catalog(world.path).blame(path).rows(named=True)}


def test_blame_names_the_upstream_commit_and_the_sync_that_brought_it(synced: World) -> None:
    loss = blamed(synced)["lm loss"]
    landing = synced.scratch.git("rev-parse", "dev")
    assert loss["commit"] == synced.scratch.git("rev-parse", "main")
    assert loss["date"] == datetime(2026, 1, 3, 12)
    assert loss["via"] == f"sync:{landing[:10]}"
    assert loss["landed"] == landing
    assert loss["unchanged_since"] == datetime(2026, 1, 4, 12)
    assert loss["run"] == "34695381473"


def test_blame_of_a_metric_the_sync_did_not_change_stays_with_the_first_commit(synced: World) -> None:
    time = blamed(synced)["iteration time"]
    assert (time["subject"], time["via"], time["run"]) == ("first", "commit", "")


def test_formatting_and_renaming_change_no_blame(synced: World) -> None:
    before = blamed(synced)
    synced.commit({H100: REPAIRED + b"\n"}, "newline")
    synced.move(H100, MOVED)
    synced.commit(message="rename")
    after = blamed(synced, MOVED)
    assert {m: r["commit"] for m, r in after.items()} == {m: r["commit"] for m, r in before.items()}
    assert after["lm loss"]["unchanged_since"] == datetime(2026, 1, 4, 12)


def test_blame_of_a_squash_finds_the_upstream_commit_it_copied(world: World) -> None:
    world.commit({H100: FIRST})
    world.checkout("-b", "dev")
    world.checkout("main")
    repaired = world.commit({H100: REPAIRED}, "repair")
    world.checkout("dev")
    world.commit({H100: REPAIRED}, "[dev] pull main 260122 (#3045)")
    loss = blamed(world)["lm loss"]
    assert loss["commit"] == repaired
    assert loss["via"] == f"sync:{world.scratch.git('rev-parse', 'dev')[:10]}"


def test_blame_of_a_plain_merge_is_no_sync(world: World) -> None:
    world.commit({H100: FIRST})
    world.checkout("-b", "topic")
    made = world.commit({H100: REPAIRED}, "on a topic branch")
    world.checkout("main")
    merged = world.merge("topic", "Merge branch 'topic'")
    loss = blamed(world)["lm loss"]
    assert (loss["commit"], loss["via"]) == (made, f"merge:{merged[:10]}")


def test_blame_names_the_run_of_the_trailers_before_any_other(world: World) -> None:
    world.commit({H100: FIRST}, f"x from run 99999\n\nGolden-Run: gitlab:77\nGolden-Artifact: {H100} sha256:ab\n")
    assert blamed(world)["lm loss"]["run"] == "gitlab:77#1"


@pytest.mark.parametrize("how", ["refresh", "observation"])
def test_blame_names_the_run_of_a_refresh_or_an_observation(world: World, how: str) -> None:
    world.commit({H100: FIRST}, "from run 99999")
    if how == "refresh":
        record_refresh(world.path, refresh(), {H100: FIRST})
    else:
        record_run(world.path, RUN, [candidate(FIRST)])
    assert blamed(world)["lm loss"]["run"] == "github:5#2"


def test_blame_json_has_the_keys_of_the_contract(
    synced: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    synced.build()
    monkeypatch.chdir(synced.scratch.top)
    assert main(["blame", H100, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["path"] == H100
    assert {"metric", "commit", "date", "via", "run", "unchanged_since"} <= set(found["metrics"][0])
    assert found["metrics"][1]["date"] == "2026-01-03T12:00:00Z"
    assert main(["blame", H100]) == 0
    assert "nightly sync" not in capsys.readouterr().err


def test_without_a_catalog_log_names_the_command_that_makes_one(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(world.scratch.top)
    assert main(["log", H100]) == 4
    assert "goldenctl catalog build" in capsys.readouterr().err
    with pytest.raises(CatalogError):
        open_catalog()


@pytest.fixture(scope="session")
def corpus_catalog(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    path = tmp_path_factory.mktemp("catalog") / "c.duckdb"
    filling.build(Repo(corpus), load(corpus), path)
    return open_catalog(path)


NAN_LIVES = [
    ("main", "gpt/gpt3_15b_8t_release_sm_gb200/golden_values_dev_dgx_gb200.json", "lm loss",
     [("2a1479269f", 57, 2601), ("ead04db73c", 0, 2601)]),
    ("main", "gpt/gpt3_345m_nightly_dgx_a100_1N8G_tp1_pp4_resume_torch/golden_values_lts.json", "lm loss",
     [("50fdb738ca", 1, 21), ("0895399482", 0, 21)]),
    ("main", "moe/gpt3_moe_mcore_te_tp2_pp2_ep4_etp1_fine_grained_offloading/golden_values_dev_dgx_h100.json", "lm loss",
     [("7af74a0c71", 11, 50), ("2048506d79", 19, 50), ("dca5352cd6", 0, 50)]),
    ("dev", "gpt/gpt3_15b_8t_release_sm/golden_values_dev_dgx_h100.json", "lm loss",
     [("078a1b6862", 57, 2601), ("912e1fa666", 0, 2041), ("82fa7aa169", 57, 2601)]),
    ("main", "mixtral/deepseekv3_proxy_flex_tp1pp4emp16etp1cp1_release_sm/golden_values_dev_dgx_h100.json", "iteration-time",
     [("650043d96f", 3, 1908), ("ead04db73c", 2, 1908)]),
]  # fmt: skip


@pytest.mark.corpus
@pytest.mark.parametrize(("branch", "path", "metric", "life"), NAN_LIVES)
def test_the_life_of_nan_in_the_corpus_is_read_from_the_log(
    corpus_catalog: Catalog, branch: str, path: str, metric: str, life: list[tuple[str, int, int]]
) -> None:
    rows = corpus_catalog.log(path, branch, metric).select("commit", "n_nonfinite", "n_values").rows()
    seen = {commit[:10]: (nan, n) for commit, nan, n in rows}
    assert {commit: seen.get(commit) for commit, _, _ in life} == {commit: (nan, n) for commit, nan, n in life}


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("landing", "files"),
    [("945d456fe0", 73), ("5e42df89d5", 4), ("02a46499ec", 84), ("6f76b1a47b", 10), ("233e1b29f4", 18),
     ("bee92e33e6", 9), ("82fa7aa169", 143), ("e2d9e48029", 381), ("75bb0433b0", 116)],
)  # fmt: skip
def test_the_landings_of_the_corpus_changed_as_many_files_as_its_profile_says(
    corpus_catalog: Catalog, landing: str, files: int
) -> None:
    rows = corpus_catalog.sql(f"SELECT count(*) AS n FROM revision WHERE starts_with(\"commit\", '{landing}')")
    assert rows["n"].to_list() == [files]
