# Each target installs what it needs, apart from Python 3.11+ and make.
# PYTHON=python3.12 selects an interpreter, ARGS="-k lease -x" is passed to the tool, as in `make test ARGS="-k lease"`.

# In a checkout that is not writable, the environment is created in the user's cache folder.
ifndef VENV
VENV := $(shell test -w . && echo .venv || echo "$${XDG_CACHE_HOME:-$$HOME/.cache}/mockube/venv")
endif
BIN   := $(VENV)/bin
CACHE := $(VENV)/cache
PYTEST := "$(BIN)/pytest" -o cache_dir="$(CACHE)/pytest"

export PYTHON VENV
export COVERAGE_FILE := $(CACHE)/coverage
export HYPOTHESIS_STORAGE_DIRECTORY := $(CACHE)/hypothesis
export MYPY_CACHE_DIR := $(CACHE)/mypy
export RUFF_CACHE_DIR := $(CACHE)/ruff
# pytest keeps the tests that it has compiled: collecting them again takes two thirds of the time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: environment ## Create the virtual environment, with all tools
	@echo "$(VENV) is set up with $$("$(BIN)/python" --version)"

environment: # Prints nothing and returns quickly if it is up to date
	@sh tools/setup.sh dev

runtime: # As environment, with only what running needs
	@sh tools/setup.sh run

up: runtime ## Start a cluster, and print the next commands
	@"$(BIN)/mockube" up $(ARGS)

check: environment ## Check format, style and types, and run the quick unit tests: a minute, before each commit
	@"$(MAKE)" --no-print-directory -j2 unit lint types

unit: environment # The unit tests that take milliseconds; the tests of properties try a third of the cases
	@HYPOTHESIS_PROFILE=dev $(PYTEST) --workers auto --tier check -q tests/unit tests/packs/*/unit tests/extras/*/unit tests/contract/container_runtime $(ARGS)

test: environment ## Run the tests that need Python only: before you propose a change
	@$(PYTEST) --workers auto $(ARGS)

test-rest: environment ## Run what `make test` leaves out: with a browser, Go, kubectl and other programs, and pages that run for long
	@$(PYTEST) --workers auto --tier rest $(ARGS)

test-all: definitions ## Run every test with all its cases, as before a release: a fault at every write, 50,000 hostile requests, 10,000 streams
	@MOCKUBE_EVERY_DISTURBANCE=1 MOCKUBE_FULL_SIZE=1 MOCKUBE_HOSTILE_REQUESTS=50000 MOCKUBE_STREAM_ROUNDS=10000 HYPOTHESIS_PROFILE=release \
		$(PYTEST) --workers auto $(ARGS)

slow: environment ## Print the most expensive tests of the last runs, by processor time; ARGS="--count 30"
	@"$(BIN)/python" -m tools.slow_tests "$(CACHE)/pytest" $(ARGS)

flaky: environment ## Run every test ten times on too few processors, for a night, and list those that fail at times; ARGS="--rounds 3 tests/cli"
	@"$(BIN)/python" -m tools.flaky_tests $(ARGS)

conformance: environment ## Replay the recorded responses of a real cluster; CONFORMANCE_DIR names another folder of recordings
	@$(PYTEST) --workers auto -rP tests/conformance $(ARGS)

mutations: environment ## Remove each stage of the server, and rules of the other packages, and check that unit tests fail; ARGS="--package scheduler --seed 3"
	@HYPOTHESIS_PROFILE=dev "$(BIN)/python" -m tests.mutations $(ARGS)

cov: environment ## Run every test and list the lines that were not covered
	@"$(BIN)/coverage" erase
	@"$(BIN)/coverage" run -m pytest -o cache_dir="$(CACHE)/pytest" $(ARGS)
	@"$(BIN)/coverage" combine --quiet
	@"$(BIN)/coverage" report

records: environment ## Record the effects of simulated scripts anew, after a change that is meant: read what differs before you commit it
	@"$(BIN)/python" -m judges.differential.shell --retrace tests/unit/container_runtime/simulated/shell/recorded_*.jsonl

compose-test: environment ## Run compose.yaml on a Docker engine, start an engine if none is running, and kill its containers
	@"$(BIN)/python" -m tools.compose_test "$(CACHE)/compose-test"

compose-packages: environment # What `make compose-test` would fetch, which mostly waits for the network
	@"$(BIN)/python" -m tools.compose_test "$(CACHE)/compose-test" --fetch

browser: environment ## Install a Chromium for the tests of the page, if the machine has none, and axe: from npm, without root
	@"$(BIN)/python" -m tools.browser $(ARGS)

browser-if-possible: environment # As above; without it, the tests name what is missing
	@"$(BIN)/python" -m tools.browser || true

fuzz: environment ## Run the fuzzer; MINUTES=60 SEED=7 ARGS="--targets yaml,patches --jobs 2"
	@"$(BIN)/python" -m tests.fuzz --minutes "$(or $(MINUTES),5)" --seed "$(or $(SEED),1)" $(ARGS)

differential: environment ## Send random requests to a real kube-apiserver and to mockube; ARGS="--requests 20000 --seed 7"
	@"$(BIN)/python" -m judges.differential $(ARGS)

shell-differential: environment ## Run random scripts in real shells (dash, busybox, bash) and in the simulated shell; ARGS="--scripts 10000 --seed 7"
	@"$(BIN)/python" -m judges.differential.shell $(ARGS)

scheduling-differential: environment ## Compare the decisions of a real kube-scheduler with ours on random clusters; ARGS="--rounds 100 --seed 7"
	@"$(BIN)/python" -m judges.differential.scheduling $(ARGS)

record: environment ## Record the responses of a real control plane to a scenario; ARGS="judges/recorder/scenarios/refusals.yaml"
	@"$(BIN)/python" -m judges.recorder $(ARGS)

