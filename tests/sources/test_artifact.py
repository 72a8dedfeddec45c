"""Golden members of a zip are read by ranges and within bounds; what cannot be trusted is refused by name."""

from __future__ import annotations

import io
import os
import struct
import tracemalloc
import zipfile
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldenctl.errors import CorruptError, ExpiredError, SourceError
from goldenctl.model import SourceProblem
from goldenctl.sources import artifact
from goldenctl.sources.artifact import RangeReader, is_golden_name, members, problem
from tests.sources.zips import GB200, GOLDEN, H100, RESTART, patched, with_flag, with_link, zipped, zipped_at


def problems_of(raw: bytes) -> list[tuple[str, str]]:
    found, problems = members(io.BytesIO(raw), subject="logs-x")
    assert found == ()
    assert {p.subject for p in problems} <= {"logs-x"}
    return [(p.kind, p.message) for p in problems]


@pytest.mark.parametrize(
    "name", [H100, "a/b/golden_values.json", "golden_values_dev_dgx_h100_2nd.json", "a\\golden_values.json"]
)
def test_a_golden_name_is_told_by_its_last_part(name: str) -> None:
    assert is_golden_name(name)


@pytest.mark.parametrize(
    "name",
    ["generations_dev_dgx_h100.json", "gpu.json", "my_golden_values.json", "golden_values.json.bak", "golden_values/x"],
)
def test_other_json_files_are_no_goldens(name: str) -> None:
    assert not is_golden_name(name)


def test_only_the_golden_members_are_taken_and_their_bytes_are_kept() -> None:
    raw = zipped({H100: GOLDEN, "logs/0/std.log": b"x" * 999, "0/tensorboard/events": b"y", GB200: b" {} \n"})
    found, problems = members(io.BytesIO(raw), subject="logs-x")
    assert [(m.name, m.content) for m in found] == [(H100, GOLDEN), (GB200, b" {} \n")]
    assert problems == ()


def test_ranges_give_what_the_whole_file_gives_and_transfer_little_of_it() -> None:
    logs = os.urandom(3_000_000)
    raw = zipped({H100: GOLDEN, "logs/0/std.log": logs, GB200: GOLDEN + b" "})
    asked: list[tuple[int, int]] = []

    def get_range(start: int, end: int) -> bytes:
        asked.append((start, end))
        return raw[start:end]

    reader = RangeReader(get_range, len(raw))
    assert members(reader, subject="x") == members(io.BytesIO(raw), subject="x")
    assert reader.bytes_transferred == sum(end - start for start, end in asked) < 70_000
    assert len(asked) == 2, "the end of the zip with the second golden, and the first golden"


def test_a_small_zip_takes_one_request() -> None:
    raw = zipped({H100: GOLDEN, "logs/std.log": b"short"})
    asked = []
    members(RangeReader(lambda a, b: asked.append((a, b)) or raw[a:b], len(raw)), subject="x")  # type: ignore[func-returns-value]
    assert asked == [(0, len(raw))]


def test_a_look_at_the_end_takes_what_will_be_needed_there() -> None:
    raw = bytes(200_000)
    asked: list[tuple[int, int]] = []
    reader = RangeReader(lambda a, b: asked.append((a, b)) or raw[a:b], len(raw))  # type: ignore[func-returns-value]
    for back in (22, 5000, 65536):
        reader.seek(-back, io.SEEK_END)
        reader.read(22)
    assert asked == [(200_000 - 65_536, 200_000)]


def test_a_short_range_is_an_error() -> None:
    with pytest.raises(CorruptError, match="sent 5 of 10 bytes"):
        RangeReader(lambda _a, _b: b"12345", 10).read()


@given(st.binary(max_size=300), st.lists(st.tuples(st.integers(0, 320), st.integers(-1, 320)), max_size=8))
@settings(max_examples=60)
def test_a_range_reader_reads_like_a_file(content: bytes, moves: list[tuple[int, int]]) -> None:
    reader, plain = RangeReader(lambda a, b: content[a:b], len(content)), io.BytesIO(content)
    for at, size in moves:
        assert reader.seek(at) == plain.seek(at)
        assert reader.read(size) == plain.read(size)


_WHOLE = zipped({H100: GOLDEN * 3, "logs/a": b"aaaa"})


