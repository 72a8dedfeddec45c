"""What the campaigns run: one function a target, which takes bytes and raises when goldenctl breaks a promise.

Only errors of goldenctl's own tree (and the documented ``DocumentError``, ``KeyError`` and ``ValueError`` of single
functions) may come out of the code under test; the targets let those pass and nothing else. A target says whether
the case was what it claims to be (a golden document, a zip, a settings file), so that a campaign shows how much of
it went beyond the first check.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.answers import github, gitlab
from tests.fuzz.documents import document, edits, pair
from tests.fuzz.names import layout, trailers
from tests.fuzz.settings import configuration, settings
from tests.fuzz.zips import archive

Target = Callable[[bytes], bool]

TARGETS: dict[str, Target] = {
    "document": document,
    "pair": pair,
    "edits": edits,
    "archive": archive,
    "layout": layout,
    "trailers": trailers,
    "settings": settings,
    "configuration": configuration,
    "github": github,
    "gitlab": gitlab,
}
SHARES = {"document": 4, "edits": 3, "archive": 4, "github": 2, "gitlab": 2}
"""Parts of the time a target gets; 1 for the others."""


def planted(data: bytes) -> bool:
    """A target with a fault four steps deep, which shows that a campaign is guided and that it tells its finds.

    Chance needs 2**32 cases for it.
    """
    depth = 0
    for wanted, found in zip(b"NaN!", data, strict=False):
        if wanted != found:
            return False
        depth += 1
    assert depth < 4, "the planted fault"
    return True


PLANTED: dict[str, Target] = {"planted": planted}
"""Run only by name."""
ALL = TARGETS | PLANTED
