"""What the test case's ``model_config.yaml`` beside a golden says about its comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from goldenctl import yamlfile
from goldenctl.yamlfile import LARGEST, text

NAME = "model_config.yaml"
MODES = ("pretraining", "inference", "rl")


@dataclass(frozen=True, slots=True)
class TestConfig:
    """The settings of one test case that decide how its golden is used."""

    __test__ = False  # pytest collects classes named Test…

    metrics: tuple[str, ...] = ()
    """Required metrics; empty means the harness's default."""
    metrics_given: bool = False
    """The file has a ``METRICS`` key, be it empty."""
    mode: str = "pretraining"
    """``pretraining``, ``inference`` or ``rl``."""
    test_type: str = ""
    """``regular``, ``ckpt-resume``, ``frozen-start``, ``frozen-resume``, ``release``, ``checkpoint-consistency``."""
    approximate_only: bool = False
    """The case is declared non-deterministic: the exact lane is skipped."""
    skip_pytest: bool = False
    """The harness compares nothing."""
    lightweight: bool = False
    """The case always runs a few steps only."""
    train_iters: int | None = None
    """``--train-iters``; None when not given as a number."""
    exit_interval: int | None = None
    """``--exit-interval``; None when not given as a number."""
    throughput_start: int = 1
    """First list index of the throughput window in rl cases."""

    @property
    def last_step(self) -> int | None:
        """The step a complete run reaches; None when the file does not say."""
        known = [n for n in (self.train_iters, self.exit_interval) if n]
        return min(known, default=None)

    @property
    def required(self) -> tuple[str, ...]:
        """The metrics the harness asks for: ``METRICS``, else its default for pretraining."""
        if self.metrics or self.metrics_given or self.mode != "pretraining":
            return self.metrics
        return ("lm loss", "num-zeros")

    @property
    def expects_golden(self) -> bool:
        """Whether a run of the case is compared with a golden file at all."""
        return not (self.skip_pytest or self.lightweight or self.test_type == "checkpoint-consistency")


@dataclass(frozen=True, slots=True)
class Loaded:
    """One folder's configuration, or why there is none."""

    config: TestConfig | None
    note: str = ""
    """Why a file that is there could not be used; empty otherwise."""


def beside(path: Path) -> TestConfig | None:
    """The configuration in a golden's folder; None when there is none or it cannot be read."""
    return load(path.parent).config


def load(folder: Path) -> Loaded:
    """A folder's ``model_config.yaml``, read once for as long as it does not change. Never raises for what it holds."""
    path = folder / NAME
    try:
        state = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return Loaded(None)
    except OSError as exc:
        return Loaded(None, f"{path}: {exc.strerror}")
    return _read(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4096)
def _read(path: Path, _changed: int, _size: int) -> Loaded:
    try:
        return parse(path.read_bytes(), str(path))
    except OSError as exc:
        return Loaded(None, f"{path}: {exc.strerror}")


def parse(raw: bytes, name: str = NAME) -> Loaded:
    """Read the bytes of a ``model_config.yaml``. Never raises for what they hold."""
    try:
        value = yamlfile.load(raw)
    except yamlfile.YamlError as exc:
        return Loaded(None, f"{name} is not readable YAML: {exc}")
    if not isinstance(value, Mapping):
        return Loaded(None, f"{name} holds no settings")
    return Loaded(_config(value))


def _config(value: Mapping[Any, Any]) -> TestConfig:
    env, arguments = _mapping(value.get("ENV_VARS")), _mapping(value.get("MODEL_ARGS"))
    metrics = value.get("METRICS")
    mode = text(value.get("MODE") or "pretraining")
    return TestConfig(
        metrics=tuple(map(text, metrics)) if isinstance(metrics, list) else (),
        metrics_given="METRICS" in value,
        mode=mode if mode in MODES else "pretraining",
        test_type=text(value.get("TEST_TYPE") or ""),
        approximate_only=any(_one(env.get(k)) for k in ("NVTE_ALLOW_NONDETERMINISTIC_ALGO", "NON_DETERMINSTIC_RESULTS")),
        skip_pytest=_one(env.get("SKIP_PYTEST")),
        lightweight=_true(env.get("ENABLE_LIGHTWEIGHT_MODE")),
        train_iters=_number(arguments.get("--train-iters")),
        exit_interval=_number(arguments.get("--exit-interval")),
        throughput_start=_number(env.get("THROUGHPUT_START_STEP")) or 1,
    )


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _one(value: Any) -> bool:
    """The harness's switch: the number or text 1; ``true`` is none."""
    return text(value) == "1"


def _true(value: Any) -> bool:
    """The harness's switch for lightweight mode: the text or boolean true."""
    return text(value).lower() == "true"


def _number(value: Any) -> int | None:
    spelled = text(value)
    return int(spelled) if spelled.isdecimal() and len(spelled) <= len(str(LARGEST)) else None
