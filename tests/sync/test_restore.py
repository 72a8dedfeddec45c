"""Earlier content of goldens comes back through the same checks and the same write-back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from goldenctl.cli.entry import main

from ..conftest import ScratchRepo, golden_json

A = "goldens/moe/case_a/golden_values_dev_dgx_h100.json"
B = "goldens/moe/case_b/golden_values_dev_dgx_h100.json"
FIRST = golden_json(lm_loss={1: 10.5, 2: 10.25})
SECOND = golden_json(lm_loss={1: 10.75, 2: 10.5})
BROKEN = golden_json(lm_loss={1: 10.75, 2: "nan"})
ARCHIVED = golden_json(lm_loss={1: 10.875, 2: 10.625})
Said = tuple[int, str, str]
Goldenctl = Callable[..., Said]


@pytest.fixture
def repo(make_repo: Callable[..., ScratchRepo]) -> ScratchRepo:
    made = make_repo("repo", {A: FIRST, B: FIRST, ".gitignore": ".goldenctl/\n"})
    made.commit({A: SECOND}, "change a")
    return made


@pytest.fixture
def goldenctl(repo: ScratchRepo, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Goldenctl:
    monkeypatch.chdir(repo.top)

    def run(*arguments: str) -> Said:
        code = main(list(arguments))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def content(repo: ScratchRepo, path: str = A) -> bytes:
    return (repo.top / path).read_bytes()


def test_the_content_of_a_revision_comes_back_and_is_recorded(repo: ScratchRepo, goldenctl: Goldenctl) -> None:
    code, out, _ = goldenctl("restore", A, "--from", "HEAD~1", "--yes", "--format", "json")
    assert code == 0
    assert content(repo) == FIRST
    said = json.loads(out)
    assert said["summary"] == {"written": 1, "unchanged": 0, "refused": 0, "missing": 0, "would-write": 0}
    code, out, _ = goldenctl("catalog", "sql", "SELECT path, action FROM refresh_file", "--format", "csv")
    assert out.splitlines()[1:] == [f"{A},written"]


def test_what_a_refresh_wrote_comes_back_by_its_id(repo: ScratchRepo, goldenctl: Goldenctl) -> None:
    _, out, _ = goldenctl("restore", A, "--from", "HEAD~1", "--yes", "--format", "json", "--commit")
    refresh = json.loads(out)["refresh"]
    repo.commit({A: SECOND}, "change it again")
    assert goldenctl("restore", A, "--from", f"refresh:{refresh}", "--yes")[0] == 0
    assert content(repo) == FIRST


def test_a_commit_carries_the_origin(repo: ScratchRepo, goldenctl: Goldenctl) -> None:
    before = repo.git("rev-parse", "HEAD~1")
    assert goldenctl("restore", A, "--from", "HEAD~1", "--yes", "--commit")[0] == 0
    message = repo.git("log", "-1", "--format=%B").splitlines()
    assert message[0] == f"Restore 1 golden file from git:{before[:10]}"
    assert f"Golden-Run: git:{before}" in message
    assert repo.git("status", "--porcelain") == ""


def test_content_comes_back_by_its_digest_without_a_catalog(repo: ScratchRepo, goldenctl: Goldenctl) -> None:
    digest = hashlib.sha256(FIRST).hexdigest()
    assert goldenctl("restore", A, "--from", f"archive:{digest}", "--yes")[0] == 0
    assert content(repo) == FIRST
    code, _, err = goldenctl("restore", A, "--from", "archive:0123456789abcdef", "--yes")
    assert code == 3
    assert "no branch here has had a content 0123456789abcdef" in err


@pytest.fixture
def archived(goldenctl: Goldenctl, tmp_path: Path) -> tuple[Path, str]:
    """An archive with one golden no branch has had, and the golden's digest."""
    platform_run = tmp_path / "run/results/dgx_h100"
    platform_run.mkdir(parents=True)
    (platform_run / "golden_values_dev_dgx_h100.json").write_bytes(ARCHIVED)
    assert goldenctl("archive", "--from-job", str(tmp_path / "run"), "--to", str(tmp_path / "kept"))[0] == 0
    return tmp_path / "kept", hashlib.sha256(ARCHIVED).hexdigest()


