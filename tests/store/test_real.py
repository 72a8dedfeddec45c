"""The store with what it depends on: other processes, object storage, extensions that do not fit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import boto3
import duckdb
import pytest
from moto.server import ThreadedMotoServer
from nbclient import NotebookClient

import goldenctl
from goldenctl.catalog import extensions, places, query, record_run, store, transfer, upkeep
from goldenctl.catalog.homes import home_of
from goldenctl.catalog.places import Lake
from goldenctl.errors import CatalogError
from tests.catalog.test_record import LOSS, RUN, candidate
from tests.store.test_store import long_loss, observe
from tests.test_notebooks import CHARTS, NOTEBOOKS, TOP, catalogued, read

__all__ = ["catalogued"]

SECRETS = ("s3-secret-8c41", "pg-secret-77aa")
WRITER = """
    import sys
    from dataclasses import replace
    from goldenctl.catalog import places, record_run
    from tests.catalog.test_record import RUN, candidate
    from tests.store.test_store import long_loss
    metadata, data, *runs = sys.argv[1:]
    for run in runs:
        of = replace(RUN, id=run)
        one = replace(candidate(long_loss(int(run))), run=of)
        print(run, record_run(places.lake(metadata, data), of, [one], 120), flush=True)
"""


def writer(lake: Lake, *runs: int) -> subprocess.Popen[str]:
    """A process that records runs and says each when it is written."""
    top = Path(__file__).resolve().parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), lake.metadata, lake.data, *map(str, runs)],
        env=os.environ | {"PYTHONPATH": f"{top / 'src'}{os.pathsep}{top}"}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def rows_by_run(lake: Lake) -> dict[str, int]:
    """Run → values of its observation."""
    asked = """
        SELECT r.run_id, count(*) FROM run AS r JOIN observation AS o ON o.run = r.id
        JOIN series AS s USING (document) JOIN "value" AS v USING (content) GROUP BY r.run_id
    """
    with store.reading(lake) as connection:
        return dict(connection.execute(asked).fetchall())


@pytest.mark.postgres
def test_writers_at_once_record_every_run_once_and_a_killed_one_leaves_whole_runs_or_none(team: Lake) -> None:
    observe(team, "0", long_loss(0))
    processes = [writer(team, 1, 2), writer(team, 3, 4), writer(team, 2, 1), writer(team, *range(10, 30))]
    killed = processes.pop()
    assert killed.stdout is not None
    said = killed.stdout.readline().split()
    assert said == ["10", "1"]
    os.kill(killed.pid, signal.SIGKILL)
    acknowledged = [said[0], *(line.split()[0] for line in killed.communicate()[0].splitlines())]
    new = [int(line.split()[1]) for process in processes for line in process.communicate()[0].splitlines()]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sorted(new) == [0, 0, 1, 1, 1, 1]
    found = rows_by_run(team)
    assert set(found.values()) == {1000}
    assert {"0", "1", "2", "3", "4", *acknowledged} <= found.keys()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """``s3://`` place on a server on loopback."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    port = server.get_host_and_port()[1]
    for name, value in {
        "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": "team", "AWS_SECRET_ACCESS_KEY": SECRETS[0],
        "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}").create_bucket(Bucket="lake")
    yield "s3://lake/team"
    server.stop()


def test_data_in_object_storage_is_written_read_compacted_and_cleaned_without_a_secret(bucket: str, tmp_path: Path) -> None:
    lake = places.lake(str(tmp_path / "meta.ducklake"), bucket)
    for run in range(3):
        observe(lake, str(run), long_loss(run))
    assert rows_by_run(lake) == {"0": 1000, "1": 1000, "2": 1000}
    upkeep.compact(lake)
    assert {t.table: t.files for t in upkeep.status(lake).tables}["value"] == 1
    client = boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL_S3"])
    client.put_object(Bucket="lake", Key="team/main/value/left-behind.parquet", Body=b"PAR1")
    soon = time.time() + 5
    done = upkeep.clean(lake, places.moment(f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(soon))}"))
    assert done.orphans == ("s3://lake/team/main/value/left-behind.parquet",)
    assert rows_by_run(lake) == {"0": 1000, "1": 1000, "2": 1000}
    assert SECRETS[0].encode() not in Path(lake.metadata).read_bytes()
    kept = [item["Key"] for item in client.list_objects_v2(Bucket="lake")["Contents"]]
    assert kept
    assert not any(SECRETS[0].encode() in client.get_object(Bucket="lake", Key=key)["Body"].read() for key in kept)


