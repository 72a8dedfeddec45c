"""Fill the catalog and say what was done; loads no option parser, and nothing at all when there is nothing to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from goldenctl.cli import output
from goldenctl.errors import ExitCode

if TYPE_CHECKING:
    from goldenctl.catalog.build import Built
    from goldenctl.catalog.places import Place

_KEYS = ("branches", "commits", "documents", "new_documents", "up_to_date")


def fill(
    *,
    new_only: bool,
    branches: Sequence[str] = (),
    catalog: Path | None = None,
    store: bool | None = None,
    wait: float = 30.0,
    as_json: bool = False,
) -> int:
    """Build the catalog, or update it, and print the result.

    Parameters
    ----------
    new_only
        Update: answer at once when no branch has moved since the last build.
    branches
        Branches to read; none means those of the last build or of the settings.
    catalog
        The file; None means the one in the settings.
    store
        Whether the shared store is meant instead of a file; None means what the settings say.
    """
    from goldenctl import config
    from goldenctl.catalog import freshness, places
    from goldenctl.git import Repo

    settings = config.load(Path.cwd())
    path, repo = places.chosen(settings, catalog=catalog, store=store), Repo(settings.top)
    if new_only and not as_json and freshness.up_to_date(repo, settings, path, branches) is not None:
        output.result("the catalog is up to date")
        return ExitCode.OK
    from goldenctl.catalog import build
    from goldenctl.cli import progress

    filling = build.update if new_only else build.build
    with progress.shown("documents") as tell:
        built = filling(repo, settings, path, branches, tell, wait)
    if repo.run("rev-parse", "--is-shallow-repository").strip() == b"true":
        output.note("this clone is shallow, and so is the catalog's history; git fetch --unshallow, then build again")
    if as_json:
        output.json({key: getattr(built, key) for key in _KEYS} | {"catalog": str(path)})
    else:
        output.result(_sentence(path, built))
    return ExitCode.OK


def _sentence(path: Place, built: Built) -> str:
    new = f"{built.documents:,} documents, {built.new_documents:,} of them new"
    return f"{path}: {built.commits:,} commits, {new}, from {', '.join(built.branches)}"
