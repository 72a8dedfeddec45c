#!/usr/bin/env bash
# The catalog of the whole history of real golden files: its counts, the life of NaN in five goldens read from `log`,
# the landings of the profile, two commits compared, kills and readers, speeds as ratios. Fails when a figure is off.
. "$(dirname "$0")/common.sh"
need_corpus
cd "$WORK/corpus"
SYNC=e2d9e480297189473e36aa900c025c1c5403a7d0 # the sync of 2026-04-28

# sql QUERY VALUE: the only cell of a query's answer.
sql() {
  expect 0 goldenctl catalog sql "$1" --format csv
  [ "$(sed -n 2p "$WORK/out")" = "$2" ] || fail "$1 gave $(sed -n 2p "$WORK/out"), expected $2"
}

# 1. A build that is killed on its way goes on where it was; a reader gets its turn meanwhile.
goldenctl catalog build >/dev/null 2>&1 &
build=$!
for _ in $(seq 300); do
  [ "$(goldenctl catalog sql 'SELECT count(*) FROM document' --format csv 2>/dev/null | tail -1)" -gt 0 ] 2>/dev/null && break
done
kill -9 $build 2>/dev/null || true
wait $build 2>/dev/null || true
before="$(goldenctl catalog sql 'SELECT count(*) FROM document' --format csv | tail -1)"
expect 0 goldenctl catalog build --format json
json "d['commits'] == 413 and d['documents'] == 4898 and d['new_documents'] == 4898 - $before"
said "a build killed after $before documents reads the other $((4898 - before))"
expect 0 goldenctl catalog update
holds "$WORK/out" "the catalog is up to date"
expect 0 goldenctl catalog build --format json
json "d['new_documents'] == 0"

# 2. The counts of the profile.
sql 'SELECT count(*) FROM "commit"' 413
sql 'SELECT count(*) FROM document' 4898
sql 'SELECT sum(size) FROM document' 98438619
sql 'SELECT count(DISTINCT path) FROM revision' 2515
sql 'SELECT count(*) FROM golden WHERE alive' 912
sql 'SELECT count(*) - count(DISTINCT (content, step)) FROM "value"' 0
sql 'SELECT count(DISTINCT content) BETWEEN 13500 AND 14500 FROM series' true
sql 'SELECT count(*) FROM "value" WHERE "value" IS NULL' 0
sql 'SELECT count(*) FROM document WHERE bare_constants' 3
for tip in dev,250416,470 main,250164,468; do
  expect 0 goldenctl catalog sql "WITH tip AS (
      SELECT r.* FROM revision AS r JOIN line AS l USING (\"commit\") WHERE l.branch = '${tip%%,*}'
      QUALIFY l.position = max(l.position) OVER (PARTITION BY r.golden)
    ) SELECT sum(n_nan + n_inf), count(DISTINCT path) FROM tip JOIN series USING (document) WHERE n_nan + n_inf > 0" --format csv
  holds "$WORK/out" "${tip#*,}"
done
said "413 commits, 4,898 documents, 2,515 paths, each distinct series content once, NaN as lint counts it"

# 3. Every landing that is in the bundle, and no branch merge.
goldenctl catalog sql "SELECT \"commit\" FROM sync WHERE kind <> 'revert' ORDER BY 1" --format csv | sed 1d >"$WORK/found"
python - "$GOLDENCTL_CORPUS/syncs.json" >"$WORK/truth" <<'PY'
import json, sys
kinds = ("merge-landing", "squash-landing")
print(*sorted(e["rewritten"] for e in json.load(open(sys.argv[1])) if e["kind"] in kinds and e["rewritten"]), sep="\n")
PY
diff "$WORK/found" "$WORK/truth" >&2 || fail "other landings than syncs.json has"
while read -r landing files; do
  sql "SELECT count(*) FROM revision WHERE starts_with(\"commit\", '$landing')" "$files"
