"""Which run a golden's bytes were recorded from, as the trailers of the repository's commits say."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from goldenctl import trailers
from goldenctl.git import Repo


@dataclass(frozen=True, slots=True)
class Origins:
    """Recorded artifacts by golden path and digest."""

    runs: Mapping[tuple[str, str], str]
    """Golden path and sha256 of an artifact's golden member → run, e.g. ``github:34695381473``."""

    def of(self, path: str, content: bytes) -> str:
        """The run whose artifact had exactly these bytes for this golden; empty when none is recorded."""
        return self.runs.get((path, hashlib.sha256(content).hexdigest()), "")


def recorded(repo: Repo) -> Origins:
    """Every artifact that a commit of any branch records."""
    found: dict[tuple[str, str], str] = {}
    messages = repo.run("log", "--all", "--no-show-signature", "-z", "--format=%B", "--grep=^Golden-Artifact: ")
    for message in messages.decode("utf-8", "replace").split("\0"):
        provenance = trailers.parse(message)
        run = ", ".join(f"{r.provider}:{r.id}" for r in provenance.runs)
        for artifact in provenance.artifacts:
            found.setdefault((artifact.path, artifact.sha256), run or "a recorded artifact")
    return Origins(found)
