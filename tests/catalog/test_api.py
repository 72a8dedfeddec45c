"""The catalog in Python answers with Polars frames of the documented columns."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from datetime import datetime

import polars as pl
import pytest

import goldenctl
from goldenctl.catalog import record_refresh, record_run
from goldenctl.catalog.api import Catalog
from goldenctl.errors import UsageError
from tests.catalog.test_record import RUN, candidate, refresh
from tests.catalog.world import A100, BROKEN, FIRST, H100, REPAIRED, World
from tests.conftest import ScratchRepo


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """main: first; dev: A100 on day 2, sync on day 4 that brings REPAIRED; one run observed. Only read from."""
    with pytest.MonkeyPatch.context() as patch:
        world = World(ScratchRepo(tmp_path_factory.mktemp("api")), patch)
        _fill(world)
        yield world


@pytest.fixture(scope="module")
def catalog(world: World) -> Catalog:
    return goldenctl.open_catalog(world.path)


def _fill(world: World) -> None:
    world.commit({H100: FIRST}, "first")
    world.checkout("-b", "dev")
    world.commit({A100: BROKEN}, "own")
    world.checkout("main")
    world.commit({H100: REPAIRED}, "repair")
    world.checkout("dev")
    world.merge("main")
    world.build()
    record_run(world.path, RUN, [candidate(BROKEN, H100)])
    record_refresh(world.path, refresh(), {H100: REPAIRED})


CALLS = {
    "goldens": (),
    "commits": (),
    "syncs": (),
    "tree": ("dev",),
    "values": (H100,),
    "history": (H100, "lm loss"),
    "log": (H100,),
    "blame": (H100,),
    "changes": ("main", "dev"),
    "largest_changes": ("main", "dev"),
    "runs": (),
    "observations": (H100, "lm loss"),
    "refreshes": (),
}


@pytest.mark.parametrize("method", CALLS)
def test_every_method_returns_a_frame_whose_docstring_names_its_columns(catalog: Catalog, method: str) -> None:
    found = getattr(catalog, method)(*CALLS[method])
    assert isinstance(found, pl.DataFrame)
    named = set(re.findall(r"``(\w+)``", getattr(Catalog, method).__doc__ or ""))
    assert set(found.columns) <= named


def test_values_are_those_of_the_first_branch_with_nan_as_it_is(catalog: Catalog) -> None:
    rows = catalog.values("moe/tiny")
    assert rows.filter(metric="lm loss")["value"].to_list() == [10.0, 9.9, 8.0]
    first = rows.filter(pl.col("metric") == "iteration time", pl.col("step") == 1)["value"]
    assert math.isnan(first[0])
    assert rows["value"].null_count() == 0


@pytest.mark.parametrize("rev", ["main~", "sync:2026-01-05", "sync:zz", "", "HEAD", "0000", "'; DROP TABLE golden; --"])
def test_a_revision_the_catalog_does_not_know_is_wrong_use(catalog: Catalog, rev: str) -> None:
    with pytest.raises(UsageError):
        catalog.tree(rev)


def test_a_revision_is_a_branch_a_commit_or_a_sync(catalog: Catalog, world: World) -> None:
    tip = world.scratch.git("rev-parse", "dev")
    trees = [catalog.tree(name) for name in ("dev", tip, tip[:7], f"sync:{tip[:8]}", "sync:2026-01-04")]
    assert all(tree.equals(trees[0]) for tree in trees)
    assert trees[0]["path"].to_list() == [A100, H100]


def test_the_tree_of_a_commit_is_that_of_git(catalog: Catalog, world: World) -> None:
    for rev in ("dev", "main", "dev~1", "dev~2"):
        words = [line.split() for line in world.scratch.git("ls-tree", "-r", rev, "goldens").splitlines()]
        listed = {path: blob for _, _, blob, path in words}
        found = catalog.tree(world.scratch.git("rev-parse", rev))
        assert dict(found.select("path", "document").rows()) == listed


def test_a_golden_that_one_commit_moved_and_changed_is_at_its_new_path_alone(
    make_repo: Callable[..., ScratchRepo], monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = "goldens/moe/tiny_new_name/golden_values_dev_dgx_h100.json"
    world = World(make_repo("moved"), monkeypatch)
    world.commit({H100: FIRST})
    world.checkout("-b", "dev")
    world.checkout("main")
    world.remove(H100)
    world.commit({moved: REPAIRED}, "moved and refreshed at once")
    world.checkout("dev")
    world.move(H100, moved)
    world.commit(message="moved")
    world.build()
    catalog = goldenctl.open_catalog(world.path)
    assert catalog.goldens().height == 1
    assert catalog.tree("main")["path"].to_list() == [moved]
    assert catalog.tree("dev")["path"].to_list() == [moved]


def test_values_of_an_earlier_commit_are_those_it_had(catalog: Catalog, world: World) -> None:
    assert catalog.values(H100, world.scratch.git("rev-parse", "dev~1"), "lm loss")["value"].to_list() == [10.0, 9.0]


def test_history_has_one_metric_at_each_revision(catalog: Catalog) -> None:
    rows = catalog.history(H100, "lm loss")
    assert rows.group_by("committed_at", maintain_order=True).agg("value").rows() == [
        (datetime(2026, 1, 1, 12), [10.0, 9.0]),
        (datetime(2026, 1, 4, 12), [10.0, 9.9, 8.0]),
    ]


def test_changes_compare_obtained_with_golden_step_by_step(catalog: Catalog, world: World) -> None:
    rows = catalog.changes(world.scratch.git("rev-parse", "dev~2"), "dev").filter(path=H100).rows(named=True)
    assert rows == [
        {
            "path": H100, "metric": "lm loss", "n_obtained": 3, "n_golden": 2, "missing_steps": 0, "extra_steps": 1,
            "n_nonfinite": 0, "nan_in": 0, "nan_out": 0, "max_abs_diff": pytest.approx(0.9),
            "max_rel_diff": pytest.approx(0.1), "worst_step": 2,
        }
    ]  # fmt: skip


def test_the_largest_changes_are_those_of_the_changes_that_have_one(catalog: Catalog, world: World) -> None:
    old = world.scratch.git("rev-parse", "dev~2")
    assert catalog.largest_changes(old, "dev").rows() == [(H100, "lm loss", pytest.approx(0.1), 2)]


def test_a_golden_on_one_side_only_is_a_change_without_a_difference(catalog: Catalog) -> None:
    rows = catalog.changes("main", "dev")
    assert rows.select("path", "metric", "n_golden", "extra_steps", "nan_in").sort("metric").rows() == [
        (A100, "iteration time", 0, 2, 1),
        (A100, "lm loss", 0, 2, 2),
    ]
    assert rows["max_rel_diff"].to_list() == [None, None]


def test_a_commit_does_not_differ_from_itself(catalog: Catalog) -> None:
    assert catalog.changes("dev", "dev").is_empty()


def test_observations_and_refreshes_carry_their_run(catalog: Catalog) -> None:
    rows = catalog.observations("moe/tiny", "lm loss")
    assert rows["run"].unique().to_list() == ["github:5#2"]
    assert rows["value"].is_nan().all()
    assert catalog.refreshes()["runs"].to_list() == [["github:5#2"]] * 2
    assert catalog.runs()["observations"].to_list() == [1]


def test_a_session_answers_as_the_catalog_does_and_lets_writers_in_at_its_end(catalog: Catalog, world: World) -> None:
    with catalog.session() as held:
        order = ["path", "metric"]
        assert held.changes("main", "dev").sort(order).equals(catalog.changes("main", "dev").sort(order))
        assert held.sql("SELECT 1 AS a").rows() == [(1,)]
        with pytest.raises(UsageError):
            held.sql("DELETE FROM golden")
        assert held.log(H100)["commit"].to_list() == catalog.log(H100)["commit"].to_list()
    assert record_run(world.path, RUN, [candidate(BROKEN, H100)]) == 0


def test_syncs_count_the_goldens_they_changed(catalog: Catalog) -> None:
    assert catalog.syncs().select("kind", "files").rows() == [("merge", 1)]
