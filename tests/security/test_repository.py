"""Repository content: links in the place of our own files, code, git's own files, YAML that grows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from goldenctl import recipes, testconfig
from goldenctl.cli.entry import main
from goldenctl.config import Settings
from goldenctl.errors import RepoError
from goldenctl.files import own_folder
from goldenctl.lint import baseline
from goldenctl.model import Change
from goldenctl.pending import Pending, propose
from goldenctl.writeback import apply
from tests.conftest import IDENTITY, ScratchRepo, golden_json

SOURCE = Path(__file__).parents[2] / "src"
PATH = "goldens/moe/a/golden_values_dev_dgx_h100.json"
GOOD = golden_json(lm_loss={1: 1.0, 2: 2.0, 3: 3.0})
LINKS = (
    ".goldenctl", ".goldenctl/.gitignore", ".goldenctl/catalog.duckdb", ".goldenctl/catalog.duckdb.lock",
    ".goldenctl/catalog.duckdb.holder", ".goldenctl/catalog.duckdb.built",
)  # fmt: skip


@pytest.mark.parametrize("there", [True, False], ids=["to a file", "to nothing"])
@pytest.mark.parametrize("link", LINKS)
def test_a_link_in_the_place_of_our_own_file_is_not_written_through(
    link: str, there: bool, make_repo: Callable[..., ScratchRepo], monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = make_repo("r", {PATH: GOOD})
    outside = repo.top.parent / "outside"
    outside.mkdir()
    target = outside / "bashrc"
    if there and link != ".goldenctl":
        target.write_bytes(b"precious")
    before = {p.name: p.read_bytes() for p in outside.iterdir()}
    place = repo.top / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside if there and link == ".goldenctl" else target)
    monkeypatch.chdir(repo.top)
    assert main(["catalog", "build"]) in (0, 4)
    assert {p.name: p.read_bytes() for p in outside.iterdir()} == before


@pytest.mark.parametrize("link", [".goldenctl", ".goldenctl/.gitignore", ".goldenctl/writeback.lock"])
def test_a_write_back_follows_no_link_either(link: str, tmp_path: Path) -> None:
    top, outside = tmp_path / "top", tmp_path / "outside"
    outside.mkdir()
    (top / "goldens").mkdir(parents=True)
    (top / link).parent.mkdir(exist_ok=True)
    (top / link).symlink_to(outside if link == ".goldenctl" else outside / "bashrc")
    with pytest.raises(RepoError):
        apply(top, "goldens", [Change("goldens/a.json", None, b"{}")])
    assert list(outside.iterdir()) == []
    assert list((top / "goldens").iterdir()) == []


def test_a_proposal_is_not_kept_behind_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    top = tmp_path / "top"
    (top / ".goldenctl").mkdir(parents=True)
    (top / ".goldenctl/pending").symlink_to(outside)
    with pytest.raises(RepoError, match="is a link"):
        propose(Settings(top, root="goldens"), Pending(PATH, b"{}", "o", "r"))
    assert list(outside.iterdir()) == []


def test_a_baseline_is_not_written_through_a_link(tmp_path: Path) -> None:
    target = tmp_path / "bashrc"
    (tmp_path / "known.json.new").symlink_to(target)
    with pytest.raises(RepoError, match="is a link"):
        baseline.save(tmp_path / "known.json", [])
    assert not target.exists()


def test_the_cache_of_answers_is_not_kept_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / ".goldenctl").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="is a link"):
        own_folder(tmp_path / ".goldenctl/cache")
    assert list((tmp_path / "outside").iterdir()) == []


def test_modules_of_the_repository_are_not_imported(make_repo: Callable[..., ScratchRepo]) -> None:
    goldens = {f"goldens/moe/a{n}/golden_values_dev_dgx_h100.json": golden_json(lm_loss={1: n, 2: n}) for n in range(600)}
    trap = "import pathlib\npathlib.Path(__file__).with_name('pwned').touch()\nraise SystemExit(1)\n"
    modules = ("orjson", "pickle", "json", "goldenctl", "sitecustomize", "duckdb", "polars", "queue")
    repo = make_repo("r", goldens | {f"{name}.py": trap for name in modules})
    program = f"import sys; sys.path[:0] = [{str(SOURCE)!r}]; from goldenctl.cli.entry import entry; entry()"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | IDENTITY
    command = [sys.executable, "-P", "-c", program, "catalog", "build"]
    done = subprocess.run(command, cwd=repo.top, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, (repo.top / "pwned").exists()) == (0, False), done.stderr


def test_a_bare_repository_inside_the_tree_is_not_obeyed(
    make_repo: Callable[..., ScratchRepo], monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = make_repo("r", {PATH: GOOD})
    inside = repo.top / "goldens/moe"
    marker = repo.top.parent / "pwned"
    for name, content in {"HEAD": "ref: refs/heads/main\n", "objects/x": "", "refs/x": "", "config": _config(marker)}.items():
        (inside / name).parent.mkdir(exist_ok=True)
        (inside / name).write_text(content)
    monkeypatch.chdir(inside)
    for command in (["lint"], ["diff", "HEAD", "WORKTREE"], ["verify", "--against", "HEAD"], ["catalog", "build"]):
        main(command)
    assert not marker.exists()


def _config(marker: Path) -> str:
    return f'[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tworktree = "."\n\tfsmonitor = "touch {marker}; false"\n'


def test_attributes_of_the_tree_start_no_program(
    tmp_path: Path, make_repo: Callable[..., ScratchRepo], monkeypatch: pytest.MonkeyPatch
) -> None:
    attributes = "*.json filter=evil diff=evil merge=evil\n"
    evil = f'[diff "evil"]\n\ttextconv = touch {tmp_path}/pwned\n[filter "evil"]\n\tclean = touch {tmp_path}/pwned\n'
    repo = make_repo("r", {PATH: GOOD, ".gitattributes": attributes, ".gitconfig": evil, ".lfsconfig": evil, "config": evil})
    repo.write({PATH: golden_json(lm_loss={1: 1.0, 2: 2.5, 3: 3.0})})
    monkeypatch.chdir(repo.top)
    for command in (["diff", "HEAD", "WORKTREE"], ["verify", "--against", "HEAD"], ["catalog", "build"]):
        assert main(command) in (0, 1), command
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("rev", ["--output=pwned", "-o", "--upload-pack=touch pwned", "HEAD --output=pwned"])
def test_a_revision_that_looks_like_an_option_is_a_revision(
    rev: str, make_repo: Callable[..., ScratchRepo], monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = make_repo("r", {PATH: GOOD})
    monkeypatch.chdir(repo.top)
    for command in (["lint", f"--against={rev}"], ["verify", f"--against={rev}"], ["diff", "--", rev, "HEAD"]):
        assert main(command) == 2, command
    assert not (repo.top / "pwned").exists()


def test_a_golden_whose_name_begins_like_an_option_is_a_file(
    make_repo: Callable[..., ScratchRepo], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "--output=pwned/a/golden_values_dev_dgx_h100.json"
    repo = make_repo("r", {name: GOOD, "goldenctl.toml": 'root = "."\n'})
    monkeypatch.chdir(repo.top)
    assert main(["verify", "--against", "HEAD"]) == 0
    assert not (repo.top / "pwned").exists()


def test_yaml_aliases_that_grow_without_bound_cost_nothing() -> None:
    levels = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))
    raw = f"a0: &a0 [x]\n{levels}\nMODE: *a29\nTEST_TYPE: *a29\nMETRICS: [*a29, lm loss]\nENV_VARS: {{SKIP_PYTEST: *a29}}\n"
    started = time.monotonic()
    config = testconfig.parse(raw.encode()).config
    assert config is not None
    assert config.mode == "pretraining"
    assert time.monotonic() - started < 2


def test_yaml_objects_are_not_made(tmp_path: Path) -> None:
    raw = f"MODE: !!python/object/apply:os.system ['touch {tmp_path}/pwned']\n".encode()
    assert "not readable YAML" in testconfig.parse(raw).note
    with pytest.raises(recipes.RecipeError):
        recipes.parse(raw, "r.yaml")
    assert list(tmp_path.iterdir()) == []


def test_a_recipe_that_expands_without_bound_is_refused() -> None:
    keys = "\n".join(f"    k{n}: [{', '.join(map(str, range(50)))}]" for n in range(8))
    raw = f"spec: {{model: moe}}\nproducts:\n- test_case: [a]\n  products:\n  - platforms: [p]\n{keys}\n".encode()
    with pytest.raises(recipes.RecipeError, match="expands to more than 10000 rows"):
        recipes.parse(raw, "r.yaml")


def test_a_planted_journal_reaches_no_hook_of_git(tmp_path: Path) -> None:
    (tmp_path / ".git/hooks").mkdir(parents=True)
    journal = tmp_path / ".goldenctl/journal"
    journal.mkdir(parents=True)
    entry = {"path": ".git/hooks/pre-commit", "old": None, "new": "0" * 64}
    (journal / "manifest.json").write_text(json.dumps({"version": 1, "root": "", "created": [], "files": [entry]}))
    (journal / "commit").touch()
    (journal / "0.new").write_text("#!/bin/sh\n")
    done = subprocess.run(
        [sys.executable, "-m", "goldenctl", "lint"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 4
    assert "unusable" in done.stderr
    assert list((tmp_path / ".git/hooks").iterdir()) == []
