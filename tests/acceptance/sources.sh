#!/usr/bin/env bash
# Every source under every fault: each by name, with the exit code and the message it must give, on local doubles that
# behave as the services do. docs/sources.md lists what is meant.
. "$(dirname "$0")/common.sh"
cd "$TOP"
PYTHONPATH="$TOP${PYTHONPATH:+:$PYTHONPATH}" python tests/acceptance/plant_sources.py "$WORK/planted"
REPO="$WORK/planted/repo"
RUN=34695381473
TOKEN=ghp_not_a_real_token
git -C "$REPO" init -q -b main
git -C "$REPO" add -A
git -C "$REPO" commit -q -m goldens
cd "$REPO"
export GITHUB_REPOSITORY=o/r GITHUB_TOKEN=$TOKEN AWS_EC2_METADATA_DISABLED=true
unset GITHUB_API_URL GITLAB_ENDPOINT CI_SERVER_URL MLFLOW_TRACKING_URI AWS_PROFILE

# double MODULE OPTIONS…: start a double in the place of the last one and put its address into URL.
SERVED=""
PIDS=()
double() {
  [ -z "$SERVED" ] || { kill "$SERVED"; wait "$SERVED" 2>/dev/null || true; }
  rm -f "$WORK/port"
  (cd "$TOP" && exec python -m "tests.doubles.$1" "${@:2}" --port-file "$WORK/port") 2>"$WORK/double.err" &
  SERVED=$!
  CHILDREN+=("$SERVED")
  for _ in $(seq 2400); do [ -s "$WORK/port" ] && break; kill -0 "$SERVED" 2>/dev/null || break; sleep 0.05; done
  [ -s "$WORK/port" ] || { cat "$WORK/double.err" >&2; fail "the double did not start"; }
  URL="http://127.0.0.1:$(cat "$WORK/port")"
}

# github FOLDER OPTIONS…: serve a planted run as GitHub does.
github() {
  double github --token "$TOKEN" --run "$WORK/planted/github/$1" "${@:2}"
  export GITHUB_API_URL="$URL"
}

plan() { goldenctl refresh --dry-run --format json --from-job "$@"; }

# gives NAME CODE FILES MESSAGE [REF…]: what a refresh of the served run must say; FILES goldens would be written.
gives() {
  local name="$1" code="$2" files="$3" message="$4"
  shift 4
  expect "$code" plan "${@:-github:$RUN}"
  [ -z "$message" ] || holds "$WORK/err" "$message"
  if [ "$files" != - ]; then
    json "sum(f['action'] == 'would-write' for f in d['files']) == $files"
  else
    [ ! -s "$WORK/out" ] || fail "$name: stdout is not empty"
  fi
  if grep -qF -e "$TOKEN" -e "Traceback" -e "sig=" "$WORK/out" "$WORK/err"; then
    cat "$WORK/err" >&2
    fail "$name: a token, a signature or a traceback is shown"
  fi
  said "$name: exit code $code${message:+, $message}"
}

# taken VALUE CASE: the last plan takes the document whose later values are VALUE for the case.
taken() {
  local digest
  digest="$(PYTHONPATH="$TOP${PYTHONPATH:+:$PYTHONPATH}" python -c "
import hashlib
from tests.acceptance.plant_sources import golden
print(hashlib.sha256(golden($1)).hexdigest())")"
  json "any(f['case'] == '$2' and f['sha256'] == '$digest' for f in d['files'])"
}

