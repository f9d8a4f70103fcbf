# tickthrottle: `make run` starts the whole pipeline, `make test` tests it in a few minutes.
# Everything is installed into .venv from locks/requirements.lock, by hash.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check
EXPORT := --quiet --locked --no-emit-workspace --no-header

# Only the Autobahn test suite needs it.
PYTHON2 ?= python2.7

PORT  ?= 8000
RATE  ?=
TAPE  ?=
SPEED ?=
FEED  ?=
SYMBOLS ?=
INSTRUMENTS ?=
TRADE_LOG ?=
SERVERS ?=
TOPIC ?=
DECODER ?=
CODE ?=
START ?=
ARCHIVE ?=
ANALYTICS ?=
BASE ?=
KAFKA_PORT ?= 9092

# What FEED=none follows.
LOG = $(if $(TRADE_LOG),--trade-log $(TRADE_LOG)) $(if $(SERVERS),--kafka-servers '$(SERVERS)') $(if $(TOPIC),--kafka-topic '$(TOPIC)') $(if $(DECODER),--decoder '$(DECODER)') $(if $(INSTRUMENTS),--instruments '$(INSTRUMENTS)') $(if $(START),--start $(START))

# The recipes' own tools: nothing of the caller's Python may leak in. Without compiled
# files each process of a test compiles the product again, and pytest all tests.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV PYTHONDONTWRITEBYTECODE

# Whole pipelines keep both cores busy while they start, and what they fall behind has to
# be worked off: three at once take longer than one after the other. Each file is run in
# one piece. With ARGS="-k name" a part may have no test.
all-of = $(BIN)/pytest -n $(1) --dist loadfile --no-loadscope-reorder --durations 20 -m "$(2)" $(ARGS) || [ $$? -eq 5 ]

.DEFAULT_GOAL := help
.PHONY: help run test test-all test-deploy speedups sanitize wheels check fix bench kafka kafka-jars notebook autobahn lock dist sbom site images release clean

help: ## Show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'
	@echo "  make run takes PORT=8123 RATE=900, or TAPE=path/to/tape.csv.gz SPEED=1,"
	@echo "  or FEED=upbit (binance, ...) SYMBOLS=KRW-BTC,KRW-ETH; ARCHIVE=off ANALYTICS=off leave out"
	@echo "  or FEED=none TRADE_LOG=kafka SERVERS=host:9092 TOPIC=trades DECODER=my_feed:decode CODE=its/folder INSTRUMENTS=instruments.csv"

run: $(VENV)/.prepared ## Run the whole pipeline on this machine, until Ctrl-C
	@exec $(if $(and $(FEED),$(CODE)),env PYTHONPATH='$(abspath $(CODE))' )$(BIN)/tickthrottle run --port $(PORT) $(if $(RATE),--rate $(RATE)) $(if $(TAPE),--tape '$(TAPE)') $(if $(SPEED),--speed $(SPEED)) $(if $(FEED),--feed '$(FEED)') $(if $(SYMBOLS),--symbols '$(SYMBOLS)') $(if $(filter none,$(FEED)),$(LOG)) $(if $(filter off,$(ARCHIVE)),--no-archive) $(if $(ANALYTICS),--analytics '$(ANALYTICS)')

# Most tests wait for processes or for time, not for a core: more at once than there are
# cores.
test: $(VENV)/.dev $(VENV)/.speedups ## Run the tests that need no JVM, broker or browser (ARGS="-k name" to choose)
	$(BIN)/pytest -n 4 --dist worksteal --hypothesis-profile quick -m "not (spark or kafka or browser or container or slow)" $(ARGS)

test-all: $(VENV)/.dev $(VENV)/.prepared $(VENV)/.speedups ## Run all tests but those of test-deploy; what a machine lacks is left out and named
	@failed=0; { $(call all-of,2,e2e and spark); } || failed=1; \
	{ $(call all-of,3,not (container or (e2e and spark))); } && exit $$failed

# Chromium gives up what it is loading whenever a container starts or ends, even from
# loopback: these tests run beside no other.
test-deploy: $(VENV)/.dev ## Build images with podman and try them, as services and pods; note what was tried
	$(BIN)/python -m tests.deploy.tried --try

speedups: $(VENV)/.speedups ## Compile and install tickthrottle-speedups, which nothing needs

