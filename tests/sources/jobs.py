"""Runs of GitHub with jobs and artifacts, put into the double."""

from __future__ import annotations

import os
from typing import Any

from tests.doubles.github import GithubDouble
from tests.sources.runs import RUN, artifact, job, run
from tests.sources.zips import GOLDEN, H100, zipped

REF = f"github:{RUN}"
NAME = "moe/tiny - latest"
LOGS = os.urandom(400_000)


def one(double: GithubDouble, raw: bytes | None = None, **more: Any) -> None:
    """A run of one job with one artifact, large enough that it is read by ranges."""
    raw = zipped({H100: GOLDEN, "logs/0": LOGS}) if raw is None else raw
    double.add(run(), [job(1, NAME)], [artifact(11, "tiny", "10:29", **more)], {11: raw})


def many(double: GithubDouble, count: int) -> None:
    """A run of some jobs ``moe/case_N`` with one artifact each."""
    jobs = [job(i, f"moe/case_{i} - latest") for i in range(1, count + 1)]
    artifacts = [artifact(1000 + i, f"case_{i}", "10:29") for i in range(1, count + 1)]
    double.add(run(), jobs, artifacts, {1000 + i: zipped({H100: b"%d" % i}) for i in range(1, count + 1)})
