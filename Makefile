# Two commands need nothing but Python >= 3.11: `make demo` and `make test`.
# PYTHON= chooses the interpreter, VENV= the environment, PYMC= one of the two PyMC lines:
#   make test PYTHON=python3.11 VENV=.venv-3.11 PYMC='pymc>=5.28,<6'

VENV ?= .venv
PYMC ?=
PYTEST_ARGS ?=
BIN := $(VENV)/bin

# The first interpreter that is new enough and can make an environment.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& { echo $$p; break; }; done)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-slow lint format docs benchmarks clean distclean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(VENV)/installed-examples  ## the radiata pine comparison, against the exact answer
	$(BIN)/python examples/radiata_pine.py

# Several tests compile at once, which XLA does on one core each; more workers than cores only
# compete. Nearly every program runs once and for a moment, so XLA optimises less: a third of the
# time of the suite. The slow tests run as users run. The import beforehand lets ArviZ 0.23 write
# its daily notice from one process: two workers that write it at the same moment fail.
test: $(VENV)/installed-test  ## the test suite, slow tests left out
	@$(BIN)/python -W ignore -c 'import arviz'
	XLA_FLAGS="$(XLA_FLAGS) --xla_backend_optimization_level=1" \
		$(BIN)/python -m pytest -n 2 --dist worksteal --timeout 600 $(PYTEST_ARGS)

test-slow: $(VENV)/installed-test  ## the tests that take minutes each
	@$(BIN)/python -W ignore -c 'import arviz'
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow $(PYTEST_ARGS)

lint: $(VENV)/installed-dev  ## formatting, lint rules, types: what CI checks
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/installed-dev  ## rewrite the sources the way lint wants them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/installed-docs  ## the documentation, its code cells executed (in docs/_build/html)
	XLA_FLAGS="$(XLA_FLAGS) --xla_backend_optimization_level=1" \
		$(BIN)/python -m sphinx --fail-on-warning --keep-going --fresh-env -q -b html docs docs/_build/html
	@echo "built docs/_build/html/index.html"

BENCHMARKS ?= $(filter-out benchmarks/models.py,$(wildcard benchmarks/*.py))

benchmarks: $(VENV)/installed-bench  ## speed and memory, against pm.sample_smc and BlackJAX
	@set -e; for script in $(BENCHMARKS); do echo "== $$script"; $(BIN)/python $$script; done

clean:  ## remove what was built, keep the environments
	rm -rf build dist docs/_build .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean  ## remove the environments too
	rm -rf .venv .venv-*

$(VENV)/pyvenv.cfg:
	@test -n "$(PYTHON)" || { echo "No Python >= 3.11 with venv found: name one with PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp for each extra: pip runs again only when pyproject.toml has changed.
$(VENV)/installed-%: pyproject.toml $(VENV)/pyvenv.cfg
	@echo "installing .[$*] into $(VENV) (log: $(VENV)/install-$*.log)"
	@$(BIN)/python -m pip install --disable-pip-version-check -e '.[$*]' $(if $(PYMC),'$(PYMC)') \
		> $(VENV)/install-$*.log 2>&1 || { tail -n 30 $(VENV)/install-$*.log >&2; exit 1; }
	@touch $@
