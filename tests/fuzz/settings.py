"""Settings files and the test configurations of a repository, as a pulled branch may bring them."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from goldenctl import testconfig
from goldenctl.config import load
from goldenctl.errors import GoldenctlError
from goldenctl.lint import check
from goldenctl.recipes import RecipeError
from goldenctl.recipes import parse as parse_recipe


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="goldenctl-fuzz-", dir=os.environ.get("GOLDENCTL_FUZZ_TMP")))
    (folder / ".git").mkdir()
    return folder


def settings(data: bytes) -> bool:
    """A settings file gives settings that can be used, or an error of ours; none leads out of the repository."""
    top = _folder()
    (top / "goldenctl.toml").write_bytes(data)
    try:
        found = load(top)
        check("goldens/a/b/golden_values_dev_dgx_h100.json", b"{}", found)
    except GoldenctlError:
        return False
    found.tolerance_for("lm loss", "moe/a/golden_values_dev_dgx_h100.json")
    for path in (found.root_path, found.catalog_path, found.top / found.lint.baseline):
        assert os.path.normpath(path).startswith(os.path.normpath(found.top)), path
    return True


def configuration(data: bytes) -> bool:
    """``model_config.yaml`` and recipes never raise, whatever they hold."""
    loaded = testconfig.parse(data)
    with suppress(RecipeError):
        parse_recipe(data, "a.yaml")
    return loaded.config is not None