e2e: environment ## Run Kubernetes' conformance suite against a mockube cluster (needs Go); ARGS="--focus sig-apps --jobs 2"
	@"$(BIN)/python" -m judges.e2e $(ARGS)

charts: environment ## Install, test, upgrade and remove public charts; CHARTS=DIR names a folder of packaged ones, ARGS="--only redis"
	@"$(BIN)/python" -m judges.charts $(if $(CHARTS),--charts "$(CHARTS)") $(ARGS)

tasks: environment ## Run public tasks with something broken and their checks; TASKS=DIR names a folder of repositories, ARGS="--only k8s-ai-bench"
	@"$(BIN)/python" -m judges.tasks $(if $(TASKS),--tasks "$(TASKS)") $(ARGS)

lessons: environment ## Replay public pages and exercises; LESSONS=DIR names a folder of repositories, ARGS="--only ckad"
	@"$(BIN)/python" -m judges.lessons $(if $(LESSONS),--lessons "$(LESSONS)") $(ARGS)

podnetwork: environment ## Run CoreDNS and CloudNativePG, built from source, in pods with networks of their own (needs Go; root and postgresql): ARGS="--only coredns"
	@"$(BIN)/python" -m judges.podnetwork $(ARGS)

suites: environment ## Run public test suites (needs Go, Maven, cargo); SUITES=DIR names a folder of checkouts, ARGS="--only jobset"
	@"$(BIN)/python" -m judges.suites $(if $(SUITES),--suites "$(SUITES)") $(ARGS)

operators: environment ## Explore operators with published bugs and well-made ones, built from source (needs Go); OPERATORS=DIR names a folder of built ones, ARGS="--only rabbitmq"
	@"$(BIN)/python" -m judges.operators $(if $(OPERATORS),--operators "$(OPERATORS)") $(ARGS)

explorer: environment ## Remove one line of a controller at a time, and check that explore finds the mistake: ARGS="--only cronjob --budget 300"
	@"$(BIN)/python" -m judges.explorer $(ARGS)

definitions: environment ## Fetch the definitions that projects publish (needs Go); a test installs them
	@"$(BIN)/python" -m tools.definitions

minor: environment ## Follow a new release of Kubernetes (needs Go); RELEASE=1.38.0, or to compare only ARGS="--only apiserver/kinds --diff"
	@"$(BIN)/python" -m tools.minors new "$(RELEASE)" $(ARGS)

dist: environment ## Build wheel, source distribution, one-file program, bill of materials and checksums into dist/
	@"$(BIN)/python" -m tools.distribution $(ARGS)

image: ## Build the container image; IMAGE=registry/mockube:0.2.0 names it, ARGS="--platform linux/amd64,linux/arm64" is passed to docker build
	@docker build --file deploy/Dockerfile --tag "$(or $(IMAGE),mockube:local)" $(ARGS) .

sizes: environment ## Measure the wheel, and what pip install and make up take; fails if one is larger than its limit
	@"$(BIN)/python" -m tools.installation

bench: environment ## Measure the speed of the store
	@"$(BIN)/python" benchmarks/store.py $(ARGS)

bench-growth: environment ## Measure how cost grows with nodes, pods, watchers and objects, and draw it: an hour or longer; QUICK=1 takes 5 minutes, ARGS="--with-kubernetes"
	@"$(BIN)/python" -m benchmarks.growth $(if $(QUICK),--quick) $(ARGS)

bench-ratios: environment ## Check that requests, pods and decisions cost the same in small and large clusters
	@"$(BIN)/python" -m benchmarks.growth.ratios

hostile: environment ## Measure how expensive requests of one client delay others; needs an idle machine
	@"$(BIN)/python" benchmarks/hostile.py $(ARGS)

fmt: environment ## Format the code and apply automatic fixes
	@"$(BIN)/ruff" format .
	@"$(BIN)/ruff" check --fix .

lint: environment ## Check format and style
	@"$(BIN)/ruff" format --check .
	@"$(BIN)/ruff" check .
	@"$(BIN)/python" -m tools.code_sizes

types: environment ## Check types
	@"$(BIN)/mypy"

imports: environment ## Check the layers of imports
	@"$(BIN)/lint-imports" --no-cache

flags: environment ## Generate docs/flags.md from the code
	@"$(BIN)/python" tools/flags_page.py

python-api: environment ## Generate the awaited methods of the Python API, and docs/reference/python.md
	@"$(BIN)/python" -m tools.awaited_methods
	@"$(BIN)/python" -m tools.python_page

fidelity: environment ## Generate the pages of docs/fidelity/ from their YAML files
	@"$(BIN)/python" -m tools.fidelity_pages

LOCK = "$(BIN)/uv" pip compile --quiet --generate-hashes --no-header --no-annotate --no-emit-index-url --universal --python-version 3.11

lock: environment ## Generate requirements/ from pyproject.toml; ARGS=--upgrade for newer versions
	@$(LOCK) --group dev --extra tracing pyproject.toml -o requirements/dev.txt $(ARGS)
	@$(LOCK) --constraint requirements/dev.txt pyproject.toml -o requirements/run.txt
	@$(LOCK) --constraint requirements/dev.txt --group build -o requirements/build.txt
	@"$(MAKE)" --no-print-directory environment

clean: ## Remove all generated files
	@rm -rf "$(VENV)" .coverage* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist

.PHONY: help setup environment runtime up check unit test browser browser-if-possible test-all slow flaky conformance records compose-test compose-packages cov fuzz differential shell-differential scheduling-differential record e2e charts tasks lessons podnetwork suites operators explorer definitions minor dist image sizes bench bench-growth bench-ratios hostile fmt lint types imports flags python-api fidelity lock clean
