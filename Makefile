# Every target makes what it needs: a virtual environment in .venv, kept until pyproject.toml changes.

PYTHON ?= python3
PYTEST_ARGS ?=
DATA ?= $(EXANOVA_DATA)

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test test-kernels mutate differential lint bench bench-explanations bench-dimension bench-peers coverage fidelity bench-mixed plans paper docs dist chromium data-given clean
.DELETE_ON_ERROR:

help:
	@echo "make demo             tic-tac-toe from the rules to a report, in demo/"
	@echo "make test             the tests (PYTEST_ARGS='-k reference' for some of them)"
	@echo "make test-kernels     tests of numbers under five BLAS kernels (KERNEL_ARGS=--all for every test)"
	@echo "make mutate           deliberate bugs, one by one: do the tests notice? (MUTATE_ARGS='--only share')"
	@echo "make differential     random fits against exact fractions (DIFFERENTIAL_ARGS='--cases 1000')"
	@echo "make lint             style, types, imports, public names"
	@echo "make bench DATA=dir   the core against the paper's algorithms, on the tables in dir (or in \$$EXANOVA_DATA)"
	@echo "make bench-scale                   millions of rows from files under a memory limit; writes docs/scale.md"
	@echo "make bench-explanations DATA=dir   Shapley values against KernelSHAP, and of sixty thousand rows"
	@echo "make bench-dimension DATA=dir      thousands of functions out of millions"
	@echo "make bench-versions DATA=dir BEFORE=src   the same fits by an earlier version; writes docs/speed.md"
	@echo "make bench-peers DATA=dir          the same jobs by other libraries, side by side"
	@echo "make coverage DATA=dir             do 95 % intervals hold the effects of a known population?"
	@echo "make fidelity                      fit on held-out rows of mixed tables, beside a boosting machine"
	@echo "make bench-mixed                   ten mixed tables, five kinds of model, no parameter, beside a boosting machine"
	@echo "make plans                         plans of fits against the seconds and the memory they take"
	@echo "make paper DATA=dir   the paper's experiments, into docs/paper"
	@echo "make docs             the documentation, into site/"
	@echo "make dist             wheel and sdist, into dist/, each tried in a clean environment (DIST_ARGS='--only wheel')"
	@echo "make clean            remove the environment and everything generated"

demo: $(VENV)/.with-app
	$(BIN)/exanova demo

test: $(VENV)/.with-test chromium
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-kernels: $(VENV)/.with-test
	$(BIN)/python scripts/test_kernels.py $(KERNEL_ARGS) $(PYTEST_ARGS)

mutate: $(VENV)/.with-test
	$(BIN)/python scripts/mutate.py $(MUTATE_ARGS)

differential: $(VENV)/.with-test
	PYTHONPATH=tests $(BIN)/python tests/differential.py $(DIFFERENTIAL_ARGS)

lint: $(VENV)/.with-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/check_imports.py
	$(BIN)/python scripts/check_public.py

bench: data-given $(VENV)/.with-bench
	$(BIN)/python -m benchmarks.core --data "$(DATA)" $(BENCH_ARGS)

.PHONY: bench-scale
bench-scale: $(VENV)/.with-test
	OPENBLAS_NUM_THREADS=1 POLARS_MAX_THREADS=1 $(BIN)/python -m benchmarks.scale --page docs/scale.md $(if $(DATA),--data "$(DATA)") $(BENCH_ARGS)

bench-explanations: data-given $(VENV)/.with-bench
	$(BIN)/python -m benchmarks.explanations --data "$(DATA)" $(BENCH_ARGS)

bench-dimension: data-given $(VENV)/.with-bench
	$(BIN)/python -m benchmarks.high_dimension --data "$(DATA)" $(BENCH_ARGS)

.PHONY: bench-versions
bench-versions: data-given $(VENV)/.with-bench
	$(BIN)/python -m benchmarks.versions --data "$(DATA)" --before "$(BEFORE)" $(BENCH_ARGS)

bench-peers: data-given $(VENV)/.with-peers
	$(BIN)/python -m benchmarks.peers --data "$(DATA)" $(BENCH_ARGS)

coverage: data-given $(VENV)/.with-bench
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.coverage --data "$(DATA)" $(BENCH_ARGS)

plans: $(VENV)/.with-bench
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.plans $(BENCH_ARGS)

fidelity: $(VENV)/.with-tables
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.fidelity $(BENCH_ARGS)

bench-mixed: $(VENV)/.with-tables
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.mixed_fits $(BENCH_ARGS)

paper: data-given $(VENV)/.with-paper
	$(BIN)/python -m experiments --data "$(DATA)" $(PAPER_ARGS)

docs: $(VENV)/.with-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

dist: $(VENV)/.made
	$(BIN)/python scripts/dist.py $(DIST_ARGS)

# The report is tested in a real browser: installed where this may be done, and otherwise those tests skip saying so.
chromium:
	@if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && [ -f /etc/debian_version ]; then \
	  echo "installing chromium for the browser tests"; \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } \
	    >/dev/null 2>&1 || echo "chromium cannot be installed here: the browser tests will be skipped"; \
	fi

data-given:
	@test -n "$(DATA)" || { \
	  echo "No data given: add DATA=folder-with-the-tables or set EXANOVA_DATA." >&2; exit 1; }

clean:
	rm -rf $(VENV) build dist site demo src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -path ./.git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.made:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || { \
	  echo "Python 3.11 or later is needed, but '$(PYTHON)' answers: $$($(PYTHON) --version 2>&1)" >&2; \
	  echo "Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.with-lint: $(VENV)/.made pyproject.toml
	$(PIP) --editable ".[lint,test]"
	@touch $@

# One stamp for each group of optional dependencies: app, test, docs, bench, peers, tables, paper.
$(VENV)/.with-%: $(VENV)/.made pyproject.toml
	$(PIP) --editable ".[$*]"
	@touch $@
