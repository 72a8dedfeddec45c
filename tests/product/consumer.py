"""What another project writes with goldenctl; type-checked strictly against the installed package, never run as a test."""

from __future__ import annotations

import sys

import goldenctl
from goldenctl.errors import GoldenctlError
from goldenctl.model import Action, MatchLevel, Severity


def errors(path: str) -> int:
    """How many error findings the goldens below a path have."""
    return sum(f.severity is Severity.ERROR for f in goldenctl.api.lint([path]))


def proposals(run: str) -> list[str]:
    """Goldens a refresh from a run would write."""
    planned = goldenctl.api.refresh([run], only="nonfinite", fix=True)
    return [f.path for f in planned.files if f.action is Action.WOULD_WRITE]


def moved(old: str, new: str) -> dict[str, float]:
    """Golden path → its largest relative difference between two sides."""
    compared = goldenctl.api.diff(old, new)
    return {f.path: max((m.max_rel_diff or 0.0 for m in f.metrics), default=0.0) for f in compared.files if f.differs}


def kept(rev: str) -> bool:
    """Whether every golden holds the bytes it has at a revision."""
    return not goldenctl.api.verify(against=[rev]).below(MatchLevel.IDENTICAL)


def main() -> int:
    """Print what a maintainer asks before a merge."""
    try:
        lines = [str(errors("goldens")), *proposals("ci-run"), *map(str, moved("main", "WORKTREE").items()), str(kept("HEAD"))]
    except GoldenctlError as exc:
        sys.stderr.write(f"{exc}\n")
        return int(exc.exit_code)
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
