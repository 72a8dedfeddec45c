"""Plant runs of several jobs as GitHub describes them: ``plant_jobs.py FOLDER FIRST COUNT``.

Run n delivers five of the repository's own goldens, one a job, every value moved by a millionth of its number, so that no
two runs agree. ``truth.json`` says for each run how many values it holds and what the finite ones add up to.
"""

from __future__ import annotations

import io
import json
import math
import sys
import uuid
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent.parent
JOBS = 5
START = datetime(2026, 5, 1, tzinfo=UTC)
GOLDENS = sorted((TOP / "goldens").rglob("golden_values_dev_dgx_h100.json"))


def moved(golden: Any, number: int) -> Any:
    """The golden with every number of every metric moved by ``number`` millionths."""
    factor = 1 + number / 1e6
    return {
        metric: {**block, "values": {step: v * factor if type(v) in (int, float) else v for step, v in block["values"].items()}}
        for metric, block in golden.items()
        if isinstance(block, dict) and isinstance(block.get("values"), dict)
    }


def documents(number: int) -> Iterator[tuple[Path, Any]]:
    """Golden and document of each job of a run; neighbours share no case."""
    plain = [path for path in GOLDENS if len(moved(json.loads(path.read_bytes()), 0)) > 1]
    for place in range(JOBS):
        path = plain[(number * JOBS + place) % len(plain)]
        yield path, moved(json.loads(path.read_bytes()), number)


def plant(folder: Path, number: int) -> tuple[int, float]:
    """Write one recorded run; returns the number of its values and the sum of the finite ones."""
    folder.mkdir(parents=True)
    jobs, artifacts, values = [], [], []
    for place, (path, document) in enumerate(documents(number)):
        case, ident = f"{path.parent.parent.name}/{path.parent.name}", number * JOBS + place
        done = START + timedelta(hours=number, minutes=place)
        jobs.append(
            {
                "id": 10_000 + ident, "run_id": 1000 + number, "run_attempt": 1, "name": f"{case} - latest",
                "status": "completed", "conclusion": "success", "started_at": f"{START:%FT%TZ}",
                "completed_at": f"{done:%FT%TZ}", "labels": [],
            }
        )  # fmt: skip
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(path.name, json.dumps(document))
        (folder / f"{20_000 + ident}.zip").write_bytes(buffer.getvalue())
        artifacts.append(
            {
                "id": 20_000 + ident, "name": f"logs-{path.parent.name}-{1000 + number}-{uuid.UUID(int=ident)}",
                "size_in_bytes": len(buffer.getvalue()), "expired": False, "created_at": f"{done:%FT%TZ}",
            }
        )  # fmt: skip
        values += [float(v) for block in document.values() for v in block["values"].values()]
    run = {
        "id": 1000 + number, "run_attempt": 1, "status": "completed", "conclusion": "success", "head_sha": f"{number:040x}",
        "head_branch": "main", "created_at": f"{START:%FT%TZ}", "updated_at": f"{done:%FT%TZ}",
    }  # fmt: skip
    for name, said in (("run", run), ("jobs", jobs), ("artifacts", artifacts)):
        (folder / f"{name}.json").write_text(json.dumps(said))
    return len(values), math.fsum(v for v in values if math.isfinite(v))


def main() -> None:
    """Write the runs and what they hold."""
    folder, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    truth = {f"github:{1000 + n}#1": plant(folder / str(n), n) for n in range(first, first + count)}
    (folder / "truth.json").write_text(json.dumps(truth))


if __name__ == "__main__":
    main()
