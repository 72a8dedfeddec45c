"""Make the recorded CI runs under ``data/runs/``. Jobs, times and values are made, not measured.

``github-17000000001``
    What the REST API of GitHub would say of a run (``run.json``, ``jobs.json``, ``artifacts.json``)
    and its artifact zips. It holds the values that repair the NaN goldens, and traps: two attempts of
    one job with different values, both legs of a case under one job name, an upload and its
    ``-retry``, a cancelled job with a cut curve, a candidate with a warm-up NaN, an artifact of unit
    tests, a name that leads nowhere, and logs that outweigh the values.

``gitlab-58311022``
    Artifact zips of child jobs in GitLab's layout, with a restart 10 that is newer than 9 and a
    restart left over from an earlier attempt.

``python data/make_runs.py`` writes them, the same bytes each time.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import sys
import uuid
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from make_goldens import CASES, NAN, Case, Document, inference, text, training

RUN = 17000000001
COMMIT = "5f0c7d1e9a3b48c6d2e47f8190ab3c5d6e7f8091"
START = datetime(2026, 5, 2, 1, 0, tzinfo=UTC)
H100, GB200 = "dgx_h100", "dgx_gb200"
RUNNER = {H100: "nvidia-ci-aws-gpu-x8", GB200: "nvidia-ci-gcp-gb-gpu-x4"}
BY_NAME = {case.name: case for case in CASES}
ONE_LINE = "moe/gpt3_moe_mcore_te_tp2_pp2_ep4"
"""The run writes this case on one line, so that it equals the earlier sync without being identical."""
NEW_IMAGE = "gpt/gpt3_345m_release_sm"
"""The run has other values here than the earlier sync, as after an image bump."""
CANCELLED = "hybrid/hybrid_mcore_te_tp1_pp1_resume_torch_dist"


def zipped(members: Mapping[str, bytes], at: datetime | Mapping[str, datetime]) -> bytes:
    """A zip whose members bear the given time; the same bytes each time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            when = at if isinstance(at, datetime) else at[name]
            info = zipfile.ZipInfo(name, when.timetuple()[:6])
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)
    return buffer.getvalue()


def log(seed: str) -> bytes:
    """Some lines that look like a training log."""
    rng = random.Random(seed)
    lines = [f"iteration {i:6d} | elapsed {rng.random():.4f} | lm loss {rng.uniform(2, 11):.6E}" for i in range(1, 200)]
    return "\n".join(lines).encode()


def golden_name(platform: str, second: bool = False) -> str:
    """The file name CI gives a golden."""
    return f"golden_values_dev_{platform}{'_2nd' if second else ''}.json"


def values(case: Case, platform: str, *, second: bool = False) -> Document:
    """What the run observed."""
    if case.inference:
        return inference(case, platform)
    return training(case, platform, image=1 if case.name == NEW_IMAGE else 0, second=second)


def cut(document: Document, keep: int) -> Document:
    """The first values of a run that was stopped."""
    out = {}
    for metric, told in document.items():
        kept = dict(list(told["values"].items())[:keep])
        out[metric] = told | {"end_step": int(list(kept)[-1]), "values": kept}
    return out


def warm_up(document: Document) -> Document:
    """The same with an unmeasured first iteration time."""
    times = document["iteration-time"]
    first = next(iter(times["values"]))
    return document | {"iteration-time": times | {"values": times["values"] | {first: NAN}}}


class Recording:
    """Collects what the API says and the zips."""

    def __init__(self) -> None:
        self.jobs: list[dict[str, Any]] = []
        self.artifacts: list[dict[str, Any]] = []
        self.zips: dict[int, bytes] = {}
        self._clock = START

    def job(self, case: Case, platform: str, conclusion: str, attempt: int = 1) -> datetime:
        """Add a job of ten minutes and return the time of its upload."""
        self._clock += timedelta(minutes=1)
        started = self._clock + timedelta(hours=2 * (attempt - 1))
        completed = started + timedelta(minutes=10)
        number = 48000000100 + len(self.jobs)
        self.jobs.append(
            {
                "id": number,
                "run_id": RUN,
                "run_attempt": attempt,
                "name": f"{case.name} - latest",
                "status": "completed",
                "conclusion": conclusion,
                "started_at": f"{started:%Y-%m-%dT%H:%M:%SZ}",
                "completed_at": f"{completed:%Y-%m-%dT%H:%M:%SZ}",
                "head_sha": COMMIT,
                "labels": [RUNNER[platform]],
                "html_url": f"https://github.com/example/megatron/actions/runs/{RUN}/job/{number}",
            }
        )
        return completed - timedelta(seconds=20)

    def artifact(self, name: str, members: Mapping[str, bytes], at: datetime) -> None:
        """Add an artifact."""
        number = 3600000200 + len(self.artifacts)
        content = zipped(members, at)
        self.zips[number] = content
        self.artifacts.append(
            {
                "id": number,
                "name": name,
                "size_in_bytes": len(content),
                "digest": f"sha256:{hashlib.sha256(content).hexdigest()}",
                "expired": False,
                "created_at": f"{at:%Y-%m-%dT%H:%M:%SZ}",
                "archive_download_url": f"https://api.github.com/repos/example/megatron/actions/artifacts/{number}/zip",
                "workflow_run": {"id": RUN, "head_sha": COMMIT},
            }
        )

    def delivered(self, case: Case, platform: str, at: datetime, files: Mapping[str, bytes], retry: bool = False) -> None:
        """Add the artifact of a functional job, with logs beside the golden files."""
        test_case = case.name.partition("/")[2]
        ident = uuid.UUID(hashlib.md5(f"{case.name} {platform} {at}".encode(), usedforsecurity=False).hexdigest())
        name = f"logs-{test_case}-{RUN}-{ident}{'-retry' if retry else ''}"
        logs = {
            "logs/1/attempt_0/0/stdout.log": log(f"{case.name} {platform}"),
            "1/tensorboard/events.out.tfevents.0": b"\0" * 64,
        }
        self.artifact(name, {**files, **logs}, at)

    def save(self, folder: Path) -> None:
        """Write the recorded run."""
        folder.mkdir(parents=True, exist_ok=True)
        run = {
            "id": RUN,
            "name": "CICD Megatron-LM",
            "run_attempt": 2,
            "status": "completed",
            "conclusion": "failure",
            "head_sha": COMMIT,
            "head_branch": "pull-request/7001",
            "run_started_at": f"{START:%Y-%m-%dT%H:%M:%SZ}",
            "created_at": f"{START:%Y-%m-%dT%H:%M:%SZ}",
            "updated_at": "2026-05-02T06:00:00Z",
            "html_url": f"https://github.com/example/megatron/actions/runs/{RUN}",
            "repository": {"full_name": "example/megatron"},
        }
        for name, said in (
            ("run", run),
            ("jobs", {"total_count": len(self.jobs), "jobs": self.jobs}),
            ("artifacts", {"total_count": len(self.artifacts), "artifacts": self.artifacts}),
        ):
            (folder / f"{name}.json").write_text(json.dumps(said, indent=1) + "\n", "utf-8")
        for number, content in self.zips.items():
            (folder / f"{number}.zip").write_bytes(content)


