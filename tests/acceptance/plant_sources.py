"""Plant what the acceptance of the sources needs: ``plant_sources.py FOLDER``.

``repo/`` with three goldens of ``moe/a``, ``moe/b`` and ``gpt/c``; under ``github/`` one recorded run per
case of attribution and per kind of broken zip; ``gitlab.json`` with its zips; ``tree/`` for S3.
"""

from __future__ import annotations

import json
import random
import shutil
import struct
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.sources.runs import artifact, artifact_name, job, record, run
from tests.sources.zips import GB200, H100, with_flag, with_link, zipped, zipped_at

CASES = ("moe/a", "moe/b", "gpt/c")
RESTART = "results/iteration={}/restart={}/assets/basic/{}-dev-dgx-h100/golden_values_dev_dgx_h100.json"
LOGS = random.Random(0).randbytes(300_000)
"""More than is taken of a zip's end at once, so that ranges count."""


def golden(value: float | str) -> bytes:
    """A document of five steps, all of one value but the first."""
    values: dict[str, object] = {"1": 10.5} | {str(i): value for i in range(2, 6)}
    block = {"start_step": 1, "end_step": 5, "step_interval": 1, "values": values}
    return json.dumps({"lm loss": block}, indent=4).encode()


def packed(value: float = 9.5, name: str = H100) -> bytes:
    """An artifact as jobs upload it."""
    return zipped({name: golden(value), "logs/1/attempt_0/0/stdout.log": LOGS})


def jobs(**more: Any) -> list[dict[str, Any]]:
    """One job per case; what is said holds for the first."""
    return [job(i, f"{case} - latest", **(more if i == 1 else {})) for i, case in enumerate(CASES, 1)]


def artifacts() -> list[dict[str, Any]]:
    """One artifact per case."""
    return [artifact(10 + i, case.partition("/")[2], "10:29") for i, case in enumerate(CASES, 1)]


def plain(folder: Path, first: bytes | None = None) -> None:
    """A run that is in order, but for the artifact of ``moe/a`` where one is given."""
    record(folder, run(), jobs(), artifacts(), {11: first or packed(), 12: packed(), 13: packed()})


def attribution(top: Path) -> None:
    """Attempts, legs, retries, other artifacts, names of reusable workflows."""
    both = {11: packed(1.0), 12: packed(), 13: packed(), 14: packed(9.5)}
    again = job(4, "moe/a - latest", "11:00", "11:30", run_attempt=2)
    listed = [artifact(14, "a", "11:29"), *artifacts()]
    record(top / "rerun", run(run_attempt=2), [*jobs(conclusion="failure"), again], listed, both)
    listed = [artifact(14, "a", "10:29:30", name=artifact_name("a", 11) + "-retry"), *artifacts()]
    record(top / "retry", run(), jobs(), listed, both)
    legs = [*jobs(), job(4, "moe/a - latest", "10:31", "10:50", conclusion="failure")]
    zips = {**both, 11: packed(), 14: packed(8.5, GB200)}
    record(top / "legs", run(), legs, [artifact(14, "a", "10:49"), *artifacts()], zips)
    others = [artifact(20, "tests-unit_tests-x.py", "10:29"), artifact(21, "", "10:29", name="coverage-unit-test-1")]
    zips = {**both, 11: packed(), 20: packed(1.0), 21: packed(1.0)}
    record(top / "others", run(), [*jobs(), job(9, "tests/unit_tests/x.py - latest")], [*artifacts(), *others], zips)
    nested = [{**j, "name": f"CICD / legs / {j['name']}"} for j in jobs()]
    record(top / "reusable", run(), nested, artifacts(), {**both, 11: packed()})
    record(top / "running", run(status="in_progress", conclusion=None), jobs(status="in_progress", conclusion=None,
           completed_at=None), artifacts()[1:], {12: packed(), 13: packed()})  # fmt: skip
    record(top / "cancelled", run(), jobs(conclusion="cancelled"), artifacts(), {**both, 11: packed()})


