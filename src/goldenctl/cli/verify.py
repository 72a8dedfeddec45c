"""``goldenctl verify``: how the goldens match those of other revisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldenctl.cli import completing, options, output
from goldenctl.cli.output import Format
from goldenctl.errors import ExitCode, UsageError
from goldenctl.model import MatchLevel

if TYPE_CHECKING:
    from goldenctl.sides import Side
    from goldenctl.verify import Verified, VerifiedFile


def command(
    paths: Annotated[list[str] | None, typer.Argument(help="Goldens: files, folders or case globs; all without any.")] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="REV",
            help="Revision, branch, sync:DATE or sync:SHA to compare with; may be repeated.",
            autocompletion=completing.revisions,
        ),
    ] = None,
    at: Annotated[str, typer.Option(help="Take the goldens of this revision instead of the work tree.")] = "WORKTREE",
    require: options.Require = None,
    origin: Annotated[bool, typer.Option("--origin", help="Say which recorded artifact has the same bytes.")] = False,
    store: options.Store = None,
    format: options.Form = Format.TABLE,
) -> int:
    """Say for each golden how it matches the same golden at other revisions: identical, equal, close, different, absent.

    Example: goldenctl verify "moe/*" --against main --against sync:2026-04-28 --require equal
    """
    from goldenctl import collect, config, origins
    from goldenctl import verify as stage
    from goldenctl.catalog.places import preferring
    from goldenctl.git import Repo

    if not against and not origin:
        raise UsageError("nothing to verify against", hint="goldenctl verify --against main, or --origin")
    settings = preferring(config.load(Path.cwd()), store)
    side = collect.open_side(at, settings)
    others = [collect.revision_side(rev, settings) for rev in against or ()]
    takes = collect.named(paths or (), settings, side.entries)
    origin_of = origins.recorded(Repo(settings.top), settings).of if origin else None
    result = stage.verify(side, others, settings, takes=takes, origin_of=origin_of)
    _warn(result, side)
    _print(format, result, at)
    if side.problems:
        return int(ExitCode.SOURCE)
    below = require and result.below(MatchLevel(require.value))
    return int(ExitCode.FINDINGS if below or result.without_origin else ExitCode.OK)


def _warn(result: Verified, side: Side) -> None:
    for problem in side.problems:
        output.error(problem)
    for rev, gone in result.gone.items():
        if gone:
            output.note(f"{len(gone)} goldens of {rev} are not here, first {gone[0]}")


def _print(format: Format, result: Verified, at: str) -> None:
    if format is Format.JSON:
        output.json(as_json(result))
    elif format is Format.MARKDOWN:
        output.result(as_markdown(result, at))
    else:
        columns = ["golden", *(o.name for o in result.others), *(["origin"] if _asked_origin(result) else []), "detail"]
        if result.files:
            output.table(columns, [_cells(f) for f in result.files])
        output.result("\n".join(_sentences(result, at)))


def as_json(result: Verified) -> dict[str, Any]:
    """The result as JSON values."""
    files = []
    for file in result.files:
        matches = [{"rev": m.rev, "level": m.level.value, "commit": m.commit, "detail": m.detail} for m in file.matches]
        origin = {} if file.origin is None else {"origin": file.origin}
        files.append({"path": file.path, "matches": matches, **origin})
    return {"files": files, "summary": dict(result.summary)}


def as_markdown(result: Verified, at: str) -> str:
    """Sentences for a pull request, and a table of what is neither identical nor equal anywhere."""
    text = "\n".join(f"- {s}" for s in _sentences(result, at)) + "\n"
    rest = [f for f in result.files if not all(m.level.meets(MatchLevel.EQUAL) for m in f.matches)]
    if rest:
        rows = [[f.path, m.rev, m.level.value, m.detail] for f in rest for m in f.matches]
        text += "\n" + output.markdown(["golden", "revision", "match", "detail"], rows)
    return text


def _sentences(result: Verified, at: str) -> list[str]:
    """One sentence a revision: how many goldens hold its values."""
    out = []
    for i, other in enumerate(result.others):
        levels = Counter(f.matches[i].level for f in result.files)
        said = ", ".join(f"{levels[level]} {level.value}" for level in MatchLevel if levels[level])
        name = f"{other.name} ({other.commit[:10]})" if not other.commit.startswith(other.name) else other.name[:10]
        out.append(f"{_count(result.files)} of {at} against {name}: {said or 'nothing to compare'}")
    if _asked_origin(result):
        out += _origin_sentences(result.files)
    return out


def _origin_sentences(files: Sequence[VerifiedFile]) -> list[str]:
    runs = Counter(f.origin for f in files)
    return [
        f"{n} hold the bytes that {run} delivered" if run else f"{n} hold bytes of no recorded artifact"
        for run, n in sorted(runs.items(), key=lambda item: (not item[0], item[0] or ""))
    ]


def _count(files: Sequence[VerifiedFile]) -> str:
    return f"{len(files)} golden{'' if len(files) == 1 else 's'}"


def _asked_origin(result: Verified) -> bool:
    return any(f.origin is not None for f in result.files)


def _cells(file: VerifiedFile) -> list[str]:
    origin = [] if file.origin is None else [file.origin or "-"]
    detail = "; ".join(dict.fromkeys(m.detail for m in file.matches if m.detail))
    return [file.path, *(m.level.value for m in file.matches), *origin, detail]