def files_of(case: Case, platform: str) -> dict[str, bytes]:
    """Golden files one job delivers."""
    style = "bert/" if case.name == ONE_LINE else case.name
    out = {golden_name(platform): text(style, values(case, platform))}
    if case.resumes:
        out[golden_name(platform, second=True)] = text(style, values(case, platform, second=True))
    return out


def github(folder: Path) -> None:
    """Write the GitHub-like run."""
    recording = Recording()
    for case in CASES:
        for platform in (H100, GB200):
            if case.name == NEW_IMAGE and platform == H100:
                continue
            if case.name == CANCELLED and platform == H100:
                at = recording.job(case, platform, "cancelled")
                stopped = cut(training(case, platform, second=True), 12)
                recording.delivered(case, platform, at, {golden_name(platform, second=True): text(case.name, stopped)})
                continue
            at = recording.job(case, platform, "success" if platform == GB200 else "failure")
            files = files_of(case, platform)
            if case.name == "gpt/gpt3_mcore_tp1_pp2":
                files = {golden_name(platform): text(case.name, warm_up(values(case, platform)))}
            if case.name == "bert/bert_mcore_tp1_pp2":
                recording.delivered(case, platform, at - timedelta(seconds=5), {golden_name(platform): b'{"lm loss": '})
                recording.delivered(case, platform, at - timedelta(seconds=5), files, retry=True)
                continue
            recording.delivered(case, platform, at, files)
    case = BY_NAME[NEW_IMAGE]
    first = recording.job(case, H100, "failure")
    recording.delivered(case, H100, first, {golden_name(H100): text(case.name, cut(training(case, H100, image=1), 150))})
    again = recording.job(case, H100, "success", attempt=2)
    recording.delivered(case, H100, again, files_of(case, H100))
    buckets = {"logs/pytest.log": log("unit tests")}
    recording.artifact(f"logs-tests-unit_tests-models--.py-{RUN}-{uuid.UUID(int=7)}", buckets, again)
    recording.artifact(f"coverage-unit-test-{RUN}-{uuid.UUID(int=8)}", {"coverage.xml": b"<coverage/>"}, again)
    recording.save(folder)


def gitlab(folder: Path) -> None:
    """Write the GitLab-like run: one zip a child job."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, platform) in enumerate(
        [("gpt/gpt3_mcore_te_tp1_pp4_vp1", H100), ("t5/t5_220m_mcore_te_tp4_pp1", GB200)]
    ):
        case = BY_NAME[name]
        spec = f"{name.partition('/')[2]}_dev_{platform}".replace("_", "-").lower()
        restarts = {9: training(case, platform, image=3), 10: training(case, platform), 11: training(case, platform, image=5)}
        times = {9: START, 10: START + timedelta(hours=1), 11: START - timedelta(hours=5)}
        inside = {n: f"results/iteration=0/restart={n}/assets/basic/{spec}/{golden_name(platform)}" for n in restarts}
        members = {inside[n]: text(name, document) for n, document in restarts.items()}
        content = zipped(members, {inside[n]: times[n] for n in restarts})
        (folder / f"{172000 + number}-{name.partition('/')[2]}.zip").write_bytes(content)


if __name__ == "__main__":
    runs = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "runs"
    github(runs / f"github-{RUN}")
    gitlab(runs / "gitlab-58311022")
    print(f"two recorded runs made under {runs.name}/; jobs, times and values are made, not measured")
