#!/usr/bin/env bash
# The shared store on a real PostgreSQL with TLS and passwords and an S3 server that checks signatures: sixteen writers at
# once, the same again, kills, orphans, time travel, push and pull, compaction, servers that are down, no secret anywhere.
. "$(dirname "$0")/common.sh"

# 1. The servers. GOLDENCTL_POSTGRES_BIN names a folder of binaries elsewhere.
BIN="${GOLDENCTL_POSTGRES_BIN:-$(dirname "$(ls /usr/lib/postgresql/*/bin/initdb 2>/dev/null | tail -1)" 2>/dev/null)}"
[ -x "$BIN/initdb" ] || { echo "skipped: PostgreSQL is not installed"; exit 0; }
AS=() # as root it refuses to run
if [ "$(id -u)" = 0 ]; then
  id postgres >/dev/null 2>&1 && SERVER_USER=postgres || SERVER_USER=nobody
  AS=(runuser -u "$SERVER_USER" --)
fi
export PGPASSWORD=pg-secret-7f3a91 AWS_EC2_METADATA_DISABLED=true AWS_REGION=us-east-1
unset AWS_PROFILE AWS_SESSION_TOKEN AWS_ENDPOINT_URL PGHOST PGUSER PGDATABASE PGPORT
chmod 755 "$WORK"
mkdir "$WORK/pg" "$WORK/tls" "$WORK/logs"
python - "$TOP" "$WORK/tls" <<'PY'
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from tests.doubles import certificate
certificate.make(pathlib.Path(sys.argv[2]))
PY
echo "$PGPASSWORD" >"$WORK/pg/password"
mv "$WORK/tls/key.pem" "$WORK/pg/key.pem"
[ "$(id -u)" != 0 ] || chown -R "$SERVER_USER" "$WORK/pg"
chmod 600 "$WORK/pg/key.pem"
PORT="$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
(cd / && ${AS[@]+"${AS[@]}"} "$BIN/initdb" -D "$WORK/pg/data" -A scram-sha-256 -U team --pwfile "$WORK/pg/password" --no-sync) >"$WORK/logs/initdb"
rm "$WORK/pg/password"
postgres_up() {
  (cd / && exec ${AS[@]+"${AS[@]}"} "$BIN/postgres" -D "$WORK/pg/data" -p "$PORT" -c fsync=off -c listen_addresses=127.0.0.1 -c ssl=on \
    -c "unix_socket_directories=$WORK/pg" -c "ssl_cert_file=$WORK/tls/bundle.pem" -c "ssl_key_file=$WORK/pg/key.pem" \
    -c log_statement=all) >>"$WORK/logs/postgres" 2>&1 &
  CHILDREN+=($!)
  for _ in $(seq 600); do psql_at postgres -c 'SELECT 1' >/dev/null 2>&1 && return; sleep 0.05; done
  tail "$WORK/logs/postgres" >&2
  fail "PostgreSQL did not start"
}
PSYCOPG="postgres://team@127.0.0.1:$PORT/team?sslmode=require"
psql_at() { "$BIN/psql" -XAtq -h 127.0.0.1 -p "$PORT" -U team -d "$@"; }
postgres_up
psql_at postgres -c 'CREATE DATABASE team' -c 'CREATE DATABASE archive' 2>/dev/null

# Signatures are checked from the fourth request on: the first three make the user, the right and the key.
s3_up() {
  rm -f "$WORK/port"
  (cd "$TOP" && INITIAL_NO_AUTH_ACTION_COUNT="$1" exec python -m tests.doubles.s3 --port-file "$WORK/port") >"$WORK/logs/s3" 2>&1 &
  S3=$!
  CHILDREN+=("$S3")
  for _ in $(seq 600); do [ -s "$WORK/port" ] && break; sleep 0.05; done
  [ -s "$WORK/port" ] || { tail "$WORK/logs/s3" >&2; fail "the S3 server did not start"; }
  export AWS_ENDPOINT_URL_S3="http://127.0.0.1:$(cat "$WORK/port")"
}
s3_up 3
eval "$(python - <<'PY'
import json, os
import boto3
at = {"endpoint_url": os.environ["AWS_ENDPOINT_URL_S3"], "aws_access_key_id": "x", "aws_secret_access_key": "x"}
iam = boto3.client("iam", region_name="us-east-1", **at)
iam.create_user(UserName="team")
right = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
iam.put_user_policy(UserName="team", PolicyName="all", PolicyDocument=json.dumps(right))
key = iam.create_access_key(UserName="team")["AccessKey"]
print(f"export AWS_ACCESS_KEY_ID={key['AccessKeyId']} AWS_SECRET_ACCESS_KEY='{key['SecretAccessKey']}'")
PY
)"
python -c "import boto3; boto3.client('s3').create_bucket(Bucket='lake')"
expect 1 env AWS_SECRET_ACCESS_KEY=wrong python -c "import boto3; boto3.client('s3').list_objects_v2(Bucket='lake')"
holds "$WORK/err" SignatureDoesNotMatch

mkdir "$WORK/repo"
cd "$WORK/repo"
git init -q -b main
cp -r "$TOP/goldens" .
# settings DATABASE: whose store it is.
settings() {
  cat >goldenctl.toml <<TOML
root = "goldens"
platforms = ["dgx_h100", "dgx_gb200"]
[store]
metadata = "postgres://team@127.0.0.1:$PORT/$1?sslmode=verify-ca&sslrootcert=$WORK/tls/bundle.pem"
data = "s3://lake/$1"
TOML
}
settings team
printf '.goldenctl/\n' >.gitignore
git add -A
git commit -qm goldens
said "PostgreSQL with TLS and passwords, S3 that checks signatures"

# shared COMMAND…: as expect 0, and what it said is kept for the search for secrets.
shared() { expect 0 "$@"; cat "$WORK/out" "$WORK/err" >>"$WORK/logs/said"; }
# sql QUERY: the answer of the store as CSV without its head.
sql() { goldenctl catalog sql --store "$1" --format csv | sed 1d; }
# whole PLANTED…: the store has every run of truth.json of these folders whole and once, and no other.
whole() {
  sql "SELECT run, count(*) AS n, count(DISTINCT (path, job, attempt)) AS jobs, list(DISTINCT document)::VARCHAR AS d
       FROM observation GROUP BY run" >"$WORK/rows"
  sql "SELECT run, count(*) AS n, sum(v.\"value\") FILTER (isfinite(v.\"value\")) AS total
       FROM observation JOIN series AS s USING (document) JOIN \"value\" AS v USING (content) GROUP BY run" >"$WORK/sums"
  python - "$WORK" "$@" <<'PY' || fail "the store does not hold what was recorded"
import csv, json, math, pathlib, sys
work, *planted = map(pathlib.Path, sys.argv[1:])
truth = {run: held for folder in planted for run, held in json.loads((folder / "truth.json").read_text()).items()}
rows = {row[0]: (int(row[1]), int(row[2])) for row in csv.reader((work / "rows").open())}
sums = {row[0]: (int(row[1]), float(row[2])) for row in csv.reader((work / "sums").open())}
assert rows == dict.fromkeys(truth, (5, 5)), (len(truth), {r: n for r, n in rows.items() if n != (5, 5)}, truth.keys() ^ rows.keys())
for run, (count, total) in truth.items():
    assert sums[run][0] == count and math.isclose(sums[run][1], total, rel_tol=1e-11), (run, truth[run], sums[run])
PY
}

# 2. Sixteen writers at once, each with four runs of its own.
WRITERS="${GOLDENCTL_STORE_WRITERS:-16}"
RUNS=$((4 * WRITERS)) JOBS=$((20 * WRITERS))
plant() { python "$TOP/tests/acceptance/plant_jobs.py" "$WORK/$1" "$2" "$3"; }
# start FOLDER FIRST: as many processes at once, each records four runs from the number FIRST on; their ids are in PIDS.
start() {
  local writer run refs
  PIDS=()
  for writer in $(seq 0 $((WRITERS - 1))); do
    refs=()
    for run in 0 1 2 3; do refs+=(--from-job "$WORK/$1/$(($2 + writer * 4 + run))"); done
    goldenctl record --store --lock-wait 120 "${refs[@]}" --format json >"$WORK/logs/writer-$writer.json" 2>"$WORK/logs/writer-$writer.err" &
    PIDS+=($!)
  done
}
# writers FOLDER FIRST: all succeed; NEW is what they say to be new.
writers() {
  start "$@"
  for pid in "${PIDS[@]}"; do wait "$pid" || { cat "$WORK"/logs/writer-*.err >&2; fail "a writer failed"; }; done
  cat "$WORK"/logs/writer-*.err "$WORK"/logs/writer-*.json >>"$WORK/logs/said"
  NEW="$(python -c 'import json, sys; print(sum(r["new_observations"] for f in sys.argv[1:] for r in json.load(open(f))["runs"]))' "$WORK"/logs/writer-*.json)"
}
shared goldenctl catalog build --store --branch main
plant first 0 "$RUNS"
started="$(date +%s.%N)"
writers first 0
seconds="$(python -c "import time; print(f'{time.time() - $started:.1f}')")"
[ "$NEW" = "$JOBS" ] || fail "$NEW observations are new, expected $JOBS"
whole "$WORK/first"
shared goldenctl store status --format json
json "d['observations'] == $JOBS and d['versions'] >= $RUNS and all('@' in v['author'] for v in d['last'])"
json "all(v['message'].startswith('record github:') for v in d['last'])"
FIRST="$(python -c 'import json, sys; print(json.load(open(sys.argv[1]))["current"])' "$WORK/out")"
waits="$(python -c 'import json, sys; d = json.load(open(sys.argv[1])); print(d["waited"], "versions waited for others,", round(d["longest_wait"], 2), "s at most")' "$WORK/out")"
said "$WRITERS writers recorded $RUNS runs, $JOBS jobs in $seconds s: $(python -c "print(f'{$JOBS / $seconds:.1f} jobs/s, {$RUNS / $seconds:.1f} runs/s')") with the processes' start; $waits"

# 3. The same again changes nothing, whoever wrote it first.
before="$(sql 'SELECT (SELECT count(*) FROM document), (SELECT count(*) FROM series), (SELECT count(*) FROM "value"), (SELECT count(*) FROM job)')"
writers first 0
[ "$NEW" = 0 ] || fail "$NEW observations are new the second time"
after="$(sql 'SELECT (SELECT count(*) FROM document), (SELECT count(*) FROM series), (SELECT count(*) FROM "value"), (SELECT count(*) FROM job)')"
[ "$before" = "$after" ] || fail "recording again changed the counts: $before, then $after"
whole "$WORK/first"
said "the same again changes nothing: $after documents, series, values and jobs"

# 4. Kill -9 at moments drawn by chance, half of them inside a transaction; then the same commands again.
plant second "$RUNS" "$RUNS"
start second "$RUNS"
ACKNOWLEDGED=()
FAILED=()
{ # the shell tells of every process that was killed
  KILLED=" $(python "$TOP/tests/acceptance/kill_writers.py" "$PSYCOPG" $((WRITERS * 5 / 8)) "${PIDS[@]}" 2>"$WORK/logs/kills") "
  for writer in $(seq 0 $((WRITERS - 1))); do
    if wait "${PIDS[$writer]}"; then
      for run in 0 1 2 3; do ACKNOWLEDGED+=("github:$((1000 + RUNS + writer * 4 + run))#1"); done
    elif [[ "$KILLED" != *" ${PIDS[$writer]} "* ]]; then
      FAILED+=("$WORK/logs/writer-$writer.err")
    fi
  done
} 2>/dev/null
[ ${#FAILED[@]} = 0 ] || { cat "${FAILED[@]}" >&2; fail "a writer failed that nobody killed"; }
[ "$(wc -w <<<"$KILLED")" -ge $((WRITERS / 4)) ] || fail "only$KILLED were killed"
sql "SELECT run, count(*) FROM observation GROUP BY run" >"$WORK/rows"
sql "SELECT run, count(*) FROM job GROUP BY run" >"$WORK/jobs"
python - "$WORK" "$RUNS" ${ACKNOWLEDGED[@]+"${ACKNOWLEDGED[@]}"} <<'PY' || fail "a half run is visible, or an acknowledged one is lost"
import csv, pathlib, sys
work, acknowledged = pathlib.Path(sys.argv[1]), set(sys.argv[3:])
rows, jobs = ({run: n for run, n in csv.reader((work / name).open())} for name in ("rows", "jobs"))
assert set(rows.values()) == {"5"} and jobs == rows, (rows, jobs)
assert acknowledged <= rows.keys(), acknowledged - rows.keys()
assert {f"github:{1000 + n}#1" for n in range(int(sys.argv[2]))} <= rows.keys()
PY
kept="$(wc -l <"$WORK/rows")"
said "$(wc -w <<<"$KILLED") writers killed with -9: no half run visible, the ${#ACKNOWLEDGED[@]} acknowledged runs there, and $((kept - RUNS - ${#ACKNOWLEDGED[@]})) more whole ones"

# files DATABASE: objects of the lake in S3 that no version has and no cleaning is due for, from the servers themselves.
orphans() {
  psql_at "$1" -F '' -c "SELECT replace(coalesce((SELECT value FROM ducklake_metadata WHERE key = 'data_path'), ''), 's3://lake/', '')
    || coalesce(s.path, '') || t.path || f.path FROM (
      SELECT table_id, path FROM ducklake_data_file UNION ALL SELECT table_id, path FROM ducklake_delete_file
    ) AS f JOIN ducklake_table AS t USING (table_id) JOIN ducklake_schema AS s USING (schema_id)" | sort -u >"$WORK/known"
  python - "$1" >"$WORK/objects" <<'PY'
import sys
import boto3
pages = boto3.client("s3").get_paginator("list_objects_v2").paginate(Bucket="lake", Prefix=f"{sys.argv[1]}/")
print(*sorted(item["Key"] for page in pages for item in page.get("Contents", [])), sep="\n")
PY
  [ -z "$(comm -13 "$WORK/objects" "$WORK/known")" ] || fail "the store misses files: $(comm -13 "$WORK/objects" "$WORK/known" | head -3)"
  comm -23 "$WORK/objects" "$WORK/known"
}
python -c "import boto3; boto3.client('s3').put_object(Bucket='lake', Key='team/main/value/home=1/left-behind.parquet', Body=b'PAR1')"
orphans team >"$WORK/orphans"
writers second "$RUNS"
whole "$WORK/first" "$WORK/second"
said "the same commands again make the killed runs whole; $(($(wc -l <"$WORK/orphans") - 1)) files of killed writers have no version"

# 5. Time travel.
LAST=$((999 + 2 * RUNS))
CASE=gpt/gpt3_mcore_te_tp1_pp4_vp1
GOLDEN=goldens/$CASE/golden_values_dev_dgx_h100.json
MOMENT="$(python -c 'import datetime; print(datetime.datetime.now(datetime.UTC).isoformat())')"
python - "$GOLDEN" <<'PY'
import json, pathlib, sys
path = pathlib.Path(sys.argv[1])
golden = json.loads(path.read_bytes())
golden["lm loss"]["values"] = {step: value * 2 for step, value in golden["lm loss"]["values"].items()}
path.write_text(json.dumps(golden))
PY
git commit -qam "a golden of twice the loss"
shared goldenctl catalog update --store
for at in "$FIRST:1" "$MOMENT:1" ":2"; do
  shared goldenctl log "$GOLDEN" --store --as-of "${at%:*}" --format json
  json "len(d['revisions']) == ${at##*:}"
done
expect 0 goldenctl catalog sql --as-of "$FIRST" --format csv "SELECT count(*) FROM observation"
[ "$(tail -1 "$WORK/out")" = "$JOBS" ] || fail "version $FIRST holds $(tail -1 "$WORK/out") observations, not $JOBS"
shared goldenctl drift "$GOLDEN" --metric "lm loss" --as-of "$FIRST" --format json
points="$(python -c 'import json, sys; print(json.load(open(sys.argv[1]))["drift"][0]["points"])' "$WORK/out")"
shared goldenctl drift "$GOLDEN" --metric "lm loss" --store --format json
json "d['drift'][0]['points'] > $points"
expect 2 goldenctl diff "$(git rev-parse HEAD~1)" "catalog:github:$LAST" --as-of "$FIRST"
shared goldenctl diff "$(git rev-parse HEAD~1)" "catalog:github:$LAST" --store --format json
json "collections.Counter(f['status'] for f in d['files'])['changed'] == 5"
python - "$FIRST" "$CASE" "$RUNS" <<'PY' || fail "the Python API travels otherwise"
import sys
import goldenctl
then, now = (goldenctl.open_catalog(store=True, as_of=version) for version in (sys.argv[1], ""))
runs = int(sys.argv[3])
assert then.runs().height == runs and now.runs().height == 2 * runs
assert then.observations(sys.argv[2], "lm loss")["run"].n_unique() < now.observations(sys.argv[2], "lm loss")["run"].n_unique()
PY
said "--as-of version $FIRST and --as-of $MOMENT: log, drift, diff, sql and Python see what was there then"

# 6. Compaction changes no row, then or now; cleaning takes the orphans, and nothing else.
sums='SELECT (SELECT sum(hash(v)) FROM "value" AS v)::VARCHAR, (SELECT sum(hash(s)) FROM series AS s)::VARCHAR, (SELECT sum(hash(o)) FROM observation AS o)::VARCHAR'
now="$(sql "$sums")"
then="$(goldenctl catalog sql --as-of "$FIRST" --format csv "$sums" | tail -1)"
shared goldenctl store compact
compacted="$(cat "$WORK/out")"
[ "$(sql "$sums")" = "$now" ] || fail "compaction changed rows"
[ "$(goldenctl catalog sql --as-of "$FIRST" --format csv "$sums" | tail -1)" = "$then" ] || fail "compaction changed rows of version $FIRST"
shared goldenctl store clean --older-than 0m
grep '^orphan ' "$WORK/out" | sed 's|^orphan s3://lake/||' | sort >"$WORK/found"
diff "$WORK/orphans" "$WORK/found" >&2 || fail "store clean found other orphans than the servers have"
cleaned="$(head -1 "$WORK/out")"
[ -z "$(orphans team)" ] || fail "files without a version are left"
[ "$(sql "$sums")" = "$now" ] || fail "cleaning changed rows"
expect 2 goldenctl catalog sql --as-of "$FIRST" "SELECT 1"
shared goldenctl store status
said "compact: $compacted; clean: $cleaned"

# 7. A catalog pushed to another store, killed on its way, pushed again, and pulled for use without a network.
if [ -n "${GOLDENCTL_CORPUS:-}" ]; then
  need_corpus
  cp goldenctl.toml "$WORK/corpus"
  cd "$WORK/corpus"
  sed -i 's|^root = .*|root = "tests/functional_tests/test_cases"|' goldenctl.toml
fi
SOURCE="$PWD"
sed -i "s|/team?|/archive?|; s|lake/team|lake/archive|" goldenctl.toml
shared goldenctl catalog build
goldenctl store push >/dev/null 2>&1 &
push=$!
for _ in $(seq 600); do
  [ "$(psql_at archive -c 'SELECT count(*) FROM ducklake_snapshot' 2>/dev/null || echo 0)" -ge 3 ] && break
  kill -0 $push 2>/dev/null || break
  sleep 0.05
done
kill -9 $push 2>/dev/null || true
wait $push 2>/dev/null || true
started="$(date +%s.%N)"
shared goldenctl store push --format json
seconds="$(python -c "import time; print(f'{time.time() - $started:.1f}')")"
values="$(python -c 'import json, sys; t = json.load(open(sys.argv[1]))["tables"]["value"]; print(t["rows"], "values,", t["rows"] - t["new"], "of them sent before the kill")' "$WORK/out")"
shared goldenctl store push --format json
json "all(t['new'] == 0 for t in d['tables'].values())"
shared goldenctl store pull --catalog "$WORK/offline.duckdb"
checks=""
for table in golden document series value text commit line revision sync run job artifact observation refresh refresh_file; do
  checks+="${checks:+ UNION ALL }SELECT '$table', count(*), sum(hash(t))::VARCHAR FROM \"$table\" AS t"
done
goldenctl catalog sql --format csv "$checks" | sort >"$WORK/here"
goldenctl catalog sql --store --format csv "$checks" | sort >"$WORK/there"
goldenctl catalog sql --catalog "$WORK/offline.duckdb" --format csv "$checks" | sort >"$WORK/back"
[ "$(wc -l <"$WORK/here")" = 16 ] || fail "not every table was counted"
diff "$WORK/here" "$WORK/there" >&2 && diff "$WORK/here" "$WORK/back" >&2 || fail "what was pushed or pulled differs"
said "push after a kill ($values) in $seconds s, a third push sends nothing, pull brings 15 tables back with the same counts and checksums"

# 8. Servers that are down or refuse: exit code 4, the host, a next command; local work goes on.
refused() {
  cat "$WORK/out" "$WORK/err" >>"$WORK/logs/said"
  holds "$WORK/err" "$1"
  holds "$WORK/err" "next: "
  ! grep -q Traceback "$WORK/err" || fail "a traceback is shown"
}
expect 4 env PGPASSWORD=wrong-91c2 goldenctl store status
refused "127.0.0.1:$PORT"
expect 4 env AWS_SECRET_ACCESS_KEY=wrong-secret-5d1e goldenctl catalog sql --store 'SELECT sum("value") FROM "value"'
refused "s3://lake/archive"
mkdir "$WORK/kept" # for the search for secrets below
for database in team archive; do "$BIN/pg_dump" -h 127.0.0.1 -p "$PORT" -U team -d "$database" >"$WORK/kept/$database.sql"; done
python - "$WORK/kept" <<'PY'
import pathlib, sys
import boto3
s3 = boto3.client("s3")
pages = s3.get_paginator("list_objects_v2").paginate(Bucket="lake")
for number, item in enumerate(item for page in pages for item in page.get("Contents", [])):
    s3.download_file("lake", item["Key"], str(pathlib.Path(sys.argv[1], f"{number}.parquet")))
PY
kill "$S3"
wait "$S3" 2>/dev/null || true
expect 4 goldenctl catalog sql --store 'SELECT sum("value") FROM "value"'
refused "${AWS_ENDPOINT_URL_S3#http://}"
(cd / && ${AS[@]+"${AS[@]}"} "$BIN/pg_ctl" -D "$WORK/pg/data" -m fast stop) >/dev/null
expect 4 goldenctl store status
refused "127.0.0.1:$PORT"
cd "$WORK/repo"
expect 4 goldenctl record --store --from-job "$WORK/first/0"
refused "127.0.0.1:$PORT"
shared goldenctl catalog update
shared goldenctl record --from-job "$WORK/first/0"
shared goldenctl log "$GOLDEN"
sed -i 's|^\[store\]|[store]\nalways = true|' goldenctl.toml
cp "$GOLDEN" "$WORK/golden"
expect 4 goldenctl refresh --from-job "git:HEAD~1" --yes
refused "127.0.0.1:$PORT"
! cmp -s "$GOLDEN" "$WORK/golden" || fail "a store that is down keeps a golden from being written"
said "PostgreSQL or S3 down or refusing: exit code 4 with the host, local work goes on"

# 9. No secret in what was kept above, in what was said, or in a local catalog.
for secret in "$PGPASSWORD" "$AWS_SECRET_ACCESS_KEY" wrong-91c2 wrong-secret-5d1e; do
  for place in "$WORK/kept" "$WORK/logs" "$WORK/repo" "$SOURCE/.goldenctl" "$WORK/offline.duckdb"; do
    ! grep -raqF -- "$secret" "$place" || fail "a secret is in $(grep -ralF -- "$secret" "$place" | head -3)"
  done
done
said "no secret in $(find "$WORK/kept" "$WORK/logs" -type f | wc -l) objects, dumps and logs"
