# Needs make and Python 3.11 or newer. Each target makes .venv and installs what it needs, once, and again
# when pyproject.toml changes. --no-compile: Python compiles what is imported when it is, and that is less.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$p" && break; done)
PROCESSES ?= 2
PYTEST_ARGS ?=
BIN := .venv/bin

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test lint bench docs clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST))

demo: .venv/.installed-cli ## the paper's main comparison on synthetic data, written to demo/
	@$(BIN)/coterie reproduce fig-1 --datasets synthetic --quick --out demo

test: .venv/.installed-test ## run all tests, on PROCESSES processes (2)
	@$(BIN)/python -m pytest -n $(PROCESSES) $(PYTEST_ARGS)

lint: .venv/.installed-lint ## check style, types and who imports whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.installed-test ## measure speed
	$(BIN)/python -m benchmarks

docs: .venv/.installed-docs ## build the site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean: ## remove .venv and everything that was built
	rm -rf .venv site demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.installed-%: pyproject.toml | $(BIN)/python
	@echo "installing coterie[$*] into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[$*]'
	@touch $@

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Coterie needs Python 3.11 or newer, and none was found;" \
		"install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Coterie needs Python 3.11 or newer; $(PYTHON) is $$("$(PYTHON)" --version 2>&1)" >&2; exit 1; }
	@"$(PYTHON)" -m venv .venv || { rm -rf .venv; \
		echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu, install python3-venv" >&2; exit 1; }
