PYTHON ?= python3
PYTEST_ARGS ?=
RELEASE_ARGS ?=

BIN := .venv/bin
INSTALLED := .venv/.installed
WITH_CLUSTER := .venv/.installed-cluster

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-cluster size experiments benchmarks faults docs pictures \
  notebooks release check format clean

help:  ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(INSTALLED)  ## Compare six policies on 10,000 arms: a table, a figure and a page
	$(BIN)/fastbandit demo

test: $(INSTALLED)  ## Run the quick tests on all cores: everything before a commit
	$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

test-all: $(INSTALLED)  ## Run the slow tests: notebooks, short campaigns, browser, parity, site
	$(BIN)/python -m pytest -n auto -m slow $(PYTEST_ARGS)

test-cluster: $(WITH_CLUSTER)  ## Run the tests that need Ray or PostgreSQL
	$(BIN)/python -m pytest tests/cluster -m "slow or not slow" $(PYTEST_ARGS)

size: $(INSTALLED)  ## Print the size of the product beside its bars
	$(BIN)/python -m lab size

experiments: $(INSTALLED)  ## Play the quick suite of experiments, and report it
	$(BIN)/python -m lab experiment run quick
	$(BIN)/python -m lab report results

benchmarks: $(INSTALLED)  ## Time one decision as the number of arms grows
	$(BIN)/python -m lab bench select

faults: $(INSTALLED)  ## Kill a service under load, and see that it loses nothing
	$(BIN)/python -m lab faults kills

docs: $(INSTALLED)  ## Build the documentation into site/
	$(BIN)/python docs/command_page.py
	$(BIN)/python docs/quoted_tables.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

pictures: $(INSTALLED)  ## Draw the pictures of the documentation
	$(BIN)/python docs/pictures.py
	$(BIN)/python docs/feature_pictures.py

notebooks: $(INSTALLED)  ## Run the notebooks at full size (NAMES="movielens" for one), in place
	$(BIN)/python docs/notebooks/run.py $(NAMES)

release: $(INSTALLED)  ## Build wheel and source archive into dist/, and try them in clean environments
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --disable-pip-version-check -q \
	  -c constraints.txt -e '.[release]'
	$(BIN)/python -m scripts.release $(RELEASE_ARGS)

check: $(INSTALLED)  ## Check formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy fastbandit lab

format: $(INSTALLED)  ## Format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:  ## Remove the environment, caches and build outputs
	rm -rf .venv .mypy_cache .numba_cache .pytest_cache .ruff_cache .hypothesis build dist site *.egg-info \
	  clients/typescript/node_modules clients/typescript/dist
	find fastbandit lab tests -type d -name __pycache__ -prune -exec rm -rf {} +

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
	  -c constraints.txt -e '.[train,lab,serve,client,postgres,score,docs,dev]'
	touch $@

$(WITH_CLUSTER): $(INSTALLED)
	PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	  $(BIN)/python -m pip install --disable-pip-version-check -q \
	  -c constraints.txt -e '.[cluster,cluster-dev]'
	touch $@
