"""Folders, zips, recorded runs and git revisions are runs like any other."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from goldenctl import candidates
from goldenctl.config import Settings, load
from goldenctl.errors import CorruptError, SourceError, UsageError
from goldenctl.model import Fetched, Run
from goldenctl.sources import FetchOptions, open_source
from tests.conftest import ScratchRepo
from tests.sources.runs import RUN, SHA, artifact, job, record, run
from tests.sources.zips import GB200, GOLDEN, H100, RESTART, zipped

IN_LAYOUT = f"moe/tiny/{H100}"


def opened(ref: str | Path, top: Path, attempt: int | None = None) -> tuple[Run, list[Fetched]]:
    source = open_source(str(ref), Settings(top, root="goldens"), FetchOptions(attempt=attempt))
    found = source.describe()
    return found, list(source.fetch(found.artifacts))


def contents(fetched: list[Fetched]) -> dict[str, bytes]:
    return {m.name: m.content for f in fetched for m in f.members}


def test_a_folder_gives_its_golden_files_and_its_zips(tmp_path: Path) -> None:
    (tmp_path / "run/moe/tiny").mkdir(parents=True)
    (tmp_path / "run" / IN_LAYOUT).write_bytes(GOLDEN)
    (tmp_path / "run/moe/tiny/notes.json").write_bytes(b"{}")
    (tmp_path / "run/logs-other.zip").write_bytes(zipped({GB200: b"{}"}))
    found, fetched = opened(tmp_path / "run", tmp_path)
    assert (found.provider, found.id) == ("tree", "run")
    assert contents(fetched) == {IN_LAYOUT: GOLDEN, GB200: b"{}"}
    assert [a.name for a in found.artifacts] == ["golden files", "logs-other.zip"]


def test_a_folder_never_gives_what_a_link_points_to(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_bytes(b"secret")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / H100).symlink_to(tmp_path / "secret.json")
    (tmp_path / "run" / GB200).write_bytes(GOLDEN)
    assert contents(opened(tmp_path / "run", tmp_path)[1]) == {GB200: GOLDEN}


def test_a_folder_without_goldens_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(SourceError, match="holds no golden files and no artifact zips"):
        opened(tmp_path / "run", tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_subfolder_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "run/closed").mkdir(parents=True)
    (tmp_path / "run" / H100).write_bytes(GOLDEN)
    (tmp_path / "run/closed").chmod(0)
    with pytest.raises(SourceError, match="cannot be read"):
        opened(tmp_path / "run", tmp_path)


def test_one_broken_zip_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"not a zip")
    (tmp_path / "b.zip").write_bytes(zipped({H100: GOLDEN}))
    _, fetched = opened(tmp_path, tmp_path)
    assert contents(fetched) == {H100: GOLDEN}
    assert [(p.subject, p.kind) for f in fetched for p in f.problems] == [("a.zip", "corrupt")]


def test_a_zip_is_a_run_of_one_artifact_with_its_digest(tmp_path: Path) -> None:
    raw = zipped({H100: GOLDEN})
    (tmp_path / "logs-tiny.zip").write_bytes(raw)
    found, fetched = opened(tmp_path / "logs-tiny.zip", tmp_path)
    assert found.id == "logs-tiny"
    assert fetched[0].artifact.sha256 == hashlib.sha256(raw).hexdigest()
    assert contents(fetched) == {H100: GOLDEN}


@pytest.mark.parametrize("packed", [True, False])
def test_the_launchers_folders_give_only_their_newest_restart(tmp_path: Path, packed: bool) -> None:
    files = {RESTART.format(0, 9): b"9", RESTART.format(0, 10): b"10"}
    folder = tmp_path / "run"
    folder.mkdir()
    if packed:
        (folder / "artifacts.zip").write_bytes(zipped(files))
    else:
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True)
            (folder / name).write_bytes(content)
    [member] = [m for f in opened(folder, tmp_path)[1] for m in f.members]
    assert (member.content, member.replicate) == (b"10", "iteration=0/restart=10")


def test_a_revision_gives_its_golden_files_byte_for_byte(make_repo: Callable[..., ScratchRepo]) -> None:
    repo = make_repo("repo", {f"goldens/{IN_LAYOUT}": b"{ }\r\n", "other/golden_values_x.json": b"{}", "goldens/a.txt": b""})
    commit = repo.git("rev-parse", "HEAD")
    repo.commit({f"goldens/{IN_LAYOUT}": b"changed"})
    for ref in (f"git:{commit}", commit, "HEAD~1"):
        found, fetched = opened(ref, repo.top)
        assert (found.provider, found.id, found.commit) == ("git", commit, commit)
        assert contents(fetched) == {f"goldens/{IN_LAYOUT}": b"{ }\r\n"}


def test_what_is_neither_path_nor_revision_says_what_there_is(make_repo: Callable[..., ScratchRepo]) -> None:
    with pytest.raises(UsageError, match="nowhere is no folder, zip, run or revision") as caught:
        opened("nowhere", make_repo("repo", {"a": b""}).top)
    assert "github:N" in caught.value.hint


def recorded(folder: Path) -> Path:
    zips = {11: zipped({H100: b"old"}), 12: zipped({H100: b"new"}), 13: zipped({GB200: GOLDEN})}
    jobs = [
        job(1, "moe/tiny - latest", labels=["h100"], conclusion="failure"),
        job(2, "moe/tiny - latest", labels=["gb200"], start="10:31", end="10:50"),
        job(3, "moe/tiny - latest", "11:00", "11:30", labels=["h100"], run_attempt=2),
    ]
    artifacts = [artifact(12, "tiny", "11:29"), artifact(11, "tiny", "10:29"), artifact(13, "tiny", "10:49")]
    return record(folder, run(run_attempt=2), jobs, artifacts, zips)


def test_a_recorded_run_is_attributed_as_a_live_one(tmp_path: Path) -> None:
    found, fetched = opened(recorded(tmp_path / "run"), tmp_path)
    assert (found.provider, found.id, found.attempt, found.commit) == ("github", str(RUN), 2, SHA)
    assert contents(fetched) == {H100: b"new", GB200: GOLDEN}
    assert {m.name: f.artifact.attempt for f in fetched for m in f.members} == {H100: 2, GB200: 1}


def test_a_recorded_run_gives_the_attempt_asked_for(tmp_path: Path) -> None:
    assert contents(opened(recorded(tmp_path / "run"), tmp_path, attempt=1)[1]) == {H100: b"old", GB200: GOLDEN}


def test_a_recorded_run_finds_its_golden_paths(tmp_path: Path) -> None:
    settings = Settings(tmp_path, root="goldens")
    source = open_source(str(recorded(tmp_path / "run")), settings)
    found = source.describe()
    placed = candidates.resolve(found, source.fetch(found.artifacts), candidates.Known(settings, frozenset()))
    assert [c.path for c in placed.candidates] == [f"goldens/moe/tiny/{GB200}", f"goldens/moe/tiny/{H100}"]


def test_a_recorded_zip_with_another_digest_is_corrupt(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "run")
    (folder / "12.zip").write_bytes(zipped({H100: b"forged"}))
    _, fetched = opened(folder, tmp_path)
    assert [(p.kind, p.message[:14]) for f in fetched for p in f.problems] == [("corrupt", "12.zip: sha256")]
    assert contents(fetched) == {GB200: GOLDEN}


def test_a_recorded_zip_that_is_not_there_is_missing_or_expired(tmp_path: Path) -> None:
    artifacts = [artifact(11, "tiny", "10:29"), artifact(12, "small", "10:29", expired=True)]
    jobs = [job(1, "moe/tiny - latest"), job(2, "moe/small - latest")]
    _, fetched = opened(record(tmp_path / "run", run(), jobs, artifacts, {}), tmp_path)
    kinds = {p.subject: p.kind for f in fetched for p in f.problems}
    assert kinds == {artifacts[0]["name"]: "missing", artifacts[1]["name"]: "expired"}


@pytest.mark.parametrize(
    ("name", "content"), [("run.json", b"{"), ("run.json", b"[]"), ("jobs.json", b'{"jobs": 3}'), ("artifacts.json", b"[1]"),
                          ("jobs.json", b"\xff"), ("run.json", b"[" * 100_000)],
)  # fmt: skip
def test_a_recorded_description_that_is_broken_is_corrupt_and_named(tmp_path: Path, name: str, content: bytes) -> None:
    folder = recorded(tmp_path / "run")
    (folder / name).write_bytes(content)
    with pytest.raises(CorruptError) as caught:
        opened(folder, tmp_path)
    assert caught.value.place.endswith(name)


def test_jobs_may_be_a_page_or_a_list(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "run")
    jobs = json.loads((folder / "jobs.json").read_bytes())["jobs"]
    (folder / "jobs.json").write_text(json.dumps(jobs))
    assert contents(opened(folder, tmp_path)[1]) == {H100: b"new", GB200: GOLDEN}


@pytest.mark.corpus
def test_a_revision_of_the_corpus_gives_all_its_goldens(corpus: Path) -> None:
    source = open_source("git:main", load(corpus))
    [fetched] = source.fetch(source.describe().artifacts)
    assert len(fetched.members) == 905
