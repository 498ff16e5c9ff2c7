# Needs make, Python 3.11 or newer and a C compiler (where there is none, one is installed too). Each target makes .venv and
# installs what it needs, once, and again when pyproject.toml changes; compiled modules follow every change of their sources.
# MESON_ARGS goes to `meson setup`, such as MESON_ARGS=-Dbuildtype=debug; CC and CFLAGS are heeded in a new build.
# --no-compile: Python compiles what is imported when it is, and that is less; it may keep that of the build's tools, which
# run many times.

# Looked for once, and only when .venv is made: an interpreter behind a shim takes a quarter of a second to start.
ifeq ($(origin PYTHON),undefined)
PYTHON = $(eval PYTHON := $(shell for p in python3.14 python3.13 python3.12 python3.11 python3 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$p" && break; done))$(PYTHON)
endif
PROCESSES ?= 2
PYTEST_ARGS ?=
MESON_ARGS ?=
BIN := .venv/bin
BUILD := build/editable
LOCK := --quiet --upgrade --universal --python-version 3.11 --no-annotate --no-header --no-emit-index-url
PIP := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
SANITIZED := tests/contracts tests/policies/snapshots $(patsubst %,tests/policies/%.py,kernel/test_linalg kernel/test_choice \
	kernel/test_schedule club/test_graph sclub/test_kd_tree sclub/test_dissimilar_users autoclub/test_explanations autoclub/test_autoclub_scale)

export MESON_ARGS
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test torture torture-shards lint bench docs wheel sanitize locks clean compile force

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST))

demo: .venv/.installed-cli compile ## the paper's main comparison on synthetic data, written to demo/
	@echo "playing eight policies on synthetic data, 10,000 rounds, constants tuned, three seeds"
	@$(BIN)/coterie reproduce fig-1 --datasets synthetic --quick --out demo

test: .venv/.installed-test compile ## run all tests, on PROCESSES processes (2)
	@$(BIN)/python -m pytest -n $(PROCESSES) $(PYTEST_ARGS)

torture: .venv/.installed-test compile ## kill a serving process 1,100 times, and torment PostgreSQL for 10 minutes
	@cd tests && ../$(BIN)/python -m service.crashing --cycles 1000
	@cd tests && ../$(BIN)/python -m service.crashing --cycles 100 --postgresql
	@cd tests && ../$(BIN)/python -m service.chaos --seconds 600

torture-shards: .venv/.installed-test compile ## kill shards of a serving service 100 times, under load
	@cd tests && ../$(BIN)/python -m service.shard_crashing --kills 100

lint: .venv/.installed-lint ## check style, types, who imports whom, and workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/lint_imports.py
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff

bench: .venv/.installed-test compile ## measure speed
	$(BIN)/python -m benchmarks

docs: .venv/.installed-docs compile ## build the site into site/, with the notebooks as they are stored
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

wheel: .venv/.tools ## build a wheel for this machine into dist/
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pip wheel --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir dist .

sanitize: .venv/.installed-test ## run the tests that reach deepest under AddressSanitizer and UBSan (needs gcc)
	@echo "compiling coterie with AddressSanitizer and UBSan into build/sanitize"
	@rm -rf build/sanitize/site build/sanitize/report.*
	@MESON_ARGS='-Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 -Ddebug=true $(MESON_ARGS)' \
		$(PIP) --no-build-isolation --no-deps --config-settings=builddir=build/sanitize/objects \
		--target build/sanitize/site .
	@options=halt_on_error=1:print_stacktrace=1:log_path=$(abspath build/sanitize/report); \
	MESONPY_EDITABLE_SKIP=$(abspath $(BUILD)) PYTHONPATH=$(abspath build/sanitize/site) PYTHONMALLOC=malloc \
		LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
		ASAN_OPTIONS=detect_leaks=0:$$options UBSAN_OPTIONS=$$options \
		$(BIN)/python -m pytest -n $(PROCESSES) -p no:cacheprovider $(SANITIZED) $(PYTEST_ARGS) || \
		{ head -n 20 build/sanitize/report.* 2>/dev/null; exit 1; }

# Bring the modules up to date before several processes import them: each would do so by itself.
compile:
	@MESONPY_EDITABLE_VERBOSE=1 $(BIN)/python -c 'import coterie'

locks: ## renew requirements/ from pyproject.toml (needs uv)
	uv pip compile $(LOCK) --extra service --extra postgresql --generate-hashes --output-file requirements/service.txt pyproject.toml
	uv pip compile $(LOCK) --all-extras --output-file requirements/ci.txt pyproject.toml

clean: ## remove .venv and everything that was built
	rm -rf .venv site demo build dist .mesonpy-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What the library needs is installed while it is compiled.
.venv/.installed-%: pyproject.toml .venv/.modules | .venv/.tools
	@echo "installing what coterie[$*] needs into .venv"
	@$(MAKE) --no-print-directory .venv/.coterie & compiling=$$!; \
		$(BIN)/python tools/requirements.py $* >.venv/.needed-$* && $(PIP) --requirement .venv/.needed-$*; \
		installed=$$?; wait $$compiling && exit $$installed
	@touch $@

.venv/.coterie: pyproject.toml .venv/.modules | .venv/.tools
	@echo "compiling coterie, once: about 40 seconds on two processors"
	@$(PIP) --no-build-isolation --no-deps --config-settings=builddir=$(BUILD) --editable .
	@touch $@

# The modules there are and how they are built; newer than what was installed only when that has changed.
.venv/.modules: force | $(BIN)/python
	@{ echo '$(MESON_ARGS)'; find src -name '*.pyx' -exec grep -c '^# optimize: 2' {} + | sort; } >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else rm -rf $(BUILD); mv $@.new $@; fi

.venv/.tools: pyproject.toml | $(BIN)/python
	@echo "installing what compiles coterie into .venv"
	@$(BIN)/python tools/requirements.py build >.venv/.needed-build
	@$(PIP) --requirement .venv/.needed-build
	@touch $@

# By the interpreter's own pip where it has a new one: that of venv takes six seconds, most of them to compile itself.
$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Coterie needs Python 3.11 or newer, and none was found;" \
		"install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Coterie needs Python 3.11 or newer; $(PYTHON) is $$("$(PYTHON)" --version 2>&1)" >&2; exit 1; }
	@{ "$(PYTHON)" -m venv --without-pip .venv && \
		"$(PYTHON)" -m pip --quiet --disable-pip-version-check --python $@ install --no-compile pip; } >/dev/null 2>&1 || \
		"$(PYTHON)" -m venv --clear .venv || { rm -rf .venv; \
		echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu, install python3-venv" >&2; exit 1; }