def test_content_no_branch_has_had_comes_back_from_a_named_archive(
    repo: ScratchRepo, goldenctl: Goldenctl, archived: tuple[Path, str]
) -> None:
    kept, digest = archived
    code, out, _ = goldenctl("restore", A, "--from", f"archive:{kept}#{digest[:12]}", "--yes", "--commit", "--format", "json")
    assert code == 0
    assert content(repo) == ARCHIVED
    assert json.loads(out)["run"]["ref"] == f"archive:{kept}#{digest}"
    assert f"Golden-Artifact: {A} sha256:{digest}" in repo.git("log", "-1", "--format=%B")


def test_content_no_branch_has_had_comes_back_from_the_archive_of_the_settings(
    repo: ScratchRepo, goldenctl: Goldenctl, archived: tuple[Path, str]
) -> None:
    kept, digest = archived
    kept.rename(repo.top / "kept")
    assert goldenctl("restore", A, "--from", f"archive:{digest}", "--yes")[0] == 3
    (repo.top / "goldenctl.toml").write_text('archive = "kept"\n')
    assert goldenctl("restore", A, "--from", f"archive:{digest}", "--yes")[0] == 0
    assert content(repo) == ARCHIVED


def test_an_archived_content_that_changed_or_is_not_there_is_not_written(
    repo: ScratchRepo, goldenctl: Goldenctl, archived: tuple[Path, str]
) -> None:
    kept, digest = archived
    code, _, err = goldenctl("restore", A, "--from", f"archive:{kept}#0123456789abcdef", "--yes")
    assert (code, "holds no content 0123456789abcdef" in err) == (3, True)
    code, _, err = goldenctl("restore", A, B, "--from", f"archive:{kept}#{digest}", "--yes")
    assert (code, "name the one golden it belongs to" in err) == (2, True)
    stored = kept / "objects" / digest
    stored.write_bytes(FIRST)
    code, _, err = goldenctl("restore", A, "--from", f"archive:{kept}#{digest}", "--yes")
    assert (code, "is not what its name says" in err) == (3, True)
    assert content(repo) == SECOND


def test_a_folder_restores_its_goldens_and_a_path_may_start_where_the_user_is(
    repo: ScratchRepo, goldenctl: Goldenctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo.top / "goldens/moe")
    code, out, _ = goldenctl("restore", "case_a", "../moe/case_b", "--from", "HEAD~1", "--dry-run", "--format", "json")
    assert code == 0
    assert [(f["path"], f["action"]) for f in json.loads(out)["files"]] == [(A, "would-write"), (B, "unchanged")]


def test_a_dry_run_and_a_missing_answer_write_nothing(repo: ScratchRepo, goldenctl: Goldenctl) -> None:
    code, out, _ = goldenctl("restore", A, "--from", "HEAD~1", "--dry-run")
    assert (code, "would-write" in out) == (0, True)
    code, _, err = goldenctl("restore", A, "--from", "HEAD~1")
    assert (code, "add --yes" in err) == (2, True)
    assert content(repo) == SECOND


def test_an_error_that_today_does_not_have_refuses_unless_allowed(repo: ScratchRepo, goldenctl: Goldenctl) -> None:
    repo.commit({A: BROKEN}, "nan")
    repo.commit({A: SECOND}, "repair")
    code, out, _ = goldenctl("restore", A, "--from", "HEAD~1", "--yes")
    assert code == 1
    assert "GV001:lm loss is worse than today; --allow 'GV001:lm loss' admits it" in out
    assert content(repo) == SECOND
    assert goldenctl("restore", A, "--from", "HEAD~1", "--yes", "--allow", "GV001:lm loss")[0] == 0
    assert content(repo) == BROKEN


