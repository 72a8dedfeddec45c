"""All rules about one golden file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from goldenctl.config import Settings
from goldenctl.goldenfile import Decoded, DocumentError, Shape, decode, describe, shape_of
from goldenctl.lint import record
from goldenctl.lint.block import BLOCK_RULES, Block, empty_rule, read
from goldenctl.lint.rules import finding, for_path
from goldenctl.model import Finding

_MARKS = (b"<<<<<<< ", b"=======", b">>>>>>> ")


def check(path: str, raw: bytes, settings: Settings) -> list[Finding]:
    """Findings in one golden file.

    Parameters
    ----------
    path
        Relative to the repository's top, for the layout and for messages; it is not read.
    raw
        The file's bytes.
    settings
        Rules, layout, platforms and limits.

    Returns
    -------
    list of Finding
        In the order of the rules; never raises for bad content.
    """
    codes = for_path(settings.lint, path)
    found = list(_path_rules(path, settings)) if "GV005" in codes else []
    if "GV013" in codes and len(raw) > settings.lint.max_bytes:
        message = f"{len(raw):,} bytes, the limit is {settings.lint.max_bytes:,} (max_bytes)"
        found.append(finding("GV013", path, "", message))
    found += _content_rules(path, raw, codes)
    return [f for f in found if f.rule in codes] if found else found


def _content_rules(path: str, raw: bytes, codes: frozenset[str]) -> list[Finding]:
    if not raw.strip():
        return [finding("GV003", path, "", "the file is empty" if not raw else "the file holds blanks only", kind="zero-byte")]
    try:
        decoded = decode(raw)
    except DocumentError as exc:
        return [_unreadable(path, raw, exc)]
    found = list(_document_rules(path, decoded, codes))
    if "GV009" in codes and not decoded.twice:
        found += _duplicates(path, raw, decoded.value)
    return found


def _unreadable(path: str, raw: bytes, error: DocumentError) -> Finding:
    lines = raw.splitlines()
    marked = next((i for i, text in enumerate(lines, 1) if text.startswith(_MARKS[0])), 0)
    if marked and any(text.startswith(_MARKS[2]) for text in lines):
        message = f"holds conflict markers, the first at line {marked}; take one side: git checkout --ours|--theirs"
        return finding("GV002", path, "", message, kind="conflict", line=marked)
    return finding("GV002", path, "", str(error), kind="unreadable", line=error.line)


def _document_rules(path: str, decoded: Decoded, codes: frozenset[str]) -> Iterator[Finding]:
    if decoded.twice:
        yield finding(
            "GV002",
            path,
            "",
            "encoded twice: the file is a JSON text that holds JSON; repair: goldenctl lint --fix",
            kind="twice",
            line=1,
        )
    value = decoded.value
    shape = Shape.UNKNOWN if value is None else shape_of(value)
    if shape is Shape.UNKNOWN:
        yield finding("GV002", path, "", f"no known document shape: top level is {describe(value)}", kind="shape", line=1)
    elif shape is Shape.EMPTY:
        yield finding("GV003", path, "", "the file holds an empty object", kind="empty object", line=1)
    elif shape is Shape.METRICS:
        yield from _metric_rules(path, value, decoded.strict, codes)
    else:
        yield from record.rules(path, value, strict=decoded.strict)


def _metric_rules(path: str, value: Mapping[str, Any], strict: bool, codes: frozenset[str]) -> Iterator[Finding]:
    second = path.endswith("_2nd.json")
    active = [rule for which, rule in BLOCK_RULES if not which.isdisjoint(codes)]
    blocks: list[Block] = []
    others = 0
    for metric, item in value.items():
        if type(item) is not dict or "values" not in item:
            others += 1
            continue
        block = read(path, metric, item, second_phase=second, strict=strict)
        if block is None:
            message = f"values of {metric!r} is {describe(item['values'])}"
            yield finding("GV012", path, metric, message, kind="values")
        elif not block.items:
            yield from empty_rule(block)
        else:
            blocks.append(block)
            for rule in active:
                yield from rule(block)
    if others:
        yield from record.rules(path, value, strict=strict)
    if "GV011" in codes and len(blocks) > 1:
        yield from _grids(path, blocks)


def _grids(path: str, blocks: list[Block]) -> Iterator[Finding]:
    """GV011: a metric whose steps are not those of the longest one, a later first step allowed."""
    longest = max(blocks, key=lambda b: len(b.items))
    for block in blocks:
        if block.is_list or longest.is_list:
            if (block.is_list, len(block.items)) == (longest.is_list, len(longest.items)):
                continue
        elif block.keys == longest.keys or block.keys == longest.keys[-len(block.keys) :]:
            continue
        message = f"{block.metric!r} has {len(block.items)} steps, {longest.metric!r} {len(longest.items)}, on another grid"
        missing = tuple(sorted(set(longest.steps()) - set(block.steps())))
        yield finding("GV011", path, block.metric, message, count=max(1, len(missing)), steps=missing, kind="grid")


def _block_keys(value: Any) -> int:
    """Number of keys of a document that holds metric blocks and nothing else; 0 for others."""
    if type(value) is not dict or not all(type(v) is dict and type(v.get("values")) is dict for v in value.values()):
        return 0
    return len(value) + sum(len(block) + len(block["values"]) for block in value.values())


def _duplicates(path: str, raw: bytes, value: Any) -> list[Finding]:
    """GV009; the slow reader runs only where the text has more keys than the decoded document."""
    colons = raw.count(b":")
    if colons == _block_keys(value):
        return []
    keys_read = record.count_keys(value)
    if colons == keys_read or (raw.count(b'":') == keys_read and b'" :' not in raw):
        return []
    keys = record.duplicate_keys(raw)
    if not keys:
        return []
    return [finding("GV009", path, keys[0], f"key {keys[0]!r} stands twice in one object", count=len(keys), kind="duplicate")]


def _path_rules(path: str, settings: Settings) -> Iterator[Finding]:
    """GV005, for files below root."""
    prefix = settings.prefix
    if not path.startswith(prefix):
        return
    layout = settings.compiled_layout
    key = layout.parse(path[len(prefix) :])
    if key is None:
        legacy = layout.parse_legacy(path[len(prefix) :])
        why = (
            f"an older spelling without platform; today's is {settings.layout}"
            if legacy
            else f"it does not fit {settings.layout}"
        )
        yield finding("GV005", path, "", f"the path names no golden: {why}", kind="legacy" if legacy else "layout")
    elif key.environment not in settings.environments:
        message = f"unknown environment {key.environment!r}, known are {', '.join(settings.environments)}"
        yield finding("GV005", path, "", message, kind="environment")
    elif key.platform not in settings.platforms:
        message = f"unknown platform {key.platform!r}, known are {', '.join(settings.platforms)}"
        yield finding("GV005", path, "", message, kind="platform")
