"""Settings are taken as they are meant, or refused with file, key and what would do."""

from __future__ import annotations

from pathlib import Path

import pytest

from goldenctl.config import load
from goldenctl.errors import ConfigError


def settings(top: Path, text: str) -> Path:
    (top / "goldenctl.toml").write_text(text)
    return top


@pytest.mark.parametrize("root", ["goldens", "./goldens", "goldens/", ".//goldens/."])
def test_a_root_is_the_folder_however_it_is_spelled(root: str, tmp_path: Path) -> None:
    assert load(settings(tmp_path, f"root = {root!r}")).root == "goldens"


@pytest.mark.parametrize("layout", ["x", "{model}/{test_case}/golden_values.json", "{model}/golden_{platform}.json"])
def test_a_layout_that_tells_no_goldens_apart_is_refused(layout: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"goldenctl.toml: layout: .* has no \{(test_case|platform)\}"):
        load(settings(tmp_path, f'layout = "{layout}"'))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('window = "x"', "unknown window 'x'"),
        ('direction = "sideways"', "unknown direction 'sideways'"),
        ("rtol = inf", "rtol"),
        ("rtol = nan", "rtol"),
    ],
)
def test_a_tolerance_that_means_nothing_is_refused(entry: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        load(settings(tmp_path, f'[tolerance]\n"lm loss" = {{ {entry} }}'))
