# `make help` lists what there is. Everything runs on this machine, on private servers under ./.binlane.
SHELL := /bin/bash
PYTHON := .venv/bin/python
export PYTHONPATH := plugins:.
# hundreds of processes start here: without bytecode each would compile every package that it imports
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo quick test trials sweeps chaos servers pictures trial suites histories mutations lint classes sanitized conformance configuration structure compose-check compose-test cluster-test wheel dist release clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  \1\t/'

setup: ## install what is missing: uv, .venv with compiled kernels, MariaDB's programs, Java
	@lab/setup.sh

demo: setup ## one window, end to end, through Airflow and Spark; KEEP=1 leaves it running, the next call applies the next window
	@$(PYTHON) -m lab.demo

# files in turn to four processes (they wait for servers), in the order of the folders: the long ones (chaos, dags,
# integration) first; tests/chaos is named for its score, which pytest shows only of folders that it is given
SPREAD := -n 4 --dist loadfile --no-loadscope-reorder

test: setup ## lint, types and all tests that a change may break, on private servers
	@$(MAKE) --no-print-directory -j2 lint classes
	@$(PYTHON) -m tests --tier test $(SPREAD) tests/chaos tests

quick: setup ## units and some windows of MariaDB, for the time between two commits
	@$(PYTHON) -m tests --tier quick -n 2 --dist loadfile tests/unit tests/integration

trials: setup ## kills at every statement, live Airflow, the browser, samples of the sweeps; MINUTES=30 limits the time, TURN=0 chooses the part that CI runs
	@$(PYTHON) -m tests --tier trials --turn $(or $(TURN),$(shell git rev-list --count HEAD 2>/dev/null),0) $(call option,MINUTES) $(SPREAD) tests/chaos tests

# option NAME: NAME=value of the command line as --name value
lower = $(shell echo $(1) | tr A-Z a-z)
option = $(if $($(1)),--$(call lower,$(1)) $($(1)))

servers: ## MySQL and other series of MariaDB for the tests, unpacked from Debian's or Ubuntu's archive beside the system's
	@lab/server_programs.sh

# the archive of classes and the bytecode of all tests, once an environment: without them every JVM would spend eight
# seconds on the first, and each worker ten on the second
classes: .venv/binlane.classes

.venv/binlane.classes: uv.lock | setup
	@$(PYTHON) -m pytest -q tests -k "test_a_jvm_reads_its_classes_from_the_archive"
	@touch $@

sanitized: setup ## damaged logs through kernels that check every access to memory (address and undefined behaviour)
	@$(PYTHON) -m lab.sanitized

sweeps: setup ## all that the tests leave out, several hours: each case on each server, every global variable, every column of the state with hostile values
	BINLANE_SWEEP=all $(PYTHON) -m tests --tier sweeps $(SPREAD) --timeout=0 tests/chaos tests

chaos: setup ## kill, cut and pause at every statement, once; SECONDS=600 limits the time, SEED=1 repeats a run
	BINLANE_CHAOS=$(or $(SECONDS),all) BINLANE_CHAOS_SEED=$(SEED) $(PYTHON) -m pytest tests/chaos --timeout=0

pictures: setup ## the board's pictures in docs/images, in headless Chromium
	$(PYTHON) -m tests.integration.window.board.board_pictures docs/images

trial: setup ## a new user's first days with a channel, on both families, with live traffic; writes the docs' sample outputs; FAMILY=mysql; SMALL=1: few rows, writes nothing
	$(PYTHON) -m lab.trial $(call option,FAMILY) $(if $(SMALL),--small)

suites: setup ## the servers' own replication suites, continued; SECONDS=3600 limits the time; FAMILY=mysql FORMAT=row ONLY=rpl_alter
	$(PYTHON) -m lab.suites $(foreach each,FAMILY FORMAT SUITE ONLY AGAIN SEED PART,$(call option,$(each))) $(if $(filter-out 0,$(SECONDS)),--seconds $(SECONDS))

histories: setup ## generated histories on both families, compared with the servers' own replicas; SECONDS=600, SEED=1, FAMILY=mysql
	$(PYTHON) -m lab.histories --seconds $(or $(SECONDS),60) --seed $(or $(SEED),0) $(if $(FAMILY),--family $(FAMILY))

mutations: setup ## delete the guards of docs/invariants.md one by one and see their tests fail; ONLY=3: one invariant's
	$(PYTHON) -m lab.mutations $(if $(ONLY),--only $(ONLY))

lint: setup ## ruff and mypy --strict
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

conformance: setup ## run the tests of docs/conformance.md, then write the pages
	$(PYTHON) -m tests.conformance

configuration: ## write the keys of a channel file into docs/configuration.md
	$(PYTHON) -m lab.configuration_page

structure: setup ## write the order of imports into CONTRIBUTING.md and docs/images/structure.svg
	$(PYTHON) -m tests.structure

wheel: setup ## wheel, sdist and constraints in dist/, in less than a minute
	@$(PYTHON) -m lab.dist --build-only

dist: setup ## wheel, sdist and constraints in dist/; installs both into empty environments and runs a window from each; AIRFLOW=3.1: with that minor release of Airflow
	@$(PYTHON) -m lab.dist $(call option,AIRFLOW)

compose-check: setup ## check docker-compose.yml, by docker compose if installed, and against the project
	$(PYTHON) -m pytest -q tests/unit/test_compose.py

compose-test: setup ## start docker-compose.yml for real, kill its services one by one, compare the servers; needs a Docker engine
	$(PYTHON) -m lab.compose

cluster-test: setup ## a cluster on this machine (PostgreSQL, Redis, Celery, Spark, S3), whose parts are killed one by one in windows of both families
	$(PYTHON) -m lab.cluster

release: setup ## VERSION=0.2.0: the changelog's section, wheel, sdist and constraints in dist/, a commit and a tag; pushes nothing
	@$(PYTHON) -m lab.release $(or $(VERSION),$(error VERSION=0.2.0: which version to release))

clean: ## stop and remove the demo
	@if [ -x $(PYTHON) ]; then $(PYTHON) -m lab.demo --clean; fi
	rm -rf .binlane/demo