def _flipped(at: int, by: int) -> bytes:
    raw = bytearray(_WHOLE)
    raw[at % len(raw)] ^= by
    return bytes(raw)


@given(st.binary(max_size=200) | st.builds(_flipped, st.integers(0, 10_000), st.integers(1, 255)))
@settings(max_examples=300)
def test_no_bytes_make_it_raise(raw: bytes) -> None:
    found, problems = members(io.BytesIO(raw), subject="x")
    assert found or problems or zipfile.is_zipfile(io.BytesIO(raw))


@pytest.mark.parametrize("cut", range(1, len(_WHOLE), 7))
def test_a_cut_zip_is_corrupt(cut: int) -> None:
    assert [kind for kind, _ in problems_of(_WHOLE[:cut])] == ["corrupt"]


def test_html_instead_of_a_zip_is_said() -> None:
    [(kind, message)] = problems_of(b"<!DOCTYPE html><html><body>Sign in</body></html>" * 9)
    assert kind == "corrupt"
    assert "an HTML page was sent instead" in message


def test_a_wrong_crc_is_corrupt_and_names_the_member() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(H100, GOLDEN)
    [(kind, message)] = problems_of(patched(buffer.getvalue(), b"10.5", b"10.6"))
    assert kind == "corrupt"
    assert message == f"{H100}: cannot be unpacked: Bad CRC-32 for file {H100!r}"


@pytest.mark.parametrize("name", ["../../golden_values_x.json", "/abs/golden_values_x.json", "a/../b.json", "C:\\x.json"])
def test_a_name_that_leads_out_is_refused(name: str) -> None:
    assert problems_of(zipped({name: GOLDEN})) == [("refused", f"{name}: its name leads out of the artifact")]


def test_a_hostile_member_does_not_stop_the_good_ones() -> None:
    found, problems = members(io.BytesIO(zipped({"../evil": b"x", H100: GOLDEN})), subject="x")
    assert [m.name for m in found] == [H100]
    assert [p.message for p in problems] == ["../evil: its name leads out of the artifact"]


def test_a_link_is_refused() -> None:
    assert problems_of(with_link(H100, "/etc/passwd")) == [("refused", f"{H100}: is a link")]


def test_an_encrypted_member_is_refused() -> None:
    assert problems_of(with_flag(zipped({H100: GOLDEN}), flag=1)) == [("refused", f"{H100}: is encrypted")]


def test_a_packing_method_without_bounds_is_refused() -> None:
    [(kind, message)] = problems_of(with_flag(zipped({H100: GOLDEN}), method=12))
    assert (kind, message) == ("refused", f"{H100}: is packed by method 12, only stored and deflated are read")


def test_a_member_that_is_there_twice_is_refused() -> None:
    raw = zipped([(H100, GOLDEN), (H100, b"{}")])
    assert problems_of(raw) == [("refused", f"{H100}: the zip has this member 2 times")]


def test_a_zip_in_the_zip_is_refused() -> None:
    [(kind, message)] = problems_of(zipped({"inner.zip": zipped({H100: GOLDEN})}))
    assert (kind, message) == ("refused", "inner.zip: a zip inside the zip is not opened")


def test_a_bomb_is_refused_by_its_ratio() -> None:
    [(kind, message)] = problems_of(zipped({H100: b" " * 2**21}))
    assert kind == "refused"
    assert message.startswith(f"{H100}: expands ")
    assert message.endswith("times, more than 200")


def test_a_size_that_lies_does_not_expand() -> None:
    raw = bytearray(zipped({H100: b" " * 2**21}))
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = raw.index(mark) + offset
        raw[at : at + 4] = struct.pack("<L", 100)
    [(kind, message)] = problems_of(bytes(raw))
    assert kind == "corrupt"
    assert "Bad CRC-32" in message


def test_a_size_that_lies_never_fills_the_memory() -> None:
    raw = bytearray(zipped({H100: b" " * 2**26}))
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = raw.index(mark) + offset
        raw[at : at + 4] = struct.pack("<L", 100)
    stream = io.BytesIO(bytes(raw))
    tracemalloc.start()
    members(stream, subject="x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**23


def test_a_member_larger_than_allowed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact, "MAX_MEMBER", 50)
    assert problems_of(zipped({H100: GOLDEN})) == [("refused", f"{H100}: expands to 88 bytes, more than allowed (50)")]


