"""A run's jobs are sorted by what became of their values, and one cause reads as one line."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ScratchRepo, golden_json
from tests.sources import runs
from tests.verdicts.cli import Outcome, Run

STEPS = range(1, 51)
LOSS = {s: 10.0 - s / 100 for s in STEPS}
TEXT = "goldens/{case}/golden_values_dev_{platform}{variant}.json"


def curve(loss: Mapping[int, Any]) -> bytes:
    return golden_json(4, **{"lm loss": loss, "num-zeros": dict.fromkeys(loss, 100.0)})


GOLDEN = curve(LOSS)
DRIFT = curve({s: v * 1.0005 if s > 20 else v for s, v in LOSS.items()})
REGRESSION = curve({s: v * 1.2 for s, v in LOSS.items()})
TRUNCATED = curve({s: v for s, v in LOSS.items() if s <= 30})
NON_FINITE = curve({s: "nan" if s > 40 else v for s, v in LOSS.items()})


def zipped(content: bytes | None, platform: str = "dgx_h100") -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        archive.writestr("logs/0/stdout.log", b"log")
        if content is not None:
            archive.writestr(f"golden_values_dev_{platform}.json", content)
    return raw.getvalue()


class World:
    """A repository with goldens, and a recorded run to be made job by job."""

    def __init__(self, repo: ScratchRepo, folder: Path, run: Run) -> None:
        self.repo, self.folder, self._run = repo, folder, run
        self.jobs: list[Any] = []
        self.artifacts: list[Any] = []
        self.zips: dict[int, bytes] = {}

    def golden(self, case: str, platform: str = "dgx_h100", variant: str = "", content: bytes = GOLDEN) -> None:
        self.repo.write({TEXT.format(case=case, platform=platform, variant=variant): content})

    def job(
        self,
        case: str,
        content: bytes | None = None,
        *,
        platform: str = "dgx_h100",
        conclusion: str = "failure",
        artifact: bool = True,
        **more: Any,
    ) -> None:
        """A job with an artifact that holds a golden document, holds none, has expired, or does not exist."""
        number = len(self.jobs) + 1
        start, end = f"10:{number:02d}:00", f"10:{number:02d}:50"
        self.jobs.append(runs.job(number, f"{case} - latest", start, end, conclusion=conclusion))
        if artifact:
            name = case.partition("/")[2]
            self.artifacts.append(runs.artifact(100 + number, name, f"10:{number:02d}:40", **more))
            if not more.get("expired"):
                self.zips[100 + number] = zipped(content, platform)

    def triage(self, *options: str) -> Outcome:
        runs.record(self.folder, runs.run(conclusion="failure"), self.jobs, self.artifacts, self.zips)
        return self._run(self.repo.top, "triage", "--from-job", str(self.folder), *options)

    def verdicts(self) -> dict[str, str]:
        rows = self.triage("--format", "json").json["jobs"]
        return {r["case"] or r["job"]: r["verdict"] for r in rows}


@pytest.fixture
def world(make_repo: Callable[..., ScratchRepo], run: Run, tmp_path: Path) -> World:
    made = World(make_repo("repo", {"README": "goldens"}), tmp_path / "run", run)
    (made.repo.top / "goldens").mkdir()
    return made


@pytest.mark.parametrize(
    ("content", "conclusion", "verdict"),
    [
        (GOLDEN, "success", "passed"),
        (DRIFT, "failure", "drift-only"),
        (DRIFT, "success", "passed"),
        (REGRESSION, "failure", "regression"),
        (REGRESSION, "success", "regression"),
        (TRUNCATED, "failure", "truncated"),
        (TRUNCATED, "cancelled", "truncated"),
        (NON_FINITE, "failure", "non-finite"),
        (GOLDEN, "failure", "infrastructure"),
        (GOLDEN, "cancelled", "cancelled"),
        (b"{", "failure", "regression"),
        (None, "failure", "crashed"),
        (None, "success", "crashed"),
        (None, "cancelled", "cancelled"),
        (None, "timed_out", "cancelled"),
        (None, "skipped", "unrelated"),
    ],
)
def test_values_and_conclusion_decide_the_verdict(world: World, content: bytes | None, conclusion: str, verdict: str) -> None:
    world.golden("moe/tiny")
    world.job("moe/tiny", content, conclusion=conclusion)
    assert world.verdicts() == {"moe/tiny": verdict}


def test_a_job_without_an_artifact_crashed_and_an_expired_one_is_said(world: World) -> None:
    for case in ("moe/none", "moe/old"):
        world.golden(case)
    world.job("moe/none", artifact=False)
    world.job("moe/old", expired=True)
    got = world.triage("--format", "json")
    assert got.code == 3
    assert {r["case"]: (r["verdict"], r["detail"]) for r in got.json["jobs"]} == {
        "moe/none": ("crashed", "the job ended as failure with no artifact"),
        "moe/old": ("expired", "the artifact has expired"),
    }


def test_a_golden_that_cannot_be_read_is_a_verdict_of_its_own_and_stops_no_other(world: World) -> None:
    for case in ("moe/loop", "moe/sound"):
        world.golden(case)
        world.job(case, GOLDEN, conclusion="success")
    loop = world.repo.top / TEXT.format(case="moe/loop", platform="dgx_h100", variant="")
    loop.unlink()
    loop.symlink_to(loop.name)
    got = world.triage("--format", "json")
    assert got.code == 1
    assert {r["case"]: (r["verdict"], r["detail"]) for r in got.json["jobs"]} == {
        "moe/loop": ("regression", "cannot be compared: the golden cannot be read: Too many levels of symbolic links"),
        "moe/sound": ("passed", ""),
    }


def test_an_artifact_that_cannot_be_trusted_is_infrastructure(world: World) -> None:
    world.golden("moe/tiny")
    world.job("moe/tiny", GOLDEN)
    world.artifacts[0]["digest"] = "sha256:" + "0" * 64
    got = world.triage("--format", "json")
    assert (got.code, got.json["jobs"][0]["verdict"]) == (3, "infrastructure")


def test_unit_tests_gates_and_cases_without_goldens_are_unrelated(world: World) -> None:
    world.golden("moe/tiny")
    world.repo.write({"goldens/moe/tiny/model_config.yaml": "ENV_VARS:\n  SKIP_PYTEST: 1\n"})
    world.job("tests/unit_tests/a.py", artifact=False)
    world.job("moe/other", artifact=False)
    world.job("moe/tiny", artifact=False)
    world.jobs.append(runs.job(9, "Nemo_CICD_Test", "10:30", "10:31", conclusion="failure"))
    got = world.triage("--format", "json")
    assert (got.code, {r["verdict"] for r in got.json["jobs"]}) == (0, {"unrelated"})
    assert (got.json["counts"], got.json["headline"]) == ({}, "none failing, 0 passed")


def test_a_case_without_golden_is_named_with_the_command_that_adds_it(world: World) -> None:
    world.golden("moe/tiny", platform="dgx_gb200")
    world.job("moe/tiny", GOLDEN)
    got = world.triage("--format", "json").json
    assert got["jobs"][0]["verdict"] == "no-golden"
    assert got["commands"] == [f"goldenctl refresh --from-job {world.folder} --only missing"]


def test_both_legs_of_one_case_are_two_jobs(world: World) -> None:
    for platform, content in (("dgx_h100", DRIFT), ("dgx_gb200", GOLDEN)):
        world.golden("moe/tiny", platform)
        world.job("moe/tiny", content, platform=platform, conclusion="failure" if content is DRIFT else "success")
    counts = world.triage("--format", "json").json["counts"]
    assert counts == {"dgx_h100": {"drift-only": 1}, "dgx_gb200": {"passed": 1}}


@pytest.fixture
def sweep(world: World) -> World:
    """Drift of one cause on two platforms, one regression, one passed job."""
    for i in range(4):
        world.golden(f"moe/h{i}")
        world.job(f"moe/h{i}", DRIFT)
    for i in range(2):
        world.golden(f"gpt/b{i}", "dgx_gb200")
        world.job(f"gpt/b{i}", DRIFT, platform="dgx_gb200")
    world.golden("moe/fine")
    world.job("moe/fine", GOLDEN, conclusion="success")
    return world


def test_the_headline_counts_by_platform(sweep: World) -> None:
    assert sweep.triage("--format", "json").json["headline"] == "6 failing: 2 gb200, 4 h100, all drift-only; 1 passed"
    sweep.golden("moe/bad")
    sweep.job("moe/bad", REGRESSION)
    got = sweep.triage("--format", "json")
    assert (got.code, got.json["headline"]) == (1, "7 failing: 2 gb200, 5 h100, 6 drift-only, 1 regression; 1 passed")


def test_one_cause_reads_as_one_line(sweep: World) -> None:
    sweep.golden("moe/bad")
    sweep.job("moe/bad", REGRESSION)
    clusters = sweep.triage("--format", "json").json["clusters"]
    assert [(c["verdict"], c["moved"], c["jobs"], c["platforms"]) for c in clusters] == [
        ("drift-only", ["lm loss by 0.0001 to 0.001 up"], 6, ["dgx_gb200", "dgx_h100"]),
        ("regression", ["lm loss by 0.1 or more up"], 1, ["dgx_h100"]),
    ]


def test_drift_alone_is_refreshed_by_one_command_and_beside_a_regression_by_name(sweep: World) -> None:
    start = f"goldenctl refresh --from-job {sweep.folder}"
    assert sweep.triage("--format", "json").json["commands"] == [f"{start} --only drifted"]
    sweep.golden("moe/bad")
    sweep.job("moe/bad", REGRESSION)
    assert sweep.triage("--format", "json").json["commands"] == [
        f"{start} --platform dgx_gb200 --case gpt/b0 --case gpt/b1",
        f"{start} --platform dgx_h100 --case moe/h0 --case moe/h1 --case moe/h2 --case moe/h3",
    ]


def test_siblings_the_run_did_not_cover_are_named(sweep: World) -> None:
    sweep.golden("moe/h0", "dgx_gb200")
    sweep.golden("moe/h0", variant="_2nd")
    sweep.golden("moe/fine", "dgx_gb200")
    found = sweep.triage("--format", "json").json["not_covered"]
    assert [(u["path"], u["why"]) for u in found] == [
        ("goldens/moe/h0/golden_values_dev_dgx_gb200.json", "no job of this run"),
        (
            "goldens/moe/h0/golden_values_dev_dgx_h100_2nd.json",
            "its first phase was delivered, this one was not",
        ),
    ]


def test_cases_and_platforms_can_be_chosen(sweep: World) -> None:
    only = sweep.triage("--platform", "dgx_gb200", "--format", "json").json
    assert {r["case"] for r in only["jobs"]} == {"gpt/b0", "gpt/b1"}
    only = sweep.triage("--case", "moe/h*", "--format", "json").json
    assert {r["case"] for r in only["jobs"]} == {f"moe/h{i}" for i in range(4)}


@pytest.mark.parametrize("format", ["table", "markdown"])
def test_a_person_sees_clusters_what_is_missing_and_the_next_command(sweep: World, format: str) -> None:
    sweep.golden("moe/h0", "dgx_gb200")
    got = sweep.triage("--format", format)
    assert got.code == 1
    for said in ("6 failing: 2 gb200, 4 h100, all drift-only", "not covered by the run: goldens/moe/h0", "--only drifted"):
        assert said in got.out
    assert ("fine" in got.out, "fine" in sweep.triage("--format", format, "--all").out) == (False, True)


def test_a_folder_of_golden_files_is_sorted_without_jobs(world: World) -> None:
    world.golden("moe/tiny")
    place = world.folder / "moe" / "tiny"
    place.mkdir(parents=True)
    (place / "golden_values_dev_dgx_h100.json").write_bytes(DRIFT)
    rows = world._run(world.repo.top, "triage", "--from-job", str(world.folder), "--format", "json").json["jobs"]
    assert [(r["case"], r["verdict"]) for r in rows] == [("moe/tiny", "drift-only")]
