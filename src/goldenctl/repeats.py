"""Open repeated runs of a case: log folders, golden documents, folders of either, run references, runs in the catalog."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from goldenctl import capture, catalog, collect
from goldenctl.catalog.places import chosen
from goldenctl.config import Settings
from goldenctl.errors import SourceError, UsageError
from goldenctl.goldenfile import DocumentError, Series, read
from goldenctl.sources import provider_of
from goldenctl.tolerance import Sample

CATALOG = "catalog:"


@dataclass(frozen=True, slots=True)
class Repeat:
    """One run, or one replicate of a run."""

    name: str
    sample: Sample
    """Golden path (empty where only one case is meant) → metric → series."""


def open_repeats(words: Iterable[str], settings: Settings, metrics: tuple[str, ...] = ()) -> list[Repeat]:
    """Every run that some words name.

    Parameters
    ----------
    words
        A folder of event files, a folder of such folders, a golden document, a run reference, or ``catalog:RUN``.
    metrics
        Only these; empty takes what the harness keeps from event files, and all of golden documents.

    Raises
    ------
    SourceError
        A run cannot be read.
    UsageError
        A word is of no known form.
    """
    found = [_limited(repeat, metrics) for word in words for repeat in _open(word, settings, metrics)]
    return [r for r in found if any(r.sample.values())]


def _limited(repeat: Repeat, metrics: tuple[str, ...]) -> Repeat:
    if not metrics:
        return repeat
    kept = {path: {m: s for m, s in series.items() if m in metrics} for path, series in repeat.sample.items()}
    return Repeat(repeat.name, kept)


def _open(word: str, settings: Settings, metrics: tuple[str, ...]) -> Iterator[Repeat]:
    path = Path(word)
    if word.startswith(CATALOG):
        yield from _recorded(word, settings)
    elif provider_of(word, settings) != "tree" and not path.exists():
        yield from _run(word, settings)
    elif path.is_file() and path.suffix == ".json":
        yield Repeat(word, {"": _document(path.read_bytes(), word)})
    elif path.is_dir() and any(path.rglob("events*tfevents*")):
        for folder in [path, *sorted(p for p in path.iterdir() if p.is_dir())]:
            yield from _logged(folder, metrics)
    elif path.exists() or word.startswith("git:"):
        yield from _run(word, settings)
    else:
        raise UsageError(f"{word} is no folder, file or run", hint="log folders, golden documents, run references, catalog:RUN")


def _logged(folder: Path, metrics: tuple[str, ...]) -> Iterator[Repeat]:
    curves = capture.curves([folder], capture.Options(metrics=metrics or capture.KEPT))
    if curves:
        series = {tag: Series(tag, tuple(values), tuple(values.values())) for tag, values in curves.items()}
        yield Repeat(str(folder), {"": series})


def _document(raw: bytes, name: str) -> Mapping[str, Series]:
    try:
        return {s.metric: s for s in read(raw).series}
    except DocumentError as exc:
        raise SourceError(f"cannot be read: {exc}", place=name) from exc


def _run(ref: str, settings: Settings) -> Iterator[Repeat]:
    """The candidates of a run; each replicate is a run of its own."""
    found = collect.collect(ref, settings)
    rounds: dict[int, dict[str, Mapping[str, Series]]] = defaultdict(dict)
    for candidate in found.placed.candidates:
        for i, one in enumerate(found.placed.replicates.get(candidate.path, (candidate,))):
            rounds[i][candidate.path] = _document(one.content, f"{ref}: {one.member}")
    if not rounds:
        raise SourceError("has no golden document", place=ref, hint=f"goldenctl triage --from-job {ref}")
    for i, sample in rounds.items():
        yield Repeat(ref if len(rounds) == 1 else f"{ref} replicate {i + 1}", sample)


def _recorded(word: str, settings: Settings) -> Iterator[Repeat]:
    """The observations of a run in the catalog, named by its id (``github:42#1``) or its id at the provider."""
    name = word.removeprefix(CATALOG).replace("'", "''")
    rows = catalog.sql(
        chosen(settings),
        f"""
        SELECT o.run || ' ' || o.replicate AS run, o.path, s.metric, v.step, v."value"
        FROM observation o JOIN run r ON r.id = o.run
        JOIN series s ON s.document = o.document JOIN "value" v ON v.content = s.content
        WHERE r.id = '{name}' OR r.run_id = '{name}' OR r.provider || ':' || r.run_id = '{name}' OR r.ref = '{name}'
        ORDER BY ALL
        """,  # noqa: S608 - quoted above, and the catalog is opened read only
    ).rows()
    if not rows:
        raise UsageError(
            f"the catalog has no values of run {word.removeprefix(CATALOG)}", hint="goldenctl catalog sql 'FROM run'"
        )
    columns: dict[tuple[str, str, str], list[tuple[int, float]]] = defaultdict(list)
    for run, path, metric, step, value in rows:
        columns[run, path, metric].append((step, value))
    for run in dict.fromkeys(key[0] for key in columns):
        sample: dict[str, dict[str, Series]] = defaultdict(dict)
        for (name_, path, metric), pairs in columns.items():
            if name_ == run:
                sample[path][metric] = Series(metric, tuple(s for s, _ in pairs), tuple(v for _, v in pairs))
        yield Repeat(run.strip(), sample)
