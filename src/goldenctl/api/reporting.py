"""Gather what a report says from a comparison, a refresh or a sync."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from goldenctl import collect, sides
from goldenctl import diff as stage
from goldenctl import report as drawing
from goldenctl.config import Settings
from goldenctl.git import Repo
from goldenctl.model import FileResult, RefreshResult, Run
from goldenctl.report import Entry, Fact, Report
from goldenctl.report.provenance import arrivals
from goldenctl.selection import Selection
from goldenctl.sides import Side

if TYPE_CHECKING:
    from goldenctl.refresh import Plan
    from goldenctl.sync.model import Audit, AuditedFile


def of_sides(
    old: Side, new: Side, settings: Settings, *, selection: Selection | None = None, metrics: Collection[str] = ()
) -> Report:
    """A report of two sides, each golden with the commits that brought its two contents."""
    takes = collect.chooser(selection or Selection(), settings, {**old.entries, **new.entries})
    result = stage.diff(_shown(old), _shown(new), settings, takes=takes)
    changed = [f.path for f in result.files if f.differs]
    repo = Repo(settings.top)
    told = {path: Entry(path, sides.key_of(path, settings), "") for path in changed}
    for name, side in (("new", new), ("old", old)):
        for path, arrived in _arrived(name, side, repo, settings, changed).items():
            told[path] = replace(told[path], facts=(*told[path].facts, *arrived))
    facts = [Fact(name, f"{side.name} is {side.commit[:10]}") for name, side in (("Old", old), ("New", new)) if _renamed(side)]
    return drawing.build(result, settings, known=told, metrics=metrics, facts=facts)


def _shown(side: Side) -> Side:
    """The side under a name a person can read: whole commit ids shortened."""
    return replace(side, name=re.sub(r"\b([0-9a-f]{10})[0-9a-f]{30,54}\b", r"\1", side.name))


def _renamed(side: Side) -> bool:
    return bool(side.commit) and not side.commit.startswith(side.name)


def _arrived(name: str, side: Side, repo: Repo, settings: Settings, paths: Sequence[str]) -> Mapping[str, tuple[Fact, ...]]:
    commit = side.commit
    if side.name == sides.WORKTREE and repo.succeeds("rev-parse", "--verify", "--quiet", "HEAD"):
        commit = repo.commit_of("HEAD")
        clean = repo.dirty(paths)
        paths = [p for p in paths if p not in clean]
    if not commit:
        return {}
    return {path: a.facts(name) for path, a in arrivals(repo, commit, paths, settings.root).items()}


def of_sync(rev: str, settings: Settings, *, selection: Selection, metrics: Collection[str] = ()) -> Report:
    """A report of a sync: downstream before and after, each golden with its class and where its content comes from."""
    from goldenctl.lint import check
    from goldenctl.sync.audit import audit
    from goldenctl.sync.summary import sentences

    repo = Repo(settings.top)
    rev = f"sync:{rev}" if re.fullmatch(r"\d{4}-\d\d-\d\d", rev) else rev
    found = audit(repo, settings, rev, lint=lambda path, raw: check(path, raw, settings))
    old = sides.revision(f"before {rev}", found.landing.downstream, repo, settings)
    new = sides.revision(rev, found.landing.sha, repo, settings)
    takes = collect.chooser(selection, settings, {**old.entries, **new.entries})
    files = [f for f in found.files if takes(f.path)]
    result = stage.diff(old, new, settings, takes={f.path for f in files}.__contains__)
    told = {f.path: Entry(f.path, f.key, "", label=f.kind.value, facts=tuple(_audited(f))) for f in files}
    said = sentences(found, settings.platforms, settings.sync.upstream, settings.sync.downstream)
    facts = [*_landing(found), *(Fact("Audit", s.text) for s in said)]
    return drawing.build(result, settings, title=f"Golden values of {rev}", known=told, facts=facts, metrics=metrics)


def _landing(found: Audit) -> list[Fact]:
    landing = found.landing
    facts = [Fact("Sync", f"{landing.sha[:10]} {landing.date:%Y-%m-%d} {landing.subject}")]
    names = (("Merge base", landing.base), ("Downstream", landing.downstream), ("Upstream", landing.upstream))
    return facts + [Fact(name, sha[:10]) for name, sha in names if sha]


def _audited(file: AuditedFile) -> list[Fact]:
    facts = [Fact("content of", file.source.commit[:10])] if file.source.commit else []
    facts += [Fact("run", file.source.run)] if file.source.run else []
    facts += [Fact("matches", f"{m.rev} {m.level.value}") for m in file.matches]
    if file.lost:
        facts += [
            Fact("was", f"{file.lost.commit[:10]} {file.lost.subject}"),
            Fact("brings it back", file.lost.restore),
        ]
    facts += [Fact("repaired", f"{metric}: {n} NaN") for metric, n in file.repaired.items()]
    return facts + [Fact("lint", f"{f.rule} {f.message}") for f in file.findings]


def of_refresh(prepared: Plan, result: RefreshResult, settings: Settings) -> Report:
    """A report of a refresh: what it replaced against what it wrote, and for refused files what was proposed."""
    changed = {c.path: c for c in prepared.changes}
    new = prepared.documents() | {path: c.new for path, c in changed.items() if c.new is not None}
    old = {path: changed[path].old if path in changed else _on_disk(settings.top / path) for path in new}
    golden = sides.of_bytes("golden", {path: raw for path, raw in old.items() if raw is not None}, settings)
    return refreshed(result, golden, sides.of_bytes(", ".join(r.ref for r in result.runs), new, settings), settings)


def _on_disk(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def refreshed(result: RefreshResult, old: Side, new: Side, settings: Settings, *, metrics: Collection[str] = ()) -> Report:
    """A report of a refresh whose two sides are at hand."""
    compared = stage.diff(old, new, settings)
    told = {f.path: _told(f) for f in result.files}
    facts = [*map(_run_fact, result.runs), Fact("Command", result.command), Fact("Refresh", result.id)]
    problems = [f"{p.subject}: {p.message}" for p in result.problems]
    problems += [f"{u.member} of {u.artifact}: {u.reason}" for u in result.unplaced]
    told_facts = [f for f in facts if f.text]
    title = "Refresh of golden values"
    report = drawing.build(compared, settings, title=title, known=told, facts=told_facts, metrics=metrics)
    return replace(report, problems=(*report.problems, *problems))


def _run_fact(run: Run) -> Fact:
    commit = f", commit {run.commit[:10]}" if run.commit else ""
    return Fact("Run", f"{run.ref} ({run.conclusion.value}{commit})", run.url)


def _told(file: FileResult) -> Entry:
    facts = [Fact("job", f"{file.job} attempt {file.attempt}" if file.attempt > 1 else file.job)] if file.job else []
    facts += [Fact("artifact", file.artifact)] if file.artifact else []
    facts += [Fact("sha256", file.sha256)] if file.sha256 else []
    facts += [Fact("match", f"{m.rev} {m.level.value}" + (f": {m.detail}" if m.detail else "")) for m in file.matches]
    facts += [Fact("lint", f"{f.rule} {f.message}") for f in file.findings]
    note = "; ".join([file.reason, *file.notes] if file.reason else file.notes)
    return Entry(file.path, file.key, "", label=file.action.value, note=note, facts=tuple(facts))
