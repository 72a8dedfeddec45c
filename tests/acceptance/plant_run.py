"""Plant a CI run as GitHub describes it, from the goldens a sync took: ``plant_run.py REPO SYNC FOLDER``.

Up to twenty goldens of the sync's upstream side that lint finds in order become artifacts of as many jobs.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import uuid
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from goldenctl import config, lint
from goldenctl.git import Repo

RUN = 34695381473
COUNT = 20
START = datetime(2026, 4, 27, 3, 0, tzinfo=UTC)


def taken(repo: Repo, sync: str, root: str) -> dict[str, bytes]:
    """Goldens the sync took from upstream, in order and with no fewer metrics than before."""
    settings = config.load(repo.top)
    before, upstream, after = (repo.tree(rev, root) for rev in (f"{sync}^1", f"{sync}^2", sync))
    out: dict[str, bytes] = {}
    for path, entry in sorted(after.items()):
        if len(out) == COUNT:
            break
        if path not in before or before[path] == entry or upstream.get(path) != entry or "_2nd" in path:
            continue
        raw, old = repo.blob(entry.blob), repo.blob(before[path].blob)
        if not lint.check(path, raw, settings) and not lint.check_against(path, raw, old, "before", settings):
            out[path] = raw
    return out


def main() -> None:
    """Write run.json, jobs.json, artifacts.json and the zips."""
    repo, sync, folder = Repo(Path(sys.argv[1])), sys.argv[2], Path(sys.argv[3])
    folder.mkdir(parents=True)
    root = "tests/functional_tests/test_cases"
    jobs, artifacts = [], []
    for i, (path, raw) in enumerate(taken(repo, sync, root).items()):
        model, test_case, name = path.removeprefix(root + "/").split("/")
        started = START + timedelta(minutes=20 * i)
        done = started + timedelta(minutes=15)
        jobs.append(
            {
                "id": 9000 + i, "run_id": RUN, "run_attempt": 1, "name": f"{model}/{test_case} - latest", "status": "completed",
                "conclusion": "success", "started_at": f"{started:%FT%TZ}", "completed_at": f"{done:%FT%TZ}", "labels": [],
            }
        )  # fmt: skip
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(name, raw)
            archive.writestr("logs/stdout.log", "iteration\n" * 1000)
        (folder / f"{7000 + i}.zip").write_bytes(buffer.getvalue())
        artifacts.append(
            {
                "id": 7000 + i, "name": f"logs-{test_case}-{RUN}-{uuid.UUID(int=i)}", "size_in_bytes": len(buffer.getvalue()),
                "expired": False, "created_at": f"{done - timedelta(seconds=30):%FT%TZ}",
            }
        )  # fmt: skip
    commit = subprocess.run(
        ["git", "rev-parse", f"{sync}^2"], cwd=repo.top, capture_output=True, text=True, check=True
    ).stdout.strip()
    run = {
        "id": RUN, "run_attempt": 1, "status": "completed", "conclusion": "success", "head_sha": commit, "head_branch": "main",
        "created_at": f"{START:%FT%TZ}", "updated_at": "2026-04-27T12:00:00Z",
    }  # fmt: skip
    for name, said in (("run", run), ("jobs", jobs), ("artifacts", artifacts)):
        (folder / f"{name}.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main()
