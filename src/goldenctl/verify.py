"""Match a golden with the same golden at another revision: identical, equal, close, different, absent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from goldenctl.compare import VOLATILE_FIELDS, MetricDiff, compare, equal, field_of
from goldenctl.config import Tolerance
from goldenctl.goldenfile import Document, DocumentError, read
from goldenctl.model import Match, MatchLevel


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
