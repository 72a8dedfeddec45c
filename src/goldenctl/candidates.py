"""Give each delivered file its golden path, exactly or not at all.

The platform comes from the file's own name, the case from the job, or from the folders around the
file where no job is known. Names match whole and by case. What cannot be placed is an
:class:`~goldenctl.model.Unplaced` with its reason; no name from outside leads out of root.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from goldenctl.config import Settings
from goldenctl.layout import Layout
from goldenctl.model import Artifact, Candidate, Fetched, GoldenKey, Member, Run, Unplaced
from goldenctl.words import nearest

_ARTIFACT_NAME = re.compile(r"logs-(?P<case>.+)-\d+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(-retry)?(\.zip)?")
_RECORDED_FOLDER = re.compile(r"(?:^|/)assets/basic/(?P<name>[^/]+)/")


@dataclass(frozen=True)
class Known:
    """The cases and goldens the repository has, against which names are matched.

    Parameters
    ----------
    settings
        Root and layout.
    paths
        Golden files present, relative to the repo's top.
    folders
        Cases that have a folder, with or without goldens, as ``model/test_case``.
    """

    settings: Settings
    paths: frozenset[str]
    folders: frozenset[str] = frozenset()

    @property
    def layout(self) -> Layout:
        """The layout setting, compiled."""
        return self.settings.compiled_layout

    @cached_property
    def keys(self) -> Mapping[str, GoldenKey]:
        """Golden path → key, for the paths that fit the layout."""
        layout, prefix = self.layout, self.settings.prefix
        found = {p: layout.parse(p.removeprefix(prefix)) for p in self.paths}
        return {p: k for p, k in found.items() if k is not None}

    @cached_property
    def cases(self) -> frozenset[str]:
        """Every case with a golden or a folder."""
        return frozenset(k.case for k in self.keys.values()) | self.folders

    @cached_property
    def models_of(self) -> Mapping[str, tuple[str, ...]]:
        """Test case → models that have it."""
        out: dict[str, set[str]] = defaultdict(set)
        for case in self.cases:
            model, _, test_case = case.partition("/")
            out[test_case].add(model)
        return {k: tuple(sorted(v)) for k, v in out.items()}

    @cached_property
    def by_recorded_name(self) -> Mapping[str, tuple[str, ...]]:
        """Folder name of GitLab artifacts (``case-env-platform``, lower case, hyphens) → cases."""
        out: dict[str, set[str]] = defaultdict(set)
        for case in self.cases:
            for environment in self.settings.environments:
                for platform in self.settings.platforms:
                    name = f"{case.partition('/')[2]}_{environment}_{platform}"
                    out[name.replace("_", "-").lower()].add(case)
        return {k: tuple(sorted(v)) for k, v in out.items()}

    def nearest_case(self, case: str) -> str:
        """The nearest known case's name, or an empty text."""
        return nearest(case, self.cases)


