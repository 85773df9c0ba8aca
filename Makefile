# Each target sets up what it needs by itself, in any order: a virtual environment in .venv with the exact versions of
# constraints.txt. `demo` needs what running needs; `test` and `check` add the developers' tools, `docs` those of the site.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_READY := $(VENV)/.run-ready
READY := $(VENV)/.dev-ready
DOCS_READY := $(VENV)/.docs-ready
CONFORMANCE_READY := $(VENV)/.conformance-ready
# Without --no-compile pip spends most of its time on files that are never imported.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

.PHONY: setup demo check test conformance fuzz bench docs wheel wheel-tests clean

setup: $(READY)

$(RUN_READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	  || { echo "LargeGNN needs Python 3.11 to 3.13; name one with: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "installing into $(VENV); the first time this downloads some 500 MB"
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(READY): $(RUN_READY)
	$(PIP) -e '.[dev]'
	touch $@

$(DOCS_READY): $(RUN_READY)
	$(PIP) -e '.[docs]'
	touch $@

$(CONFORMANCE_READY): $(READY)
	$(PIP) -e '.[conformance]'
	$(PIP) --no-deps kiez
	touch $@

# One thread: for so small a pair two are hardly faster.
demo: export OMP_NUM_THREADS = 1
demo: $(RUN_READY)
	rm -rf demo
	$(BIN)/largegnn generate demo/pair --preset small --format nt --compress gz
	$(BIN)/largegnn align demo/pair --out demo/run
	$(BIN)/largegnn export demo/run --form sssom --form sameas

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m lab words

# One thread for each of the two processes: threads that wait for each other beside another busy process lose most time.
# Bytecode is kept, whatever the surroundings say: hundreds of tests start a process, and compiling torch again takes each 2 s.
test: $(READY)
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# Our figures beside those of other packages, which no other test needs.
conformance: $(CONFORMANCE_READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/conformance

# Hours: as many mutated inputs as make 10,000 for each reader. Failed ones are kept in .fuzz; LARGEGNN_FUZZ_SEED repeats.
fuzz: $(READY)
	LARGEGNN_FUZZ=$${LARGEGNN_FUZZ:-10000} OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 tests/fuzz

bench: $(READY)
	$(BIN)/python -m lab.benchmarks.loading
	$(BIN)/python -m lab.benchmarks.division growth

# The generated pages, then the site, strictly: a broken link is an error. Nothing is fetched.
docs: $(DOCS_READY)
	$(BIN)/python docs/scripts/commands_page.py
	$(BIN)/python docs/scripts/settings_page.py
	$(BIN)/python -m lab tables
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

# The wheel alone, in an environment of its own and outside the tree, aligns a small pair and exports it. Minutes: on demand.
wheel: export OMP_NUM_THREADS = 1
wheel: $(READY)
	rm -rf dist build/wheel
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w dist .
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt dist/*.whl
	cd build/wheel && bin/largegnn generate pair --preset small && bin/largegnn align pair --out run \
	  && bin/largegnn export run --form sssom && test -s run/alignment.sssom.tsv
	@echo "$$(ls dist/*.whl) aligns by itself"

# The whole suite against what users install, not against the checkout.
wheel-tests: wheel
	build/wheel/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "$$(ls dist/*.whl)[dev]"
	build/wheel/bin/python -c "import largegnn; assert 'site-packages' in largegnn.__file__, largegnn.__file__"
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 build/wheel/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

clean:
	rm -rf $(VENV) demo site build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
