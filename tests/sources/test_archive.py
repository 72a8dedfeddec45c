"""An archive outlives the CI's artifacts; it is written once and checked when it is read."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
import pytest

from goldenctl.cli.entry import main
from goldenctl.errors import CorruptError, NotFoundError, RepoError, UsageError
from goldenctl.sources.objects import FolderStore, ObjectStore, open_store
from tests.conftest import ScratchRepo
from tests.doubles.github import GithubDouble
from tests.sources.conftest import Taken
from tests.sources.runs import RUN, artifact, job, record, run
from tests.sources.zips import GB200, GOLDEN, H100, zipped

Take = Callable[..., Taken]


@pytest.fixture(params=["folder", "s3"])
def location(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty archive in a folder and in a bucket."""
    if request.param == "folder":
        return str(tmp_path / "archive")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", request.getfixturevalue("endpoint"))
    bucket = f"a-{abs(hash(str(tmp_path))) % 10**9}"
    boto3.Session().client("s3").create_bucket(Bucket=bucket)
    return f"s3://{bucket}/kept"


@pytest.fixture
def repo(make_repo: Callable[..., ScratchRepo], monkeypatch: pytest.MonkeyPatch) -> ScratchRepo:
    made = make_repo("r", {f"goldens/moe/tiny/{H100}": GOLDEN})
    monkeypatch.chdir(made.top)
    return made


def recorded(folder: Path, **more: Any) -> Path:
    jobs = [job(1, "moe/tiny - latest", **more), job(2, "moe/small - latest")]
    artifacts = [artifact(11, "tiny", "10:29"), artifact(12, "small", "10:29")]
    zips = {11: zipped({H100: b"one", "logs/0": b"x"}), 12: zipped({GB200: b"two"})}
    return record(folder, run(), jobs, artifacts, zips)


def contents(store: ObjectStore) -> dict[str, bytes]:
    return {name: store.get(name) for name in store.names("")}


def test_a_run_taken_from_an_archive_is_the_run_that_was_archived(
    location: str, repo: ScratchRepo, tmp_path: Path, take: Take
) -> None:
    folder = recorded(tmp_path / "run")
    live = take(str(folder))
    assert main(["archive", "--from-job", str(folder), "--to", location]) == 0
    kept = take(f"archive:{location}#{RUN}")
    assert kept.contents == live.contents == {f"1:{H100}": b"one", f"2:{GB200}": b"two"}
    assert (kept.run.provider, kept.run.id, kept.run.commit) == ("github", str(RUN), live.run.commit)
    assert kept.run.jobs == live.run.jobs
    assert {f.artifact.sha256 for f in kept.fetched} == {f.artifact.sha256 for f in live.fetched}
    assert take(f"archive:{location}").contents == kept.contents, "the only run needs no name"


def test_archiving_again_or_side_by_side_changes_nothing(
    location: str, repo: ScratchRepo, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["archive", "--from-job", str(recorded(tmp_path / "run")), "--to", location, "--format", "json"]
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(main, [arguments] * 8)) == {0}
    capsys.readouterr()
    before = contents(open_store(location))
    assert len(before) == 3, "two objects and one manifest"
    assert main(arguments) == 0
    [said] = json.loads(capsys.readouterr().out)["runs"]
    assert (said["members"], said["stored"], said["bytes"]) == (2, 0, 0)
    assert contents(open_store(location)) == before


def test_of_many_writers_exactly_one_stores_an_object(location: str) -> None:
    with ThreadPoolExecutor(12) as pool:
        stored = list(pool.map(lambda _: open_store(location).put_once("objects/x", b"content"), range(12)))
    assert sorted(stored) == [False] * 11 + [True]
    assert contents(open_store(location)) == {"objects/x": b"content"}


def test_a_run_archived_while_it_went_on_is_taken_as_a_whole(
    location: str, repo: ScratchRepo, tmp_path: Path, take: Take
) -> None:
    folder = recorded(tmp_path / "run")
    (tmp_path / "later").mkdir()
    (folder / "12.zip").rename(tmp_path / "later/12.zip")
    assert main(["archive", "--from-job", str(folder), "--to", location]) == 3
    assert take(f"archive:{location}#{RUN}").contents == {f"1:{H100}": b"one"}
    (tmp_path / "later/12.zip").rename(folder / "12.zip")
    assert main(["archive", "--from-job", str(folder), "--to", location]) == 0
    assert take(f"archive:{location}#{RUN}").contents == {f"1:{H100}": b"one", f"2:{GB200}": b"two"}


