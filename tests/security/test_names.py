"""Names of jobs, files and metrics: on a terminal, in a CI's log, in Markdown and HTML."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from goldenctl.cli import output
from goldenctl.errors import UsageError
from goldenctl.markdown import code, escape
from tests.conftest import ScratchRepo, golden_json

SOURCE = Path(__file__).parents[2] / "src"
GOOD = golden_json(lm_loss={1: 1.0, 2: 2.0, 3: 3.0})
ESCAPE = "goldens/moe/\x1b]0;owned\x07\x1b[2J/golden_values_dev_dgx_h100.json"
BYTES = b"goldens/moe/\xff\xfe/golden_values_dev_dgx_h100.json"


def run(top: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "GITHUB_ACTIONS": "true"}
    command = [sys.executable, "-m", "goldenctl", *arguments]
    return subprocess.run(command, cwd=top, env=environment, capture_output=True, check=False)


COMMANDS = [
    ("lint",), ("lint", "--format", "json"), ("lint", "--format", "sarif"), ("lint", "--format", "github"),
    ("verify", "--against", "HEAD"), ("verify", "--against", "HEAD", "--format", "json"),
    ("diff", "HEAD", "WORKTREE"), ("diff", "HEAD", "WORKTREE", "--format", "json"),
    ("diff", "HEAD", "WORKTREE", "--format", "markdown"), ("coverage",), ("coverage", "--format", "json"),
    ("catalog", "build"),
]  # fmt: skip


@pytest.fixture
def odd(make_repo: Callable[..., ScratchRepo]) -> Path:
    """A repository whose goldens have names that a terminal would obey, and one that is no UTF-8."""
    repo = make_repo(
        "r", {ESCAPE: GOOD, os.fsdecode(BYTES): GOOD, "goldens/moe/::error::x/golden_values_dev_dgx_h100.json": GOOD}
    )
    repo.write({ESCAPE: GOOD.replace(b"3.0", b'"nan"'), os.fsdecode(BYTES): GOOD.replace(b"3.0", b"4.0")})
    return repo.top


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_lets_a_files_name_steer_the_terminal_or_fail(command: tuple[str, ...], odd: Path) -> None:
    done = run(odd, *command)
    assert done.returncode in (0, 1), done.stderr
    assert b"Traceback" not in done.stderr
    for stream in (done.stdout, done.stderr):
        assert b"\x1b" not in stream
        assert b"\x07" not in stream
        if "github" not in command:
            assert not any(line.lstrip().startswith(b"::") for line in stream.splitlines())
    if "json" in command or "sarif" in command:
        json.loads(done.stdout)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("job \x1b[31mred", "job \\u001b[31mred"),
        ("\x9b2J", "\\u009b2J"),
        ("a\u202egpj.exe", "a\\u202egpj.exe"),
        ("::add-mask::x", "\\::add-mask::x"),
        ("a\n  ::stop-commands::x", "a\n  \\::stop-commands::x"),
        ("x ##[set-env name=A]b", "x #\\#[set-env name=A]b"),
        ("a\r::error::b", "a\\u000d::error::b"),
        ("plain: text\twith::colons\n", "plain: text\twith::colons\n"),
    ],
)
def test_what_a_terminal_or_a_log_would_obey_is_spelled(text: str, shown: str) -> None:
    assert output.harmless(text) == shown


def test_errors_notes_tables_and_results_are_all_made_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    output.error(str(UsageError("job \x1b[2J", place="\x1b]0;x\x07", hint="x\n::error::y")))
    output.note("\n::set-output name=a::b")
    output.table(["job"], [["\x1b[2J::x"], ["::error::x"]])
    output.result("::error::z")
    output.result("::error file=a::b", commands=True)
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert [line for line in (out + err).splitlines() if line.lstrip().startswith("::")] == ["::error file=a::b"]


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("<img src=x onerror=alert(1)>", "\\<img src=x onerror=alert(1)\\>"),
        ("[a](https://evil.example)", "\\[a\\](https://evil.example)"),
        ("a | b\n| c", "a \\| b \\| c"),
        ("</details>\n\n# owned", "\\</details\\>  # owned"),
        ("`x`", "\\`x\\`"),
        ("dgx_h100 _a_", "dgx\\_h100 \\_a\\_"),
    ],
)
def test_markdown_shows_names_and_obeys_none(text: str, escaped: str) -> None:
    assert escape(text) == escaped


def test_code_in_markdown_is_not_left_by_a_backtick_a_bar_or_a_line() -> None:
    assert code("a`<img>`") == "a\\`\\<img\\>\\`"
    assert code("a|b\nc") == "`a\\|b c`"
