"""What a person sees in a terminal: tables that fit, names that lose their middle, colours that mean something, completion."""

from __future__ import annotations

import fcntl
import math
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldenctl.cli import shorten, spark
from tests.conftest import ScratchRepo, golden_json

CASE = "gpt3_mcore_te_tp2_pp2_resume_torch_dist_cross_entropy_loss_fusion"
PATH = f"goldens/gpt/{CASE}/golden_values_dev_dgx_h100.json"
ENTRY = [sys.executable, "-m", "goldenctl"]
SOURCE = {"PYTHONPATH": str(Path(__file__).parent.parent / "src")}


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("moe/case", 8, "moe/case"),
        ("moe/case_abcdef", 11, "moe/c…bcdef"),
        ("abcdef", 2, "…f"),
        ("abcdef", 1, "…"),
        ("moe/a/golden_values_dev_dgx_h100.json", 36, "moe/a/dev_dgx_h100"),
    ],
)
def test_a_long_name_loses_its_middle(text: str, width: int, shown: str) -> None:
    assert shorten.middle(text, width) == shown


@given(st.text(), st.integers(1, 60))
def test_a_shortened_name_fits_and_a_name_that_fits_is_left_alone(text: str, width: int) -> None:
    shown = shorten.middle(text, width)
    assert len(shown) <= width
    assert shown == text or len(text) > width


def test_only_names_are_shortened_and_only_when_the_table_does_not_fit() -> None:
    rows = [["a" * 70, "b" * 70]]

    def widths(columns: tuple[str, ...], width: int) -> list[int]:
        fitted = shorten.fit(columns, rows, width)
        assert sum(fitted.widths.values()) + 5 <= width
        return [len(cell) for cell in fitted.rows[0]]

    assert widths(("golden", "reason"), 200) == [70, 70]
    assert widths(("golden", "reason"), 105) == [50, 70]  # of 100 the least of both, 20 and 12, and of the rest a share
    assert widths(("message", "reason"), 105) == [70, 70]


def test_a_column_that_can_be_spared_is_left_out_before_the_others_cannot_be_read() -> None:
    columns, rows = ("golden", "max rel", "mean rel", "verdict"), [["a" * 70, "1" * 12, "2" * 12, "3" * 12]]

    def kept(width: int) -> list[int]:
        return list(shorten.fit(columns, rows, width, spare=(2, 1)).widths)

    assert kept(80) == [0, 1, 2, 3]  # 28 of the name, 3 * 12, 3 * 3 between them, 2 at the edges: 75
    assert kept(60) == [0, 1, 3]  # 21 + 2 * 12 + 2 * 3 + 2: 53
    assert kept(40) == [0, 3]


def test_a_curve_is_drawn_between_its_smallest_and_largest_value() -> None:
    assert spark.curve((1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)) == "▁▂▃▄▅▆▇█"
    assert spark.curve((5.0, 5.0)) == "▁▁"
    assert spark.curve((1.0, math.nan, 2.0)) == "▁!█"
    assert spark.curve(()) == ""
    assert len(spark.curve([float(i) for i in range(1000)])) == 40


@pytest.fixture
def repo(make_repo: Callable[..., ScratchRepo]) -> ScratchRepo:
    repo = make_repo("repo", {PATH: golden_json(lm_loss={1: 2.0, 2: 2.0}), "goldenctl.toml": 'root = "goldens"\n'})
    repo.commit({PATH: golden_json(lm_loss={1: 4.0, 2: 4.0})}, "change")
    return repo