echo "== GitHub: what belongs to what"
github good
gives "a run by its number" 0 3 "" "$RUN"
gives "a run by its URL" 0 3 "" "https://github.com/o/r/actions/runs/$RUN"
gives "one job by its URL" 0 1 "" "https://github.com/o/r/actions/runs/$RUN/job/2"
gives "a run that is not there" 3 - "run 12 of o/r is not found, or there is no access to it" github:12
gives "an attempt that is not there" 3 - "has no attempt 7" "github:$RUN" --attempt 7
expect 0 plan "github:$RUN"
cp "$WORK/out" "$WORK/by_ranges"
[ -d .goldenctl/cache ] || fail "no answers are kept"
if grep -rqF "$TOKEN" .goldenctl; then fail "the token is kept"; fi
github good --no-ranges
gives "a server without ranges" 0 3 ""
json "[(f['path'], f['sha256']) for f in d['files']] == [(f['path'], f['sha256']) for f in json.load(open('$WORK/by_ranges'))['files']]"
said "ranges and whole files give the same"
github rerun
gives "a partial re-run" 0 3 ""
taken 9.5 moe/a
gives "attempt 1 by option" 0 3 "" "github:$RUN" --attempt 1
taken 1.0 moe/a
gives "attempt 1 by URL" 0 3 "" "https://github.com/o/r/actions/runs/$RUN/attempts/1"
taken 1.0 moe/a
github retry
gives "an upload and its retry" 0 3 ""
taken 9.5 moe/a
github legs
gives "both legs of a case" 0 4 "" "github:$RUN" --only all
json "{f['platform'] for f in d['files'] if f['case'] == 'moe/a'} == {'dgx_h100', 'dgx_gb200'}"
gives "the leg that failed" 0 1 "" "github:$RUN" --only failing
json "[f['platform'] for f in d['files'] if f['action'] == 'would-write'] == ['dgx_gb200']"
github others
gives "artifacts of unit tests and coverage" 0 3 ""
taken 9.5 moe/a
github reusable
gives "names of reusable workflows" 0 3 ""
github good --renamed-from old/name
gives "a renamed repository" 0 3 "" "https://github.com/old/name/actions/runs/$RUN"
github cancelled
gives "a cancelled job" 1 2 ""
json "any('cancelled' in f['reason'] for f in d['files'] if f['case'] == 'moe/a')"
github running
gives "a run in progress" 3 2 "not done yet: moe/a - latest"

echo "== GitHub: access and limits"
github good --private
(unset GITHUB_TOKEN; gives "a private repository without token" 3 - "is not found, or there is no access to it")
github good
(export GITHUB_TOKEN=wrong; gives "a bad token" 3 - "GitHub refuses the token")
(unset GITHUB_TOKEN; gives "no token" 3 0 "GitHub wants a token")
github good --fault "runs/$RUN\$=refusal:sso"
gives "single sign-on" 3 - "single sign-on"
github good --fault "runs/$RUN\$=refusal:scope"
gives "a missing scope" 3 - "the token lacks a scope"
github good --fault "jobs=primary:1*1" --fault "zip\$=secondary:1*1"
gives "short rate limits" 0 3 ""
github good --fault "jobs=primary:1800"
gives "a long primary rate limit" 3 - "the rate limit is used up until 20"
github good --fault "zip\$=secondary:1800"
gives "a long secondary rate limit while downloading" 3 0 "or wait with --max-wait 1801" "github:$RUN" --max-wait 10

echo "== GitHub: broken answers"
github expired
gives "an expired artifact" 3 2 "the artifact has expired"
github good --fault "11/zip\$=status:410"
gives "410" 3 2 "has expired"
for code in 500 502 503 504; do
  github good --fault "jobs=status:$code*2" --fault "zip/11=status:$code*1"
  gives "$code for a moment" 0 3 ""
done
github good --fault "jobs=status:502"
gives "502 for good" 3 - "GitHub answers 502"
github good --fault "jobs=reset*2" --fault "zip/11=reset*2"
gives "connections reset" 0 3 ""
github good --fault "zip/11=cut:999*2"
gives "a body cut twice" 0 3 ""
github good --fault "zip/11=cut:999"
gives "a body that is always cut" 3 2 "cut short"
github good --fault "zip/11=short:999*2"
gives "a body silently short twice" 0 3 ""
github good --no-ranges --fault "zip/11=short:999"
gives "a body that is always silently short" 3 2 "cut short"
github digest --no-ranges
gives "a wrong digest" 3 2 "was promised"
github good --fault "zip/11=html"
gives "HTML instead of a zip" 3 2 "an HTML page was sent instead of the zip"
github good --fault "jobs=html"
gives "HTML instead of the API" 3 - "the answer is not of GitHub's API"
export GITHUB_API_URL=http://127.0.0.1:9
gives "nobody answers" 3 - "cannot be reached: Connection refused"

