"""Event files as a training run writes them: records with a length, its checksum, an event, its checksum."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

Scalars = Mapping[str, Mapping[int, float]]


def write_events(path: Path, scalars: Scalars, *, started: float = 1000.0) -> Path:
    """One event file with these scalars; values are stored as float32, one second a step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    events = [Event(wall_time=started, file_version="brain.Event:2")]
    for step in sorted({s for values in scalars.values() for s in values}):
        for tag, values in scalars.items():
            if step in values:
                event = Event(wall_time=started + step, step=step)
                event.summary.value.add(tag=tag, simple_value=values[step])
                events.append(event)
    path.write_bytes(b"".join(_record(e.SerializeToString()) for e in events))
    return path


def _record(payload: bytes) -> bytes:
    length = struct.pack("<Q", len(payload))
    checksums = [struct.pack("<I", masked_crc32c(part)) for part in (length, payload)]
    return length + checksums[0] + payload + checksums[1]