def test_object_storage_that_is_down_is_an_error_with_its_place_and_no_secret(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = places.lake(str(tmp_path / "meta.ducklake"), bucket)
    observe(lake, "1", long_loss(1))
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    with pytest.raises(CatalogError, match=r"127\.0\.0\.1:9") as caught:
        rows_by_run(lake)
    assert "s3://lake/team" in str(caught.value)
    assert not any(secret in str(caught.value) for secret in SECRETS)
    assert caught.value.exit_code == 4


def test_one_case_of_many_is_read_from_one_file(alone: Lake) -> None:
    cases = [f"case{i}" for i in range(6)]
    assert len({home_of("moe", case) for case in cases}) == 6
    for number, case in enumerate(cases):
        of = replace(RUN, id=case)
        key = replace(candidate(LOSS).key, test_case=case)
        path = f"goldens/moe/{case}/golden_values_dev_dgx_h100.json"
        record_run(alone, of, [replace(candidate(long_loss(number), path), run=of, key=key)])
    with store.reading(alone) as connection:
        part = home_of("moe", "case3")
        for condition, files in ((f"WHERE home = {part}", 1), ("WHERE step > 0", 6)):
            plan = connection.execute(f'EXPLAIN ANALYZE SELECT sum("value") FROM "value" {condition}').fetchall()[0][1]
            assert f"Total Files Read: {files}" in plan


def test_an_extension_that_does_not_fit_is_one_line_with_the_duckdb_that_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("1.9.0", "1.10.2"):
        (tmp_path / f"v{version}").mkdir()
    monkeypatch.setattr(extensions, "_folder", lambda name: tmp_path)

    class Offline:
        def execute(self, text: str) -> None:
            raise duckdb.IOException("Failed to download")

    with pytest.raises(CatalogError) as caught:
        extensions.load(Offline(), ("ducklake",))  # type: ignore[arg-type]
    fact = "the wheel duckdb-extension-ducklake is for duckdb 1.10.2, 1.9.0, and this is duckdb"
    assert fact in caught.value.fact
    assert "\n" not in caught.value.fact
    assert caught.value.hint == "pip install 'goldenctl[store]' 'duckdb==1.10.2'"
    assert caught.value.exit_code == 4


def test_python_takes_the_store_that_is_always_meant_and_a_url_for_a_file(
    alone: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    observe(alone, "1")
    settings = f"[store]\nmetadata = '{alone.metadata}'\ndata = '{alone.data}'\n"
    (tmp_path / "goldenctl.toml").write_text(f"{settings}always = true\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    assert goldenctl.open_catalog().runs().height == 1
    with pytest.raises(CatalogError, match="no catalog yet"):
        goldenctl.open_catalog(store=False)
    with pytest.raises(CatalogError, match=r"127\.0\.0\.1:9"):
        goldenctl.open_catalog("postgres://team@127.0.0.1:9/team")
    assert query.status(alone).rows["run"] == 1


def test_a_notebook_runs_against_the_store_unchanged(
    catalogued: Path, alone: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transfer.push(catalogued / ".goldenctl" / "catalog.duckdb", alone)
    settings = f"root = 'goldens'\n[store]\nmetadata = '{alone.metadata}'\ndata = '{alone.data}'\nalways = true\n"
    (tmp_path / "goldenctl.toml").write_text(settings, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(TOP / "src"))
    document = read(next(path for path in NOTEBOOKS if path.stem == "run_noise"))
    NotebookClient(document, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [o["data"]["text/html"] for c in document.cells for o in c.get("outputs", ()) if "text/html" in o.get("data", {})]
    assert sum("vega-lite" in page for page in shown) == CHARTS["run_noise"]
