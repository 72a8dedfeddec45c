"""Turn TensorBoard event files into a golden document, by the harness's own sampling rules.

The ``tensorboard`` package reads the files; neither TensorFlow nor torch is imported. Values are the float32 numbers
the run logged, as float64; units are the run's (seconds, bytes, losses without unit).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

from goldenctl.errors import GoldenctlError, SourceError, UsageError
from goldenctl.words import first_steps

KEPT = (
    "iteration-time",
    "mem-allocated-bytes",
    "mem-max-allocated-bytes",
    "lm loss",
    "num-zeros",
    "mtp_1 loss",
    "mtp_2 loss",
    "total loss",
)
"""Scalars the harness keeps."""
DECIMALS = 5
"""Decimals of rounded precision."""


class Files(StrEnum):
    """Which event files count, and whose value wins where two hold a step."""

    FIRST = "first"
    """Only the first file that holds scalars, as the harness takes normal tests."""
    MERGED = "merged"
    """All files, the earliest value of a step wins, as the harness takes convergence tests."""
    RESUMED = "resumed"
    """All files, the latest value of a step wins: what a restarted run really went on with."""


class Precision(StrEnum):
    """How values are written."""

    FULL = "full"
    """As logged, with the marker ``value_precision: full``."""
    ROUNDED = "rounded"
    """To five decimals, without marker, as goldens before the marker are."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is taken from the event files."""

    files: Files = Files.FIRST
    precision: Precision = Precision.FULL
    train_iters: int | None = None
    """Last step kept; None keeps all."""
    step_size: int = 1
    """Grid: step 1 and every multiple of this many steps."""
    metrics: tuple[str, ...] = KEPT
    """Scalar tags kept, in the order of the file."""
    thin: int | None = None
    """Most points of a metric; None keeps the whole grid."""
    pinned: tuple[int, ...] = ()
    """Steps that thinning never drops."""


@dataclass(frozen=True, slots=True)
class Scalars:
    """The scalars of one event file."""

    path: Path
    first_time: float
    """Wall time of the earliest value, seconds since the epoch."""
    values: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    """Tag → step → value, in file order."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A golden document made of event files."""

    document: Mapping[str, Mapping[str, Any]]
    notes: tuple[str, ...] = ()
    """What the caller should know: files left out, a run that ended early."""

    def render(self) -> bytes:
        """The document's bytes as the harness writes them: indent 4, no final newline."""
        return json.dumps(self.document, indent=4, allow_nan=False).encode()


def capture(folders: Sequence[Path], options: Options) -> Captured:
    """Read the event files of one run.

    Parameters
    ----------
    folders
        Log folders of the run; event files lie in them or in their folder ``results``. A file may be named too.
    options
        Grid, metrics, precision, thinning.

    Raises
    ------
    SourceError
        There is no event file with scalars, or one cannot be read.
    GoldenctlError
        A kept value is not finite; the steps are named.
    UsageError
        Thinning has no room for the pinned steps.
    """
    files = _files(folders)
    if not files:
        raise SourceError(
            "no event file with scalars",
            place=", ".join(map(str, folders)),
            hint="name the folder that holds events.out.tfevents.*",
        )
    taken = files[:1] if options.files is Files.FIRST else files
    series = _merged(taken, latest_wins=options.files is Files.RESUMED)
    kept = {tag: _sampled(values, options) for tag, values in series.items() if tag in options.metrics}
    kept = {tag: values for tag, values in kept.items() if values}
    if not kept:
        raise SourceError(
            f"none of {', '.join(options.metrics)} is logged there", place=str(taken[0].path), hint="--metric TAG"
        )
    _refuse_non_finite(kept)
    document = {tag: _block(values, options) for tag, values in kept.items()}
    return Captured(document, tuple(_notes(files, taken, kept, options)))


def curves(folders: Sequence[Path], options: Options) -> dict[str, dict[int, float]]:
    """Tag → step → value of a run's kept scalars on the grid, non-finite values included; empty without event files.

    Raises
    ------
    SourceError
        An event file cannot be read.
    """
    files = _files(folders)
    series = _merged(files[:1] if options.files is Files.FIRST else files, latest_wins=options.files is Files.RESUMED)
    return {tag: _sampled(values, options) for tag, values in series.items() if not options.metrics or tag in options.metrics}


def _files(folders: Iterable[Path]) -> list[Scalars]:
    """Event files with scalars, in the order of their first values."""
    return sorted(_read_all(folders), key=lambda f: (f.first_time, f.path.name))


def _read_all(folders: Iterable[Path]) -> Iterator[Scalars]:
    for folder in folders:
        if not folder.exists():
            raise UsageError("no such folder", place=str(folder), hint="name a folder of TensorBoard event files")
        for path in _event_files(folder):
            scalars = read_events(path)
            if scalars.values:
                yield scalars


def _event_files(folder: Path) -> list[Path]:
    if folder.is_file():
        return [folder]
    return sorted(p for place in (folder, folder / "results") for p in place.glob("events*tfevents*") if p.is_file())


