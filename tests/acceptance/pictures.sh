#!/usr/bin/env bash
# What people look at: the pictures of the docs made anew, the report of a real refresh and a real sync opened in a
# browser, the notebooks on the corpus's catalog. Fails when a page asks the network, logs an error or is too large.
. "$(dirname "$0")/common.sh"
export GOLDENCTL_CHROMIUM="${GOLDENCTL_CHROMIUM:-$(command -v chromium || true)}"
if [ -z "$GOLDENCTL_CHROMIUM" ]; then
  echo "skipped: no chromium; name one by GOLDENCTL_CHROMIUM"
  exit 0
fi

# 1. The pictures of the docs, by the command that makes them.
python "$TOP/docs/pictures.py" "$WORK/pictures" >"$WORK/out" 2>&1 || { cat "$WORK/out" >&2; fail "docs/pictures.py"; }
for picture in "$TOP"/docs/pictures/*.png; do
  made="$WORK/pictures/$(basename "$picture")"
  [ "$(wc -c <"$made")" -gt 5000 ] || fail "$(basename "$picture") is missing or empty"
  [ "$(wc -c <"$picture")" -lt 400000 ] || fail "$(basename "$picture") is not small"
done
said "$(ls "$WORK/pictures" | wc -l) pictures made, each of the docs among them"

# opened FILE: the page loads in a browser without an error and without a request; search, sort and curves work.
opened() {
  python - "$1" <<'PY' || fail "$(basename "$1") in a browser"
import os, pathlib, sys
from playwright.sync_api import sync_playwright
path = pathlib.Path(sys.argv[1])
said, asked = [], []
with sync_playwright() as driver:
    browser = driver.chromium.launch(executable_path=os.environ["GOLDENCTL_CHROMIUM"], args=["--no-sandbox"])
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.on("console", lambda m: said.append(m.text))
    page.on("pageerror", lambda e: said.append(str(e)))
    page.on("request", lambda r: asked.append(r.url))
    page.goto(path.as_uri())
    rows = page.locator("#goldens tr.golden")
    total = rows.count()
    page.locator("#goldens thead th.c-size button").click()
    sizes = [float(r.get_attribute("data-size")) for r in rows.all()]
    assert sizes == sorted(sizes, reverse=True), "not sorted"
    page.locator("#search").fill("moe dgx_h100")
    shown = page.locator("#goldens tr.golden:visible").count()
    assert 0 < shown < total, f"{shown} of {total} after a search"
    page.locator("#search").fill("")
    page.locator("#goldens tr.golden:visible .open").first.click()
    assert page.locator("figure svg path.new").count() > 0, "no curve"
    assert page.evaluate("document.documentElement.scrollWidth") == 390, "scrolls sideways on a phone"
    browser.close()
assert said == [], said
assert asked == [path.as_uri()], asked
PY
}

need_corpus
cd "$WORK/corpus"
CHANGE=1c97782ddfb99cd287fec63ebbbff6e598131679 # a refresh of 168 goldens on dev
expect 0 goldenctl report $CHANGE^ $CHANGE --to "$WORK/refresh.html" --to "$WORK/refresh.md"
holds "$WORK/err" "168 goldens"
[ "$(wc -c <"$WORK/refresh.html")" -lt 3000000 ] || fail "the report of 168 goldens has 3 MB or more"
[ "$(wc -c <"$WORK/refresh.md")" -lt 65536 ] || fail "the Markdown does not fit a pull request"
holds "$WORK/refresh.md" "<summary>158 more goldens</summary>"
opened "$WORK/refresh.html"
said "the report of a refresh of 168 goldens: $(wc -c <"$WORK/refresh.html") bytes, works in a browser at phone width"

expect 0 goldenctl report --sync 2026-04-28 --to "$WORK/sync.html" --to "$WORK/sync.md"
holds "$WORK/sync.md" "80 overwritten"
opened "$WORK/sync.html"
said "the report of a sync has the classes of its audit"

expect 0 goldenctl catalog build
for notebook in "$TOP"/notebooks/*.ipynb; do
  SECONDS=0
  (cd "$WORK/corpus" && python - "$notebook" <<'PY') || fail "$(basename "$notebook")"
import sys
import nbformat
from nbclient import NotebookClient
NotebookClient(nbformat.read(sys.argv[1], 4), timeout=120, resources={"metadata": {"path": "."}}).execute()
PY
  [ $SECONDS -lt 120 ] || fail "$(basename "$notebook") took $SECONDS s"
  said "$(basename "$notebook") on the corpus in $SECONDS s"
done
