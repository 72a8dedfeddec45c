"""One language: an option means the same in every command, and every command says its result as JSON and shows an example."""

from __future__ import annotations

import inspect
import json
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from goldenctl.cli.entry import main
from tests.product.world import ROWS, plant, share, tree, walk

COMMANDS = dict(walk(tree()))
MANY = "; may be repeated."
OWN: dict[tuple[str, str], str] = {
    ("--format", "lint"): "also github and sarif, and no Markdown",
    ("--format", "diff"): "also CSV",
    ("--format", "catalog sql"): "also CSV, and no Markdown",
    ("--from-job", "triage"): "sorts one run",
    ("--metric", "log"): "draws one curve",
    ("--against", "lint"): "what was lost since one revision",
    ("--store", "diff"): "reads the two sides it is given, and asks the store for what that has of them",
    ("--branch", "catalog build"): "a catalog holds many branches, a question follows one",
    ("--branch", "catalog update"): "as catalog build",
    ("--threshold", "drift"): "a change point needs a size",
    ("--rules", "gate-audit"): "audits several, all of them without",
    ("--policy", "merge-driver"): "git passes none: .gitattributes has it",
    ("--to", "report"): "several files",
    ("--to", "archive"): "a folder or s3://…, which the settings may name",
    ("--to", "catalog export"): "a folder",
}
"""Option and command → why it differs from the other commands in type, default or text."""
SILENT = {"merge-driver": "git reads the exit code", "textconv": "git reads the text"}
"""Commands without ``--format``, and why."""
KEYS = {
    "lint": {"files_checked", "findings", "summary"},
    "refresh": {"run", "files", "summary"},
    "verify": {"files", "summary"},
    "diff": {"old", "new", "files"},
    "check": {"pass", "rules", "metrics"},
    "triage": {"run", "jobs", "counts", "clusters", "not_covered", "commands"},
    "log": {"path", "revisions"},
    "blame": {"path", "metrics"},
    "drift": {"changes"},
    "coverage": {"cases"},
    "sync audit": {"sync", "counts", "files"},
}
"""Keys of the contract."""
INNER = {
    ("lint", "findings"): {"rule", "severity", "path", "metric", "count", "steps", "kind", "message", "baselined"},
    ("refresh", "files"): {
        "path", "case", "environment", "platform", "variant", "action", "reason", "job", "attempt", "artifact", "sha256",
        "findings", "matches", "metrics",
    },
    ("verify", "files"): {"path", "matches"},
    ("diff", "files"): {"path", "status", "metrics"},
    ("check", "metrics"): {
        "metric", "pass", "exact", "approximate", "n_steps", "n_exceeding", "worst_step", "max_rel_diff", "reason",
    },
    ("triage", "jobs"): {"job", "case", "platform", "environment", "verdict", "metrics"},
    ("log", "revisions"): {"commit", "date", "sync", "change", "metrics", "nan_in", "nan_out"},
    ("blame", "metrics"): {"metric", "commit", "date", "via", "run", "unchanged_since"},
    ("coverage", "cases"): {"case", "platform", "environment", "state"},
    ("sync audit", "files"): {"path", "class"},
}  # fmt: skip


@dataclass(frozen=True)
class Meaning:
    """What an option is in one command."""

    kind: object
    many: bool
    default: object
    text: str


def options(command: Any) -> Iterator[tuple[str, Meaning]]:
    hints = get_type_hints(inspect.unwrap(command.callback))
    for parameter in command.params:
        if parameter.param_type_name != "option" or parameter.name == "help":
            continue
        hint = hints[parameter.name]
        whole = next((k for k in get_args(hint) if k is not type(None)), hint) if isinstance(hint, UnionType) else hint
        many = get_origin(whole) is list
        kind = get_args(whole)[0] if many else whole
        text = (parameter.help or "").replace(MANY, ".")
        yield max(parameter.opts, key=len), Meaning(kind, many, parameter.default, text)


def meanings() -> dict[str, dict[str, Meaning]]:
    found: dict[str, dict[str, Meaning]] = defaultdict(dict)
    for name, command in COMMANDS.items():
        for option, meaning in options(command):
            found[option][name] = meaning
    return found


@pytest.mark.parametrize("option", sorted(meanings()))
def test_an_option_means_the_same_in_every_command(option: str) -> None:
    found = {command: m for command, m in meanings()[option].items() if (option, command) not in OWN}
    assert len(set(found.values())) <= 1, found


def test_what_is_listed_as_different_is_so() -> None:
    found = meanings()
    for option, command in OWN:
        same = [m for other, m in found[option].items() if (option, other) not in OWN]
        assert found[option][command] not in same, (option, command)


def test_every_option_has_a_text_that_says_whether_it_may_be_repeated() -> None:
    for name, command in COMMANDS.items():
        for parameter in command.params:
            if parameter.param_type_name != "option":
                continue
            assert parameter.help, (name, parameter.name)
            hint = str(get_type_hints(inspect.unwrap(command.callback)).get(parameter.name))
            assert (MANY in parameter.help) is ("list[" in hint), (name, parameter.name)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_table_and_json(name: str) -> None:
    found = dict(options(COMMANDS[name])).get("--format")
    if name in SILENT:
        assert found is None
        return
    assert found is not None
    assert isinstance(found.kind, type) and issubclass(found.kind, Enum)
    assert {"table", "json"} <= {choice.value for choice in found.kind}
    assert getattr(found.default, "value", "") == "table"


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One repository for all: what a command writes does not matter to the keys of the next."""
    folder = tmp_path_factory.mktemp("language") / "repo"
    plant(folder)
    return folder


@pytest.mark.parametrize("name", [n for n in COMMANDS if n not in SILENT])
def test_json_has_the_keys_of_the_contract(
    name: str, top: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    row = ROWS[name]
    monkeypatch.chdir(top)
    if (row.catalog or name.startswith("store ")) and not (top / ".goldenctl/catalog.duckdb").exists():
        assert main(["catalog", "build"]) == 0
    if name.startswith("store "):
        shared = top / "goldenctl.toml"
        plain = shared.read_text()
        share(top)
        request.addfinalizer(lambda: shared.write_text(plain))
        assert main(["store", "push"]) == 0
    yes = [a if a != "--yes" else "--dry-run" for a in row.arguments]
    capsys.readouterr()
    assert main([*yes, "--format", "json"]) in (0, 1)
    said = json.loads(capsys.readouterr().out)
    if name == "catalog sql":
        assert isinstance(said, list)
        return
    assert KEYS.get(name, set()) <= set(said)
    for (command, key), wanted in INNER.items():
        if command == name:
            assert said[key]
            assert all(wanted <= set(entry) for entry in said[key])


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_a_command_has_only_options_it_has(name: str) -> None:
    text = " ".join(inspect.cleandoc(COMMANDS[name].help).partition("Example:")[2].split())
    assert text, f"{name} shows no example"
    if name == "merge-driver":
        text = re.search(r"'(goldenctl [^']+)'", text)[1]  # type: ignore[index]
    words = shlex.split(text)
    assert " ".join(words).startswith(f"goldenctl {name}")
    given = {w.partition("=")[0] for w in words if w.startswith("-")}
    assert given <= {o for p in COMMANDS[name].params for o in p.opts}