done <<'ROWS'
945d456fe0 73
5e42df89d5 4
02a46499ec 84
6f76b1a47b 10
233e1b29f4 18
bee92e33e6 9
82fa7aa169 143
e2d9e48029 381
75bb0433b0 116
ROWS
said "18 landings, with as many files changed as the profile says"

# 4. The life of NaN. life BRANCH PATH METRIC COMMIT:NAN:STEPS…: these revisions have that many NaN of that many steps.
life() {
  local branch="$1" path="$2" metric="$3"
  shift 3
  expect 0 goldenctl log "$path" --branch "$branch" --metric "$metric" --format json
  for step in "$@"; do
    IFS=: read -r commit nan steps <<<"$step"
    json "[(r['nan'], r['values']) for r in d['revisions'] if r['commit'].startswith('$commit')] == [($nan, $steps)]"
  done
}
life main gpt/gpt3_15b_8t_release_sm_gb200/golden_values_dev_dgx_gb200.json "lm loss" 2a1479269f:57:2601 ead04db73c:0:2601
life main gpt/gpt3_345m_nightly_dgx_a100_1N8G_tp1_pp4_resume_torch/golden_values_lts.json "lm loss" \
  50fdb738ca:1:21 0895399482:0:21
life main moe/gpt3_moe_mcore_te_tp2_pp2_ep4_etp1_fine_grained_offloading/golden_values_dev_dgx_h100.json "lm loss" \
  7af74a0c71:11:50 2048506d79:19:50 dca5352cd6:0:50
life dev gpt/gpt3_15b_8t_release_sm/golden_values_dev_dgx_h100.json "lm loss" \
  078a1b6862:57:2601 912e1fa666:0:2041 82fa7aa169:57:2601
life main mixtral/deepseekv3_proxy_flex_tp1pp4emp16etp1cp1_release_sm/golden_values_dev_dgx_h100.json "iteration-time" \
  650043d96f:3:1908 ead04db73c:2:1908
said "the life of NaN in five goldens"

# 5. Today's NaN of dev came from main, by the sync that undid dev's repair.
expect 0 goldenctl blame gpt/gpt3_15b_8t_release_sm/golden_values_dev_dgx_h100.json --format json
json "{(m['via'], m['commit'][:10]) for m in d['metrics']} == {('sync:82fa7aa169', 'ead04db73c')}"
said "blame names the upstream commit and the sync that brought it"

# 6. The two parents of a sync.
expect 0 goldenctl diff "$SYNC^1" "$SYNC^2" --format json
json 'collections.Counter(f["status"] for f in d["files"] if f["status"] != "identical") == {"changed": 325, "added": 56}'
python - <<PY || fail "the catalog compares the two parents otherwise"
import goldenctl
catalog = goldenctl.open_catalog()
parents = catalog.commits().filter(id="$SYNC")["parents"][0]
assert catalog.changes(*parents)["path"].n_unique() <= 381
assert catalog.tree("sync:2026-04-28").height == 873
PY
said "381 goldens differ between the parents of the sync of 2026-04-28"

# 7. Drift, and SQL that can harm nothing.
expect 1 goldenctl drift "gpt/gpt3_mcore_te_tp1_pp4_vp1_uneven_pipeline" --metric iteration-time --budget 3 --format json
json 'any(c["direction"] == "up" for c in d["changes"]) and any(x["over_budget"] for x in d["drift"])'
for query in "SELECT * FROM '/etc/passwd'" "COPY golden TO '$WORK/leak.csv'" "DELETE FROM golden" "ATTACH '$WORK/leak.duckdb'"; do
  expect 2 goldenctl catalog sql "$query"
done
[ ! -e "$WORK/leak.csv" ] && [ ! -e "$WORK/leak.duckdb" ] || fail "SQL reached a file"
expect 0 goldenctl catalog export --to "$WORK/parquet"
[ "$(ls "$WORK/parquet" | wc -l)" = 15 ] || fail "not every table was exported"
said "drift beyond a budget ends in 1; SQL reaches no file; every table is exported"

# 8. Speeds, as ratios.
python "$TOP/bench/run.py" catalog
