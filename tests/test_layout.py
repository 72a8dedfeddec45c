"""Path ↔ key follows the layout setting, and no key leads out of root."""

import pytest

from goldenctl.layout import Layout
from goldenctl.model import GoldenKey

BASE = "moe/gpt3_moe_ep8/golden_values_dev_dgx_h100.json"


@pytest.mark.parametrize(
    ("path", "key"),
    [
        (BASE, GoldenKey("moe", "gpt3_moe_ep8", "dev", "dgx_h100")),
        ("gpt/a/golden_values_lts_dgx_a100_2nd.json", GoldenKey("gpt", "a", "lts", "dgx_a100", "_2nd")),
        ("t5/b/golden_values_lts_dgxa100_dracooci-ord.json", GoldenKey("t5", "b", "lts", "dgxa100_dracooci-ord")),
    ],
)
def test_a_path_gives_its_key_and_the_key_its_path(path: str, key: GoldenKey) -> None:
    assert Layout().parse(path) == key
    assert Layout().path(key) == path


def test_names_older_than_the_platform_suffix_are_read_as_legacy() -> None:
    assert Layout().parse("gpt/a/golden_values_lts.json") is None
    assert Layout().parse_legacy("gpt/a/golden_values_lts.json") == GoldenKey("gpt", "a", "lts", "")
    assert Layout().parse_legacy("gpt/a/golden_values.json") == GoldenKey("gpt", "a", "", "")


@pytest.mark.parametrize("part", ["..", "../x", "", "a/b", "a\0b", "/etc", ".hidden", "a b", "a..b"])
def test_a_key_with_a_part_that_is_no_plain_name_has_no_path(part: str) -> None:
    with pytest.raises(ValueError, match="plain name"):
        Layout().path(GoldenKey("gpt", part, "dev", "dgx_h100"))


def test_a_name_matches_whole_and_by_case() -> None:
    assert Layout().parse("moe/c/Golden_values_dev_dgx_h100.json") is None
    assert Layout().parse_name("golden_values_dev_dgx_gb200_2nd.json") == ("dev", "dgx_gb200", "_2nd")
    assert Layout().parse_name("golden_values_dev_dgx_h100.json.bak") is None
