"""Take the schemas the GitHub double is validated against out of GitHub's published OpenAPI description.

Usage: ``npm pack @octokit/openapi && tar xzf octokit-openapi-*.tgz``, then
``python tests/doubles/openapi/extract.py package/generated/api.github.com.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PATHS = {
    "run": "/repos/{owner}/{repo}/actions/runs/{run_id}",
    "jobs": "/repos/{owner}/{repo}/actions/runs/{run_id}/jobs",
    "artifacts": "/repos/{owner}/{repo}/actions/runs/{run_id}/artifacts",
}
DROPPED = {"description", "example", "examples", "title", "x-github"}
PREFIX = "#/components/schemas/"


def slim(node: Any, *, names: bool = False) -> Any:
    """A schema without what only readers need; ``names`` marks an object of property names."""
    if isinstance(node, dict):
        kept = node.items() if names else ((k, v) for k, v in node.items() if k not in DROPPED)
        return {k: slim(v, names=k in ("properties", "$defs") and not names) for k, v in kept}
    if isinstance(node, list):
        return [slim(v) for v in node]
    return node.replace(PREFIX, "#/$defs/") if isinstance(node, str) else node


def referenced(node: Any) -> set[str]:
    """Names of the schemas a schema refers to."""
    if isinstance(node, dict):
        own = {node["$ref"].removeprefix(PREFIX)} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(referenced(v) for v in node.values())) if node else own
    return set().union(*(referenced(v) for v in node)) if isinstance(node, list) and node else set()


def extract(description: dict[str, Any], path: str) -> dict[str, Any]:
    """The schema of the answer to a GET, with all it refers to."""
    schema = description["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    schemas = description["components"]["schemas"]
    todo, done = referenced(schema), dict[str, Any]()
    while todo:
        name = todo.pop()
        done[name] = schemas[name]
        todo |= referenced(schemas[name]) - done.keys()
    return {**slim(schema), "$defs": {n: slim(s) for n, s in sorted(done.items())}}


def main() -> None:
    """Write one file per answer, and one for errors."""
    description = json.loads(Path(sys.argv[1]).read_bytes())
    here = Path(__file__).parent
    found = {name: extract(description, path) for name, path in PATHS.items()}
    found["error"] = slim(description["components"]["schemas"]["basic-error"])
    for name, schema in found.items():
        (here / f"{name}.json").write_text(json.dumps(schema, sort_keys=True, separators=(",", ":")) + "\n")
    sys.stdout.write(f"version {description['info']['version']}\n")


if __name__ == "__main__":
    main()
