"""``goldenctl check``: the verdict a functional test would give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from goldenctl.cli import options, output, spark
from goldenctl.cli.output import Format
from goldenctl.errors import ExitCode, UsageError
from goldenctl.rules.verdicts import Rules

if TYPE_CHECKING:
    from goldenctl.config import Settings
    from goldenctl.rules import Disagreement, MetricVerdict, Verdict
    from goldenctl.testconfig import TestConfig

COLUMNS = ("metric", "verdict", "exact", "approximate", "exceeding", "max rel", "max abs", "worst step", "golden → obtained")


def command(
    obtained: Annotated[Path, typer.Argument(help="What the run produced; phase 2 with --resume.")],
    golden: Annotated[Path, typer.Argument(help="The golden file; phase 1 with --resume.")],
    rules: Annotated[Rules, typer.Option(help="Whose rules decide.")] = Rules.STRICT,
    config: Annotated[
        Path | None, typer.Option(help="The case's model_config.yaml; the one beside the golden without it.")
    ] = None,
    metric: options.Metrics = None,
    resume: Annotated[bool, typer.Option("--resume", help="Compare phase 2 with phase 1 after the middle step.")] = False,
    train_iters: options.TrainIters = None,
    format: options.Form = Format.TABLE,
) -> int:
    """Say whether a run passes against its golden, metric by metric, and where Megatron-LM's harness judges otherwise.

    Example: goldenctl check results/golden_values_dev_dgx_h100.json goldens/moe/tiny/golden_values_dev_dgx_h100.json
    """
    from goldenctl import config as settings_module
    from goldenctl import rules as stage

    settings = settings_module.load(Path.cwd())
    have, want = _bytes(obtained), _bytes(golden)
    case = _config(golden, config)
    if metric:
        case = replace(case or stage.assumed(want), metrics=tuple(metric), metrics_given=True)
    iters = _resume_iters(case, train_iters) if resume else None
    path = _below_root(golden, settings)

    def judge(by: Rules) -> Verdict:
        tolerance_for = lambda name: settings.tolerance_for(name, path)  # noqa: E731
        return stage.check(have, want, case, rules=by, tolerance_for=tolerance_for, resume_iters=iters)

    verdict, other = judge(rules), judge(Rules.HARNESS if rules is Rules.STRICT else Rules.STRICT)
    differing = stage.disagreements(*((other, verdict) if rules is Rules.STRICT else (verdict, other)))
    _print(format, verdict, differing, path)
    return int(ExitCode.OK if verdict.passed else ExitCode.FINDINGS)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as exc:
        raise UsageError(f"cannot be read: {exc.strerror}", place=str(path), hint="name two golden documents") from exc


def _config(golden: Path, given: Path | None) -> TestConfig | None:
    from goldenctl import testconfig

    loaded = testconfig.parse(_bytes(given), str(given)) if given else testconfig.load(golden.absolute().parent)
    if given and loaded.config is None:
        raise UsageError(loaded.note, hint="name a model_config.yaml")
    if loaded.note:
        output.note(f"{loaded.note}: the defaults are used")
    return loaded.config


def _resume_iters(config: TestConfig | None, given: int | None) -> int:
    iters = given or (config.last_step if config else None)
    if not iters:
        raise UsageError("how many steps the run has is not known", hint="--train-iters N")
    return iters


def _below_root(golden: Path, settings: Settings) -> str:
    place = golden.absolute()
    return place.relative_to(settings.root_path).as_posix() if place.is_relative_to(settings.root_path) else golden.name


def _print(format: Format, verdict: Verdict, differing: Sequence[Disagreement], path: str) -> None:
    if format is Format.JSON:
        output.json(as_json(verdict, differing))
        return
    rows = [_cells(m) for m in verdict.metrics]
    right = (4, 5, 6, 7)
    if rows:
        output.table(COLUMNS, rows, right=right, spare=(6, 7, 4), form=format)
    output.result("\n".join(_sentences(verdict, differing, path)))


def as_json(verdict: Verdict, differing: Sequence[Disagreement]) -> dict[str, Any]:
    """The verdict as JSON values."""
    return {
        "pass": verdict.passed,
        "rules": verdict.rules.value,
        "mode": verdict.mode,
        "reason": verdict.reason,
        "notes": list(verdict.notes),
        "metrics": [metric_json(m) for m in verdict.metrics],
        "differs": [{"metric": d.metric, "harness": d.harness, "strict": d.strict, "why": d.why} for d in differing],
    }


def metric_json(metric: MetricVerdict) -> dict[str, Any]:
    """One metric's verdict as JSON values."""
    return {
        "metric": metric.metric,
        "pass": metric.passed,
        "exact": metric.exact,
        "approximate": metric.approximate,
        "n_steps": metric.n_steps,
        "n_exceeding": metric.n_exceeding,
        "n_allowed": metric.n_allowed,
        "n_inexact": metric.n_inexact,
        "first_bad_step": metric.first_bad_step,
        "worst_step": metric.worst_step,
        "worst_golden": metric.worst_golden,
        "worst_obtained": metric.worst_obtained,
        "max_rel_diff": metric.max_rel_diff,
        "max_abs_diff": metric.max_abs_diff,
        "tolerance": metric.tolerance,
        "reason": metric.reason,
        "note": metric.note,
    }


def _cells(m: MetricVerdict) -> list[str]:
    lanes = ["-" if lane is None else "yes" if lane else "no" for lane in (m.exact, m.approximate)]
    sizes = ["" if x is None else f"{x:.3g}" for x in (m.max_rel_diff, m.max_abs_diff)]
    pair = (
        f"{m.worst_golden:.9g} → {m.worst_obtained:.9g}" if m.worst_golden is not None and m.worst_obtained is not None else ""
    )
    step = "" if m.worst_step is None else str(m.worst_step)
    return [m.metric, "pass" if m.passed else "FAIL", *lanes, f"{m.n_exceeding}/{m.n_steps}", *sizes, step, pair]


def _sentences(verdict: Verdict, differing: Sequence[Disagreement], path: str) -> list[str]:
    out = [f"{m.metric}: {m.reason} [{m.tolerance}] {spark.sizes(m.profile)}".rstrip() for m in verdict.failed]
    out += [f"{m.metric}: {m.note}" for m in verdict.metrics if m.note and m.passed]
    out += list(verdict.notes)
    for d in differing:
        said = {True: "passes", False: "fails", None: "is not looked at"}
        name = d.metric or "the document"
        out.append(f"rules differ: {name} {said[d.harness]} by harness rules, {said[d.strict]} by strict ones: {d.why}")
    if verdict.reason:
        out.append(verdict.reason)
    out.append(f"{'pass' if verdict.passed else 'FAIL'} by {verdict.rules} rules")
    if not verdict.passed:
        case, _, _ = path.rpartition("/")
        out.append(f"  next: goldenctl refresh --from-job RUN{f' --case {case}' if case else ''}, if the change is meant")
    return out
