#!/usr/bin/env bash
# Verdicts on real data: verify and diff on the corpus, capture and tolerances from runs of a real GPU, the harness's traps,
# triage of a planted run, the gate broken on purpose, coverage, review. Fails when a figure is off.
. "$(dirname "$0")/common.sh"
need_corpus
ROOT=tests/functional_tests/test_cases
SYNC=e2d9e480297189473e36aa900c025c1c5403a7d0 # the sync of 2026-04-28
RUNS="$GOLDENCTL_CORPUS/gpu-runs"
cd "$WORK/corpus"

# 1. verify: the tips as the corpus's profile has them; a sync by date.
expect 0 goldenctl verify --against main --format json
json 'd["summary"]["identical"] == 754 and d["summary"]["absent"] == 7 and len(d["files"]) == 910'
expect 0 goldenctl verify --at "$SYNC" --against sync:2026-04-28 --require identical
said "verify: 754 of dev's 910 goldens are main's, 7 are not on main; the sync matches itself by date"

# 2. diff: the sync's two parents, on which the old comparator crashed.
expect 0 goldenctl diff "$SYNC^1" "$SYNC^2" --format json
json 'd["summary"] == {"identical": 492, "changed": 325, "added": 56}'
json 'not any(m["exact"] and m["worst_step"] is not None for f in d["files"] for m in f["metrics"])'
expect 1 goldenctl diff "$SYNC^1" "$SYNC^2" --metric "lm loss" --threshold 0.05 --exit-code --format csv
said "diff: 381 goldens of the sync of 2026-04-28 differ between its parents"

# 3. capture: deterministic runs give the same document, faults are refused or differ.
for i in 0 1; do expect 0 goldenctl capture "$RUNS/gpt_tiny_deterministic/run_$i" -o "$WORK/run_$i.json"; done
expect 0 goldenctl check "$WORK/run_1.json" "$WORK/run_0.json" --metric "lm loss" --metric num-zeros
expect 1 goldenctl capture "$RUNS/gpt_tiny_fault_overflow/run_0"
grep -q "'lm loss' at steps 40, 41, 42, 43, 44, … (61 in all)" "$WORK/err" || fail "the overflow is not named"
expect 0 goldenctl capture "$RUNS/gpt_tiny_fault_scaled_loss/run_0" -o "$WORK/scaled.json"
expect 1 goldenctl check "$WORK/scaled.json" "$WORK/run_0.json" --metric "lm loss" --format json
json 'd["metrics"][0]["exact"] is False and d["metrics"][0]["approximate"] is True'
said "capture and check: two deterministic runs agree bit for bit; a loss scaled by 2 % passes 5 % and fails the exact lane"

# 4. tolerance: exact where runs agree, the real noise where they do not.
expect 0 goldenctl tolerance --from-runs "$RUNS/gpt_tiny_deterministic" --metric "lm loss" --format json
json '[m["exact"] for m in d["metrics"]] == [True]'
expect 0 goldenctl tolerance --from-runs "$RUNS/moe_tiny_nondeterministic" --metric "lm loss" --for "moe/*" --format json
json '0.0003 < d["metrics"][0]["rtol"] < 0.001 and d["metrics"][0]["held_out_failed"] == 0'
json 'd["metrics"][0]["false_alarm"] < 0.01 and d["metrics"][0]["catches"] < 0.02'
said "tolerance: about 0.05 % for the noisy mixture of experts, far below a fault of 2 %"

# 5. The harness's traps: exactly the allowed bad step at T = 19, strings as infinity.
python - "$WORK" <<'PY'
import json, pathlib, sys
def doc(values):
    grid = {"start_step": 1, "end_step": 19, "step_interval": 1}
    return json.dumps({"lm loss": grid | {"values": {str(k): v for k, v in values.items()}}})
