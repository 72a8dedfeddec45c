"""The next slice of a sync, and what git's textual merge would do to goldens."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from goldenctl import config
from goldenctl.cli.entry import main
from goldenctl.errors import UsageError
from goldenctl.git import Repo
from goldenctl.lint import check
from goldenctl.sync.plan import Plan, PlannedFile, Wins, plan

from ..conftest import ScratchRepo
from .test_audit import V1, V2, V3, History, Make, curve, history, name

__all__ = ["history"]
A, B, C = name("case_a"), name("case_b"), name("case_c")


def planned(made: History, size: int = 100) -> Plan:
    settings = config.load(made.repo.top)
    return plan(Repo(made.repo.top), settings, "main", "dev", size, lint=lambda path, raw: check(path, raw, settings))


def only(found: Plan) -> PlannedFile:
    assert len(found.files) == 1
    return found.files[0]


def test_a_slice_is_the_oldest_commits_of_upstreams_own_line(history: Make) -> None:
    made = history({A: V1})
    commits = [made.on("main", {"code.py": b"%d" % i}, f"commit {i}") for i in range(5)]
    found = planned(made, 3)
    assert (found.first, found.tip, found.first_excluded) == (commits[0], commits[2], commits[3])
    assert (found.missing, found.taken, found.imported) == (5, 3, 3)


def test_commits_that_came_in_by_a_merge_are_not_missing(history: Make) -> None:
    made = history({A: V1})
    made.on("main", {"code.py": b"1"})
    made.on("dev", {"other.py": b"1"})
    made.merge()
    missing = made.on("main", {"code.py": b"2"})
    found = planned(made)
    assert (found.first, found.tip, found.first_excluded, found.missing) == (missing, missing, "", 1)


def test_side_branches_are_imported_but_not_counted(history: Make) -> None:
    made = history({A: V1})
    made.repo.git("switch", "-q", "-c", "side", "main")
    made.repo.commit({"side.py": "1"}, "side")
    made.on("main", {"code.py": b"1"})
    made.repo.git("merge", "-q", "--no-ff", "--no-edit", "side")
    found = planned(made)
    assert (found.missing, found.taken, found.imported) == (2, 2, 3)


def test_a_golden_only_upstream_changed_is_won_by_upstream(history: Make) -> None:
    made = history({A: V1})
    commit = made.on("main", {A: V2}, "refresh")
    file = only(planned(made))
    assert (file.wins, file.changed_upstream.commit, file.changed_upstream.subject) == (Wins.UPSTREAM, commit, "refresh")
    assert file.changed_downstream.commit == ""


def test_a_golden_both_changed_in_the_same_lines_conflicts(history: Make) -> None:
    made = history({A: V1})
    made.on("main", {A: V2})
    mine = made.on("dev", {A: V3}, "mine")
    file = only(planned(made))
    assert (file.wins, file.breaks) == (Wins.CONFLICT, "conflict markers in 1 place of the JSON")
    assert (file.changed_downstream.commit, file.only_downstream) == (mine, True)


def test_a_golden_both_changed_in_other_lines_would_be_mixed(history: Make) -> None:
    made = history({A: V1})
    made.on("main", {A: curve(10.0, (2, 1.5))})
    made.on("dev", {A: curve(10.0, (7, 2.5))})
    found = planned(made)
    assert (only(found).wins, only(found).breaks) == (Wins.MIXED, "values of both sides mixed")
    assert not found.in_order


def test_a_golden_deleted_on_one_side_and_changed_on_the_other_conflicts(history: Make) -> None:
    made = history({A: V1, B: V1, C: V1})
    made.on("main", {A: V2, B: None, C: None})
    made.on("dev", {A: None, B: V2})
    found = {f.path: (f.wins, f.breaks) for f in planned(made).files}
    assert found == {
        A: (Wins.CONFLICT, "deleted downstream, changed upstream"),
        B: (Wins.CONFLICT, "deleted upstream, changed downstream"),
        C: (Wins.UPSTREAM, ""),
    }


def test_what_git_would_do_is_what_the_plan_says(history: Make) -> None:
    made = history({A: V1, B: V1})
    made.on("main", {A: curve(10.0, (2, 1.5)), B: V2})
    made.on("dev", {A: curve(10.0, (7, 2.5))})
    assert [f.wins for f in planned(made).files] == [Wins.MIXED, Wins.UPSTREAM]
    made.repo.git("merge", "-q", "--no-edit", "main")
    assert (made.repo.top / A).read_bytes() == curve(10.0, (2, 1.5), (7, 2.5))
    assert (made.repo.top / B).read_bytes() == V2


def test_the_winner_is_linted_and_the_driver_named(history: Make) -> None:
    made = history({A: V1})
    made.on("main", {A: curve(9.0, (4, "nan"))})
    made.on("dev", {".gitattributes": b"goldens/** merge=goldenctl\n"})
    file = only(planned(made))
    assert ([f.rule for f in file.findings], file.driver) == (["GV001"], "goldenctl")


def test_nothing_missing_and_wrong_names_are_said(
    history: Make, capsys: pytest.CaptureFixture[str], make_repo: Callable[..., ScratchRepo]
) -> None:
    made = history({A: V1})
    top = str(made.repo.top)
    assert main(["-C", top, "sync", "plan"]) == 0
    assert capsys.readouterr().out == "dev has every commit of main: nothing to sync\n"
    assert main(["-C", top, "sync", "plan", "--upstream", "mian"]) == 2
    assert "no branch 'mian' here" in capsys.readouterr().err
    with pytest.raises(UsageError, match="no slice"):
        planned(made, -1)


def test_the_json_of_a_plan_and_of_an_audit_come_from_the_command_line(
    history: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    made = history({A: V1})
    made.on("main", {A: V2})
    made.on("dev", {A: V3})
    top = str(made.repo.top)
    assert main(["-C", top, "sync", "plan", "--format", "json"]) == 1
    table = json.loads(capsys.readouterr().out)
    assert table["counts"] == {"upstream": 0, "downstream": 0, "same": 0, "conflict": 1, "mixed": 0}
    made.merge({A: V2})
    assert main(["-C", top, "sync", "audit", "HEAD", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["counts"]["overwritten"] == 1
    assert main(["-C", top, "sync", "audit", "HEAD"]) == 1
    assert f"goldenctl restore {A} --from " in capsys.readouterr().out


def test_an_audit_names_the_run_that_the_catalog_saw_deliver_the_values(
    history: Make, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = history({A: V1})
    made.on("main", {A: V2})
    made.on("dev", {"code.py": b"1"})
    made.merge()
    delivered = tmp_path / "run-12" / A
    delivered.parent.mkdir(parents=True)
    delivered.write_bytes(V2)
    top = str(made.repo.top)
    assert main(["-C", top, "record", "--from-job", str(tmp_path / "run-12")]) == 0
    capsys.readouterr()
    assert main(["-C", top, "sync", "audit", "HEAD", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"][0]["source"]["run"] == "tree:run-12"


@pytest.mark.parametrize("size", ["0", "-1"])
def test_a_slice_of_no_commits_is_wrong_use(
    size: str, history: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(history({A: V1}).repo.top)
    assert main(["sync", "plan", "--slice", size]) == 2
    assert "--slice" in capsys.readouterr().err


def test_a_bare_repository_is_wrong_use_with_the_way_to_a_work_tree(
    tmp_path: Path, history: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    history({A: V1}).repo.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    monkeypatch.chdir(tmp_path / "bare.git")
    assert main(["sync", "plan"]) == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path}/bare.git: a bare repository has no work tree, and goldenctl works in one\n"
        "  next: git clone . ../work && cd ../work\n"
    )
