#!/usr/bin/env bash
# Syncs as a maintainer meets them: audit the landings of the real history, bring a lost golden back, and replay one
# whole sync (plan, merge with the driver, refresh, audit) in a repository built for it. Fails when a figure is off.
. "$(dirname "$0")/common.sh"

# 1. A built repository: dev has NaN in two files, main a fix, a run the artifact, an earlier sync the same values.
mkdir "$WORK/built" && cd "$WORK/built"
git init -q -b main
cp -r "$TOP/goldens" .
printf 'root = "goldens"\nplatforms = ["dgx_h100", "dgx_gb200"]\n' >goldenctl.toml
printf '.goldenctl/\n' >.gitignore
git add -A && git commit -q -m "root"
git tag root
git branch dev
X1=goldens/moe/gpt3_moe_mcore_te_ep8_resume_torch_dist/golden_values_dev_dgx_gb200.json
X2=goldens/moe/gpt3_moe_mcore_te_ep8_resume_torch_dist/golden_values_dev_dgx_gb200_2nd.json
OTHER=goldens/gpt/gpt3_mcore_te_tp1_pp4_vp1/golden_values_dev_dgx_h100.json

# change FILE STEP VALUE: one value of a golden's loss.
change() {
  python - "$@" <<'PY'
import json, pathlib, sys
path, step, value = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
document = json.loads(path.read_text())
values = document["lm loss"]["values"]
values[list(values)[int(step)]] = value if value == "nan" else float(value)
path.write_text(json.dumps(document, indent=4) + "\n")
PY
}

change $X1 2 9.125; change $X2 2 9.25
git commit -qam "Refresh two gb200 goldens"
VALUES="$(git rev-parse HEAD)"
mkdir -p "$WORK/run-4711"
for file in $X1 $X2; do
  mkdir -p "$WORK/run-4711/$(dirname "$file")"
  cp "$file" "$WORK/run-4711/$file"
done
git switch -q dev
echo 1 >code.py && git add code.py && git commit -q -m "work on dev"
git merge -q --no-ff -m "chore: nightly sync main into dev (first)" main
EARLIER="$(git rev-parse HEAD)"
change $X1 4 nan; change $X2 5 nan
git commit -qam "Refresh from a broken run"
git switch -q main
change $X1 8 8.5; change $X2 8 8.5; change $OTHER 3 9.5
git commit -qam "Another fix"
git switch -q dev

expect 1 goldenctl lint $X1 $X2
expect 1 goldenctl sync plan --format json
json 'd["plan"]["missing"] == 1 and d["plan"]["first_excluded"] == "" and len(d["files"]) == 3'
json 'collections.Counter(f["wins"] for f in d["files"]) == {"mixed": 2, "upstream": 1}'
json '[f["path"] for f in d["files"] if f["changed_downstream"]["subject"] == "Refresh from a broken run"] == ["'$X1'", "'$X2'"]'
said "the plan names the slice and the two goldens that a textual merge would mix"

expect 0 goldenctl install --merge-driver --policy ask
git add .gitattributes && git commit -q -m "Merge goldens whole"
BEFORE="$(git rev-parse HEAD)"
git switch -q -c main2dev/second
expect 1 git merge -m "chore: nightly sync main into dev (second)" main
holds "$WORK/err" "both sides changed this golden: ours from"
cmp -s $X1 <(git show "dev:$X1") || fail "the driver left a mixed golden"
git checkout -q --theirs -- $X1 $X2
git add -A && git commit -q --no-edit
said "the merge driver keeps goldens whole and names who made each side"

expect 0 goldenctl refresh --from-job "$WORK/run-4711" --match "sync:$EARLIER" --require identical --yes --commit
expect 0 goldenctl sync audit "dev..HEAD" --format json
json 'd["counts"]["changed"] == 3 and d["graph"]["ok"] and d["graph"]["imported"] == 1'
json 'len(d["graph"]["merges"]) == 1 and len(d["graph"]["repairs"]) == 1'
json 'd["sync"]["downstream"] == "'"$BEFORE"'"'
expect 0 goldenctl sync audit "dev..HEAD" --format markdown
holds "$WORK/out" "Golden values: 3 files (1 dgx_h100, 2 dgx_gb200). NaN repaired in 2. Two dgx_gb200 moe files hold the values of ${VALUES:0:10}, taken from run tree:run-4711, and match sync ${EARLIER:0:10}."
said "the audit's Markdown says: $(sed -n 3p "$WORK/out")"

