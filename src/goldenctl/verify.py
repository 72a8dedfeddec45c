"""Match a golden with the same golden at another revision: identical, equal, close, different, absent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from goldenctl import testconfig
from goldenctl.compare import VOLATILE_FIELDS, MetricDiff, compare, equal, field_of
from goldenctl.config import Settings, Tolerance
from goldenctl.goldenfile import Document, DocumentError, read
from goldenctl.model import Match, MatchLevel
from goldenctl.sides import Side

PORTION = 500
"""Goldens whose contents are held at once, on every side."""


def match(
    content: bytes,
    other: bytes | None,
    *,
    rev: str,
    commit: str,
    tolerance_for: Callable[[str], Tolerance],
    required: Sequence[str] | None = None,
) -> Match:
    """Compare bytes with the bytes of the same golden elsewhere.

    Parameters
    ----------
    content
        The golden or candidate asked about (the obtained side).
    other
        The same golden at ``rev`` (the golden side); None when it is not there.
    rev, commit
        The revision as the user named it, and what it stood for.
    tolerance_for
        Tolerance of a metric.
    required
        Metrics (or record fields) that must pass for ``close``; None means all but the volatile ones.

    Returns
    -------
    Match
        Its detail is one sentence on the worst metric; empty when identical or absent.
    """
    if other is None:
        return Match(rev, MatchLevel.ABSENT, commit)
    if content == other:
        return Match(rev, MatchLevel.IDENTICAL, commit)
    try:
        obtained = read(content)
    except DocumentError as exc:
        return Match(rev, MatchLevel.DIFFERENT, commit, f"this side is unreadable: {exc}")
    try:
        golden = read(other)
    except DocumentError as exc:
        return Match(rev, MatchLevel.DIFFERENT, commit, f"the side at {rev} is unreadable: {exc}")
    level, detail = _level(obtained, golden, tolerance_for, required)
    return Match(rev, level, commit, detail.replace("the other side", f"the side at {rev}"))


def _level(
    obtained: Document, golden: Document, tolerance_for: Callable[[str], Tolerance], required: Sequence[str] | None
) -> tuple[MatchLevel, str]:
    if equal(obtained, golden):
        return MatchLevel.EQUAL, "same numbers, other bytes"
    diffs = compare(obtained, golden, tolerance_for)
    failing = [d for d in diffs if _is_required(d.metric, required) and not d.approximate]
    absent = missing_required(diffs, required)
    unread = [("this side", p) for p in obtained.problems] + [("the other side", p) for p in golden.problems]
    if unread:
        side, problem = unread[0]
        return MatchLevel.DIFFERENT, f"{problem.metric}: {side} holds {problem.what}"
    if absent:
        return MatchLevel.DIFFERENT, f"{absent[0]} is required and on neither side"
    if failing:
        return MatchLevel.DIFFERENT, sentence(worst(failing))
    return MatchLevel.CLOSE, sentence(worst(d for d in diffs if not d.exact))


def missing_required(diffs: Sequence[MetricDiff], required: Sequence[str] | None) -> list[str]:
    """Required metrics that neither side has."""
    present = {d.metric for d in diffs} | {field_of(d.metric) for d in diffs}
    return [m for m in required or () if m not in present]


def _is_required(metric: str, required: Sequence[str] | None) -> bool:
    if required is None:
        return field_of(metric) not in VOLATILE_FIELDS
    return metric in required or field_of(metric) in required


def worst(diffs: Iterable[MetricDiff]) -> MetricDiff | None:
    """The metric that is furthest off: one-sided first, then lost steps, non-finite changes, relative size."""
    return max(diffs, key=_badness, default=None)


def _badness(diff: MetricDiff) -> tuple[bool, int, int, float, float]:
    one_sided = diff.n_common == 0
    lost = diff.nonfinite_obtained - diff.nonfinite_golden
    return one_sided, diff.missing_steps, abs(lost), diff.max_rel_diff or 0.0, diff.max_abs_diff or 0.0


def sentence(diff: MetricDiff | None) -> str:
    """One sentence on a metric's difference, with the numbers a person needs."""
    if diff is None:
        return ""
    if diff.n_golden == 0 or diff.n_obtained == 0:
        return f"{diff.metric} is only on {'this side' if diff.n_golden == 0 else 'the other side'}"
    if diff.kind == "text":
        return f"{diff.metric} differs from character {diff.first_differing}"
    parts = [_size(diff)] if diff.worst_step is not None else []
    if diff.missing_steps:
        parts.append(f"lacks {diff.missing_steps} of {diff.n_golden} steps")
    if diff.extra_steps:
        parts.append(f"has {diff.extra_steps} more steps")
    if diff.nonfinite_golden != diff.nonfinite_obtained:
        parts.append(f"non-finite values {diff.nonfinite_golden} → {diff.nonfinite_obtained}")
    return f"{diff.metric} {', '.join(parts)}"


