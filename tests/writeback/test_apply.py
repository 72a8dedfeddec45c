"""All files of a write-back or none."""

from __future__ import annotations

from pathlib import Path

from goldenctl.model import Change
from goldenctl.writeback import apply, recover


def test_every_file_gets_its_new_content_and_nothing_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "goldens").mkdir()
    (tmp_path / "goldens/a.json").write_bytes(b"old")
    (tmp_path / "goldens/b.json").write_bytes(b"gone")
    changes = [
        Change("goldens/a.json", b"old", b"new"),
        Change("goldens/b.json", b"gone", None),
        Change("goldens/x/y/c.json", None, b"first"),
    ]
    apply(tmp_path, "goldens", changes)
    found = {p.relative_to(tmp_path / "goldens").as_posix() for p in (tmp_path / "goldens").rglob("*") if p.is_file()}
    assert found == {"a.json", "x/y/c.json"}
    assert (tmp_path / "goldens/a.json").read_bytes() == b"new"
    assert (tmp_path / "goldens/x/y/c.json").read_bytes() == b"first"
    assert not (tmp_path / ".goldenctl/journal").exists()
    assert recover(tmp_path) == []