def read_events(path: Path) -> Scalars:
    """The scalars of one event file; a cut file gives what stands before the cut.

    Raises
    ------
    SourceError
        The file cannot be read.
    """
    accumulators = _accumulators()
    everything = {accumulators.SCALARS: 0, accumulators.TENSORS: 0}
    reader = accumulators.EventAccumulator(str(path), size_guidance=everything)
    try:
        reader.Reload()
        tags = reader.Tags()["scalars"]
        events = {tag: reader.Scalars(tag) for tag in tags}
    except (OSError, ValueError, UnicodeDecodeError) as exc:
        raise SourceError(f"cannot be read: {exc}", place=str(path)) from exc
    first = min((e.wall_time for found in events.values() for e in found), default=0.0)
    return Scalars(path, first, {tag: {e.step: float(e.value) for e in found} for tag, found in events.items() if found})


def _accumulators() -> Any:
    """TensorBoard's reader, kept from importing TensorFlow where that is installed."""
    sys.modules.setdefault("tensorboard.compat.notf", ModuleType("tensorboard.compat.notf"))
    try:
        from tensorboard.backend.event_processing import event_accumulator
    except ImportError as exc:
        raise UsageError("capture needs the package tensorboard", hint="pip install 'goldenctl[capture]'") from exc
    return event_accumulator


def _merged(files: Sequence[Scalars], *, latest_wins: bool) -> dict[str, dict[int, float]]:
    series: dict[str, dict[int, float]] = {}
    for file in files:
        for tag, values in file.values.items():
            known = series.setdefault(tag, {})
            series[tag] = known | dict(values) if latest_wins else dict(values) | known
    return {tag: dict(sorted(values.items())) for tag, values in series.items()}


def _sampled(values: Mapping[int, float], options: Options) -> dict[int, float]:
    """The steps on the grid: step 1 and the multiples of ``step_size``, none after ``train_iters``."""
    last = options.train_iters or max(values, default=0)
    grid = {s: v for s, v in values.items() if 1 <= s <= last and (s == 1 or s % options.step_size == 0)}
    return grid if options.thin is None else _thinned(grid, options)


def _thinned(values: Mapping[int, float], options: Options) -> dict[int, float]:
    """At most ``thin`` points: the first, the last, the pinned ones, and of the rest every k-th step."""
    steps, room = list(values), options.thin or 0
    if len(steps) <= room:
        return dict(values)
    fixed = {steps[0], steps[-1], *(s for s in options.pinned if s in values)}
    if len(fixed) > room:
        raise UsageError(f"--thin {room} has no room for {len(fixed)} fixed steps", hint=f"--thin {len(fixed)} or more")
    distance = interval_of(steps, options.step_size)
    stride = distance
    while True:
        stride += distance
        chosen = {s for s in steps if s % stride == 0} | fixed
        if len(chosen) <= room:
            return {s: values[s] for s in steps if s in chosen}


def interval_of(steps: Sequence[int], default: int = 1) -> int:
    """Greatest common distance of the steps, step 1 left out; ``default`` for fewer than two."""
    rest = [s for s in steps if s != 1]
    return reduce(math.gcd, (b - a for a, b in pairwise(rest)), 0) or default


def _refuse_non_finite(series: Mapping[str, Mapping[int, float]]) -> None:
    found = {tag: [s for s, v in values.items() if not math.isfinite(v)] for tag, values in series.items()}
    said = [f"{tag!r} at {_steps(steps)}" for tag, steps in found.items() if steps]
    if said:
        raise GoldenctlError(
            f"values are not finite: {'; '.join(said)}; nothing is written",
            hint="find out why the run diverged, or leave the metric out",
        )


def _steps(steps: Sequence[int]) -> str:
    return f"step{'s' if len(steps) > 1 else ''} {first_steps(steps)}"


def _block(values: Mapping[int, float], options: Options) -> dict[str, Any]:
    steps = list(values)
    rounded = options.precision is Precision.ROUNDED
    block: dict[str, Any] = {
        "start_step": steps[0],
        "end_step": steps[-1],
        "step_interval": interval_of(steps, options.step_size),
    }
    block["values"] = {str(s): round(v, DECIMALS) if rounded else v for s, v in values.items()}
    return block if rounded else block | {"value_precision": "full"}


def _notes(
    files: Sequence[Scalars], taken: Sequence[Scalars], kept: Mapping[str, Mapping[int, float]], options: Options
) -> Iterator[str]:
    left = [f.path.name for f in files[len(taken) :]]
    if left:
        yield f"{len(left)} later event files are left out, first {left[0]}; --files resumed or merged takes them"
    last = max(max(values) for values in kept.values())
    if options.train_iters and last + options.step_size <= options.train_iters:
        yield f"the run ends at step {last} of {options.train_iters}"
    absent = sorted({t for f in taken for t in f.values} - set(kept))
    if absent:
        yield f"not kept: {', '.join(absent)}"
