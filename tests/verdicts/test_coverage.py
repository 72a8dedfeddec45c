"""The matrix says of each golden whether it is there, asked for, and as young as its siblings."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldenctl import recipes
from goldenctl.coverage import twins
from goldenctl.recipes import RecipeError, Row
from tests.conftest import ScratchRepo, golden_json
from tests.verdicts.cli import Run

RECIPE = """\
type: basic
spec:
  name: "{test_case}_{environment}_{platforms}"
  model: moe
  platforms: dgx_a100
  script: |-
    ARGUMENTS=(
        "GOLDEN_VALUES_PATH=./goldens/{model}/{test_case}/golden_values_{environment}_{platforms}.json"
        "ENABLE_LIGHTWEIGHT_MODE=${{ENABLE_LIGHTWEIGHT_MODE}}"
    )
products:
  - test_case: [tiny]
    products:
      - environment: [dev, lts]
        scope: [mr, nightly]
        platforms: [dgx_h100, dgx_gb200]
        cadence: [pr, nightly]
      - environment: [dev]
        scope: [mr-github]
  - test_case: [ignored]
  - test_case: [idle]
    products:
      - environment: [dev]
        scope: [mr-broken, mr-github-temp-disabled]
        platforms: [dgx_h100]
"""


def rows(text: str) -> tuple[Row, ...]:
    return recipes.parse(text.encode(), "r.yaml")


def test_inner_products_are_expanded_over_every_key_but_cadence() -> None:
    found = rows(RECIPE)
    tiny = [(r.environment, r.scope, r.platform) for r in found if r.test_case == "tiny"]
    assert len(tiny) == 9  # 2 environments, 2 scopes, 2 platforms, and one row with the spec's platform
    assert ("lts", "L2", "dgx_gb200") in tiny  # nightly is L2
    assert tiny[-1] == ("dev", "L1", "dgx_a100")  # mr-github is L1
    assert {r.test_case for r in found} == {"tiny", "idle"}


def test_the_golden_path_is_the_script_template_filled_and_cut_to_the_repository() -> None:
    assert rows(RECIPE)[0].golden == "goldens/moe/tiny/golden_values_dev_dgx_h100.json"
    nemo = RECIPE.replace("=./goldens", "=/opt/megatron-lm/goldens")
    assert rows(nemo)[0].golden == "goldens/moe/tiny/golden_values_dev_dgx_h100.json"
    assert rows(RECIPE.replace("GOLDEN_VALUES_PATH", "OTHER"))[0].golden == ""


def test_a_row_overrides_the_spec() -> None:
    assert rows(RECIPE.replace("        scope: [mr-github]", "        model: [gpt]"))[8].case == "gpt/tiny"


@pytest.mark.parametrize(
    ("scope", "active"),
    [("mr", True), ("nightly", True), ("release", True), ("L0-smoke", True), ("", True), ("mr-broken", False),
     ("mr-github-temp-disabled", False), ("nightly-broken", False), ("flaky", False), ("deprecated", False)],
)  # fmt: skip
def test_scopes_that_nothing_selects_are_inactive(scope: str, active: bool) -> None:
    assert Row("moe", "tiny", "dev", "dgx_h100", scope, "", "r").active is active


@pytest.mark.parametrize(
    "text", ["", "- 1", "spec: 3\nproducts: []", "spec: {}\nproducts: {}", "spec: {}\nproducts: [1, {products: [2]}]"]
)
def test_files_of_another_form_have_no_rows(text: str) -> None:
    assert rows(text) == ()


def test_broken_yaml_is_an_error() -> None:
    with pytest.raises(RecipeError, match="is not readable YAML"):
        rows("spec: [")


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_raise_anything_else(raw: bytes) -> None:
    with contextlib.suppress(RecipeError):
        recipes.parse(raw, "r")


def path(case: str, platform: str = "dgx_h100", environment: str = "dev", variant: str = "") -> str:
    return f"goldens/{case}/golden_values_{environment}_{platform}{variant}.json"


GOLDEN = golden_json(a={1: 1.0})


@pytest.fixture
def repo(make_repo: Callable[..., ScratchRepo]) -> ScratchRepo:
    """A tree with one golden of each state, and a recipe."""
    return make_repo(
        "repo",
        {
            path("moe/tiny"): GOLDEN,
            path("moe/tiny", variant="_2nd"): GOLDEN,
            path("moe/tiny", "dgx_gb200", "lts"): GOLDEN,
            path("moe/tiny", "dgx_a100"): GOLDEN,
            path("moe/idle"): GOLDEN,
            path("moe/alone"): GOLDEN,
            "goldens/moe/alone/model_config.yaml": "TEST_TYPE: regular\n",
            path("gpt/big_release"): GOLDEN,
            "goldens/gpt/big_release/model_config.yaml": "TEST_TYPE: release\n",
            path("moe/bare"): GOLDEN,
            path("moe/old", "dgxh100_dgxc"): GOLDEN,
            "recipes/moe.yaml": RECIPE,
            "recipes/_build.yaml": "spec: [",
        },
    )


def states(run: Run, repo: ScratchRepo, *options: str) -> dict[str, str]:
    return {c["path"]: c["state"] for c in run(repo.top, "coverage", *options, "--format", "json").json["cases"]}


def test_every_state_is_told_from_recipes(run: Run, repo: ScratchRepo) -> None:
    found = states(run, repo, "--recipes", "recipes/*.yaml")
    assert found == {
        path("moe/tiny"): "present",
        path("moe/tiny", variant="_2nd"): "present",
        path("moe/tiny", "dgx_gb200"): "missing",
        path("moe/tiny", environment="lts"): "missing",
        path("moe/tiny", "dgx_gb200", "lts"): "present",
        path("moe/tiny", "dgx_a100"): "present",
        path("moe/idle"): "inactive",
        path("moe/alone"): "orphaned",
        path("gpt/big_release"): "unknown",
        path("moe/bare"): "orphaned",
        path("moe/old", "dgxh100_dgxc"): "orphaned",
    }
    assert run(repo.top, "coverage", "--recipes", "recipes/*.yaml").code == 1


@pytest.mark.parametrize(
    "config",
    ["ENV_VARS:\n  SKIP_PYTEST: 1\n", "ENV_VARS:\n  ENABLE_LIGHTWEIGHT_MODE: true\n", "TEST_TYPE: checkpoint-consistency\n"],
)
def test_a_case_that_compares_nothing_is_exempt_and_not_missing(run: Run, repo: ScratchRepo, config: str) -> None:
    repo.write({"goldens/moe/tiny/model_config.yaml": config})
    found = states(run, repo, "--recipes", "recipes/*.yaml")
    assert (found[path("moe/tiny", "dgx_gb200")], found[path("moe/tiny")]) == ("exempt", "present")


def test_a_platform_misspelt_in_a_recipe_is_named_with_the_nearest(run: Run, repo: ScratchRepo) -> None:
    repo.write({"recipes/moe.yaml": RECIPE.replace("[dgx_h100, dgx_gb200]", "['dg  x_h100']")})
    got = run(repo.top, "coverage", "--recipes", "recipes/*.yaml", "--format", "json")
    assert "recipes/moe.yaml: moe/tiny has the unknown platform 'dg  x_h100', nearest is 'dgx_h100'" in got.err


def test_without_recipes_nothing_is_missing_or_orphaned(run: Run, repo: ScratchRepo) -> None:
    got = run(repo.top, "coverage")
    assert got.code == 0
    assert "9 present; without recipes nothing can be missing or orphaned" in got.out


def test_a_golden_older_than_its_siblings_is_stale(run: Run, repo: ScratchRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    for moment, platform in (("2026-01-01T00:00:00Z", "dgx_h100"), ("2026-03-02T00:00:00Z", "dgx_gb200")):
        monkeypatch.setenv("GIT_COMMITTER_DATE", moment)
        repo.commit({path("gpt/pair", platform): golden_json(a={1: len(platform)})})
    monkeypatch.delenv("GIT_COMMITTER_DATE")
    cells = run(repo.top, "coverage", "--case", "gpt/pair", "--format", "json").json["cases"]
    assert {c["platform"]: (c["state"], c["note"]) for c in cells} == {
        "dgx_h100": ("stale", "60 days older than dgx_gb200"),
        "dgx_gb200": ("present", ""),
    }
    assert cells[0]["changed_at"] == "2026-03-02T00:00:00+00:00"
    assert set(states(run, repo, "--case", "gpt/pair", "--stale-after", "60").values()) == {"present"}


def test_the_last_recorded_run_is_shown(run: Run, repo: ScratchRepo) -> None:
    place = repo.top / "run" / "moe" / "tiny"
    place.mkdir(parents=True)
    (place / "golden_values_dev_dgx_h100.json").write_bytes(GOLDEN)
    assert run(repo.top, "record", "--from-job", "run").code == 0
    cells = run(repo.top, "coverage", "--case", "moe/tiny", "--format", "json").json["cases"]
    assert {c["path"] for c in cells if c["last_run"]} == {path("moe/tiny")}
    origin = run(repo.top, "verify", path("moe/tiny"), "--origin", "--format", "json").json["files"][0]["origin"]
    assert origin == "tree:run"


def test_the_matrix_has_a_row_per_case_and_names_what_is_odd(run: Run, repo: ScratchRepo) -> None:
    out = run(repo.top, "coverage", "--recipes", "recipes/*.yaml").out
    for said in ("dev/dgx_gb200", "MISSING", f"missing: {path('moe/tiny', 'dgx_gb200')}: asked for by recipes/moe.yaml"):
        assert said in out
    only = run(repo.top, "coverage", "--recipes", "recipes/*.yaml", "--state", "unknown", "--format", "markdown")
    assert (only.code, "big\\_release" in only.out, "alone" in only.out) == (0, True, False)


@pytest.mark.parametrize(
    ("cases", "pairs"),
    [
        ({"nemotron/super_g200", "nemotron/super_gb200"}, [("nemotron/super_g200", "nemotron/super_gb200")]),
        ({"moe/a_b", "moe/a-b", "moe/A_b"}, [("moe/A_b", "moe/a-b"), ("moe/a-b", "moe/a_b")]),
        ({"moe/tp1", "moe/tp11", "moe/tp2"}, []),
        ({"moe/x_tp1", "moe/x_etp1"}, []),
        ({"moe/super_g200", "gpt/super_gb200"}, []),
    ],
)
def test_near_twins_differ_in_separators_or_one_inner_letter(cases: set[str], pairs: list[tuple[str, str]]) -> None:
    assert list(twins(cases)) == pairs


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--recipes", "nothing/*.yaml"], "no recipe matches"), (["--case", "moe/tyni"], "did you mean 'moe/tiny'?")],
)
def test_wrong_use_is_said(run: Run, repo: ScratchRepo, options: list[str], said: str) -> None:
    got = run(repo.top, "coverage", *options)
    assert (got.code, said in got.err) == (2, True)


def test_a_folder_outside_git_has_no_ages(run: Run, tmp_path: Path) -> None:
    (tmp_path / "goldens/moe/tiny").mkdir(parents=True)
    (tmp_path / path("moe/tiny")).write_bytes(GOLDEN)
    (cell,) = run(tmp_path, "coverage", "--format", "json").json["cases"]
    assert (cell["state"], cell["age_days"]) == ("present", None)
    assert subprocess.run(["git", "rev-parse"], cwd=tmp_path, capture_output=True).returncode != 0


@pytest.mark.corpus
def test_the_twin_folder_of_the_corpus_is_found(run: Run, corpus: Path) -> None:
    got = run(corpus, "coverage", "--format", "json")
    assert ["nemotron/nemotron3_super_release_g200", "nemotron/nemotron3_super_release_gb200"] in got.json["twins"]
    assert len(got.json["cases"]) == 908  # 910 goldens, two of them in a nested folder that fits no layout
    assert got.err.count("does not fit the layout") == 2
