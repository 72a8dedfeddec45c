"""The configuration beside a golden is read as the harness reads it, and a broken one never stops a command."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldenctl import testconfig
from goldenctl.testconfig import TestConfig

CONFIG = b"""\
ENV_VARS:
  NON_DETERMINSTIC_RESULTS: 1
  SKIP_PYTEST: 1
  ENABLE_LIGHTWEIGHT_MODE: true
TEST_TYPE: frozen-start
MODE: inference
MODEL_ARGS:
  --train-iters: 100
  --exit-interval: 50
METRICS:
  - "generated_tokens"
  - "logprobs"
"""


def config(raw: bytes) -> TestConfig:
    found = testconfig.parse(raw).config
    assert found is not None
    return found


def test_every_switch_of_the_file_is_read() -> None:
    got = config(CONFIG)
    assert (got.mode, got.test_type, got.metrics) == ("inference", "frozen-start", ("generated_tokens", "logprobs"))
    assert (got.approximate_only, got.skip_pytest, got.lightweight) == (True, True, True)
    assert (got.train_iters, got.exit_interval, got.last_step) == (100, 50, 50)
    assert not got.expects_golden


@pytest.mark.parametrize(
    ("raw", "required"),
    [
        (b"MODE: pretraining\n", ("lm loss", "num-zeros")),
        (b"TEST_TYPE: regular\nMETRICS: [iteration-time]\n", ("iteration-time",)),
        (b"MODE: inference\n", ()),
        (b"MODE: inference\nMETRICS:\n", ()),
        (b"METRICS: []\n", ()),
    ],
)
def test_pretraining_without_metrics_requires_loss_and_zeros(raw: bytes, required: tuple[str, ...]) -> None:
    assert config(raw).required == required


@pytest.mark.parametrize(
    ("env", "approximate"),
    [
        ("NVTE_ALLOW_NONDETERMINISTIC_ALGO: 1", True),
        ('NVTE_ALLOW_NONDETERMINISTIC_ALGO: "1"', True),
        ("NON_DETERMINSTIC_RESULTS: 1", True),
        ("NVTE_ALLOW_NONDETERMINISTIC_ALGO: 0", False),
        ("NVTE_ALLOW_NONDETERMINISTIC_ALGO: true", False),
        ("NON_DETERMINISTIC_RESULTS: 1", False),  # the harness's own spelling lacks an I
        ("{}", False),
    ],
)
def test_only_the_harness_own_switches_skip_the_exact_lane(env: str, approximate: bool) -> None:
    assert config(f"MODE: pretraining\nENV_VARS:\n  {env}\n".encode()).approximate_only is approximate


def test_the_file_beside_the_golden_is_used(tmp_path: Path) -> None:
    (tmp_path / "model_config.yaml").write_text("TEST_TYPE: release\n")
    found = testconfig.beside(tmp_path / "golden_values_dev_dgx_h100.json")
    assert found is not None
    assert found.test_type == "release"
    assert testconfig.beside(tmp_path / "other" / "golden_values_dev_dgx_h100.json") is None


@pytest.mark.parametrize("raw", [b"a: [1", b"\xff\xfe\x00", b"- 1\n", b"", b"x: !!python/object:os.system {}", b"[" * 2000])
def test_a_broken_file_is_none_with_a_note(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "model_config.yaml").write_bytes(raw)
    assert testconfig.beside(tmp_path / "g.json") is None
    assert "model_config.yaml" in testconfig.load(tmp_path).note


@pytest.mark.parametrize(
    "raw", [b"MODEL_ARGS: 3\nENV_VARS: [1]\nMETRICS: lm loss\nMODE: 7\n", b"MODEL_ARGS: {--train-iters: many}"]
)
def test_values_of_the_wrong_type_fall_back_to_the_defaults(raw: bytes) -> None:
    got = config(raw)
    assert (got.mode, got.metrics, got.train_iters, got.approximate_only) == ("pretraining", (), None, False)


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_raise(raw: bytes) -> None:
    assert testconfig.parse(raw).config is None or not testconfig.parse(raw).note
