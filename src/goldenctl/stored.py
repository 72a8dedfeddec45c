"""Sides of a comparison out of a catalog: a run that CI has forgotten, a revision this clone does not have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from goldenctl.catalog import documents, states, store
from goldenctl.catalog.places import Place
from goldenctl.errors import UsageError
from goldenctl.report.recorded import document
from goldenctl.sides import Side


def open_stored(name: str, place: Place) -> Side | None:
    """The side a name stands for in a catalog; None when it knows neither a run nor a commit of that name.

    Parameters
    ----------
    name
        A run (``github:42``, ``github:42#1``; ``catalog:`` may stand before it), a branch, a commit,
        ``sync:SHA`` or ``sync:DATE``.

    Raises
    ------
    CatalogError
        The catalog cannot be read.
    UsageError
        There is no such version of it.
    """
    read = partial(_read, place)
    with store.reading(place) as connection:
        of_run = documents.of_run(connection, name.removeprefix("catalog:"))
        if of_run:
            return Side(name, of_run, read, partial=True)
        try:
            commit = states.commit_of(connection, name.removeprefix("git:"))
        except UsageError:
            return None
        return Side(name, dict(states.tree(connection, commit).iter_rows()), read, commit)


def _read(place: Place, ids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    wanted = list(ids)
    if not wanted:
        return
    with store.reading(place) as connection:
        found = documents.documents(connection, wanted)
    for one in found:
        # What was no JSON then is none now either: its reason takes its place.
        yield one.id, one.error.encode() if one.error else document(one.shape, one.series, one.texts)
