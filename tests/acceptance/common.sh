# What the acceptance scripts share: a scratch folder, a clone of the corpus, checks that stop at the first miss.
set -euo pipefail
TOP="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
PATH="$TOP/.venv/bin:$PATH"
unset PYTHONDONTWRITEBYTECODE GITHUB_ACTIONS
export GIT_AUTHOR_NAME=acceptance GIT_AUTHOR_EMAIL=acceptance@example.invalid
export GIT_COMMITTER_NAME=acceptance GIT_COMMITTER_EMAIL=acceptance@example.invalid
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
WORK="$(mktemp -d)"
CHILDREN=()
cleanup() {
  for pid in ${CHILDREN[@]+"${CHILDREN[@]}"}; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$WORK"
}
trap cleanup EXIT

fail() { echo "FAILED: $*" >&2; exit 1; }
said() { echo "ok: $*"; }

# expect CODE COMMAND…: run a command, keep its output in $WORK/out and $WORK/err, and check its exit code.
expect() {
  local code=0 wanted="$1"
  shift
  "$@" >"$WORK/out" 2>"$WORK/err" || code=$?
  if [ "$code" != "$wanted" ]; then
    cat "$WORK/out" "$WORK/err" >&2
    fail "$* gave exit code $code, expected $wanted"
  fi
}

# json EXPRESSION: a Python expression over the JSON in $WORK/out, called d, must be true.
json() {
  python - "$WORK/out" "$1" <<'PY' || fail "$1"
import collections, json, sys
d = json.load(open(sys.argv[1]))
if not eval(sys.argv[2]):
    sys.exit(1)
PY
}

# holds FILE TEXT: the file holds the text.
holds() { grep -qF -- "$2" "$1" || { cat "$1" >&2; fail "no '$2' in $(basename "$1")"; }; }

need_corpus() {
  if [ -z "${GOLDENCTL_CORPUS:-}" ]; then
    echo "skipped: GOLDENCTL_CORPUS is not set"
    exit 0
  fi
  git clone -q -b dev "$GOLDENCTL_CORPUS/megatron-goldens.bundle" "$WORK/corpus"
  git -C "$WORK/corpus" branch -q main origin/main
}
