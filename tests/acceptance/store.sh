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

# 2. Sixteen writers at once, each with six runs of its own.
plant() { python "$TOP/tests/acceptance/plant_jobs.py" "$WORK/$1" "$2" "$3"; }
# writers FOLDER FIRST: sixteen processes, each records six runs.
writers() {
  local pids=() writer run
  for writer in $(seq 0 15); do
    local refs=()
    for run in 0 1 2 3 4 5; do refs+=(--from-job "$WORK/$1/$(($2 + writer * 6 + run))"); done
    goldenctl record --store "${refs[@]}" --format json >"$WORK/logs/writer-$writer.json" 2>"$WORK/logs/writer-$writer.err" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || { cat "$WORK"/logs/writer-*.err >&2; fail "a writer failed"; }; done
  cat "$WORK"/logs/writer-*.err "$WORK"/logs/writer-*.json >>"$WORK/logs/said"
  NEW="$(python -c 'import json, sys; print(sum(r["new_observations"] for f in sys.argv[1:] for r in json.load(open(f))["runs"]))' "$WORK"/logs/writer-*.json)"
}
plant first 0 96
started="$(date +%s.%N)"
writers first 0
seconds="$(python -c "import time; print(f'{time.time() - $started:.1f}')")"
[ "$NEW" = 480 ] || fail "$NEW observations are new, expected 480"
whole "$WORK/first"
shared goldenctl store status --format json
json "d['observations'] == 480 and d['versions'] >= 96 and all('@' in v['author'] for v in d['last'])"
json "all(v['message'].startswith('record github:') for v in d['last'])"
FIRST="$(python -c 'import json, sys; print(json.load(open(sys.argv[1]))["current"])' "$WORK/out")"
waits="$(python -c 'import json, sys; d = json.load(open(sys.argv[1])); print(d["waited"], "versions waited for others,", round(d["longest_wait"], 2), "s at most")' "$WORK/out")"
said "16 writers recorded 96 runs, 480 jobs in $seconds s: $(python -c "print(f'{480 / $seconds:.0f} jobs/s, {96 / $seconds:.1f} runs/s')") with the processes' start; $waits"

# 3. The same again changes nothing, whoever wrote it first.
before="$(sql 'SELECT (SELECT count(*) FROM document), (SELECT count(*) FROM series), (SELECT count(*) FROM "value"), (SELECT count(*) FROM job)')"
writers first 0
[ "$NEW" = 0 ] || fail "$NEW observations are new the second time"
after="$(sql 'SELECT (SELECT count(*) FROM document), (SELECT count(*) FROM series), (SELECT count(*) FROM "value"), (SELECT count(*) FROM job)')"
[ "$before" = "$after" ] || fail "recording again changed the counts: $before, then $after"
whole "$WORK/first"
said "the same again changes nothing: $after documents, series, values and jobs"
