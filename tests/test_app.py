"""The command frame: typos, versions, places."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from goldenctl.cli.app import COMMANDS
from goldenctl.cli.entry import guarded, main


def test_a_typo_in_a_command_gives_the_nearest_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lnt"]) == 2
    assert capsys.readouterr().err.count("Did you mean 'lint'") == 1


def test_a_command_unlike_any_is_wrong_use_with_the_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["frobnicate"]) == 2
    assert "next: goldenctl --help" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    if "Commands:" not in shown and "COMMAND" not in shown.splitlines()[0]:
        assert f"Example: goldenctl {name}" in shown or f"goldenctl {name}" in shown.partition("Options")[0]


def test_a_folder_that_is_not_there_is_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-C", str(tmp_path / "none"), "lint"]) == 2
    assert "cannot work in" in capsys.readouterr().err


def _raise(error: OSError) -> int:
    raise error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left on device"), "error: No space left on device\n"),
        (PermissionError(13, "Permission denied", "goldens/a.json"), "error: goldens/a.json: Permission denied\n"),
    ],
)
def test_what_the_system_refuses_is_said_in_one_line_and_not_as_a_traceback(
    error: OSError, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(lambda: _raise(error)) == 4
    assert capsys.readouterr().err == said


def test_a_closed_output_is_no_reason_for_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "goldens/moe/a").mkdir(parents=True)
    (tmp_path / "goldens/moe/a/golden_values_dev_dgx_h100.json").write_text("{}")
    command = f"{sys.executable} -m goldenctl lint >&-"
    source = str(Path(__file__).resolve().parents[1] / "src")
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=os.environ | {"PYTHONPATH": source}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (1, "")


def _piped(folder: Path, command: str) -> tuple[int, str]:
    """Exit code and stderr of a shell command in which ``goldenctl`` is ours."""
    source = str(Path(__file__).resolve().parents[1] / "src")
    ours = f'goldenctl() {{ {sys.executable} -m goldenctl "$@"; }}; {command}'
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", ours],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("files", [1, 2000])
@pytest.mark.parametrize("arguments", ["lint", "lint --format json", "lint --strict"])
def test_a_reader_that_goes_away_changes_no_exit_code(tmp_path: Path, files: int, arguments: str) -> None:
    for number in range(files):
        (tmp_path / f"goldens/moe/a{number}").mkdir(parents=True)
        (tmp_path / f"goldens/moe/a{number}/golden_values_dev_dgx_h100.json").write_text("{}")
    assert _piped(tmp_path, f"goldenctl {arguments} | true") == (1, "")


def test_a_table_whose_reader_goes_away_changes_no_exit_code(tmp_path: Path) -> None:
    assert _piped(tmp_path, "goldenctl lint --list-rules | true") == (0, "")


def test_a_result_that_nobody_can_keep_is_exit_4(tmp_path: Path) -> None:
    (tmp_path / "goldens/moe/a").mkdir(parents=True)
    code, said = _piped(tmp_path, "goldenctl lint > /dev/full")
    assert code == 4
    assert said == "error: No space left on device\n"
