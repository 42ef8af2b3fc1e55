# `make demo` shows it at work; `make test` proves it. The first run makes .venv and fetches what is needed.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11,\
  $(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $(p))))
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: help venv java jars demo test test-fast soak bench lint format clean

help: ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

venv: $(STAMP) ## make .venv with everything the demo and the tests need

$(STAMP): pyproject.toml
	@[ -n "$(PYTHON)" ] || { echo 'missing: Python 3.11 or newer (or name one: make PYTHON=/path/to/python3)' >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null \
	  || { echo 'missing: the venv module of $(PYTHON) (on Debian: apt-get install python3-venv)' >&2; exit 1; }
	@[ -x $(BIN)/python ] || "$(PYTHON)" -m venv .venv
	@echo 'installing into .venv'
	@$(BIN)/python -m pip install --quiet --compile --editable '.[demo,test]'
	@touch $@

java:
	@missing=; \
	java -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])' || missing="$$missing, java (17 or newer)"; \
	command -v javac >/dev/null || missing="$$missing, javac (a JDK, not a JRE)"; \
	command -v mvn >/dev/null || missing="$$missing, mvn (Maven)"; \
	[ -z "$$missing" ] || { \
	  echo "missing for the Kafka Streams tests: $${missing#, }" >&2; \
	  echo 'on Debian: apt-get install openjdk-17-jdk-headless maven; without Java: make test-fast' >&2; exit 1; }

jars: java venv
	@echo 'looking for the Kafka jars (the first time they are fetched)'
	@$(BIN)/python -m tests.support.jars
	@$(BIN)/python -m tests.support.quix_app

demo: venv ## watch snapstore save and restore a store (needs no Java)
	@$(BIN)/snapstore demo

lint: venv ## style, types and the import rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: jars lint ## lint and every test, with a real broker and real Kafka Streams applications
	$(BIN)/pytest -n 2 -m 'not kafka and not soak'
	$(BIN)/pytest -n 2 --dist loadfile -m 'kafka and not soak'

test-fast: lint ## lint and the tests that need no Java (under two minutes)
	$(BIN)/pytest -n 2 -m 'not kafka and not slow and not soak'

soak: jars venv ## the tests that run for minutes
	$(BIN)/pytest -m soak --timeout 3600

bench: jars venv ## measure beside other tools (20 to 25 minutes); writes benchmarks/RESULTS.md
	$(BIN)/python -m benchmarks

format: venv ## rewrite the sources in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove .venv and the caches
	rm -rf .venv .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache
