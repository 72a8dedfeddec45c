"""What a reviewer asks about a sync's goldens, in sentences; each names the files it stands on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from goldenctl.model import MatchLevel
from goldenctl.sync.model import Audit, AuditedFile, Class

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_GROUPS = 5
"""Groups of one origin that get a sentence of their own; the others are in the table."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One claim and the files that back it."""

    text: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Origin:
    commit: str
    run: str
    sync: str


def sentences(audit: Audit, platforms: Sequence[str], upstream: str, downstream: str) -> tuple[Sentence, ...]:
    """The golden-value sentences of one sync.

    Parameters
    ----------
    platforms
        Known platforms, in the order in which they are counted.
    upstream, downstream
        Names of the two branches.
    """
    claims: tuple[tuple[Callable[[AuditedFile], bool], str], ...] = (
        (lambda f: bool(f.repaired) and f.changed, "NaN repaired in {n}."),
        (lambda f: bool(f.lost and f.lost.undone), f"A repair of {downstream} undone in {{n}}."),
        (
            lambda f: f.kind is Class.OVERWRITTEN and not f.is_repair,
            f"Values of {downstream} alone overwritten by {upstream}'s in {{n}}.",
        ),
        (lambda f: f.kind is Class.MIXED, "Values of both sides mixed in {n}."),
        (lambda f: f.kind is Class.KEPT, f"Changes of {upstream} that did not arrive: {{n}}."),
        (lambda f: f.new_errors > 0, "New lint errors in {n}."),
    )
    out = [_head(audit.changed, platforms)]
    for holds, text in claims:
        paths = tuple(f.path for f in audit.files if holds(f))
        if paths:
            out.append(Sentence(text.format(n=len(paths)), paths))
    return (*out, *_origins(audit.changed))


def _head(files: Sequence[AuditedFile], platforms: Sequence[str]) -> Sentence:
    if not files:
        return Sentence("Golden values: no file changed.", ())
    found = Counter(f.key.platform if f.key and f.key.platform else "without platform" for f in files)
    place = {name: i for i, name in enumerate(platforms)}
    ordered = sorted(found.items(), key=lambda item: (place.get(item[0], len(place)), item[0]))
    counts = ", ".join(f"{n} {platform}" for platform, n in ordered)
    noun = "file" if len(files) == 1 else "files"
    return Sentence(f"Golden values: {len(files)} {noun} ({counts}).", tuple(f.path for f in files))


def _origins(files: Iterable[AuditedFile]) -> Iterable[Sentence]:
    """The largest groups of files that come from one commit, and a run or an earlier sync besides."""
    groups: dict[_Origin, list[AuditedFile]] = {}
    for file in files:
        origin = _Origin(file.source.commit, file.source.run, _sync(file))
        if origin.commit and (origin.run or origin.sync):
            groups.setdefault(origin, []).append(file)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[1][0].path))
    for origin, members in ordered[:_GROUPS]:
        yield Sentence(_origin_text(origin, members), tuple(f.path for f in members))


def _sync(file: AuditedFile) -> str:
    """The newest earlier landing with this very content."""
    found = (m.commit for m in file.matches if m.level is MatchLevel.IDENTICAL and m.rev.startswith("sync:"))
    return next(found, "")


def _origin_text(origin: _Origin, members: Sequence[AuditedFile]) -> str:
    one = len(members) == 1
    count = _WORDS[len(members)] if len(members) < len(_WORDS) else str(len(members))
    platforms = {f.key.platform for f in members if f.key}
    models = {f.key.model for f in members if f.key}
    words = [count.capitalize(), *(next(iter(s)) for s in (platforms, models) if len(s) == 1), "file" if one else "files"]
    text = f"{' '.join(filter(None, words))} {'holds' if one else 'hold'} the values of {origin.commit[:10]}"
    if origin.run:
        text += f", taken from run {origin.run}"
    if origin.sync:
        text += f"{', and' if origin.run else ' and'} {'matches' if one else 'match'} sync {origin.sync[:10]}"
    return text + "."
