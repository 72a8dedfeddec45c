"""The command frame: typos, versions, places."""

from __future__ import annotations

from pathlib import Path

import pytest

from goldenctl.cli.app import COMMANDS
from goldenctl.cli.entry import main


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