# Beside the installed one. Allocators of Python and Arrow would hide where buffers end.
sanitize: $(VENV)/.dev ## Compile it with sanitizers, and have its fuzzer run for a minute
	@mkdir -p .tickthrottle/sanitized
	$(CC) -std=c11 -O1 -g -Wall -Wextra -Wno-unused-parameter -fsanitize=address,undefined -fno-sanitize-recover=all -shared -fPIC -I$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))') packaging/speedups/tickthrottle_speedups.c -o .tickthrottle/sanitized/tickthrottle_speedups.abi3.so -ldl
	PYTHONPATH=.tickthrottle/sanitized PYTHONMALLOC=malloc ARROW_DEFAULT_MEMORY_POOL=system ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD=$$($(CC) -print-file-name=libasan.so) $(BIN)/python -m tests.throttle.window.run_speedups --seconds 60

# Linux with podman or docker, macOS on macOS.
wheels: $(VENV)/.wheels ## Build wheels of tickthrottle-speedups for this system's platforms, into dist/
	$(BIN)/cibuildwheel packaging/speedups --output-dir dist

check: $(VENV)/.dev ## Format, lint, types, locks, lines of Python
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m tests.house_figures --lines

fix: $(VENV)/.dev ## Mend what format and lint can mend by themselves
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format .

bench: $(VENV)/.dev $(VENV)/.prepared ## Run the short benchmarks, one after the other (10 minutes)
	$(BIN)/tickthrottle load --scenario short --out .tickthrottle/bench
	$(BIN)/python bench/lag.py --windows 20 --warmup 15
	$(BIN)/python bench/fanout.py --cases abp --clients 1000,5000 --windows 5
	$(BIN)/python bench/throughput.py --short

kafka: $(VENV)/.kafka ## Run a Kafka broker to test with, until Ctrl-C; KAFKA_PORT=9092
	@exec $(BIN)/python -m tests.kafka_broker.serve --port $(KAFKA_PORT)

kafka-jars: $(VENV)/.kafka $(VENV)/.registry ## Fetch that broker, and a schema registry, with Maven, so that their tests run

notebook: $(VENV)/.notebook ## Install pandas and Jupyter's kernel beside all else, to test documents

autobahn: $(VENV)/.autobahn ## Install the Autobahn test suite, which needs PYTHON2=python2.7

lock: $(VENV)/.dev ## Write uv.lock and the requirements files anew
	$(BIN)/uv lock
	$(BIN)/uv export $(EXPORT) --only-group build -o locks/requirements-build.lock
	$(BIN)/uv export $(EXPORT) --no-dev --all-extras -o locks/requirements.lock
	$(BIN)/uv export $(EXPORT) --no-dev -o locks/requirements-gateway.lock
	$(BIN)/uv export $(EXPORT) --only-dev -o locks/requirements-dev.lock
	$(BIN)/uv export $(EXPORT) --only-group notebook -o locks/requirements-notebook.lock
	$(BIN)/uv export $(EXPORT) --only-group site -o locks/requirements-site.lock
	$(BIN)/uv export $(EXPORT) --only-group wheels -o locks/requirements-wheels.lock

dist: $(VENV)/.run ## Build the wheels into dist/
	@rm -rf dist
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist . ./clients/python ./packaging/load ./packaging/conformance ./packaging/all
	@if command -v $(CC) >/dev/null; then $(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist ./packaging/speedups; else echo "left out: tickthrottle-speedups, there is no C compiler"; fi

sbom: $(VENV)/.dev ## List what the images hold, from the locks (CycloneDX), into dist/
	@mkdir -p dist
	$(BIN)/uv export --quiet --locked --no-dev --format cyclonedx1.5 -o dist/tickthrottle-gateway.cdx.json
	$(BIN)/uv export --quiet --locked --no-dev --all-extras --format cyclonedx1.5 -o dist/tickthrottle-all.cdx.json

site: $(VENV)/.site ## Build the documents as a site into dist/site
	@mkdir -p dist
	@$(BIN)/python packaging/site/build.py dist/site

images: ## Build the container images with podman; BASE=image:tag to build on another
	@$(foreach target,gateway all,podman build --format docker --file deploy/Containerfile --target $(target) --tag tickthrottle:$(target) $(if $(BASE),--build-arg BASE=$(BASE)) . && ) true

# Everything that is published, each tried where nothing else is. Needs npm and node.
# Images, services and pods are left out, and named, where there is no podman.
release: dist sbom site $(VENV)/.dev ## Build wheels, sdist, npm tarball, site and images, and try each
	@$(BIN)/python -m hatchling build -t sdist -d $(abspath dist)
	@$(BIN)/python packaging/pack_npm.py dist
	@$(BIN)/python packaging/try_release.py dist
	@if command -v podman >/dev/null; then $(MAKE) images && $(BIN)/python packaging/try_images.py && $(MAKE) test-deploy; else echo "left out: the images, services and pods, there is no podman"; fi

clean: ## Remove the environment and all caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis bench/peers/build bench/peers/*/build

$(VENV)/.run: locks/requirements.lock locks/requirements-build.lock pyproject.toml clients/python/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "tickthrottle needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) -V 2>&1); choose one with make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) cannot make virtual environments (on Debian: apt install python3-venv)"; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV), once; this takes a minute or two"
	@$(PIP) --require-hashes -r locks/requirements-build.lock
	@# pyspark comes as source: built with the tools above, not with unpinned ones.
	@$(PIP) --require-hashes --no-build-isolation -r locks/requirements.lock
	@$(PIP) --no-deps --no-build-isolation --editable clients/python --editable .
	@touch $@

