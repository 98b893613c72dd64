# Everything a machine needs is set up from here; only Python 3.11+ and make must be there first.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.set-up
CODE   := apimachinery apiserver controller_manager etcd mockube tests benchmarks tools

.DEFAULT_GOAL := help

help: ## Say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make the virtual environment, with every tool

$(STAMP): requirements.lock tools/setup.sh
	@PYTHON="$(PYTHON)" VENV="$(VENV)" sh tools/setup.sh
	@touch $@

up: $(STAMP) ## Start what there is to start, and say what to type next
	@$(BIN)/mockube up

test: $(STAMP) ## Run every test
	@$(BIN)/pytest -n auto

fmt: $(STAMP) ## Format the code and mend what can be mended
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/ruff check --fix $(CODE)

lint: $(STAMP) ## Check format and style
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/ruff check $(CODE)

types: $(STAMP) ## Check types
	@$(BIN)/mypy

imports: $(STAMP) ## Check that layers are kept
	@$(BIN)/lint-imports

cov: $(STAMP) ## Run every test and show what was not run
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest
	@$(BIN)/coverage combine -q
	@$(BIN)/coverage report

bench: $(STAMP) ## Measure
	@$(BIN)/python benchmarks/store.py

lock: ## Write requirements.lock anew from pyproject.toml (needs uv)
	@uv pip compile --quiet --generate-hashes --no-header --no-annotate --universal --python-version 3.11 \
		--group dev pyproject.toml -o requirements.lock

clean: ## Remove what was made
	@rm -rf $(VENV) .coverage* htmlcov .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info

.PHONY: help setup up test fmt lint types imports cov bench lock clean