echo "== Zips"
for ranges in "" --no-ranges; do
  while IFS='|' read -r kind text; do
    github "$kind" $ranges
    gives "a zip: $kind${ranges:+, whole}" 3 2 "$text"
  done <<'KINDS'
crc|golden_values_dev_dgx_h100.json: cannot be unpacked: Bad CRC-32
bomb|golden_values_dev_dgx_h100.json: expands
link|golden_values_dev_dgx_h100.json: is a link
encrypted|golden_values_dev_dgx_h100.json: is encrypted
outside|/abs/golden_values_dev_dgx_h100.json: its name leads out of the artifact
twice|golden_values_dev_dgx_h100.json: the zip has this member 2 times
nested|inner.zip: a zip inside the zip is not opened
nozip|is not a zip that can be read
KINDS
done

echo "== ^C"
github good --latency 20000
expect 0 python "$TOP/tests/acceptance/interrupt.py" 4 goldenctl refresh --yes --from-job "github:$RUN"
[ -z "$(git status --porcelain --untracked-files=no)" ] || fail "the interrupted refresh changed the tree"
said "an interrupt leaves the tree and ends within a second: $(cat "$WORK/out")"

echo "== GitLab"
export GITLAB_TOKEN=$TOKEN CI_PROJECT_ID=42
gitlab() {
  double gitlab --token "$TOKEN" --spec "$WORK/planted/gitlab/spec.json" "$@"
  export GITLAB_ENDPOINT="$URL"
}
gitlab
gives "a pipeline with a forbidden child" 3 3 "pipeline 5 of dl/nemo" gitlab:1
for case in moe/a moe/b gpt/c; do taken 9.5 "$case"; done
said "stale restarts, restart 10 over 9, generations of the past, a job that may fail"
gives "a child pipeline by its URL" 0 3 "" "$URL/dl/megatron/-/pipelines/2"
gives "one job by its URL" 0 1 "" "$URL/dl/megatron/-/jobs/103"
gives "an earlier attempt" 0 3 "" gitlab:2 --attempt 1
taken 1.0 moe/a
gives "a pipeline that is not there" 3 - "is not found, or there is no access to it" gitlab:77
(export GITLAB_TOKEN=wrong; gives "a bad token" 3 - "GitLab refuses the token" gitlab:2)
gitlab --fault "pipelines/2\$=limit:1800"
gives "a long rate limit" 3 - "the rate limit is used up until" gitlab:2
gitlab --fault "pipelines/2\$=status:502*2" --fault "artifacts/102=cut:50*1"
gives "faults of a moment" 0 3 "" gitlab:2
gitlab --fault "artifacts/102=cut:50"
gives "an artifact that is always cut" 3 2 "cut short" gitlab:2
gitlab --fault "pipelines/2\$=html"
gives "a login page" 3 - "the answer is not of GitLab's API" gitlab:2

echo "== S3 and archives"
double s3
export AWS_ENDPOINT_URL_S3="$URL" AWS_ACCESS_KEY_ID=testing AWS_SECRET_ACCESS_KEY=testing AWS_REGION=us-east-1
python - "$WORK/planted/tree" <<'PY'
import pathlib, sys
import boto3
s3, top = boto3.client("s3", region_name="us-east-1"), pathlib.Path(sys.argv[1])
s3.create_bucket(Bucket="team")
for path in top.rglob("*.*"):
    s3.put_object(Bucket="team", Key=f"runs/1/{path.relative_to(top)}", Body=path.read_bytes())
