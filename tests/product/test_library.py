"""The library: a function for every command, light to import, typed for its users; extras that are missing are named."""

from __future__ import annotations

import builtins
import inspect
import json
import keyword
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import goldenctl
from goldenctl.cli.entry import main
from tests.product.world import GOLDEN, NAN, OTHER, ROWS, TOP, plant, tree, walk

COMMANDS = dict(walk(tree()))


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library") / "repo"
    plant(folder)
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_twin_of_its_name_with_types_and_a_docstring(name: str) -> None:
    twin = getattr(goldenctl.api, name.replace(" ", "_").replace("-", "_"))
    assert inspect.getdoc(twin)
    unresolved = set(inspect.signature(twin).parameters) | {"return"}
    assert set(twin.__annotations__) == unresolved


OUTPUT: Mapping[str, str] = {
    "--format": "the result is a value",
    "--yes": "nobody is asked: what writes goldens has write=True",
    "--list-rules": "goldenctl.lint.RULES has them",
    "--exit-code": "the result says what differs",
}
"""Options of any command that say how a result is shown or asked for, and why no twin has them."""
EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("refresh", "--dry-run"): "the twin plans unless write=True",
    ("restore", "--dry-run"): "the twin plans unless write=True",
    ("refresh", "--report"): "goldenctl.api.report draws a refresh by its id",
    ("report", "--to"): "the twin returns the report, goldenctl.report draws it",
    ("verify", "--require"): "chooses the exit code; the result's below(level) has the files",
    ("diff", "--metric"): "chooses the lines shown; goldenctl.diff.rows takes metrics",
    ("diff", "--sort"): "orders the lines shown; goldenctl.diff.rows takes sort",
    ("diff", "--top"): "chooses the lines shown, and a slice of the rows is the same",
    ("diff", "--threshold"): "chooses the lines shown; goldenctl.diff.rows takes threshold",
    ("triage", "--all"): "chooses the lines shown; the result has all rows",
    ("tolerance", "--for"): "words the settings shown; goldenctl.tolerance.settings_block takes the scope",
    ("capture", "--output"): "the twin returns the document, whose render gives the bytes",
    ("capture", "--force"): "the twin writes no file that could be in the way",
}
"""Command and option → why its twin has no such parameter; everything else it must have."""


def parameter_of(option: str) -> str:
    """The parameter an option is in Python."""
    name = option.removeprefix("--").replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def lacking() -> dict[tuple[str, str], str]:
    """Command and option → the parameter its twin does not have."""
    found = {}
    for name, command in COMMANDS.items():
        has = inspect.signature(getattr(goldenctl.api, name.replace(" ", "_").replace("-", "_"))).parameters
        for parameter in command.params:
            option = max(parameter.opts, key=len)
            if parameter.param_type_name == "option" and option != "--help" and parameter_of(option) not in has:
                found[name, option] = parameter_of(option)
    return found


def test_a_twin_has_a_parameter_for_every_option_of_its_command() -> None:
    assert {k: v for k, v in lacking().items() if k[1] not in OUTPUT and k not in EXCEPTIONS} == {}


def test_an_option_that_a_twin_may_lack_is_lacking() -> None:
    found = lacking()
    assert [k for k in EXCEPTIONS if k not in found] == []
    assert [o for o in OUTPUT if o not in {option for _, option in found}] == []
    assert [
        o for o in OUTPUT for name in COMMANDS if any(o in p.opts for p in COMMANDS[name].params) and (name, o) not in found
    ] == []


def test_no_function_of_the_library_is_without_a_command() -> None:
    public = {n: f for n, f in vars(goldenctl.api).items() if n in goldenctl.api.__all__ and inspect.isfunction(f)}
    own = {n for n, f in public.items() if f.__module__.startswith("goldenctl.api")}
    assert own == {name.replace(" ", "_").replace("-", "_") for name in COMMANDS}


def test_importing_the_package_loads_none_of_it() -> None:
    code = "import sys, goldenctl; print(sorted(m for m in sys.modules if m.startswith('goldenctl')))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(TOP / "src")},
    )
    assert done.stdout == "['goldenctl', 'goldenctl.version']\n"


