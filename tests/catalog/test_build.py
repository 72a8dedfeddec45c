"""Building the catalog: complete, idempotent, resumable, whatever happens to branches and processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from goldenctl.catalog import build as filling
from goldenctl.catalog import parsing, record_refresh, record_run, store
from goldenctl.cli.entry import main
from goldenctl.config import Settings, load
from goldenctl.errors import RepoError, UsageError
from goldenctl.git import Repo
from tests.catalog.test_record import RUN, candidate, refresh
from tests.catalog.world import A100, BROKEN, FIRST, FORMATTED, H100, REPAIRED, World

SOURCE = str(Path(store.__file__).parents[2])
TABLES = ("golden", "document", "series", "value", "text", "commit", "line", "revision", "sync", "refresh", "refresh_file")
COUNTS = "SELECT " + ", ".join(f'(SELECT count(*) FROM "{t}")' for t in TABLES)


def two_branches(world: World) -> None:
    """main: first, broken; dev: first, its own A100, then a sync that brings broken."""
    world.commit({H100: FIRST}, "first")
    world.checkout("-b", "dev")
    world.commit({A100: FIRST}, "own")
    world.checkout("main")
    world.commit({H100: BROKEN}, "refresh from run 34695381473")
    world.checkout("dev")
    world.merge("main")


def test_a_build_holds_every_commit_document_revision_and_sync(world: World) -> None:
    two_branches(world)
    built = world.build()
    assert (built.commits, built.documents, built.new_documents) == (4, 2, 2)
    assert set(built.branches) == {"dev", "main"}
    assert world.ask('SELECT branch, position, subject FROM line JOIN "commit" ON id = line."commit" ORDER BY ALL') == [
        ("dev", 0, "first"),
        ("dev", 1, "own"),
        ("dev", 2, "sync"),
        ("main", 0, "first"),
        ("main", 1, "refresh from run 34695381473"),
    ]
    assert world.ask('SELECT path, subject, change FROM revision JOIN "commit" ON id = "commit" ORDER BY committed_at') == [
        (H100, "first", "added"),
        (A100, "own", "added"),
        (H100, "refresh from run 34695381473", "modified"),
        (H100, "sync", "modified"),
    ]
    assert world.ask("SELECT kind, subject FROM sync") == [("merge", "sync")]


def test_golden_value_is_the_long_form_of_every_revision(world: World) -> None:
    world.commit({H100: REPAIRED})
    world.build("HEAD")
    query = "SELECT * EXCLUDE (\"commit\", committed_at) FROM golden_value WHERE metric = 'lm loss' ORDER BY step"
    assert world.ask(query) == [
        (H100, "moe", "tiny", "dev", "dgx_h100", "", "lm loss", 1, 10.0),
        (H100, "moe", "tiny", "dev", "dgx_h100", "", "lm loss", 2, 9.9),
        (H100, "moe", "tiny", "dev", "dgx_h100", "", "lm loss", 3, 8.0),
    ]  # fmt: skip


def test_building_again_changes_nothing(world: World) -> None:
    two_branches(world)
    world.build()
    before = world.ask(COUNTS)
    assert world.build().new_documents == 0
    assert world.ask(COUNTS) == before


def test_an_update_without_a_moved_branch_opens_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    two_branches(world)
    world.build()
    monkeypatch.setattr(store, "_connect", lambda *_, **__: pytest.fail("the catalog was opened"))
    assert world.update().up_to_date


def test_an_update_parses_only_what_is_new(world: World) -> None:
    two_branches(world)
    world.build()
    world.commit({H100: REPAIRED}, "repair")
    built = world.update()
    assert (built.commits, built.documents, built.new_documents, built.up_to_date) == (5, 3, 1, False)
    assert world.update().up_to_date


@pytest.mark.parametrize("change", ["settings", "file", "note", "other branches"])
def test_an_update_takes_nothing_for_done_when_something_else_changed(world: World, change: str) -> None:
    two_branches(world)
    world.build()
    if change == "settings":
        world.settings = Settings(world.repo.top, root="goldens/moe")
    elif change == "file":
        record_run(world.path, RUN, [candidate(REPAIRED)])
    elif change == "note":
        world.path.with_name("catalog.duckdb.built").write_text("{")
    assert not (world.update("main") if change == "other branches" else world.update()).up_to_date


def test_a_rewritten_branch_leaves_no_trace_of_what_it_had(world: World) -> None:
    world.commit({H100: FIRST}, "first")
    world.commit({A100: BROKEN}, "to be dropped")
    world.build()
    world.scratch.git("reset", "-q", "--hard", "HEAD~1")
    world.commit({H100: REPAIRED}, "instead")
    world.update()
    assert world.ask('SELECT subject FROM "commit" ORDER BY committed_at') == [("first",), ("instead",)]
    assert world.ask("SELECT path FROM golden") == [(H100,)]
    assert world.ask("SELECT DISTINCT path FROM revision") == [(H100,)]


def test_a_branch_that_is_gone_is_no_error_for_an_update(world: World) -> None:
    two_branches(world)
    world.build()
    world.checkout("main")
    world.scratch.git("branch", "-q", "-D", "dev")
    assert set(world.update().branches) == {"main"}
    assert world.ask("SELECT DISTINCT branch FROM line") == [("main",)]


def test_without_upstream_and_downstream_head_is_read(world: World) -> None:
    world.scratch.git("checkout", "-q", "-b", "trunk")
    world.commit({H100: FIRST})
    assert list(world.build().branches) == ["HEAD"]


def test_branches_that_are_only_at_origin_are_read(world: World, tmp_path: Path) -> None:
    two_branches(world)
    world.scratch.git("clone", "-q", str(world.scratch.top), str(tmp_path / "clone"))
    clone = Repo(tmp_path / "clone")
    built = filling.build(clone, Settings(clone.top, root="goldens"), tmp_path / "c.duckdb")
    assert set(built.branches) == {"dev", "main"}


def test_an_unknown_branch_is_wrong_use(world: World) -> None:
    world.commit({H100: FIRST})
    with pytest.raises(UsageError, match="no such revision: nowhere"):
        world.build("nowhere")


def test_outside_a_repository_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RepoError, match="no git repository here"):
        filling.build(Repo(tmp_path), Settings(tmp_path, root="goldens"), tmp_path / "c.duckdb")


def test_a_repository_without_a_commit_is_wrong_use(world: World) -> None:
    with pytest.raises(UsageError):
        world.build()


def test_a_history_without_goldens_gives_an_empty_catalog(world: World) -> None:
    world.commit({"README": b"nothing here"})
    assert world.build().documents == 0
    assert world.ask('SELECT count(*) FROM "commit"') == [(1,)]


def test_trailers_of_a_commit_become_a_refresh_with_its_run_file_and_match(world: World) -> None:
    url = "https://github.com/o/r/actions/runs/34695381473"
    message = (
        f"Refresh 1 golden file\n\nGolden-Run: github:34695381473 attempt=2 {url}\n"
        f"Golden-Artifact: {H100} sha256:{'ab' * 32}\nGolden-Match: {H100} sync:2026-04-28 identical\n"
        "Golden-Rev: sync:2026-04-28 e2d9\n"
    )
    sha = world.commit({H100: FIRST}, message)
    world.build()
    world.build()
    assert world.ask("SELECT id, run_id, attempt, url FROM run") == [("github:34695381473#2", "34695381473", 2, url)]
    assert world.ask('SELECT id, runs, "commit" FROM refresh') == [(f"commit:{sha}", ["github:34695381473#2"], sha)]
    assert world.ask("SELECT path, action, sha256, document, matches FROM refresh_file") == [
        (
            H100, "written", "ab" * 32, world.scratch.git("rev-parse", f"HEAD:{H100}"),
            [{"rev": "sync:2026-04-28", "commit": "e2d9", "level": "identical", "detail": ""}],
        )
    ]  # fmt: skip


def test_what_was_recorded_stays_and_joins_the_golden_of_the_history(world: World) -> None:
    record_refresh(world.path, refresh(), {H100: REPAIRED})
    record_run(world.path, RUN, [candidate(REPAIRED)])
    moved = "goldens/moe/old_name/golden_values_dev_dgx_h100.json"
    world.commit({moved: FIRST})
    world.move(moved, H100)
    world.commit()
    world.build()
    assert world.ask("SELECT count(*) FROM observation JOIN golden ON id = golden WHERE born_path LIKE '%old_name%'") == [(1,)]
    assert world.ask("SELECT count(*) FROM golden WHERE path = '" + H100 + "'") == [(1,)]
    assert world.ask("SELECT action FROM refresh_file WHERE path = '" + H100 + "'") == [("written",)]


def test_documents_parsed_in_a_process_of_their_own_are_the_same(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    two_branches(world)
    everything = 'SELECT bit_xor(hash(s.document, s.metric, step, "value")) FROM series AS s JOIN "value" USING (content)'
    world.build()
    here = world.ask(everything)
    world.path.unlink()
    monkeypatch.setattr(parsing, "WORTH_A_PROCESS", 1)
    world.build()
    assert world.ask(everything) == here


def test_a_parsing_process_that_is_ended_from_outside_is_an_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.commit({H100: FIRST})
    monkeypatch.setattr(parsing, "_PROGRAM", "import sys; sys.stdin.read(); print('not a pickle')")
    monkeypatch.setattr(parsing, "WORTH_A_PROCESS", 1)
    with pytest.raises(RepoError, match="a parsing process ended early"):
        world.build()


def test_a_blob_that_is_missing_is_an_error_that_names_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.commit({H100: FIRST})
    blob = world.scratch.git("rev-parse", f"HEAD:{H100}")
    (world.scratch.top / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for worth in (500, 1):
        monkeypatch.setattr(parsing, "WORTH_A_PROCESS", worth)
        with pytest.raises(RepoError, match=blob):
            world.build()


SLOW_BUILD = """
import sys
from pathlib import Path
from goldenctl import config
from goldenctl.catalog import build, parsing, rows, tables
from goldenctl.git import Repo
rows.BATCH_BYTES = 1
parsing.batches = lambda documents: rows.batches(documents, 1)
def said(done, total, size):
    print(done, flush=True)
    if done == int(sys.argv[1]):
        sys.stdin.read()
