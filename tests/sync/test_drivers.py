"""Git's own merge and diff with the drivers installed: golden files stay whole."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from goldenctl.cli.entry import main
from goldenctl.git import Repo
from goldenctl.sync.driver import Policy, decide, merge
from goldenctl.sync.plan import merge_text
from goldenctl.sync.textconv import as_text

from ..conftest import IDENTITY, ScratchRepo, golden_json

PATH = "goldens/moe/case a/golden_values_dev_dgx_h100.json"
SOURCES = str(Path(__file__).parents[2] / "src")


def curve(**changed: float) -> bytes:
    """Twelve steps of loss, some of them changed: ``curve(s3=1.5)``."""
    return golden_json(lm_loss={i: changed.get(f"s{i}", 10.0 - i / 8) for i in range(1, 13)})


BASE, OURS, THEIRS = curve(), curve(s2=1.5), curve(s11=2.5)


class Merging:
    """A repository in which both branches changed one golden in different places."""

    def __init__(self, repo: ScratchRepo, policy: str) -> None:
        self.repo = repo
        repo.commit({PATH: BASE, "code.py": "1\n"}, "base")
        assert main(["-C", str(repo.top), "install", "--merge-driver", "--diff-driver", "--policy", policy]) == 0
        repo.commit(message="install")
        repo.git("switch", "-q", "-c", "topic")

    def both(self, *, ours: bytes = OURS, theirs: bytes = THEIRS, late: str = "main") -> None:
        early, other = ("topic", "main") if late == "main" else ("main", "topic")
        for branch, date in ((early, "2026-04-01T00:00:00Z"), (other, "2026-04-02T00:00:00Z")):
            self.repo.git("switch", "-q", branch)
            self.repo.write({PATH: ours if branch == "topic" else theirs})
            message = f"refresh on {branch}\n\nGolden-Run: github:{7 if branch == 'main' else 5}"
            dates = {"GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date}
            subprocess.run(["git", "commit", "-qam", message], cwd=self.repo.top, check=True, env=os.environ | IDENTITY | dates)
        self.repo.git("switch", "-q", "topic")

    def merge(self) -> tuple[int, str]:
        command = ["git", "merge", "-q", "--no-edit", "main"]
        done = subprocess.run(command, cwd=self.repo.top, capture_output=True, text=True, env=self.environment, check=False)
        return done.returncode, done.stdout + done.stderr

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | IDENTITY | {"PYTHONPATH": SOURCES}

    @property
    def content(self) -> bytes:
        return (self.repo.top / PATH).read_bytes()


@pytest.fixture
def merging(make_repo: Callable[..., ScratchRepo]) -> Callable[[str], Merging]:
    return lambda policy: Merging(make_repo("repo"), policy)


def test_drafts_of_killed_drivers_are_removed_by_the_next_and_links_in_their_place_not_followed(tmp_path: Path) -> None:
    ours, other, outside = tmp_path / "ours", tmp_path / "other", tmp_path / "outside"
    for path, content in ((ours, OURS), (other, BASE), (outside, b"kept")):
        path.write_bytes(content)
    ours.chmod(0o640)
    (tmp_path / ".gone.goldenctl-merge").write_bytes(THEIRS[:9])
    (tmp_path / ".other.goldenctl-merge").write_bytes(THEIRS[:9])
    (tmp_path / ".ours.goldenctl-merge").symlink_to(outside)
    merge(Repo(tmp_path), PATH, Policy.THEIRS, ours, ours, other)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".other.goldenctl-merge", "other", "ours", "outside"]
    assert (ours.read_bytes(), outside.read_bytes(), ours.stat().st_mode & 0o777) == (BASE, b"kept", 0o640)


def test_git_alone_would_mix_the_two_curves() -> None:
    conflicts, text = merge_text(BASE, OURS, THEIRS)
    assert (conflicts, text) == (0, curve(s2=1.5, s11=2.5))


@pytest.mark.parametrize(("policy", "expected"), [("ours", OURS), ("theirs", THEIRS)])
def test_a_policy_takes_one_side_whole(merging: Callable[[str], Merging], policy: str, expected: bytes) -> None:
    made = merging(policy)
    made.both()
    code, said = made.merge()
    assert (code, made.content) == (0, expected)
    assert f"{PATH}: took {policy} ({policy})" in said


@pytest.mark.parametrize(("late", "expected"), [("main", THEIRS), ("topic", OURS)])
def test_the_newest_producer_wins(merging: Callable[[str], Merging], late: str, expected: bytes) -> None:
    made = merging("newest-producer")
    made.both(late=late)
    code, said = made.merge()
    assert (code, made.content) == (0, expected)
    assert "took" in said


def test_asking_stops_the_merge_with_our_content_whole_and_both_producers_named(merging: Callable[[str], Merging]) -> None:
    made = merging("ask")
    made.both()
    code, said = made.merge()
    assert code == 1
    assert made.content == OURS
    assert "of 2026-04-01 (refresh on topic, run github:5); theirs from" in said
    assert "of 2026-04-02 (refresh on main, run github:7)" in said
    assert {line.split("\t")[0].split()[2] for line in made.repo.git("ls-files", "-u").splitlines()} == {"1", "2", "3"}


def test_a_side_that_changed_only_the_formatting_gives_way(merging: Callable[[str], Merging]) -> None:
    made = merging("ask")
    made.both(ours=BASE.replace(b"    ", b"  "))
    assert made.merge()[0] == 0
    assert made.content == THEIRS


def test_a_diff_shows_a_table_of_metrics(merging: Callable[[str], Merging]) -> None:
    made = merging("ask")
    made.both()
    done = subprocess.run(
        ["git", "diff", "main", "topic"], cwd=made.repo.top, capture_output=True, text=True, env=made.environment, check=False
    )
    changed = [line for line in done.stdout.splitlines() if line.startswith(("-lm", "+lm"))]
    assert [line.split() for line in changed] == [
        ["-lm", "loss", "1…12", "(12,", "every", "1)", "9.875", "8.5", "2.5", "9.875"],
        ["+lm", "loss", "1…12", "(12,", "every", "1)", "9.875", "8.5", "1.5", "9.875"],
    ]


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["textconv", str(tmp_path / "none.json")], ["textconv", "--", str(tmp_path / "none.json")]):
        assert main(arguments) == 4
        assert "none.json: cannot be read: No such file or directory" in capsys.readouterr().err


def test_installing_twice_changes_nothing_and_keeps_other_attributes(make_repo: Callable[..., ScratchRepo]) -> None:
    repo = make_repo("repo", {PATH: BASE, ".gitattributes": "*.png binary\n"})
    for options in (["--merge-driver", "--policy", "ours"], ["--diff-driver"], ["--merge-driver", "--policy", "theirs"]):
        assert main(["-C", str(repo.top), "install", *options]) == 0
    once = (repo.top / ".gitattributes").read_text()
    assert once == ("*.png binary\n/goldens/**/golden_values*.json diff=goldenctl merge=goldenctl golden-policy=theirs\n")
    assert main(["-C", str(repo.top), "install", "--merge-driver", "--policy", "theirs"]) == 0
    assert (repo.top / ".gitattributes").read_text() == once


def test_an_unknown_policy_is_named(make_repo: Callable[..., ScratchRepo], capsys: pytest.CaptureFixture[str]) -> None:
    repo = make_repo("repo", {PATH: BASE})
    assert main(["-C", str(repo.top), "install", "--policy", "mine"]) == 2
    assert "is not one of 'ours', 'theirs', 'newest-producer', 'ask'" in capsys.readouterr().err


def test_a_policy_misspelt_in_the_attributes_stops_the_merge(merging: Callable[[str], Merging]) -> None:
    made = merging("ask")
    attributes = made.repo.top / ".gitattributes"
    attributes.write_text(attributes.read_text().replace("=ask", "=newest"))
    made.repo.commit(message="typo")
    made.both()
    code, said = made.merge()
    assert (code, made.content) == (1, OURS)
    assert "golden-policy=newest is not a policy" in said


def test_unreadable_sides_are_never_merged_by_line(make_repo: Callable[..., ScratchRepo]) -> None:
    repo = Repo(make_repo("repo", {PATH: BASE}).top)
    verdict = decide(repo, PATH, Policy.ASK, BASE, b"{", THEIRS)
    assert (verdict.content, verdict.conflict) == (b"{", True)
    assert "ours from content that no commit here has" in verdict.message


def test_a_table_counts_non_finite_values_and_shows_what_is_no_metric() -> None:
    raw = golden_json(lm_loss={1: "nan", 5: 10.5, 10: 10.25, 15: 10.0})
    assert as_text(raw).splitlines()[1].split() == [
        "lm",
        "loss",
        "1…15",
        "(4,",
        "every",
        "5)",
        "nan",
        "10.0",
        "10.0",
        "10.5",
        "1",
    ]
    assert as_text(b"{") == "not a golden document: " + as_text(b"{").split(": ", 1)[1]
    assert as_text(b"{").endswith("\n{")
    assert as_text(b'{"0": {"generated_text": "abc"}}').splitlines()[-1] == '0.generated_text: 5 characters: "abc"'


def test_a_metric_with_a_line_break_in_its_name_keeps_one_line() -> None:
    raw = b'{"lm\\nloss\\u001b[2J": {"start_step": 1, "end_step": 1, "step_interval": 1, "values": {"1": 2.0}}}'
    assert len(as_text(raw).splitlines()) == 2
    assert as_text(raw).splitlines()[1].startswith("lm\\nloss\\x1b[2J  1")
