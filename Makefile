# Each target sets up what it needs by itself: a virtual environment in .venv with the exact versions of constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup demo check test fuzz bench docs clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	  || { echo "LargeGNN needs Python 3.11 to 3.13; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

demo: $(READY)
	rm -rf demo
	$(BIN)/largegnn generate demo/pair --preset small --format nt --compress gz
	$(BIN)/largegnn align demo/pair --out demo/run
	$(BIN)/largegnn export demo/run --form sssom --form sameas

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# One thread for each of the two processes: threads that wait for each other beside another busy process lose most time.
test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

# Hours: as many mutated inputs as make 10,000 for each reader. Failed ones are kept in .fuzz; LARGEGNN_FUZZ_SEED repeats.
fuzz: $(READY)
	LARGEGNN_FUZZ=$${LARGEGNN_FUZZ:-10000} OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 tests/fuzz

bench: $(READY)
	$(BIN)/python benchmarks/loading.py
	$(BIN)/python benchmarks/division.py growth

docs: $(READY)
	$(BIN)/largegnn config > docs/settings.toml
	$(BIN)/python benchmarks/figures.py
	$(BIN)/python benchmarks/results_page.py

clean:
	rm -rf $(VENV) demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
