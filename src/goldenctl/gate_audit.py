"""Test the gate itself: break a golden or a run in known ways and see what a comparator lets through."""

from __future__ import annotations

import copy
import json
import math
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goldenctl import rules
from goldenctl.config import Tolerance
from goldenctl.errors import UsageError
from goldenctl.goldenfile import DocumentError, Shape, decode, shape_of
from goldenctl.testconfig import TestConfig

Comparator = Callable[[bytes, bytes], bool]
"""Obtained and golden bytes → whether the gate passes."""
PLACES = ("{golden}", "{obtained}")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way a run or a golden goes wrong."""

    name: str
    what: str
    apply: Callable[[Json, Json], None]
    """Changes the obtained and the golden document in place."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What a comparator said of one mutation."""

    case: str
    mutation: str
    what: str
    caught: bool | None
    """Whether the gate failed, as it should; None when the mutation changes nothing here."""


@dataclass(frozen=True, slots=True)
class Audit:
    """One comparator over cases and mutations."""

    comparator: str
    trials: tuple[Trial, ...]
    refuses_sound: tuple[str, ...] = ()
    """Cases whose unchanged run fails: the gate says nothing about them."""
    unfit: tuple[str, ...] = ()
    """Goldens that hold neither metrics nor request records."""

    @property
    def let_through(self) -> tuple[Trial, ...]:
        """What the gate did not catch."""
        return tuple(t for t in self.trials if t.caught is False)


def audit(name: str, comparator: Comparator, goldens: Mapping[str, bytes], swapped: Mapping[str, bytes] | None = None) -> Audit:
    """Try every mutation on every golden.

    Parameters
    ----------
    goldens
        Case (or path) → bytes of its golden; the run is a copy of it before it is broken.
    swapped
        The same keys → the golden of another platform, where there is one.

    Returns
    -------
    Audit
        Goldens that are no documents of metrics or request records are named in ``unfit``.
    """
    trials: list[Trial] = []
    refused, unfit = [], []
    for case, raw in goldens.items():
        document = _document(raw)
        if document is None:
            unfit.append(case)
            continue
        if not comparator(raw, raw):
            refused.append(case)
        trials += _trials(case, comparator, raw, document)
        if swapped and case in swapped and swapped[case] != raw:
            caught = not comparator(swapped[case], raw)
            trials.append(Trial(case, "swapped platform", "the run is another platform's golden", caught))
    return Audit(name, tuple(trials), tuple(refused), tuple(unfit))


def _document(raw: bytes) -> Json | None:
    try:
        value = decode(raw).value
    except DocumentError:
        return None
    fits = isinstance(value, dict) and shape_of(value) in (Shape.METRICS, Shape.INFERENCE)
    return value if fits else None


def _trials(case: str, comparator: Comparator, raw: bytes, document: Json) -> Iterator[Trial]:
    for mutation in METRIC_MUTATIONS if shape_of(document) is Shape.METRICS else INFERENCE_MUTATIONS:
        obtained, golden = copy.deepcopy(document), copy.deepcopy(document)
        mutation.apply(obtained, golden)
        if obtained == document and golden == document:
            yield Trial(case, mutation.name, mutation.what, None)
            continue
        kept = raw if golden == document else _dump(golden)
        yield Trial(case, mutation.name, mutation.what, not comparator(_dump(obtained), kept))


def _dump(document: Json) -> bytes:
    return json.dumps(document, indent=4).encode()


def by_rules(which: rules.Rules, config: TestConfig | None, tolerance_for: Callable[[str], Tolerance]) -> Comparator:
    """Our own verdict as a comparator."""
    return lambda obtained, golden: rules.check(obtained, golden, config, rules=which, tolerance_for=tolerance_for).passed


