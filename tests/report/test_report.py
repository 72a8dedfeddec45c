"""What a report says: the order of goldens, verdicts, figures, and where contents come from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from goldenctl import collect, config
from goldenctl.api import reporting
from goldenctl.compare import MetricDiff
from goldenctl.report import Entry, Fact, Report, html, markdown
from goldenctl.report.figures import number, percent
from goldenctl.report.heat import heat_map
from tests.conftest import IDENTITY, ScratchRepo, golden_json
from tests.report.conftest import LOSS, ROOT, SAME, SPEED
from tests.verdicts.cli import Run

NASTY = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


def built(repo: ScratchRepo, old: str = "HEAD~1", new: str = "HEAD") -> Report:
    settings = config.load(repo.top)
    return reporting.of_sides(collect.open_side(old, settings), collect.open_side(new, settings), settings)


def embedded(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_only_what_differs_is_listed_worst_first_and_the_rest_is_counted(moved: ScratchRepo) -> None:
    report = built(moved)
    assert [e.path for e in report.entries] == [ROOT + LOSS, ROOT + SPEED]
    assert report.same == 1
    assert report.counts == {"changed": 2}


def test_a_metric_whose_tolerance_compares_medians_is_measured_by_its_medians(moved: ScratchRepo) -> None:
    (speed,) = (e for e in built(moved).entries if e.path == ROOT + SPEED)
    assert speed.worst is not None
    assert speed.worst.size == pytest.approx(0.1)  # 2.0 → 1.8, whatever the first step did
    assert speed.worst.diff.max_rel_diff == pytest.approx(0.8)  # 50 → 90


def test_every_golden_says_which_commit_brought_its_two_contents(moved: ScratchRepo) -> None:
    facts = {f.name: f.text for f in built(moved).entries[0].facts}
    assert facts["new since"].endswith(" Refresh two goldens")
    assert facts["old since"].endswith(" first")
    assert facts["new since"].startswith(moved.git("rev-parse", "HEAD")[:10])


def test_a_commit_that_names_its_run_leads_to_the_run(moved: ScratchRepo) -> None:
    moved.commit(
        {ROOT + SAME: golden_json(lm_loss={1: 3.0, 2: 2.5})}, "Refresh\n\nGolden-Run: github:7 https://example.invalid/7"
    )
    (entry,) = built(moved).entries
    assert Fact("new run", "github:7", "https://example.invalid/7") in entry.facts


def test_nan_that_became_finite_is_repaired_when_the_rest_passes(moved: ScratchRepo) -> None:
    report = built(moved, "HEAD", "HEAD~1")
    (loss,) = (m for e in report.entries for m in e.metrics if m.name == "lm loss")
    assert (loss.verdict, loss.new_nonfinite) == ("repaired", -2)


def test_nan_that_became_finite_is_not_repaired_when_the_rest_moved(make_repo: Callable[..., ScratchRepo]) -> None:
    path = ROOT + LOSS
    repo = make_repo("repo", {path: golden_json(lm_loss={1: "nan", 2: 4.0})})
    repo.commit({path: golden_json(lm_loss={1: 9.0, 2: 8.0})})
    (loss,) = built(repo).entries[0].metrics
    assert loss.verdict == "different"


def test_leaving_out_steps_without_a_value_loses_nothing(make_repo: Callable[..., ScratchRepo]) -> None:
    path = ROOT + LOSS
    repo = make_repo("repo", {path: golden_json(lm_loss={1: "nan", 2: 4.0, 3: 3.0})})
    repo.commit({path: golden_json(lm_loss={2: 4.0, 3: 3.0})})
    (loss,) = built(repo).entries[0].metrics
    assert (loss.lost, loss.verdict) == (0, "repaired")


def test_a_metric_that_is_gone_is_lost_and_comes_first(make_repo: Callable[..., ScratchRepo]) -> None:
    path = ROOT + LOSS
    repo = make_repo("repo", {path: golden_json(lm_loss={1: 1.0, 2: 1.0}, num_zeros={1: 1.0, 2: 1.0})})
    repo.commit({path: golden_json(lm_loss={1: 9.0, 2: 9.0})})
    entry = built(repo).entries[0]
    assert [(m.name, m.lost) for m in entry.differing] == [("num zeros", 2), ("lm loss", 0)]


def test_the_heat_map_says_what_happened_in_words_as_well_as_in_shades(moved: ScratchRepo) -> None:
    heat = heat_map(built(moved).entries)
    cells = {(heat.metrics[i], row): (c.kind, c.text) for row, cs in heat.rows for i, c in enumerate(cs)}
    assert cells["lm loss", 0] == ("nan", "+2 NaN")
    assert "num zeros" not in heat.metrics  # the same everywhere
    assert cells["iteration-time", 1][0] == "s5"
    assert cells["lm loss", 1] == ("none", "")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0.0, "0 %"), (0.5, "50 %"), (-0.0123, "-1.2 %"), (0.000123, "0.012 %"), (3e-8, "3e-6 %"), (52.31, "5,231 %")],
)
def test_a_relative_difference_is_read_in_percent(value: float | None, text: str) -> None:
    assert percent(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1.25, "1.25"), (17179869184.0, "17,179,869,184"), (float("nan"), "nan"), (None, "")]
)
def test_bytes_are_whole_numbers_with_thousands(value: float | None, text: str) -> None:
    assert number(value) == text


class Elements(HTMLParser):
    """Counts the elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.urls: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.urls += [value or "" for name, value in attrs if name in ("src", "href")]