# Classes of Spark that its Java need not load anew at every start.
$(VENV)/.prepared: $(VENV)/.run throttle/prepare.py throttle/spark/session.py throttle/spark/class_archive.py
	@echo "preparing Spark, once; less than a minute"
	@$(BIN)/tickthrottle prepare || echo "going on without it: Spark will start more slowly"
	@touch $@

$(VENV)/.dev: $(VENV)/.run locks/requirements-dev.lock
	@$(PIP) --require-hashes -r locks/requirements-dev.lock
	@touch $@

# As a folder of its own: nothing of the product shall find it.
$(VENV)/.notebook: $(VENV)/.run locks/requirements-notebook.lock
	@rm -rf $(VENV)/notebook
	@$(PIP) --require-hashes --target $(VENV)/notebook -r locks/requirements-notebook.lock
	@touch $@

$(VENV)/.site: $(VENV)/.dev locks/requirements-site.lock
	@$(PIP) --require-hashes -r locks/requirements-site.lock
	@touch $@

$(VENV)/.wheels: $(VENV)/.run locks/requirements-wheels.lock
	@$(PIP) --require-hashes -r locks/requirements-wheels.lock
	@touch $@

# Nothing needs it: where it cannot be compiled, everything goes on in Python.
$(VENV)/.speedups: $(VENV)/.run $(wildcard packaging/speedups/*.c packaging/speedups/*.toml)
	@if ! command -v $(CC) >/dev/null; then echo "left out: tickthrottle-speedups, there is no C compiler"; \
	elif $(PIP) --no-deps --no-build-isolation --force-reinstall ./packaging/speedups; then echo "compiled tickthrottle-speedups"; \
	else echo "left out: tickthrottle-speedups, it does not compile here"; fi
	@touch $@

# As a folder of its own: Python 2.7 has neither venv nor a way to the other packages.
$(VENV)/.autobahn: $(VENV)/.run locks/requirements-autobahn.lock
	@rm -rf $(VENV)/autobahn
	@$(PYTHON2) -W ignore -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --target $(VENV)/autobahn -r locks/requirements-autobahn.lock
	@$(PYTHON2) -c 'import sys; print(sys.executable)' > $@

# Maven takes the jars from where it takes all else.
$(VENV)/.kafka: $(VENV)/.run tests/kafka_broker/pom.xml
	@command -v mvn >/dev/null || \
	  { echo "Kafka is fetched with Maven, and there is no mvn (on Debian: apt install maven)"; exit 1; }
	@echo "fetching Kafka into $(VENV)/kafka, once"
	@rm -rf $(VENV)/kafka $(VENV)/kafka.part
	@mvn --quiet --batch-mode -Dstyle.color=never -f tests/kafka_broker/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(abspath $(VENV))/kafka.part
	@mv $(VENV)/kafka.part $(VENV)/kafka
	@$(BIN)/python -m tests.kafka_broker.prepare || echo "going on without it: brokers will start more slowly"
	@touch $@

$(VENV)/.registry: $(VENV)/.run tests/schema_registry/pom.xml
	@command -v mvn >/dev/null || \
	  { echo "The schema registry is fetched with Maven, and there is no mvn (on Debian: apt install maven)"; exit 1; }
	@echo "fetching a schema registry into $(VENV)/registry, once"
	@rm -rf $(VENV)/registry $(VENV)/registry.part
	@mvn --quiet --batch-mode --strict-checksums -Dstyle.color=never -f tests/schema_registry/pom.xml dependency:unpack -DoutputDirectory=$(abspath $(VENV))/registry.part
	@mv $(VENV)/registry.part $(VENV)/registry
	@touch $@
