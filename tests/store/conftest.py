"""Stores for tests: on PostgreSQL where there is one, and on a file everywhere."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from goldenctl.catalog import places
from goldenctl.catalog.places import Lake

STARTS = 30.0
"""Seconds a server may take to answer."""


def _binaries() -> Path | None:
    return next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)), None)


def _user() -> str:
    """Whom the server runs as when we are root, as whom it refuses to run."""
    with suppress(KeyError):
        return pwd.getpwnam("postgres").pw_name
    return "nobody"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a PostgreSQL server, without a database."""
    given = os.environ.get("GOLDENCTL_POSTGRES")
    if given:
        yield given.rstrip("/")
        return
    initdb = _binaries()
    if initdb is None:
        pytest.skip("no PostgreSQL: GOLDENCTL_POSTGRES is not set, and its binaries are not installed")
    root = os.geteuid() == 0
    if root and shutil.which("runuser") is None:
        pytest.skip("no PostgreSQL: it does not run as root, and there is no runuser")
    prefix = ["runuser", "-u", _user(), "--"] if root else []
    folder = Path(
        subprocess.run(
            ["mktemp", "-d", "/tmp/goldenctl-postgres-XXXXXX"], check=True, capture_output=True, text=True
        ).stdout.strip()
    )
    if root:
        shutil.chown(folder, _user())
    port = _free_port()
    quiet = subprocess.DEVNULL
    make = [str(initdb), "-D", str(folder / "data"), "-A", "trust", "-U", "golden", "--no-sync"]
    subprocess.run([*prefix, *make], check=True, stdout=quiet, cwd="/")
    serve = [str(initdb.with_name("postgres")), "-D", str(folder / "data"), "-p", str(port), "-c", "fsync=off"]
    serve += ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}"]
    process = subprocess.Popen([*prefix, *serve], stdout=quiet, stderr=quiet, cwd="/")
    try:
        url = f"postgres://golden@127.0.0.1:{port}"
        _until_it_answers(url)
        yield url
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _until_it_answers(url: str) -> None:
    import psycopg

    deadline = time.monotonic() + STARTS
    while True:
        try:
            psycopg.connect(f"{url}/postgres").close()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


@pytest.fixture
def database(server: str, tmp_path: Path) -> Iterator[str]:
    """URL of an empty database."""
    import psycopg

    name = f"lake_{os.getpid()}_{time.monotonic_ns()}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield f"{server}/{name}"
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def team(database: str, tmp_path: Path) -> Lake:
    """A store on PostgreSQL and a folder, not made yet."""
    return places.lake(database, str(tmp_path / "data"))


@pytest.fixture
def alone(tmp_path: Path) -> Lake:
    """A store on a file and a folder, not made yet."""
    return places.lake(str(tmp_path / "store.ducklake"), str(tmp_path / "data"))


@pytest.fixture(params=["alone", pytest.param("team", marks=pytest.mark.postgres)])
def lake(request: pytest.FixtureRequest) -> Lake:
    """A store of either kind, not made yet."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Lake)
    return found


def where(url: str) -> tuple[str, int]:
    """Host and port of a URL."""
    parts = urlsplit(url)
    return str(parts.hostname), int(parts.port or 5432)