def nasty() -> Report:
    diff = MetricDiff(
        metric=NASTY,
        n_golden=2,
        n_obtained=2,
        n_common=2,
        missing_steps=0,
        extra_steps=0,
        max_rel_diff=1.0,
        worst_step=1,
        worst_golden=1.0,
        worst_obtained=2.0,
        exact=False,
        approximate=False,
    )
    from goldenctl.goldenfile import Series
    from goldenctl.report import Metric

    curve = Series(NASTY, (1, 2), (1.0, 2.0))
    facts = (Fact(NASTY, NASTY, "javascript:alert(3)"), Fact("run", "1", "https://example.invalid/<b>"))
    entry = Entry(NASTY, None, "changed", (Metric(diff, curve, curve),), NASTY, NASTY, facts)
    return Report(NASTY, NASTY, NASTY, (entry,), 0, facts, (NASTY,))


def test_no_name_in_a_page_becomes_markup() -> None:
    page = html(nasty())
    elements = Elements(page)
    assert elements.names.count("script") == 2
    assert "img" not in elements.names
    assert "javascript:alert(3)" not in elements.urls
    data = embedded(page)
    assert data[0]["path"] == NASTY
    assert data[0]["facts"][0] == [NASTY, NASTY, ""]
    assert data[0]["metrics"][0]["name"] == NASTY


def test_no_name_in_markdown_becomes_markup() -> None:
    text = markdown(nasty())
    bare = re.sub(r"`[^`]*`", "", text)
    assert "<img" not in bare.replace("\\<", "")
    assert "javascript:" not in text
    assert "](<https://example.invalid/<b>>)" not in text


def test_a_page_names_no_address_but_links() -> None:
    page = html(nasty())
    assert [u for u in Elements(page).urls if not u.startswith(("https://example.invalid/", "data:"))] == []
    assert not re.search(r"@import|url\((?!data:)", page)
    assert "default-src 'none'" in page


