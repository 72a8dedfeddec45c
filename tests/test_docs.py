"""The documentation: commands that do what the page says, a reference that the code makes, a site without a dead link."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.main import get_command

from goldenctl.cli.app import COMMANDS, build
from goldenctl.version import __version__
from tests.product.world import tree, walk

TOP = Path(__file__).resolve().parent.parent
DOCS = TOP / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "reference" not in p.parts)
FENCE = re.compile(
    r"(?:<!-- (?P<mark>exit|service): (?P<said>[^>]*?) -->\n)?^ *```(?P<kind>\w+)\n(?P<text>.*?)^ *```$", re.M | re.S
)
COMMAND = re.compile(r"(?<![\w/-])goldenctl [a-z-]+[^\n|>`]*")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    kind: str
    text: str
    service: bool
    code: int
    """Exit code that one of its commands, goldenctl's, has; the others end in 0."""

    def steps(self) -> Iterator[tuple[str, list[str]]]:
        """Commands with the lines shown below each."""
        parts = re.split(r"^\$ ", self.text, flags=re.M)[1:]
        for part in parts:
            command, *shown = part.splitlines()
            yield command, [line for line in shown if line.strip() not in ("", "…")]


def blocks(page: Path) -> list[Block]:
    found = []
    for match in FENCE.finditer(page.read_text("utf-8")):
        service, code = match["mark"] == "service", int(match["said"]) if match["mark"] == "exit" else 0
        found.append(Block(match["kind"], match["text"], service, code))
    return found


def scratch(folder: Path) -> None:
    """Build the repository that `make demo` builds."""
    make = "import demo, pathlib, sys; demo.scratch(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", make, folder], check=True, cwd=TOP / "data")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment whose ``goldenctl`` is this source."""
    command = tmp_path / "bin/goldenctl"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m goldenctl "$@"\n')
    command.chmod(0o755)
    own = {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(TOP / "src"), "COLUMNS": "120"}
    return os.environ | own


def runnable(page: Path) -> bool:
    return any(b.kind == "console" and not b.service for b in blocks(page))


@pytest.mark.parametrize("page", [p for p in PAGES if runnable(p)], ids=lambda p: p.stem)
def test_every_command_of_a_page_does_what_the_page_shows(page: Path, environment: dict[str, str], tmp_path: Path) -> None:
    top = tmp_path / "repo"
    top.mkdir()
    scratch(top)
    for block in blocks(page):
        if block.kind != "console" or block.service:
            continue
        codes = []
        for command, shown in block.steps():
            done = subprocess.run(["bash", "-c", command], cwd=top, env=environment, capture_output=True, text=True)
            said = done.stdout + done.stderr
            assert done.returncode in (0, block.code), f"{command}\n{said}"
            codes.append(done.returncode)
            lines = {line.rstrip() for line in said.splitlines()}
            assert set(shown) <= lines, f"{command}\nshown, not said: {set(shown) - lines}\n{said}"
        assert block.code in codes


UNRUN = {"capture": "needs the logs of a training run"}
"""Commands that pages only show, and why."""


def test_every_command_is_run_from_a_page() -> None:
    lines = [(b.service, line) for page in PAGES for b in blocks(page) if b.kind == "console" for line, _ in b.steps()]
    names = [name for name, _ in walk(tree())]
    for name in names:
        said = [service for service, line in lines if re.search(rf"goldenctl {name}(?![\w-])", line)]
        assert said, f"no page has a command {name}"
        assert all(said) is (name in UNRUN), name
    assert set(UNRUN) <= set(names)


def commands() -> list[tuple[str, str]]:
    """Page and command line of everything that is not run: what needs a service, configuration of CI, inline code."""
    found = []
    for page in PAGES:
        text = page.read_text("utf-8")
        quoted = re.findall(r"`(goldenctl [^`]+)`", text) + re.findall(r"^    (goldenctl .+)$", text, re.M)
        listed = [b.text for b in blocks(page) if b.service or b.kind in ("yaml", "text")]
        found += [(page.stem, m[0]) for part in (*quoted, *listed) for m in COMMAND.finditer(part)]
    return sorted({(page, line) for page, line in found if not line.startswith("goldenctl goldenctl")})


@pytest.mark.parametrize(("page", "line"), commands())
def test_a_command_that_is_only_shown_exists_with_the_options_it_is_given(page: str, line: str) -> None:
    command = get_command(build(COMMANDS))
    words = line.replace("$", "").replace("…", "").split()[1:]
    while words and hasattr(command, "commands") and not words[0].startswith("-"):
        assert words[0] in command.commands, f"{page}: no command {words[0]} in {line}"
        command = command.commands[words.pop(0)]
    known = {name for p in command.params for name in p.opts} | {"--help"}
    given = {re.split(r"[=)'\"]", word)[0] for word in words if word.startswith("--")}
    assert given <= known, f"{page}: {line} has no {', '.join(given - known)}"


def test_pages_name_one_repository_and_the_version_they_are_of() -> None:
    pages = "\n".join(p.read_text("utf-8") for p in (*PAGES, TOP / "README.md"))
    assert set(re.findall(r"uses: (\S*/goldenctl@\S+)", pages)) == {f"goldenctl/goldenctl@v{__version__}"}
    assert set(re.findall(r"repo: (\S+/goldenctl)\n +rev: (\S+)", pages)) == {
        ("https://github.com/goldenctl/goldenctl", f"v{__version__}")
    }


def test_the_reference_is_what_the_code_makes() -> None:
    done = subprocess.run(
        [sys.executable, DOCS / "generate.py", "--check"],
        env=os.environ | {"PYTHONPATH": str(TOP / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=TOP, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "site/index.html").read_text()
    assert "fonts.googleapis.com" not in page
