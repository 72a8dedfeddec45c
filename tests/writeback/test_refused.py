"""What the disk or the paths refuse leaves the tree untouched and says why."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from goldenctl.errors import RepoError
from goldenctl.git import Repo
from goldenctl.model import Change
from goldenctl.writeback import apply, recover, refusals

from ..conftest import ScratchRepo
from .world import CHANGES, build, files, untouched, write, written


def locked(path: Path) -> Iterator[Path]:
    """The path made immutable, so that even root cannot change it."""
    done = subprocess.run(["chattr", "+i", str(path)], capture_output=True, check=False) if shutil.which("chattr") else None
    if done is None or done.returncode:
        pytest.skip("chattr +i is not possible here (no root, or the file system has no such flag)")
    try:
        yield path
    finally:
        subprocess.run(["chattr", "-i", str(path)], check=True)


def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """Something mounted on the folder."""
    if os.geteuid() != 0 or subprocess.run(["mount", *options, str(folder)], capture_output=True, check=False).returncode:
        pytest.skip("mounting is not possible here (no root, or not allowed)")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return build(tmp_path / "top")


@pytest.fixture
def locked_file(top: Path) -> Iterator[Path]:
    yield from locked(top / "goldens/sub/b.json")


@pytest.fixture
def locked_folder(top: Path) -> Iterator[Path]:
    yield from locked(top / "goldens/sub")


@pytest.fixture
def locked_top(top: Path) -> Iterator[Path]:
    yield from locked(top)


@pytest.fixture
def read_only_mount(top: Path) -> Iterator[Path]:
    yield from mounted(top / "goldens/sub", "--bind", "-o", "ro", str(top / "goldens/sub"))


@pytest.fixture
def other_file_system(top: Path) -> Iterator[Path]:
    place = top / "goldens/sub"
    for path in mounted(place, "-t", "tmpfs", "-o", "size=1m", "tmpfs"):
        (path / "b.json").write_bytes(b"old b")
        (path / "b.json").chmod(0o755)
        yield path


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    yield from mounted(place, "-t", "tmpfs", "-o", "size=256k", "tmpfs")


@pytest.mark.parametrize(
    ("where", "fact"),
    [
        ("locked_file", "locked, or no permission to write; no golden file was changed"),
        ("locked_folder", "locked, or no permission to write; no golden file was changed"),
        ("locked_top", "locked, or no permission to write; no golden file was changed"),
        ("read_only_mount", "the file system is read-only; no golden file was changed"),
    ],
)
def test_a_place_that_cannot_be_written_leaves_the_tree_untouched(
    request: pytest.FixtureRequest, top: Path, where: str, fact: str
) -> None:
    place = request.getfixturevalue(where)
    with pytest.raises(RepoError) as caught:
        write(top)
    assert caught.value.fact == fact
    assert str(place) in caught.value.place or caught.value.place.startswith(str(place.parent))
    assert caught.value.hint
    assert untouched(top)


def test_goldens_on_another_file_system_are_written_too(top: Path, other_file_system: Path) -> None:
    write(top)
    assert written(top)


def test_a_full_disk_leaves_the_tree_untouched_however_far_it_came(small_disk: Path) -> None:
    top = build(small_disk / "top")
    before = files(top)
    changes = [Change(f"goldens/n{i}.json", None, b"x" * 12_000) for i in range(4)] + list(CHANGES)
    failed = 0
    for filler in range(60, 0, -1):
        (small_disk / "filler").write_bytes(b"")
        with (small_disk / "filler").open("wb") as stream:
            stream.write(b"\0" * 4096 * filler)
        if _full(top, changes):
            failed += 1
            assert files(top) == before
            assert untouched(top)
        else:
            break
    assert failed >= 10
    assert len(files(top)) == 4 + 3


def _full(top: Path, changes: list[Change]) -> bool:
    try:
        apply(top, "goldens", changes)
    except RepoError as exc:
        assert exc.fact == "the disk is full; no golden file was changed"
        assert exc.hint == "make room, then run the command again"
        return True
    return False


def test_a_folder_that_vanishes_midway_undoes_the_rest(top: Path) -> None:
    def vanish(word: str) -> None:
        if word == "marker":
            shutil.rmtree(top / "goldens/sub")

    with pytest.raises(RepoError, match=r"not written .*changed while it was being replaced"):
        write(top, vanish)
    assert files(top) == {"goldens/a.json": b"old a", "goldens/gone.json": b"old gone"}
    assert recover(top) == []


def test_an_interrupt_midway_undoes_the_rest(top: Path) -> None:
    words: list[str] = []

    def interrupt(word: str) -> None:
        words.append(word)
        if words.count("replaced") == 1 and word == "replaced":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(top, interrupt)
    assert untouched(top)


def test_a_file_changed_since_it_was_read_is_not_written(top: Path) -> None:
    (top / "goldens/sub/b.json").write_bytes(b"by hand")
    with pytest.raises(RepoError, match="changed since it was read"):
        write(top)
    assert (top / "goldens/a.json").read_bytes() == b"old a"
    assert (top / "goldens/sub/b.json").read_bytes() == b"by hand"


BAD = [
    ("../x.json", "leads outside root"),
    ("/etc/x.json", "leads outside root"),
    ("goldens/../../x.json", "leads outside root"),
    ("goldens/./x.json", "leads outside root"),
    ("goldens//x.json", "leads outside root"),
    ("goldens/x\0.json", "leads outside root"),
    ("goldens", "lies outside goldens"),
    ("goldens2/x.json", "lies outside goldens"),
    ("goldens/.git/hooks/x", "lies in a folder that is not for golden files"),
    ("goldens/a.json/x.json", "a.json on its way is a file"),
    ("goldens/link/x.json", "link on its way is a link"),
    ("goldens/link.json", "is a link"),
    ("goldens/sub", "is not a file"),
]


@pytest.mark.parametrize(("path", "reason"), BAD)
def test_a_path_that_is_no_golden_of_ours_is_refused_with_its_reason(
    make_repo: Callable[..., ScratchRepo], tmp_path: Path, path: str, reason: str
) -> None:
    top = build(make_repo("repo").top)
    (top / "goldens/link").symlink_to(tmp_path)
    (top / "goldens/link.json").symlink_to(tmp_path / "x.json")
    assert refusals(Repo(top), "goldens", [path], force=True) == {path: reason}
    with pytest.raises(RepoError) as caught:
        apply(top, "goldens", [CHANGES[0], Change(path, None, b"bad")])
    assert caught.value.fact == f"not written: it {reason}"
    assert (top / "goldens/a.json").read_bytes() == b"old a"
    assert not (tmp_path / "x.json").exists()


def test_the_same_path_twice_is_refused(top: Path) -> None:
    with pytest.raises(RepoError, match="twice"):
        apply(top, "goldens", [CHANGES[0], CHANGES[0]])
    assert untouched(top)


def test_a_linked_state_folder_is_refused(top: Path, tmp_path: Path) -> None:
    (top / ".goldenctl").symlink_to(tmp_path)
    with pytest.raises(RepoError, match="is a link"):
        write(top)
    assert not (tmp_path / "journal").exists()


def test_uncommitted_changes_are_refused_unless_forced(make_repo: Callable[..., ScratchRepo]) -> None:
    repo = make_repo("repo", {"goldens/a.json": "1", "goldens/b.json": "2", "goldens/c.json": "3"})
    repo.write({"goldens/b.json": "changed", "goldens/new.json": "4"})
    paths = ["goldens/a.json", "goldens/b.json", "goldens/new.json", "goldens/free.json", "../out.json"]
    reason = "has uncommitted changes; commit them, or use --force to write over them"
    found = refusals(Repo(repo.top), "goldens", paths, force=False)
    assert found == {"goldens/b.json": reason, "goldens/new.json": reason, "../out.json": "leads outside root"}
    assert refusals(Repo(repo.top), "goldens", paths, force=True) == {"../out.json": "leads outside root"}


def test_a_read_only_mount_is_refused_before_anything_is_tried(top: Path, read_only_mount: Path) -> None:
    found = refusals(Repo(top), "goldens", ["goldens/sub/b.json", "goldens/sub/n.json", "goldens/a.json"], force=True)
    assert found == {
        "goldens/sub/b.json": "is not writable",
        "goldens/sub/n.json": "its folder goldens/sub is not writable",
    }
