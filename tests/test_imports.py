"""A hook at every commit must not pay for clients it does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("polars", "duckdb", "boto3", "botocore", "mlflow", "httpx", "requests", "urllib3", "numpy")
PROBE = """
import sys
from goldenctl.cli.entry import main
try:
    main({arguments!r})
except SystemExit:
    pass
print("LOADED", sorted(m for m in {heavy!r} if m in sys.modules))
"""


@pytest.mark.parametrize(
    "arguments", [["--help"], ["lint"], ["lint", "--format", "json"], ["lint", "--help"], ["refresh", "--help"]]
)
def test_help_and_lint_load_no_heavy_client(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "goldens/gpt/case").mkdir(parents=True)
    (tmp_path / "goldens/gpt/case/golden_values_dev_dgx_h100.json").write_text("{}")
    code = PROBE.format(arguments=arguments, heavy=HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(Path("src").resolve())},
    )
    assert done.stdout.splitlines()[-1] == "LOADED []", done.stderr