def _size(diff: MetricDiff) -> str:
    where = f"at step {diff.worst_step} ({diff.worst_golden!r} → {diff.worst_obtained!r})"
    if diff.max_rel_diff:
        return f"differs by up to {diff.max_rel_diff:.3g} relative {where}"
    return f"differs by up to {diff.max_abs_diff or 0.0:.3g} absolute {where}"


@dataclass(frozen=True, slots=True)
class VerifiedFile:
    """One golden with its matches."""

    path: str
    matches: tuple[Match, ...]
    """One a revision, in the order asked."""
    origin: str | None = None
    """The run a recorded artifact with the same bytes came from; empty when there is none, None when not asked."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The goldens of one side matched with other revisions."""

    files: tuple[VerifiedFile, ...]
    others: tuple[Side, ...] = ()
    gone: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Revision → goldens it has below the folders asked about and this side lacks."""

    @property
    def summary(self) -> Mapping[str, int]:
        """Level → number of matches, over all files and revisions."""
        return Counter(m.level.value for f in self.files for m in f.matches)

    def below(self, required: MatchLevel | None) -> tuple[VerifiedFile, ...]:
        """Files with a match that is worse than required; none when nothing is required."""
        if required is None:
            return ()
        return tuple(f for f in self.files if not all(m.level.meets(required) for m in f.matches))

    @property
    def without_origin(self) -> tuple[VerifiedFile, ...]:
        """Files whose bytes no recorded artifact has."""
        return tuple(f for f in self.files if f.origin == "")


def verify(
    side: Side,
    others: Sequence[Side],
    settings: Settings,
    *,
    takes: Callable[[str], bool] = lambda _: True,
    origin_of: Callable[[str, bytes], str] | None = None,
) -> Verified:
    """Match each golden of a side with the same golden on other sides.

    Parameters
    ----------
    side
        The goldens asked about.
    others
        The revisions to match with.
    takes
        Whether a golden path is asked for.
    origin_of
        Path and bytes → the run of a recorded artifact with these bytes, empty when there is none.
    """
    paths = [p for p in sorted(side.entries) if takes(p)]
    files: list[VerifiedFile] = []
    for start in range(0, len(paths), PORTION):
        files += _files(paths[start : start + PORTION], side, others, settings, origin_of)
    gone = {o.name: tuple(p for p in sorted(o.entries) if p not in side.entries and takes(p)) for o in others}
    return Verified(tuple(files), tuple(others), gone)


def _files(
    paths: Sequence[str],
    side: Side,
    others: Sequence[Side],
    settings: Settings,
    origin_of: Callable[[str, bytes], str] | None,
) -> Iterator[VerifiedFile]:
    wanted = [p for p in paths if origin_of or any(o.entries.get(p) not in (None, side.entries[p]) for o in others)]
    ours = dict(side.contents(side.entries[p] for p in wanted))
    theirs = {o.name: dict(o.contents(o.entries[p] for p in wanted if p in o.entries)) for o in others}
    for path in paths:
        content = ours.get(side.entries[path], b"")
        matches = tuple(_match_side(path, side, content, other, theirs[other.name], settings) for other in others)
        yield VerifiedFile(path, matches, origin_of(path, content) if origin_of else None)


def _match_side(path: str, side: Side, content: bytes, other: Side, contents: Mapping[str, bytes], settings: Settings) -> Match:
    blob = other.entries.get(path)
    if blob == side.entries[path]:
        return Match(other.name, MatchLevel.IDENTICAL, other.commit)
    config = testconfig.beside(settings.top / path)
    relative = path.removeprefix(settings.prefix)
    return match(
        content,
        None if blob is None else contents[blob],
        rev=other.name,
        commit=other.commit,
        tolerance_for=lambda metric: settings.tolerance_for(metric, relative),
        required=(config.required or None) if config else None,
    )