@dataclass(frozen=True)
class Placed:
    """Candidates with a golden path, and what could not be placed."""

    candidates: tuple[Candidate, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    replicates: Mapping[str, tuple[Candidate, ...]] = field(default_factory=dict)
    """Golden path → all candidates of one run for it, where there is more than one."""


class PlacementError(ValueError):
    """A member cannot be given a golden path; the message is the reason."""


def resolve(run: Run, fetched: Iterable[Fetched], known: Known) -> Placed:
    """Give every member of a run's artifacts its golden path.

    Parameters
    ----------
    run
        The run the artifacts belong to.
    fetched
        Artifacts with their members.
    known
        Cases and goldens of the repository.

    Returns
    -------
    Placed
        One candidate per golden path, the last replicate where a run has several (all of them
        are in ``replicates``).
    """
    by_path: dict[str, list[Candidate]] = defaultdict(list)
    unplaced: list[Unplaced] = []
    for item in fetched:
        for member in item.members:
            try:
                candidate = _in_place(run, item.artifact, member, known) or _placed(run, item.artifact, member, known)
            except PlacementError as exc:
                job = item.artifact.job.name if item.artifact.job else ""
                unplaced.append(Unplaced(member.name, item.artifact.name, job, str(exc)))
            else:
                by_path[candidate.path].append(candidate)
    ordered = {path: tuple(sorted(found, key=_order)) for path, found in by_path.items()}
    chosen = tuple(found[-1] for _, found in sorted(ordered.items()))
    return Placed(chosen, tuple(unplaced), {p: f for p, f in ordered.items() if len(f) > 1})


def _order(candidate: Candidate) -> tuple[int, list[int], str]:
    """Attempts, iterations and restarts by number, so that restart=10 comes after restart=9."""
    attempt = candidate.artifact.attempt if candidate.artifact else 1
    return attempt, [int(n) for n in re.findall(r"\d+", candidate.replicate)], candidate.member


def _in_place(run: Run, artifact: Artifact, member: Member, known: Known) -> Candidate | None:
    """The candidate of a git revision, whose files have their golden path already, old spellings included."""
    prefix = known.settings.prefix
    if run.provider != "git" or not member.name.startswith(prefix):
        return None
    relative = member.name.removeprefix(prefix)
    key = known.layout.parse(relative) or known.layout.parse_legacy(relative)
    if key is None:
        model, _, rest = relative.rpartition("/")[0].partition("/")
        key = GoldenKey(model, rest, "", "")
    return _candidate(run, artifact, member, key, member.name)


def _placed(run: Run, artifact: Artifact, member: Member, known: Known) -> Candidate:
    key = _key_of(artifact, member, known)
    try:
        path = known.layout.path(key)
    except ValueError as exc:
        raise PlacementError(f"its name leads nowhere: {exc}") from exc
    return _candidate(run, artifact, member, key, f"{known.settings.root}/{path}" if known.settings.root else path)


def _candidate(run: Run, artifact: Artifact, member: Member, key: GoldenKey, path: str) -> Candidate:
    digest = hashlib.sha256(member.content).hexdigest()
    return Candidate(path, key, member.content, digest, run, artifact.job, artifact, member.name, member.replicate)


def _key_of(artifact: Artifact, member: Member, known: Known) -> GoldenKey:
    name = PurePosixPath(member.name).name
    parsed = known.layout.parse_name(name)
    if parsed is None:
        raise PlacementError(f"{name} does not fit the layout {known.settings.layout}")
    environment, platform, variant = parsed
    if environment not in known.settings.environments:
        raise PlacementError(f"unknown environment {environment!r}{_nearest(environment, known.settings.environments)}")
    if platform not in known.settings.platforms:
        raise PlacementError(f"unknown platform {platform!r}{_nearest(platform, known.settings.platforms)}")
    model, test_case = _case_of(artifact, member, known)
    return GoldenKey(model, test_case, environment, platform, variant)


def _case_of(artifact: Artifact, member: Member, known: Known) -> tuple[str, str]:
    """Model and test case, from the surest evidence there is."""
    job = artifact.job
    if job and job.model and job.test_case:
        return job.model, job.test_case
    if job and job.test_case:
        return _model_of(job.test_case, known), job.test_case
    from_folders = _case_by_folders(member.name, known)
    if from_folders:
        return from_folders
    recorded = _RECORDED_FOLDER.search("/" + member.name)
    if recorded:
        return _case_by_recorded_name(recorded["name"], known)
    named = _ARTIFACT_NAME.fullmatch(PurePosixPath(artifact.name).name)
    if named:
        return _model_of(named["case"], known), named["case"]
    raise PlacementError("neither a job nor the folders around it name its case")


def _case_by_folders(name: str, known: Known) -> tuple[str, str] | None:
    depth = known.settings.layout.count("/") + 1
    parts = PurePosixPath(name).parts
    if len(parts) < depth:
        return None
    key = known.layout.parse("/".join(parts[-depth:]))
    if key is None or "=" in key.model or key.test_case in ("assets", "basic") or key.model in ("assets", "basic"):
        return None  # iteration=0/restart=0, assets/basic: folders of the launcher, not a case
    return key.model, key.test_case


def _case_by_recorded_name(name: str, known: Known) -> tuple[str, str]:
    cases = known.by_recorded_name.get(name, ())
    if len(cases) != 1:
        what = "no case here" if not cases else f"more than one case: {', '.join(cases)}"
        raise PlacementError(f"folder {name} fits {what}")
    model, _, test_case = cases[0].partition("/")
    return model, test_case


def _model_of(test_case: str, known: Known) -> str:
    """The only model with this test case; artifact names do not carry the model."""
    models = known.models_of.get(test_case, ())
    if not models:
        near = nearest(test_case, known.models_of)
        raise PlacementError(f"no case {test_case!r} here" + (f"; nearest is {near!r}" if near else ""))
    if len(models) > 1:
        raise PlacementError(f"case {test_case!r} exists under {' and '.join(models)}, and nothing says which is meant")
    return models[0]


def _nearest(word: str, words: Collection[str]) -> str:
    near = nearest(word, words)
    return f", nearest is {near!r}" if near else ""


def disagreeing(groups: Sequence[Placed]) -> dict[str, tuple[Candidate, ...]]:
    """Golden paths for which several runs propose different bytes, with all proposals."""
    by_path: dict[str, list[Candidate]] = defaultdict(list)
    for group in groups:
        for candidate in group.candidates:
            by_path[candidate.path].append(candidate)
    return {p: tuple(c) for p, c in by_path.items() if len({x.sha256 for x in c}) > 1}
