"""The pictures of the documentation: the report in a browser, and the charts of the notebooks, on our own goldens.

``python docs/pictures.py [FOLDER]``    write them, into docs/pictures by default

Needs a chromium, named by ``GOLDENCTL_CHROMIUM``.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from playwright.sync_api import Page, sync_playwright

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "data"))
import demo  # noqa: E402 - the scratch repository of `make demo`

BROWSER = "GOLDENCTL_CHROMIUM"
CASE = "gpt/gpt3_345m_release_sm"
DRAWN = "import altair as alt\nalt.renderers.enable('png', scale_factor=1)"
COMMANDS = (
    "report main~1 dev --to moved.html",
    "refresh --from-job ci-run --only nonfinite --fix --match sync:2026-04-28 --yes --dry-run --report repair.html",
    "catalog build",
    "record --from-job ci-run",
    "record --from-job git:main",
    "record --from-job git:main~1",
)
"""What is run in the scratch repository; the refresh ends in 1, as one candidate is refused."""


def prepare(top: Path) -> None:
    """Build the scratch repository and what the pictures show of it."""
    demo.scratch(top)
    environment = os.environ | demo.IDENTITY
    for command in COMMANDS:
        done = subprocess.run([sys.executable, "-m", "goldenctl", *command.split()], cwd=top, env=environment, check=False)
        if done.returncode not in (0, 1):
            sys.exit(f"goldenctl {command} ended in {done.returncode}")


def photograph(top: Path, folder: Path) -> None:
    """Draw both reports as a desktop and a phone show them."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=os.environ[BROWSER], args=["--no-sandbox"])
        desktop = browser.new_page(viewport={"width": 1200, "height": 860})
        desktop.goto((top / "moved.html").as_uri())
        desktop.screenshot(path=folder / "report.png")
        desktop.goto((top / "repair.html").as_uri())
        _unfold(desktop, CASE)
        desktop.evaluate("scrollTo(0, 0)")
        desktop.screenshot(path=folder / "report-curves.png", full_page=True, clip=desktop.locator("tr.detail").bounding_box())
        phone = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
        phone.goto((top / "repair.html").as_uri())
        phone.screenshot(path=folder / "report-phone.png")
        _unfold(phone, CASE)
        phone.locator("tr.detail figure").first.scroll_into_view_if_needed()
        phone.screenshot(path=folder / "report-phone-curves.png")
        browser.close()


def _unfold(page: Page, case: str) -> None:
    page.locator("button.open", has_text=case).first.click()


def execute(notebook: Path, folder: Path) -> Any:
    """The notebook after a run from top to bottom in ``folder``, its charts drawn as PNG."""
    document = nbformat.read(notebook, 4)
    document.cells.insert(0, nbformat.v4.new_code_cell(DRAWN))
    NotebookClient(document, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return document


def charts(document: Any) -> Iterator[bytes]:
    """The PNG pictures an executed notebook holds."""
    for cell in document.cells:
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", {}):
                yield base64.b64decode(output["data"]["image/png"])


def main(arguments: list[str]) -> int:
    """Make all pictures."""
    folder = Path(arguments[0]) if arguments else TOP / "docs/pictures"
    if not shutil.which(os.environ.get(BROWSER, "")):
        print(f"{BROWSER} names no browser; on Debian: apt-get install chromium", file=sys.stderr)
        return 2
    os.environ["PYTHONPATH"] = str(TOP / "src")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch)
        prepare(top)
        photograph(top, folder)
        for notebook in sorted((TOP / "notebooks").glob("*.ipynb")):
            for i, picture in enumerate(charts(execute(notebook, top)), 1):
                (folder / f"{notebook.stem}-{i}.png").write_bytes(picture)
    for path in sorted(folder.glob("*.png")):
        print(f"{path.stat().st_size:9,} {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