flat = {s: 1.0 for s in range(1, 20)}
folder = pathlib.Path(sys.argv[1])
(folder / "flat.json").write_text(doc(flat))
(folder / "one_bad.json").write_text(doc(flat | {3: 2.0}))
(folder / "nan_golden.json").write_text(doc(flat | {19: "nan"}))
(folder / "short.json").write_text(doc({s: v for s, v in flat.items() if s < 19}))
(folder / "c.yaml").write_text("METRICS: [lm loss]\nENV_VARS:\n  NON_DETERMINSTIC_RESULTS: 1\n")
PY
check() { goldenctl check "$WORK/$1.json" "$WORK/$2.json" --config "$WORK/c.yaml" --rules "$3" --format json; }
expect 1 check one_bad flat harness
expect 0 check one_bad flat strict
json 'd["differs"][0]["harness"] is False and "rounding" in d["differs"][0]["why"]'
expect 0 check short nan_golden harness
expect 1 check short nan_golden strict
said "check: the harness refuses 1 bad step of 19 and lets a lost step beside \"nan\" pass; strict rules do neither"

# 6. triage: one golden drifts, one is truncated, one is as it was.
python - "$ROOT" "$WORK/run" <<'PY'
import json, pathlib, sys
root, run = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
goldens = [p for p in sorted(root.rglob("golden_values_dev_dgx_h100.json")) if len(p.relative_to(root).parts) == 3]
sound = [p for p in goldens if p.stat().st_size and "nan" not in p.read_text()
         and "lm loss" in json.loads(p.read_text()) and "num-zeros" in json.loads(p.read_text())][:3]
for i, path in enumerate(sound):
    document = json.loads(path.read_text())
    values = document["lm loss"]["values"]
    if i == 1:
        document["lm loss"]["values"] = {k: v * 1.001 for k, v in values.items()}
    if i == 2:
        document["lm loss"]["values"] = dict(list(values.items())[: len(values) // 2])
    place = run / path.relative_to(root)
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(document))
PY
expect 1 goldenctl triage --from-job "$WORK/run" --format json
json 'd["counts"] == {"dgx_h100": {"drift-only": 1, "passed": 1, "truncated": 1}}'
json 'd["commands"] and "--platform dgx_h100 --case" in d["commands"][0]'
said "triage: one passed, one drift only, one truncated, with the command that refreshes the drift"

# 7. The gate broken on purpose, and the twin folder.
expect 0 goldenctl gate-audit --rules strict
expect 1 goldenctl gate-audit --rules harness --format json
json 'd["audits"][0]["let_through"] == ["NaN in golden, run cut", "numbers as text"]'
expect 0 goldenctl coverage --format json
json '["nemotron/nemotron3_super_release_g200", "nemotron/nemotron3_super_release_gb200"] in d["twins"]'
said "gate-audit: strict catches all, the harness lets two through; coverage: the g200 twin folder"

# 8. A test proposes, a review accepts; the golden is never changed before.
mkdir -p "$WORK/project/goldens/moe/tiny"
cd "$WORK/project"
git init -q
GOLDEN=goldens/moe/tiny/golden_values_dev_dgx_h100.json
cp "$WORK/run_0.json" "$GOLDEN"
git add -A && git commit -qm goldens
cat > test_training.py <<PY
def test_training(golden):
    golden.assert_matches("$WORK/scaled.json", "$GOLDEN", metrics=("lm loss",))
PY
expect 1 python -m pytest -q -p no:cacheprovider test_training.py
expect 0 python -m pytest -q -p no:cacheprovider --golden-update test_training.py
git diff --quiet -- goldens || fail "the golden changed before the review"
expect 1 goldenctl review --format json
json '[f["state"] for f in d["files"]] == ["pending"]'
expect 0 goldenctl review --accept "moe/*"
cmp "$GOLDEN" "$WORK/scaled.json" || fail "the accepted golden is not what was proposed"
said "pytest plugin and review: fails, proposes, changes the golden only when accepted"
