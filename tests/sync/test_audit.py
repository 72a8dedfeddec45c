"""Each class of a sync's goldens, on histories small enough to see."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from goldenctl import config
from goldenctl.errors import UsageError
from goldenctl.git import Repo
from goldenctl.lint import check
from goldenctl.model import Finding
from goldenctl.sync.audit import audit
from goldenctl.sync.model import Audit, AuditedFile, Class
from goldenctl.sync.report import as_json, as_markdown
from goldenctl.sync.summary import sentences

from ..conftest import ScratchRepo, golden_json

ROOT = "goldens/moe"
SETTINGS = 'root = "goldens"\nplatforms = ["dgx_h100", "dgx_gb200"]\n'


def name(case: str, platform: str = "dgx_h100", variant: str = "") -> str:
    return f"{ROOT}/{case}/golden_values_dev_{platform}{variant}.json"


def curve(start: float, *changed: tuple[int, object]) -> bytes:
    """Eight steps of loss falling from ``start``, some of them changed."""
    return golden_json(lm_loss={i: dict(changed).get(i, start - i / 8) for i in range(1, 9)})


V1, V2, V3, V4 = (curve(n) for n in (10.0, 9.0, 8.0, 7.0))


class History:
    """``main`` and ``dev`` from one root, with a merge of main into dev."""

    def __init__(self, repo: ScratchRepo, base: Mapping[str, bytes]) -> None:
        self.repo = repo
        repo.commit({"goldenctl.toml": SETTINGS, **base}, "root")
        repo.git("branch", "dev")

    def on(self, branch: str, files: Mapping[str, bytes | None], message: str = "change") -> str:
        self.repo.git("switch", "-q", branch)
        for path, content in files.items():
            if content is None:
                self.repo.git("rm", "-q", path)
        return self.repo.commit({p: c for p, c in files.items() if c is not None}, message)

    def merge(self, files: Mapping[str, bytes | None] | None = None, *, strategy: str = "theirs", what: str = "main") -> str:
        """Merge main into dev; ``files`` say what the merge holds beside what the strategy gives."""
        self.repo.git("switch", "-q", "dev")
        self.repo.git("merge", "-q", "--no-ff", "--no-commit", "-X", strategy, what)
        for path, content in (files or {}).items():
            if content is None:
                self.repo.git("rm", "-qf", path)
            else:
                self.repo.write({path: content})
        self.repo.git("add", "-A")
        self.repo.git("commit", "-q", "-m", "chore: nightly sync main into dev")
        return self.repo.git("rev-parse", "HEAD")

    def audit(self, rev: str = "dev") -> Audit:
        settings = config.load(self.repo.top)

        def lint(path: str, raw: bytes) -> list[Finding]:
            return check(path, raw, settings)

        return audit(Repo(self.repo.top), settings, rev, lint=lint)


Make = Callable[[Mapping[str, bytes]], History]


@pytest.fixture
def history(make_repo: Callable[..., ScratchRepo]) -> Make:
    return lambda base: History(make_repo("repo"), base)


def only(found: Audit) -> AuditedFile:
    assert len(found.files) == 1, [(f.path, f.kind) for f in found.files]
    return found.files[0]


A = name("case_a")


def test_an_upstream_change_that_arrived_is_from_upstream(history: Make) -> None:
    made = history({A: V1})
    commit = made.on("main", {A: V2})
    made.on("dev", {"code.py": b"1"})
    made.merge()
    found = made.audit()
    assert only(found).kind is Class.FROM_UPSTREAM
    assert only(found).source.commit == commit
    assert found.in_order


def test_an_upstream_change_that_did_not_arrive_is_kept(history: Make) -> None:
    made = history({A: V1})
    made.on("main", {A: V2})
    made.on("dev", {"code.py": b"1"})
    made.merge({A: V1})
    file = only(made.audit())
    assert (file.kind, file.both_changed, file.in_order) == (Class.KEPT, False, False)


def test_a_change_of_both_sides_resolved_for_downstream_is_kept_and_in_order(history: Make) -> None:
    made = history({A: V1})
    made.on("main", {A: V2})
    made.on("dev", {A: V3})
    made.merge({A: V3})
    file = only(made.audit())
    assert (file.kind, file.both_changed, file.in_order) == (Class.KEPT, True, True)


def test_content_only_downstream_had_is_overwritten_and_the_way_back_is_named(history: Make) -> None:
    made = history({A: V1})
    made.on("main", {A: V2})
    mine = made.on("dev", {A: V3}, "dev's own values")
    made.merge({A: V2})
    file = only(made.audit())
    assert file.kind is Class.OVERWRITTEN
    assert file.lost is not None
    assert (file.lost.commit, file.lost.subject) == (mine, "dev's own values")
    assert file.lost.restore == f"goldenctl restore {A} --from {mine}"
    assert file.lost.undone == {}


def test_an_undone_repair_names_the_repair_even_when_the_file_changed_again(history: Make) -> None:
    made = history({A: curve(10.0, (3, "nan"))})
    made.on("main", {A: curve(9.0, (3, "nan"), (4, "nan"))})
    repair = made.on("dev", {A: V3}, "repair")
    made.on("dev", {A: V4}, "again")
    made.merge({A: curve(9.0, (3, "nan"), (4, "nan"))})
    lost = only(made.audit()).lost
    assert lost is not None
    assert (lost.commit, lost.undone) == (repair, {"lm loss": (0, 2)})


def test_content_of_neither_side_is_own_and_named_after_where_it_has_been(history: Make) -> None:
    made = history({A: V1})
    made.on("main", {A: V2})
    earlier = made.on("dev", {A: V3})
    made.on("dev", {A: V4})
    made.merge({A: V3})
    file = only(made.audit())
    assert file.kind is Class.OWN
    assert (file.matches[0].rev, file.matches[0].level.value) == (earlier[:10], "identical")
    assert {(m.rev, m.level.value) for m in file.matches[1:]} == {("dev", "different"), ("main", "different")}
    assert file.in_order


def test_content_nobody_ever_had_is_own_and_out_of_order(history: Make) -> None:
    made = history({A: V1})
    made.on("main", {A: V2})
    made.on("dev", {A: V3})
    made.merge({A: V4})
    file = only(made.audit())
    assert (file.kind, file.in_order) == (Class.OWN, False)


def test_a_textual_mix_of_both_sides_is_mixed(history: Make) -> None:
    made = history({A: V1})
    made.on("main", {A: curve(10.0, (2, 1.5))})
    made.on("dev", {A: curve(10.0, (7, 2.5))})
    made.merge()
    assert (made.repo.top / A).read_bytes() == curve(10.0, (2, 1.5), (7, 2.5))
    file = only(made.audit())
    assert (file.kind, file.in_order) == (Class.MIXED, False)


@pytest.mark.parametrize("side", [V2, V3])
def test_one_sides_content_cut_short_is_own_not_mixed(history: Make, side: bytes) -> None:
    made = history({A: V1})
    made.on("main", {A: V2})
    made.on("dev", {A: V3})
    values = json.loads(side)["lm loss"]["values"]
    made.merge({A: golden_json(lm_loss={i: values[str(i)] for i in range(1, 5)})})
    assert only(made.audit()).kind is Class.OWN


def test_conflict_markers_are_mixed(history: Make) -> None:
    made = history({A: V1})
    made.on("main", {A: V2})
    made.on("dev", {A: V3})
    made.merge({A: b"<<<<<<< HEAD\n{}\n=======\n[]\n>>>>>>> main\n"})
    file = only(made.audit())
    assert (file.kind, file.new_errors) == (Class.MIXED, 1)


def test_the_same_numbers_in_another_format_are_format_only(history: Make) -> None:
    made = history({A: V1})
    made.on("main", {A: V1.replace(b"    ", b"  ")})
    made.on("dev", {"code.py": b"1"})
    made.merge()
    assert only(made.audit()).kind is Class.FORMAT_ONLY


def test_new_and_removed_files_are_added_and_deleted(history: Make) -> None:
    made = history({A: V1})
    made.on("main", {A: None, name("case_b"): V2})
    made.on("dev", {"code.py": b"1"})
    made.merge()
    assert {f.path: f.kind for f in made.audit().files} == {A: Class.DELETED, name("case_b"): Class.ADDED}


def test_content_of_a_side_branch_of_upstream_counts_as_upstreams(history: Make) -> None:
    made = history({A: V1})
    made.repo.git("switch", "-q", "-c", "side", "main")
    made.repo.commit({A: V2}, "on a side branch")
    made.on("main", {A: V3})
    made.repo.git("merge", "-q", "-s", "ours", "--no-edit", "side")
    made.on("dev", {A: V2})
    made.merge({A: V3})
    assert only(made.audit()).kind is Class.FROM_UPSTREAM


def test_a_squash_is_audited_against_the_upstream_commit_that_fits_best(history: Make) -> None:
    made = history({A: V1, name("case_b"): V1})
    made.on("main", {A: V2})
    fitting = made.on("main", {name("case_b"): V2})
    made.on("main", {A: V3})
    made.on("dev", {A: V2, name("case_b"): V2}, "chore: sync main into dev")
    found = made.audit()
    assert (found.landing.kind, found.landing.upstream, found.landing.inferred) == ("squash", fitting, True)
    assert [f.kind for f in found.files] == [Class.FROM_UPSTREAM] * 2
    assert "is a plain commit" in found.graph.problems[0]


def test_a_range_is_a_sync_with_its_repair(history: Make) -> None:
    made = history({A: V1, name("case_b"): V1})
    tip = made.on("main", {A: V2})
    before = made.on("dev", {"code.py": b"1"})
    merge = made.merge()
    repair = made.on("dev", {name("case_b"): V3}, "repair\n\nGolden-Run: github:7")
    found = made.audit(f"{before}..dev")
    assert (found.landing.kind, found.landing.downstream, found.landing.upstream) == ("range", before, tip)
    assert (found.graph.imported, found.graph.merges, found.graph.repairs) == (1, (merge,), (repair,))
    assert found.graph.problems == ()
    assert [(f.kind, f.source.run) for f in found.files] == [(Class.FROM_UPSTREAM, ""), (Class.OWN, "github:7")]


def test_the_graph_check_finds_two_merges_two_repairs_and_copies(history: Make) -> None:
    made = history({A: V1})
    first = made.on("main", {A: V2})
    made.on("main", {A: V3}, "copied")
    before = made.on("dev", {"code.py": b"1"})
    made.merge(what=first)
    made.repo.git("cherry-pick", "main")
    made.on("main", {A: V4})
    made.merge()
    made.on("dev", {"a.py": b"1"}, "repair one")
    made.on("dev", {"b.py": b"1"}, "repair two")
    problems = made.audit(f"{before}..dev").graph.problems
    assert problems[0].startswith("2 merges of upstream where one is expected")
    assert problems[1].startswith("2 repair commits where at most one is expected")
    assert problems[2].startswith("1 upstream commits came in as copies under other ids")


def test_a_golden_that_is_not_the_tips_content_breaks_the_claim(history: Make) -> None:
    made = history({A: V1})
    made.on("main", {A: V2})
    made.on("main", {A: V3})
    made.on("dev", {"code.py": b"1"})
    made.merge({A: V2})
    assert made.audit().graph.problems[0].startswith("1 goldens hold an upstream content other than ")


def test_siblings_that_did_not_change_are_left_behind(history: Make) -> None:
    others = [name("case_a", "dgx_gb200"), name("case_a", variant="_2nd"), name("case_b")]
    made = history({A: V1} | dict.fromkeys(others, V1))
    made.on("main", {A: V2})
    made.on("dev", {"code.py": b"1"})
    made.merge()
    left = made.audit().completeness.left_behind
    assert [(item.path, item.kind, item.changed) for item in left] == [
        (name("case_a", "dgx_gb200"), "platform", (A,)),
        (name("case_a", variant="_2nd"), "variant", (A,)),
    ]


def test_settings_that_changed_without_the_golden_are_told(history: Make) -> None:
    config_path, other = f"{ROOT}/case_a/model_config.yaml", f"{ROOT}/case_b/model_config.yaml"
    iterations = b"MODEL_ARGS:\n  --train-iters: %d\nMETRICS:\n  - lm loss\n"
    b = name("case_b")
    made = history({A: V1, b: V1, config_path: iterations % 8, other: iterations % 8})
    made.on("main", {config_path: iterations % 16, b: golden_json(lm_loss=dict.fromkeys(range(1, 5), 10.0))})
    made.on("dev", {"code.py": b"1"})
    made.merge()
    found = made.audit().completeness
    assert (found.config_only, found.golden_only) == ((A,), (b,))


def test_a_root_commit_and_a_crossed_range_are_wrong_use(history: Make) -> None:
    made = history({A: V1})
    made.on("main", {A: V2})
    made.on("dev", {"code.py": b"1"})
    root = made.repo.git("rev-list", "--max-parents=0", "dev")
    with pytest.raises(UsageError, match="has no parent"):
        made.audit(root)
    with pytest.raises(UsageError, match="the start is no ancestor"):
        made.audit("main..dev")


def replayed(history: Make) -> tuple[History, str, str]:
    """Dev with NaN, an earlier sync with good values, a main with a fix from a run: the case of a repaired sync."""
    paths = [name(f"case_{c}", "dgx_gb200") for c in "abc"]
    nan = curve(10.0, (3, "nan"))
    made = history(dict.fromkeys(paths, V1) | {name("case_d"): V1})
    made.on("main", dict.fromkeys(paths, V2), "values\n\nGolden-Run: github:34695381473")
    values = made.repo.git("rev-parse", "HEAD")
    made.on("dev", {"code.py": b"1"})
    sync = made.merge()
    made.on("dev", dict.fromkeys(paths, nan), "nan")
    made.on("main", {name("case_d"): V3, "code2.py": b"1"})
    made.merge(dict.fromkeys(paths, V2))
    return made, values, sync


def test_the_sentences_say_platforms_repairs_origin_run_and_sync(history: Make) -> None:
    made, values, sync = replayed(history)
    found = made.audit()
    said = sentences(found, ("dgx_h100", "dgx_gb200"), "main", "dev")
    assert " ".join(s.text for s in said) == (
        "Golden values: 4 files (1 dgx_h100, 3 dgx_gb200). NaN repaired in 3."
        f" Three dgx_gb200 moe files hold the values of {values[:10]}, taken from run github:34695381473,"
        f" and match sync {sync[:10]}."
    )
    assert said[-1].paths == tuple(name(f"case_{c}", "dgx_gb200") for c in "abc")


def test_an_overwriting_that_repaired_timings_alone_is_still_told(history: Make) -> None:
    def timed(loss: float, *times: object) -> bytes:
        metrics: dict[str, Mapping[int, object]] = {"lm loss": {1: loss, 2: loss}, "iteration-time": dict(enumerate(times, 1))}
        return golden_json(4, **metrics)

    made = history({A: timed(10.0, 1.0, 1.0)})
    made.on("main", {A: timed(9.0, 1.0, 1.25)})
    made.on("dev", {A: timed(8.0, "nan", 1.5)})
    made.merge({A: timed(9.0, 1.0, 1.25)})
    file = only(made.audit())
    assert (file.kind, dict(file.repaired), file.in_order) == (Class.OVERWRITTEN, {"iteration-time": 1}, False)


def test_the_markdown_holds_the_sentences_and_folds_the_table(history: Make) -> None:
    made, _, _ = replayed(history)
    found = made.audit()
    said = sentences(found, (), "main", "dev")
    text = as_markdown(found, said)
    before, _, folded = text.partition("<details>")
    assert all(s.text in before for s in said)
    assert before.count("\n") < 12
    assert folded.count("| `goldens/moe/") >= 4


def test_the_json_has_the_keys_of_the_contract(history: Make) -> None:
    made, values, _ = replayed(history)
    found = made.audit()
    table = as_json(found, sentences(found, (), "main", "dev"))
    assert {"sha", "base", "downstream", "upstream", "date"} <= table["sync"].keys()
    assert table["counts"] == {
        "from-upstream": 1, "kept": 0, "overwritten": 3, "own": 0, "mixed": 0, "added": 0, "deleted": 0, "format-only": 0,
        "changed": 4,
    }  # fmt: skip
    first = table["files"][0]
    assert (first["path"], first["class"]) == (name("case_a", "dgx_gb200"), "overwritten")
    assert first["source"] == {"commit": values, "run": "github:34695381473"}
    assert first["repaired"] == {"lm loss": 1}
