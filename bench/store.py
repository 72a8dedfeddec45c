"""Growth of the shared store: 1,000, 10,000 and 100,000 jobs' observations, and the three commonest questions at each size.

``python bench/store.py [--metadata postgres://…/DB] [--data FOLDER_OR_S3] [--jobs N…]``; without ``--metadata`` the metadata
is a DuckDB file. A night is 100 cases on 10 platforms, one run of 1,000 jobs; a job delivers five metrics of 50 values, the
median of real goldens. What moves from night to night in a real run moves here, the two memory metrics stay. Documents
go through the command's own writing code, JSON and all; a compaction follows every tenth night.
"""

from __future__ import annotations

import argparse
import itertools
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import polars as pl

from goldenctl import open_catalog
from goldenctl.catalog import places, record_run, store, upkeep
from goldenctl.catalog.drift import drift
from goldenctl.catalog.places import Lake
from goldenctl.model import Candidate, Conclusion, GoldenKey, Job, Run
from goldenctl.sides import content_id

CASES, PLATFORMS, STEPS = 100, 10, 50
NIGHT = CASES * PLATFORMS
COMPACT_EVERY = 10
"""Nights."""
START = datetime(2026, 1, 1, 3, tzinfo=UTC)
PATH = "goldens/{0.model}/{0.test_case}/golden_values_dev_{0.platform}.json"
ONE = GoldenKey("moe", "case_042", "dev", "platform_3")
ROUNDS = 3
WAIT = 600.0
"""Seconds."""
NEWEST = """
    WITH newest AS (
        SELECT o.path, arg_max(o.document, o.observed_at) AS document
        FROM observation AS o JOIN golden AS g ON g.id = o.golden WHERE g.platform = '{platform}' GROUP BY o.path
    )
    SELECT n.path, v.step, v."value" FROM newest AS n JOIN series AS s USING (document) JOIN "value" AS v USING (content)
    WHERE s.metric = 'lm loss' ORDER BY ALL
"""


@dataclass(frozen=True)
class Answer:
    """One question at one size."""

    seconds: float
    """Of the fastest round, connecting included."""
    rows: int


@dataclass(frozen=True)
class Size:
    """What was measured at one size."""

    jobs: int
    loading: float
    """Seconds to record the jobs since the last size, and to compact."""
    files: int
    """After compaction."""
    size: int
    """Bytes of the Parquet files."""
    metadata: int
    """Bytes of the metadata."""
    answers: dict[str, Answer]


def keys() -> list[GoldenKey]:
    """The goldens of a night, in their order."""
    return [GoldenKey("moe", f"case_{c:03}", "dev", f"platform_{p}") for c in range(CASES) for p in range(PLATFORMS)]


def night(number: int) -> list[tuple[GoldenKey, bytes]]:
    """Every job's document of one night: a falling loss and times with noise of their own, memory that stays."""
    noise = pl.select(
        row=pl.int_range(NIGHT * STEPS, dtype=pl.UInt64),
    ).with_columns(
        unit=(pl.col("row").hash(number) % 1_000_003) / 1_000_003,
        step=pl.col("row") % STEPS,
        job=pl.col("row") // STEPS,
    )  # fmt: skip
    columns = noise.select(
        loss=(10.8 * (-(pl.col("step") / 40)).exp() + 3 + pl.col("unit") * 1e-3).round(5),
        zeros=(1_000_000 * pl.col("unit")).floor(),
        seconds=(0.4 + 0.05 * pl.col("unit") + 0.002 * (pl.col("job") % 97)).round(5),
        memory=(2_000_000_000 + pl.col("job") * 4096).cast(pl.Float64),
        peak=(3_000_000_000 + pl.col("job") * 8192).cast(pl.Float64),
    )
    names = ("lm loss", "num-zeros", "iteration-time", "mem-allocated-bytes", "mem-max-allocated-bytes")
    values = [columns[name].to_list() for name in columns.columns]
    steps = [str(step) for step in range(1, STEPS + 1)]
    grid = {"start_step": 1, "end_step": STEPS, "step_interval": 1}
    out = []
    for place, key in enumerate(keys()):
        part = slice(place * STEPS, (place + 1) * STEPS)
        blocks = (grid | {"values": dict(zip(steps, column[part], strict=True))} for column in values)
        out.append((key, orjson.dumps(dict(zip(names, blocks, strict=True)))))
    return out


def record(lake: Lake, number: int) -> None:
    """Record one night as ``goldenctl record --from-job`` does once it has the artifacts."""
    ended = START + timedelta(days=number)
    run = Run(f"github:{number}", "github", str(number), conclusion=Conclusion.SUCCESS, completed_at=ended)
    jobs, candidates = [], []
    for place, (key, raw) in enumerate(night(number)):
        named = (f"{number}{place:04}", f"{key.model}/{key.test_case}", key.model, key.test_case, key.environment, key.platform)
        job = Job(*named, conclusion=Conclusion.SUCCESS, completed_at=ended)
        jobs.append(job)
        path = PATH.format(key)
        candidates.append(Candidate(path, key, raw, content_id(raw), run, job, None, path))
    whole = Run(run.ref, run.provider, run.id, conclusion=run.conclusion, completed_at=ended, jobs=tuple(jobs))
    record_run(lake, whole, candidates, WAIT)


