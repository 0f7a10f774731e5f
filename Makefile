# Everything a developer needs. Each target sets up what it needs by itself.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Python keeps what it compiles: the tests start thousands of processes.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
STAMP := .venv/.set-up
# The demo does with less, which is there sooner.
DEMO_STAMP := .venv/.set-up-for-demo
EVERYTHING := analytics,broker,demo,dev,operator
UV := $(or $(shell command -v uv),$(BIN)/uv)
SAY = @printf '\033[1m==> %s\033[0m\n'

# Java and Spark wait for each other often enough for two at a time. Tests that measure time or
# memory have the machine for themselves, and nobody traces them; all others mostly wait, three at
# a time. One that fails for want of a core, which other machines may take too, is tried once more
# alone: a broken one fails again.
PROGRAMS := interop or spark
ALONE := (slow or crash) and not (patient or thorough or $(PROGRAMS))
OTHERS := (patient or not (slow or crash)) and not (thorough or $(PROGRAMS))
FAST := not (slow or crash or thorough or $(PROGRAMS))
# `make test COVER=` measures no coverage, which costs time.
COVER ?= --cov --cov-append --cov-report=
# A process that makes what tests beyond those with Java and Spark need: they wait for its end.
BUILDING ?=

.PHONY: help setup check test test-fast thorough scale interop crds diagrams urls manifests locks
.PHONY: images wheels compiled test-compiled
.PHONY: sim fuzz kind cluster e2e e2e-smoke demo demo-streams bench gate docs release clean

help: ## what there is to do
	@printf 'Lockkeeper: make TARGET\n\n'
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' Makefile

setup: $(STAMP) ## .venv with everything installed, the command in .venv/bin/lockkeeper
	@echo "Ready: $(BIN)/lockkeeper --help"

# Folders whose files import each other by their plain names, and are no packages: each is checked
# by itself, two at a time. Two folders may have modules of one name, which mypy's cache tells apart
# only while nobody else writes it: so each of the two at a time has a cache of its own. Only the
# simulation is a package, in the folder of all tests.
TYPED := bench demo e2e release speedups tests $(addprefix tests/,apiserver bench broker \
	broker/selectors broker/streams charts cli client client/streams crash crds fuzz integrations \
	interop journal load message model operator \
	$(addprefix operator/,analyses backups brokers certificates destinations kubernetes networks \
	polling process) network protocols release server store testing transport interop/network \
	interop/rocketmq protocols/rocketmq)
