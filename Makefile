# Every target sets itself up: only Python 3.11+, pip and make are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help install demo reproduce test test-all test-gpu lint docs bench bench-gpu clean
.DEFAULT_GOAL := help

help:
	@echo "make install   create $(VENV) and install pointillist into it"
	@echo "make demo      learn filters from the shipped photographs, write pictures and a report to demo-output/"
	@echo "make reproduce repeat the paper's figures, write report/report.html: on a small scale in minutes, or, with"
	@echo "               DATA=folder of the paper's images, in full"
	@echo "make test      lint, types, layers and the quick tests (minutes)"
	@echo "make test-all  the same with the slow tests"
	@echo "make docs      build the documentation into site/, without network"
	@echo "make bench     measure us beside SPORCO, write tables and charts to bench-output/"
	@echo "make test-gpu  the tests that need a CUDA device (the extra cuda must be installed)"
	@echo "make bench-gpu measure the CUDA engine, write tables to bench-output/gpu.json"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: pyproject.toml | $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

install: $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/pointillist demo --output demo-output

reproduce: $(VENV)/.installed
	$(BIN)/pointillist reproduce --output report $(if $(DATA),--data $(DATA),--quick)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check src tests benchmarks examples scripts
	$(BIN)/ruff format --check src tests benchmarks examples scripts
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: lint
	$(BIN)/pytest

test-all: lint $(VENV)/.installed-docs
	$(BIN)/pytest -m 'not gpu'

docs: $(VENV)/.installed-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict # the variable: without the theme's announcement of its successor
	@echo "read it: $(BIN)/python -m http.server --directory site"

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks --output bench-output

test-gpu: $(VENV)/.installed-dev
	$(BIN)/pytest -m gpu

bench-gpu: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks.gpu --output bench-output

clean:
	rm -rf $(VENV) build dist demo-output bench-output report site src/*.egg-info
