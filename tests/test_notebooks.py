"""The notebooks run from top to bottom on our own goldens, use only the public API, and are stored without output."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

TOP = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((TOP / "notebooks").glob("*.ipynb"))
CHARTS = {"compare_syncs": 3, "nan_debt": 3, "platforms": 2, "run_noise": 2}
PUBLIC = {"os", "altair", "polars", "goldenctl"}


def read(path: Path) -> Any:
    return nbformat.reads(path.read_text("utf-8"), 4)  # type: ignore[no-untyped-call]


def code(document: Any) -> list[str]:
    return [cell.source for cell in document.cells if cell.cell_type == "code"]


@pytest.fixture(scope="session")
def catalogued(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository of `make demo`, its history in a catalog, and three runs recorded."""
    top = tmp_path_factory.mktemp("catalogued")
    environment = os.environ | {"PYTHONPATH": str(TOP / "src")}
    make = "import demo, pathlib, sys; demo.scratch(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", make, top], check=True, cwd=TOP / "data")
    runs = (["record", "--from-job", ref] for ref in ("ci-run", "git:main", "git:main~1"))
    for words in (["catalog", "build"], *runs):
        subprocess.run([sys.executable, "-m", "goldenctl", *words], check=True, cwd=top, env=environment, capture_output=True)
    return top


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_runs_and_every_chart_has_something_to_show(
    path: Path, catalogued: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TOP / "src"))
    document = read(path)
    NotebookClient(document, timeout=120, resources={"metadata": {"path": str(catalogued)}}).execute()
    pages = [o["data"]["text/html"] for c in document.cells for o in c.get("outputs", ()) if "text/html" in o.get("data", {})]
    charts = [page for page in pages if "vega-lite" in page]
    assert len(charts) == CHARTS[path.stem]
    for chart in charts:
        assert re.search(r'"data-[0-9a-f]+": \[\{', chart)
        assert not re.search(r'"data-[0-9a-f]+": \[\]', chart)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_is_stored_without_output(path: Path) -> None:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    assert all(c["outputs"] == [] and c["execution_count"] is None for c in cells if c["cell_type"] == "code")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_uses_the_public_interface_alone(path: Path) -> None:
    tree = ast.parse("\n".join(code(read(path))))
    imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    assert imported <= PUBLIC
    assert not any(isinstance(n, ast.ImportFrom) for n in ast.walk(tree))
    used = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and getattr(n.value, "id", "") == "goldenctl"}
    assert used == {"open_catalog"}


def test_every_chart_in_the_documentation_is_one_a_notebook_makes() -> None:
    shown = {p for page in (TOP / "docs").rglob("*.md") for p in re.findall(r"pictures/([\w-]+\.png)", page.read_text("utf-8"))}
    assert shown <= {p.name for p in (TOP / "docs/pictures").glob("*.png")}
    made = {f"{name}-{i}.png" for name, n in CHARTS.items() for i in range(1, n + 1)}
    assert {p for p in shown if not p.startswith("report")} <= made