# The run is archived, its golden gone from every branch: the digest in the commit's trailer brings it back.
expect 0 goldenctl archive --from-job "$WORK/run-4711" --to "$WORK/kept"
digest="$(git log -1 --format=%B | sed -n "s|^Golden-Artifact: $X1 sha256:||p")"
git clone -q --depth 1 --branch root "file://$PWD" "$WORK/shallow" 2>/dev/null && cd "$WORK/shallow"
expect 3 goldenctl restore $X1 --from "archive:$digest" --yes
expect 0 goldenctl restore $X1 --from "archive:$WORK/kept#$digest" --yes
[ "$(sha256sum <$X1 | cut -d' ' -f1)" = "$digest" ] || fail "the archive did not bring the golden back"
said "a golden that no branch holds any more comes back from the archive"

# 2. A revert of code that forgot its goldens: those from before are proposed, without a run.
cd "$WORK/built" && git switch -q -f dev
echo 2 >code.py; change $OTHER 5 7.5
git commit -qam "Change numerics with their golden"
git revert --no-commit HEAD
git checkout -q HEAD -- goldens
git commit -q -m "Revert the code" -m "This reverts commit $(git rev-parse HEAD)."
expect 0 goldenctl restore --reverted HEAD --yes --format json
json '[(f["path"], f["action"]) for f in d["files"]] == [("'$OTHER'", "written")]'
cmp -s $OTHER <(git show "HEAD~2:$OTHER") || fail "the golden from before the reverted commit is not back"
said "a revert brings the golden from before the reverted commit back"

# 3. The landings of the real history, as the facts count them.
need_corpus
cd "$WORK/corpus"
while read -r sha changed overwritten own; do
  goldenctl sync audit "$sha" --format json >"$WORK/out" 2>"$WORK/err" || [ $? = 1 ] || fail "sync audit $sha"
  json "d['counts']['changed'] == $changed and d['counts']['overwritten'] == $overwritten"
  json "d['counts']['own'] + d['counts']['mixed'] == $own"
done <<'TABLE'
945d456fe0 73 0 0
5e42df89d5 4 0 4
02a46499ec 84 0 0
6f76b1a47b 10 0 0
233e1b29f4 18 0 5
bee92e33e6 9 0 0
82fa7aa169 143 1 3
e2d9e48029 381 80 8
75bb0433b0 116 0 3
TABLE
said "nine landings: files changed, overwritten and own content as in the facts"

# 4. Values of dev alone that a sync replaced, and a repair that a sync undid: named, with the way back, and it works.
ROOT=tests/functional_tests/test_cases
LOST=$ROOT/gpt/gpt3_7b_tp1_pp4_memory_speed/golden_values_dev_dgx_gb200.json
UNDONE=$ROOT/gpt/gpt3_15b_8t_release_sm/golden_values_dev_dgx_h100.json
expect 1 goldenctl sync audit e2d9e48029 --format json
json 'all(f["lost"]["commit"] and f["lost"]["restore"] for f in d["files"] if f["class"] == "overwritten")'
back="$(python -c '
import json, sys
print(next(f["lost"]["restore"] for f in json.load(open(sys.argv[1]))["files"] if f["path"] == sys.argv[2]))' "$WORK/out" $LOST)"
expect 0 $back --yes
cmp -s $LOST <(git show "e2d9e48029^1:$LOST") || fail "$back did not bring the values back"
git checkout -q -f
expect 1 goldenctl sync audit 82fa7aa169 --format json
json '[f["path"] for f in d["files"] if f["lost"] and f["lost"]["undone"]] == ["'$UNDONE'"]'
json 'next(f["lost"] for f in d["files"] if f["path"] == "'$UNDONE'")["commit"].startswith("912e1fa666")'
json 'next(f["lost"] for f in d["files"] if f["path"] == "'$UNDONE'")["undone"]["lm loss"] == [0, 57]'
expect 0 goldenctl restore $UNDONE --from 82fa7aa169^1 --yes --format json
json 'd["summary"]["written"] == 1'
said "the overwritten golden and the undone repair are named, and restore brings them back"
