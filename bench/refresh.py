"""How long collecting a run takes, and how much of its artifacts is transferred.

A GitHub double on loopback serves 500 jobs and waits 50 ms before each answer. The reference is the
one-at-a-time loop that the former download script is: list all pages, then fetch each artifact whole.
It is run on the first 40 artifacts and its time for them is multiplied to 500.
"""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from goldenctl.config import CiSettings, Settings
from goldenctl.sources import FetchOptions, open_source

JOBS = 500
LATENCY_MS = 50
SAMPLE = 40
"""Artifacts the reference really fetches."""
SMALL_LOGS = 200_000
"""Bytes of logs for the time: the round trips count, and ours are not spared by a tiny zip."""
LARGE_LOGS = 20_000_000
"""Bytes of logs for the share of bytes."""
RUN = 34695381473
TIME_LIMIT = 0.1
BYTES_LIMIT = 0.03
WHOLE = 100
"""Artifacts taken whole for the memory; more of them need no more, only as many as run side by side count."""
MEMORY_LIMIT = 300
"""MB of resident memory at the peak."""


@contextmanager
def served(logs_bytes: int, latency_ms: int, jobs: int = JOBS, *more: str) -> Iterator[str]:
    """The address of a double with one run, in a process of its own; ``more`` are options of the double."""
    with tempfile.TemporaryDirectory() as folder:
        spec, port = Path(folder) / "spec.json", Path(folder) / "port"
        spec.write_text(json.dumps({"jobs": jobs, "logs_bytes": logs_bytes}))
        options = ["--run", str(spec), "--port-file", str(port), "--latency", str(latency_ms), *more]
        top = Path(__file__).resolve().parents[1]
        process = subprocess.Popen([sys.executable, "-m", "tests.doubles.github", *options], cwd=top)
        try:
            while not port.exists():
                if process.poll() is not None:
                    raise RuntimeError("the double did not start")
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port.read_text().strip()}"
        finally:
            process.kill()
            process.wait()


def ours(url: str, jobs: int = JOBS) -> tuple[float, int, int]:
    """Seconds to list and fetch the run, bytes transferred, bytes of all artifacts."""
    os.environ["GITHUB_API_URL"] = url
    start = time.perf_counter()
    source = open_source(f"github:{RUN}", Settings(Path(), root="goldens", ci=CiSettings(repository="o/r")), FetchOptions())
    run = source.describe()
    fetched = list(source.fetch(run.artifacts))
    seconds = time.perf_counter() - start
    if sum(len(f.members) for f in fetched) != jobs or any(f.problems for f in fetched):
        raise RuntimeError(f"not every golden file was fetched: {[f.problems for f in fetched if f.problems][:3]}")
    return seconds, sum(f.bytes_transferred for f in fetched), sum(a.size for a in run.artifacts)


def one_at_a_time(url: str) -> float:
    """Seconds the loop takes for all artifacts, from a sample of them."""
    base = f"{url}/repos/o/r/actions"
    start = time.perf_counter()
    for key in ("jobs", "artifacts"):
        for page in range(1, JOBS // 100 + 1):
            found = requests.get(f"{base}/runs/{RUN}/{key}?per_page=100&page={page}", timeout=60).json()[key]
    listed = time.perf_counter() - start
    start = time.perf_counter()
    for artifact in found[:SAMPLE]:
        raw = requests.get(f"{base}/artifacts/{artifact['id']}/zip", timeout=60).content
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            archive.read("golden_values_dev_dgx_h100.json")
    return listed + (time.perf_counter() - start) * JOBS / SAMPLE


def rows() -> list[tuple[str, float, float]]:
    """Name, ratio reached, ratio allowed."""
    with served(SMALL_LOGS, LATENCY_MS) as url:
        seconds = ours(url)[0]
        reference = one_at_a_time(url)
    with served(LARGE_LOGS, 0) as url:
        _, transferred, size = ours(url)
    with served(LARGE_LOGS, 0, WHOLE, "--no-ranges") as url:
        ours(url, WHOLE)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    time_row = f"refresh of {JOBS} jobs, {LATENCY_MS} ms a request, against a loop extrapolated from {SAMPLE}"
    bytes_row = f"bytes fetched of {JOBS} artifacts with {LARGE_LOGS // 10**6} MB of logs each"
    memory_row = f"memory after all this and {WHOLE} such artifacts taken whole, of {MEMORY_LIMIT} MB"
    return [
        (time_row, seconds / reference, TIME_LIMIT),
        (bytes_row, transferred / size, BYTES_LIMIT),
        (memory_row, memory / MEMORY_LIMIT, 1.0),
    ]


if __name__ == "__main__":
    for name, ratio, limit in rows():
        print(f"{name}: {ratio:.4f} (limit {limit})")
