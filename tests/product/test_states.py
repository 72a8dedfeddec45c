"""Every command in every state a user can bring it into: exit code, message, and nothing lost."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import pytest
from filelock import FileLock

from goldenctl.catalog import store
from goldenctl.cli.entry import main
from tests.conftest import ScratchRepo
from tests.product.child import Asked
from tests.product.world import ROWS, TOP, Row, copy, digest, plant, tree, walk
from tests.verdicts.cli import Run, runner

NAMES = list(ROWS)
TOKEN = "ghp_never_shown"


class Children:
    """Commands in processes of their own, one after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.product.child"],
            cwd=TOP,
            env=os.environ | {"PYTHONPATH": str(TOP / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, asked: Asked) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(asked)) + "\n")
        self._process.stdin.flush()
        return dict(json.loads(self._process.stdout.readline()))

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def children() -> Iterator[Children]:
    started = Children()
    yield started
    started.end()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's repository with a catalog; read only."""
    top = tmp_path_factory.mktemp("product") / "repo"
    plant(top)
    here = Path.cwd()
    assert main(["-C", str(top), "catalog", "build"]) == 0
    os.chdir(here)
    return top


@pytest.fixture
def top(template: Path, tmp_path: Path) -> Path:
    return copy(template, tmp_path / "repo")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(monkeypatch, capsys)


def explained(code: int, err: str) -> None:
    """An error says the fact and the next step, and is no traceback."""
    assert "Traceback" not in err
    if code in (2, 3, 4, 130):
        assert err.startswith("error: ") or "\nerror: " in err, err
        assert "\n  next: " in err, err


def test_every_command_has_a_row() -> None:
    assert sorted(ROWS) == sorted(name for name, _ in walk(tree()))


@pytest.mark.parametrize("name", NAMES)
def test_without_a_repository_it_says_what_is_missing(name: str, run: Run, tmp_path: Path) -> None:
    row = ROWS[name]
    (tmp_path / "empty").mkdir()
    got = run(tmp_path / "empty", *row.arguments)
    assert got.code == row.codes.get("none", 4 if row.catalog else 2), got.err
    explained(got.code, got.err)
    assert got.out == ""
    assert digest(tmp_path / "empty") == {}


@pytest.mark.parametrize("name", NAMES)
def test_in_an_empty_repository_it_says_what_is_missing(name: str, run: Run, tmp_path: Path) -> None:
    row, repo = ROWS[name], ScratchRepo(tmp_path / "empty")
    before = digest(repo.top)
    got = run(repo.top, *row.arguments)
    assert got.code == row.codes.get("empty", 4 if row.catalog else 2), got.err
    explained(got.code, got.err)
    assert got.out == ""
    assert digest(repo.top) == before


def touched(row: Row, before: dict[str, str], after: dict[str, str]) -> bool:
    """Whether anything changed; a command that writes changes something, another one nothing."""
    assert (after != before) is row.writes
    return set(before) <= set(after)


@pytest.mark.parametrize("name", NAMES)
def test_without_settings_it_does_its_work(name: str, run: Run, top: Path) -> None:
    row = ROWS[name]
    (top / "goldenctl.toml").unlink()
    before = digest(top)
    got = run(top, *row.arguments)
    assert got.code == row.code, got.err
    explained(got.code, got.err)
    assert touched(row, before, digest(top))


@pytest.mark.parametrize("name", NAMES)
def test_with_broken_settings_it_names_file_key_and_the_nearest_key(name: str, run: Run, top: Path) -> None:
    row = ROWS[name]
    (top / "goldenctl.toml").write_text('rot = "goldens"\n')
    before = digest(top)
    got = run(top, *row.arguments)
    if not row.settings:
        assert got.code == row.code, got.err
        return
    assert got.code == 2
    assert got.err == f"error: {top}/goldenctl.toml: unknown key rot\n  next: did you mean root?\n"
    assert got.out == ""
    assert digest(top) == before


