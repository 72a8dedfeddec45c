"""Landings of the real history, as the corpus facts count them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest

from goldenctl import config, syncs
from goldenctl.git import Repo
from goldenctl.model import Finding
from goldenctl.sync.audit import audit
from goldenctl.sync.model import Audit, Class

pytestmark = pytest.mark.corpus
ROOT = "tests/functional_tests/test_cases"
TABLE = [
    # landing, files changed, dev content overwritten by main, own content: corpus facts, section 7
    ("945d456fe0", 73, 0, 0),
    ("5e42df89d5", 4, 0, 4),
    ("02a46499ec", 84, 0, 0),
    ("6f76b1a47b", 10, 0, 0),
    ("233e1b29f4", 18, 0, 5),
    ("bee92e33e6", 9, 0, 0),
    ("82fa7aa169", 143, 1, 3),
    ("e2d9e48029", 381, 80, 8),
    ("75bb0433b0", 116, 0, 3),
]


def no_lint(_path: str, _content: bytes) -> list[Finding]:
    return []


@lru_cache
def audited(corpus: Path, rev: str) -> Audit:
    return audit(Repo(corpus), config.load(corpus), syncs.resolve(Repo(corpus), config.load(corpus), rev), lint=no_lint)


@pytest.mark.parametrize(("rev", "changed", "overwritten", "own"), TABLE)
def test_a_landing_changed_overwrote_and_brought_what_the_table_says(
    corpus: Path, rev: str, changed: int, overwritten: int, own: int
) -> None:
    found = audited(corpus, rev)
    assert len(found.changed) == changed
    assert len(found.of(Class.OVERWRITTEN)) == overwritten
    assert len(found.of(Class.OWN)) + len(found.of(Class.MIXED)) == own


def test_over_all_landings_the_sums_are_those_of_the_facts(corpus: Path) -> None:
    repo, settings = Repo(corpus), config.load(corpus)
    found = [audited(corpus, s.sha[:10]) for s in syncs.landings(repo, settings) if s.kind != syncs.REVERT]
    assert len(found) == 18
    assert sum(len(a.changed) for a in found) == 1646
    assert sum(len(a.of(Class.OVERWRITTEN)) for a in found) == 200
    assert sum(len(a.of(Class.OWN)) + len(a.of(Class.MIXED)) for a in found) == 117


def test_values_that_only_dev_had_are_named_with_their_commit_and_the_way_back(corpus: Path) -> None:
    found = audited(corpus, "e2d9e48029")
    path = f"{ROOT}/gpt/gpt3_7b_tp1_pp4_memory_speed/golden_values_dev_dgx_gb200.json"
    file = next(f for f in found.files if f.path == path)
    assert file.kind is Class.OVERWRITTEN
    assert file.lost is not None
    assert file.lost.restore == f"goldenctl restore {path} --from {found.landing.downstream}"
    assert found.landing.downstream.startswith("64bd5342da")
    held = Repo(corpus).show(found.landing.downstream, path)
    assert held is not None
    assert held == Repo(corpus).show(file.lost.commit, path)


def test_a_repair_that_a_sync_undid_is_named_with_its_commit(corpus: Path) -> None:
    found = audited(corpus, "82fa7aa169")
    undone = [f for f in found.files if f.lost and f.lost.undone]
    assert [f.path for f in undone] == [f"{ROOT}/gpt/gpt3_15b_8t_release_sm/golden_values_dev_dgx_h100.json"]
    lost = undone[0].lost
    assert lost is not None
    assert lost.commit.startswith("912e1fa666")
    assert lost.undone["lm loss"] == (0, 57)
    assert not found.in_order


def test_the_graph_of_a_two_commit_sync_is_in_order(corpus: Path) -> None:
    graph = audited(corpus, "e2d9e48029").graph
    assert [c[:7] for c in graph.merges] == ["6868d30"]
    assert [c[:7] for c in graph.repairs] == ["2c0705b"]
    assert graph.problems == ()


def test_a_squash_is_told_from_a_merge(corpus: Path) -> None:
    found = audited(corpus, "02a46499ec")
    assert found.landing.kind == "squash"
    assert found.landing.inferred
    assert found.graph.imported == 0
    assert "is a plain commit" in found.graph.problems[0]