SHARED := bench:tests/client:tests/crash:tests/interop:tests/interop/network:tests/protocols
SHARED := $(SHARED):tests/server:tests/operator:tests/broker/streams:tests/interop/rocketmq
SHARED := $(SHARED):tests/client/streams:tests
check: $(STAMP) ## lint, format, types, laws of dependency, rooms, docs, generated files
	$(SAY) 'Lint'
	@$(BIN)/ruff check
	$(SAY) 'Format'
	@$(BIN)/ruff format --check
	$(SAY) 'Types'
	@$(BIN)/mypy
	@for slot in 0 1; do mkdir -p .mypy_cache/$$slot; \
		cp -ru .mypy_cache/3.* .mypy_cache/$$slot; done
	@printf '%s\n' $(TYPED) | xargs -P 2 --process-slot-var=SLOT -I{} sh -c \
		'MYPYPATH={}:$(SHARED) $(BIN)/mypy --cache-dir .mypy_cache/$$SLOT {}/*.py'
	@MYPYPATH=tests $(BIN)/mypy tests/simulation/*.py
	$(SAY) 'Laws of dependency'
	@$(BIN)/lint-imports
	$(SAY) 'Docs and walls of the rooms'
	@$(BIN)/pytest -q tests/server/test_settings.py tests/journal/test_counters.py \
		tests/test_architecture.py tests/test_links.py tests/test_tidy.py \
		tests/test_wire_references.py tests/test_wording.py \
		tests/simulation/test_planted.py::test_a_bug_can_be_planted \
		tests/apiserver/test_chart.py::test_the_plain_manifest_is_what_the_chart_makes
	$(SAY) 'Site of the docs'
	@$(SITE) --quiet
	$(SAY) 'Generated files'
	@$(BIN)/python -m lockkeeper_api.generate --check
	@echo 'All checks passed.'

test: $(STAMP) ## every test but the thorough ones, with coverage; COVER= without
	@command -v javac >/dev/null || echo 'No JDK: tests against Java are skipped' \
		'(apt-get install default-jdk-headless maven activemq).'
	@$(BIN)/coverage erase
	@failures=$$(mktemp); trap 'rm -f "$$failures"' EXIT; \
	tests() { \
		printf '\033[1m==> %s\033[0m (%s)\n' "$$1" "$$(date +%T)"; \
		$(BIN)/pytest --instafail --durations=12 --durations-min=15 -m "$${@:2}"; \
	}; \
	again() { tests "Once more, alone: $$1" "$$2" --last-failed $${3:-} | tee -a "$$failures"; }; \
	twice() { \
		code=0; tests "$${@:2}" $$1 || code=$$?; \
		if test $$code -ne 0; then again "$${@:2:2}" $$1 && test $$code -eq 1; fi; \
	}; \
	failed=0; \
	twice '$(COVER)' 'Tests with Java and Spark' '($(PROGRAMS)) and not thorough' \
		-n 2 --dist loadfile || failed=1; \
	$(if $(BUILDING),tail --pid=$(BUILDING) -f /dev/null;) \
	twice '' 'Tests that need the machine for themselves' '$(ALONE)' || failed=1; \
	twice '$(COVER)' 'All other tests' '$(OTHERS)' -n 3 --dist worksteal || failed=1; \
	$(if $(COVER),$(BIN)/coverage report;) \
	if test $$failed -ne 0; then \
		printf '\033[1m==> Failed twice\033[0m\n'; grep -E '^(E  |FAILED|ERROR)' "$$failures"; \
	fi; \
	exit $$failed

test-fast: $(STAMP) ## the tests that take seconds, without coverage
	@$(BIN)/pytest -n 3 --dist worksteal -m '$(FAST)'

thorough: $(STAMP) ## the tests that `make test` leaves out, since they take long and seldom change
	@$(BIN)/pytest -v -m thorough

wheels: $(STAMP) ## the hot modules compiled by mypyc, a wheel for this Python in dist/; minutes
	$(SAY) 'Compiling the hot modules'
	@rm -rf speedups/build dist/lockkeeper_mq_speedups-*
	@$(UV) build --wheel --python $(BIN)/python --out-dir dist speedups
	@ls dist/lockkeeper_mq_speedups-*

# The compiled modules are used only with the sources that they were compiled from.
WITH_SPEEDUPS := .venv-compiled
HOT := $(addprefix broker_image/,$(addsuffix .py,$(subst .,/,$(shell cat speedups/modules.txt))))
$(WITH_SPEEDUPS)/.set-up: $(HOT) $(wildcard speedups/*.*) | $(STAMP)
	@$(MAKE) wheels
	$(SAY) 'Installing Lockkeeper and the compiled modules in $(WITH_SPEEDUPS)'
	@$(UV) venv --quiet --allow-existing --python $(BIN)/python $(WITH_SPEEDUPS)
	@$(UV) pip install --quiet --python $(WITH_SPEEDUPS)/bin/python \
		--editable '.[$(EVERYTHING)]'
	@$(UV) pip install --quiet --python $(WITH_SPEEDUPS)/bin/python --reinstall --no-deps \
		dist/lockkeeper_mq_speedups-*.whl
	@touch $@

compiled: $(WITH_SPEEDUPS)/.set-up ## a second environment, .venv-compiled, that runs them
	@$(WITH_SPEEDUPS)/bin/lockkeeper --version

test-compiled: compiled ## the tests of `make test-fast` over the compiled modules
	@$(WITH_SPEEDUPS)/bin/lockkeeper --version | grep -q '(compiled)'
	@$(WITH_SPEEDUPS)/bin/pytest -n 3 --dist worksteal -m '$(FAST)'

SEEDS ?= 0-9999
NETWORKS ?= 0-999
STREAMS ?= 0-999
sim: $(STAMP) ## pairs, networks, streams on virtual time; SEEDS=… NETWORKS=… STREAMS=…
	@$(BIN)/python tests/simulation/run.py --seeds $(SEEDS) --jobs 2
	@$(BIN)/python tests/simulation/run.py --networks --seeds $(NETWORKS) --jobs 2
	@$(BIN)/python tests/simulation/run.py --streams --seeds $(STREAMS) --jobs 2

fuzz: $(STAMP) ## a million made inputs for all that reads what others wrote; SEED=…
	@$(BIN)/python tests/fuzz/run_fuzz.py $(if $(SEED),--seed $(SEED))

scale: $(STAMP) ## the operator with 500 Brokers and 10,000 Destinations; ten million messages
	@LOCKKEEPER_SCALE_BROKERS=500 $(BIN)/pytest -s tests/apiserver/test_scale.py
	@LOCKKEEPER_SCALE_MESSAGES=10000000 $(BIN)/pytest -s tests/load/test_long_queue.py

interop: $(STAMP) ## the same Java programs against Lockkeeper and against ActiveMQ
	@$(BIN)/pytest -v tests/interop

crds: $(STAMP) ## write the resource definitions and their reference from the models
	@$(BIN)/python -m lockkeeper_api.generate

diagrams: $(STAMP) ## write the page of states from their tables
	@PYTHONPATH=tests $(BIN)/python tests/states_page.py

urls: $(STAMP) ## write the page of broker URLs from the client's tables
	@PYTHONPATH=tests $(BIN)/python tests/urls_page.py

manifests: crds ## write deploy/lockkeeper.yaml from the chart; needs helm, or Go to build it
	@helm=$$(e2e/cluster/helm.sh) && charts/manifest.sh "$$helm" > deploy/lockkeeper.yaml.new
	@mv deploy/lockkeeper.yaml.new deploy/lockkeeper.yaml

# Renews every version within the ranges of pyproject.toml.
LOCK := uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate
locks: $(STAMP) ## pin what images are made of, at its newest
	@$(BIN)/$(LOCK) --extra broker pyproject.toml --output-file broker_image/requirements.lock
	@$(BIN)/$(LOCK) --extra operator pyproject.toml --output-file operator/requirements.lock
	@$(BIN)/$(LOCK) --extra spark --extra delta pyproject.toml \
		--output-file analytics/requirements.lock
	@echo 'setuptools>=77' | $(BIN)/$(LOCK) - --output-file broker_image/build.lock

images: ## the images of broker, operator and analytics, by docker or buildah; BASE=… their base
	@e2e/images.sh broker_image operator analytics

kind: $(STAMP) ## a first quarter of an hour on Kubernetes: kind, the operator, a pair, a message
	@e2e/quickstart.sh kind

cluster: $(STAMP) ## the same without Docker, on e2e/cluster; needs root and Go
	@e2e/quickstart.sh cluster

e2e: $(STAMP) ## end-to-end tests: KUBECONFIG's cluster, else kind with Docker, else e2e/cluster
	@e2e/run.sh

e2e-smoke: $(STAMP) ## the shortest of them: apply, Ready, send, kill, receive
	@e2e/run.sh e2e/test_smoke.py

demo: $(DEMO_STAMP) ## the main job: departures through a pair whose master is killed, then Spark
	@$(BIN)/python demo/run.py

demo-streams: $(DEMO_STAMP) ## the departures as a stream that three groups read, one in order
	@$(BIN)/python demo/streams.py

bench: $(STAMP) ## throughput, latency and bridges, with the real Java client, beside ActiveMQ
	@command -v javac >/dev/null || { echo 'The bench needs a JDK and Maven:' \
		'apt-get install default-jdk-headless maven activemq' >&2; exit 1; }
	@$(BIN)/python bench/run.py
	@$(BIN)/python bench/bridge.py

gate: $(STAMP) ## work per message, counted by valgrind, against limits; WRITE=yes renews them
	@$(BIN)/python bench/gate.py $(if $(WRITE),--write)

# Without the advertisement that the theme prints on every run.
SITE := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
docs: $(STAMP) ## the site of the docs in build/site
	@$(SITE)

IMAGES ?= yes
release: $(STAMP) ## packages, SBOMs, chart and images' digests in dist/; IMAGES= without images
	@$(BIN)/python release/build.py $(if $(IMAGES),,--without-images)

clean: ## remove everything that make made, .venv too
	rm -rf .venv build dist demo-run .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf .venv-compiled speedups/build speedups/*.egg-info
	rm -rf .import_linter_cache .coverage .coverage.* *.egg-info bench/results e2e/results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The newest Python that is new enough makes the .venv; PYTHON=… chooses another.
$(BIN)/python:
	@for name in $${PYTHON:-} python3.14 python3.13 python3.12 python3.11 python3; do \
		if "$$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
			2>/dev/null; then found=$$name; break; fi; \
	done; \
	if [[ -z "$${found:-}" ]]; then \
		echo 'Lockkeeper needs Python 3.11 or newer with its venv module.' >&2; \
		echo 'On Debian or Ubuntu: apt-get install python3 python3-venv;' \
			'or say which: make PYTHON=/path/to/python' >&2; exit 1; \
	fi; \
	printf '\033[1m==> %s\033[0m\n' "Making .venv with $$("$$found" --version)"; \
	"$$found" -m venv .venv

$(STAMP): EXTRAS := $(EVERYTHING)
$(STAMP): DONE := $(STAMP) $(DEMO_STAMP)
$(DEMO_STAMP): EXTRAS := broker,demo,spark
$(DEMO_STAMP): DONE := $(DEMO_STAMP)
$(STAMP) $(DEMO_STAMP): pyproject.toml | $(BIN)/python
	$(SAY) 'Installing Lockkeeper with $(EXTRAS)'
	@{ test -x $(UV) || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv; } \
		&& $(UV) pip install --python $(BIN)/python --editable '.[$(EXTRAS)]' \
		|| { echo 'The installation failed; is the package index reachable?' >&2; exit 1; }
	@touch $(DONE)
