"""What the functions of the library take: text for a path, one for a list, and an error of ours for everything else."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import pytest

import goldenctl
from goldenctl import api
from goldenctl.api.twin import Choice, Many, parameter_hints
from goldenctl.cli.entry import main
from goldenctl.errors import GoldenctlError, UsageError
from goldenctl.model import Action
from tests.product.world import GOLDEN, NAN, OTHER, copy, plant, share

FUNCTIONS = {n: getattr(api, n) for n in api.__all__ if inspect.isfunction(getattr(api, n))}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arguments") / "repo"
    plant(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["catalog", "build"]) == 0
    return folder


@pytest.fixture(autouse=True)
def top(planted: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(planted)
    return planted


WRONG: dict[str, Callable[[Any], object]] = {
    "only 'bogus' is none of all, nonfinite, failing, drifted, missing": lambda a: a.refresh("ci-run", only="bogus"),
    "require 'absent' is none of identical, equal, close": lambda a: a.refresh("ci-run", match="main", require="absent"),
    "rules 'x' is none of strict, harness": lambda a: a.check(GOLDEN, GOLDEN, rules="x"),
    "rules 'strikt' is none of strict, harness": lambda a: a.gate_audit(GOLDEN, rules="strikt"),
    "policy 'x' is none of": lambda a: a.install(policy="x"),
    "policy 'zz' is none of": lambda a: a.merge_driver(GOLDEN, GOLDEN, GOLDEN, GOLDEN, policy="zz"),
    "state 'gone' is none of": lambda a: a.coverage(state="gone"),
    "threshold must be at least 0, not -1": lambda a: a.drift(threshold=-1),
    "threshold must be at least 0, not nan": lambda a: a.drift(threshold=float("nan")),
    "alpha must be between 0 and 1, not 5": lambda a: a.tolerance([GOLDEN, GOLDEN], alpha=5),
    "alpha must be between 0 and 1, not 0": lambda a: a.tolerance([GOLDEN, GOLDEN], alpha=0),
    "from_runs is empty": lambda a: a.tolerance([]),
    "from_job is empty": lambda a: a.refresh(""),
    "workers must be at least 1, not 0": lambda a: a.diff("main", "WORKTREE", workers=0),
    "workers must be a whole number, not 1.5": lambda a: a.diff("main", "WORKTREE", workers=1.5),
    "workers must be 1 with the shared store": lambda a: a.diff("main", "WORKTREE", store=True, workers=2),
    "nosuch: cannot be read: No such file or directory": lambda a: a.check("nosuch", GOLDEN),
    "nosuch: No such file or directory": lambda a: a.merge_driver(Path("nosuch"), GOLDEN, GOLDEN, GOLDEN),
    "golden must be bytes or the path of a file, not 4": lambda a: a.gate_audit(4),
    "case must be a list, not 4": lambda a: a.coverage(case=4),
    "case must be a text, not 4": lambda a: a.coverage(case=[4]),
    "fix must be True or False, not 'yes'": lambda a: a.lint(fix="yes"),
    "path must be a text, not ['moe/*']": lambda a: a.log(["moe/*"]),
    "require needs a revision to match against": lambda a: a.refresh("ci-run", require="equal"),
    "paths must be a text without a zero byte": lambda a: a.lint("goldens\0"),
    "nothing to verify against": lambda a: a.verify(),
    "name the archive": lambda a: a.archive("ci-run"),
    "no golden in question has the metric 'nope'": lambda a: a.drift(NAN, metric="nope"),
    "no golden in question has the metric 'lm los'": lambda a: a.log(NAN, metric="lm los"),
    "allow": lambda a: a.restore(NAN, from_="main", allow="x"),
}
"""Start of the error → the call."""


@pytest.mark.parametrize("fact", WRONG)
def test_a_wrong_argument_is_an_error_of_ours_with_a_next_step(fact: str) -> None:
    with pytest.raises(GoldenctlError) as caught:
        WRONG[fact](goldenctl.api)
    assert str(caught.value).removeprefix("--").startswith(fact)
    assert "\n  next: " in str(caught.value)


def test_a_text_is_taken_for_a_path_and_one_for_a_list(top: Path) -> None:
    loose: Any = api
    assert loose.lint("goldens/moe") == loose.lint([Path("goldens/moe")]) != []
    assert loose.verify(NAN, against="main").files == loose.verify([NAN], against=["main"]).files
    assert loose.check(GOLDEN, Path(OTHER)).passed is False
    assert loose.drift("moe/*", metric="lm loss") == loose.drift(["moe/*"], metric=["lm loss"])
    assert len(loose.catalog_export("parquet")) == 15
    assert loose.capture("logs").document == loose.capture([Path("logs")]).document
    assert loose.textconv(NAN) == loose.textconv((top / NAN).read_bytes())
    assert loose.coverage(case=None, state="missing").cells == ()


def test_a_version_may_be_a_number_and_an_age_a_text(top: Path) -> None:
    settings = top / "goldenctl.toml"
    plain = settings.read_text()
    share(top)
    try:
        api.store_push()
        newest = api.store_status(last=1).current
        assert api.catalog_status(as_of=newest).rows == api.catalog_status(as_of=str(newest)).rows
        assert api.store_clean("30d", dry_run=True).versions == 0
        for text in ("soon", "999999d"):  # before the year 1
            with pytest.raises(UsageError, match="neither an age nor a moment"):
                api.store_clean(text)
    finally:
        settings.write_text(plain)


def test_restore_takes_a_refresh_and_an_archived_digest(planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(copy(planted, tmp_path / "repo"))
    refreshed = api.refresh("ci-run", only="nonfinite", fix=True, commit=True, write=True)
    path, digest = next((f.path, f.sha256) for f in refreshed.files if f.action is Action.WRITTEN)
    new = Path(path).read_bytes()
    api.archive("ci-run", to="kept")

    def actions(source: str, *, write: bool = False, allow: str = "") -> list[str]:
        done = api.restore(path, from_=source, write=write, allow=allow or (), force=True)
        return [f.action.value for f in done.files]

    assert actions("HEAD~1") == ["refused"]  # it holds the NaN that the refresh took away
    Path(path).write_bytes(new + b"\n")
    assert actions(f"refresh:{refreshed.id}") == ["would-write"]
    assert Path(path).read_bytes() == new + b"\n"
    assert actions(f"refresh:{refreshed.id}", write=True) == ["written"]
    assert Path(path).read_bytes() == new
    Path(path).write_bytes(new + b"\n")
    assert actions(f"archive:kept#{digest}", write=True) == ["written"]
    assert Path(path).read_bytes() == new
    assert len(api.report(refresh=refreshed.id).entries) == 8


def test_a_proposal_is_accepted_by_a_glob(planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(copy(planted, tmp_path / "repo"))
    old = Path(OTHER).read_bytes()
    assert [p.path for p in api.review()] == [OTHER]
    with pytest.raises(UsageError, match="no proposal matches 'moe/"):
        api.review(accept="moe/*")
    assert api.review(accept="bert/*") == []
    assert Path(OTHER).read_bytes() == old + b"\n"


def test_lint_takes_the_options_of_its_command() -> None:
    everything = api.lint("goldens")
    assert {f.rule for f in api.lint("goldens", select="GV001")} == {"GV001"}
    assert "GV001" not in {f.rule for f in api.lint("goldens", ignore=["GV001"])}
    assert {f.severity.value for f in api.lint("goldens", strict=True)} == {"error"}
    assert not any(f.baselined for f in everything)
    assert all(f.baselined for f in api.lint("goldens", baseline="known.json", write_baseline=True))
    with pytest.raises(UsageError, match="unknown lint rule"):
        api.lint(select="GV01")


def test_drift_beyond_a_budget_is_what_the_command_counts(capsys: pytest.CaptureFixture[str]) -> None:
    _, all_of_them = api.drift()
    _, beyond = api.drift(budget=0.0001)
    assert 0 < len(beyond) < len(all_of_them)
    assert beyond == [d for d in all_of_them if abs(d.rel_drift) > 0.0001]
    assert main(["drift", "--budget", "0.0001"]) == 1
    assert api.drift(budget=0.5)[1] == []
    assert main(["drift", "--budget", "0.5"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("arguments", [("drift",), ("log", NAN)])
def test_a_metric_that_no_golden_has_is_wrong_use_with_the_nearest_name(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--metric", "lm los"]) == 2
    assert "next: did you mean 'lm loss'?" in capsys.readouterr().err


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_makes_sure_of_its_arguments(name: str) -> None:
    function = inspect.unwrap(FUNCTIONS[name])
    assert function is not FUNCTIONS[name], "no @twin"
    for parameter, hint in parameter_hints(function).items():
        kinds = [get_args(k)[1] for k in (hint, *get_args(hint)) if get_origin(k) is Annotated]
        bare = inspect.signature(function).parameters[parameter].default == ()
        assert not bare or any(isinstance(k, Many | Choice) for k in kinds), (name, parameter)
