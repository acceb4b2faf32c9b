# `make demo` and `make test` do all the set-up on a fresh Debian with Python 3.11.
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-quick test-servers test-full lint types check bench trace trace-check crash clean

BIN := .venv/bin
ROUNDS ?= 50
SEED ?=
PYTEST_ARGS ?=
WORKERS ?= 2
BENCH_ARGS ?=
TRACE_RESULTS := .trace-results.json
SIDE_LOG := .side-tests.log
# Folders whose tests start servers of their own: they balance the two processes.
ALONE := tests/cli tests/embedded

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

setup: ## SWI-Prolog, .venv, the package and its extras; nothing when done before
	@tools/setup.sh

demo: setup ## The product on real text, in under a minute
	@$(BIN)/orchestrata-memory demo

test: setup ## All tests: the quick ones, then those on real servers
	@rm -f $(TRACE_RESULTS)
	@$(MAKE) --no-print-directory test-quick
	@$(MAKE) --no-print-directory test-servers

test-quick: setup ## Tests without servers
	@TRACE_RESULTS=$(TRACE_RESULTS) $(BIN)/pytest -q -m "not servers" -n $(WORKERS) --dist loadfile $(PYTEST_ARGS)

test-servers: setup ## Tests on Redis, ArcadeDB and Neo4j, in two processes side by side
	@export TRACE_RESULTS=$(TRACE_RESULTS); \
	{ $(BIN)/pytest -q -m "servers and neo4j" $(PYTEST_ARGS); on_neo4j=$$?; \
	  $(BIN)/pytest -q -m "servers and not neo4j" $(ALONE) $(PYTEST_ARGS) && exit $$on_neo4j; \
	} >$(SIDE_LOG) 2>&1 & \
	$(BIN)/pytest -q -m "servers and not neo4j" $(ALONE:%=--ignore=%) $(PYTEST_ARGS); main=$$?; \
	wait $$!; side=$$?; \
	echo "== on Neo4j, and by the servers of their own: $(ALONE)"; cat $(SIDE_LOG); \
	[ $$main -eq 0 ] && [ $$side -eq 0 ]

test-full: setup ## All tests, the heavy ones on both graphs (about twice as long)
	@$(MAKE) --no-print-directory test PYTEST_ARGS="--all-graphs $(PYTEST_ARGS)"

lint: setup ## Style
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .

types: setup ## Types
	@$(BIN)/mypy

check: lint types trace-check ## Everything that needs no test run

bench: setup ## The latency table (BENCH_ARGS="--check --backend embedded")
	@$(BIN)/orchestrata-memory bench latency $(BENCH_ARGS)

trace: setup ## Requirement → code → tests, written to the specs
	@$(BIN)/python tools/trace.py --write

trace-check: setup ## Fails when that table is stale or incomplete
	@$(BIN)/python tools/trace.py --check

crash: setup ## Kill every part while it writes (ROUNDS=50 SEED=7)
	@$(BIN)/python -m tests.crash.run --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED))

clean: ## Remove .venv and caches
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis $(TRACE_RESULTS) $(SIDE_LOG)
