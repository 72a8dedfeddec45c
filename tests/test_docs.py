"""The documentation: commands that do what the page says, a reference that the code makes, a site without a dead link."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
DOCS = TOP / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "reference" not in p.parts)
FENCE = re.compile(
    r"(?:<!-- (?P<mark>exit|service): (?P<said>[^>]*?) -->\n)?^ *```(?P<kind>\w+)\n(?P<text>.*?)^ *```$", re.M | re.S
)
COMMAND = re.compile(r"goldenctl (?:-C \S+ )?(?P<name>[a-z-]+)(?P<rest>[^\n|>]*)")


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


def commands() -> list[tuple[str, str, str]]:
    """Page, command and arguments of everything that is not run: blocks that need a service, and configuration of CI."""
    found = []
    for page in PAGES:
        for block in blocks(page):
            if block.service or block.kind in ("yaml", "text"):
                found += [(page.stem, m["name"], m["rest"]) for m in COMMAND.finditer(block.text) if m["name"] != "goldenctl"]
    return sorted(set(found))


@pytest.mark.parametrize(("page", "name", "rest"), commands())
def test_a_command_that_needs_a_service_has_the_options_the_page_gives_it(page: str, name: str, rest: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "goldenctl", name, "--help"],
        env=os.environ | {"PYTHONPATH": str(TOP / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{page}: no command {name}"
    options = {word.partition("=")[0] for word in shlex.split(rest.replace("$", "")) if word.startswith("--")}
    assert all(re.search(rf"(?<!\S){re.escape(o)}(?![\w-])", done.stdout) for o in options), (
        f"{page}: {name} has not all of {options}"
    )


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
