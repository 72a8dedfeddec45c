"""The old comparator's defects C1 to C20: each is a case the diff gets right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ScratchRepo, golden_json
from tests.verdicts.cli import Outcome, Run

MakeRepo = Callable[..., ScratchRepo]
GOLDEN = "goldens/moe/tiny/golden_values_dev_dgx_h100.json"
OTHER = "goldens/moe/tiny/golden_values_dev_dgx_gb200.json"
INFERENCE = b'{"0": {"generated_tokens": [5, 6, 7], "logprobs": [-1.0, -2.0], "latency": 3.5}, "throughput": [9.0, 10.0, 10.0]}'


@pytest.fixture
def diff(run: Run, make_repo: MakeRepo) -> Callable[..., Outcome]:
    """``diff(old bytes, new bytes, *options)`` of one golden between two commits."""

    def compare(old: bytes | None, new: bytes | None, *options: str) -> Outcome:
        repo = make_repo("repo", {"README": "goldens"} | ({GOLDEN: old} if old is not None else {}))
        (repo.top / "goldens").mkdir(exist_ok=True)
        if new is None:
            repo.git("rm", "-q", GOLDEN)
            (repo.top / "goldens").mkdir()
            repo.commit({}, "second")
        else:
            repo.commit({GOLDEN: new}, "second")
        return run(repo.top, "diff", "HEAD^", "HEAD", "--format", "json", *options)

    return compare


Diff = Callable[..., Outcome]


def only(outcome: Outcome) -> Any:
    (file,) = outcome.json["files"]
    (metric,) = file["metrics"]
    return metric


def test_c1_differences_that_cancel_out_are_still_differences(diff: Diff) -> None:
    got = only(diff(golden_json(a={1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0}), golden_json(a={1: 2.0, 2: 0.0, 3: 2.0, 4: 0.0})))
    assert got["signed_mean_rel_diff"] == 0.0
    assert (got["max_rel_diff"], got["mean_rel_diff"], got["approximate"]) == (1.0, 1.0, False)


def test_c2_a_truncated_curve_lacks_steps(diff: Diff) -> None:
    got = only(diff(golden_json(a={1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0}), golden_json(a={1: 1.0})))
    assert (got["n_golden"], got["n_obtained"], got["n_common"], got["missing_steps"]) == (4, 1, 1, 3)
    assert (got["exact"], got["approximate"]) == (False, False)


@pytest.mark.parametrize("spelling", ['"nan"', "NaN", "Infinity", '"-inf"'])
def test_c3_a_value_that_became_non_finite_is_counted_and_never_close(diff: Diff, spelling: str) -> None:
    new = b'{"a": {"start_step": 1, "end_step": 2, "step_interval": 1, "values": {"1": 1.0, "2": %s}}}' % spelling.encode()
    got = only(diff(golden_json(a={1: 1.0, 2: 1.0}), new))
    assert (got["nonfinite_golden"], got["nonfinite_obtained"], got["worst_step"]) == (0, 1, 2)
    assert got["exact"] is False


def test_c4_metrics_and_steps_of_one_side_are_reported(diff: Diff) -> None:
    file = diff(golden_json(a={1: 1.0, 2: 1.0}, b={1: 1.0}), golden_json(a={2: 1.0, 3: 1.0}, c={1: 1.0})).json["files"][0]
    counts = {m["metric"]: (m["n_golden"], m["n_obtained"], m["missing_steps"], m["extra_steps"]) for m in file["metrics"]}
    assert counts == {"a": (2, 2, 1, 1), "b": (1, 0, 1, 0), "c": (0, 1, 0, 1)}


def test_c5_a_zero_that_became_a_billion_is_the_worst_step(diff: Diff) -> None:
    got = only(diff(golden_json(a={1: 0.0, 2: 1.0}), golden_json(a={1: 1e9, 2: 1.0})))
    assert (got["max_abs_diff"], got["max_rel_diff"], got["worst_step"]) == (1e9, 0.0, 1)
    zeros = only(diff(golden_json(a={1: 0.0}), golden_json(a={1: 1e9})))
    assert (zeros["max_abs_diff"], zeros["max_rel_diff"], zeros["exact"]) == (1e9, None, False)


def test_c6_inference_records_and_lists_are_compared(diff: Diff) -> None:
    new = INFERENCE.replace(b"[5, 6, 7]", b"[5, 8, 7]").replace(b"-2.0", b"-2.0005").replace(b"10.0, 10.0", b"12.0, 12.0")
    file = diff(INFERENCE, new).json["files"][0]
    got = {m["metric"]: m for m in file["metrics"]}
    assert (got["0.generated_tokens"]["first_differing"], got["0.generated_tokens"]["approximate"]) == (1, False)
    assert got["0.logprobs"]["max_abs_diff"] == pytest.approx(0.0005)
    assert got["0.logprobs"]["approximate"] is True
    assert (got["throughput"]["max_rel_diff"], got["throughput"]["approximate"]) == (0.2, False)
    assert got["0.latency"]["exact"] is True


def test_c7_values_as_a_list_are_compared_with_values_as_an_object(diff: Diff) -> None:
    old = b'{"a": {"start_step": 0, "end_step": 20, "step_interval": 10, "values": [1.0, 2.0]}}'
    got = only(diff(old, golden_json(a={0: 1.0, 10: 3.0})))
    assert (got["n_common"], got["worst_step"], got["max_rel_diff"]) == (2, 10, 0.5)


def test_c8_an_unknown_revision_is_wrong_use(run: Run, make_repo: MakeRepo) -> None:
    repo = make_repo("repo", {GOLDEN: golden_json(a={1: 1.0})})
    got = run(repo.top, "diff", "no-such-branch", "HEAD")
    assert (got.code, got.out) == (2, "")
    assert "no-such-branch is no revision, file, folder or run" in got.err


@pytest.mark.parametrize(("old", "status"), [(b"", "changed"), (b"{not json", "unreadable"), (b"\xff", "unreadable")])
def test_c9_an_empty_or_broken_side_stops_nothing(diff: Diff, old: bytes, status: str) -> None:
    got = diff(old, golden_json(a={1: 1.0}))
    assert (got.code, got.json["files"][0]["status"]) == (0, status)


def test_c10_a_document_encoded_twice_is_read(diff: Diff) -> None:
    twice = json.dumps(golden_json(a={1: 1.0}).decode()).encode()
    assert diff(twice, golden_json(a={1: 1.0})).json["files"][0]["status"] == "equal"


def test_c11_deleted_and_renamed_goldens_are_listed(diff: Diff, run: Run, make_repo: MakeRepo) -> None:
    gone = diff(golden_json(a={1: 1.0, 2: 2.0}), None).json["files"][0]
    assert (gone["path"], gone["status"], gone["metrics"][0]["missing_steps"]) == (GOLDEN, "removed", 2)
    repo = make_repo("renamed", {GOLDEN: golden_json(a={1: 1.0})})
    repo.git("mv", GOLDEN, OTHER)
    repo.commit({}, "rename")
    files = run(repo.top, "diff", "HEAD^", "HEAD", "--format", "json").json["files"]
    assert [(f["path"], f["status"], f["renamed"]) for f in files] == [
        (OTHER, "added", GOLDEN),
        (GOLDEN, "removed", OTHER),
    ]


def test_c12_a_new_golden_is_listed_with_what_it_brings(diff: Diff) -> None:
    file = diff(None, golden_json(a={1: 1.0, 2: 2.0})).json["files"][0]
    assert (file["status"], file["metrics"][0]["extra_steps"]) == ("added", 2)


def test_c13_the_exit_code_and_every_format_follow_the_threshold(diff: Diff, run: Run, make_repo: MakeRepo) -> None:
    old, new = golden_json(a={1: 100.0, 2: 100.0}), golden_json(a={1: 101.0, 2: 100.0})
    assert diff(old, new).code == 0
    assert diff(old, new, "--exit-code").code == 1
    assert diff(old, new, "--exit-code", "--threshold", "0.02").code == 0
    repo = make_repo("csv", {GOLDEN: old})
    repo.commit({GOLDEN: new})
    for threshold, lines in (("0.005", 2), ("0.02", 1)):
        text = run(repo.top, "diff", "HEAD^", "HEAD", "--format", "csv", "--threshold", threshold).out
        assert len(text.splitlines()) == lines


def test_c14_the_verdict_follows_the_harness_rules(diff: Diff) -> None:
    old = golden_json(4, **{"iteration-time": dict.fromkeys(range(1, 21), 2.0), "num-zeros": {1: 100.0}})
    new = golden_json(4, **{"iteration-time": {s: 90.0 if s < 5 else 2.0 for s in range(1, 21)}, "num-zeros": {1: 119.0}})
    verdicts = {m["metric"]: m["approximate"] for m in diff(old, new).json["files"][0]["metrics"]}
    assert verdicts == {"iteration-time": True, "num-zeros": True}  # warm-up does not count; zeros may differ by 20 %


def test_c15_a_negative_golden_keeps_the_sign_of_the_difference(diff: Diff) -> None:
    got = only(diff(golden_json(a={1: -4.0}), golden_json(a={1: -3.0})))
    assert (got["signed_mean_rel_diff"], got["max_rel_diff"]) == (0.25, 0.25)


def test_c16_other_json_files_are_left_out_and_odd_names_kept(run: Run, make_repo: MakeRepo) -> None:
    odd = "goldens/moe/größe x/golden_values_dev_dgx_h100.json"
    repo = make_repo("repo", {odd: golden_json(a={1: 1.0}), "goldens/moe/tiny/baseline.json": b"{}"})
    repo.commit({odd: golden_json(a={1: 2.0}), "goldens/moe/tiny/baseline.json": b'{"x": 1}'})
    files = run(repo.top, "diff", "HEAD^", "HEAD", "--format", "json").json["files"]
    assert [(f["path"], f["status"]) for f in files] == [(odd, "changed")]


def test_c17_two_files_anywhere_are_compared_without_a_repository(run: Run, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_bytes(golden_json(a={1: 1.0}))
    (tmp_path / "new.json").write_bytes(golden_json(a={1: 2.0}))
    assert only(run(tmp_path, "diff", "old.json", "new.json", "--format", "json"))["max_rel_diff"] == 1.0


def test_c18_a_number_in_quotes_is_no_number(diff: Diff) -> None:
    new = b'{"a": {"start_step": 1, "end_step": 2, "step_interval": 1, "values": {"1": "1.5", "x": 2.0, "2": 2.0}}}'
    file = diff(golden_json(a={1: 1.5, 2: 2.0}), new).json["files"][0]
    assert file["metrics"][0]["missing_steps"] == 1
    assert file["note"] == "new side: 2 places are no numbers, first a: the string '1.5'"


def test_c19_a_row_has_the_numbers_a_person_needs(diff: Diff) -> None:
    got = only(diff(golden_json(a={1: 10.0, 2: 20.0, 3: 30.0}), golden_json(a={1: 10.0, 2: 25.0, 3: 33.0})))
    assert (got["worst_step"], got["worst_golden"], got["worst_obtained"]) == (2, 20.0, 25.0)
    assert (got["median_golden"], got["median_obtained"]) == (20.0, 25.0)
    assert (got["max_abs_diff"], got["mean_abs_diff"]) == (5.0, pytest.approx(8 / 3))


def test_c20_the_index_and_the_work_tree_are_two_sides(run: Run, make_repo: MakeRepo) -> None:
    repo = make_repo("repo", {GOLDEN: golden_json(a={1: 1.0})})
    repo.write({GOLDEN: golden_json(a={1: 2.0})})
    repo.git("add", "-A")
    repo.write({GOLDEN: golden_json(a={1: 4.0})})
    for side, worst in (("INDEX", 2.0), ("WORKTREE", 4.0)):
        assert only(run(repo.top, "diff", "HEAD", side, "--format", "json"))["worst_obtained"] == worst
