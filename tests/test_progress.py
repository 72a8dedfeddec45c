"""Progress is a line every ten seconds where nobody watches."""

from __future__ import annotations

import pytest

from goldenctl.cli import progress


def test_a_line_is_said_when_ten_seconds_have_passed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([100.0, 105.0, 110.0, 110.0, 119.0, 120.0, 120.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    with progress.shown("artifacts") as tell:
        for done in (1, 2, 3, 4):
            tell(done, 9, done * 1000)
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "2 of 9 artifacts, 2,000 bytes\n4 of 9 artifacts, 4,000 bytes\n"
