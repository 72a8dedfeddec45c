"""Artifact zips for tests, well-formed and hostile."""

from __future__ import annotations

import io
import stat
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from datetime import datetime

GOLDEN = b'{"lm loss": {"start_step": 1, "end_step": 1, "step_interval": 1, "values": {"1": 10.5}}}'
H100 = "golden_values_dev_dgx_h100.json"
GB200 = "golden_values_dev_dgx_gb200.json"
RESTART = "results/iteration={}/restart={}/assets/basic/tiny-dev-dgx-h100/" + H100


def zipped(files: Mapping[str, bytes] | Sequence[tuple[str, bytes]], *, at: datetime | None = None) -> bytes:
    """A deflated zip; a sequence may name one member twice."""
    buffer = io.BytesIO()
    pairs = files.items() if isinstance(files, Mapping) else files
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, content in pairs:
            archive.writestr(entry(name, at), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def entry(name: str, at: datetime | None = None) -> zipfile.ZipInfo:
    """A member written at a time, 2026-05-01 10:00 UTC unless said otherwise."""
    at = at or datetime(2026, 5, 1, 10, 0)
    return zipfile.ZipInfo(name, (at.year, at.month, at.day, at.hour, at.minute, at.second))


def zipped_at(files: Mapping[str, datetime], content: bytes = GOLDEN) -> bytes:
    """A zip whose members were written at these times; each holds its own name beside ``content``."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, at in files.items():
            archive.writestr(entry(name, at), content)
    return buffer.getvalue()


def with_link(name: str, target: str) -> bytes:
    """A zip whose member is a symbolic link."""
    info = entry(name)
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(info, target)
    return buffer.getvalue()


def patched(raw: bytes, old: bytes, new: bytes) -> bytes:
    """A zip with bytes replaced; fails when there is nothing to replace."""
    assert old in raw
    return raw.replace(old, new)


def with_flag(raw: bytes, *, flag: int = 0, method: int | None = None) -> bytes:
    """A zip whose only member has a flag bit or another packing method, in both its headers."""
    out = bytearray(raw)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = raw.index(mark) + offset
        out[at] |= flag
        if method is not None:
            out[at + 2] = method
    return bytes(out)
