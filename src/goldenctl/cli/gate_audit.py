"""``goldenctl gate-audit``: what a comparator lets through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldenctl.cli import options, output
from goldenctl.cli.output import Format
from goldenctl.errors import ExitCode, UsageError
from goldenctl.rules.verdicts import Rules

if TYPE_CHECKING:
    from goldenctl.config import Settings
    from goldenctl.gate_audit import Audit
    from goldenctl.testconfig import TestConfig


def command(
    cases: Annotated[list[str] | None, typer.Argument(help="Goldens: files, folders, case globs; a made one without.")] = None,
    rules: Annotated[
        list[Rules] | None, typer.Option(help="Our rules to audit, strict and harness without any; may be repeated.")
    ] = None,
    compare: Annotated[
        str, typer.Option("--command", help="A comparator to audit instead: a command with {golden} and {obtained}.")
    ] = "",
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds after which the command counts as failed.")] = 60.0,
    approximate: Annotated[bool, typer.Option("--approximate", help="Skip the exact lane.")] = False,
    format: options.Form = Format.TABLE,
) -> int:
    """Break a golden and a run in known ways and report which of them a comparator lets through.

    Example: goldenctl gate-audit moe/tiny --command "python compare.py {golden} {obtained}"
    """
    from goldenctl import config
    from goldenctl import gate_audit as stage

    settings = config.load(Path.cwd())
    goldens, swapped = _goldens(cases or (), settings)
    if compare:
        audits = [stage.audit(compare, stage.by_command(compare, timeout), goldens, swapped)]
    else:
        audits = [_by_rules(which, goldens, swapped, settings, approximate) for which in rules or list(Rules)]
    for path in audits[0].unfit:
        output.note(f"{path} holds neither metrics nor request records: not audited")
    if not any(a.trials for a in audits):
        raise UsageError("none of these goldens can be audited", hint="name a case with metrics or request records")
    _print(format, audits)
    sound = not any(a.let_through or a.refuses_sound for a in audits)
    return int(ExitCode.OK if sound else ExitCode.FINDINGS)


def _goldens(words: Sequence[str], settings: Settings) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Path → golden, and path → golden of another platform of the same case."""
    from goldenctl import collect, sides
    from goldenctl.gate_audit import made_golden

    if not words:
        return {"made golden": made_golden()}, {}
    side = sides.worktree(settings)
    takes = collect.named(words, settings, side.entries)
    contents = dict(side.contents(side.entries.values()))
    goldens = {p: contents[b] for p, b in side.entries.items() if takes(p) and contents[b].strip() not in (b"", b"{}")}
    keys = {p: k for p in side.entries if (k := sides.key_of(p, settings)) is not None}
    swapped = {}
    for path in goldens:
        key = keys.get(path)
        others = [p for p, k in keys.items() if key and replace(k, platform=key.platform) == key and p != path]
        if others:
            swapped[path] = contents[side.entries[others[0]]]
    return goldens, swapped


def _by_rules(
    which: Rules, goldens: Mapping[str, bytes], swapped: Mapping[str, bytes], settings: Settings, approximate: bool
) -> Audit:
    from goldenctl import gate_audit as stage

    parts = []
    for path, raw in goldens.items():
        case = _config(settings.top / path, raw, approximate=approximate)
        relative = path.removeprefix(settings.prefix)
        comparator = stage.by_rules(which, case, lambda metric, p=relative: settings.tolerance_for(metric, p))  # type: ignore[misc]
        parts.append(stage.audit(which.value, comparator, {path: raw}, swapped))
    return stage.Audit(which.value, tuple(t for a in parts for t in a.trials), tuple(c for a in parts for c in a.refuses_sound))


def _config(path: Path, golden: bytes, *, approximate: bool) -> TestConfig:
    from goldenctl import rules, testconfig

    found = testconfig.beside(path) or rules.assumed(golden)
    return replace(found, approximate_only=True) if approximate else found


def _print(format: Format, audits: Sequence[Audit]) -> None:
    if format is Format.JSON:
        output.json({"audits": [as_json(a) for a in audits]})
        return
    names = list(dict.fromkeys((t.case, t.mutation, t.what) for a in audits for t in a.trials))
    said = {(a.comparator, t.case, t.mutation): t.caught for a in audits for t in a.trials}
    words = {True: "caught", False: "LET THROUGH", None: "does not apply"}
    columns = ["golden", "mutation", "what", *(a.comparator for a in audits)]
    rows = [["/".join(c.split("/")[-3:]), m, w, *(words[said.get((a.comparator, c, m))] for a in audits)] for c, m, w in names]
    output.table(columns, rows, form=format)
    for audit in audits:
        tried = sum(t.caught is not None for t in audit.trials)
        output.result(f"{audit.comparator}: {tried - len(audit.let_through)} of {tried} caught")
        if audit.refuses_sound:
            output.result(f"{audit.comparator}: refuses a run equal to its golden: {', '.join(audit.refuses_sound)}")


def as_json(audit: Audit) -> dict[str, Any]:
    """One comparator's audit as JSON values."""
    return {
        "comparator": audit.comparator,
        "trials": [{"case": t.case, "mutation": t.mutation, "what": t.what, "caught": t.caught} for t in audit.trials],
        "let_through": sorted({t.mutation for t in audit.let_through}),
        "refuses_sound": list(audit.refuses_sound),
    }
