"""Which goldens a command is about: ``--only``, ``--case``, ``--platform``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from goldenctl.errors import UsageError
from goldenctl.model import Artifact, GoldenKey
from goldenctl.words import nearest


class Only(StrEnum):
    """Which goldens a refresh touches."""

    ALL = "all"
    """Every golden the run has a candidate for."""
    NONFINITE = "nonfinite"
    """Goldens that hold non-finite values (GV001)."""
    FAILING = "failing"
    """Goldens whose job did not succeed."""
    DRIFTED = "drifted"
    """Goldens whose candidate differs beyond the exact or approximate rules."""
    MISSING = "missing"
    """Cases of the run that have no golden yet."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Cases and platforms asked for."""

    cases: tuple[str, ...] = ()
    """Globs of ``model/test_case`` or of the test case alone; empty means all."""
    platforms: tuple[str, ...] = ()
    """Platform names, exact; empty means all."""

    def takes(self, key: GoldenKey) -> bool:
        """Whether a golden is asked for."""
        return self.takes_case(key.model, key.test_case) and (not self.platforms or key.platform in self.platforms)

    def takes_case(self, model: str, test_case: str) -> bool:
        """Whether a case is asked for; an unknown model (empty) is matched by the test case alone."""
        names = (f"{model}/{test_case}", test_case)
        if not self.cases:
            return True
        return any(
            fnmatchcase(n, glob) or (not model and fnmatchcase(n, glob.rpartition("/")[2]))
            for glob in self.cases
            for n in names
        )

    def may_take(self, artifact: Artifact) -> bool:
        """Whether an artifact may hold a golden asked for, as far as its job tells before it is fetched."""
        job = artifact.job
        if job is None or not job.test_case:
            return True
        if self.platforms and job.platform and job.platform not in self.platforms:
            return False
        return self.takes_case(job.model, job.test_case)

    def check(self, known: Iterable[GoldenKey], platforms: Collection[str]) -> None:
        """Refuse a case or platform that matches nothing.

        Raises
        ------
        UsageError
            With the nearest name.
        """
        keys = list(known)
        for glob in self.cases:
            if not any(Selection((glob,)).takes(k) for k in keys):
                raise UsageError(
                    f"no case matches {glob!r}", hint=_nearest(glob, {k.case for k in keys} | {k.test_case for k in keys})
                )
        for platform in self.platforms:
            if platform not in platforms:
                raise UsageError(f"unknown platform {platform!r}", hint=_nearest(platform, platforms))


def _nearest(word: str, words: Collection[str]) -> str:
    near = nearest(word, words, 0.4)
    return f"did you mean {near!r}?" if near else f"known are {', '.join(sorted(words)[:5])}"
