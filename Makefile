# Everything that one does with a checkout. Needs Python 3.11 or later, git and make, and a package
# index for the first run; all else lives in .venv, which the first target that needs it makes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# How long `make soak` runs; what `make serve` passes on.
SECONDS ?= 600
ARGS ?=
# Tests side by side, a module in one process: most of their time is waiting for daemons and disks.
JOBS ?= 4
# Everything is installed: pyright has no reason to ask for a newer one.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help demo serve test check bench soak clean
.DEFAULT_GOAL := help

help: ## say what there is
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(STAMP) ## show the whole way on a conversation with branches
	@$(BIN)/turnmark demo $(ARGS)

serve: $(STAMP) ## run the daemon in the foreground
	@$(BIN)/turnmark serve $(ARGS)

test: $(STAMP) ## run the tests
	@$(BIN)/python -m pytest -m "not soak" -n $(JOBS) --dist loadscope $(ARGS)

check: $(STAMP) ## lint, formatting, types and the import rules
	@echo "check: lint" && $(BIN)/ruff check --quiet .
	@echo "check: formatting" && $(BIN)/ruff format --check --quiet .
	@echo "check: types (mypy)" && $(BIN)/mypy
	@echo "check: types (pyright)" && $(BIN)/pyright
	@echo "check: import rules" && $(BIN)/python -m pytest -q tests/laws/test_imports.py

bench: $(STAMP) ## run the benchmarks
	@for file in $(sort $(wildcard benchmarks/*.py)); do \
		echo "== $$file"; $(BIN)/python "$$file" || exit 1; \
	done

soak: $(STAMP) ## run the long tests, for SECONDS=600
	@TURNMARK_SOAK_SECONDS=$(SECONDS) $(BIN)/python -m pytest -m soak \
		--timeout=$$(( $(SECONDS) + 600 )) $(ARGS)

clean: ## remove the environment, the caches and what was built
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks .coverage
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "turnmark needs Python 3.11 or later; name one: make PYTHON=python3.11" >&2; exit 1; }
	@echo "setting up $(VENV) (once; again when pyproject.toml changes)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@
