"""What the campaigns run: one function a target, which takes bytes and raises when goldenctl breaks a promise.

Only errors of goldenctl's own tree (and the documented ``DocumentError``, ``KeyError`` and ``ValueError`` of single
functions) may come out of the code under test; the targets let those pass and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.answers import github, gitlab
from tests.fuzz.documents import document, edits, pair
from tests.fuzz.names import layout, trailers
from tests.fuzz.settings import configuration, settings
from tests.fuzz.zips import archive

Target = Callable[[bytes], None]

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
