"""Lasting changes of a metric's level are found with their commit range, size and direction; noise is not."""

from __future__ import annotations

import json
import math
import random
import sys

import pytest

from goldenctl import open_catalog
from goldenctl.catalog import record_run, store
from goldenctl.catalog.drift import Change, Drift, breakpoints, drift
from goldenctl.cli.entry import main
from goldenctl.errors import UsageError
from tests.catalog.test_record import RUN, candidate
from tests.catalog.world import H100, World
from tests.conftest import golden_json

UP_5 = math.log1p(0.05)


def noise(n: int, step: float = 0.0, seed: int = 7, size: float = 0.01) -> list[float]:
    """n levels with noise, 1 % unless told, and a step half way."""
    source = random.Random(seed)
    return [source.gauss(0, size) + (step if i >= n // 2 else 0.0) for i in range(n)]


@pytest.mark.parametrize(
    ("levels", "ends"),
    [
        ([0.0, 0.0], [2]),
        ([0.0, UP_5], [1, 2]),
        ([0.0, 0.9 * UP_5], [2]),
        ([0.0, 0.0, 1.0, 1.0, 1.0], [2, 5]),
        ([0.0, 1.0, 0.0], [1, 2, 3]),
        ([0.0] * 15, [15]),
        ([0.0] * 5 + [3.9] * 5 + [0.0] * 5, [5, 10, 15]),
    ],
)
def test_every_lasting_step_of_the_threshold_is_a_break(levels: list[float], ends: list[int]) -> None:
    assert breakpoints(levels, 0.05) == ends


@pytest.mark.parametrize("n", [6, 10, 30])
def test_noise_alone_gives_no_break(n: int) -> None:
    assert [seed for seed in range(50) if breakpoints(noise(n, seed=seed), 0.05) != [n]] == []


def test_noise_as_large_as_the_threshold_gives_breaks_in_few_of_many_series() -> None:
    found = [seed for seed in range(100) if breakpoints(noise(30, seed=seed, size=0.05), 0.05) != [30]]
    assert len(found) <= 15  # all of them, were the noise not counted


@pytest.mark.parametrize("n", [6, 10, 30])
def test_a_step_of_ten_percent_is_found_at_its_place_in_one_percent_of_noise(n: int) -> None:
    found = [breakpoints(noise(n, math.log1p(0.1), seed), 0.05) == [n // 2, n] for seed in range(50)]
    assert sum(found) >= 48


def told(world: World) -> tuple[list[Change], list[Drift]]:
    world.build()
    with store.reading(world.path) as connection:
        return drift(connection, "moe/tiny")


def write(world: World, *levels: float, message: str = "change") -> list[str]:
    values = [{1: 10.0 * level, 2: 8.0 * level, 3: "nan"} for level in levels]
    return [world.commit({H100: golden_json(lm_loss=v)}, message) for v in values]


def test_a_change_names_its_commit_range_size_and_direction(world: World) -> None:
    commits = write(world, 1.0, 1.01, 1.5, 1.51)
    changes, drifts = told(world)
    (change,) = changes
    assert (change.path, change.metric, change.direction) == (H100, "lm loss", "up")
    assert (change.before, change.after, change.commit) == (commits[1], commits[2], commits[2])
    assert change.rel_change == pytest.approx(math.sqrt(1.5 * 1.51 / 1.01) - 1)
    assert [(d.path, d.points, round(d.rel_drift, 12)) for d in drifts] == [(H100, 4, 0.51)]


def test_a_fall_is_a_change_downwards(world: World) -> None:
    write(world, 1.0, 0.5)
    assert [(c.direction, round(c.rel_change, 12)) for c in told(world)[0]] == [("down", -0.5)]


def test_small_moves_in_one_direction_add_up_to_a_drift_without_a_change(world: World) -> None:
    write(world, 1.0, 1.02, 1.04)
    changes, drifts = told(world)
    assert changes == []
    assert [d.rel_drift for d in drifts] == [pytest.approx(0.04)]


def test_a_shorter_grid_is_no_drift(world: World) -> None:
    world.commit({H100: golden_json(lm_loss={1: 10.0, 2: 8.0, 3: 2.0, 4: 1.0})})
    world.commit({H100: golden_json(lm_loss={1: 10.0, 2: 8.0})})
    assert told(world) == ([], [Drift(H100, "lm loss", 2, 0.0)])


def test_a_metric_of_zeros_or_of_nan_alone_has_no_level_and_is_no_error(world: World) -> None:
    world.commit({H100: golden_json(lm_loss={1: 0.0}, other={1: "nan"})})
    world.commit({H100: golden_json(lm_loss={1: 0.0, 2: 0.0}, other={1: "nan", 2: "nan"})})
    assert told(world) == ([], [Drift(H100, "lm loss", 2, 0.0)])


def test_recorded_runs_are_points_too(world: World) -> None:
    commits = write(world, 1.0)
    world.build()
    record_run(world.path, RUN, [candidate(golden_json(lm_loss={1: 20.0, 2: 16.0}))])
    (change,) = told(world)[0]
    assert (change.before, change.after, change.commit) == (commits[0], "github:5#2", "")
    assert change.rel_change == pytest.approx(1.0)


def test_the_budget_decides_the_exit_code(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commits = write(world, 1.0, 1.5)
    world.build()
    monkeypatch.chdir(world.scratch.top)
    assert main(["drift", "moe/*", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["changes"] == [
        {
            "path": H100, "metric": "lm loss", "from": commits[0], "to": commits[1], "commit": commits[1],
            "direction": "up", "rel_change": pytest.approx(0.5),
        }
    ]  # fmt: skip
    assert main(["drift", "--budget", "0.6"]) == 0
    assert main(["drift", "--budget", "0.4"]) == 1
    assert "+50.00%" in capsys.readouterr().out
    assert main(["drift", "--budget", "0.4", "--format", "markdown", "--metric", "lm loss"]) == 1
    assert main(["drift", "--metric", "no such metric"]) == 2


def test_without_ruptures_the_extra_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ruptures", None)
    with pytest.raises(UsageError, match="drift needs the package 'ruptures'") as caught:
        breakpoints([0.0, 1.0], 0.05)
    assert "goldenctl[drift]" in caught.value.hint
    write(world, 1.0, 1.0)
    world.build()
    assert open_catalog(world.path).log(H100).height == 1
