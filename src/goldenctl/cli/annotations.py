"""Findings as other tools read them: GitHub workflow commands and SARIF 2.1.0."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from goldenctl.lint import RULES
from goldenctl.model import Finding
from goldenctl.version import __version__


def github(findings: Sequence[Finding]) -> str:
    """One workflow command a finding; text from files cannot begin a command of its own."""
    lines = [
        f"::{f.severity.value} file={_property(f.path)},line={max(1, f.line)},title={f.rule}::{_data(f.message)}"
        for f in findings
    ]
    return "\n".join(lines) + "\n" if lines else ""


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def sarif(findings: Sequence[Finding]) -> str:
    """A SARIF log with one run."""
    import orjson

    rules = [{"id": r.code, "shortDescription": {"text": r.finds}} for r in RULES.values()]
    driver = {"name": "goldenctl", "version": __version__, "rules": rules}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(f) for f in findings]}],
    }
    return orjson.dumps(log, option=orjson.OPT_INDENT_2).decode()


def _result(item: Finding) -> dict[str, object]:
    place = {"artifactLocation": {"uri": quote(item.path)}, "region": {"startLine": max(1, item.line)}}
    return {
        "ruleId": item.rule,
        "level": item.severity.value,
        "message": {"text": item.message},
        "locations": [{"physicalLocation": place}],
    }
