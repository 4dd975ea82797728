# make demo:   set up, and run the five stages; offline unless MODEL=... names a model.
# make test:   set up, check, and run the tests.
# make check:  lint, formatting and types, in seconds.
# make mutants: plant a sample of faults in the figures, one at a time: do the tests see them?
# make format: let ruff format the code and mend what it can.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
MODEL ?= scripted
CATEGORY ?= harmful
NUMBER ?= 20
BIN := .venv/bin

MUTANTS ?= 60

.PHONY: demo test check format mutants

# What is installed is the pip section of environment.yml.
.venv/installed: environment.yml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 is needed")'
	$(PYTHON) -m venv .venv
	sed -n 's/^      - //p' environment.yml > .venv/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r .venv/requirements.txt
	touch $@

demo: .venv/installed
	PATH="$(CURDIR)/$(BIN):$$PATH" sh demo.sh "$(MODEL)" "$(CATEGORY)" "$(NUMBER)"

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: check
	$(BIN)/python -m pytest

mutants: .venv/installed
	$(BIN)/python tests/benchmark/mutants.py --sample $(MUTANTS)
