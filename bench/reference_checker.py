"""A checker that does what the one in Megatron-LM's tools does: read JSON, walk every leaf, look at its text.

Written for the comparison in ``bench/lint.py`` from a description of that tool's behaviour: it takes
files, fails when a leaf as lower-case text is nan, inf or infinity with any sign, or when a file
cannot be read, and prints at most 20 places a file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NON_FINITE = {sign + word for sign in ("", "+", "-") for word in ("nan", "inf", "infinity")}
SHOWN = 20


def leaves(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf of a document with its place."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{where}.{key}")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from leaves(item, f"{where}[{i}]")
    else:
        yield where, value


def main() -> int:
    """Check files and return 1 when one is not in order."""
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", type=Path)
    failed = False
    for path in parser.parse_args().files:
        try:
            document = json.loads(path.read_text())
        except (OSError, json.JSONDecodeError) as exc:
            print(f"{path}: {exc}")
            failed = True
            continue
        places = [where for where, leaf in leaves(document) if str(leaf).lower() in NON_FINITE]
        if places:
            failed = True
            print(f"{path}: {len(places)} non-finite values")
            for where in places[:SHOWN]:
                print(f"  {where}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
