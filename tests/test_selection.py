"""Options name exactly what exists, and a typo gets the nearest name."""

from __future__ import annotations

import pytest

from goldenctl.errors import UsageError
from goldenctl.model import Artifact, GoldenKey, Job
from goldenctl.selection import Selection

KEY = GoldenKey("moe", "tiny_ep8", "dev", "dgx_h100")


@pytest.mark.parametrize("glob", ["moe/tiny_ep8", "tiny_ep8", "moe/*", "*ep8"])
def test_a_glob_takes_the_case_with_or_without_its_model(glob: str) -> None:
    assert Selection((glob,)).takes(KEY)


@pytest.mark.parametrize("glob", ["moe", "tiny", "gpt/*", "Moe/tiny_ep8"])
def test_a_glob_never_takes_a_part_of_a_name(glob: str) -> None:
    assert not Selection((glob,)).takes(KEY)


def test_a_misspelt_case_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="no case matches 'moe/tiny_ep9'") as caught:
        Selection(("moe/tiny_ep9",)).check([KEY], ["dgx_h100"])
    assert caught.value.hint == "did you mean 'moe/tiny_ep8'?"


def test_a_misspelt_platform_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="unknown platform 'dgx_h10'") as caught:
        Selection((), ("dgx_h10",)).check([KEY], ["dgx_h100", "dgx_gb200"])
    assert caught.value.hint == "did you mean 'dgx_h100'?"


def test_an_artifact_is_fetched_unless_its_job_rules_it_out() -> None:
    artifact = Artifact("1", "logs", 0, job=Job("1", "moe/tiny_ep8 - latest", "moe", "tiny_ep8"))
    assert Selection(("tiny_ep8",)).may_take(artifact)
    assert not Selection(("other",)).may_take(artifact)
    assert Selection(("other",)).may_take(Artifact("2", "unknown", 0))
