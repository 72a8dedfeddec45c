"""Kill writers with -9 by their ids, half of them while they hold the store's lock: ``kill_writers.py URL KILLS PID…``.

Prints the ids of the killed. Between two kills lie one to five versions of the store; moments are drawn by chance, anew in
every run.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import psycopg

HOLDER = """
    SELECT client_port FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND granted LIMIT 1
"""

VERSIONS = "SELECT count(*) FROM ducklake_snapshot"


def ports(pid: int) -> set[int]:
    """Local ports of the connections a process has open."""
    try:
        links = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
        table = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    except OSError:
        return set()
    return {int(row[1].rpartition(":")[2], 16) for row in table if f"socket:[{row[9]}]" in links}


def main() -> None:
    """Kill until enough are dead or all have ended."""
    url, kills, pids = sys.argv[1], int(sys.argv[2]), set(map(int, sys.argv[3:]))
    killed: list[int] = []
    with psycopg.connect(url, autocommit=True) as connection:
        due = _versions(connection)
        while len(killed) < kills and pids:
            time.sleep(0.01)
            row = connection.execute(HOLDER).fetchone()
            holding = [pid for pid in pids if row and row[0] in ports(pid)]
            pids = {pid for pid in pids if _runs(pid)}
            if not holding or _versions(connection) < due:
                continue
            victim = holding[0] if len(killed) % 2 == 0 else random.choice(sorted(pids))
            time.sleep(random.uniform(0, 0.4))
            if _runs(victim):
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)
                due = _versions(connection) + random.randint(1, 5)
            pids.discard(victim)
    print(*killed)  # noqa: T201 - this is its answer


def _versions(connection: psycopg.Connection) -> int:
    row = connection.execute(VERSIONS).fetchone()
    return int(row[0]) if row else 0


def _runs(pid: int) -> bool:
    """Whether a process is neither gone nor a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


if __name__ == "__main__":
    main()
