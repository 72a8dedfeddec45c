"""Every command that asks the catalog asks the store just as well."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from goldenctl import open_catalog
from goldenctl.cli.entry import main
from tests.catalog.world import A100, BROKEN, FIRST, H100, REPAIRED, World
from tests.conftest import ScratchRepo

SETTINGS = 'root = "goldens"\n[store]\nmetadata = "team/meta.ducklake"\ndata = "team/data"\n'
Json = Callable[..., dict[str, object]]


@pytest.fixture
def world(make_repo: Callable[..., ScratchRepo], monkeypatch: pytest.MonkeyPatch) -> World:
    """Three commits of one golden, read into a store and into no file."""
    found = World(make_repo("world"), monkeypatch)
    found.commit({H100: FIRST, A100: FIRST, "goldenctl.toml": SETTINGS.encode(), ".gitignore": b"team/\n"})
    found.commit({H100: BROKEN})
    found.commit({H100: REPAIRED})
    monkeypatch.chdir(found.scratch.top)
    assert main(["catalog", "build", "--branch", "main", "--store"]) == 0
    assert not found.path.exists()
    return found


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Json:
    """Runs a command and reads its JSON."""

    def run(*words: str, code: int = 0) -> dict[str, object]:
        capsys.readouterr()
        assert main([*words, "--format", "json"]) == code
        found: dict[str, object] = json.loads(capsys.readouterr().out)
        return found

    return run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that delivered the golden as it was before it broke."""
    folder = tmp_path / "run-4711"
    golden = folder / H100.removeprefix("goldens/")
    golden.parent.mkdir(parents=True)
    golden.write_bytes(FIRST)
    return folder


def test_log_blame_and_status_read_the_store(world: World, said: Json) -> None:
    revisions = said("log", H100, "--store")["revisions"]
    assert isinstance(revisions, list)
    assert [(r["nan_in"], r["nan_out"]) for r in revisions] == [(1, 0), (2, 0), (0, 2)]
    metrics = said("blame", H100, "--store")["metrics"]
    assert isinstance(metrics, list)
    assert {m["metric"] for m in metrics} == {"iteration time", "lm loss"}
    rows = said("catalog", "status", "--store")["rows"]
    assert isinstance(rows, dict)
    assert (rows["golden"], rows["commit"], rows["document"]) == (2, 3, 3)


def test_a_store_that_is_always_meant_needs_no_option(world: World, said: Json) -> None:
    world.scratch.write({"goldenctl.toml": f"{SETTINGS}always = true\n".encode()})
    revisions = said("log", H100)["revisions"]
    assert isinstance(revisions, list)
    assert len(revisions) == 3
    assert main(["log", H100, "--no-store"]) == 4


def test_drift_of_an_earlier_version_knows_less(world: World, said: Json, run: Path) -> None:
    before = said("store", "status")["current"]
    assert main(["record", "--from-job", str(run), "--store"]) == 0
    wanted = ("drift", H100, "--metric", "lm loss")
    now, then = said(*wanted, "--store")["drift"], said(*wanted, "--as-of", str(before))["drift"]
    assert isinstance(now, list)
    assert isinstance(then, list)
    assert (now[0]["points"], then[0]["points"]) == (3, 2)


def test_diff_takes_revisions_and_runs_from_the_store(world: World, said: Json, run: Path) -> None:
    first, second = (world.scratch.git("rev-parse", f"main~{n}") for n in (2, 1))
    by_git, by_store = said("diff", first, second), said("diff", first, second, "--store")
    assert by_store == by_git
    assert main(["record", "--from-job", str(run), "--store"]) == 0
    (run / H100.removeprefix("goldens/")).unlink()
    against_run = said("diff", first, "catalog:run-4711", "--store")
    assert against_run["summary"] == {"identical": 1}


def test_diff_of_an_earlier_version_does_not_know_a_later_run(world: World, said: Json, run: Path) -> None:
    before = said("store", "status")["current"]
    assert main(["record", "--from-job", str(run), "--store"]) == 0
    assert main(["diff", "main", "catalog:run-4711", "--as-of", str(before)]) == 2


def test_verify_finds_the_origin_in_the_store(world: World, said: Json, run: Path) -> None:
    world.commit({H100: FIRST})
    assert main(["record", "--from-job", str(run), "--store"]) == 0
    files = said("verify", H100, "--origin", "--store")["files"]
    assert isinstance(files, list)
    assert "run-4711" in files[0]["origin"]
    assert main(["verify", H100, "--origin"]) == 1


def test_what_is_restored_is_recorded_in_the_store(world: World, said: Json) -> None:
    found = said("restore", H100, "--from", "main~2", "--yes", "--store")
    with open_catalog(store=True).session() as catalog:
        refreshes = catalog.refreshes()
    assert refreshes["refresh"].to_list() == [found["refresh"]]
    assert (world.scratch.top / H100).read_bytes() == FIRST
    assert not world.path.exists()


def test_a_file_and_the_store_at_once_are_wrong_use(world: World) -> None:
    assert main(["catalog", "status", "--catalog", "x.duckdb", "--store"]) == 2
    assert main(["log", H100, "--no-store", "--as-of", "1"]) == 2


@pytest.mark.parametrize(
    "words",
    [
        ["verify", "--against", "HEAD"],
        ["restore", H100, "--from", "HEAD~1", "--dry-run"],
        ["report", "HEAD", "WORKTREE", "--to", "a.html"],
    ],
)
def test_the_store_is_not_passed_over_where_none_is_named(
    words: list[str], world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("goldenctl.toml").write_text('root = "goldens"\n')
    assert main([*words, "--store"]) == 2
    assert "no store is named" in capsys.readouterr().err