def history(lake: Lake) -> int:
    """One golden's loss in every night."""
    where = lake.metadata
    return open_catalog(store=where).observations(PATH.format(ONE), "lm loss").height


def drifting(lake: Lake) -> int:
    """Drift of one metric of one golden."""
    with store.reading(lake, WAIT) as connection:
        return sum(d.points for d in drift(connection, PATH.format(ONE), metric="lm loss")[1])


def newest(lake: Lake) -> int:
    """The newest loss of every golden of one platform."""
    return open_catalog(store=lake.metadata).sql(NEWEST.format(platform=ONE.platform)).height


QUESTIONS: dict[str, Callable[[Lake], int]] = {
    "one golden's history": history,
    "drift of one metric": drifting,
    "newest of one platform": newest,
}


def ask(question: Callable[[Lake], int], lake: Lake) -> Answer:
    """The fastest of a few rounds, each with a connection of its own."""
    times, rows = [], 0
    for _ in range(ROUNDS):
        start = time.perf_counter()
        rows = question(lake)
        times.append(time.perf_counter() - start)
    return Answer(min(times), rows)


def grow(lake: Lake, done: int, jobs: int) -> Size:
    """Record nights until the store holds ``jobs``, compact, ask."""
    start = time.perf_counter()
    for number in range(done // NIGHT, jobs // NIGHT):
        record(lake, number)
        if number % COMPACT_EVERY == COMPACT_EVERY - 1:
            upkeep.compact(lake, WAIT)
    upkeep.compact(lake, WAIT)
    loading = time.perf_counter() - start
    upkeep.clean(lake, datetime.now(UTC), wait=WAIT)
    found = upkeep.status(lake, 0, WAIT)
    answers = {name: ask(question, lake) for name, question in QUESTIONS.items()}
    return Size(jobs, loading, found.files, found.size, metadata_size(lake), answers)


def metadata_size(lake: Lake) -> int:
    """Bytes of the metadata: of the file, or of the server's database."""
    if not lake.server:
        return Path(lake.metadata).stat().st_size
    import psycopg

    with psycopg.connect(lake.metadata) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    return int(row[0]) if row else 0


def reads(lake: Lake) -> list[str]:
    """What EXPLAIN ANALYZE says of reading one golden's loss, with the case's part named and without."""
    from goldenctl.catalog.homes import home_of

    wanted = "SELECT DISTINCT content FROM series JOIN observation USING (document) WHERE metric = 'lm loss' AND path = "
    query = f"SELECT count(*) FROM \"value\" WHERE content IN ({wanted}'{PATH.format(ONE)}')"
    lines = []
    for said, more in (("its part", f" AND home = {home_of(ONE.model, ONE.test_case)}"), ("every part", "")):
        with store.reading(lake, WAIT) as connection:
            plan = "\n".join(row[1] for row in connection.execute(f"EXPLAIN ANALYZE {query}{more}").fetchall())
        read = re.search(r"Total Files Read: *(\d+)", plan.partition("Table: value")[2])
        lines.append(f"{said}: {read[1] if read else '?'} files of the table value read\n{plan}")
    return lines


def show(sizes: Sequence[Size]) -> None:
    """Print the table, each size against the one before."""
    print(f"{'':<28}" + "".join(f"{s.jobs:>12,}" for s in sizes) + "   growth")
    table: list[tuple[str, list[float]]] = [
        ("loading, s", [s.loading for s in sizes]),
        ("files", [s.files for s in sizes]),
        ("data, MB", [s.size / 1e6 for s in sizes]),
        ("metadata, MB", [s.metadata / 1e6 for s in sizes]),
    ]
    for name in QUESTIONS:
        table.append((f"{name}, s", [s.answers[name].seconds for s in sizes]))
        table.append(("  its rows", [s.answers[name].rows for s in sizes]))
    for label, numbers in table:
        growth = " ".join(f"x{b / a:.1f}" if a else "-" for a, b in itertools.pairwise(numbers))
        cells = "".join(f"{n:>12,.0f}" if float(n).is_integer() else f"{n:>12,.2f}" for n in numbers)
        print(f"{label:<28}{cells}   {growth}")


def main() -> None:
    """Load, measure, print."""
    parser = argparse.ArgumentParser(prog="python bench/store.py")
    parser.add_argument("--metadata", default="", help="postgres://…/DB of an empty database; a DuckDB file by default")
    parser.add_argument("--data", default="", help="folder or s3://…; a temporary folder by default")
    parser.add_argument("--jobs", type=int, nargs="+", default=[1_000, 10_000, 100_000], help=f"multiples of {NIGHT:,}")
    parser.add_argument("--explain", action="store_true", help="also print the plans of reading one golden's history")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        lake = places.lake(options.metadata or f"{scratch}/store.ducklake", options.data or f"{scratch}/data")
        sizes: list[Size] = []
        for jobs in options.jobs:
            sizes.append(grow(lake, sizes[-1].jobs if sizes else 0, jobs))
            print(f"{jobs:,} jobs loaded", flush=True)
        show(sizes)
        for text in reads(lake):
            print(text if options.explain else text.partition("\n")[0])


if __name__ == "__main__":
    main()
