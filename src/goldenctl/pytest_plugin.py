"""Compare what a test obtained with a golden file; ``--golden-update`` proposes new content for ``goldenctl review``.

::

    def test_training(golden):
        golden.assert_matches({"lm loss": {1: 10.9, 2: 10.7}}, "goldens/moe/tiny/golden_values_dev_dgx_h100.json")

A golden itself is never changed by a test run.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from goldenctl.model import GoldenKey

if TYPE_CHECKING:
    from goldenctl.config import Settings
    from goldenctl.rules import MetricVerdict, Verdict

Obtained = Mapping[str, Any] | bytes | str | Path
"""Metric → step → value (or a whole block), a document's bytes, or the path of one."""
_PROPOSED = pytest.StashKey[list[str]]()
_sessions: list[pytest.Config] = []
"""The pytest sessions of this process, the innermost last."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--golden-update`` and ``--golden-rules``."""
    group = parser.getgroup("goldenctl")
    group.addoption(
        "--golden-update",
        action="store_true",
        help="Do not fail on a difference: keep what was obtained for `goldenctl review`.",
    )
    group.addoption("--golden-rules", choices=("strict", "harness"), default="strict", help="Whose rules decide.")


def pytest_configure(config: pytest.Config) -> None:
    """Make room for what this session proposes, and let :func:`assert_matches_golden` know the session."""
    config.stash[_PROPOSED] = []
    _sessions.append(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Forget the session."""
    if config in _sessions:
        _sessions.remove(config)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say what waits for a review."""
    proposed = config.stash.get(_PROPOSED, [])
    if proposed:
        terminalreporter.section("golden files")
        for path in proposed:
            terminalreporter.line(f"pending: {path}")
        terminalreporter.line("next: goldenctl review")


@dataclass
class Golden:
    """The fixture ``golden``."""

    settings: Settings
    rules: str = "strict"
    update: bool = False
    """Propose instead of failing."""
    origin: str = ""
    """Node id of the test."""
    proposed: list[str] = field(default_factory=list)

    def assert_matches(self, obtained: Obtained, path_or_key: str | Path | GoldenKey, *, metrics: tuple[str, ...] = ()) -> None:
        """Fail with the numbers a person needs unless ``obtained`` passes against the golden.

        Parameters
        ----------
        obtained
            Metric → step → value, a document's bytes, or the path of one.
        path_or_key
            Golden path (from the repository's top, or absolute), or the golden's key.
        metrics
            Metrics compared; without any those of ``model_config.yaml`` beside the golden, else all obtained.

        Raises
        ------
        AssertionError
            It does not pass, or there is no golden; not with ``--golden-update``.
        """
        __tracebackhide__ = True
        path = _golden_path(path_or_key, self.settings)
        content = document(obtained)
        place = self.settings.top / path
        if not place.is_file():
            self._refuse(path, content, f"there is no golden {path} yet")
            return
        verdict = _judge(content, place, path, self.settings, self.rules, metrics)
        if not verdict.passed:
            self._refuse(path, content, explain(verdict, path))

    def _refuse(self, path: str, content: bytes, why: str) -> None:
        __tracebackhide__ = True
        if not self.update:
            raise AssertionError(f"{why}\n  next: run again with --golden-update, then goldenctl review")
        from goldenctl import pending

        pending.propose(self.settings, pending.Pending(path, content, self.origin, why.splitlines()[0]))
        if path not in self.proposed:
            self.proposed.append(path)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compare obtained metrics with golden files: ``golden.assert_matches(obtained, path_or_key)``."""
    return _of_session(request.config, request.node.nodeid)


def _of_session(options: pytest.Config, origin: str) -> Golden:
    from goldenctl import config

    update, by = options.getoption("--golden-update"), options.getoption("--golden-rules")
    return Golden(config.load(options.rootpath), by, update, origin, options.stash[_PROPOSED])


def assert_matches_golden(obtained: Obtained, path_or_key: str | Path | GoldenKey, *, metrics: tuple[str, ...] = ()) -> None:
    """The same check without the fixture; outside pytest by strict rules, from the current folder.

    Raises
    ------
    AssertionError
        ``obtained`` does not pass against the golden, or there is none.
    """
    __tracebackhide__ = True
    from goldenctl import config

    origin = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    one = _of_session(_sessions[-1], origin) if _sessions else Golden(config.load(Path.cwd()))
    one.assert_matches(obtained, path_or_key, metrics=metrics)


def _golden_path(path_or_key: str | Path | GoldenKey, settings: Settings) -> str:
    """The golden's path from the repository's top."""
    if isinstance(path_or_key, GoldenKey):
        relative = settings.compiled_layout.path(path_or_key)
        return settings.prefix + relative
    place = Path(path_or_key)
    if place.is_absolute():
        place = place.relative_to(settings.top)
    return place.as_posix()


def document(obtained: Obtained) -> bytes:
    """A golden document's bytes of what a test obtained: full precision, the harness's grid, indent 4."""
    if isinstance(obtained, bytes):
        return obtained
    if isinstance(obtained, str | Path):
        return Path(obtained).read_bytes()
    return json.dumps({name: _block(values) for name, values in obtained.items()}, indent=4).encode()


def _block(values: Any) -> Any:
    """A metric block of a plain mapping of steps; anything else is taken as it is."""
    if not isinstance(values, Mapping) or not values or not all(isinstance(s, int) for s in values):
        return values
    steps = sorted(values)
    gaps = [b - a for a, b in pairwise(s for s in steps if s != 1)]
    grid = {"start_step": steps[0], "end_step": steps[-1], "step_interval": math.gcd(*gaps) or 1}
    return grid | {"values": {str(s): float(values[s]) for s in steps}, "value_precision": "full"}


def _judge(content: bytes, place: Path, path: str, settings: Settings, by: str, metrics: tuple[str, ...]) -> Verdict:
    from dataclasses import replace

    from goldenctl import rules, testconfig

    raw = place.read_bytes()
    case = testconfig.beside(place) or replace(rules.assumed(raw), metrics=_all_metrics(raw))
    if metrics:
        case = replace(case, metrics=metrics, metrics_given=True)
    relative = path.removeprefix(settings.prefix)
    return rules.check(
        content, raw, case, rules=rules.Rules(by), tolerance_for=lambda name: settings.tolerance_for(name, relative)
    )


def _all_metrics(raw: bytes) -> tuple[str, ...]:
    """The golden's own metrics, where no configuration names any; empty leaves it to the document's shape."""
    from goldenctl.goldenfile import DocumentError, Shape, read

    try:
        found = read(raw)
    except DocumentError:
        return ()
    return tuple(s.metric for s in found.series) if found.shape is Shape.METRICS else ()


def explain(verdict: Verdict, path: str) -> str:
    """A failed verdict with the numbers a person needs, one line a metric."""
    lines = [f"does not match {path} by {verdict.rules} rules"]
    lines += [verdict.reason] if verdict.reason else []
    lines += [f"{m.metric}: {m.reason} [{m.tolerance}]{_numbers(m)}" for m in verdict.failed]
    return "\n".join(lines)


def _numbers(metric: MetricVerdict) -> str:
    if metric.worst_step is None:
        return ""
    sizes = f"max relative {metric.max_rel_diff or math.nan:.3g}, max absolute {metric.max_abs_diff or 0.0:.3g}"
    return f", worst at step {metric.worst_step}: {metric.worst_golden!r} → {metric.worst_obtained!r}, {sizes}"
