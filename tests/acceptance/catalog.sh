#!/usr/bin/env bash
# The catalog of the whole history of the corpus: its counts, the life of NaN, the landings of syncs, the difference of a
# sync's two parents, and the measured ratios. Fails when a figure is off.
. "$(dirname "$0")/common.sh"
need_corpus
cd "$WORK/corpus"
ROOT=tests/functional_tests/test_cases

# 1. Build, count, build again.
expect 0 goldenctl catalog build
expect 0 goldenctl catalog status --format json
json 'd["rows"]["commit"] == 413 and d["rows"]["document"] == 4898'
expect 0 goldenctl catalog sql --format json "SELECT count(DISTINCT path) AS paths FROM revision"
holds "$WORK/out" 2515
said "413 commits, 4,898 documents, 2,515 paths ever"
expect 0 goldenctl catalog sql --format json "SELECT count(DISTINCT content) AS contents FROM series"
python - "$WORK/out" <<'PY' || fail "distinct series contents"
import re, sys
sys.exit(not 13_900 <= int(re.search(r"\d{5}", open(sys.argv[1]).read())[0]) <= 14_300)
PY
expect 0 goldenctl catalog sql --format json "SELECT count(*) AS twice FROM (SELECT content, step FROM \"value\" GROUP BY ALL HAVING count(*) > 1)"
holds "$WORK/out" 0
said "each distinct content of a series is stored once, some 14,000 of 25,000"
cp .goldenctl/catalog.duckdb "$WORK/before.duckdb"
expect 0 goldenctl catalog update
cmp -s .goldenctl/catalog.duckdb "$WORK/before.duckdb" || fail "an update with nothing new wrote to the catalog"
said "an update with nothing new changes nothing"

# 2. The life of NaN as corpus.md has it: commit and number of NaN after it, where that number changed.
life() {
  expect 0 goldenctl log "$ROOT/$2" --branch "$1" --metric "$3" --format json
  json "[(r['commit'][:10], r['nan']) for r in d['revisions'] if r['nan_in'] or r['nan_out']] == $4"
}
life main gpt/gpt3_15b_8t_release_sm_gb200/golden_values_dev_dgx_gb200.json 'lm loss' '[("2a1479269f", 57), ("ead04db73c", 0)]'
life main gpt/gpt3_345m_nightly_dgx_a100_1N8G_tp1_pp4_resume_torch/golden_values_lts.json 'lm loss' '[("50fdb738ca", 1), ("0895399482", 0)]'
life main moe/gpt3_moe_mcore_te_tp2_pp2_ep4_etp1_fine_grained_offloading/golden_values_dev_dgx_h100.json 'lm loss' \
  '[("7af74a0c71", 11), ("2048506d79", 19), ("dca5352cd6", 0)]'
life main moe/gpt3_moe_mcore_te_tp2_pp2_ep4_etp1_fine_grained_offloading/golden_values_dev_dgx_h100.json 'mtp_1 loss' \
  '[("7af74a0c71", 11), ("2048506d79", 19), ("dca5352cd6", 0)]'
life main gpt/gpt3_15b_8t_release_sm_gb200/golden_values_dev_dgx_gb200.json num-zeros '[("2a1479269f", 57), ("ead04db73c", 0)]'
said "the life of NaN in five series is read from the log"
expect 0 goldenctl log "$ROOT/gpt/gpt3_15b_8t_release_sm/golden_values_dev_dgx_h100.json" --branch dev --metric "lm loss" --format json
json '[(r["commit"][:10], r["nan_out"], r["nan_in"]) for r in d["revisions"]][-2:] == [("912e1fa666", 57, 0), ("82fa7aa169", 0, 57)]'
said "a sync that undid a repair on dev is seen in the log"

# 3. The landings of syncs: every one of syncs.json that is in the bundle, and no branch merge.
expect 0 goldenctl catalog sql --format csv "SELECT \"commit\" FROM sync"
python - "$WORK/out" "$GOLDENCTL_CORPUS/syncs.json" <<'PY' || fail "the landings are not those of syncs.json"
import json, sys

found = set(open(sys.argv[1]).read().split())
events = [e for e in json.load(open(sys.argv[2])) if e["rewritten_is"] == "self"]
landings = {e["rewritten"] for e in events if e["kind"] in ("merge-landing", "squash-landing")}
others = {e["rewritten"] for e in events if e["kind"].startswith("branch-merge")}
sys.exit(not (len(landings) > 10 and landings <= found and not others & found))
PY
said "every landing of syncs.json, and no branch merge"

# 4. The difference of the two parents of the sync of 2026-04-28.
SYNC=e2d9e480297189473e36aa900c025c1c5403a7d0
expect 0 goldenctl diff "$SYNC^1" "$SYNC^2" --format json
json 'collections.Counter(f["status"] for f in d["files"]) == {"identical": 492, "changed": 325, "added": 56}'
said "the two parents of the sync of 2026-04-28: 325 goldens changed, 56 added, 492 identical, and no crash"

# 5. Other questions.
expect 0 goldenctl blame "$ROOT/gpt/gpt3_15b_8t_release_sm/golden_values_dev_dgx_h100.json" --format json
json '[(m["commit"][:10], m["via"]) for m in d["metrics"] if m["metric"] == "lm loss"] == [("ead04db73c", "sync:82fa7aa169")]'
expect 0 goldenctl drift "gpt/gpt3_mcore_te_tp*" --format json
json '"changes" in d'
expect 2 goldenctl catalog sql "SELECT * FROM read_csv('/etc/passwd')"
said "blame, drift, and SQL that reaches no file"
(cd "$TOP" && python bench/run.py catalog diff) # ratios beside their limits
