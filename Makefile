# `make demo` and `make test` work from a fresh checkout: each builds what it needs in .venv.

VENV   ?= .venv
ifeq ($(OS),Windows_NT)
PYTHON ?= python
BIN    := $(VENV)/Scripts
else
PYTHON ?= python3
BIN    := $(VENV)/bin
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-slow test-numba fuzz kills lint docs bench bench-accuracy bench-intervals clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.runtime  ## a real file, and one of the paper's experiments: pages in demo/
	$(BIN)/python examples/health_visits.py demo/visits.csv
	$(BIN)/groupwise run demo/visits.csv --target visits --out demo/visits \
		--groups "health, limitation, health & limitation"
	$(BIN)/groupwise reproduce synthetic-mean --out demo/paper

test: lint  ## ruff, mypy and the tests
	$(BIN)/python -m pytest -n auto

test-slow: $(VENV)/.dev  ## the tests on whole streams and many seeds
	$(BIN)/python -m pytest -n auto --dist loadgroup -m slow

# The oldest and the newest numba that pyproject.toml allows, as pip writes it: ==0.59.* <0.69
NUMBA := $(shell sed -n 's/.*"numba>=\([0-9.]*\),<\([0-9.]*\)".*/==\1.* <\2/p' pyproject.toml)
OTHER := build/numba

test-numba:  ## the kernels' tests with the oldest and the newest numba, in environments of their own
	@for version in $(foreach one,$(NUMBA),'$(one)'); do \
		rm -rf $(OTHER) && echo "numba$$version" && \
		$(MAKE) --no-print-directory VENV=$(OTHER) $(OTHER)/.dev && \
		$(BIN:$(VENV)/%=$(OTHER)/%)/python -m pip install --quiet --disable-pip-version-check \
			--editable . "numba$$version" && \
		$(BIN:$(VENV)/%=$(OTHER)/%)/python -m pytest tests/kernels tests/test_brute_force.py \
			tests/test_replaying.py || exit 1; \
	done

SECONDS := 600
SEED    := 0

fuzz: $(VENV)/.dev  ## adversaries, and every way to break things: SECONDS=600 for each program
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(SEED) --jobs 2 $(STEADY)

COUNT := 30

kills: $(VENV)/.dev  ## kill the service under load: COUNT=30 times on each store, SEED=0
	KILLS=$(COUNT) SEED=$(SEED) $(BIN)/python -m pytest -s -m slow tests/serve/test_kills.py

lint: $(VENV)/.dev  ## ruff and mypy only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.dev  ## the documentation, in build/site (the tests build it too)
	$(BIN)/python -m mkdocs build --strict
	@echo "The first page is build/site/index.html"

bench: $(VENV)/.dev  ## seeded benchmarks, as ratios against benchmarks/naive.py
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.serving
	$(BIN)/python -m benchmarks.cluster

DATA := ../shared/data

bench-accuracy: $(VENV)/.bench  ## errors on real streams beside other online learners: DATA=FOLDER
	$(BIN)/python -m benchmarks.accuracy --data $(DATA)

bench-intervals: $(VENV)/.bench  ## coverage and width beside split conformal prediction: DATA=FOLDER
	$(BIN)/python -m benchmarks.intervals --data $(DATA) --groups

clean:  ## remove the virtual environment and everything that was generated
	rm -rf $(VENV) demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# The virtual environment. Remade when pyproject.toml changes; the tools of
# development contain what runs, so the second stamp stands for the first too.
define new_venv
	@command -v $(PYTHON) >/dev/null 2>&1 || \
		{ echo "No $(PYTHON) here. Name one: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "groupwise needs Python 3.11 or later, and $(PYTHON) is $$($(PYTHON) -V 2>&1)." \
		"Name another: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
endef

$(VENV)/.runtime: pyproject.toml
	$(new_venv)
	@echo "Installing what it needs into $(VENV): about a minute, once."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cli,paper,demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml
	$(new_venv)
	@echo "Installing what it needs into $(VENV): a minute or two, once."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(VENV)/.runtime $@

$(VENV)/.bench: $(VENV)/.dev
	@echo "Installing what it is compared with into $(VENV): about a minute, once."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@
