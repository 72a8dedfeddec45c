"""One golden has one life, through renames and across branches."""

from __future__ import annotations

import pytest

from goldenctl.catalog import history
from tests.catalog.world import A100, BROKEN, FIRST, FORMATTED, H100, REPAIRED, World

MOVED = "goldens/moe/tiny_new_name/golden_values_dev_dgx_h100.json"


def lives(world: World, *branches: str) -> list[tuple[str, str, str]]:
    """Path of birth, path and change of every revision, oldest first."""
    tips = [world.scratch.git("rev-parse", b) for b in branches or ("HEAD",)]
    commits = history.read(world.repo, world.settings, tips)
    found = history.lives(commits, tips)
    return [(found.born[r.golden], r.edit.path, r.edit.change) for r in found.revisions]


def test_a_rename_with_the_same_content_carries_the_life_along(world: World) -> None:
    world.commit({H100: FIRST})
    world.move(H100, MOVED)
    world.commit()
    world.commit({MOVED: BROKEN})
    assert lives(world) == [(H100, H100, "added"), (H100, MOVED, "renamed"), (H100, MOVED, "modified")]


def test_a_rename_with_another_content_ends_one_life_and_begins_another(world: World) -> None:
    world.commit({H100: FIRST})
    world.remove(H100)
    world.commit({MOVED: REPAIRED})
    assert sorted(lives(world)) == [(H100, H100, "added"), (H100, H100, "deleted"), (MOVED, MOVED, "added")]


def test_a_golden_that_comes_back_takes_up_its_life(world: World) -> None:
    world.commit({H100: FIRST, A100: REPAIRED})
    world.remove(H100)
    world.commit()
    world.commit({H100: BROKEN})
    assert [life for life in lives(world) if life[0] == H100] == [
        (H100, H100, "added"),
        (H100, H100, "deleted"),
        (H100, H100, "added"),
    ]


def test_a_new_golden_at_a_path_whose_golden_lives_on_elsewhere_is_another(world: World) -> None:
    world.commit({H100: FIRST})
    world.move(H100, MOVED)
    world.commit()
    world.commit({H100: REPAIRED})
    tips = [world.scratch.git("rev-parse", "HEAD")]
    found = history.lives(history.read(world.repo, world.settings, tips), tips)
    assert len(found.born) == 2
    assert set(found.at[tips[0]]) == {H100, MOVED}
    assert len(set(found.at[tips[0]].values())) == 2


def test_branches_that_add_the_same_path_on_their_own_share_one_life(world: World) -> None:
    world.commit({A100: FIRST})
    world.checkout("-b", "dev")
    world.commit({H100: FIRST}, "on dev")
    world.checkout("main")
    world.commit({H100: REPAIRED}, "on main")
    assert {born for born, path, _ in lives(world, "main", "dev") if path == H100} == {H100}


def test_a_merge_takes_up_the_life_a_rename_led_to_on_the_other_side(world: World) -> None:
    world.commit({H100: FIRST})
    world.checkout("-b", "dev")
    world.commit({A100: FIRST}, "own")
    world.checkout("main")
    world.move(H100, MOVED)
    world.commit(message="rename")
    world.commit({MOVED: REPAIRED}, "refresh")
    world.checkout("dev")
    world.merge("main")
    assert {born for born, path, _ in lives(world, "dev", "main") if path == MOVED} == {H100}


def test_a_rename_on_one_branch_tells_what_deleting_and_adding_meant_on_the_other(world: World) -> None:
    world.commit({H100: FIRST})
    world.checkout("-b", "dev")
    world.checkout("main")
    world.remove(H100)
    world.commit({MOVED: REPAIRED}, "renamed and refreshed at once")
    world.checkout("dev")
    world.move(H100, MOVED)
    world.commit(message="renamed")
    assert {born for born, _, _ in lives(world, "dev", "main")} == {H100}


def test_two_catalogs_give_a_golden_the_same_id() -> None:
    # blake2b, 8 bytes little endian signed, of the life's number, NUL and the path of its birth
    assert history.golden_id("a") == history.golden_id("a", 0) != history.golden_id("a", 1)
    assert -(2**63) <= history.golden_id(H100) < 2**63


def test_only_golden_files_below_root_count_and_links_do_not(world: World) -> None:
    other = "goldens/moe/tiny/model_config.json"
    world.commit({H100: FIRST, other: b"{}", "golden_values_dev_dgx_h100.json": b"{}"})
    (world.scratch.top / A100).parent.mkdir(parents=True)
    (world.scratch.top / A100).symlink_to("../../moe/tiny/golden_values_dev_dgx_h100.json")
    world.commit()
    assert lives(world) == [(H100, H100, "added")]


def test_a_golden_that_becomes_a_link_is_deleted(world: World) -> None:
    world.commit({H100: FIRST})
    world.remove(H100)
    (world.scratch.top / H100).symlink_to("elsewhere")
    world.commit()
    assert lives(world) == [(H100, H100, "added"), (H100, H100, "deleted")]


@pytest.mark.parametrize("message", ["subject\n\n\x1e body \x1f with \x1e marks", "ä ü\n\n:100644 100644 a b A"])
def test_no_commit_message_can_be_taken_for_an_edit(world: World, message: str) -> None:
    sha = world.commit({H100: FIRST}, message)
    (commit,) = history.read(world.repo, world.settings, ["HEAD"])
    assert (commit.id, commit.subject) == (sha, message.partition("\n")[0])
    assert [e.path for e in commit.edits] == [H100]


@pytest.mark.parametrize("name", ["golden_values_dev_dgx_h100 ü.json", 'golden_values_"q".json', "golden_values_tab\t.json"])
def test_odd_names_are_read_as_they_are(world: World, name: str) -> None:
    world.commit({f"goldens/moe/tiny/{name}": FIRST})
    assert [path for _, path, _ in lives(world)] == [f"goldens/moe/tiny/{name}"]


def test_each_document_is_listed_once_however_often_it_returns(world: World) -> None:
    world.commit({H100: FIRST, A100: FIRST})
    world.commit({H100: FORMATTED})
    world.commit({H100: FIRST})
    assert len(history.documents(history.read(world.repo, world.settings, ["HEAD"]))) == 2
