"""The repository that every command meets, and one row a command: how it is called there."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import typer.main

from goldenctl import config, pending
from goldenctl.cli.app import COMMANDS, build
from tests.verdicts.events import write_events

TOP = Path(__file__).resolve().parents[2]
CASE = "moe/gpt3_moe_mcore_te_tp2_pp2_ep4"
NAN = f"goldens/{CASE}/golden_values_dev_dgx_h100.json"
GOLDEN = "goldens/bert/bert_mcore_tp1_pp2/golden_values_dev_dgx_h100.json"
OTHER = "goldens/bert/bert_mcore_tp1_pp2/golden_values_dev_dgx_gb200.json"


@dataclass(frozen=True)
class Row:
    """One command."""

    arguments: tuple[str, ...]
    code: int = 0
    """Exit code in a repository in order."""
    writes: bool = False
    """It changes files of the tree."""
    catalog: bool = False
    """It cannot do its work without the catalog."""
    settings: bool = True
    """It reads the settings."""
    codes: dict[str, int] = field(default_factory=dict)
    """State → exit code where it is another than the state's rule says."""
    service: tuple[str, ...] = ()
    """The arguments with a service in the run's place; empty for a command that asks none."""


def row(line: str, code: int = 0, **more: Any) -> Row:
    """A row from a command line without quotes."""
    arguments = tuple(line.split())
    service = tuple(w.replace("ci-run", "github:17000000001") for w in arguments) if "ci-run" in arguments else ()
    return Row(arguments, code, service=service, **more)


FILLS = {"none": 4, "read-only": 4, "locked": 4}
"""What fills the catalog needs a repository, and the catalog for itself."""
ROWS = {
    "lint": row("lint", 1),
    "refresh": row("refresh --from-job ci-run --only nonfinite --fix --yes", 1, writes=True, codes={"locked": 4}),
    "verify": row("verify --against main", codes={"none": 4}),
    "diff": row("diff main WORKTREE --exit-code", 1),
    "check": row(f"check {GOLDEN} {OTHER}", 1),
    "triage": row("triage --from-job ci-run", 1),
    "tolerance": row(f"tolerance --from-runs {GOLDEN} {GOLDEN} {GOLDEN}"),
    "capture": row("capture logs --output captured.json", writes=True, settings=False),
    "review": row("review --accept *", writes=True, codes={"read-only": 1}),
    "gate-audit": row(f"gate-audit {GOLDEN} --rules strict"),
    "coverage": row("coverage"),
    "catalog build": row("catalog build", codes=FILLS),
    "catalog update": row("catalog update", codes=FILLS),
    "catalog status": row("catalog status", catalog=True),
    "catalog sql": Row(("catalog", "sql", "FROM golden LIMIT 1"), catalog=True),
    "catalog export": row("catalog export --to parquet", writes=True, catalog=True),
    "store push": row("store push", 2),  # these rows meet the demo's settings, which name no store
    "store pull": row("store pull --catalog .goldenctl/pulled.duckdb", 2),
    "store status": row("store status", 2),
    "store compact": row("store compact", 2),
    "store clean": row("store clean --older-than 30d", 2),
    "log": row(f"log {NAN}", catalog=True),
    "blame": row(f"blame {NAN}", catalog=True),
    "drift": row(f"drift {GOLDEN}", catalog=True),
    "sync plan": row("sync plan"),
    "sync audit": row("sync audit sync:2026-04-28"),
    "restore": row(f"restore {NAN} --from main --yes", writes=True, codes={"none": 4, "read-only": 1, "locked": 4}),
    "record": row("record --from-job ci-run", codes={"read-only": 4, "locked": 4}),
    "archive": row("archive --from-job ci-run --to kept", writes=True),
    "report": row("report main WORKTREE --to report.md", writes=True),
    "install": row("install", writes=True, codes={"none": 4}),
    "merge-driver": row(
        f"merge-driver {GOLDEN} {GOLDEN} {OTHER} {GOLDEN}", writes=True, settings=False, codes={"none": 4, "empty": 4}
    ),
    "textconv": row(f"textconv {GOLDEN}", settings=False, codes={"none": 4, "empty": 4}),
}


def tree() -> Any:
    """The option parser with every command."""
    return typer.main.get_command(build(COMMANDS))


def walk(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Name and parser of every command, those of groups with both words."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from walk(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


def demo() -> ModuleType:
    """The module that builds the demo's repository."""
    sys.path.insert(0, str(TOP / "data"))
    try:
        spec = importlib.util.spec_from_file_location("goldenctl_demo", TOP / "data/demo.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(TOP / "data"))
    return module


def plant(top: Path) -> None:
    """The demo's repository, with logs of a run, a proposal of a test and a catalog."""
    top.mkdir()
    demo().scratch(top)
    (top / ".gitignore").write_text(".goldenctl/\nci-run/\nlogs/\n")
    write_events(top / "logs/events.out.tfevents.1.host", {"lm loss": {1: 10.5, 2: 10.25}})
    settings = config.load(top)
    pending.propose(settings, pending.Pending(OTHER, (top / OTHER).read_bytes() + b"\n", "a test", "changed"))


def share(top: Path) -> None:
    """Name a store in the settings of a planted repository."""
    settings = top / "goldenctl.toml"
    place = top / ".goldenctl"
    settings.write_text(f'{settings.read_text()}\n[store]\nmetadata = "{place}/lake.ducklake"\ndata = "{place}/lake"\n')


def copy(template: Path, top: Path) -> Path:
    """A repository of its own."""
    return Path(shutil.copytree(template, top, symlinks=True))


def digest(top: Path) -> dict[str, str]:
    """Path → SHA-256 of every file of the tree, our own folder and git's index and objects left out."""
    found = {}
    for path in sorted(top.rglob("*")):
        name = path.relative_to(top).as_posix()
        if path.is_file() and not name.startswith((".goldenctl/", ".git/index", ".git/objects/", ".git/COMMIT")):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
