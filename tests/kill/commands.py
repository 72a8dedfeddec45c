"""The commands that are killed: how each is called, in which repository, and what makes its work long enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from goldenctl import config, pending
from goldenctl.catalog import parsing, rows, transfer
from tests.kill.processes import run
from tests.product.world import GOLDEN, NAN, OTHER, ROWS, plant, share

CATALOG = ".goldenctl/catalog.duckdb"
LAKE = ".goldenctl/lake.ducklake"


@dataclass(frozen=True)
class Case:
    """One command in one kind of repository."""

    arguments: tuple[str, ...]
    prepare: Callable[[Path], None] = lambda _: None
    """Makes of the planted repository what this command meets."""
    ease: Callable[[], None] = lambda: None
    """Run in the process of the command: makes it do its work in more pieces than so few goldens would."""
    watched: tuple[str, ...] = ()
    """Files whose changes are seen from outside; none for a command whose steps are all our own."""


def planted(top: Path) -> None:
    """The repository all of them meet: goldens to be repaired, three proposals, a catalog."""
    plant(top)
    settings = config.load(top)
    added = f"{Path(OTHER).parent.parent}/bert_new/golden_values_dev_dgx_h100.json"
    for path, content in ((GOLDEN, (top / GOLDEN).read_bytes() + b"\n"), (added, (top / OTHER).read_bytes())):
        pending.propose(settings, pending.Pending(path, content, "a test", "changed"))
    _done(top, "catalog", "build")


def _done(top: Path, *arguments: str) -> None:
    ended = run(top, arguments)
    assert ended.code == 0, ended.err


def _no_catalog(top: Path) -> None:
    for path in top.glob(f"{CATALOG}*"):
        path.unlink()


def _older_catalog(top: Path) -> None:
    _no_catalog(top)
    _done(top, "catalog", "build", "--branch", "main~1")


def _older_store(top: Path) -> None:
    share(top)
    _older_catalog(top)
    _done(top, "store", "push")
    _no_catalog(top)
    _done(top, "catalog", "build")


def _piecewise() -> None:
    rows.BATCH_BYTES = 1
    setattr(parsing, "batches", lambda documents: rows.batches(documents, 100_000))  # noqa: B010


def _side_by_side() -> None:
    parsing.WORTH_A_PROCESS = 1


def _small_pieces() -> None:
    transfer.PIECE = 10_000


def _files(path: str) -> tuple[str, ...]:
    return path, f"{path}.wal"


_BUILD = ROWS["catalog build"].arguments
_PUSH = ROWS["store push"].arguments
CASES: dict[str, Sequence[Case]] = {
    "refresh": (Case(ROWS["refresh"].arguments),),
    "restore": (Case(("restore", str(Path(NAN).parents[1]), "--from", "main", "--yes")),),
    "review": (Case(ROWS["review"].arguments),),
    "merge-driver": (Case(ROWS["merge-driver"].arguments),),
    "catalog build": (
        Case(_BUILD, _no_catalog, _side_by_side, _files(CATALOG)),
        Case(_BUILD, _no_catalog, _piecewise, _files(CATALOG)),
        Case(_BUILD, _older_catalog, _piecewise, _files(CATALOG)),
    ),
    "store push": (
        Case(_PUSH, share, _small_pieces, _files(LAKE)),
        Case(_PUSH, _older_store, _small_pieces, _files(LAKE)),
    ),
}
"""Name → its cases, killed in turn."""
