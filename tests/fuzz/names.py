"""Paths of goldens and trailers of commits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from goldenctl import trailers as trailers_module
from goldenctl.errors import ConfigError
from goldenctl.layout import DEFAULT_LAYOUT, Layout
from goldenctl.model import Action, FileResult, GoldenKey, Match, MatchLevel, RefreshResult, Run
from tests.fuzz.chosen import Chosen

_KEY = GoldenKey("moe", "a", "dev", "dgx_h100")
_TEMPLATES = (
    DEFAULT_LAYOUT, "{model}/{test_case}/{platform}/{environment}{variant}.json", "{test_case}_{environment}.json",
    "{model}{test_case}.json", "x/{model}/{test_case}.json",
)  # fmt: skip


def layout(data: bytes) -> bool:
    """No key leads out of root, and a path that is built is read back as it was meant."""
    chosen = Chosen(data)
    text = chosen.some(200).decode("utf-8", "surrogateescape").split("|")
    model, test_case, environment, platform, variant = (text + [""] * 5)[:5]
    template = chosen.of(_TEMPLATES) if len(text) < 7 else text[6]
    try:
        compiled = Layout(template)
        compiled.parse("")
    except ConfigError:
        return False
    for name in text:
        compiled.parse_name(name)
        compiled.parse_legacy(name)
        key = compiled.parse(name)
        if key is not None and template == DEFAULT_LAYOUT:
            _builds(compiled, key, name)
    _builds(compiled, GoldenKey(model, test_case, environment, platform, variant), None)
    return True


def _builds(compiled: Layout, key: GoldenKey, wanted: str | None) -> None:
    try:
        path = compiled.path(key)
    except ValueError:
        return
    parts = PurePosixPath(path).parts
    assert ".." not in parts, path
    assert not path.startswith("/"), path
    assert path.isprintable(), path
    assert wanted is None or path == wanted
    again = compiled.parse(path)
    assert again is not None, path
    for name in ("model", "test_case", "environment", "platform", "variant"):
        assert f"{{{name}}}" not in compiled.template or getattr(again, name) == getattr(key, name), path


def trailers(data: bytes) -> bool:
    """Any message can be read, and what is written is read back as it was."""
    chosen = Chosen(data)
    path, rev, ident, url = (chosen.some(chosen.byte()).decode("utf-8", "surrogateescape") for _ in range(4))
    message = chosen.rest().decode("utf-8", "surrogateescape")
    trailers_module.parse(message)
    if not (path and rev and ident):
        return False
    file = FileResult(path, _KEY, Action.WRITTEN, sha256="0" * 64, matches=(Match(rev, MatchLevel.EQUAL, "1" * 40),))
    run = replace(Run("r", "github", ident, 2), url=f"https://{url}" if url else "")
    said = trailers_module.message(RefreshResult("x", (run,), (file,)))
    again = trailers_module.parse(said.encode("utf-8").decode("utf-8"))
    assert [(a.path, a.sha256) for a in again.artifacts] == [(path, "0" * 64)], said
    assert [(m.path, m.rev, m.commit) for m in again.matches] == [(path, rev, "1" * 40)], said
    assert [(r.id, r.attempt) for r in again.runs] == [(ident, 2)], said
    return True