def test_markdown_shows_the_worst_ten_and_folds_the_rest(make_repo: Callable[..., ScratchRepo]) -> None:
    paths = [f"{ROOT}moe/case_{i:02}/golden_values_dev_dgx_h100.json" for i in range(14)]
    repo = make_repo("repo", {p: golden_json(lm_loss={1: 1.0, 2: 1.0}) for p in paths})
    repo.commit({p: golden_json(lm_loss={1: 1.25, 2: 2.0 + i}) for i, p in enumerate(paths)})
    text = markdown(built(repo))
    shown, folded = text.split("<details>")
    assert re.findall(r"case_\d\d", shown) == [f"case_{i:02}" for i in range(13, 3, -1)]
    assert "<summary>4 more goldens</summary>" in folded
    assert re.findall(r"case_\d\d", folded) == ["case_03", "case_02", "case_01", "case_00"]
    assert "| `moe/case_13` | dgx\\_h100 | lm loss | 2/2 | 1,400 % | 1 → 15 |  | different |" in shown


def test_markdown_of_many_goldens_fits_a_pull_request() -> None:
    entries = tuple(Entry(f"goldens/{'x' * 150}/{i}", None, "unreadable", note="not JSON") for i in range(900))
    text = markdown(Report("t", "a", "b", entries))
    assert len(text) <= 65_536
    kept = text.count("| unreadable |")
    assert f"{900 - kept} more goldens are in the HTML report." in text


def test_a_page_of_160_refreshed_goldens_stays_below_three_megabytes(make_repo: Callable[..., ScratchRepo]) -> None:
    repo, names = make_repo("repo"), ("lm_loss", "num_zeros", "mem_allocated", "mem_max", "iteration_time", "mtp_loss")
    curves = [{s: (s * 7919 + k) % 1009 + 0.12345 for s in range(1, 301)} for k in range(2)]
    for k, message in enumerate(("first", "second")):
        golden = golden_json(None, **dict.fromkeys(names, curves[k]))
        repo.commit({f"{ROOT}moe/case_{i}/golden_values_dev_dgx_h100.json": golden for i in range(160)}, message)
    page = html(built(repo))
    assert len(page.encode()) < 3_000_000
    assert all(len(m["s"]) >= 24 for entry in embedded(page) for m in entry["metrics"])


def test_the_command_writes_both_kinds_and_says_so(moved: ScratchRepo, run: Run) -> None:
    done = run(moved.top, "report", "HEAD~1", "HEAD", "--to", "r.html", "--to", "r.md")
    assert (done.code, done.out) == (0, "")
    assert "wrote r.html: 2 goldens" in done.err
    assert (moved.top / "r.html").read_text().startswith("<!doctype html>")
    assert (moved.top / "r.md").read_text().startswith("## Golden values\n")


def test_a_report_can_be_of_some_cases_platforms_and_metrics(moved: ScratchRepo, run: Run) -> None:
    assert run(moved.top, "report", "HEAD~1", "HEAD", "--to", "a.md", "--platform", "dgx_gb200").code == 0
    assert "case_a" not in (moved.top / "a.md").read_text()
    assert run(moved.top, "report", "HEAD~1", "HEAD", "--to", "b.md", "--metric", "lm loss").code == 0
    assert "case_b" not in (moved.top / "b.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "r.html"], "nothing, or more than one thing, to report on"),
        (["HEAD", "--to", "r.html"], "nothing, or more than one thing, to report on"),
        (["HEAD~1", "HEAD", "--sync", "abc", "--to", "r.html"], "nothing, or more than one thing, to report on"),
        (["HEAD~1", "HEAD", "--to", "r.pdf"], "r.pdf is neither HTML nor Markdown"),
        (["HEAD~1", "HEAD", "--to", "no/r.md"], "no such folder"),
        (["HEAD~1", "nowhere", "--to", "r.md"], "nowhere is no revision"),
        (["--refresh", "a'b", "--to", "r.md"], "is no id of a refresh"),
    ],
)
def test_wrong_use_ends_in_2_and_writes_nothing(moved: ScratchRepo, run: Run, arguments: list[str], said: str) -> None:
    done = run(moved.top, "report", *arguments)
    assert done.code == 2
    assert said in done.err
    assert not list(moved.top.glob("r.*"))