def test_the_archive_outlives_the_artifacts(
    location: str, repo: ScratchRepo, github: GithubDouble, take: Take, capsys: pytest.CaptureFixture[str]
) -> None:
    github.add(run(), [job(1, "moe/tiny - latest")], [artifact(11, "tiny", "10:29")], {11: zipped({H100: b"kept"})})
    url = f"https://github.com/o/r/actions/runs/{RUN}"
    assert main(["archive", "--from-job", url, "--to", location]) == 0
    github.artifacts[RUN][0]["expired"] = True
    assert take(url).kinds == ["expired"]
    assert main(["archive", "--from-job", url, "--to", location]) == 3
    assert "the artifact has expired" in capsys.readouterr().err
    assert take(f"archive:{location}#{RUN}").contents == {f"1:{H100}": b"kept"}


def test_several_runs_are_told_apart_by_their_id(location: str, repo: ScratchRepo, tmp_path: Path, take: Take) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "moe/tiny").mkdir(parents=True)
        (tmp_path / name / "moe/tiny" / H100).write_bytes(name.encode())
        assert main(["archive", "--from-job", str(tmp_path / name), "--to", location]) == 0
    assert list(take(f"archive:{location}#b").contents.values()) == [b"b"]
    with pytest.raises(UsageError, match="fits 2 manifests") as caught:
        take(f"archive:{location}")
    assert caught.value.hint == "append # and one of: a, b"
    with pytest.raises(NotFoundError, match="no such run in the archive") as missing:
        take(f"archive:{location}#c")
    assert missing.value.hint == "it holds a, b"


def test_a_run_without_goldens_archives_nothing(location: str, repo: ScratchRepo, tmp_path: Path) -> None:
    folder = record(tmp_path / "run", run(), [job(1, "moe/tiny - latest")], [], {})
    assert main(["archive", "--from-job", str(folder), "--to", location]) == 1
    assert contents(open_store(location)) == {}


def spoiled(folder: Path, pattern: str, content: bytes) -> Path:
    [path] = folder.glob(pattern)
    path.chmod(0o644)
    path.write_bytes(content)
    return path


def test_a_changed_object_or_manifest_is_corrupt(repo: ScratchRepo, tmp_path: Path, take: Take) -> None:
    archive = tmp_path / "archive"
    main(["archive", "--from-job", str(recorded(tmp_path / "run")), "--to", str(archive)])
    spoiled(archive, f"objects/{hashlib.sha256(b'one').hexdigest()}", b"forged")
    spoiled(archive, f"objects/{hashlib.sha256(b'two').hexdigest()}", b"two").unlink()
    taken = take(f"archive:{archive}")
    assert taken.contents == {}
    assert sorted((p.kind, p.message) for p in taken.problems) == [
        ("corrupt", f"{H100}: its content is not what its name says"),
        ("missing", f"{GB200}: its content is not in the archive"),
    ]
    spoiled(archive, "manifests/*/*/*.json", b"{}")
    with pytest.raises(CorruptError, match="the manifest's content is not what its name says"):
        take(f"archive:{archive}")


@pytest.mark.parametrize(
    "manifest",
    [b"[", b"[]", b"{}", b'{"version": 2}', b'{"version": 1}', b'{"version": 1, "members": [{}], "run": {}}',
     b'{"version": 1, "members": [], "run": []}',
     b'{"version": 1, "run": {}, "members": [{"name": "a", "sha256": "../../x", "replicate": "", "artifact": {"id": "1"}}]}'],
)  # fmt: skip
def test_a_manifest_of_another_form_is_corrupt(manifest: bytes, tmp_path: Path, take: Take) -> None:
    key = f"manifests/github/1/{hashlib.sha256(manifest).hexdigest()}.json"
    FolderStore(tmp_path / "archive").put_once(key, manifest)
    with pytest.raises(CorruptError):
        take(f"archive:{tmp_path / 'archive'}")


def test_files_half_written_by_a_killed_writer_are_no_objects(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put_once("objects/a", b"a")
    (tmp_path / "objects/.put-x").write_bytes(b"half")
    assert list(store.names("objects/")) == ["objects/a"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_an_archive_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(RepoError, match="cannot be written"):
        FolderStore(tmp_path).put_once("objects/a", b"a")


def test_an_archive_below_a_file_cannot_be_written_and_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RepoError, match="cannot be written"):
        FolderStore(tmp_path / "file").put_once("objects/a", b"a")


def test_a_full_disk_is_exit_4_and_leaves_nothing_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    golden = tmp_path / "run/gpt/case/golden_values_dev_dgx_h100.json"
    golden.parent.mkdir(parents=True)
    golden.write_bytes(b"{}")
    (tmp_path / "goldens").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    assert main(["archive", "--from-job", "run", "--to", "kept"]) == 4
    assert "cannot be written: No space left on device" in capsys.readouterr().err
    assert [p for p in (tmp_path / "kept").rglob("*") if p.is_file()] == []


@pytest.mark.parametrize("place", ["", "gs://bucket/x", "https://x.example/y"])
def test_a_place_of_another_kind_is_wrong_use(place: str) -> None:
    with pytest.raises(UsageError, match="is no place for an archive"):
        open_store(place)
