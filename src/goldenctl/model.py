"""The values that travel between the stages: Run → Artifact → Candidate → Finding → Match → Change → RefreshResult.

Frozen dataclasses and enums, standard library only. Paths are POSIX text relative to the top of the
repository unless a field says otherwise. Times are timezone-aware UTC datetimes; None means the
source does not say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding weighs: an error refuses a candidate, a warning is shown."""

    ERROR = "error"
    WARNING = "warning"


class MatchLevel(StrEnum):
    """How two versions of one golden compare, best first."""

    IDENTICAL = "identical"
    EQUAL = "equal"
    CLOSE = "close"
    DIFFERENT = "different"
    ABSENT = "absent"

    @property
    def rank(self) -> int:
        """0 for identical up to 4 for absent."""
        return list(MatchLevel).index(self)

    def meets(self, required: MatchLevel) -> bool:
        """Whether this level is at least as good as ``required``."""
        return self.rank <= required.rank


class Action(StrEnum):
    """What a refresh did, or would do, with one golden file."""

    WRITTEN = "written"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    MISSING = "missing"
    WOULD_WRITE = "would-write"


class Conclusion(StrEnum):
    """How a job or run ended, in one vocabulary for every provider."""

    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    SKIPPED = "skipped"
    RUNNING = "running"
    UNKNOWN = "unknown"

    @property
    def cut_short(self) -> bool:
        """Whether the job was stopped from outside, so that its files may be truncated."""
        return self in (Conclusion.CANCELLED, Conclusion.TIMED_OUT, Conclusion.RUNNING)


@dataclass(frozen=True, slots=True)
class GoldenKey:
    """What identifies a golden file, taken from its path by the layout setting."""

    model: str
    """First level of the case, e.g. ``moe``."""
    test_case: str
    """Second level of the case, e.g. ``gpt3_mcore_te_tp2_pp2``."""
    environment: str
    """``dev`` or ``lts``; empty for files older than the environments."""
    platform: str
    """``dgx_h100``, …; empty for files older than the platform suffix."""
    variant: str = ""
    """Empty, or ``_2nd`` for the second training phase."""

    @property
    def case(self) -> str:
        """``{model}/{test_case}``."""
        return f"{self.model}/{self.test_case}"