def test_members_share_one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact, "MAX_TOTAL", 100)
    found, problems = members(io.BytesIO(zipped({H100: GOLDEN, GB200: GOLDEN})), subject="x")
    assert [m.name for m in found] == [H100]
    assert [p.message for p in problems] == [f"{GB200}: expands to 88 bytes, more than allowed (12)"]


def test_too_many_entries_are_refused_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact, "MAX_ENTRIES", 3)
    [(kind, message)] = problems_of(zipped({f"logs/{i}": b"" for i in range(4)}))
    assert (kind, message) == ("refused", "the zip has 4 entries, more than 3, and is not opened")


def test_control_characters_of_a_name_do_not_reach_the_terminal() -> None:
    [(_, message)] = problems_of(zipped({"\x1b[2Jgolden_values_x.json": GOLDEN}))
    assert message == "?[2Jgolden_values_x.json: its name leads out of the artifact"


def test_the_newest_restart_is_taken_by_number() -> None:
    raw = zipped({RESTART.format(0, 9): b"9", RESTART.format(0, 10): b"10", RESTART.format(0, 2): b"2"})
    found, problems = members(io.BytesIO(raw), subject="x")
    assert [(m.content, m.replicate) for m in found] == [(b"10", "iteration=0/restart=10")]
    assert problems == ()


def test_the_newest_iteration_beats_a_higher_restart() -> None:
    raw = zipped({RESTART.format(9, 5): b"old", RESTART.format(10, 0): b"new"})
    assert [m.content for m in members(io.BytesIO(raw), subject="x")[0]] == [b"new"]


def test_files_of_two_restarts_are_never_mixed() -> None:
    second = RESTART.format(0, 0).replace(".json", "_2nd.json")
    raw = zipped({RESTART.format(0, 0): b"old", second: b"old", RESTART.format(0, 1): b"new"})
    assert [m.content for m in members(io.BytesIO(raw), subject="x")[0]] == [b"new"]


def test_a_newest_restart_without_goldens_leaves_the_one_before() -> None:
    raw = zipped({RESTART.format(0, 0): b"good", "results/iteration=0/restart=1/assets/basic/tiny/logs/std.log": b"crash"})
    assert [m.content for m in members(io.BytesIO(raw), subject="x")[0]] == [b"good"]


def _at(hour: int) -> datetime:
    return datetime(2026, 5, 1, hour, tzinfo=UTC)


def test_a_restart_written_before_the_job_started_is_stale() -> None:
    raw = zipped_at({RESTART.format(0, 0): _at(12), RESTART.format(0, 1): _at(9)})
    found, problems = members(io.BytesIO(raw), subject="x", since=_at(11))
    assert [m.replicate for m in found] == ["iteration=0/restart=0"]
    assert problems == ()


def test_a_restart_written_before_a_lower_one_is_stale_even_when_the_job_is_unknown() -> None:
    raw = zipped_at({RESTART.format(0, 0): _at(12), RESTART.format(0, 1): _at(9)})
    assert [m.replicate for m in members(io.BytesIO(raw), subject="x")[0]] == ["iteration=0/restart=0"]


def test_only_stale_restarts_are_missing_and_named() -> None:
    raw = zipped_at({RESTART.format(0, 1): _at(9)})
    found, problems = members(io.BytesIO(raw), subject="x", since=_at(11))
    assert found == ()
    text = f"only restarts of an earlier attempt hold golden files: {RESTART.format(0, 1)}"
    assert problems == (SourceProblem("x", "missing", text),)


def test_the_utc_time_stamp_of_a_member_beats_its_local_time() -> None:
    info = zipfile.ZipInfo(RESTART.format(0, 1), (2026, 5, 1, 3, 0, 0))
    info.extra = struct.pack("<HHBl", 0x5455, 5, 1, int(_at(12).timestamp()))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(info, GOLDEN)
    assert len(members(io.BytesIO(buffer.getvalue()), subject="x", since=_at(11))[0]) == 1


def test_an_error_becomes_a_problem_of_its_kind() -> None:
    assert problem("a", ExpiredError("is gone", hint="run it again")) == SourceProblem(
        "a", "expired", "is gone", "run it again"
    )
    assert problem("a", SourceError("refused the connection", place="host")).kind == "network"
    assert problem("a", CorruptError("is cut", place="b.zip")).message == "b.zip: is cut"
