"""A GitHub run recorded as a folder: what the REST API said, and the artifact zips.

The folder holds ``run.json``, ``jobs.json`` and ``artifacts.json`` as ``GET …/actions/runs/N``,
``…/jobs?filter=all`` and ``…/artifacts`` answer them (a page, or only its list), and the zips as
``{artifact id}.zip``. It is read by the same attribution as a live run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from goldenctl.config import Settings
from goldenctl.errors import CorruptError, ExpiredError, NotFoundError, SourceError
from goldenctl.model import Artifact, Fetched, Run
from goldenctl.sources import FetchOptions, Source
from goldenctl.sources.artifact import members, problem
from goldenctl.sources.attribution import describe

FILES = ("run.json", "jobs.json", "artifacts.json")


def is_recorded(path: Path) -> bool:
    """Whether a folder holds a recorded run."""
    return all((path / name).is_file() for name in FILES)


def open(ref: str, settings: Settings, options: FetchOptions) -> Source:
    """The source of a recorded run's folder."""
    return RecordedSource(ref, Path(ref), options)


class RecordedSource:
    """One recorded run."""

    def __init__(self, ref: str, folder: Path, options: FetchOptions) -> None:
        self._ref = ref
        self._folder = folder
        self._options = options

    def describe(self) -> Run:
        """The run as GitHub described it.

        Raises
        ------
        CorruptError
            A file is not JSON, or not of the API's form.
        """
        run = self._read("run.json")
        if not isinstance(run, dict):
            raise CorruptError("is not a JSON object", place=str(self._folder / "run.json"))
        jobs, artifacts = self._list("jobs"), self._list("artifacts")
        return describe(self._ref, run, jobs, artifacts, attempt=self._options.attempt)

    def _read(self, name: str) -> Any:
        path = self._folder / name
        try:
            return json.loads(path.read_bytes())
        except OSError as exc:
            raise SourceError(f"cannot be read: {exc.strerror}", place=str(path)) from exc
        except (ValueError, RecursionError) as exc:
            raise CorruptError(f"is not JSON: {exc}", place=str(path), hint="record the run again") from exc

    def _list(self, name: str) -> list[dict[str, Any]]:
        said = self._read(f"{name}.json")
        items = said.get(name) if isinstance(said, dict) else said
        if not isinstance(items, list) or not all(isinstance(i, dict) for i in items):
            raise CorruptError(f"holds no list of {name}", place=str(self._folder / f"{name}.json"))
        return items

    def fetch(self, artifacts: Sequence[Artifact]) -> Iterator[Fetched]:
        """Read the zips, each checked against the digest GitHub gave."""
        for artifact in artifacts:
            try:
                yield self._fetch(artifact)
            except SourceError as exc:
                yield Fetched(artifact, problems=(problem(artifact.name, exc),))

    def _fetch(self, artifact: Artifact) -> Fetched:
        path = self._folder / f"{artifact.id}.zip"
        if not artifact.id.isalnum() or path.is_symlink():
            raise CorruptError("its zip is a link, or its id leads out of the folder", place=str(self._folder))
        if artifact.expired and not path.exists():
            raise ExpiredError("the artifact has expired at GitHub and its zip is not in the folder", hint="run the job again")
        try:
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
                if artifact.sha256 and digest != artifact.sha256:
                    raise CorruptError(f"sha256 is {digest}, GitHub said {artifact.sha256}", place=path.name)
                found, problems = members(stream, subject=artifact.name, since=None)
        except FileNotFoundError as exc:
            raise NotFoundError(f"{path.name} is not in the folder", hint="download the artifact's zip there") from exc
        except OSError as exc:
            raise SourceError(f"cannot be read: {exc.strerror}", place=path.name) from exc
        return Fetched(replace(artifact, sha256=digest), found, problems, path.stat().st_size)