PY
gives "a prefix with a tree and a zip" 0 3 "" s3://team/runs/1
gives "a prefix that is empty" 3 - "no golden files and no artifact zips there" s3://team/none
gives "no such bucket" 3 - "not found, or no access (NoSuchBucket)" s3://nobody/x
(unset AWS_ACCESS_KEY_ID; gives "no credentials" 3 - "no S3 credentials" s3://team/runs/1)
S3="$SERVED"
SERVED=""
github good
for place in s3://team/kept "$WORK/kept"; do
  expect 0 goldenctl archive --from-job "github:$RUN" --to "$place" --format json
  json "d['runs'][0]['members'] == 3 and d['runs'][0]['stored'] == 1"
  for _ in 1 2 3 4; do goldenctl archive --from-job "github:$RUN" --to "$place" --format json >/dev/null & PIDS+=($!); done
  for pid in "${PIDS[@]}"; do wait "$pid" || fail "archiving side by side fails"; done
  PIDS=()
  expect 0 goldenctl archive --from-job "github:$RUN" --to "$place" --format json
  json "d['runs'][0]['stored'] == 0"
done
kill "$SERVED"
for place in s3://team/kept "$WORK/kept"; do gives "an archive after the CI is gone" 0 3 "" "archive:$place#$RUN"; done
kill "$S3"
gives "an endpoint that is down" 3 - "the S3 endpoint cannot be reached" s3://team/runs/1
SERVED=""

echo "== record"
expect 0 goldenctl record --from-job "archive:$WORK/kept#$RUN" --format json
json "d['runs'][0]['candidates'] == 3"
[ -z "$(git status --porcelain --untracked-files=no)" ] || fail "record changed the tree"
said "record keeps the values of a run and touches no file"

echo "== MLflow"
double mlflow
export MLFLOW_TRACKING_URI="$URL"
python - "$WORK/planted/tree/moe/a/golden_values_dev_dgx_h100.json" <<'PY'
import sys
import mlflow
client = mlflow.MlflowClient()
number = client.create_experiment("nightly")
def make(name, **params):
    run = client.create_run(number, run_name=name)
    for key, value in params.items():
        client.log_param(run.info.run_id, key, value)
    return run.info.run_id
logged = make("logged", case="moe/a", platform="dgx_h100")
client.log_artifact(logged, sys.argv[1])
curves = make("curves", case="moe/b", platform="dgx_h100", environment="dev")
for step, value in enumerate([10.5, 9.5, 9.5, 9.5, 9.5], 1):
    client.log_metric(curves, "lm loss", value, step=step)
bare = make("bare", case="moe/b")
client.log_metric(bare, "lm loss", 1.0, step=1)
for run in (logged, curves, bare):
    client.set_terminated(run)
PY
gives "a run by experiment and name, its logged file" 0 1 "" mlflow:nightly/logged
taken 9.5 moe/a
gives "a run by its metric histories" 0 1 "" mlflow:nightly/curves
gives "a run without platform" 3 0 "does not say its platform" mlflow:nightly/bare
gives "no such run" 3 - "is not on the MLflow server" mlflow:00000000000000000000000000000000
printf '[mlflow]\nexperiment = "refreshes"\n' >goldenctl.toml
expect 0 goldenctl refresh --yes --from-job mlflow:nightly/logged
holds "$WORK/err" "MLflow: logged as run"
git checkout -q -- goldens
kill "$SERVED"
export MLFLOW_HTTP_REQUEST_MAX_RETRIES=0
gives "a server that is down, as a source" 3 - "the MLflow server cannot be reached" mlflow:nightly/logged
expect 0 goldenctl refresh --yes --from-job "archive:$WORK/kept#$RUN"
[ "$(grep -c "the refresh is not logged: the MLflow server cannot be reached" "$WORK/err")" = 1 ] || fail "not said once"
[ "$(git status --porcelain --untracked-files=no | wc -l)" = 3 ] || fail "the refresh did not write"
said "a tracking server that is down never fails a refresh, and is said once"
rm goldenctl.toml
git checkout -q -- goldens
SERVED=""

echo "== Speed"
cd "$TOP"
PYTHONPATH="$TOP${PYTHONPATH:+:$PYTHONPATH}" python bench/refresh.py >"$WORK/out"
cat "$WORK/out"
python - "$WORK/out" <<'PY' || fail "slower, or more bytes, than allowed"
import re, sys
rows = re.findall(r": ([\d.]+) \(limit ([\d.]+)\)", open(sys.argv[1]).read())
sys.exit(len(rows) < 2 or any(float(a) > float(b) for a, b in rows))
PY
echo "every source under every fault: in order"
