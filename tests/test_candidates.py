"""Each delivered file gets its golden path exactly, or a reason why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from goldenctl.candidates import Known, resolve
from goldenctl.config import Settings
from goldenctl.model import Artifact, Fetched, Job, Member, Run

SETTINGS = Settings(Path("/repo"), root="goldens", platforms=("dgx_h100", "dgx_gb200"))
RUN = Run("folder", "tree", "1")
GOLDENS = frozenset(
    {
        "goldens/moe/tiny_ep8/golden_values_dev_dgx_h100.json",
        "goldens/gpt/tiny_tp2/golden_values_dev_dgx_h100.json",
        "goldens/gpt/memory_speed/golden_values_dev_dgx_h100.json",
        "goldens/moe/memory_speed/golden_values_dev_dgx_h100.json",
        "goldens/gpt/logs-of-logs-tp1/golden_values_dev_dgx_h100.json",
    }
)
KNOWN = Known(SETTINGS, GOLDENS)
UUID = "0f3c1f7e-54a4-4c1c-9b62-1f0f4f1a2b3c"


def place(artifact: Artifact, *names: str) -> tuple[list[str], list[str]]:
    placed = resolve(RUN, [Fetched(artifact, tuple(Member(n, b"{}") for n in names))], KNOWN)
    return [c.path for c in placed.candidates], [u.reason for u in placed.unplaced]


def job(model: str = "moe", test_case: str = "tiny_ep8") -> Artifact:
    return Artifact("1", "logs", 0, job=Job("7", f"{model}/{test_case} - latest", model, test_case))


def test_the_file_name_says_the_platform_and_the_job_says_the_case() -> None:
    paths, _ = place(job(), "golden_values_dev_dgx_gb200.json")
    assert paths == ["goldens/moe/tiny_ep8/golden_values_dev_dgx_gb200.json"]


def test_a_second_phase_file_has_a_golden_of_its_own() -> None:
    paths, _ = place(job(), "golden_values_dev_dgx_h100.json", "golden_values_dev_dgx_h100_2nd.json")
    assert paths == [
        "goldens/moe/tiny_ep8/golden_values_dev_dgx_h100.json",
        "goldens/moe/tiny_ep8/golden_values_dev_dgx_h100_2nd.json",
    ]


@pytest.mark.parametrize("test_case", ["../../evil", "/etc/passwd", "..", "a\\b"])
def test_a_job_name_never_leads_out_of_root(test_case: str) -> None:
    paths, reasons = place(job("moe", test_case), "golden_values_dev_dgx_h100.json")
    assert paths == []
    assert "not a plain name" in reasons[0]


def test_names_match_by_case_and_whole() -> None:
    paths, reasons = place(Artifact("1", f"logs-Tiny_EP8-123-{UUID}", 0), "golden_values_dev_dgx_h100.json")
    assert paths == []
    assert "no case 'Tiny_EP8' here" in reasons[0]


def test_a_case_name_that_holds_logs_is_read_whole_from_the_artifact_name() -> None:
    paths, _ = place(Artifact("1", f"logs-logs-of-logs-tp1-123-{UUID}", 0), "golden_values_dev_dgx_h100.json")
    assert paths == ["goldens/gpt/logs-of-logs-tp1/golden_values_dev_dgx_h100.json"]


def test_a_test_case_under_two_models_is_refused_when_nothing_says_which() -> None:
    paths, reasons = place(Artifact("1", f"logs-memory_speed-123-{UUID}-retry.zip", 0), "golden_values_dev_dgx_h100.json")
    assert paths == []
    assert "gpt and moe" in reasons[0]


def test_an_unknown_platform_is_refused_with_the_nearest() -> None:
    _, reasons = place(job(), "golden_values_dev_dgx_h10.json")
    assert reasons == ["unknown platform 'dgx_h10', nearest is 'dgx_h100'"]


def test_a_file_in_its_layout_is_placed_by_its_folders() -> None:
    paths, _ = place(Artifact("x", "golden files", 0), "any/prefix/gpt/tiny_tp2/golden_values_dev_dgx_h100.json")
    assert paths == ["goldens/gpt/tiny_tp2/golden_values_dev_dgx_h100.json"]


def test_a_recorded_folder_name_is_matched_whole() -> None:
    base = "results/iteration=0/restart=0/assets/basic"
    paths, _ = place(Artifact("x", "a.zip", 0), f"{base}/tiny-ep8-dev-dgx-h100/golden_values_dev_dgx_h100.json")
    assert paths == ["goldens/moe/tiny_ep8/golden_values_dev_dgx_h100.json"]
    _, reasons = place(Artifact("x", "a.zip", 0), f"{base}/ep8-dev-dgx-h100/golden_values_dev_dgx_h100.json")
    assert reasons == ["folder ep8-dev-dgx-h100 fits no case here"]


def test_the_last_replicate_by_number_is_the_candidate() -> None:
    members = tuple(
        Member(f"r{n}/golden_values_dev_dgx_h100.json", str(n).encode(), f"iteration=0/restart={n}") for n in (9, 10, 2)
    )
    placed = resolve(RUN, [Fetched(job(), members)], KNOWN)
    assert [c.content for c in placed.candidates] == [b"10"]
    assert [c.content for c in placed.replicates["goldens/moe/tiny_ep8/golden_values_dev_dgx_h100.json"]] == [b"2", b"9", b"10"]


def test_files_of_a_revision_keep_their_path_in_old_spellings_too() -> None:
    settings = Settings(Path("/repo"), root="goldens")
    names = (
        "goldens/gpt/a/golden_values_lts.json",
        "goldens/gpt/a/golden_values_dev_dgxh100_eos.json",
        "goldens/moe2.0/x/y/golden_values_dev.json",
    )
    fetched = Fetched(Artifact("c", "goldens at c", 0), tuple(Member(n, b"{}") for n in names))
    placed = resolve(Run("c", "git", "c"), [fetched], Known(settings, frozenset()))
    assert {c.path: (c.key.case, c.key.platform) for c in placed.candidates} == {
        names[0]: ("gpt/a", ""),
        names[1]: ("gpt/a", "dgxh100_eos"),
        names[2]: ("moe2.0/x/y", ""),
    }
    assert placed.unplaced == ()
