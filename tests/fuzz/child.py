"""One target under libFuzzer, in a process that has loaded nothing of goldenctl before: only then is it instrumented."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import atheris

from tests.fuzz import guard


def main(name: str, options: Sequence[str]) -> None:
    """Run until libFuzzer ends the process."""
    with atheris.instrument_imports(include=["goldenctl", "tests.fuzz"]):
        from tests.fuzz.targets import ALL
    case = ALL[name]
    with guard.counter() as count:
        atheris.Setup(["tests.fuzz", *options], lambda data: count(case(data)))
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
