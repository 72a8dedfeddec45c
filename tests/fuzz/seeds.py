"""First cases of each target, from which the fuzzer goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).parents[2]
_DOCUMENTS = (
    b"", b"{}", b"[]", b'"{}"',
    b'{"lm loss": {"start_step": 1, "end_step": 2, "step_interval": 1, "values": {"1": 1.5, "2": "nan"}}}',
    b'{"lm loss": {"start_step": 0, "end_step": 2, "step_interval": 1, "values": [1, -2e3]}}', b'{"a": {"values": {"1": NaN}}}',
    b'{"0": {"input_prompt": "x", "generated_text": "y", "latency": 1.5, "logprobs": [-1, -2]}, "throughput": [1, 2]}',
    b'{"throughput": [1.5, 2.5]}', b'{"baseline": {"0": {"lm loss": 1}, "1": {"lm loss": 2}, "alloc": 3}}',
    b'"{\\"lm loss\\": {\\"values\\": {\\"1\\": 1}}}"', b"<<<<<<< ours\n{}\n=======\n{}\n>>>>>>> theirs\n",
    b'{"generated_text": "x", "a": [[[[]]]], "b": "\\ud800"}', b'{"a": {"values": {"1": 1e400, "2": 99999999999999999999}}}',
)  # fmt: skip
_SETTINGS = (
    b'root = "goldens"\nlayout = "{model}/{test_case}/golden_values_{environment}_{platform}{variant}.json"\n',
    b'catalog = ".goldenctl/catalog.duckdb"\narchive = "s3://b/p"\nplatforms = ["dgx_h100"]\nenvironments = ["dev"]\n',
    b'[lint]\nselect = ["GV001"]\nbaseline = "known.json"\nmax-bytes = 5\n[lint.per-file-ignores]\n"*.json" = ["GV001"]\n',
    b'[tolerance]\n"lm loss@moe/*" = {rtol = 0.1, exact = true, bad_steps = 3, window = "median"}\n[sync]\nsubjects = ["a"]\n',
    b'[ci]\nprovider = "github"\napi_url = "https://x"\n[mlflow]\nmetrics = {a = "b"}\n[store]\nmetadata = "x"\ndata = "y"\n',
)
_CONFIGURATIONS = (
    b"MODEL_ARGS:\n  --train-iters: 50\nENV_VARS:\n  SKIP_PYTEST: 1\nMETRICS:\n  - lm loss\nMODE: pretraining\n",
    b"spec: {model: moe, script: 'x /a/{model}/golden_values.json'}\nproducts:\n"
    b"- test_case: [a]\n  products:\n  - platforms: [p]\n",
    b"a: &a [x, x]\nMETRICS: [*a, *a]\nMODE: *a\n",
)


def of(target: str) -> Iterator[bytes]:
    """Seeds of a target."""
    goldens = [p.read_bytes() for p in sorted((TOP / "goldens").rglob("*.json"))[:3]]
    zips = [p.read_bytes() for p in sorted((TOP / "data/runs").rglob("*.zip"))[:3]]
    documents = (*_DOCUMENTS, *(g[:3000] for g in goldens), *goldens[:1])
    match target:
        case "document":
            yield from documents
        case "pair":
            yield from (a + b"\n\n" + b for a in documents[4:9] for b in documents[4:9])
        case "edits":
            yield from (bytes([i % 4, i, i]) + raw for i, raw in enumerate(documents * 4))
        case "archive":
            yield from (bytes([how]) + raw for raw in zips for how in (1, 3, 5))
            yield from (bytes([how, *range(how, 250)]) for how in (0, 2, 4, 6))
        case "settings":
            yield from _SETTINGS
        case "configuration":
            yield from _CONFIGURATIONS
        case "layout":
            yield from (b"moe|a|dev|dgx_h100|", b"moe/a/golden_values_dev_dgx_h100_2nd.json|..|x|y|_2nd|z|{model}/{test_case}")
        case "trailers":
            yield from (
                b"\x03a/b\x01r\x021:\x00Golden-Run: github:1\n",
                b'\x04a "\\\x03\n\r\t\x01x\x01yGolden-Artifact: a sha256:b\n',
            )
        case _:
            yield from (bytes(300), bytes(range(256)) * 2, bytes((i * 37) % 256 for i in range(500)))
