"""What a refresh was asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from goldenctl.model import MatchLevel
from goldenctl.selection import Only, Selection


class Scope(StrEnum):
    """How much of a golden file a candidate replaces."""

    FILE = "file"
    """The artifact's bytes as they are."""
    METRIC = "metric"
    """Only metrics with an error finding, every other byte kept."""
    VALUE = "value"
    """Only values with an error finding, every other byte kept."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one refresh; the defaults write every candidate that passes lint."""

    only: Only = Only.ALL
    selection: Selection = field(default_factory=Selection)
    scope: Scope = Scope.FILE
    match: tuple[str, ...] = ()
    """Revisions to match against: commit, branch, tag, ``sync:DATE``, ``sync:SHA``."""
    require: MatchLevel | None = None
    """Lowest match level that is written; None writes at any level."""
    fix: bool = False
    """Apply lint's mechanical repairs to candidates first."""
    allow: frozenset[tuple[str, str]] = frozenset()
    """(rule, metric) pairs admitted in spite of an error finding."""
    allow_shrink: bool = False
    """Admit candidates with fewer metrics or steps, or from a job that was cut short."""
    allow_mixed: bool = False
    """With scope metric or value: admit a candidate whose other metrics disagree with those kept."""
    force: bool = False
    """Overwrite files with uncommitted changes."""
    dry_run: bool = False
