# Two targets for a fresh clone: `make demo` and `make test`. Needs Python 3.11+ and make.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DEV    := $(VENV)/.installed-dev

.PHONY: setup dev demo test test-all check site bench clean help

help:
	@echo 'make demo      install, annotate the bundled sample images, show the result'
	@echo 'make test      install, run all tests that need nothing but this machine'
	@echo 'make setup     install into $(VENV)'
	@echo 'make test-all  also the slow ones, and more examples for those of Hypothesis'
	@echo 'make check     formatting, lint, types, layers'
	@echo 'make site      the documentation, into build/site'
	@echo 'make bench     the benchmarks and one table of their figures: hours; ARGS=--ratios for what CI compares'

setup: $(STAMP)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(BIN)/python
	@echo 'Installing uncanny into $(VENV) …'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

dev: $(DEV)

$(DEV): $(STAMP)
	@echo 'Installing the test tools …'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev
	@touch $@

demo: setup
	$(BIN)/uncanny demo

# Tests and benchmarks start many processes: each, and each worker, would compile all modules again where none may be kept.
test test-all bench: export PYTHONDONTWRITEBYTECODE :=

test: dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m 'not slow and not vllm'

test-all: dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m 'not vllm' --hypothesis-profile=full

check: dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Its warnings are errors. What it says of its own successor stands in CONTRIBUTING.md.
site: export NO_MKDOCS_2_WARNING := 1

site: setup
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	$(BIN)/python -m mkdocs build --strict --quiet

bench: dev
	$(BIN)/python -m benchmarks $(ARGS)

clean:
	rm -rf $(VENV) dist build
