# Every verb of the project. `make help` lists them; each works as the first command in a fresh clone.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
PYTHON ?= python3
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Where this is set, each worker and each program would compile everything anew, tests above all.
export PYTHONDONTWRITEBYTECODE =
READY := .venv/.ready
# A file's tests stay together, since they share what they start. They also wait a lot, some files for
# more than a minute, so that there is work for two more than there are cores; four take memory enough.
WORKERS := $(shell n=$$(nproc); echo $$((n < 2 ? n + 2 : 4)))
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup check test coverage demo e2e keda versions images release release-check frameworks frameworks-clean gpushare soak bench scale slow nightly mutants lock docs manifests dashboards chart clean

help: ## list the verbs
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ \
	  line = sprintf("  make %-16s", $$1); count = split($$2, words, " "); \
	  for (at = 1; at <= count; at++) { \
	    if (length(line) + 1 + length(words[at]) > 80) { print line; line = sprintf("%23s", "") } \
	    line = line " " words[at] } \
	  print line }'

setup: $(READY) ## build the environment in .venv (every other verb does this by itself)

$(READY): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "gpufence needs Python >= 3.11; $(PYTHON) is $$($(PYTHON) --version 2>&1). Remedy: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || \
	  { rm -rf .venv; echo "$(PYTHON) cannot create environments. Remedy on Debian: apt install python3-venv"; exit 1; }
	@echo "==> installing the locked tools into .venv (about a minute, once)"
	@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off --no-deps --require-hashes -r requirements/dev.txt \
	  | awk '/^Collecting/ {sub("==.*", "", $$2); printf " %s", $$2; fflush()} END {print ""}'
	@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off --quiet --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: static
static: $(READY)
	@echo "==> format";           $(BIN)/ruff format --check --quiet .
	@echo "==> lint";             $(BIN)/ruff check --quiet .
	@echo "==> types, import contracts"
	@$(BIN)/lint-imports --no-logo > .lint-imports.log & contracts=$$!; $(BIN)/mypy --no-error-summary; types=$$?; \
	  wait $$contracts || { cat .lint-imports.log; exit 1; }; exit $$types
	@rm -f .lint-imports.log

check: static ## format, lint, types, import contracts and unit tests (under a minute)
	@echo "==> unit tests";       $(PYTEST) -q tests/unit
	@echo "==> size";             $(BIN)/python -m tests.unit.house figures

test: static ## everything that needs no root; the command that CI runs
	@$(BIN)/python -m simulator build
	@$(BIN)/python -m simulator build helm
	@for each in chromium prometheus; do $(BIN)/python -m simulator build $$each > /dev/null || true; done
	@echo "==> all tests, with branch coverage of the pure modules"
	@rm -f .coverage .coverage.*
	@$(PYTEST) -q --cov --cov-report=
	@$(BIN)/python -m tests.unit.house pure

coverage: static ## the same tests with all our code followed, in the programs that they start too: 90 % of its branches
	@$(BIN)/python -m simulator build
	@$(BIN)/python -m simulator build helm
	@rm -f .coverage .coverage.*
	@GPUFENCE_COVER_EVERYTHING=1 $(PYTEST) -q --cov --cov-report=
	@$(BIN)/python -m tests.unit.house coverage

demo: $(READY) ## two tenants, one card, an eviction: the whole story with real programs (KEEP=1: leave them running; FRAMEWORK=torch: a real PyTorch; STORY=burst: one borrows what another one does not use; STORY=driver: the driver refuses; STORY=idle: a GPU that nobody uses makes room; STORY=need: what was measured becomes the limit)
	@$(BIN)/python -m simulator demo $(if $(KEEP),--keep) $(if $(FRAMEWORK),--framework $(FRAMEWORK)) $(if $(STORY),--story $(STORY))

e2e: $(READY) ## the whole story on a real one-node cluster (root, Debian packages: docs/e2e.md)
	@$(BIN)/python -m simulator cluster --install --prepare
	@$(BIN)/python -m simulator build helm nvidia-cdi-hook docker-registry skopeo
	@$(BIN)/pytest -m e2e --timeout 900

keda: $(READY) ## real KEDA and RabbitMQ scale simulated workers by seconds of backlog (Debian packages; 25 minutes)
	@$(BIN)/python -m simulator build
	@$(BIN)/python -m simulator build keda prometheus
	@$(BIN)/pytest -m keda --timeout 1800 -p no:randomly tests/keda; code=$$?; \
	  $(BIN)/python -m tests.keda.report; exit $$code

versions: $(READY) ## the tests that the API server decides, on each Kubernetes from 1.30 (an hour more once, then 40 minutes; ONLY=1.34)
	@$(BIN)/python -m tests.versions $(foreach minor,$(ONLY),--only $(minor))

images: ## build the images, with docker, podman or buildah (BASE=image, NAME=prefix, PUSH=1, PLATFORM=linux/amd64)
	@deploy/images/build $(if $(BASE),--base $(BASE)) $(if $(NAME),--name $(NAME)) $(if $(PUSH),--push) $(if $(PLATFORM),--platform $(PLATFORM))

