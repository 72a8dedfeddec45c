"""A few seconds of every campaign, and the campaigns' own promises: guided, bounded, kept in their folder."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.fuzz import seeds
from tests.fuzz.guard import OutsideError, keeper
from tests.fuzz.targets import TARGETS

pytestmark = pytest.mark.usefixtures("_own_folder")
CASES = 150
"""Damaged seeds of each target."""
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["nan", "-inf", "x", ""]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["values", "1", "2", "lm loss", "٣"]), inner),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def _own_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The folder a target may write to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GOLDENCTL_FUZZ_TMP", str(tmp_path_factory.mktemp("fuzz")))
        yield


def _damaged(case: bytes, chance: random.Random) -> bytes:
    """A seed with a few of its bytes changed, left out, doubled or cut off."""
    for _ in range(chance.randrange(1, 5)):
        at, length = chance.randrange(len(case) + 1), chance.randrange(1, 9)
        new = chance.choice((bytes([chance.randrange(256)]), b"", case[at : at + length] * 2, b"9" * 30, b'"nan"'))
        case = case[:at] + new + case[at + length :] if chance.random() < 0.9 else case[:at]
    return case


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_their_damaged_copies_break_no_promise(name: str) -> None:
    chance = random.Random(9)
    first = [case[:4096] for case in seeds.of(name)]
    for case in [*first, *(_damaged(chance.choice(first), chance) for _ in range(CASES))]:
        TARGETS[name](case)


@pytest.mark.parametrize("name", TARGETS)
def test_some_seed_of_every_target_goes_beyond_the_first_check(name: str) -> None:
    assert any(TARGETS[name](case) for case in seeds.of(name))


@pytest.mark.parametrize("name", TARGETS)
def test_no_bytes_break_a_promise(name: str) -> None:
    @settings(max_examples=25)
    @given(st.binary(max_size=200))
    def any_bytes(case: bytes) -> None:
        TARGETS[name](case)

    any_bytes()


@settings(max_examples=150)
@given(_JSON)
@example({"a": {"values": {"1": float("nan")}}})
def test_no_json_breaks_a_promise(value: object) -> None:
    raw = json.dumps(value).encode()
    TARGETS["document"](raw)
    TARGETS["pair"](raw)
    for kind in range(4):
        TARGETS["edits"](bytes([kind, 1, 1]) + raw)


def _campaign(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("atheris", reason="libFuzzer has a wheel for Linux on x86-64 only")
    command = [sys.executable, "-m", "tests.fuzz", "--seed", "1", "--keep", str(tmp_path / "kept"), *arguments]
    return subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120)


def test_a_campaign_is_guided_to_its_find_and_prints_it_as_a_line_of_python(tmp_path: Path) -> None:
    done = _campaign(tmp_path, "--seconds", "40", "planted")
    assert done.returncode == 1
    assert "TARGETS['planted'](b'NaN!" in done.stdout
    assert "the planted fault" in done.stderr


def test_a_campaign_starts_from_its_seeds_and_says_how_many_cases_were_whole(tmp_path: Path) -> None:
    done = _campaign(tmp_path, "--runs", "200", "configuration")
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"cases": 200, "whole": ' in done.stdout
    assert '"whole": 0' not in done.stdout


def test_an_unknown_target_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    done = _campaign(tmp_path, "zip")
    assert done.returncode == 2
    assert "archive" in done.stderr


def test_nothing_is_written_started_or_asked_outside_of_the_folder(tmp_path: Path) -> None:
    refuse = keeper(tmp_path / "own")
    write = 1
    refuse("open", (str(tmp_path / "own/file"), "w", write))
    refuse("open", ("/etc/hosts", "r", 0))
    for event, arguments in (
        ("open", (str(tmp_path / "other"), "w", write)),
        ("open", (str(tmp_path / "own/../other"), "w", write)),
        ("os.rename", (str(tmp_path / "own/file"), str(tmp_path / "other"), -1, -1)),
        ("subprocess.Popen", ("git", ["git"], None, None)),
        ("socket.connect", (None, ("127.0.0.1", 80))),
    ):
        with pytest.raises(OutsideError):
            refuse(event, arguments)
