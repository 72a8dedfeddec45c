"""An audit as JSON and as the golden-value section of a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from goldenctl.markdown import code, escape, line, prose
from goldenctl.model import Finding, Match
from goldenctl.sync.model import Audit, AuditedFile, Class, Lost
from goldenctl.sync.summary import Sentence

_SHOWN = 10
"""Files named before the fold."""


def as_json(audit: Audit, sentences: Sequence[Sentence]) -> dict[str, Any]:
    """The audit with keys that stay."""
    landing = asdict(audit.landing)
    landing["date"] = audit.landing.date.isoformat()
    counts: dict[str, int] = {kind.value: len(audit.of(kind)) for kind in Class}
    return {
        "sync": landing,
        "counts": counts | {"changed": len(audit.changed)},
        "files": [_file(f) for f in audit.files],
        "graph": asdict(audit.graph) | {"ok": not audit.graph.problems},
        "completeness": asdict(audit.completeness),
        "sentences": [{"text": s.text, "paths": list(s.paths)} for s in sentences],
        "in_order": audit.in_order,
    }


def _file(file: AuditedFile) -> dict[str, Any]:
    key = file.key
    names = ("case", "environment", "platform", "variant")
    return {
        "path": file.path,
        "class": file.kind.value,
        **{name: getattr(key, name) if key else "" for name in names},
        "blobs": {side: getattr(file, side) for side in ("base", "downstream", "upstream", "result")},
        "both_changed": file.both_changed,
        "source": asdict(file.source),
        "matches": [_match(m) for m in file.matches],
        "lost": _lost(file.lost),
        "repaired": dict(file.repaired),
        "findings": [finding_json(f) for f in file.findings],
        "new_errors": file.new_errors,
        "in_order": file.in_order,
    }


def _match(match: Match) -> dict[str, str]:
    return {"rev": match.rev, "level": match.level.value, "commit": match.commit, "detail": match.detail}


def _lost(lost: Lost | None) -> dict[str, Any] | None:
    if lost is None:
        return None
    undone = {metric: list(counts) for metric, counts in lost.undone.items()}
    return {"commit": lost.commit, "subject": lost.subject, "restore": lost.restore, "undone": undone}


def finding_json(finding: Finding) -> dict[str, Any]:
    """One finding with the keys of ``lint --format json``."""
    names = ("rule", "severity", "path", "metric", "count", "kind", "message", "baselined")
    return {name: getattr(finding, name) for name in names} | {"steps": list(finding.steps)}


def as_markdown(audit: Audit, sentences: Sequence[Sentence]) -> str:
    """The golden-value section of a sync's pull request: sentences, what needs a look, the long table folded."""
    parts = ["## Golden values", prose(" ".join(s.text for s in sentences))]
    worrying = audit.worrying
    if worrying:
        parts.append("\n".join(["**To be looked at**", "", *(_worry(f) for f in worrying[:_SHOWN]), *_more(worrying)]))
    if audit.graph.problems:
        parts.append("\n".join(["**Graph**", "", *(f"- {escape(problem)}" for problem in audit.graph.problems)]))
    if audit.files:
        rows = [_row(f) for f in audit.files]
        parts.append(_folded(f"All {len(rows)} golden files of the sync", _table(_COLUMNS, rows)))
    left = [(code(item.path), f"{item.kind} of {code(item.changed[0])}") for item in audit.completeness.left_behind]
    if left:
        parts.append(_folded(f"{len(left)} siblings not changed by the sync", _table(("file", "while this changed"), left)))
    parts += _configs(audit)
    return "\n\n".join(parts) + "\n"


_COLUMNS = ("file", "class", "values of", "run", "matches", "lint")


def _configs(audit: Audit) -> list[str]:
    pairs = (
        ("Settings of the case changed, the golden did not", audit.completeness.config_only),
        ("Steps or metrics of the golden changed, the settings of its case did not", audit.completeness.golden_only),
    )
    return [_folded(f"{title}: {len(paths)}", "\n".join(f"- {code(p)}" for p in paths)) for title, paths in pairs if paths]


def _more(files: Sequence[AuditedFile]) -> list[str]:
    return [f"- and {len(files) - _SHOWN} more, see the table"] if len(files) > _SHOWN else []


def _worry(file: AuditedFile) -> str:
    if file.lost is None:
        return f"- {code(file.path)}: {file.kind.value}{_error_note(file)}"
    undone = ", ".join(f"{metric} {old} → {new} NaN" for metric, (old, new) in file.lost.undone.items())
    what = f"repair undone ({escape(undone)})" if undone else file.kind.value
    return f"- {code(file.path)}: {what}, was {file.lost.commit[:10]} ({escape(file.lost.subject)}); {code(file.lost.restore)}"


def _error_note(file: AuditedFile) -> str:
    if not file.new_errors:
        return ""
    return ", 1 new lint error" if file.new_errors == 1 else f", {file.new_errors} new lint errors"


def _row(file: AuditedFile) -> tuple[str, ...]:
    matches = ", ".join(f"{m.rev} {m.level.value}" for m in file.matches)
    rules = ", ".join(sorted({f.rule for f in file.findings}))
    return code(file.path), file.kind.value, file.source.commit[:10], escape(file.source.run), escape(matches), rules


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(map(line, [columns, ["---"] * len(columns), *rows]))