release: $(READY) ## everything that is published into dist/, with checksums; the same commit gives the same bytes (IMAGES=1 NAME=registry/path: push images too, PLATFORM=linux/amd64,linux/arm64)
	@test -z "$(IMAGES)" || test -n "$(NAME)" || { echo "make release: IMAGES=1 wants NAME, the registry to push to. Remedy: make release IMAGES=1 NAME=registry.example.com/gpufence"; exit 2; }
	@$(BIN)/python -m tools.release
	@test -z "$(IMAGES)" || deploy/images/build --name $(NAME) --push --digests dist/image-digests.yaml $(if $(BASE),--base $(BASE)) $(if $(PLATFORM),--platform $(PLATFORM))

release-check: $(READY) ## two clean clones release the same bytes, and the real cosign tells a changed one (ten minutes once for cosign)
	@$(BIN)/python -m simulator build cosign
	@$(BIN)/pytest -m release --timeout 1200 tests/http/release

frameworks: $(READY) ## real wheels on simulated cards: does each cap bite? (tens of GB once; ONLY=torch-2.10)
	@$(BIN)/python -m simulator wheels build $(ONLY)
	@GPUFENCE_FRAMEWORKS_ONLY="$(ONLY)" $(BIN)/pytest -m frameworks --timeout 900 tests/frameworks; code=$$?; \
	  $(BIN)/python -m tests.frameworks.report; exit $$code

gpushare: $(READY) ## compare with a build of gpushare's own program (GPUSHARE_INSPECT=/path/to/inspect; CONTRIBUTING.md)
	@test -x "$(GPUSHARE_INSPECT)" || { echo "name a build: make gpushare GPUSHARE_INSPECT=/path/to/inspect (CONTRIBUTING.md says how to make one)"; exit 1; }
	@GPUSHARE_INSPECT="$(GPUSHARE_INSPECT)" $(BIN)/pytest -q -m gpushare tests/http/plugin/test_gpushare.py

frameworks-clean: $(READY) ## remove the environments of make frameworks from the cache
	@$(BIN)/python -m simulator wheels remove

soak: $(READY) ## the long runs (many minutes)
	@$(BIN)/python -m simulator build
	@$(BIN)/pytest -m soak --timeout 3600
	@GPUFENCE_EXAMPLES_TIMES=20 $(BIN)/pytest -q -m "not soak" --timeout 3600 tests/property

bench: $(READY) ## measure speed and memory, as ratios within one run
	@$(BIN)/python -m simulator build
	@$(BIN)/python -m tests.bench

scale: $(READY) ## 5,000 GPU nodes and 50,000 pods on a real API server: what everything takes (20 minutes, 8 GB of memory; NODES=500: four minutes)
	@$(BIN)/python -m simulator build
	@$(BIN)/python -m tests.scale $(if $(NODES),--nodes $(NODES)) $(if $(PODS),--pods $(PODS)) \
	  $(if $(SILENT),--silent $(SILENT)) $(if $(AGENTS),--agents $(AGENTS)) $(if $(RATE),--rate $(RATE)) \
	  $(if $(SECONDS),--seconds $(SECONDS))

slow: $(READY) ## the tests that take too long for make test (marker nightly)
	@$(BIN)/python -m simulator build
	@$(BIN)/python -m simulator build helm
	@for each in chromium prometheus; do $(BIN)/python -m simulator build $$each > /dev/null || true; done
	@$(PYTEST) -q -m nightly --timeout 3600

nightly: $(READY) ## all that is not in make test, one after the other, resumable; docs/nightly.md says how it ended (many hours; VERB=keda)
	@$(BIN)/python -m tools.nightly $(foreach verb,$(VERB),--only $(verb))

mutants: $(READY) ## put small faults into pure modules and see whether tests notice (ONLY=agent/judge SAMPLE=60 SEED=1; CHECK=1: survivors on all unit tests)
	@$(BIN)/python -m tools.mutants $(if $(ONLY),--only $(ONLY)) $(if $(SAMPLE),--sample $(SAMPLE)) \
	  $(if $(SEED),--seed $(SEED)) $(if $(CHECK),--check)

lock: $(READY) ## renew requirements/*.txt from pyproject.toml (releases at least a week old)
	@$(BIN)/python -m tools lock

docs: $(READY) ## write the tables of settings and dialects in README and docs/ anew, from the code
	@$(BIN)/python -m tools docs

manifests: $(READY) ## write the conditions of webhook and policies in deploy/ anew, from the dialects
	@$(BIN)/python -m tools manifests

dashboards: $(READY) ## write Grafana's dashboards in deploy/ anew, and where alerts lead
	@$(BIN)/python -m tools dashboards

chart: $(READY) ## write the Helm chart in deploy/chart anew, from the manifests
	@$(BIN)/python -m tools chart

clean: ## remove the environment and every product of the checks
	@rm -rf .venv build dist .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
