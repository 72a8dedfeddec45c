"""What the source never does: no shell, no eval, no code from data, no path of chance for pickles."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/goldenctl"
PIPES = {"catalog/parsing.py", "forked.py"}
"""Where pickles travel: between a process and its own child, through a pipe nobody else has."""


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """File, dotted name and node of every call."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                yield path.relative_to(SOURCE).as_posix(), ast.unparse(node.func), node


def test_nothing_is_evaluated_or_executed() -> None:
    assert [(f, n) for f, n, _ in calls() if n in ("eval", "exec", "compile", "__import__", "input")] == []


def test_no_shell_is_started() -> None:
    shells = [(f, n) for f, n, c in calls() for k in c.keywords if k.arg == "shell"]
    assert shells == []
    starts = {"os.system", "os.popen", "os.execv", "os.spawnl", "subprocess.getoutput", "subprocess.call"}
    assert [(f, n) for f, n, _ in calls() if n in starts] == []


def test_pickles_travel_only_between_a_process_and_its_child() -> None:
    loads = {f for f, n, _ in calls() if n.startswith(("pickle.", "marshal.", "shelve.", "dill."))}
    assert loads == PIPES


def test_yaml_is_read_by_safe_loaders_in_one_place() -> None:
    assert {(f, n) for f, n, _ in calls() if n.startswith("yaml.")} == {("yamlfile.py", "yaml.load")}
    assert "yaml.CSafeLoader" not in (text := (SOURCE / "yamlfile.py").read_text("utf-8")) or "SafeLoader" in text
    assert "UnsafeLoader" not in text
    assert "FullLoader" not in text


def test_zips_are_never_extracted_to_disk() -> None:
    assert [(f, n) for f, n, _ in calls() if n.endswith((".extract", ".extractall")) or n == "shutil.unpack_archive"] == []


def test_certificates_are_always_checked() -> None:
    assert [(f, n) for f, n, c in calls() for k in c.keywords if k.arg == "verify" and ast.unparse(k.value) == "False"] == []