def by_command(template: str, timeout: float = 60.0) -> Comparator:
    """Any command as a comparator: it passes when it exits with 0.

    Parameters
    ----------
    template
        A command line with ``{golden}`` and ``{obtained}``, split like a shell does but not run by one.
    timeout
        Seconds after which it is stopped and counted as failed.

    Raises
    ------
    UsageError
        A placeholder is missing, or the command cannot be started.
    """
    words = _split(template)
    if not all(any(place in w for w in words) for place in PLACES):
        raise UsageError("the command must name {golden} and {obtained}", hint="--command 'compare.py {golden} {obtained}'")

    def run(obtained: bytes, golden: bytes) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            files = {"{golden}": Path(folder, "golden.json"), "{obtained}": Path(folder, "obtained.json")}
            files["{golden}"].write_bytes(golden)
            files["{obtained}"].write_bytes(obtained)
            command = [
                w.replace("{golden}", str(files["{golden}"])).replace("{obtained}", str(files["{obtained}"])) for w in words
            ]
            try:
                return subprocess.run(command, check=False, capture_output=True, timeout=timeout).returncode == 0
            except subprocess.TimeoutExpired:
                return False
            except OSError as exc:
                raise UsageError(f"{words[0]} cannot be started: {exc.strerror}", hint="name a command on the PATH") from exc

    return run


def _split(template: str) -> list[str]:
    try:
        return shlex.split(template)
    except ValueError as exc:
        raise UsageError(f"the command cannot be split: {exc}", place=template) from exc


def made_golden() -> bytes:
    """A golden of a falling loss over 50 steps, for an audit without a case."""
    steps = range(1, 51)
    curves = {
        "lm loss": {s: round(10.0 * s**-0.25, 5) for s in steps},
        "num-zeros": {s: 1000.0 + s % 7 for s in steps},
        "iteration-time": {s: round(2.0 + (s % 3) / 100, 5) for s in steps},
    }
    grid = {"start_step": 1, "end_step": 50, "step_interval": 1}
    return _dump({name: grid | {"values": {str(s): v for s, v in curve.items()}} for name, curve in curves.items()})


# --- metric blocks


def _each(change: Callable[[list[tuple[str, Any]]], list[tuple[str, Any]]]) -> Callable[[Json, Json], None]:
    """A mutation of the obtained side that changes the pairs of step and value of every metric."""

    def apply(obtained: Json, _golden: Json) -> None:
        for block in _blocks(obtained):
            block["values"] = dict(change(list(block["values"].items())))

    return apply


def _blocks(document: Json) -> Iterator[Json]:
    for block in document.values():
        if isinstance(block, dict) and isinstance(block.get("values"), dict):
            yield block


Pairs = list[tuple[str, Any]]


def _scaled(value: Any, factor: float) -> Any:
    return value * factor if isinstance(value, int | float) else value


