"""Settings are taken as they are meant, or refused with file, key and what would do."""

from __future__ import annotations

from pathlib import Path

import pytest

from goldenctl.cli.entry import main
from goldenctl.config import load
from goldenctl.errors import ConfigError


def settings(top: Path, text: str) -> Path:
    (top / "goldenctl.toml").write_text(text)
    return top


@pytest.mark.parametrize("root", ["goldens", "./goldens", "goldens/", ".//goldens/."])
def test_a_root_is_the_folder_however_it_is_spelled(root: str, tmp_path: Path) -> None:
    assert load(settings(tmp_path, f"root = {root!r}")).root == "goldens"


@pytest.mark.parametrize("layout", ["x", "{model}/{test_case}/golden_values.json", "{model}/golden_{platform}.json"])
def test_a_layout_that_tells_no_goldens_apart_is_refused(layout: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"goldenctl.toml: layout: .* has no \{(test_case|platform)\}"):
        load(settings(tmp_path, f'layout = "{layout}"'))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('window = "x"', "unknown window 'x'"),
        ('direction = "sideways"', "unknown direction 'sideways'"),
        ("rtol = inf", "rtol"),
        ("rtol = nan", "rtol"),
    ],
)
def test_a_tolerance_that_means_nothing_is_refused(entry: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        load(settings(tmp_path, f'[tolerance]\n"lm loss" = {{ {entry} }}'))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('catalog = "goldens"', "catalog: 'goldens' names a folder, not a file"),
        ('catalog = "new/"', "catalog: 'new/' names a folder, not a file"),
        ('catalog = "."', "catalog: '.' names a folder, not a file"),
        ('catalog = ""', "catalog: '' names nothing, not a file"),
        ('lint.baseline = "goldens"', "lint.baseline: 'goldens' names a folder, not a file"),
        ('store.metadata = "goldens"', "store.metadata: 'goldens' names a folder, not a file"),
        ('store.data = "a.txt"', "store.data: 'a.txt' names a file, not a folder"),
        ('archive = "a.txt"', "archive: 'a.txt' names a file, not a folder"),
        ('root = "a.txt"', "root: 'a.txt' names a file, not a folder"),
        ("lint.max_bytes = -1", "lint.max_bytes: must be a whole number, 1 or more, not -1"),
        ("sync.slice = -5", "sync.slice: must be a whole number, 1 or more, not -5"),
        ("mlflow.step_size = 0", "mlflow.step_size: must be a whole number, 1 or more, not 0"),
        ("sync.slice = 1.5", "sync.slice: must be a whole number, 1 or more, not 1.5"),
        ('tolerance."lm loss".bad_steps = -1', "tolerance.lm loss.bad_steps: must be a whole number, 0 or more, not -1"),
        ('tolerance."lm loss".rtol = -0.1', "tolerance.lm loss.rtol: must be a number, 0 or more, not -0.1"),
        ('tolerance."lm loss".exact = 1', "tolerance.lm loss.exact: must be true or false, not 1"),
        ("sync.upstream = 1", "sync.upstream: must be text, not 1"),
        ('lint.select = "GV001"', "lint.select: must be a list of text, not 'GV001'"),
        ('lint.per-file-ignores = { "a*" = "GV001" }', "lint.per_file_ignores.a*: must be a list of text, not 'GV001'"),
        ('lint.per-file-ignores = { "a*" = ["GV099"] }', "lint.per-file-ignores.a*: unknown lint rule 'GV099'"),
        ('lint.ignore = ["GV099"]', "lint.ignore: unknown lint rule 'GV099'"),
        ("mlflow.metrics = { loss = 1 }", "mlflow.metrics.loss: must be text, not 1"),
        ('store.metadata = ".goldenctl/catalog.duckdb"', "store.metadata: names the catalog file"),
        ("lint = 3", "[tool.goldenctl.lint] must be a table, not 3"),
        ('layout = "{model}/{test_case}/{what}_{platform}.json"', "layout: layout has an unknown placeholder {what}"),
        ('layout = "../{test_case}/{platform}.json"', "layout: layout '../{test_case}/{platform}.json' leads out of root"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_exit_2_with_its_file_and_key_before_anything_is_written(
    line: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "goldens").mkdir()
    (tmp_path / "a.txt").touch()
    monkeypatch.chdir(settings(tmp_path, line))
    assert main(["lint"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0] == f"error: {tmp_path}/goldenctl.toml: {said}"
    assert err.splitlines()[1].startswith("  next: ")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "goldenctl.toml", "goldens"]


@pytest.mark.parametrize("name", ["goldenctl.toml", "pyproject.toml"])
def test_a_settings_file_that_is_a_folder_or_leads_nowhere_is_not_passed_over(name: str, tmp_path: Path) -> None:
    (tmp_path / "a" / name).mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / name).symlink_to("nowhere")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / name).symlink_to(name)
    for folder, why in (("a", "Is a directory"), ("b", "No such file or directory"), ("c", "Too many levels")):
        with pytest.raises(ConfigError, match=f"{folder}/{name}: cannot be read: {why}"):
            load(tmp_path / folder)


@pytest.mark.parametrize("text", ["tool = 3", "[tool]\ngoldenctl = 3"])
def test_a_pyproject_of_another_shape_is_said_without_a_traceback(text: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"pyproject.toml: \[tool.*\] must be a table, not 3"):
        load(tmp_path)


def test_a_catalog_option_that_names_a_folder_is_exit_2_and_leaves_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "goldens").mkdir()
    monkeypatch.chdir(tmp_path)
    assert main(["catalog", "status", "--catalog", "goldens"]) == 2
    assert "goldens: is a folder, and a catalog is a file" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["goldens"]


@pytest.mark.parametrize("folder", ["/", ".", "..", "goldens", "~"])
def test_a_folder_for_the_store_that_holds_anything_else_is_refused(folder: str, tmp_path: Path) -> None:
    (tmp_path / "goldens").mkdir()
    path = str(Path.home()) if folder == "~" else folder
    (tmp_path / "goldenctl.toml").write_text(f'root = "goldens"\nstore.metadata = "lake"\nstore.data = "{path}"\n')
    with pytest.raises(ConfigError, match=f"store.data: '{path}' holds /"):
        load(tmp_path)