def test_a_file_that_cannot_be_written_ends_in_4_and_leaves_nothing_behind(moved: ScratchRepo, run: Run) -> None:
    (moved.top / "r.md").mkdir()
    done = run(moved.top, "report", "HEAD~1", "HEAD", "--to", "r.md")
    assert done.code == 4
    assert "cannot be written" in done.err
    assert [p.name for p in moved.top.iterdir() if p.name.startswith(".r.md")] == []


def test_a_refresh_draws_what_it_wrote_and_what_it_refused(moved: ScratchRepo, run: Run, tmp_path: Path) -> None:
    delivered = {
        LOSS: golden_json(lm_loss={1: 9.5, 2: 9.0}, num_zeros={1: 7.0, 2: 7.0}),
        SAME: golden_json(lm_loss={1: 3.5, 2: 2.5}),
    }
    for name, content in delivered.items():
        path = tmp_path / "run" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    options = ("--from-job", str(tmp_path / "run"), "--yes", "--report", "r.md")
    assert run(moved.top, "refresh", *options).code == 1
    text = (moved.top / "r.md").read_text()
    assert re.search(r"`moe/case_a` \| dgx\\_h100 \| refused \| num zeros \| 2/100 ", text)
    assert re.search(r"`t5/case_c` \| dgx\\_h100 \| written \| lm loss \| 2/2 \| 25 % \| 2 → 2.5 ", text)


def test_a_recorded_refresh_can_be_drawn_later(
    moved: ScratchRepo, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run" / SAME
    path.parent.mkdir(parents=True)
    path.write_bytes(golden_json(lm_loss={1: 3.5, 2: 2.5}))
    assert run(moved.top, "refresh", "--from-job", str(tmp_path / "run"), "--yes", "--report", "now.md").code == 0
    ident = run(moved.top, "catalog", "sql", "SELECT id FROM refresh", "--format", "json").json[0]["id"]
    moved.commit(message="the refresh, in the same second or the next")
    monkeypatch.setitem(IDENTITY, "GIT_COMMITTER_DATE", "2090-01-01T00:00:00Z")
    moved.commit({ROOT + SAME: golden_json(lm_loss={1: 1.0, 2: 1.0})}, "something else since")
    assert run(moved.top, "report", "--refresh", ident, "--to", "later.md").code == 0
    assert (moved.top / "later.md").read_text() == (moved.top / "now.md").read_text()


def test_a_refresh_nobody_recorded_ends_in_3(moved: ScratchRepo, run: Run) -> None:
    moved.commit({"goldenctl.toml": 'root = "goldens"\n'})
    (moved.top / "run").mkdir()
    run(moved.top, "catalog", "build")
    done = run(moved.top, "report", "--refresh", "20260101T000000-abcdef", "--to", "r.md")
    assert done.code in (3, 4)
    assert "next:" in done.err


def test_a_recorded_run_is_a_side_as_a_run_is(run: Run, make_repo: Callable[..., ScratchRepo]) -> None:
    top = Path(__file__).parents[2]
    goldens = {p.relative_to(top).as_posix(): p.read_bytes() for p in (top / "goldens/t5").rglob("*.json")}
    repo = make_repo("repo", {**goldens, "goldenctl.toml": 'root = "goldens"\n'})
    recorded = top / "data/runs/github-17000000001"
    assert run(repo.top, "report", "WORKTREE", str(recorded), "--to", "r.md", "--platform", "dgx_gb200").code == 0
    assert "`t5/t5_220m_mcore_te_tp1_pp1_resume_torch_dist 2nd` | dgx\\_gb200 |" in (repo.top / "r.md").read_text()


@pytest.mark.corpus
def test_the_report_of_a_real_sync_has_the_classes_of_its_audit(corpus: Path, run: Run, tmp_path: Path) -> None:
    page = tmp_path / "s.html"
    assert run(corpus, "report", "--sync", "2026-04-28", "--to", str(page)).code == 0
    text = page.read_text()
    assert len(text.encode()) < 3_000_000
    assert re.search(r"<b>80</b> overwritten", text)
    assert re.search(r"<b>56</b> added", text)
