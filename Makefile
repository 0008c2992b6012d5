# Everything a person needs to type. Each target sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The tests start thousands of interpreters: each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install dev page demo test collected setup test-fast test-long test-docker test-agents check bench figures docs site dist lock clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(VENV)/.base: requirements/base.txt pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/base.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

install: $(VENV)/.base ## Install Holdfast into .venv
dev: $(VENV)/.dev ## ... with everything the tests need

page: setup ## Build the page of a run from frontend/, with esbuild
	$(BIN)/python tools/page_build.py

demo: $(VENV)/.base ## The finance agent, good and careless: a contract, a mail sent twice, the overall score
	@$(BIN)/holdfast demo

test: $(VENV)/.dev ## All tests and checks
	$(MAKE) --no-print-directory -j 3 setup check collected
	$(BIN)/python -m pytest -n 4 --dist worksteal tests

collected: $(VENV)/.dev ## Compile the tests once, before the workers of make test do
	@told=$$($(BIN)/python -m pytest --collect-only -q tests) || { echo "$$told" | tail -40; exit 1; }

setup: $(VENV)/.dev ## What the tests need beyond Python: servers, a browser, Node's MCP servers, esbuild
	@sh tests/setup.sh

test-fast: $(VENV)/.dev ## Unit and golden tests, under a minute: all but those that start many programs or take seconds
	$(BIN)/python -m pytest -n 3 --dist worksteal -q -m "not processes and not long and not slow" tests/unit tests/golden

test-long: $(VENV)/.dev ## What takes minutes, such as simulations, then all tests and checks on every distinct Python from 3.11 on
	@echo "== What takes minutes: simulations of the statistics, frameworks, the commands of every page"
	ALL_EXAMPLES=1 $(BIN)/python -m pytest -n 2 --dist worksteal -rA -q -m long tests
	@echo "== Properties, with all their examples"
	ALL_EXAMPLES=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q tests/properties
	@echo "== The planes on uvloop"
	ON_UVLOOP=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q tests/unit/http1 tests/unit/planes tests/unit/agents tests/unit/execute tests/integration/agents tests/integration/clients
	@set -e; ran=; for python in $$(sh tests/pythons.sh); do \
	  version=$$($$python -c 'import sys; print(sys.version.split()[0])'); \
	  echo "== Python $$version: $$python"; \
	  $(MAKE) --no-print-directory test VENV=$(VENV)-$$version PYTHON=$$python; \
	  ran="$$ran $$version"; \
	done; echo "What takes minutes ran, and all tests on Python:$$ran"; test -n "$$ran"

test-docker: $(VENV)/.dev ## The docker backend, against an engine of its own (needs root and dockerd)
	@sh tests/docker/engine.sh $(BIN)/python -m pytest tests/docker/docker_conform.py tests/docker/docker_services.py

test-agents: $(VENV)/.dev ## Each recipe of init --from with its real program (npm, pip); one of them: NAME=codex
	$(BIN)/python -m pytest -rA -q $(if $(NAME),-k "$(NAME)") tests/published/published_agents.py

check: $(VENV)/.dev ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

ifeq (bench,$(firstword $(MAKECMDGOALS)))
BENCHMARKS := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
$(filter-out page,$(BENCHMARKS)): ; @:
endif

bench: setup ## Speed beside a bare loop, as ratios; `make bench hunt` runs only that benchmark
	$(BIN)/python benchmarks/run.py $(BENCHMARKS)

figures: ## The size and shape of the code: lines, files, long functions, large classes, pinned sentences
	@$(PYTHON) tools/figures.py

docs: $(VENV)/.dev ## Write docs/configuration.md, docs/codes.md and docs/holdfast.schema.json from the types
	$(BIN)/python tools/reference.py > docs/configuration.md
	$(BIN)/python tools/reference.py codes > docs/codes.md
	$(BIN)/holdfast schema -o docs/holdfast.schema.json

$(VENV)-docs/.docs: requirements/docs.txt
	@test -x $(VENV)-docs/bin/python || $(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

SITE ?= site
PAGES ?= build/site
site: $(VENV)/.base $(VENV)-docs/.docs ## The documentation as a site that needs no network: site/index.html
	$(BIN)/python tools/site_build.py $(PAGES)
	$(VENV)-docs/bin/zensical build --strict --clean -f $(PAGES)/mkdocs.yml
	rm -rf $(SITE) && mv $(PAGES)/site $(SITE)
	@echo "open $(SITE)/index.html"

dist: $(VENV)/.base ## The sdist and the wheel, in dist/
	rm -rf dist
	$(BIN)/hatchling build -d dist

lock: ## Pin requirements anew (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url pyproject.toml requirements/build.in -o requirements/base.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --extra semantic --extra ray --extra uvloop pyproject.toml requirements/build.in requirements/dev.in -o requirements/dev.txt
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url requirements/docs.in -o requirements/docs.txt

clean: ## Remove what the targets made
	rm -rf $(VENV) $(VENV)-3.* .venv-agents $(VENV)-docs build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