@dataclass(frozen=True, slots=True)
class Job:
    """One job of a run, in its newest attempt unless the source was asked for another."""

    id: str
    """The provider's id as text; empty for folders and zips."""
    name: str
    """The job's display name, untouched."""
    model: str = ""
    """Model named by the job; empty when the provider does not say."""
    test_case: str = ""
    """Test case named by the job; empty when the name is not of the known form."""
    environment: str = ""
    """Environment the job ran, empty when only the file name tells."""
    platform: str = ""
    """Platform the job ran on, empty when only the file name tells."""
    attempt: int = 1
    """Attempt number, from 1."""
    conclusion: Conclusion = Conclusion.UNKNOWN
    started_at: datetime | None = None
    completed_at: datetime | None = None
    url: str = ""
    allow_failure: bool = False
    """The CI does not count this job's failure (GitLab)."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """The bytes a run delivered, as listed; the golden members come with :class:`Fetched`."""

    id: str
    name: str
    size: int
    """Bytes as delivered (the zip, not its content); 0 when not said."""
    sha256: str = ""
    """Hex digest of the delivered bytes; empty when neither said by the source nor computed."""
    job: Job | None = None
    """The job that made it; None when it cannot be attributed."""
    attempt: int = 1
    created_at: datetime | None = None
    expired: bool = False
    url: str = ""
    """Where the bytes are, without any token."""


@dataclass(frozen=True, slots=True)
class Member:
    """One golden JSON file inside an artifact."""

    name: str
    """Path inside the artifact, POSIX separators, never absolute, never with ``..``."""
    content: bytes
    replicate: str = ""
    """Which repeat, iteration or restart of the job it comes from; empty for the only one."""


@dataclass(frozen=True, slots=True)
class SourceProblem:
    """One thing a source could not deliver; it never stops the others."""

    subject: str
    """Artifact or job concerned, as the user knows it."""
    kind: str
    """``expired``, ``missing``, ``auth``, ``rate-limit``, ``network``, ``corrupt``, ``refused``, ``running``, ``unplaced``."""
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came of fetching one artifact: its members, or a problem, or both."""

    artifact: Artifact
    members: tuple[Member, ...] = ()
    problems: tuple[SourceProblem, ...] = ()
    bytes_transferred: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """One CI run: a workflow run, pipeline, S3 prefix, MLflow run, folder, zip or git revision."""

    ref: str
    """The reference as the user gave it, tokens removed."""
    provider: str
    """``github``, ``gitlab``, ``s3``, ``mlflow``, ``tree`` or ``git``."""
    id: str
    """Stable id of the run at its provider; for folders the folder's name, for git the commit."""
    attempt: int = 1
    commit: str = ""
    """Hex commit the run tested; empty when unknown."""
    branch: str = ""
    conclusion: Conclusion = Conclusion.UNKNOWN
    started_at: datetime | None = None
    completed_at: datetime | None = None
    url: str = ""
    repository: str = ""
    """``owner/name``, project path or bucket; empty for folders."""
    jobs: tuple[Job, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    problems: tuple[SourceProblem, ...] = ()
    """What could not be listed, e.g. a forbidden child pipeline."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A golden document that a run proposes for one golden file."""

    path: str
    """Golden path in the repository."""
    key: GoldenKey
    content: bytes
    """The artifact's bytes, untouched."""
    sha256: str
    """Hex digest of ``content``."""
    run: Run
    job: Job | None = None
    artifact: Artifact | None = None
    member: str = ""
    replicate: str = ""


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A member that could not be given a golden path, with the reason."""

    member: str
    artifact: str
    job: str
    reason: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a lint rule: one rule, one file, one metric, one kind of place."""

    rule: str
    """``GV001`` … ``GV013``."""
    severity: Severity
    path: str
    metric: str
    """Metric or record concerned; empty for the whole file."""
    count: int
    """Number of places."""
    steps: tuple[int, ...] = ()
    """The first few steps concerned, at most 5; empty where there are no steps."""
    kind: str = ""
    """Class within the rule, e.g. ``leading``, ``second-phase``, ``tail``, ``off-grid``, ``scattered``."""
    message: str = ""
    baselined: bool = False
    line: int = 0
    """Line in the file, from 1; 0 when not known."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A golden file after its mechanical repairs."""

    content: bytes
    """The old bytes when there was nothing to repair."""
    repairs: tuple[str, ...] = ()
    """What was done, one sentence each."""


@dataclass(frozen=True, slots=True)
class Match:
    """How a candidate or golden compares with the same golden at another revision."""

    rev: str
    """The revision as the user named it."""
    level: MatchLevel
    commit: str = ""
    """Hex commit the name stood for."""
    detail: str = ""
    """One sentence on the worst metric; empty when identical or absent."""


@dataclass(frozen=True, slots=True)
class Change:
    """One file to be written: old bytes, new bytes."""

    path: str
    old: bytes | None
    """None when the file does not exist yet."""
    new: bytes | None
    """None when the file is to be deleted."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """What a refresh did with one golden file."""

    path: str
    key: GoldenKey
    action: Action
    reason: str = ""
    """Why it was refused, is missing or unchanged; empty when written."""
    job: str = ""
    attempt: int = 0
    """0 when no job is known."""
    artifact: str = ""
    sha256: str = ""
    """Digest of the candidate's bytes; of the written bytes with scope metric or value."""
    findings: tuple[Finding, ...] = ()
    matches: tuple[Match, ...] = ()
    metrics: tuple[str, ...] = ()
    """Metrics written; with scope metric or value only those that changed."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """One refresh: its runs, what became of each file, and what the sources could not deliver."""

    id: str
    """Unique id of the refresh, ``YYYYMMDDTHHMMSS-xxxxxx``."""
    runs: tuple[Run, ...]
    files: tuple[FileResult, ...]
    problems: tuple[SourceProblem, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    dry_run: bool = False
    started_at: datetime | None = None
    command: str = ""
    """The command line that made it, tokens removed."""
    settings: dict[str, str] = field(default_factory=dict)

    def count(self, action: Action) -> int:
        """Number of files with this action."""
        return sum(1 for f in self.files if f.action is action)