def test_the_twins_say_what_the_commands_say(
    top: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(top)
    api = goldenctl.api

    def said(*arguments: str) -> Any:
        main([*arguments, "--format", "json"])
        return json.loads(capsys.readouterr().out)

    assert len(api.lint()) == len(said("lint")["findings"]) == 30
    assert len(api.lint(["goldens/moe"], against="main")) == len(said("lint", "goldens/moe", "--against", "main")["findings"])
    planned = api.refresh(["ci-run"], only="nonfinite", fix=True)
    assert [f.action.value for f in planned.files].count("would-write") == 7
    assert [f.status.value for f in api.diff("main", "WORKTREE").files].count("changed") == 8
    assert api.verify([NAN], against=["main"]).files[0].matches[0].level.value == "different"
    assert not api.check(Path(GOLDEN).read_bytes(), Path(OTHER).read_bytes()).passed
    assert api.triage("ci-run").counts == said("triage", "--from-job", "ci-run")["counts"]
    assert all(p.exact for p in api.tolerance([GOLDEN, GOLDEN, GOLDEN]))
    assert json.loads(api.capture([Path("logs")]).render())["lm loss"]["values"] == {"1": 10.5, "2": 10.25}
    assert [p.path for p in api.review()] == [OTHER]
    assert not api.gate_audit(Path(GOLDEN).read_bytes()).let_through
    assert len(api.coverage().cells) == 42
    assert api.catalog_build().documents == 92
    assert api.catalog_update().new_documents == 0
    assert api.catalog_status().rows["golden"] == 42
    assert api.catalog_sql("SELECT count(*) FROM golden").rows() == [(42,)]
    assert api.record("ci-run").new == 41
    assert api.archive("ci-run", to=str(top / "kept")).members == 41
    assert len(api.log(NAN)) == len(said("log", NAN)["revisions"])
    assert len(api.blame(NAN)) == len(said("blame", NAN)["metrics"])
    assert api.drift(GOLDEN)[0] == []
    assert api.sync_plan().missing == 0
    assert len(api.sync_audit("sync:2026-04-28").files) == 42
    assert [f.action.value for f in api.restore([NAN], from_="main").files] == ["would-write"]
    assert len(api.report("main", "WORKTREE").entries) == 8
    assert len(api.catalog_export(top / "parquet")) == 15
    assert api.install(merge_driver=True)
    assert not api.merge_driver(Path(GOLDEN), Path(GOLDEN), Path(OTHER), GOLDEN).conflict
    assert "lm loss" in api.textconv(Path(NAN).read_bytes())


EXTRAS: Mapping[str, tuple[tuple[str, ...], str, str]] = {
    "capture": (ROWS["capture"].arguments, "tensorboard", "capture"),
    "tolerance": (("tolerance", "--from-runs", "logs", "logs"), "tensorboard", "capture"),
    "drift": (("drift", "--threshold", "0.0001"), "ruptures", "drift"),
    "report": (("report", "main", "WORKTREE", "--to", "r.html"), "jinja2", "report"),
    "refresh": (("refresh", "--from-job", "s3://bucket/run", "--yes"), "boto3", "s3"),
    "triage": (("triage", "--from-job", "mlflow:0123456789abcdef0123456789abcdef"), "mlflow", "mlflow"),
    "archive": (("archive", "--from-job", "ci-run", "--to", "s3://bucket/kept"), "boto3", "s3"),
}
"""Command line → the package it lacks and the extra that brings it."""


@pytest.mark.parametrize("name", EXTRAS)
def test_a_command_that_lacks_its_extra_says_the_pip_line(
    name: str, top: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, package, extra = EXTRAS[name]
    monkeypatch.chdir(top)
    if name == "drift":
        assert main(["catalog", "build"]) == 0
    real = builtins.__import__

    def without(module: str, *more: Any, **others: Any) -> Any:
        if module.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        return real(module, *more, **others)

    loaded = [
        m for m in sys.modules if m.partition(".")[0] == package or m in ("goldenctl.sources.s3", "goldenctl.sources.mlflow")
    ]
    for module in loaded:
        monkeypatch.delitem(sys.modules, module)
        if module.startswith("goldenctl."):  # its parent keeps it otherwise
            monkeypatch.delattr(module)
    monkeypatch.setitem(sys.modules, package, None)  # for find_spec and importlib
    monkeypatch.setattr(builtins, "__import__", without)
    code = main(arguments)
    err = capsys.readouterr().err
    assert code == 2, err
    assert f"next: pip install 'goldenctl[{extra}]'" in err
    assert package.partition("_")[0] in err


def test_the_package_says_that_it_is_typed() -> None:
    assert (TOP / "src/goldenctl/py.typed").is_file()


def test_hints_of_the_library_are_names_that_exist() -> None:
    for name in ("lint", "refresh", "restore", "install", "textconv"):
        assert get_type_hints(getattr(goldenctl.api, name))["return"]
