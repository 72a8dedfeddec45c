"""Read CI recipes: which case runs on which platform and environment, in which scope, with which golden.

A recipe has a ``spec`` with defaults and ``products``. A product names one test case and holds inner products, each a
mapping of lists that is expanded as a cartesian product over every key but ``cadence``. A row overrides the spec. The
golden path is the template behind ``GOLDEN_VALUES_PATH=`` in the script.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from goldenctl import yamlfile
from goldenctl.yamlfile import text

GOLDEN_PATH = re.compile(r"""GOLDEN_VALUES_PATH=([^\s"']+)""")
PREFIXES = ("./", "/opt/megatron-lm/")
"""What stands before the path from the repository's top."""
MOST = 10_000
"""Rows of one product; the largest known has some twenty."""
INACTIVE = re.compile(r".*(broken|disabled)|flaky|deprecated")
"""Scopes that nothing selects, by convention."""
ALIASES = {"mr-github-slim": "L0", "mr-github": "L1", "nightly": "L2", "weekly": "L3"}


@dataclass(frozen=True, slots=True)
class Row:
    """One run of one case, expanded."""

    model: str
    test_case: str
    environment: str
    platform: str
    scope: str
    """As the recipe says it, aliases resolved (``L0`` … ``L3``); empty when it says none."""
    golden: str
    """Golden path from the repository's top; empty when the script names none."""
    recipe: str
    """The recipe's path."""

    @property
    def active(self) -> bool:
        """Whether some pipeline selects the scope."""
        return not INACTIVE.fullmatch(self.scope)

    @property
    def case(self) -> str:
        """``model/test_case``."""
        return f"{self.model}/{self.test_case}"


class RecipeError(ValueError):
    """Bytes that are no recipe; the message is the reason."""


def parse(raw: bytes, name: str) -> tuple[Row, ...]:
    """The rows of a recipe, empty for a file of another type.

    Raises
    ------
    RecipeError
        Not YAML, or a product that expands without bound.
    """
    try:
        value = yamlfile.load(raw)
    except yamlfile.YamlError as exc:
        raise RecipeError(f"is not readable YAML: {exc}") from exc
    if not isinstance(value, Mapping):
        return ()
    spec, products = value.get("spec"), value.get("products")
    if not isinstance(spec, Mapping) or not isinstance(products, list):
        return ()
    return tuple(_row(spec, row, name) for product in products for row in _expanded(product))


def _expanded(product: Any) -> Iterator[dict[str, Any]]:
    """Rows of one product; one without inner products is ignored."""
    if not isinstance(product, Mapping) or not isinstance(product.get("products"), list):
        return
    cases = product.get("test_case")
    first = cases[0] if isinstance(cases, list) and cases else cases
    for inner in product["products"]:
        if not isinstance(inner, Mapping):
            continue
        keys = [k for k in inner if k != "cadence"]
        lists = [inner[k] if isinstance(inner[k], list) else [inner[k]] for k in keys]
        if math.prod(map(len, lists)) > MOST:
            raise RecipeError(f"one product expands to more than {MOST} rows")
        for values in itertools.product(*lists):
            yield {"test_case": first} | dict(zip(keys, values, strict=True))


def _row(spec: Mapping[str, Any], row: Mapping[str, Any], name: str) -> Row:
    merged = {text(k): v for k, v in {**spec, **row}.items()}
    said = {k: text(merged.get(k) or "") for k in ("model", "test_case", "environment", "platforms", "scope")}
    script = text(merged.get("script") or "")
    found = GOLDEN_PATH.search(script)
    golden = _filled(found[1], merged) if found else ""
    scope = ALIASES.get(said["scope"], said["scope"])
    return Row(said["model"], said["test_case"], said["environment"], said["platforms"], scope, golden, name)


def _filled(template: str, row: Mapping[str, Any]) -> str:
    """A path template with its placeholders filled; one that names an unknown placeholder is kept as it is."""
    path = re.sub(r"\{(\w+)\}", lambda m: text(row[m[1]]) if m[1] in row else m[0], template)
    for prefix in PREFIXES:
        path = path.removeprefix(prefix)
    return path
