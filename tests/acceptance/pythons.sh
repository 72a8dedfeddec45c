#!/usr/bin/env bash
# The wheel alone, without extras, on every supported Python that is here: lint, refresh from a recorded run, catalog;
# then the tests of the main rooms.
. "$(dirname "$0")/common.sh"
git clone -q "$TOP" "$WORK/source"
python -m pip wheel --quiet --no-deps --wheel-dir "$WORK/dist" "$WORK/source"
tried=0
for version in 3.11 3.12 3.13; do
  interpreter=""
  for found in "$(command -v "python$version" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python; do
    if [ -z "$interpreter" ] && "$found" -c pass 2>/dev/null; then interpreter="$found"; fi
  done
  [ -n "$interpreter" ] || { echo "no python$version here"; continue; }
  own="$WORK/$version"
  "$interpreter" -m venv "$own"
  "$own/bin/python" -m pip install --quiet -r "$TOP/requirements/base.txt"
  "$own/bin/python" -m pip install --quiet --no-deps "$WORK"/dist/*.whl
  PATH="$own/bin:$PATH" "$own/bin/python" "$TOP/data/demo.py" >"$WORK/demo" 2>&1 || { cat "$WORK/demo"; fail "the demo on Python $version"; }
  for extra in boto3 mlflow tensorboard ruptures jinja2 altair; do
    if "$own/bin/python" -c "import $extra" 2>/dev/null; then fail "the bare package installs $extra"; fi
  done
  said "the wheel alone on Python $version"
  tried=$((tried + 1))
  # The whole suite ran on 3.11. Under 3.13.0 a test process has died in native code once, and until that is understood
  # the tests run on 3.12 alone.
  [ "$version" = 3.12 ] || continue
  uv pip install --quiet --python "$own/bin/python" -r <(grep -v '^-e' "$TOP/requirements/dev.txt")
  (cd "$TOP" && env -u GOLDENCTL_CORPUS "$own/bin/python" -m pytest -n 2 -o pythonpath= -m "not browser" \
    tests/catalog tests/lint tests/refresh tests/sync tests/verdicts tests/writeback) >"$WORK/tests" 2>&1 ||
    { tail -n 40 "$WORK/tests"; fail "tests on Python $version"; }
  tail -n 1 "$WORK/tests"
  said "the tests on Python $version"
done
[ "$tried" -gt 0 ] || fail "no supported Python"