def broken(top: Path) -> None:
    """Artifacts of ``moe/a`` that cannot be had or trusted."""
    raw = packed()
    plain(top / "good")
    plain(top / "crc", zipped({H100: golden(9.5)}))
    crc = bytearray((top / "crc/11.zip").read_bytes())
    for mark, offset in ((b"PK\x03\x04", 14), (b"PK\x01\x02", 16)):
        at = crc.index(mark) + offset
        crc[at : at + 4] = struct.pack("<L", 1)
    plain(top / "crc", bytes(crc))
    plain(top / "bomb", zipped({H100: b" " * 2**22}))
    plain(top / "link", with_link(H100, "/etc/passwd"))
    plain(top / "encrypted", with_flag(zipped({H100: golden(9.5)}), flag=1))
    plain(top / "outside", zipped({f"../../{H100}": golden(1.0), f"/abs/{H100}": golden(1.0)}))
    plain(top / "twice", zipped([(H100, golden(9.5)), (H100, golden(1.0))]))
    plain(top / "nested", zipped({"inner.zip": raw}))
    plain(top / "nozip", b"this is no zip" * 99)
    plain(top / "expired")
    listed = json.loads((top / "expired/artifacts.json").read_text())
    (top / "expired/artifacts.json").write_text(json.dumps([{**a, "expired": a["id"] == 11} for a in listed]))
    (top / "expired/11.zip").unlink()
    plain(top / "digest")
    text = (top / "digest/artifacts.json").read_text()
    digest = json.loads(text)[0]["digest"]
    (top / "digest/artifacts.json").write_text(text.replace(digest, "sha256:" + "0" * 64, 1))


def when(clock: str) -> datetime:
    """A time of the run's day."""
    return datetime.fromisoformat(f"2026-05-01T{clock}:00Z").astimezone(UTC)


def gitlab(folder: Path) -> None:
    """A parent with two children, one of them in a project without access, and traps in their artifacts."""

    def entry(number: int, stage: str, name: str, start: str = "10:00", **more: Any) -> dict[str, Any]:
        times = {"started_at": f"2026-05-01T{start}:00Z", "finished_at": f"2026-05-01T{start[:3]}59:00Z"}
        return {"id": number, "stage": stage, "name": name, "status": "success", **times, **more}

    def bridge(number: int, name: str, path: str, project: int, pipeline: int) -> dict[str, Any]:
        started = {"id": pipeline, "project_id": project, "web_url": f"{{url}}/{path}/-/pipelines/{pipeline}"}
        return {"id": number, "name": name, "stage": "functional", "status": "success", "downstream_pipeline": started}

    mine, other = "dl/megatron", "dl/nemo"
    bridges = [bridge(900, "functional:run_nemo", other, 77, 5), bridge(901, "functional:run_dev_dgx_h100", mine, 42, 2)]
    retried = [entry(101, "moe", "a", status="failed", retried=True), entry(102, "moe", "a", "12:00")]
    rest = [entry(103, "moe", "b"), entry(104, "gpt", "c", allow_failure=True, status="failed")]
    projects = [
        {"number": 42, "path": mine, "pipelines": {1: {"sha": "0" * 40, "ref": "main"}, 2: {}}, "bridges": {1: bridges},
         "jobs": {2: [*retried, *rest]}},
        {"number": 77, "path": other, "closed": True, "pipelines": {5: {}}},
    ]  # fmt: skip
    stale = {RESTART.format(0, 0, "a"): when("12:30"), RESTART.format(0, 1, "a"): when("10:30")}
    name = RESTART.format(0, 0, "c").replace("golden_values", "generations")
    zips = {
        101: zipped_at({RESTART.format(0, 1, "a"): when("10:30")}, golden(1.0)),
        102: zipped_at(stale, golden(9.5)),
        103: zipped({RESTART.format(0, n, "b"): golden(v) for n, v in ((9, 1.0), (10, 9.5))}, at=when("10:30")),
        104: zipped({name: golden(9.5), name.replace("generations_dev_dgx_h100", "gpu"): b"{}"}, at=when("10:30")),
    }
    folder.mkdir()
    for number, raw in zips.items():
        (folder / f"{number}.zip").write_bytes(raw)
    spec = {"projects": projects, "zips": {n: f"{n}.zip" for n in zips}}
    (folder / "spec.json").write_text(json.dumps(spec))


def main() -> None:
    """Plant everything below the folder."""
    top = Path(sys.argv[1])
    for case in CASES:
        place = top / f"repo/goldens/{case}/{H100}"
        place.parent.mkdir(parents=True)
        place.write_bytes(golden("nan"))
    attribution(top / "github")
    broken(top / "github")
    gitlab(top / "gitlab")
    tree = top / "tree"
    for case in CASES[:2]:
        (tree / case).mkdir(parents=True)
        (tree / case / H100).write_bytes(golden(9.5))
    shutil.copy(top / "github/good/13.zip", tree / f"{artifact_name('c', 13)}.zip")


if __name__ == "__main__":
    main()
