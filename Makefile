PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint lock bench fuzz clean docs docs-pictures

# The demo needs only the package itself; the tests need all extras on top of it.
$(VENV)/.base: requirements/base.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/base.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^uv==' requirements/dev.txt)"
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements/dev.txt
	touch $@

demo: $(VENV)/.base
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python data/demo.py

test: $(VENV)/.dev lint
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.dev
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Needs a browser: GOLDENCTL_CHROMIUM, or chromium on the PATH.
docs-pictures: $(VENV)/.dev
	GOLDENCTL_CHROMIUM="$${GOLDENCTL_CHROMIUM:-$$(command -v chromium)}" $(BIN)/python docs/pictures.py

bench: $(VENV)/.dev
	$(BIN)/python bench/run.py

# Bounded by time; FUZZ_SECONDS for all targets together.
fuzz: $(VENV)/.dev
	$(BIN)/python -m tests.fuzz.campaign --seconds "$${FUZZ_SECONDS:-120}"

lock: $(VENV)/.dev
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-emit-index-url --no-annotate pyproject.toml -o requirements/base.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-emit-index-url --no-annotate --no-emit-package goldenctl -c requirements/base.txt requirements/dev.in -o requirements/dev.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .goldenctl
