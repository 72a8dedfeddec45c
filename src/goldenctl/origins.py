"""Which runs delivered a golden's bytes, and when: from the trailers of the repository's commits and from the catalog."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from goldenctl import catalog, trailers
from goldenctl.catalog.places import chosen, exists
from goldenctl.config import Settings
from goldenctl.git import Repo


@dataclass(frozen=True, slots=True)
class Origins:
    """Recorded artifacts by golden path and digest."""

    runs: Mapping[tuple[str, str], str]
    """Golden path and sha256 of an artifact's golden member → run, e.g. ``github:34695381473``."""

    def of(self, path: str, content: bytes) -> str:
        """The run whose artifact had exactly these bytes for this golden; empty when none is recorded."""
        return self.runs.get((path, hashlib.sha256(content).hexdigest()), "")


def recorded(repo: Repo, settings: Settings) -> Origins:
    """Every artifact that a commit of any branch, or the catalog where there is one, records.

    Raises
    ------
    CatalogError
        The catalog is there and cannot be read.
    """
    return Origins(_observed(settings) | _in_trailers(repo))


def _in_trailers(repo: Repo) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    messages = repo.run("log", "--all", "--no-show-signature", "-z", "--format=%B", "--grep=^Golden-Artifact: ")
    for message in messages.decode("utf-8", "replace").split("\0"):
        provenance = trailers.parse(message)
        run = ", ".join(f"{r.provider}:{r.id}" for r in provenance.runs)
        for artifact in provenance.artifacts:
            found.setdefault((artifact.path, artifact.sha256), run or "a recorded artifact")
    return found


def _observed(settings: Settings) -> dict[tuple[str, str], str]:
    place = chosen(settings)
    if not exists(place):
        return {}
    query = """
        SELECT o.path, o.sha256, r.provider || ':' || r.run_id FROM observation o JOIN run r ON r.id = o.run
        ORDER BY o.observed_at DESC
    """
    rows = catalog.sql(place, query).rows()
    return {(path, sha256): run for path, sha256, run in rows}  # the oldest run comes last and stays


def last_runs(settings: Settings) -> dict[str, datetime]:
    """Golden path → when a run in the catalog last delivered it; empty without a catalog.

    Raises
    ------
    CatalogError
        The catalog is there and cannot be read.
    """
    place = chosen(settings)
    if not exists(place):
        return {}
    rows = catalog.sql(place, "SELECT path, max(observed_at) FROM observation GROUP BY path").rows()
    return {path: when.replace(tzinfo=UTC) for path, when in rows}