def in_terminal(folder: Path, columns: int, *arguments: str, **environment: str) -> str:
    """What a command prints into a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    settings = os.environ | SOURCE | {"TERM": "xterm-256color"} | environment
    with subprocess.Popen(
        [*ENTRY, *arguments], cwd=folder, stdout=theirs, stderr=theirs, stdin=theirs, env=settings
    ) as process:
        os.close(theirs)
        text = b""
        try:
            while part := os.read(ours, 4096):
                text += part
        except OSError:  # how Linux says that the other end is closed
            pass
        process.wait()
    os.close(ours)
    return text.decode().replace("\r\n", "\n")


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_a_table_fits_eighty_columns_and_widens_with_the_window(repo: ScratchRepo) -> None:
    narrow = plain(in_terminal(repo.top, 80, "diff", "HEAD~1", "HEAD"))
    table, _, note = narrow.partition("the window has no room for ")
    assert max(map(len, table.splitlines())) <= 80
    assert re.search(r"^ gpt/gpt3\w*…[\w/]*dgx_h100 +lm loss +1 .* different", table, re.MULTILINE)
    assert note.startswith("steps, mean rel, signed, max abs, worst step: widen it")
    wide = plain(in_terminal(repo.top, 250, "diff", "HEAD~1", "HEAD"))
    assert f"gpt/{CASE}/golden_values_dev_dgx_h100.json" in wide


@pytest.mark.parametrize("columns", [10, 30, 40])
def test_a_window_with_no_room_for_the_columns_has_a_line_for_each_cell(repo: ScratchRepo, columns: int) -> None:
    for command in (["diff", "HEAD~1", "HEAD"], ["verify", "--against", "HEAD~1"]):
        lines = plain(in_terminal(repo.top, columns, *command)).splitlines()
        golden = next(line for line in lines if line.startswith("golden "))
        assert golden.split()[1].endswith(f"gpt/{CASE}/golden_values_dev_dgx_h100.json")
        assert any(line.endswith(" different") for line in lines)


def test_a_width_that_is_no_number_is_no_width(repo: ScratchRepo) -> None:
    done = subprocess.run(
        [*ENTRY, "diff", "HEAD~1", "HEAD"], cwd=repo.top, env=os.environ | SOURCE | {"COLUMNS": "wide"}, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_word_that_asks_for_work_is_red_on_a_terminal(repo: ScratchRepo) -> None:
    assert "\x1b[31mdifferent" in in_terminal(repo.top, 200, "verify", "--against", "HEAD~1")
    assert "\x1b[32midentical" in in_terminal(repo.top, 200, "verify", "--against", "HEAD")


@pytest.mark.parametrize("name", ["NO_COLOR", "CI"])
def test_no_colour_is_used_where_none_is_wanted(repo: ScratchRepo, name: str) -> None:
    text = in_terminal(repo.top, 200, "verify", "--against", "HEAD~1", **{name: "1"})
    assert "different" in text
    assert not re.search(r"\x1b\[3[0-9]", text)


def offered(folder: Path, shell: str, line: str) -> str:
    """What a shell gets when Tab is pressed at the end of a line."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_TYPER_COMPLETE_ARGS": line}
    settings = (
        os.environ | SOURCE | words | {"_GOLDENCTL_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    )
    done = subprocess.run(ENTRY, cwd=folder, env=settings, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.rstrip("\n")


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("goldenctl refresh --case gpt/", f"gpt/{CASE}"),
        ("goldenctl diff main HEAD --platform dgx_h", "dgx_h100"),
        ("goldenctl diff main HEAD --metric lm", "lm\\ loss"),
        ("goldenctl lint --select GV01", "GV010\nGV011\nGV012\nGV013"),
        ("goldenctl diff WORK", "WORKTREE"),
        ("goldenctl diff mai", "main"),
        ("goldenctl report main HEAD --metric iteration", "iteration-time"),
    ],
)
def test_bash_completes_cases_platforms_metrics_rules_and_revisions(repo: ScratchRepo, line: str, completed: str) -> None:
    assert offered(repo.top, "bash", line) == completed


def test_zsh_and_fish_quote_blanks_themselves(repo: ScratchRepo) -> None:
    assert offered(repo.top, "fish", "goldenctl diff --metric lm") == "lm loss"
    assert offered(repo.top, "zsh", "goldenctl diff --metric lm") == "_arguments '*: :((\"lm loss\"))'"


def test_completion_in_a_broken_place_offers_nothing_and_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "goldenctl.toml").write_text("root = [")
    assert offered(tmp_path, "bash", "goldenctl refresh --case x") == ""
