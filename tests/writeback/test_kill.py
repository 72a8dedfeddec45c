"""A kill -9 at any moment leaves every file whole, and the next command finishes or undoes the rest."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from goldenctl.errors import RepoError
from goldenctl.writeback import recover

from .world import CHANGES, NEW, OLD, build, files, goldens, killed_at_line, killed_at_step, repair, untouched, write, written

UNDONE = "an interrupted write-back was undone: its files are as they were"
NOTHING = "an interrupted write-back left nothing to finish or undo"
FINISHED = "an interrupted write-back was finished: its files are written"


def whole(top: Path) -> bool:
    """Whether each golden holds its old or its new content, and none other exists."""
    return all(content in (OLD.get(path), NEW.get(path)) for path, content in goldens(top).items())


def test_after_a_kill_at_any_step_all_files_become_old_or_all_new(tmp_path: Path) -> None:
    seen: list[tuple[str, list[str]]] = []
    for number in itertools.count(1):
        top = build(tmp_path / str(number))
        word = killed_at_step(partial(write, top), number)
        if not word:
            break
        assert whole(top), word
        seen.append((word, recover(top)))
        assert written(top) if "marker" in [w for w, _ in seen] else untouched(top), word
    words = [word for word, _ in seen]
    assert written(top)
    assert words.count("replaced") == len(CHANGES) == 4
    assert words.count("temporary file") == 3
    marker = words.index("marker")
    assert all(said == [UNDONE] for _, said in seen[1:marker])
    assert all(said == [FINISHED] for _, said in seen[marker:-2])
    assert (seen[0], seen[-2], seen[-1]) == (
        ("folder", [NOTHING]),
        ("journal file removed", [NOTHING]),
        ("journal removed", []),
    )


def test_after_a_kill_before_any_line_all_files_become_old_or_all_new(tmp_path: Path) -> None:
    for number in itertools.count(1, 7):
        top = build(tmp_path / "top")
        if not killed_at_line(partial(write, top), number):
            break
        assert whole(top), number
        recover(top)
        assert untouched(top) or written(top), number
        shutil.rmtree(top)
    assert number > 300


@pytest.mark.parametrize("stop", ["manifest", "temporary file", "marker", "replaced", "manifest removed"])
def test_a_kill_of_the_recovery_itself_is_recovered_from(tmp_path: Path, stop: str) -> None:
    number = next(n for n in itertools.count(1) if _word(tmp_path / "probe", n) == stop)
    expected = untouched if stop in ("manifest", "temporary file") else written
    for later in itertools.count(1):
        top = build(tmp_path / str(later))
        killed_at_step(partial(write, top), number)
        word = killed_at_step(partial(repair, top), later)
        assert whole(top), word
        recover(top)
        assert expected(top), word
        if not word:
            break
    assert later > 3


def test_a_kill_while_a_failed_write_back_is_undone_ends_in_the_old_files(tmp_path: Path) -> None:
    for later in itertools.count(1):
        top = build(tmp_path / str(later))
        word = killed_at_step(partial(_failing, top), later)
        assert whole(top), word
        recover(top)
        assert untouched(top), word
        if not word:
            break
    assert later > 5


def _failing(top: Path, step: Callable[[str], None]) -> None:
    """A write-back whose second replacement fails; ``step`` is told of the undoing alone."""
    words: list[str] = []

    def failing(word: str) -> None:
        words.append(word)
        if words.count("replaced") == 2 and word == "replaced":
            raise OSError(errno.EIO, os.strerror(errno.EIO), "disk")
        if words.count("replaced") >= 2:
            step(word)

    with contextlib.suppress(RepoError):
        write(top, failing)


def _word(top: Path, number: int) -> str:
    shutil.rmtree(top, ignore_errors=True)
    return killed_at_step(lambda step: write(build(top), step), number)


def stopped_at(top: Path, word: str, nth: int = 1) -> Path:
    """A tree whose write-back was killed after the nth step of that name."""
    numbers = (n for n in itertools.count(1) if _word(top, n) == word)
    next(itertools.islice(numbers, nth - 1, None))
    return top


def test_a_file_changed_by_somebody_else_is_kept_when_the_rest_is_finished(tmp_path: Path) -> None:
    top = stopped_at(tmp_path / "top", "marker")
    (top / "goldens/a.json").write_bytes(b"by hand")
    said = recover(top)
    assert said == [FINISHED, "goldens/a.json was changed by somebody else in between and is left as it is"]
    assert files(top) == NEW | {"goldens/a.json": b"by hand"}


def test_a_file_changed_by_somebody_else_is_kept_when_the_rest_is_undone(tmp_path: Path) -> None:
    top = stopped_at(tmp_path / "top", "temporary file")
    (top / "goldens/fresh/note.txt").write_bytes(b"mine")
    (top / "goldens/a.json").write_bytes(b"by hand")
    said = recover(top)
    assert said == [UNDONE, "goldens/a.json was changed by somebody else in between and is left as it is"]
    assert files(top) == OLD | {"goldens/a.json": b"by hand", "goldens/fresh/note.txt": b"mine"}


def test_temporary_files_swept_away_in_between_are_made_again(tmp_path: Path) -> None:
    top = stopped_at(tmp_path / "top", "replaced", 2)
    for path in (top / "goldens").rglob(".goldenctl-*.tmp"):
        path.unlink()
    assert recover(top) == [FINISHED]
    assert written(top)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"goldens/a.json"', '"../a.json"'),
        ('"goldens/a.json"', '"goldens/../.git/hooks/pre-commit"'),
        ('"goldens/a.json"', '".git/hooks/pre-commit"'),
        ('"goldens/a.json"', "7"),
        ('"goldens"', '"elsewhere"'),
        ('"files"', '"flies"'),
        ('"old": "', '"old": "x'),
        ("{", "["),
    ],
)
def test_a_manifest_that_goldenctl_did_not_write_is_refused(tmp_path: Path, old: str, new: str) -> None:
    top = stopped_at(tmp_path / "top", "marker")
    manifest = top / ".goldenctl/journal/manifest.json"
    text = manifest.read_text()
    assert old in text
    manifest.write_text(text.replace(old, new, 1))
    with pytest.raises(RepoError, match="unusable") as caught:
        recover(top)
    assert caught.value.hint == f"look at `git status`, then remove {top}/.goldenctl/journal"
    assert goldens(top) == OLD


def test_a_recovery_does_not_follow_a_link_made_in_between(tmp_path: Path) -> None:
    top = stopped_at(tmp_path / "top", "marker")
    outside = tmp_path / "outside"
    shutil.move(top / "goldens/sub", outside)
    (top / "goldens/sub").symlink_to(outside)
    assert "goldens/sub/b.json was changed by somebody else in between and is left as it is" in recover(top)
    assert (outside / "b.json").read_bytes() == b"old b"


def test_the_next_command_recovers_and_says_so_on_stderr(tmp_path: Path) -> None:
    top = stopped_at(tmp_path / "top", "replaced")
    (top / ".git").mkdir()
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    command = [sys.executable, "-m", "goldenctl", "-C", str(top / "goldens"), "restore", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert FINISHED in done.stderr.splitlines()
    assert FINISHED not in done.stdout
    assert written(top)


def test_another_process_that_is_writing_is_waited_for_and_then_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = build(tmp_path / "top")
    monkeypatch.setattr("goldenctl.writeback._WAIT", 0.0)

    def second(word: str) -> None:
        if word == "marker":
            with pytest.raises(RepoError, match="another goldenctl has been writing"):
                recover(top)

    write(top, second)
    assert written(top)
