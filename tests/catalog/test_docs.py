"""docs/catalog.md names every table there is, and its examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from goldenctl.catalog import parsing, rows, sql, transfer
from goldenctl.catalog.query import TABLES
from tests.catalog.world import FIRST, H100, World

DOCS = (Path(__file__).parents[2] / "docs" / "catalog.md").read_text("utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| [^|]+ \|$", DOCS, re.MULTILINE)


@pytest.fixture
def filled(world: World) -> World:
    world.commit({H100: FIRST})
    world.build()
    return world


def test_every_public_table_and_the_view_are_documented() -> None:
    assert [*TABLES, "golden_value"] == ROWS


def test_every_table_of_the_catalog_is_public_or_its_own_business(filled: World) -> None:
    found = sql(filled.path, "SELECT table_name FROM duckdb_tables()")["table_name"]
    assert set(found) - set(TABLES) == {"meta"}


def test_the_examples_in_sql_run(filled: World) -> None:
    section = DOCS.partition("## Tables")[2].partition("## Why")[0]
    code = "\n".join(line for line in section.splitlines() if line.startswith("    "))
    queries = [q for q in code.split(";") if q.strip()]
    assert len(queries) == 2
    for query in queries:
        assert sql(filled.path, query).width == 3


def test_what_a_stop_costs_is_what_is_stored_at_once() -> None:
    store = Path(__file__).parents[2] / "docs" / "store.md"
    portion, batch, few = parsing._PORTION >> 20, rows.BATCH_BYTES >> 20, parsing.WORTH_A_PROCESS
    assert f"in portions of {portion} MiB of JSON ({batch} MiB where fewer than {few} are new)" in DOCS
    assert f"copy pieces of {transfer.PIECE:,} values" in store.read_text("utf-8")
