"""The report in a real browser: no error, no request, search and sort work, curves are drawn."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from goldenctl import collect, config
from goldenctl.api.reporting import of_sides
from goldenctl.cli import reporting
from tests.conftest import ScratchRepo, golden_json
from tests.report.conftest import LOSS, ROOT, SPEED
from tests.report.test_report import nasty

pytestmark = pytest.mark.browser


@dataclass
class Opened:
    """A report open in a browser, with what the browser said and asked for."""

    page: Page
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def cases(self) -> list[str]:
        return self.page.locator("#goldens tr.golden:visible .open").all_inner_texts()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = os.environ.get("GOLDENCTL_CHROMIUM")
    if not chromium:
        pytest.skip("GOLDENCTL_CHROMIUM is not set: no browser here")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Opened]]:
    contexts: list[BrowserContext] = []

    def show(path: Path, width: int = 1280, scheme: Literal["light", "dark"] = "light") -> Opened:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        found = Opened(context.new_page())
        found.page.on("console", lambda message: found.said.append(message.text))
        found.page.on("pageerror", lambda error: found.said.append(str(error)))
        found.page.on("request", lambda request: found.asked.append(request.url))
        found.page.goto(path.as_uri())
        return found

    yield show
    for context in contexts:
        context.close()


def write(repo: ScratchRepo) -> Path:
    settings = config.load(repo.top)
    old, new = (collect.open_side(name, settings) for name in ("HEAD~1", "HEAD"))
    path = repo.top / "report.html"
    reporting.write(of_sides(old, new, settings), path)
    return path


def test_a_report_opens_without_an_error_and_asks_for_nothing(moved: ScratchRepo, opened: Callable[..., Opened]) -> None:
    path = write(moved)
    found = opened(path)
    for row in found.page.locator("button.open").all():
        row.click()
    assert found.page.locator("figure svg").count() == 2
    assert found.said == []
    assert found.asked == [path.as_uri()]


def test_names_with_markup_are_shown_as_they_are(opened: Callable[..., Opened], tmp_path: Path) -> None:
    path = tmp_path / "nasty.html"
    reporting.write(nasty(), path)
    found = opened(path)
    assert found.page.locator("tr.detail .path").inner_text() == nasty().entries[0].path
    assert found.page.locator("img").count() == 0
    assert (found.said, found.asked) == ([], [path.as_uri()])


@pytest.mark.parametrize(
    ("words", "left"),
    [("case_a", ["moe/case_a"]), ("GB200", ["gpt/case_b"]), ("iteration-time", ["gpt/case_b"]), ("moe gb200", []),
     ("refresh two", ["moe/case_a", "gpt/case_b"])],
)  # fmt: skip
def test_search_looks_in_cases_platforms_metrics_and_origins(
    moved: ScratchRepo, opened: Callable[..., Opened], words: str, left: list[str]
) -> None:
    found = opened(write(moved))
    found.page.locator("#search").fill(words)
    assert found.cases() == left
    assert found.page.locator("#shown").inner_text() == f"{len(left)} of 2"
    assert found.page.locator("#nothing").is_visible() == (not left)


def test_a_click_on_a_head_sorts_and_a_second_one_turns_it_round(moved: ScratchRepo, opened: Callable[..., Opened]) -> None:
    found = opened(write(moved))
    assert found.cases() == ["moe/case_a", "gpt/case_b"]
    head = found.page.locator("#goldens thead th", has_text="golden")
    head.locator("button").click()
    assert (found.cases(), head.get_attribute("aria-sort")) == (["gpt/case_b", "moe/case_a"], "ascending")
    head.locator("button").click()
    assert (found.cases(), head.get_attribute("aria-sort")) == (["moe/case_a", "gpt/case_b"], "descending")
    found.page.locator("#goldens thead th", has_text="difference").locator("button").click()
    assert found.cases() == ["moe/case_a", "gpt/case_b"]  # 100 % before 10 %


def test_a_chip_shows_only_goldens_of_its_status(make_repo: Callable[..., ScratchRepo], opened: Callable[..., Opened]) -> None:
    repo = make_repo("repo", {ROOT + LOSS: golden_json(lm_loss={1: 1.0, 2: 1.0})})
    repo.commit({ROOT + LOSS: golden_json(lm_loss={1: 2.0, 2: 2.0}), ROOT + SPEED: golden_json(lm_loss={1: 1.0, 2: 1.0})})
    found = opened(write(repo))
    chip = found.page.get_by_role("button", name="added 1")
    chip.click()
    assert found.cases() == ["gpt/case_b"]
    chip.click()
    assert len(found.cases()) == 2


def test_a_cell_of_the_heat_map_leads_to_its_curves(moved: ScratchRepo, opened: Callable[..., Opened]) -> None:
    found = opened(write(moved))
    found.page.locator(".heat td", has_text="+2 NaN").click()
    aimed = found.page.locator("figure.aim")
    assert aimed.locator("b").inner_text() == "lm loss"
    assert aimed.locator("svg path.old").count() == 1
    assert aimed.locator("svg path.new").count() == 1
    assert aimed.locator("svg path.relative").count() == 1
    assert aimed.locator("svg rect.mark").count() == 1


def test_pointing_at_a_curve_reads_its_values(moved: ScratchRepo, opened: Callable[..., Opened]) -> None:
    found = opened(write(moved))
    found.page.locator(".heat td", has_text="+2 NaN").click()
    image = found.page.locator("figure.aim svg")
    image.focus()
    for _ in range(40):
        image.press("ArrowRight")
    assert found.page.locator("figure.aim output").inner_text() == "step 40 · old 8.75 · new 17.5 · 100 %"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(moved: ScratchRepo, opened: Callable[..., Opened], scheme: str) -> None:
    found = opened(write(moved), width=390, scheme=scheme)
    for row in found.page.locator("button.open").all():
        row.click()
    assert found.page.evaluate("document.documentElement.scrollWidth") == 390
    ground = found.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 27)"}[scheme]