def test_uncommitted_changes_are_refused_without_force(repo: ScratchRepo, goldenctl: Goldenctl) -> None:
    repo.write({A: golden_json(lm_loss={1: 1.5, 2: 1.25})})
    code, out, _ = goldenctl("restore", A, "--from", "HEAD~1", "--yes")
    assert (code, "has uncommitted changes" in out) == (1, True)
    assert goldenctl("restore", A, "--from", "HEAD~1", "--yes", "--force")[0] == 0
    assert content(repo) == FIRST


def test_a_file_that_holds_the_content_already_is_unchanged_though_nobody_committed_it(
    repo: ScratchRepo, goldenctl: Goldenctl
) -> None:
    repo.write({A: FIRST})
    code, out, _ = goldenctl("restore", A, "--from", "HEAD~1", "--yes", "--format", "json")
    assert (code, json.loads(out)["files"][0]["action"]) == (0, "unchanged")


@pytest.mark.parametrize("named", ["reverted", "revert"])
def test_a_revert_proposes_the_goldens_from_before_the_reverted_commit(
    repo: ScratchRepo, goldenctl: Goldenctl, named: str
) -> None:
    changed = repo.commit({B: SECOND, "code.py": "new"}, "change numerics")
    repo.commit({A: golden_json(lm_loss={1: 9.5, 2: 9.25})}, "unrelated")
    repo.write({"code.py": "old"})
    repo.commit(message=f'Revert "change numerics"\n\nThis reverts commit {changed}.')
    rev = changed if named == "reverted" else "HEAD"
    code, out, _ = goldenctl("restore", "--reverted", rev, "--yes", "--format", "json")
    assert code == 0
    assert [(f["path"], f["action"]) for f in json.loads(out)["files"]] == [(B, "written")]
    assert content(repo, B) == FIRST


def test_goldens_refreshed_after_the_reverted_commit_need_force(repo: ScratchRepo, goldenctl: Goldenctl) -> None:
    changed = repo.commit({B: SECOND}, "change numerics")
    repo.commit({B: golden_json(lm_loss={1: 9.5, 2: 9.25})}, "refresh again")
    code, out, _ = goldenctl("restore", "--reverted", changed, "--yes")
    assert (code, "changed again after the reverted commit" in out) == (1, True)
    assert goldenctl("restore", "--reverted", changed, "--yes", "--force")[0] == 0
    assert content(repo, B) == FIRST


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["restore", A], 2, "name one origin"),
        (["restore", "--from", "HEAD"], 2, "name the goldens to restore"),
        (["restore", A, "--from", "HEAD", "--reverted", "HEAD"], 2, "name one origin"),
        (["restore", A, "--from", "nowhere", "--yes"], 2, "no such revision: nowhere"),
        (["restore", "/etc/passwd", "--from", "HEAD", "--yes"], 2, "is not in this repository"),
        (["restore", A, "--from", "archive:xyz", "--yes"], 2, "is no digest"),
        (["restore", A, "--from", "refresh:1", "--yes"], 4, "no catalog"),
    ],
)
def test_wrong_use_says_what_to_do(goldenctl: Goldenctl, arguments: list[str], code: int, text: str) -> None:
    found, _, err = goldenctl(*arguments)
    assert found == code
    assert text in err
    assert "Traceback" not in err


def test_a_golden_that_was_not_there_is_missing(repo: ScratchRepo, goldenctl: Goldenctl) -> None:
    code, out, _ = goldenctl("restore", "goldens/moe/new/golden_values_dev_dgx_h100.json", "--from", "HEAD", "--yes")
    assert (code, "no such golden at HEAD" in out) == (1, True)
    assert not Path(repo.top / "goldens/moe/new").exists()
