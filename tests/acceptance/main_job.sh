#!/usr/bin/env bash
# The main job as a newcomer does it from the README, on the corpus of real golden files: lint, hook, refresh from a
# GitHub Actions run, match, write back, record. Fails when a figure is off.
. "$(dirname "$0")/common.sh"
need_corpus
ROOT=tests/functional_tests/test_cases
SYNC=e2d9e480297189473e36aa900c025c1c5403a7d0 # the sync of 2026-04-28
cd "$WORK/corpus"

# 1. Lint: the figures of both tips.
expect 1 goldenctl lint --format json
json 'd["files_checked"] == 910 and d["summary"]["GV001"] == 250416'
json 'len({f["path"] for f in d["findings"] if f["rule"] == "GV001"}) == 470'
json 'len({f["path"] for f in d["findings"] if f["rule"] == "GV003"}) == 9'
said "lint at dev: 910 files, 250,416 non-finite values in 470 files, 9 empty files"
git checkout -q main
expect 1 goldenctl lint --format json
json 'd["files_checked"] == 905 and d["summary"]["GV001"] == 250164'
json 'len({f["path"] for f in d["findings"] if f["rule"] == "GV001"}) == 468'
json 'len({f["path"] for f in d["findings"] if f["rule"] == "GV003"}) == 7'
said "lint at main: 905 files, 250,164 non-finite values in 468 files, 7 empty files"
git checkout -q dev

# 2. A baseline lets the known findings shrink and never grow.
expect 0 goldenctl lint --baseline "$WORK/known.json" --write-baseline
expect 0 goldenctl lint --baseline "$WORK/known.json"
clean="$(goldenctl lint --baseline "$WORK/known.json" --format json | python -c '
import json, pathlib, sys
known = {f["path"] for f in json.load(sys.stdin)["findings"]}
print(next(str(p) for p in sorted(pathlib.Path(sys.argv[1]).rglob("golden_values_dev_dgx_h100.json")) if str(p) not in known))
' "$ROOT")"
cp "$clean" "$WORK/clean.json"
python - "$clean" <<'PY'
import json, pathlib, sys
path = pathlib.Path(sys.argv[1])
document = json.loads(path.read_text())
values = document["lm loss"]["values"]
values[list(values)[3]] = "nan"
path.write_text(json.dumps(document, indent=4))
PY
expect 1 goldenctl lint --baseline "$WORK/known.json"
said "a new NaN fails a lint whose baseline knows the old ones"

# 3. The pre-commit hook blocks the NaN and looks at staged files only.
git -C "$TOP" rev-parse HEAD >"$WORK/head"
cat >.pre-commit-config.yaml <<YAML
repos:
  - repo: $TOP
    rev: $(cat "$WORK/head")
    hooks:
      - id: goldenctl-lint
YAML
export PRE_COMMIT_HOME="$WORK/pre-commit"
git add .pre-commit-config.yaml "$clean"
expect 1 pre-commit run
holds "$WORK/out" "'lm loss'"
holds "$WORK/out" "1 golden files, 1 findings"
holds "$WORK/out" "goldenctl refresh"
hook="$(echo "$PRE_COMMIT_HOME"/repo*/py_env-*/bin/python)"
for heavy in boto3 mlflow nbclient; do
  if "$hook" -c "import $heavy" 2>/dev/null; then fail "the hook installs $heavy"; fi
done
cp "$WORK/clean.json" "$clean"
git add "$clean"
expect 0 pre-commit run
git checkout -q -f dev
said "the pre-commit hook stops a NaN, names metric and repair, and lints the staged file alone"

# 4. Refresh from a GitHub Actions run into dev before the sync, matched against the sync.
git checkout -q -b before "$SYNC^1"
python "$TOP/tests/acceptance/plant_run.py" "$WORK/corpus" "$SYNC" "$WORK/run"
PLANTED="$(ls "$WORK"/run/*.zip | wc -l)"
[ "$PLANTED" -ge 10 ] || fail "only $PLANTED artifacts could be planted"
(cd "$TOP" && exec python -m tests.doubles.github --repository example/megatron --run "$WORK/run" --port-file "$WORK/port") &
CHILDREN+=($!)
for _ in $(seq 100); do [ -s "$WORK/port" ] && break; sleep 0.1; done
export GITHUB_API_URL="http://127.0.0.1:$(cat "$WORK/port")" GITHUB_REPOSITORY=example/megatron GITHUB_TOKEN=not-a-real-token
expect 0 goldenctl refresh --from-job github:34695381473 --match "sync:$SYNC" --require identical --dry-run --format json
json 'd["run"]["provider"] == "github" and {f["action"] for f in d["files"]} == {"would-write"}'
[ -z "$(git status --porcelain)" ] || fail "a dry run changed the tree"
expect 0 goldenctl refresh --from-job github:34695381473 --match "sync:$SYNC" --require identical --yes --commit --format json
json 'd["summary"]["written"] == '"$PLANTED"' and all(m["level"] == "identical" for f in d["files"] for m in f["matches"])'
[ -z "$(git status --porcelain)" ] || fail "files are left uncommitted"
git log -1 --format=%B >"$WORK/message"
[ "$(grep -c '^Golden-Artifact: ' "$WORK/message")" = "$PLANTED" ] || fail "the commit lacks trailers"
git diff --quiet HEAD "$SYNC" -- $(git show --name-only --format= HEAD) || fail "the files are not those of the sync"
said "$PLANTED goldens taken from github:34695381473, byte for byte those of the sync, committed with their provenance"
if grep -rqF not-a-real-token .goldenctl "$WORK/out" "$WORK/err" "$WORK/message"; then fail "the token was written somewhere"; fi

# 5. Every file the sync took from main is identical when it is taken from main's side.
git checkout -q -f -B before "$SYNC^1"
expect 1 goldenctl refresh --from-job "git:$SYNC^2" --match "$SYNC" --dry-run --format json
git diff --no-renames --name-only --diff-filter=AM "$SYNC^1" "$SYNC" -- "$ROOT" >"$WORK/changed"
git diff --no-renames --name-only "$SYNC^2" "$SYNC" -- "$ROOT" >"$WORK/own"
grep -vxFf "$WORK/own" "$WORK/changed" | grep 'golden_values.*json$' >"$WORK/taken" || true
json "(lambda taken, levels: len(taken) > 300 and all(levels.get(p) == 'identical' for p in taken))(
  open('$WORK/taken').read().split(), {f['path']: f['matches'][0]['level'] for f in d['files']})"
said "$(wc -l <"$WORK/taken") files the sync took from main: each identical"

# 6. The catalog knows the refresh.
git checkout -q before
expect 0 goldenctl catalog status
expect 0 goldenctl catalog sql --format csv "SELECT count(*) AS files FROM refresh_file WHERE action = 'written'"
[ "$(tail -1 "$WORK/out" | tr -d '\r')" = "$PLANTED" ] || fail "the catalog has not $PLANTED written files: $(cat "$WORK/out")"
expect 0 goldenctl catalog export --to "$WORK/parquet"
ls "$WORK"/parquet/*.parquet >/dev/null
said "the catalog holds the refresh and exports it"