top = Path.cwd()
build.build(Repo(top), config.load(top), config.load(top).catalog_path, progress=said)
"""


def start_build(world: World, stop_at: int) -> subprocess.Popen[str]:
    """A build that goes document by document and waits after ``stop_at``."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_BUILD, str(stop_at)],
        cwd=world.scratch.top, env=os.environ | {"PYTHONPATH": SOURCE}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == str(stop_at):
            return process
    raise AssertionError("the build ended early")


def test_a_build_that_was_killed_goes_on_where_it_was(world: World) -> None:
    world.commit({H100: FIRST})
    world.commit({H100: BROKEN})
    world.commit({H100: REPAIRED})
    process = start_build(world, 2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert world.ask('SELECT count(*), (SELECT count(*) FROM "commit") FROM document') == [(2, 0)]
    built = world.build()
    assert (built.documents, built.new_documents) == (3, 1)
    killed = world.ask(COUNTS)
    world.path.unlink()
    world.build()
    assert world.ask(COUNTS) == killed


def test_readers_and_writers_get_their_turn_during_a_build(world: World) -> None:
    world.commit({H100: FIRST})
    world.commit({H100: BROKEN})
    process = start_build(world, 1)
    try:
        assert world.ask("SELECT count(*) FROM document") == [(1,)]
        assert record_run(world.path, RUN, [candidate(REPAIRED)]) == 1
    finally:
        process.communicate("")
    assert process.returncode == 0
    assert world.ask("SELECT count(*), (SELECT count(*) FROM observation) FROM document") == [(3, 1)]


def test_two_builds_at_once_both_end_well(world: World) -> None:
    two_branches(world)
    first = start_build(world, 1)
    world.build()
    first.communicate("")
    assert first.returncode == 0
    assert world.ask("SELECT count(*), count(DISTINCT id) FROM document") == [(2, 2)]
    assert world.ask('SELECT count(*), count(DISTINCT (content, step)) FROM "value"') == [(6, 6)]


def test_the_commands_build_and_update_say_what_they_did(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    two_branches(world)
    monkeypatch.chdir(world.scratch.top)
    assert main(["catalog", "build"]) == 0
    assert capsys.readouterr().out == f"{world.path}: 4 commits, 2 documents, 2 of them new, from dev, main\n"
    assert main(["catalog", "update"]) == 0
    assert capsys.readouterr() == ("the catalog is up to date\n", "")
    assert world.scratch.git("status", "--porcelain") == ""


def test_a_note_of_the_same_content_in_another_format_is_a_document_with_the_same_content_id(world: World) -> None:
    world.commit({H100: FIRST})
    world.commit({H100: FORMATTED})
    world.build()
    assert world.ask("SELECT count(*), count(DISTINCT content) FROM document") == [(2, 1)]


@pytest.mark.corpus
def test_the_corpus_gives_the_counts_of_its_profile(corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "c.duckdb"
    built = filling.build(Repo(corpus), load(corpus), path)
    assert (built.commits, built.documents) == (413, 4898)
    with store.reading(path) as connection:

        def one(query: str) -> object:
            return (connection.execute(query).fetchone() or [None])[0]

        assert one("SELECT count(DISTINCT path) FROM revision") == 2515
        assert one("SELECT count(*) FROM sync WHERE kind <> 'revert'") == 18
        assert one("SELECT sum(size) FROM document") == 98438619
        assert one("SELECT count(*) FROM document WHERE error IS NOT NULL") == 0
        assert one("SELECT count(*) FROM document WHERE bare_constants") == 3
        assert 13_500 < int(str(one("SELECT count(DISTINCT content) FROM series"))) < 14_500
        assert one('SELECT count(*) - count(DISTINCT (content, step)) FROM "value"') == 0
        assert one("SELECT count(*) FROM golden WHERE alive") == 912  # 903 paths in common, 7 only on dev, 2 only on main
    assert path.stat().st_size < 0.3 * 98438619
    start = time.perf_counter()
    assert filling.update(Repo(corpus), load(corpus), path).up_to_date
    assert time.perf_counter() - start < 1


def test_a_second_reader_sees_the_old_history_until_the_last_transaction(world: World) -> None:
    two_branches(world)
    world.build()
    before = world.ask(COUNTS)
    world.commit({H100: REPAIRED}, "repair")
    process = start_build(world, 3)
    try:
        assert world.ask('SELECT count(*) FROM "commit"') == [(4,)]
    finally:
        process.communicate("")
    assert world.ask(COUNTS) != before


def test_an_update_with_nothing_new_loads_no_heavy_client(world: World) -> None:
    two_branches(world)
    world.build()
    program = (
        "import sys; from goldenctl.cli.entry import main; code = main(['catalog', 'update'])\n"
        "print(code, [m for m in ('duckdb', 'polars', 'typer') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=world.scratch.top, env=os.environ | {"PYTHONPATH": SOURCE}, capture_output=True
    )
    assert done.stdout.decode() == "the catalog is up to date\n0 []\n"
