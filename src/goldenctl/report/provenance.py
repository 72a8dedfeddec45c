"""Where the contents of a side come from: the commit of its own line that brought each, and the runs that commit names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from goldenctl import trailers
from goldenctl.git import Repo
from goldenctl.report.model import Fact


@dataclass(frozen=True, slots=True)
class Arrival:
    """The newest commit of a first-parent line that changed a golden."""

    commit: str
    date: str
    """``YYYY-MM-DD``, committer's day."""
    subject: str
    runs: tuple[trailers.RunTrailer, ...] = ()

    def facts(self, side: str) -> tuple[Fact, ...]:
        """The arrival as facts about ``side``."""
        runs = [Fact(f"{side} run", f"{run.provider}:{run.id}", run.url) for run in self.runs]
        return (Fact(f"{side} since", f"{self.commit[:10]} {self.date} {self.subject}"), *runs)


def arrivals(repo: Repo, commit: str, paths: Collection[str], root: str) -> Mapping[str, Arrival]:
    """Golden path → the commit that brought the content it has at ``commit``; shallow histories leave paths out."""
    found: dict[str, Arrival] = {}
    wanted = set(paths)
    options = ("--no-show-signature", "--first-parent", "-m", "--name-only", "-z", "--format=%x1e%H%x1f%cs%x1f%s%x1f%B%x1f")
    log = repo.run("log", *options, commit, "--", root or ".") if wanted else b""
    for record in log.split(b"\x1e")[1:]:
        sha, day, subject, message, names = record.decode("utf-8", "surrogateescape").split("\x1f", 4)
        here = wanted.intersection(names.strip("\0\n").split("\0"))
        if here:
            arrival = Arrival(sha, day, subject, trailers.parse(message).runs)
            found.update(dict.fromkeys(here, arrival))
            wanted -= here
        if not wanted:
            break
    return found
