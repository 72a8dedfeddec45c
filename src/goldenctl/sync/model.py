"""What an audit says, as values; :mod:`goldenctl.sync.report` turns them into JSON and Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from goldenctl.model import Finding, GoldenKey, Match

_TIMINGS = ("iteration-time",)


class Class(StrEnum):
    """What a sync did to one golden file."""

    FROM_UPSTREAM = "from-upstream"
    """Holds a content that upstream has had; so did downstream's."""
    KEPT = "kept"
    """An upstream change that did not arrive."""
    OVERWRITTEN = "overwritten"
    """Downstream content that upstream never had was replaced by upstream's."""
    OWN = "own"
    """Content that upstream never had."""
    MIXED = "mixed"
    """Own content, each part of which is one of the two sides'."""
    ADDED = "added"
    """New downstream, with a content that upstream has had."""
    DELETED = "deleted"
    FORMAT_ONLY = "format-only"
    """From upstream, and the same metrics, steps and values as before."""


@dataclass(frozen=True, slots=True)
class Landing:
    """The commits an audit compares."""

    sha: str
    """The result: the merge, the squash or the end of the range."""
    base: str
    """Merge base of the two sides; empty when upstream is not known."""
    downstream: str
    """First parent, or the start of the range."""
    upstream: str
    """Newest commit of upstream's own line that came in; empty when none is known."""
    date: datetime
    kind: str
    """``merge``, ``squash``, ``revert``, ``range`` or ``commit``."""
    subject: str
    inferred: bool = False
    """Upstream's commit is not in the graph: it is the one whose goldens fit the squash best."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Downstream content that the sync took away."""

    commit: str
    """The downstream commit that brought it."""
    subject: str
    restore: str
    """The command that brings it back."""
    undone: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Metric → non-finite values before and after, where the sync brought non-finite values back."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a result's content comes from."""

    commit: str = ""
    """The commit that had this content at this path first; empty when the sync itself made it."""
    run: str = ""
    """The CI run by ``Golden-Run:`` or the catalog, ``provider:id``; empty when nobody says."""


@dataclass(frozen=True, slots=True)
class AuditedFile:
    """One golden file of a sync; blobs are empty where the file does not exist."""

    path: str
    kind: Class
    key: GoldenKey | None
    """None when the path does not fit the layout."""
    base: str
    downstream: str
    upstream: str
    result: str
    source: Source = Source()
    matches: tuple[Match, ...] = ()
    """Earlier syncs, revisions and recorded artifacts with this content; for own content the nearest levels as well."""
    lost: Lost | None = None
    repaired: Mapping[str, int] = field(default_factory=dict)
    """Metric → non-finite values that the sync removed."""
    findings: tuple[Finding, ...] = ()
    """Lint of the result."""
    new_errors: int = 0
    """Error findings that downstream's content did not have."""
    both_changed: bool = False
    """Both sides changed the file since the merge base."""

    @property
    def changed(self) -> bool:
        """Whether the result differs from the first parent."""
        return self.result != self.downstream

    @property
    def is_repair(self) -> bool:
        """Whether what was replaced held non-finite values, and they are gone; the usual first NaN of timings is no damage."""
        return any(metric not in _TIMINGS for metric in self.repaired) and not (self.lost and self.lost.undone)

    @property
    def in_order(self) -> bool:
        """Whether a reviewer needs to do nothing about this file."""
        unexplained = self.kind is Class.OWN and not (self.source.run or any(m.level == "identical" for m in self.matches))
        dropped = self.kind is Class.KEPT and not self.both_changed
        overwritten = self.kind is Class.OVERWRITTEN and not self.is_repair
        bad = self.kind is Class.MIXED or overwritten or unexplained or dropped
        return not (bad or self.new_errors or (self.lost and self.lost.undone))

    @property
    def weight(self) -> int:
        """Place among the files to be looked at: what was lost first, lint last."""
        order = (Class.OVERWRITTEN, Class.MIXED, Class.KEPT, Class.OWN)
        undone = self.lost is not None and bool(self.lost.undone)
        return 0 if undone else 1 + (order.index(self.kind) if self.kind in order else len(order))


@dataclass(frozen=True, slots=True)
class Graph:
    """How the sync's commits hang together."""

    imported: int
    """Upstream commits that came in unchanged."""
    merges: tuple[str, ...]
    """The sync's own merges of upstream."""
    updates: tuple[str, ...]
    """Its merges of downstream into the sync's branch."""
    repairs: tuple[str, ...]
    """Its own plain commits."""
    rewritten: tuple[str, ...]
    """Own commits that copy an upstream commit under another id."""
    problems: tuple[str, ...]
    """Sentences; empty when the graph is as a sync's should be."""


@dataclass(frozen=True, slots=True)
class Left:
    """A golden that the sync left behind while its siblings changed."""

    path: str
    kind: str
    """``platform``, ``variant`` or ``environment``."""
    changed: tuple[str, ...]
    """The siblings that changed."""


@dataclass(frozen=True, slots=True)
class Completeness:
    """What the sync may have forgotten."""

    left_behind: tuple[Left, ...] = ()
    config_only: tuple[str, ...] = ()
    """Goldens unchanged although train-iters, METRICS or exit-interval of their case changed."""
    golden_only: tuple[str, ...] = ()
    """Goldens whose steps or metrics changed although those settings did not."""


@dataclass(frozen=True, slots=True)
class Audit:
    """One sync, audited."""

    landing: Landing
    files: tuple[AuditedFile, ...]
    graph: Graph
    completeness: Completeness

    @property
    def changed(self) -> tuple[AuditedFile, ...]:
        """Files that differ from the first parent."""
        return tuple(f for f in self.files if f.changed)

    def of(self, kind: Class) -> tuple[AuditedFile, ...]:
        """Files of one class."""
        return tuple(f for f in self.files if f.kind is kind)

    @property
    def worrying(self) -> tuple[AuditedFile, ...]:
        """Files to be looked at, the worst first."""
        return tuple(sorted((f for f in self.files if not f.in_order), key=lambda f: f.weight))

    @property
    def in_order(self) -> bool:
        """Whether nothing needs a reviewer."""
        return all(f.in_order for f in self.files) and not self.graph.problems
