"""The page on the architecture says what import-linter checks and what the tree has."""

from __future__ import annotations

import ast
import re
import tomllib

from goldenctl import model
from tests.product.world import TOP

PAGE = (TOP / "docs/architecture.md").read_text("utf-8")
PACKAGE = TOP / "src/goldenctl"
LAYERS: list[str] = next(
    c["layers"] for c in tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    if c["type"] == "layers"
)  # fmt: skip


def rows() -> list[tuple[str, str]]:
    """First and second cell of each row of the table of layers."""
    table = PAGE.partition("| layer |")[2].partition("\n\n")[0].splitlines()[2:]
    return [(cells[1].strip(), cells[2]) for cells in (line.split("|") for line in table)]


def modules(cell: str) -> list[str]:
    return [name.rstrip("/") for name in re.findall(r"`(\w+/?)`", cell)]


def test_the_table_has_the_layers_that_are_checked_in_their_order() -> None:
    checked = [set(layer.split(" | ")) for layer in LAYERS]
    said = [set(modules(part)) for name, cell in rows() for part in (cell.split(";") if name == "leaves" else [cell])]
    assert said == checked


def test_the_table_has_every_module_and_says_which_are_packages() -> None:
    names = [name for _, cell in rows() for name in re.findall(r"`(\w+/?)`", cell)]
    files = [p.stem for p in PACKAGE.glob("*.py") if not p.stem.startswith("__")]
    folders = [f"{p.parent.name}/" for p in PACKAGE.glob("*/__init__.py")]
    assert sorted(names) == sorted([*files, *folders])


def test_the_values_that_travel_are_in_the_model() -> None:
    table = PAGE.partition("| value |")[2].partition("\n\n")[0].splitlines()[2:]
    values = [name for line in table for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    assert len(values) == 10
    assert [v for v in values if not hasattr(model, v)] == []


def test_the_library_neither_prints_nor_asks() -> None:
    for path in (PACKAGE / "api").glob("*.py"):
        called = {
            n.func.id for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        }
        assert not called & {"print", "input"}, path
