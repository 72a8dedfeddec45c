"""The main job, through the command: what is written, what is refused, and why."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from goldenctl.cli.entry import main
from tests.conftest import ScratchRepo, golden_json

ROOT = "goldens/"
H100 = "moe/case_a/golden_values_dev_dgx_h100.json"
GB200 = "moe/case_a/golden_values_dev_dgx_gb200.json"
OTHER = "gpt/case_b/golden_values_dev_dgx_h100.json"
NAN = golden_json(lm_loss={1: 10.0, 2: "nan", 3: 9.0}, num_zeros={1: 5.0, 2: 6.0, 3: 7.0})
GOOD = golden_json(lm_loss={1: 10.0, 2: 9.5, 3: 9.0}, num_zeros={1: 5.0, 2: 6.0, 3: 7.0})
FAR = golden_json(lm_loss={1: 20.0, 2: 19.5, 3: 19.0}, num_zeros={1: 5.0, 2: 6.0, 3: 7.0})


class Case:
    """A repository with goldens and a folder that stands for a CI run."""

    def __init__(self, repo: ScratchRepo, run: Path) -> None:
        self.repo = repo
        self.run = run

    def deliver(self, files: Mapping[str, bytes], run: str = "run") -> Path:
        folder = self.run.parent / run
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder

    def read(self, name: str) -> bytes:
        return (self.repo.top / ROOT / name).read_bytes()

    def refresh(self, *arguments: str, run: str = "run", yes: bool = True) -> int:
        told = ["refresh", "--from-job", str(self.run.parent / run), *arguments]
        return main([*told, "--yes"] if yes else told)


@pytest.fixture
def case(make_repo: Callable[..., ScratchRepo], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    files = {ROOT + H100: NAN, ROOT + GB200: NAN, ROOT + OTHER: GOOD}
    repo = make_repo("repo", {**files, ".gitignore": ".goldenctl/\n"})
    monkeypatch.chdir(repo.top)
    return Case(repo, tmp_path / "run")


Json = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def told(case: Case, capsys: pytest.CaptureFixture[str]) -> Json:
    """Exit code and JSON of a refresh."""

    def run(*arguments: str, **options: Any) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = case.refresh(*arguments, "--format", "json", **options)
        return code, json.loads(capsys.readouterr().out)

    return run


def actions(result: dict[str, Any]) -> dict[str, str]:
    return {f["path"].removeprefix(ROOT): f["action"] for f in result["files"]}


def reason(result: dict[str, Any], name: str) -> str:
    return str(next(f["reason"] for f in result["files"] if f["path"] == ROOT + name))


def test_a_nan_golden_takes_the_bytes_of_the_artifact(case: Case, told: Json) -> None:
    case.deliver({H100: GOOD})
    code, result = told("--only", "nonfinite", "--platform", "dgx_h100")
    assert (code, actions(result)) == (0, {H100: "written"})
    assert case.read(H100) == GOOD
    assert result["summary"] == {"written": 1, "unchanged": 0, "refused": 0, "missing": 0}
    (file,) = result["files"]
    assert file["sha256"] == hashlib.sha256(GOOD).hexdigest()
    assert (file["case"], file["environment"], file["platform"], file["variant"]) == ("moe/case_a", "dev", "dgx_h100", "")


def test_a_nan_golden_without_candidate_is_missing_with_its_reason(case: Case, told: Json) -> None:
    case.deliver({H100: GOOD})
    code, result = told("--only", "nonfinite")
    assert (code, actions(result)) == (1, {GB200: "missing", H100: "written"})
    assert reason(result, GB200) == "no job of the run covers it"


def test_a_golden_already_in_place_is_unchanged(case: Case, told: Json) -> None:
    case.deliver({OTHER: GOOD})
    assert told()[1]["summary"]["unchanged"] == 1


def test_a_dry_run_says_what_it_would_write_and_writes_nothing(case: Case, told: Json) -> None:
    case.deliver({H100: GOOD})
    code, result = told("--dry-run", yes=False)
    assert (code, actions(result)) == (0, {H100: "would-write"})
    assert case.read(H100) == NAN
    assert not (case.repo.top / ".goldenctl").exists()


def test_without_a_terminal_yes_or_dry_run_is_needed(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    case.deliver({H100: GOOD})
    assert case.refresh(yes=False) == 2
    assert "add --yes to write, or --dry-run to look first" in capsys.readouterr().err


def test_a_candidate_with_an_error_finding_is_refused_until_it_is_allowed(case: Case, told: Json) -> None:
    case.deliver({OTHER: NAN})
    code, result = told()
    assert (code, actions(result)) == (1, {OTHER: "refused"})
    assert reason(result, OTHER) == "candidate has GV001: 1 of 3 values of 'lm loss' are not finite, scattered: step 2"
    assert case.read(OTHER) == GOOD
    assert told("--allow", "GV001:num zeros")[0] == 1
    assert told("--allow", "GV001:lm loss", "--allow-shrink")[0] == 0
    assert case.read(OTHER) == NAN


def test_fix_repairs_a_warm_up_candidate_before_it_is_judged(case: Case, told: Json) -> None:
    case.deliver({H100: golden_json(lm_loss={1: "nan", 2: 9.5, 3: 9.0}, num_zeros={1: 5.0, 2: 6.0, 3: 7.0})})
    assert "--fix leaves it out" in reason(told("--only", "nonfinite", "--case", "case_a", "--platform", "dgx_h100")[1], H100)
    case.repo.write({ROOT + H100: golden_json(lm_loss={2: "nan", 3: 9.0}, num_zeros={1: 5.0, 2: 6.0, 3: 7.0})})
    code, result = told("--fix", "--force")
    assert (code, actions(result)) == (0, {H100: "written"})
    assert case.read(H100) == golden_json(lm_loss={2: 9.5, 3: 9.0}, num_zeros={1: 5.0, 2: 6.0, 3: 7.0})
    assert result["files"][0]["sha256"] == hashlib.sha256(case.read(H100)).hexdigest()


@pytest.mark.parametrize(
    ("candidate", "why"),
    [
        (golden_json(lm_loss={1: 10.0, 2: 9.5, 3: 9.0}), "metric 'num zeros' is missing"),
        (
            golden_json(lm_loss={1: 10.0, 2: 9.5}, num_zeros={1: 5.0, 2: 6.0, 3: 7.0}),
            "1 of 3 steps of 'lm loss' are missing, from step 3",
        ),
    ],
)
def test_a_candidate_with_less_than_the_golden_is_refused_unless_shrinking_is_allowed(
    case: Case, told: Json, candidate: bytes, why: str
) -> None:
    case.deliver({OTHER: candidate})
    code, result = told()
    assert code == 1
    assert reason(result, OTHER) == f"candidate has less than the golden: {why}; --allow-shrink takes it all the same"
    assert told("--allow-shrink")[0] == 0


def test_match_says_the_level_and_require_refuses_a_lower_one(case: Case, told: Json) -> None:
    sync = case.repo.commit({ROOT + H100: GOOD}, "sync")
    case.repo.commit({ROOT + H100: NAN}, "copied by hand")
    case.deliver({H100: GOOD})
    code, result = told("--match", sync, "--match", "HEAD", "--dry-run", yes=False)
    levels = [(m["rev"], m["level"]) for m in result["files"][0]["matches"]]
    assert (code, levels) == (0, [(sync, "identical"), ("HEAD", "different")])
    assert told("--match", "HEAD", "--require", "close")[0] == 1
    assert case.read(H100) == NAN
    assert told("--match", sync, "--require", "identical")[0] == 0


def test_a_golden_absent_at_the_revision_is_said_and_refused_when_required(case: Case, told: Json) -> None:
    case.deliver({"moe/case_a/golden_values_lts_dgx_h100.json": GOOD})
    code, result = told("--match", "HEAD", "--require", "close", "--only", "missing")
    assert (code, result["files"][0]["matches"][0]["level"]) == (1, "absent")


def test_require_without_match_is_wrong_use(case: Case) -> None:
    case.deliver({H100: GOOD})
    assert case.refresh("--require", "close") == 2


def test_a_file_with_uncommitted_changes_is_refused_without_force(case: Case, told: Json) -> None:
    case.repo.write({ROOT + H100: FAR})
    case.deliver({H100: GOOD})
    code, result = told()
    assert (code, actions(result)) == (1, {H100: "refused"})
    assert "uncommitted changes" in reason(result, H100)
    assert case.read(H100) == FAR
    assert told("--force")[0] == 0
    assert case.read(H100) == GOOD


def test_two_runs_that_disagree_refuse_the_golden_and_are_both_named(case: Case, told: Json) -> None:
    case.deliver({H100: GOOD, GB200: GOOD})
    second = case.deliver({H100: FAR, GB200: json.dumps(json.loads(GOOD)).encode()}, run="second")
    code, result = told("--from-job", str(second))
    assert (code, actions(result)) == (1, {GB200: "written", H100: "refused"})
    assert reason(result, H100) == f"{case.run.parent / 'run'} and {second} propose different values"


def test_only_drifted_takes_goldens_beyond_the_rules(case: Case, told: Json) -> None:
    case.deliver({OTHER: FAR, H100: NAN})
    code, result = told("--only", "drifted")
    assert (code, actions(result)) == (0, {OTHER: "written"})


def test_only_missing_takes_goldens_that_do_not_exist_yet(case: Case, told: Json) -> None:
    new = "moe/new_case/golden_values_dev_dgx_h100.json"
    case.deliver({new: GOOD, H100: GOOD})
    code, result = told("--only", "missing")
    assert (code, actions(result)) == (0, {new: "written"})
    assert case.read(new) == GOOD


def test_a_case_the_repository_does_not_have_is_refused_with_the_nearest(case: Case, told: Json) -> None:
    case.deliver({"moe/case_aa/golden_values_dev_dgx_h100.json": GOOD})
    code, result = told()
    assert code == 1
    assert reason(result, "moe/case_aa/golden_values_dev_dgx_h100.json") == (
        "no case 'moe/case_aa' here; nearest is 'moe/case_a'; --only missing adds it"
    )


def test_case_and_platform_narrow_the_refresh(case: Case, told: Json) -> None:
    case.deliver({H100: GOOD, GB200: GOOD, OTHER: FAR})
    assert actions(told("--case", "moe/*", "--platform", "dgx_gb200")[1]) == {GB200: "written"}
    assert actions(told("--case", "case_b")[1]) == {OTHER: "written"}


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (("--case", "moe/case_q"), "moe/case_a"),
        (("--platform", "dgx_h200"), "dgx_h100"),
        (("--only", "nonfinit"), "nonfinite"),
        (("--matsch", "HEAD"), "--match"),
    ],
)
def test_a_typo_is_wrong_use_with_the_nearest_name(
    case: Case, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], nearest: str
) -> None:
    case.deliver({H100: GOOD})
    assert case.refresh(*arguments) == 2
    assert nearest in capsys.readouterr().err


def test_an_unknown_platform_in_a_file_name_is_not_placed(case: Case, told: Json) -> None:
    case.deliver({"moe/case_a/golden_values_dev_dgx_h200.json": GOOD, H100: GOOD})
    code, result = told()
    assert (code, actions(result)) == (1, {H100: "written"})
    assert result["unplaced"][0]["reason"] == "unknown platform 'dgx_h200', nearest is 'dgx_h100'"


def test_scope_metric_takes_only_the_bad_metric_and_keeps_every_other_byte(case: Case, told: Json) -> None:
    case.deliver({H100: golden_json(None, lm_loss={1: 10.0, 2: 9.5, 3: 9.0}, num_zeros={1: 5.5, 2: 6.0, 3: 7.0})})
    code, result = told("--scope", "metric")
    assert (code, result["files"][0]["metrics"]) == (0, ["lm loss"])
    assert case.read(H100) == GOOD


def test_scope_value_takes_only_the_bad_values(case: Case, told: Json) -> None:
    case.deliver({H100: golden_json(None, lm_loss={1: 10.1, 2: 9.5, 3: 9.1}, num_zeros={1: 5.5, 2: 6.0, 3: 7.0})})
    assert told("--scope", "value")[0] == 0
    assert case.read(H100) == GOOD


def test_mixing_two_producers_is_refused_unless_allowed(case: Case, told: Json) -> None:
    case.deliver({H100: FAR})
    code, result = told("--scope", "value")
    assert code == 1
    assert "disagrees with the candidate; --allow-mixed takes it" in reason(result, H100)
    assert told("--scope", "value", "--allow-mixed")[0] == 0
    with duckdb.connect(str(case.repo.top / ".goldenctl/catalog.duckdb"), read_only=True) as catalog:
        mixed = catalog.sql("SELECT metrics FROM refresh_file WHERE action = 'written'").fetchall()
    assert mixed == [(["lm loss"],)], "the record says which metrics are the run's"
    assert case.read(H100) == golden_json(lm_loss={1: 10.0, 2: 19.5, 3: 9.0}, num_zeros={1: 5.0, 2: 6.0, 3: 7.0})


def test_a_zip_and_a_revision_are_runs_too(case: Case) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(H100, GOOD)
    (case.run.parent / "artifact.zip").write_bytes(buffer.getvalue())
    assert case.refresh(run="artifact.zip") == 0
    assert case.read(H100) == GOOD
    earlier = case.repo.commit({}, "with the repair")
    case.repo.commit({ROOT + H100: FAR}, "overwritten")
    assert main(["refresh", "--from-job", f"git:{earlier}", "--platform", "dgx_h100", "--case", "moe/*", "--yes"]) == 0
    assert case.read(H100) == GOOD


def test_a_cut_zip_is_exit_3_and_leaves_the_tree_untouched(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    (case.run.parent / "artifact.zip").write_bytes(b"PK\x03\x04cut")
    assert case.refresh(run="artifact.zip") == 3
    assert "artifact.zip" in capsys.readouterr().err
    assert case.repo.git("status", "--porcelain") == ""


def test_no_such_run_is_wrong_use(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    assert case.refresh(run="nowhere") == 2
    assert "is no folder, zip, run or revision" in capsys.readouterr().err


def test_commit_makes_one_commit_with_trailers_and_leaves_what_was_staged(case: Case) -> None:
    case.repo.write({"notes.txt": "staged"})
    case.repo.git("add", "notes.txt")
    case.deliver({H100: GOOD})
    assert case.refresh("--commit", "--match", "HEAD") == 0
    message = case.repo.git("log", "-1", "--format=%B")
    assert f"Golden-Artifact: {ROOT}{H100} sha256:{hashlib.sha256(GOOD).hexdigest()}" in message
    assert f"Golden-Match: {ROOT}{H100} HEAD different" in message
    assert case.repo.git("show", "--name-only", "--format=", "HEAD") == ROOT + H100
    assert case.repo.git("diff", "--cached", "--name-only") == "notes.txt"


def test_the_catalog_records_what_was_done(case: Case) -> None:
    case.deliver({H100: GOOD, OTHER: NAN})
    assert case.refresh("--match", "HEAD") == 1
    with duckdb.connect(str(case.repo.top / ".goldenctl/catalog.duckdb"), read_only=True) as catalog:
        rows = catalog.sql("SELECT action, sha256 FROM refresh_file ORDER BY action").fetchall()
    assert rows == [("refused", hashlib.sha256(NAN).hexdigest()), ("written", hashlib.sha256(GOOD).hexdigest())]


def test_a_refresh_of_nothing_is_in_order(case: Case, told: Json) -> None:
    case.deliver({H100: NAN})
    code, result = told("--only", "missing")
    assert (code, result["files"]) == (0, [])


def test_markdown_is_a_table_for_a_pull_request(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    case.deliver({H100: GOOD})
    assert case.refresh("--format", "markdown") == 0
    out = capsys.readouterr().out
    assert "| moe/case\\_a | dgx\\_h100 | written |" in out


def test_a_link_out_of_root_is_never_followed(case: Case, told: Json, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_bytes(NAN)
    target = case.repo.top / ROOT / H100
    target.unlink()
    target.symlink_to(outside)
    case.repo.commit({}, "a link")
    case.deliver({H100: GOOD})
    code, result = told()
    assert (code, actions(result)) == (1, {H100: "refused"})
    assert outside.read_bytes() == NAN


def test_a_catalog_that_cannot_be_written_is_exit_4_and_the_result_is_still_printed(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = case.repo.top / ".goldenctl/catalog.duckdb"
    catalog.parent.mkdir()
    catalog.write_bytes(b"no database")
    case.deliver({H100: GOOD})
    assert case.refresh("--format", "json") == 4
    out, err = capsys.readouterr()
    assert json.loads(out)["summary"]["written"] == 1
    assert "the golden files are written, but the catalog does not know of this refresh" in err
    assert case.read(H100) == GOOD


def test_a_tracking_server_that_is_down_is_said_once_and_fails_nothing(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    case.repo.commit({"goldenctl.toml": '[mlflow]\ntracking_uri = "http://127.0.0.1:9"\n'}, "settings")
    case.deliver({H100: GOOD})
    assert case.refresh() == 0
    assert capsys.readouterr().err.count("MLflow: the refresh is not logged") == 1


A100 = "moe/case_a/golden_values_dev_dgx_a100.json"


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ("all", (1, {H100: "written", A100: "written", GB200: "refused"})),
        ("drifted", (1, {H100: "written", GB200: "refused"})),
        ("nonfinite", (0, {H100: "written"})),
        ("missing", (0, {A100: "written"})),
    ],
)
def test_a_golden_that_cannot_be_read_is_a_refusal_of_its_own_and_stops_no_other(
    case: Case, told: Json, only: str, expected: tuple[int, dict[str, str]]
) -> None:
    loop = case.repo.top / ROOT / GB200
    loop.unlink()
    loop.symlink_to(loop.name)
    case.repo.commit({}, "a link to itself")
    case.deliver({H100: GOOD, GB200: GOOD, A100: GOOD})
    code, result = told("--only", only)
    assert (code, actions(result)) == expected
    if GB200 in expected[1]:
        assert reason(result, GB200) == "the golden here cannot be read: Too many levels of symbolic links"
