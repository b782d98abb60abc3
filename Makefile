PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
PORT ?= 9092

.DEFAULT_GOAL := help
.PHONY: help setup run test check lint types arch bench soak format dashboards kafka services

help: ## Say what each target does
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv and install calmon into it; again only when what it needs has changed

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "calmon needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) --version 2>&1): try 'make $(MAKECMDGOALS) PYTHON=/path/to/python3.11'" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' cannot make a virtual environment: install its venv module (Debian: apt-get install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

run: setup ## Replay the packaged streams on a scaled clock and serve their gauges on 127.0.0.1:9779
	$(BIN)/calmon demo

test: check ## The same as check

check: services lint types arch ## All that CI runs: lint, types, architecture, every test
	$(BIN)/python -m pytest

lint: setup ## ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup ## mypy, strict, package and tests
	$(BIN)/mypy

arch: setup ## import-linter: dependencies point down, pure rooms stay pure
	$(BIN)/lint-imports

bench: setup ## Measure and print the cost of a record
	$(BIN)/python -m pytest tests/bench -s -m bench

soak: setup services ## The tests that run for minutes
	$(BIN)/python -m pytest tests -m soak

format: setup ## Let ruff format and fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

dashboards: setup ## Write grafana/dashboards/ anew from the catalogue of metrics
	$(BIN)/python -m grafana.generate

kafka: ## Start an Apache Kafka broker on 127.0.0.1:9092 (or PORT=...) and stay with it; no Docker needed
	@deploy/local/kafka/start.sh --port $(PORT) || [ $$? -eq 130 ]

services:
	@for program in prometheus promtool amtool; do command -v $$program >/dev/null || { \
		echo "the tests need $$program: run 'sudo deploy/local/install-services.sh' (Debian), or put Prometheus >= 2.42 and Alertmanager >= 0.25 on PATH" >&2; exit 1; }; done
	@docker info >/dev/null 2>&1 || deploy/local/kafka/fetch.sh >/dev/null
