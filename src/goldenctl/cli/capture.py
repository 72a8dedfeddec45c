"""``goldenctl capture``: TensorBoard event files into a golden document."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goldenctl.capture import Files, Precision
from goldenctl.cli import options, output
from goldenctl.errors import ExitCode, RepoError, UsageError
from goldenctl.files import write_whole


def command(
    logdirs: Annotated[list[Path], typer.Argument(help="Log folders (or event files) of one run.")],
    out: Annotated[Path | None, typer.Option("-o", "--output", help="File to write; stdout without it.")] = None,
    files: Annotated[Files, typer.Option(help="Which event files count.")] = Files.FIRST,
    precision: Annotated[Precision, typer.Option(help="Values as logged, or to five decimals.")] = Precision.FULL,
    train_iters: options.TrainIters = None,
    step_size: Annotated[int, typer.Option(min=1, help="Keep step 1 and every multiple of this many steps.")] = 1,
    metric: options.Metrics = None,
    thin: Annotated[int | None, typer.Option(min=2, help="Keep at most this many points of a metric.")] = None,
    pin: Annotated[list[int] | None, typer.Option(help="Step that --thin never drops; may be repeated.")] = None,
    force: options.Force = False,
    form: options.Form = output.Format.TABLE,
) -> int:
    """Make a golden document of a run's TensorBoard event files, on the harness's sampling grid.

    Without --output the document itself is the result, JSON in any format.

    Example: goldenctl capture logs/tensorboard --train-iters 100 --output golden_values_dev_dgx_h100.json
    """
    from goldenctl import capture as stage

    chosen = stage.Options(
        files=files,
        precision=precision,
        train_iters=train_iters,
        step_size=step_size,
        metrics=tuple(metric or stage.KEPT),
        thin=thin,
        pinned=tuple(pin or ()),
    )
    captured = stage.capture(logdirs, chosen)
    for note in captured.notes:
        output.note(note)
    content = captured.render()
    if out is None:
        output.result(content.decode())
    else:
        _write(out, content, force=force)
        if form is not output.Format.TABLE:
            output.listed("files", [str(out)], form)
    return int(ExitCode.OK)


def _write(path: Path, content: bytes, *, force: bool) -> None:
    """Put the bytes in place whole, or not at all."""
    if path.exists() and not force and path.read_bytes() != content:
        raise UsageError("is there and holds something else", place=str(path), hint="--force, or another --output")
    try:
        write_whole(path, content)
    except OSError as exc:
        raise RepoError(f"cannot be written: {exc.strerror}", place=str(path), hint="name another --output") from exc
