# Every target sets itself up: only Python 3.11+, pip and make are needed.
PYTHON ?= python3
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
VENV := .venv
BIN := $(VENV)/$(SCRIPTS)
TOOLS := .venv-tools
TOOLS_BIN := $(TOOLS)/$(SCRIPTS)
PARALLEL ?= -n logical --dist worksteal
RESOLUTION_lowest := lowest-direct
RESOLUTION_newest := highest

.PHONY: help install demo reproduce test test-all test-lowest test-newest test-gpu lint lint-workflows docs docs-version docs-branch dist attack bench bench-gpu clean
.DEFAULT_GOAL := help

help:
	@echo "make install   create $(VENV) and install pointillist into it"
	@echo "make demo      learn filters from the shipped photographs, write pictures and a report to demo-output/"
	@echo "make reproduce repeat the paper's figures, write report/report.html: on a small scale in minutes, or, with"
	@echo "               DATA=folder of the paper's images, in full"
	@echo "make test      lint, types, layers and the quick tests (minutes)"
	@echo "make test-all  the same with the slow tests, and how much of each package they cover"
	@echo "make test-lowest, make test-newest"
	@echo "               the quick tests with the lowest and the newest versions that pyproject.toml allows, in environments of"
	@echo "               their own; PYTHON=python3.13 for another Python, TESTS=tests/cli for a part"
	@echo "make dist      build wheel and sdist into dist/, check them, install the wheel elsewhere and run the demo there"
	@echo "make lint-workflows"
	@echo "               check the files of .github against their schemas"
	@echo "make docs      build the documentation into site/, without network"
	@echo "make docs-version"
	@echo "               the same into site-versions/VERSION, beside other versions, with a menu of them; VERSION=0.2 names it"
	@echo "make docs-branch"
	@echo "               the same as a commit of the branch \`pages\`, which PUSH=1 pushes; site-versions/ must not be there"
	@echo "make attack    mutated files, odd calls, hard problems and faults against the package, for SECONDS=120; ONLY=files,calls"
	@echo "               for some of them. What is found lies in attack-output/, and the next call goes on from there"
	@echo "make bench     measure us beside SPORCO, write tables and charts to bench-output/"
	@echo "make test-gpu  the tests that need a CUDA device (the extra cuda must be installed)"
	@echo "make bench-gpu measure the CUDA engine, write tables to bench-output/gpu.json"

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/pyvenv.cfg
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/pyvenv.cfg
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: pyproject.toml | $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

$(TOOLS)/.installed: scripts/tools.txt
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS_BIN)/python -m pip install --quiet --disable-pip-version-check -r scripts/tools.txt
	@touch $@

install: $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/pointillist demo --output demo-output

reproduce: $(VENV)/.installed
	$(BIN)/python -m paper --output report $(if $(DATA),--data $(DATA),--quick)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check src tests benchmarks examples scripts attack paper
	$(BIN)/ruff format --check src tests benchmarks examples scripts attack paper
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: lint
	$(BIN)/pytest $(PARALLEL)

test-all: lint $(VENV)/.installed-docs
	$(BIN)/pytest $(PARALLEL) -m 'not gpu' --cov --cov-report=
	@$(BIN)/coverage json -q -o .coverage.json && $(BIN)/python scripts/coverage_table.py .coverage.json

# The kernels that numba keeps on the disk are of one version of numba: each environment has its own.
test-lowest test-newest: test-%: $(TOOLS)/.installed
	$(TOOLS_BIN)/uv venv --quiet --allow-existing --python $(PYTHON) .venv-$*
	$(TOOLS_BIN)/uv pip install --quiet --python .venv-$* --upgrade --resolution $(RESOLUTION_$*) -e '.[dev]'
	NUMBA_CACHE_DIR=$(CURDIR)/.venv-$*/numba .venv-$*/$(SCRIPTS)/python -m pytest $(PARALLEL) $(TESTS)

lint-workflows: $(TOOLS)/.installed
	$(TOOLS_BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(TOOLS_BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/bug.yml .github/ISSUE_TEMPLATE/wish.yml
	$(TOOLS_BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(TOOLS_BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(TOOLS_BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

dist: $(TOOLS)/.installed
	rm -rf dist build
	$(TOOLS_BIN)/python -m build --outdir dist .
	$(TOOLS_BIN)/twine check --strict dist/*
	$(PYTHON) scripts/check_dist.py dist $(if $(TAG),--tag $(TAG))

docs: $(VENV)/.installed-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict # the variable: without the theme's announcement of its successor
	@echo "read it: $(BIN)/python -m http.server --directory site"

docs-version: $(VENV)/.installed-docs
	$(BIN)/python scripts/docs_version.py $(if $(VERSION),--version $(VERSION))
	@echo "read it: $(BIN)/python -m http.server --directory site-versions"

attack: $(VENV)/.installed-dev
	$(BIN)/python -m attack --output attack-output --seconds $(or $(SECONDS),120) $(if $(ONLY),--only $(ONLY)) $(if $(SEED),--seed $(SEED))

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks --output bench-output

# The branch may be there already, on the remote, with the pages of earlier versions; it begins with an empty commit otherwise.
docs-branch: $(VENV)/.installed-docs
	git branch -f pages origin/pages 2>/dev/null || \
	  git branch -f pages $$(git commit-tree -m "Documentation" $$(git hash-object -t tree --stdin < /dev/null))
	git worktree add --force site-versions pages
	$(BIN)/python scripts/docs_version.py $(if $(VERSION),--version $(VERSION))
	touch site-versions/.nojekyll
	git -C site-versions add --all
	git -C site-versions diff --cached --quiet || \
	  git -C site-versions -c user.name=Release -c user.email=release@users.noreply.github.com commit --quiet \
	  --message "Documentation of $(or $(VERSION),this version)"
	$(if $(PUSH),git push origin pages)

test-gpu: $(VENV)/.installed-dev
	$(BIN)/pytest -m gpu

bench-gpu: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks.gpu --output bench-output

clean:
	rm -rf $(VENV) $(TOOLS) .venv-lowest .venv-newest build dist demo-output bench-output attack-output report site site-versions src/*.egg-info
