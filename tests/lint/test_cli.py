"""The lint command: files, formats, baseline, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from goldenctl.cli.entry import main
from tests.conftest import ScratchRepo, golden_json

GOOD = golden_json(lm_loss={1: 1.0, 2: 2.0, 3: 3.0})
BAD = golden_json(lm_loss={1: 1.0, 2: "nan", 3: 3.0})
WARN = golden_json(lm_loss={1: 0.0, 2: 0.0, 3: 0.0})
H100 = "goldens/gpt/case/golden_values_dev_dgx_h100.json"
A100 = "goldens/gpt/case/golden_values_dev_dgx_a100.json"


@pytest.fixture
def repo(make_repo: Callable[..., ScratchRepo], monkeypatch: pytest.MonkeyPatch) -> ScratchRepo:
    made = make_repo("r", {H100: GOOD, A100: BAD})
    monkeypatch.chdir(made.top)
    return made


def test_findings_are_printed_with_path_rule_and_message_and_exit_1(
    repo: ScratchRepo, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lint"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        f"{A100}: GV001 1 of 3 values of 'lm loss' are not finite, scattered: step 2",
        "repair: goldenctl refresh --from-job RUN --only nonfinite",
        "2 golden files, 1 findings in 1 of them: GV001 1",
    ]
    assert err == ""


def test_metrics_of_a_file_with_the_same_finding_share_a_line(repo: ScratchRepo, capsys: pytest.CaptureFixture[str]) -> None:
    repo.write({A100: golden_json(lm_loss={1: 1.0, 2: "nan", 3: 3.0}, num_zeros={1: 1.0, 2: "nan", 3: 3.0})})
    assert main(["lint", A100]) == 1
    assert "GV001 1 of 3 values of 'lm loss', 'num zeros' are not finite" in capsys.readouterr().out.splitlines()[0]


def test_only_the_files_named_are_linted(repo: ScratchRepo, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", H100]) == 0
    assert capsys.readouterr().out == "1 golden files in order\n"


def test_a_folder_stands_for_the_golden_files_in_it(repo: ScratchRepo) -> None:
    repo.write({"goldens/moe/other/golden_values_dev_dgx_h100.json": GOOD})
    assert main(["lint", "goldens/moe"]) == 0
    assert main(["lint", "goldens/gpt"]) == 1


@pytest.mark.parametrize("named", ["elsewhere", "/", ".."])
def test_a_folder_that_has_nothing_to_do_with_root_is_exit_2(
    named: str, repo: ScratchRepo, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo.top / "elsewhere").mkdir()
    assert main(["lint", named]) == 2
    out, err = capsys.readouterr()
    place = named if named == "elsewhere" else str(Path(named).resolve())
    assert out == ""
    assert err.startswith(f"error: {place}: no golden files: root is {repo.top}/goldens\n  next: ")


def test_a_folder_around_root_and_an_empty_one_in_it_are_linted(repo: ScratchRepo, capsys: pytest.CaptureFixture[str]) -> None:
    (repo.top / "goldens/new").mkdir()
    assert main(["lint", "."]) == 1
    assert main(["lint", "goldens/new"]) == 0
    assert capsys.readouterr().out.endswith("\n0 golden files in order\n")


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("notes.json", 0, "1 golden files in order"),
        ("README.md", 1, "README.md: GV002 not JSON"),
        ("goldens/notes.json", 1, "goldens/notes.json: GV005 the path names no golden: it does not fit {model}/"),
    ],
)
def test_a_file_that_is_named_is_checked_whatever_its_name(
    path: str, code: int, said: str, repo: ScratchRepo, capsys: pytest.CaptureFixture[str]
) -> None:
    repo.write({path: b"# notes" if path == "README.md" else GOOD})
    assert main(["lint", path]) == code
    assert capsys.readouterr().out.startswith(said)


def test_paths_are_relative_to_where_one_stands(repo: ScratchRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo.top / "goldens/gpt/case")
    assert main(["lint", "golden_values_dev_dgx_a100.json"]) == 1
    assert main(["lint", "../case/golden_values_dev_dgx_h100.json"]) == 0


def test_a_missing_file_is_exit_2_with_the_nearest_name(repo: ScratchRepo, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", H100.replace("case", "cse")]) == 2
    assert f"did you mean {H100}?" in capsys.readouterr().err


def test_warnings_alone_do_not_fail_but_strict_does(repo: ScratchRepo) -> None:
    repo.write({H100: WARN})
    assert main(["lint", H100]) == 0
    assert main(["lint", "--strict", H100]) == 1


def test_json_has_the_keys_of_the_contract(repo: ScratchRepo, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["files_checked"] == 2
    assert told["summary"] == {"GV001": 1}
    (one,) = told["findings"]
    assert one.pop("message").startswith("1 of 3 values")
    assert one == {
        "rule": "GV001", "severity": "error", "path": A100, "metric": "lm loss", "count": 1, "steps": [2],
        "kind": "scattered", "baselined": False,
    }  # fmt: skip


def test_github_annotations_point_to_the_line(repo: ScratchRepo, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--format", "github"]) == 1
    assert capsys.readouterr().out.startswith(f"::error file={A100},line=8,title=GV001::1 of 3 values")


def test_text_of_a_file_cannot_start_a_workflow_command(repo: ScratchRepo, capsys: pytest.CaptureFixture[str]) -> None:
    repo.write({A100: BAD.replace(b"lm loss", b"x\\n::stop-commands::y%")})
    main(["lint", "--format", "github", A100])
    assert all(line.startswith("::error file=goldens/") for line in capsys.readouterr().out.splitlines())


def test_sarif_names_tool_rule_and_place(repo: ScratchRepo, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--format", "sarif"]) == 1
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    (result,) = run["results"]
    assert run["tool"]["driver"]["name"] == "goldenctl"
    assert (result["ruleId"], result["level"]) == ("GV001", "error")
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": A100}, "region": {"startLine": 8}}


def test_known_findings_may_shrink_and_never_grow(repo: ScratchRepo, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--baseline", "known.json", "--write-baseline"]) == 0
    assert main(["lint", "--baseline", "known.json"]) == 0
    repo.write({A100: golden_json(lm_loss={1: 1.0, 2: "nan", 3: "nan", 4: 4.0})})
    assert main(["lint", "--baseline", "known.json"]) == 1
    repo.write({A100: GOOD, H100: BAD})
    assert main(["lint", "--baseline", "known.json"]) == 1
    repo.write({H100: golden_json(lm_loss={1: 1.5, 2: 2.5})})
    assert main(["lint", "--baseline", "known.json"]) == 0


def test_a_missing_baseline_is_exit_2(repo: ScratchRepo, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--baseline", "none.json"]) == 2
    assert "goldenctl lint --write-baseline" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{", "not JSON at line 1, column 2"),
        (b'{"version": 1,\n "findings": nil}', "not JSON at line 2, column 14"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[]", "the whole is a list, not an object"),
        (b'{"findings": {}}', "its version is None, and 1 is known"),
        (b'{"version": 9, "findings": {}}', "its version is 9, and 1 is known"),
        (b'{"version": 1}', "findings is missing, not an object"),
        (b'{"version": 1, "findings": {"a": 3}}', "findings of 'a' is a number, not an object"),
        (b'{"version": 1, "findings": {"a": {"GV001": []}}}', "GV001 of 'a' is a list, not an object"),
        (b'{"version": 1, "findings": {"a": {"GV001": {"m": "x"}}}}', "GV001 of 'm' in 'a' is not a count"),
        (b'{"version": 1, "findings": {"a": {"GV001": {"m": true}}}}', "GV001 of 'm' in 'a' is not a count"),
        (b'{"version": 1, "findings": {"a": {"GV001": {"m": -1}}}}', "GV001 of 'm' in 'a' is not a count"),
    ],
)
def test_a_baseline_of_another_form_is_exit_2_with_what_is_wrong_in_it(
    text: bytes, said: str, repo: ScratchRepo, capsys: pytest.CaptureFixture[str]
) -> None:
    repo.write({"known.json": text})
    assert main(["lint", "--baseline", "known.json"]) == 2
    err = f"error: known.json: is no baseline file: {said}\n  next: goldenctl lint --write-baseline makes it anew\n"
    assert capsys.readouterr() == ("", err)


def test_a_baseline_that_is_a_folder_is_exit_2(repo: ScratchRepo, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--baseline", "goldens"]) == 2
    assert capsys.readouterr().err.startswith("error: goldens: the baseline cannot be read: Is a directory\n  next: ")


def test_against_a_revision_a_vanished_metric_is_an_error(repo: ScratchRepo, capsys: pytest.CaptureFixture[str]) -> None:
    repo.write({H100: golden_json(num_zeros={1: 1.0, 2: 2.0, 3: 3.0})})
    assert main(["lint", "--against", "HEAD", H100]) == 1
    assert "GV010 'lm loss' is there at HEAD and gone now" in capsys.readouterr().out
    assert main(["lint", "--against", "nowhere", H100]) == 2


def test_fix_writes_the_repairs_and_says_them(repo: ScratchRepo, capsys: pytest.CaptureFixture[str]) -> None:
    repo.write({A100: golden_json(lm_loss={1: "nan", 2: 2.0, 3: 3.0})})
    assert main(["lint", "--fix"]) == 0
    assert (repo.top / A100).read_bytes() == golden_json(lm_loss={2: 2.0, 3: 3.0})
    assert "1 leading non-finite step left out, start_step now 2" in capsys.readouterr().err


def test_an_unknown_rule_is_exit_2_with_the_nearest(repo: ScratchRepo, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--select", "GV01"]) == 2
    assert "did you mean GV0" in capsys.readouterr().err


def test_a_folder_without_goldens_is_exit_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["lint"]) == 2
    assert "set root in goldenctl.toml" in capsys.readouterr().err


def test_the_rules_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--list-rules"]) == 0
    assert capsys.readouterr().out.count("GV0") == 13


def test_the_rules_are_json_where_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--list-rules", "--format", "json"]) == 0
    rules = json.loads(capsys.readouterr().out)["rules"]
    assert len(rules) == 13
    assert {tuple(rule) for rule in rules} == {("rule", "severity", "finds", "opt_in")}
    assert rules[0]["rule"] == "GV001"
    assert main(["lint", "--list-rules", "--format", "sarif"]) == 2
    assert "next: --format table or --format json" in capsys.readouterr().err
