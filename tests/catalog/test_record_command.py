"""``goldenctl record`` keeps what a run produced and touches no golden."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from goldenctl import open_catalog
from goldenctl.cli.entry import main
from tests.catalog.world import BROKEN, FIRST, H100, REPAIRED, World


@pytest.fixture
def run(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recorded run with new values for the only golden of the repository, and a file nobody can place."""
    world.commit({H100: BROKEN, "goldenctl.toml": b'root = "goldens"\n'})
    folder = tmp_path / "run-4711"
    golden = folder / H100.removeprefix("goldens/")
    golden.parent.mkdir(parents=True)
    golden.write_bytes(REPAIRED)
    (golden.parent / "golden_values_dev_dgx_b200.json").write_bytes(FIRST)
    monkeypatch.chdir(world.scratch.top)
    return folder


def test_record_is_in_order_where_every_file_has_its_place(run: Path) -> None:
    next(run.rglob("*b200.json")).unlink()
    assert main(["record", "--from-job", str(run)]) == 0


def test_record_stores_observations_once_and_leaves_the_goldens_alone(
    run: Path, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", "--from-job", str(run), "--format", "json"]) == 1
    (said,) = json.loads(capsys.readouterr().out)["runs"]
    assert (said["candidates"], said["new_observations"], said["unplaced"]) == (1, 1, 1)
    assert (world.scratch.top / H100).read_bytes() == BROKEN
    seen = open_catalog().observations(H100, "lm loss")
    assert seen["value"].to_list() == [10.0, 9.9, 8.0]
    assert main(["record", "--from-job", str(run)]) == 1
    assert " 1 " in capsys.readouterr().out
    assert len(open_catalog().observations(H100, "lm loss")) == 3


def test_record_says_what_could_not_be_placed_and_ends_in_1(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "--from-job", str(run), "--format", "markdown"]) == 1
    assert "unknown platform 'dgx_b200'" in capsys.readouterr().err


def test_record_of_a_run_that_is_not_there_is_an_error_that_writes_nothing(
    run: Path, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", "--from-job", str(run.parent / "nowhere.zip")]) in (2, 3)
    assert "nowhere.zip" in capsys.readouterr().err
    assert not world.path.exists()
