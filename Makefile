# `make demo` and `make test` need only Python >= 3.11.
# PYTHON= selects the interpreter, VENV= the environment, PYMC= the version of PyMC:
#   make test PYTHON=python3.11 VENV=.venv-3.11 PYMC='pymc>=5.28,<6'

VENV ?= .venv
PYMC ?=
PYTEST_ARGS ?=
BIN := $(VENV)/bin

# First interpreter that is recent enough and can create an environment.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& { echo $$p; break; }; done)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-slow mutants lint format docs gallery benchmarks atlas clean distclean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(VENV)/installed-examples  ## compare two models of the radiata pine data with the exact answer
	$(BIN)/python examples/radiata_pine.py

# Almost all programs of the tests and of the documentation run once and briefly: without optimisation
# the suite takes a quarter of the time, and without PyTensor's compilers (C or Numba) nine tenths of
# that; a tenth of the rest goes into the places of the code that PyTensor notes beside its variables.
# The slow tests and the demo compile as users do.
QUICK_XLA := $(XLA_FLAGS) --xla_backend_optimization_level=0
QUICK_PYTENSOR := $(PYTENSOR_FLAGS),cxx=,linker=vm,traceback__limit=0

# XLA compiles each program on one core, so more workers than cores do not help; and BLAS with more
# threads than one waits for the other worker, at every small matrix. ArviZ 0.23 writes a daily notice
# when it is imported; the import beforehand prevents two workers from writing it at once, which fails.
test: $(VENV)/installed-test  ## run the test suite without the slow tests
	@$(BIN)/python -W ignore -c 'import arviz'
	OPENBLAS_NUM_THREADS=1 XLA_FLAGS="$(QUICK_XLA)" PYTENSOR_FLAGS="$(QUICK_PYTENSOR)" \
		$(BIN)/python -m pytest -n 2 --dist worksteal --timeout 600 $(PYTEST_ARGS)

test-slow: $(VENV)/installed-test  ## run the tests that are not in the default suite
	@$(BIN)/python -W ignore -c 'import arviz'
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m slow $(PYTEST_ARGS)

# ONLY= selects bugs by name; MUTANTS_LOG= keeps outcomes, from which the next call goes on.
ONLY ?=
MUTANTS_LOG ?=

mutants: $(VENV)/installed-test  ## put small bugs into a copy, one by one, and print what no test sees
	OPENBLAS_NUM_THREADS=1 XLA_FLAGS="$(QUICK_XLA)" PYTENSOR_FLAGS="$(QUICK_PYTENSOR)" \
		$(BIN)/python -m tests.mutants --only '$(ONLY)' $(if $(MUTANTS_LOG),--log $(MUTANTS_LOG))

lint: $(VENV)/installed-dev  ## check formatting, lint rules and types, as CI does
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/installed-dev  ## format the sources and apply lint fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Pages share the compiled programs of one another and of the tests.
docs: $(VENV)/installed-docs  ## execute the code cells and build the documentation in docs/_build/html
	OPENBLAS_NUM_THREADS=1 XLA_FLAGS="$(QUICK_XLA)" JAX_COMPILATION_CACHE_DIR=$(CURDIR)/.pytest_cache/jax \
		JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1 \
		$(BIN)/python -m sphinx -j 2 --fail-on-warning --keep-going --fresh-env -q -b html docs docs/_build/html
	@echo "built docs/_build/html/index.html"

# The pages of the gallery show stored results; this runs the scripts anew. CASES= selects some.
CASES ?=

gallery: $(VENV)/installed-examples  ## run the examples of the gallery and store their output and figures
	$(BIN)/python docs/gallery/update.py $(CASES)

BENCHMARKS ?= $(filter-out benchmarks/models.py benchmarks/everyday_%,$(wildcard benchmarks/*.py))

benchmarks: $(VENV)/installed-bench  ## measure speed and memory against pm.sample_smc and BlackJAX
	@set -e; for script in $(BENCHMARKS); do echo "== $$script"; $(BIN)/python $$script; done

# Rows that the file of records holds are not run again. MODELS= selects some; ATLAS_ARGS= has further options.
MODELS ?=
ATLAS_ARGS ?= --methods ais,bridge

atlas: $(VENV)/installed-bench  ## log evidences of posteriordb's posteriors by two methods, and the page that shows them
	$(BIN)/python -m benchmarks.atlas $(MODELS) $(ATLAS_ARGS)
	$(BIN)/python -m benchmarks.atlas.page

clean:  ## remove build products, keep the environments
	rm -rf build dist docs/_build docs/generated .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean  ## remove the environments too
	rm -rf .venv .venv-*

$(VENV)/pyvenv.cfg:
	@test -n "$(PYTHON)" || { echo "No Python >= 3.11 with venv found: name one with PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp file per extra: pip runs again only if pyproject.toml has changed.
$(VENV)/installed-%: pyproject.toml $(VENV)/pyvenv.cfg
	@echo "installing .[$*] into $(VENV) (log: $(VENV)/install-$*.log)"
	@$(BIN)/python -m pip install --disable-pip-version-check -e '.[$*]' $(if $(PYMC),'$(PYMC)') \
		> $(VENV)/install-$*.log 2>&1 || { tail -n 30 $(VENV)/install-$*.log >&2; exit 1; }
	@touch $@