def _quarter(pairs: Sequence[Any]) -> int:
    return len(pairs) - max(len(pairs) // 4, 1)


def _non_finite_tail(spelling: Any) -> Callable[[Pairs], Pairs]:
    return lambda pairs: [(k, spelling if i >= _quarter(pairs) else v) for i, (k, v) in enumerate(pairs)]


def _shifted(pairs: Pairs) -> Pairs:
    values = [v for _, v in pairs]
    return [(k, v) for (k, _), v in zip(pairs, values[:1] + values[:-1], strict=True)]


def _wild(pairs: Pairs) -> Pairs:
    middle = len(pairs) // 2
    return [(k, _scaled(v, 1000.0) if i == middle else v) for i, (k, v) in enumerate(pairs)]


def _lost_metric(obtained: Json, _golden: Json) -> None:
    name = next(n for n, b in obtained.items() if isinstance(b, dict) and "values" in b)
    del obtained[name]


def _both_lost(obtained: Json, golden: Json) -> None:
    for block in _blocks(golden):
        block["values"] = dict(_non_finite_tail("nan")(list(block["values"].items())))
    for block in _blocks(obtained):
        pairs = list(block["values"].items())
        block["values"] = dict(pairs[: _quarter(pairs)])


def _both_text(obtained: Json, golden: Json) -> None:
    for block in _blocks(golden):
        block["values"] = {k: str(v) for k, v in block["values"].items()}
    for block in _blocks(obtained):
        block["values"] = {k: str(_scaled(v, 2.0)) for k, v in block["values"].items()}


METRIC_MUTATIONS = (
    Mutation("NaN tail", "the last quarter of the run is NaN", _each(_non_finite_tail(math.nan))),
    Mutation("'nan' tail", 'the last quarter of the run is the text "nan"', _each(_non_finite_tail("nan"))),
    Mutation("infinite tail", "the last quarter of the run is infinite", _each(_non_finite_tail(math.inf))),
    Mutation("NaN in golden, run cut", 'the golden\'s last quarter is "nan" and the run ends before it', _both_lost),
    Mutation("numbers as text", "both sides hold their numbers as text, the run twice as large", _both_text),
    Mutation("truncated", "the run ends half way", _each(lambda pairs: pairs[: max(len(pairs) // 2, 1)])),
    Mutation("last step lost", "the run ends one step early", _each(lambda pairs: pairs[:-1] or pairs)),
    Mutation("lost metric", "the run lacks the first metric", _lost_metric),
    Mutation("shifted steps", "every value comes one step late", _each(_shifted)),
    Mutation("1 % drift", "every value is 1 % larger", _each(lambda pairs: [(k, _scaled(v, 1.01)) for k, v in pairs])),
    Mutation("6 % drift", "every value is 6 % larger", _each(lambda pairs: [(k, _scaled(v, 1.06)) for k, v in pairs])),
    Mutation("all zero", "every value is 0", _each(lambda pairs: [(k, 0.0) for k, _ in pairs])),
    Mutation("one wild step", "one value is a thousand times too large", _each(_wild)),
    Mutation(
        "cancelled differences",
        "values are 10 % too large and too small in turn",
        _each(lambda pairs: [(k, _scaled(v, 1.1 if i % 2 else 0.9)) for i, (k, v) in enumerate(pairs)]),
    ),
    Mutation("empty run", "the run's document is {}", lambda obtained, _golden: obtained.clear()),
)
"""Mutations of metric documents, in the order of the report."""


# --- inference records


def _records(change: Callable[[Json], None]) -> Callable[[Json, Json], None]:
    def apply(obtained: Json, _golden: Json) -> None:
        for record in obtained.values():
            if isinstance(record, dict):
                change(record)

    return apply


def _changed(field: str, change: Callable[[Any], Any]) -> Callable[[Json, Json], None]:
    def apply(record: Json) -> None:
        if record.get(field):
            record[field] = change(record[field])

    return _records(apply)


def _lost_request(obtained: Json, _golden: Json) -> None:
    name = next(n for n, r in obtained.items() if isinstance(r, dict))
    del obtained[name]


def _other_last(tokens: list[Any]) -> list[Any]:
    return [*tokens[:-1], _plus(tokens[-1], 1)]


def _half(items: Any) -> Any:
    return items[: len(items) // 2]


INFERENCE_MUTATIONS = (
    Mutation("wrong token", "the last generated token is another", _changed("generated_tokens", _other_last)),
    Mutation("lost tokens", "half of the tokens were generated", _changed("generated_tokens", _half)),
    Mutation(
        "log-probability off",
        "every log-probability is 0.01 off",
        _changed("logprobs", lambda items: [_plus(x, 0.01) for x in items]),
    ),
    Mutation(
        "NaN log-probability", "the last log-probability is NaN", _changed("logprobs", lambda items: [*items[:-1], math.nan])
    ),
    Mutation("lost log-probability", "one log-probability is missing", _changed("logprobs", lambda items: items[:-1])),
    Mutation("cut text", "the text ends half way", _changed("generated_text", _half)),
    Mutation("other text", "the text is another", _changed("generated_text", lambda text: text[::-1] + "!")),
    Mutation("lost request", "the first request was not obtained", _lost_request),
    Mutation("empty run", "the run's document is {}", lambda obtained, _golden: obtained.clear()),
)
"""Mutations of inference documents, in the order of the report."""


def _plus(value: Any, amount: float) -> Any:
    return value + amount if isinstance(value, int | float) else value
