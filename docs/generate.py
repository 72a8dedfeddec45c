"""The reference pages, made from the code: commands, rules, settings, catalog, Python.

``python docs/generate.py``            write the pages
``python docs/generate.py --check``    fail when a page is not what the code makes
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer.main

import goldenctl
from goldenctl import config
from goldenctl.catalog.api import Catalog
from goldenctl.cli.app import COMMANDS, build
from goldenctl.errors import ExitCode
from goldenctl.lint import RULES

DOCS = Path(__file__).parent
NOTE = "<!-- made by docs/generate.py -->\n"
CODES = {
    ExitCode.OK: "done, and the goldens are in order",
    ExitCode.FINDINGS: "done, and something is not in order: findings, differences, refused candidates, a failed check",
    ExitCode.USAGE: "wrong use or wrong settings",
    ExitCode.SOURCE: "a source could not be reached, read or trusted",
    ExitCode.STATE: "the catalog or the repository could not be read or written",
    ExitCode.INTERRUPTED: "interrupted",
}


def table(columns: list[str], rows: list[list[str]]) -> str:
    """Rows as a Markdown table."""
    lines = [columns, ["---"] * len(columns), *([c.replace("|", "\\|").replace("\n", " ") for c in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def commands() -> str:
    """Every command with its arguments, options and example."""
    codes = table(["exit code", "meaning"], [[str(int(code)), meaning] for code, meaning in CODES.items()])
    head = [NOTE + "# Commands\n", "The result goes to stdout, everything else to stderr.\n", codes]
    tree = typer.main.get_command(build(COMMANDS))
    return "\n".join([*head, *_commands(tree, ["goldenctl"], 2)])


def _commands(group: Any, names: list[str], level: int) -> Iterator[str]:
    for name, command in group.commands.items():
        words = [*names, name]
        yield f"{'#' * level} {' '.join(words[1:])}\n"
        yield from _command(command, words)
        if hasattr(command, "commands"):
            yield from _commands(command, words, level + 1)


def _command(command: Any, words: list[str]) -> Iterator[str]:
    text, _, example = inspect.cleandoc(command.help or "").partition("Example:")
    yield text.replace("``", "`").strip() + "\n"
    if example:
        yield f"```text\n{' '.join(example.split())}\n```\n"
    hints = get_type_hints(inspect.unwrap(command.callback)) if command.callback else {}
    rows = [
        _parameter(p, hints.get(p.name))
        for p in command.params
        if p.name not in ("help", "install_completion", "show_completion")
    ]
    if rows:
        yield table([f"`{' '.join(words)}`", "", "default"], rows)


def _parameter(parameter: Any, hint: Any) -> list[str]:
    is_option = parameter.param_type_name == "option"
    names = ", ".join(f"`{o}`" for o in parameter.opts) if is_option else f"`{parameter.metavar or parameter.name.upper()}`"
    said = parameter.help or ""
    choices = next((k for k in (hint, *get_args(hint)) if isinstance(k, type) and issubclass(k, Enum)), None)
    if choices:
        said += " One of " + ", ".join(f"`{c.value}`" for c in choices) + "."
    elif is_option and parameter.metavar:
        names += f" `{parameter.metavar}`"
    default = parameter.default
    shown = (
        "required"
        if parameter.required
        else ""
        if default in (None, "", False, ())
        else f"`{getattr(default, 'value', default)}`"
    )
    return [names, said, shown]


def rules() -> str:
    """The lint rules."""
    rows = [
        [r.code, r.severity.value + (", opt in" if r.opt_in else ""), r.finds.replace("{}", "`{}`")] for r in RULES.values()
    ]
    return f"{NOTE}# Lint rules\n\n" + table(["code", "severity", "finds"], rows)


def settings() -> str:
    """The settings with their defaults."""
    parts = [NOTE + "# Settings\n"]
    parts.append("`goldenctl.toml`, or `[tool.goldenctl]` in `pyproject.toml`, nearest first; a flag beats the file.\n")
    parts.append("An unknown key is an error that names the nearest valid one.\n")
    here = Path("…")
    tables: list[tuple[str, Any]] = [
        ("", config.Settings(here)),
        ("lint", config.LintSettings()),
        ("ci", config.CiSettings()),
        ("sync", config.SyncSettings()),
        ("mlflow", config.MlflowSettings()),
        ("store", config.StoreSettings()),
        ("tolerance", config.Tolerance()),
    ]
    for name, value in tables:
        title = f"[tool.goldenctl.{name}]" if name else "[tool.goldenctl]"
        suffix = ", one entry a metric" if name == "tolerance" else ""
        parts.append(f"## `{title}`{suffix}\n\n" + table(["key", "default", ""], _settings(value, name == "")))
    parts.append("### Defaults\n\n" + table(["metric", "tolerance"], _tolerances()))
    return "\n".join(parts)


def _settings(value: Any, plain: bool) -> list[list[str]]:
    notes = attribute_notes(type(value))
    keys = [k for k in notes if not plain or k in ("root", "layout", "platforms", "environments", "catalog")]
    spelled = {k: k.replace("_", "-") if k == "per_file_ignores" else k for k in keys}
    return [[f"`{spelled[k]}`", f"`{_toml(getattr(value, k))}`", notes[k]] for k in keys]


def _toml(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{}"
    return f'"{value}"' if isinstance(value, str) else "unset" if value is None else str(value)


def _tolerances() -> list[list[str]]:
    default = config.Tolerance()
    changed = {
        m: {
            k: getattr(t, k)
            for k in ("rtol", "atol", "exact", "bad_steps", "window", "direction")
            if getattr(t, k) != getattr(default, k)
        }
        for m, t in config.HARNESS_TOLERANCES.items()
    }
    return [[f"`{m}`", ", ".join(f"`{k} = {_toml(v)}`" for k, v in c.items()) or "as above"] for m, c in changed.items()]


def attribute_notes(kind: type) -> dict[str, str]:
    """Field → the docstring below it, in order; fields without one get an empty text."""
    found: dict[str, str] = {}
    last = ""
    for line in ast.walk(ast.parse(inspect.getsource(kind))):
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            last = line.target.id
            found[last] = ""
        elif last and isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str):
            found[last] = " ".join(_markdown(line.value.value).split())
            last = ""
    return found


def _markdown(text: str) -> str:
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    return text.replace("``", "`")


def catalog() -> str:
    """The tables of the catalog, from the schema itself."""
    schema = (Path(goldenctl.__file__).parent / "catalog/schema.sql").read_text("utf-8")
    parts = [
        NOTE + "# Catalog\n",
        "Every table is public. Times are UTC; a value that is not finite is IEEE NaN or an infinity, never null.\n",
    ]
    pattern = r"((?:^-- [^\n]*\n)*)^CREATE (TABLE|VIEW) \"?(\w+)\"?(?: \(\n(.*?)^\);| AS\n(.*?);$)"
    for comment, kind, name, body, query in re.findall(pattern, schema, re.MULTILINE | re.DOTALL):
        said = " ".join(line.removeprefix("-- ") for line in comment.splitlines() if not line.startswith("-- version"))
        parts.append(f"## {name}\n")
        if said:
            parts.append(said + "\n")
        parts.append(table(["column", "type", ""], _columns(body)) if kind == "TABLE" else f"```sql\n{query}\n```\n")
    return "\n".join(parts)


def _columns(body: str) -> list[list[str]]:
    rows = re.findall(r"^\s+\"?(\w+)\"? (.+?),?(?:\s*-- (.*))?$", body, re.MULTILINE)
    return [[f"`{name}`", kind.rstrip(",").replace(" NOT NULL", ""), said] for name, kind, said in rows]


def python() -> str:
    """A function for every command, and the object whose methods answer with Polars frames."""
    parts = [NOTE + "# Python\n", _text(goldenctl.api)]
    for name in goldenctl.api.__all__:
        function = getattr(goldenctl.api, name)
        if inspect.isfunction(function):
            parts.append(f"### api.{name}\n\n```python\n{name}{_signature(function)}\n```\n\n{_text(function)}")
    parts.append("### What an argument may be\n\n" + table(["type", ""], [[f"`{n}`", said] for n, said in _kinds()]))
    parts += ["## Catalog\n", "```python\nimport goldenctl\n\ncatalog = goldenctl.open_catalog()\ncatalog.syncs()\n```\n"]
    parts.append(_text(goldenctl.open_catalog))
    for name, method in inspect.getmembers(Catalog, inspect.isfunction):
        if not name.startswith("_"):
            parts.append(f"### {name}\n\n```python\n{name}{_signature(method)}\n```\n\n{_text(method)}")
    return "\n".join(parts)


def _kinds() -> Iterator[tuple[str, str]]:
    """The types of arguments, each with the text under it."""
    lines = ast.parse(inspect.getsource(importlib.import_module("goldenctl.api.twin"))).body
    for line, text in pairwise(lines):
        if isinstance(line, ast.Assign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            yield ast.unparse(line.targets[0]), _markdown(str(text.value.value))


def _signature(function: Callable[..., Any]) -> str:
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(function)))
    return re.sub(r"self(, )?", "", signature).replace("'", '"')


def _text(thing: object) -> str:
    """A numpy docstring as Markdown: sections become lists."""
    text = _markdown(inspect.getdoc(thing) or "")
    text = re.sub(r"\nExamples\n-+\n.*", "", text, flags=re.DOTALL)
    text = re.sub(r"^(Parameters|Returns|Raises)\n-+$", r"**\1**\n", text, flags=re.MULTILINE)
    text = re.sub(r"^(\w[\w., ]*)\n    (\S)", r"- *\1*: \2", text, flags=re.MULTILINE)
    return re.sub(r"\n    (?=\S)", " ", text).strip() + "\n"


PAGES = {"commands": commands, "rules": rules, "settings": settings, "catalog": catalog, "python": python}


def main(arguments: list[str]) -> int:
    """Write or check the pages."""
    wrong = 0
    for name, make in PAGES.items():
        path = DOCS / "reference" / f"{name}.md"
        text = make().rstrip() + "\n"
        if "--check" in arguments:
            if not path.exists() or path.read_text("utf-8") != text:
                print(f"{path} is not what the code makes; run: python docs/generate.py", file=sys.stderr)
                wrong = 1
        else:
            path.write_text(text, "utf-8")
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
