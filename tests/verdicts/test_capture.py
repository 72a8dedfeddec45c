"""Event files become a golden document by the harness's sampling rules, and nothing that is not finite gets in."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldenctl import capture
from goldenctl.capture import Files, Options, Precision
from goldenctl.errors import GoldenctlError, SourceError, UsageError
from tests.verdicts.cli import Run
from tests.verdicts.events import Scalars, write_events

FLOAT32_TENTH = 0.10000000149011612
"""0.1 as float32 holds it."""


def values(folder: Path, metric: str = "lm loss", **options: object) -> dict[int, float]:
    document = capture.capture([folder], Options(**options)).document  # type: ignore[arg-type]
    return {int(s): v for s, v in document[metric]["values"].items()}


def one(folder: Path, scalars: Scalars) -> Path:
    write_events(folder / "events.out.tfevents.1.host", scalars)
    return folder


def test_full_precision_keeps_the_logged_float_and_says_so(tmp_path: Path) -> None:
    one(tmp_path, {"lm loss": {1: 0.1, 2: 0.25}})
    document = capture.capture([tmp_path], Options()).document
    assert document == {
        "lm loss": {
            "start_step": 1,
            "end_step": 2,
            "step_interval": 1,
            "values": {"1": FLOAT32_TENTH, "2": 0.25},
            "value_precision": "full",
        }
    }


def test_rounded_precision_has_five_decimals_and_no_marker(tmp_path: Path) -> None:
    one(tmp_path, {"lm loss": {1: 0.1, 2: 1.2345678}})
    block = capture.capture([tmp_path], Options(precision=Precision.ROUNDED)).document["lm loss"]
    assert block["values"] == {"1": 0.1, "2": 1.23457}
    assert "value_precision" not in block


@pytest.mark.parametrize(
    ("logged", "train_iters", "step_size", "kept", "interval"),
    [
        (range(1, 13), None, 5, [1, 5, 10], 5),
        (range(1, 13), 10, 1, list(range(1, 11)), 1),
        (range(13), None, 5, [1, 5, 10], 5),  # step 0 is never kept
        (range(2, 7), None, 1, [2, 3, 4, 5, 6], 1),
        (range(100, 501, 100), None, 5, [100, 200, 300, 400, 500], 100),
        ([1, 5], None, 5, [1, 5], 5),  # fewer than two steps after 1: the step size
        ([1], None, 5, [1], 5),
        ([1, 10, 20, 35], None, 5, [1, 10, 20, 35], 5),
    ],
)
def test_the_grid_is_step_1_and_the_multiples(
    tmp_path: Path, logged: range, train_iters: int | None, step_size: int, kept: list[int], interval: int
) -> None:
    one(tmp_path, {"lm loss": {s: float(s) for s in logged}})
    block = capture.capture([tmp_path], Options(train_iters=train_iters, step_size=step_size)).document["lm loss"]
    assert [int(s) for s in block["values"]] == kept
    assert (block["start_step"], block["end_step"], block["step_interval"]) == (kept[0], kept[-1], interval)


def test_only_the_harness_metrics_are_kept_in_the_order_of_the_file(tmp_path: Path) -> None:
    one(tmp_path, {"num-zeros": {1: 3.0}, "grad-norm": {1: 1.0}, "lm loss": {1: 2.0}})
    captured = capture.capture([tmp_path], Options())
    assert list(captured.document) == ["num-zeros", "lm loss"]
    assert captured.notes == ("not kept: grad-norm",)
    assert list(capture.capture([tmp_path], Options(metrics=("grad-norm",))).document) == ["grad-norm"]


@pytest.fixture
def restarted(tmp_path: Path) -> Path:
    """A run that logged steps 1 to 4, restarted from step 2 and logged 3 to 6; the newer file has the older name."""
    write_events(tmp_path / "events.out.tfevents.2.host", {"lm loss": {s: float(s) for s in range(1, 5)}}, started=1000.0)
    write_events(tmp_path / "events.out.tfevents.1.host", {"lm loss": {s: s + 0.5 for s in range(3, 7)}}, started=5000.0)
    return tmp_path


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (Files.FIRST, {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0}),
        (Files.MERGED, {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0, 5: 5.5, 6: 6.5}),
        (Files.RESUMED, {1: 1.0, 2: 2.0, 3: 3.5, 4: 4.5, 5: 5.5, 6: 6.5}),
    ],
)
def test_files_are_ordered_by_their_own_times(restarted: Path, files: Files, expected: dict[int, float]) -> None:
    assert values(restarted, files=files) == expected


def test_files_left_out_are_said(restarted: Path) -> None:
    (note,) = capture.capture([restarted], Options()).notes
    assert note.startswith("1 later event files are left out, first events.out.tfevents.1.host")


def test_a_file_without_scalars_is_never_the_first(tmp_path: Path) -> None:
    write_events(tmp_path / "events.out.tfevents.1.host", {}, started=1.0)
    write_events(tmp_path / "results" / "events.out.tfevents.2.host", {"lm loss": {1: 7.0}}, started=2.0)
    assert values(tmp_path) == {1: 7.0}


def test_several_folders_are_one_run(tmp_path: Path) -> None:
    write_events(tmp_path / "a" / "events.out.tfevents.1.host", {"lm loss": {1: 1.0}}, started=1.0)
    write_events(tmp_path / "b" / "events.out.tfevents.1.host", {"lm loss": {2: 2.0}}, started=2.0)
    captured = capture.capture([tmp_path / "b", tmp_path / "a"], Options(files=Files.MERGED))
    assert captured.document["lm loss"]["values"] == {"1": 1.0, "2": 2.0}


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_refused_with_its_steps(tmp_path: Path, bad: float) -> None:
    one(tmp_path, {"lm loss": {1: 1.0, 2: bad, 3: bad}, "num-zeros": {1: 1.0, 2: bad}})
    with pytest.raises(GoldenctlError, match="'lm loss' at steps 2, 3; 'num-zeros' at step 2; nothing is written"):
        capture.capture([tmp_path], Options())
    assert values(tmp_path, train_iters=1) == {1: 1.0}


def test_a_non_finite_value_of_a_metric_that_is_not_kept_does_not_matter(tmp_path: Path) -> None:
    one(tmp_path, {"lm loss": {1: 1.0}, "grad-norm": {1: math.nan}})
    assert values(tmp_path) == {1: 1.0}


@pytest.mark.parametrize(
    ("thin", "pinned", "kept"),
    [
        (100, (), list(range(1, 101))),
        (51, (), [1, *range(2, 101, 2)]),
        (50, (), [1, *range(3, 100, 3), 100]),
        (5, (), [1, 25, 50, 75, 100]),
        (5, (49,), [1, 34, 49, 68, 100]),
        (2, (), [1, 100]),
        (3, (49, 500), [1, 49, 100]),
    ],
)
def test_thinning_keeps_first_last_and_pinned_steps(
    tmp_path: Path, thin: int, pinned: tuple[int, ...], kept: list[int]
) -> None:
    one(tmp_path, {"lm loss": {s: float(s) for s in range(1, 101)}})
    assert list(values(tmp_path, thin=thin, pinned=pinned)) == kept


def test_thinning_without_room_for_the_pinned_steps_is_wrong_use(tmp_path: Path) -> None:
    one(tmp_path, {"lm loss": {s: float(s) for s in range(1, 101)}})
    with pytest.raises(UsageError, match="--thin 3 has no room for 4 fixed steps"):
        capture.capture([tmp_path], Options(thin=3, pinned=(10, 20)))


@given(st.sets(st.integers(1, 3000), min_size=1, max_size=300), st.integers(2, 40))
def test_thinning_never_keeps_more_than_asked_nor_loses_the_ends(steps: set[int], thin: int) -> None:
    grid = dict.fromkeys(sorted(steps), 0.0)
    kept = list(capture._thinned(grid, Options(thin=thin)))
    assert len(kept) <= max(thin, 1)
    assert set(kept) <= steps
    assert {min(steps), max(steps)} <= set(kept)


def test_a_cut_file_gives_what_stands_before_the_cut(tmp_path: Path) -> None:
    path = write_events(tmp_path / "events.out.tfevents.1.host", {"lm loss": {s: float(s) for s in range(1, 11)}})
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    captured = capture.capture([tmp_path], Options(train_iters=10))
    assert captured.document["lm loss"]["end_step"] < 10
    assert captured.notes[0].startswith("the run ends at step ")


@pytest.mark.parametrize("content", [b"", b"not an event file at all", b"\x00" * 64])
def test_a_folder_without_scalars_is_a_source_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "events.out.tfevents.1.host").write_bytes(content)
    with pytest.raises(SourceError, match="no event file with scalars"):
        capture.capture([tmp_path], Options())


def test_the_file_is_written_whole_and_never_over_another(run: Run, tmp_path: Path) -> None:
    one(tmp_path / "logs", {"lm loss": {1: 2.0}})
    assert run(tmp_path, "capture", "logs", "-o", "golden.json").code == 0
    written = (tmp_path / "golden.json").read_bytes()
    assert written.startswith(b'{\n    "lm loss": {\n        "start_step": 1,')
    assert not written.endswith(b"\n")
    assert run(tmp_path, "capture", "logs", "-o", "golden.json").code == 0
    refused = run(tmp_path, "capture", "logs", "-o", "golden.json", "--precision", "rounded")
    assert (refused.code, (tmp_path / "golden.json").read_bytes()) == (2, written)
    assert run(tmp_path, "capture", "logs", "-o", "golden.json", "--precision", "rounded", "--force").code == 0
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


@pytest.mark.parametrize(("arguments", "code"), [(["nowhere"], 2), (["."], 3), (["logs", "-o", "no/folder/x.json"], 4)])
def test_what_cannot_be_read_or_written_is_said(run: Run, tmp_path: Path, arguments: list[str], code: int) -> None:
    one(tmp_path / "logs", {"lm loss": {1: 2.0}})
    assert run(tmp_path, "capture", *arguments).code == code


def test_neither_tensorflow_nor_torch_is_imported(tmp_path: Path) -> None:
    one(tmp_path, {"lm loss": {1: 2.0}})
    (tmp_path / "tensorflow.py").write_text("raise SystemExit('tensorflow was imported')")
    (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')")
    code = f"from goldenctl.cli.entry import main; raise SystemExit(main(['capture', {str(tmp_path)!r}]))"
    env = {"PYTHONPATH": f"{tmp_path}:{Path('src').resolve()}"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=env)
    assert (done.returncode, json.loads(done.stdout)["lm loss"]["values"]) == (0, {"1": 2.0}), done.stderr


@pytest.mark.corpus
def test_runs_on_a_real_gpu_give_what_their_script_recorded(gpu_runs: Path) -> None:
    cases = json.loads((gpu_runs / "meta.json").read_text())["cases"]
    for case in ("gpt_tiny_deterministic", "moe_tiny_nondeterministic", "gpt_tiny_new_base_image"):
        final = [values(gpu_runs / case / f"run_{i}")[100] for i in range(cases[case]["runs"])]
        assert final == cases[case]["final_loss"]
    with pytest.raises(GoldenctlError, match=r"'lm loss' at steps 40, 41, 42, 43, 44, … \(61 in all\)"):
        capture.capture([gpu_runs / "gpt_tiny_fault_overflow" / "run_0"], Options())