@pytest.mark.parametrize("name", NAMES)
def test_without_network_it_works_or_says_who_cannot_be_reached(
    name: str, run: Run, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = ROWS[name]

    def refused(*_: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(time, "sleep", lambda _: None)  # the pauses between four attempts
    for key, value in {"URL": "http://127.0.0.1:9", "REPOSITORY": "o/r", "TOKEN": TOKEN}.items():
        monkeypatch.setenv(f"GITHUB_{key}".replace("HUB_URL", "HUB_API_URL"), value)
    before = digest(top)
    got = run(top, *(row.service or row.arguments))
    assert TOKEN not in got.out + got.err
    explained(got.code, got.err)
    if row.service:
        assert got.code == 3
        assert "127.0.0.1:9: cannot be reached: Connection refused" in got.err
        assert digest(top) == before
    else:
        assert got.code == row.code, got.err


@pytest.mark.parametrize("name", NAMES)
def test_a_read_only_tree_is_read_and_never_half_written(name: str, children: Children, top: Path) -> None:
    row = ROWS[name]
    for path in [top, *top.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o555 if path.is_dir() else 0o444)
    before = digest(top)
    got = children.run(Asked(str(top), row.arguments, powerless=True))
    for path in [top, *(p for p in top.rglob("*") if p.is_dir() and not p.is_symlink())]:
        path.chmod(0o755)
    expected = row.codes.get("read-only", 4 if row.writes or row.catalog else row.code)
    assert got["code"] == expected, got["err"]
    explained(got["code"], got["err"])
    assert digest(top) == before


class HastyLock(FileLock):
    """A lock file whose wait is short."""

    waited: ClassVar[list[float]] = []

    def acquire(self, timeout: float | None = None, *arguments: Any, **options: Any) -> Any:
        HastyLock.waited.append(timeout or 0)
        return super().acquire(0.02, *arguments, **options)


@pytest.mark.parametrize("name", NAMES)
def test_a_locked_catalog_is_waited_for_and_its_holder_is_named(
    name: str, run: Run, top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = ROWS[name]
    catalog = top / ".goldenctl/catalog.duckdb"
    held, content = FileLock(f"{catalog}.lock"), catalog.read_bytes()
    Path(f"{catalog}.holder").write_text('{"pid": 4711, "command": "goldenctl catalog build"}')
    monkeypatch.setattr(store, "FileLock", HastyLock)
    HastyLock.waited.clear()
    before = digest(top)
    with held:
        got = run(top, *row.arguments)
    assert got.code == row.codes.get("locked", 4 if row.catalog else row.code), got.err
    explained(got.code, got.err)
    assert set(HastyLock.waited) <= {30.0}
    if HastyLock.waited:
        assert "process 4711 (goldenctl catalog build) has held the catalog for more than 30 s" in got.err
    assert catalog.read_bytes() == content
    assert got.code == 4 or touched(row, before, digest(top))


@pytest.mark.parametrize("name", NAMES)
def test_an_interrupt_ends_in_130_leaves_files_whole_and_the_command_can_be_run_again(
    name: str, children: Children, template: Path, tmp_path: Path
) -> None:
    row = ROWS[name]
    whole, cut = copy(template, tmp_path / "whole/repo"), copy(template, tmp_path / "cut/repo")
    before = digest(whole)
    ready = children.run(Asked(str(whole), row.arguments))
    assert ready["code"] == row.code, ready["err"]
    after = digest(whole)
    assert touched(row, before, after)
    got = children.run(Asked(str(cut), row.arguments, interrupt=(ready["moments"] + 1) // 2))
    assert got["code"] == 130, got["err"]
    explained(130, got["err"])
    for path, content in digest(cut).items():
        if path != ".git/config":  # git writes one key at a time, and the command again writes the rest
            assert content in (before.get(path), after.get(path)), path
    if row.writes:
        again = children.run(Asked(str(cut), row.arguments))
        assert again["code"] == row.code, again["err"]
        assert digest(cut) == after
