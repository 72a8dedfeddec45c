"""``goldenctl capture``: TensorBoard event files into a golden document."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from goldenctl.capture import Files, Precision
from goldenctl.cli import output
from goldenctl.errors import ExitCode, RepoError, UsageError


def command(
    logdirs: Annotated[list[Path], typer.Argument(help="Log folders (or event files) of one run.")],
    out: Annotated[Path | None, typer.Option("-o", "--output", help="File to write; stdout without it.")] = None,
    files: Annotated[Files, typer.Option(help="Which event files count.")] = Files.FIRST,
    precision: Annotated[Precision, typer.Option(help="Values as logged, or to five decimals.")] = Precision.FULL,
    train_iters: Annotated[int | None, typer.Option(min=1, help="Last step kept; all without it.")] = None,
    step_size: Annotated[int, typer.Option(min=1, help="Keep step 1 and every multiple of this many steps.")] = 1,
    metric: Annotated[list[str] | None, typer.Option(help="Scalar to keep instead of the harness's; repeatable.")] = None,
    thin: Annotated[int | None, typer.Option(min=2, help="Keep at most this many points of a metric.")] = None,
    pin: Annotated[list[int] | None, typer.Option(help="Step that --thin never drops; repeatable.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> int:
    """Make a golden document of a run's TensorBoard event files, on the harness's sampling grid.

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
    return int(ExitCode.OK)


def _write(path: Path, content: bytes, *, force: bool) -> None:
    """Put the bytes in place whole, or not at all."""
    import tempfile

    if path.exists() and not force and path.read_bytes() != content:
        raise UsageError("is there and holds something else", place=str(path), hint="--force, or another --output")
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            file.write(content)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)
    except OSError as exc:
        raise RepoError(f"cannot be written: {exc.strerror}", place=str(path), hint="name another --output") from exc
