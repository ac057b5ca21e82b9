PYTHON ?= python3
PYTEST_ARGS ?=

BIN := .venv/bin
INSTALLED := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test check format clean

help:  ## Show the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(INSTALLED)  ## Compare six policies on 10,000 arms: a table, a figure and a page
	$(BIN)/fastbandit demo

test: $(INSTALLED)  ## Run the tests (PYTEST_ARGS="-n 2" for two workers)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

check: $(INSTALLED)  ## Check formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy fastbandit

format: $(INSTALLED)  ## Format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## Remove the environment, caches and build outputs
	rm -rf .venv .mypy_cache .numba_cache .pytest_cache .ruff_cache .hypothesis build dist *.egg-info
	find fastbandit tests -type d -name __pycache__ -prune -exec rm -rf {} +

# The stamp comes last, so a failed install is tried again. The two variables hold the build
# tools, which pip installs apart, to the same versions.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "fastbandit needs Python 3.11 or newer: got $$($(PYTHON) --version 2>&1)." \
	  "Name a newer one, for example: make PYTHON=python3.12"; exit 1; }
	rm -f $@
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	  $(BIN)/python -m pip install --disable-pip-version-check -q \
	  -c constraints.txt -e '.[train,report,experiments,serve,client,dev]'
	touch $@
