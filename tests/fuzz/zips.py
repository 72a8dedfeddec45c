"""Artifact zips: whatever the bytes, members have safe names and bounded sizes, and nothing is raised."""

from __future__ import annotations

import io
import struct
import warnings
import zipfile
from pathlib import Path

from goldenctl.candidates import Known, resolve
from goldenctl.config import Settings
from goldenctl.model import Artifact, Fetched, Job, Run
from goldenctl.sources.artifact import MAX_MEMBER, MAX_TOTAL, RangeReader, is_golden_name, members
from tests.fuzz.chosen import Chosen

NAMES = (
    "golden_values_dev_dgx_h100.json", "golden_values_lts_dgx_a100_2nd.json", "../golden_values_dev_dgx_h100.json",
    "/etc/golden_values_dev_dgx_h100.json", "C:\\golden_values_dev_dgx_h100.json", "a\\..\\golden_values_dev_dgx_h100.json",
    "moe/a/golden_values_dev_dgx_h100.json", "..\u2215golden_values_dev_dgx_h100.json", "golden_values_\x1b[31m.json",
    "results/iteration=0/restart=10/assets/basic/a-dev-dgx-h100/golden_values_dev_dgx_h100.json", "inner.zip", "moe/", "",
    "generations_dev_dgx_h100.json", "golden_values_dev_dgx_h100.json\n", ".git/golden_values_dev_dgx_h100.json",
    "results/iteration=999999999/restart=999999999/golden_values_dev_dgx_h100.json", "golden_values_\ud800.json",
)  # fmt: skip
KNOWN = Known(
    Settings(Path("/nowhere"), root="goldens"),
    frozenset({"goldens/moe/a/golden_values_dev_dgx_h100.json"}),
    frozenset({"moe/a"}),
)
RUN = Run("fuzz", "tree", "1")


def archive(data: bytes) -> None:
    """Bytes as they are, or a zip built by them and then damaged."""
    chosen = Chosen(data)
    how = chosen.byte()
    raw = chosen.rest() if how & 1 else _built(chosen)
    found, problems = members(RangeReader(lambda a, b: raw[a:b], len(raw)) if how & 2 else io.BytesIO(raw), subject="a")
    assert sum(len(m.content) for m in found) <= MAX_TOTAL
    for member in found:
        assert len(member.content) <= MAX_MEMBER
        parts = member.name.split("/")
        assert is_golden_name(member.name)
        assert ".." not in parts
        assert not member.name.startswith("/")
        assert member.name.isprintable() or not any(ord(c) < 32 or ord(c) == 127 for c in member.name)
    for problem in problems:
        assert "\x1b" not in problem.message
        assert "\n" not in problem.message
    artifact = Artifact("1", "a", len(raw), job=Job("1", "moe/a - latest", "moe", "a") if how & 4 else None)
    for candidate in resolve(RUN, [Fetched(artifact, found)], KNOWN).candidates:
        assert candidate.path.startswith("goldens/")
        assert ".." not in candidate.path.split("/")


def _built(chosen: Chosen) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(chosen.below(5)):
            info = zipfile.ZipInfo(chosen.of(NAMES).encode("utf-8", "replace").decode())
            info.create_system, info.external_attr = chosen.byte() & 3, chosen.byte() << 24
            info.extra = _extra(chosen)
            info.compress_type = chosen.of((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
            content = bytes(chosen.byte() << 12) if chosen.byte() > 200 else chosen.some(chosen.byte())
            made.writestr(info, content, info.compress_type)
    raw = bytearray(buffer.getvalue())
    for _ in range(chosen.below(6)):
        at = chosen.below(len(raw))
        raw[at] = chosen.byte()
    return bytes(raw[: len(raw) - chosen.below(4)])


def _extra(chosen: Chosen) -> bytes:
    kind = chosen.byte()
    if kind < 100:
        return b""
    if kind < 200:
        return struct.pack("<HHB", 0x5455, 5, 1) + chosen.some(4).ljust(4, b"\xff")
    return chosen.some(12)
