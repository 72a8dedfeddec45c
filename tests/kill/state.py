"""What a killed command left behind: files, and what the catalog or the store holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goldenctl import config
from goldenctl.catalog import store, transfer
from goldenctl.catalog.places import Place, shared
from tests.kill.commands import CATALOG, LAKE
from tests.kill.processes import computed

_DATA = ".goldenctl/lake/"
_HALVES = {
    "documents without all their series": """
        SELECT d.id FROM document AS d LEFT JOIN (SELECT document, count(*) AS n FROM series GROUP BY document) AS s
        ON s.document = d.id WHERE d.n_series <> coalesce(s.n, 0)
    """,
    "series without all their values": """
        SELECT s.content FROM (SELECT DISTINCT content, n_values FROM series) AS s
        LEFT JOIN (SELECT content, count(*) AS n FROM "value" GROUP BY content) AS v USING (content)
        WHERE s.n_values <> coalesce(v.n, 0)
    """,
    "documents that are there twice": "SELECT id FROM document GROUP BY id HAVING count(*) > 1",
    "revisions without their document": """
        SELECT r.document FROM revision AS r WHERE r.document IS NOT NULL AND r.document NOT IN (SELECT id FROM document)
    """,
    "refreshes without files": "SELECT id FROM refresh WHERE id NOT IN (SELECT refresh FROM refresh_file)",
}


@dataclass(frozen=True)
class Held:
    """What a catalog or store holds."""

    documents: int
    revisions: int
    halves: dict[str, int]
    """What is there in part only, with its number; empty when all is whole."""
    totals: dict[str, tuple[int, str]]
    """Rows and checksum of each table."""


def goldens(top: Path) -> dict[str, bytes]:
    """Golden path → content."""
    return {path.relative_to(top).as_posix(): path.read_bytes() for path in (top / "goldens").rglob("*.json")}


def names(top: Path) -> set[str]:
    """Every file but git's own, the parts of a database that is open for reading still, and the store's data."""
    found = {path.relative_to(top).as_posix() for path in top.rglob("*") if not path.is_dir()}
    return {name for name in found if not name.startswith((".git/", _DATA)) and not name.endswith(".wal")}


def held(top: Path, *, lake: bool) -> Held | None:
    """What the catalog or the store holds; None when there is none yet."""
    if not (top / (LAKE if lake else CATALOG)).exists():
        return None
    found = computed(lambda: _asked(shared(config.load(top)) if lake else top / CATALOG))
    return Held(found[0], found[1], found[2], {table: (total[0], total[1]) for table, total in found[3].items()})


def _asked(place: Place) -> list[Any]:
    with store.reading(place) as connection:

        def number(query: str) -> int:
            return int((store.first_row(connection, f"SELECT count(*) FROM ({query})") or [0])[0])

        halves = {name: count for name, query in _HALVES.items() if (count := number(query))}
        totals = {kept.name: transfer._total(connection, kept, "") for kept in (*transfer.CONTENT, *transfer.RECORDS)}
        return [number("FROM document"), number("FROM revision"), halves, totals]


def data_files(top: Path) -> int:
    """Number of files in the store's data folder."""
    return sum(path.is_file() for path in (top / _DATA).rglob("*"))


def counts(said: str) -> tuple[int, int]:
    """Documents, and those of them that are new, as a build says."""
    found = re.search(r"([\d,]+) documents, ([\d,]+) of them new", said)
    assert found, said
    return int(found[1].replace(",", "")), int(found[2].replace(",", ""))
