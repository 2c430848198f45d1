# `make sim` and `make test` need nothing but Python 3.11 or newer: each sets itself up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
READY := $(VENV)/.ready

.PHONY: sim test lint docs docker-test docker-batch ray-test slow mutations bench package-test fuzz examples reproduction reference clean
.DELETE_ON_ERROR:

# Without the tools of development, which are most of what there is to install.
sim: $(READY)
	$(BIN)/artist sim --racks 16 --policy dally

test: $(STAMP) lint
	$(BIN)/pytest -q -n auto

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# docs/manual and the index of decisions, from the code.
docs: $(STAMP)
	$(BIN)/python docs/generate.py

# Needs root: installs Docker and debootstrap where missing, starts the engine, builds the image.
docker-test: $(STAMP)
	PYTHON=$(BIN)/python docker/build-image.sh
	PYTHON=$(BIN)/python docker/build-image.sh --ray
	$(BIN)/pytest -q -m docker

# EXPERIMENT in a container without network; results in runs/ or RUN, owned by the caller.
EXPERIMENT ?= studies/dally-paper/experiment.yaml
RUN ?=

docker-batch: $(STAMP)
	PYTHON=$(BIN)/python docker/build-image.sh
	docker/batch.sh $(EXPERIMENT) $(RUN)

# Two workers of a Ray on this machine; two containers of one are for docker-test.
ray-test: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[ray]'
	$(BIN)/pytest -q -m ray

slow: $(STAMP)
	$(BIN)/pytest -q -m slow --ignore tests/packaging

# Mistakes in comparisons and tie rules, made one by one in a copy: each must make its test fail.
mutations: $(STAMP)
	$(BIN)/python tests/mutations/mutate.py

# CPU time of everything that should stay fast, beside benchmarks/baseline.json (docs/performance.md).
# BENCH="-k 'not long'" selects; BASELINE=--write makes this run the baseline.
BENCH ?=
BASELINE ?=

bench: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[bench]'
	mkdir -p build
	$(BIN)/pytest -c benchmarks/pytest.ini -q benchmarks --benchmark-json=build/bench.json $(BENCH)
	$(BIN)/python benchmarks/compare.py build/bench.json $(BASELINE)

# Wheel and sdist, built and tried in clean environments of every Python that is here.
package-test: $(STAMP)
	$(BIN)/pytest -q -m slow tests/packaging

# So many broken files of each kind, from this seed on.
CASES ?= 100000
SEED ?= 1

fuzz: $(STAMP)
	FUZZ_CASES=$(CASES) FUZZ_SEED=$(SEED) $(BIN)/pytest -q -m slow tests/fuzz tests/trace/test_fuzz.py

# What the shipped experiments result in, written anew (examples/README.md).
examples: $(STAMP)
	$(BIN)/python tests/examples/expected.py

# docs/reproduction.md anew: 2,680 runs, every table, every figure. Half an hour of CPU time.
reproduction: $(STAMP)
	$(BIN)/python studies/dally-paper/reproduction run --again
	$(BIN)/python studies/dally-paper/reproduction page

# Against recorded runs of the original simulator (docs/reference.md). Empty: the folder's files.
REFERENCE ?= ../shared/reference
WORKLOADS ?= ../shared/fidelity/workloads
JOB_FILES ?= ../shared/traces
ALLOCATIONS ?=
TRACE ?=
TRACE_NAME ?=
RESULTS ?=
JOBS ?=
SEEDS ?= 20
OUT ?= ref.json
WITHOUT ?=
AGAIN ?=
PAGE ?=

reference: $(STAMP)
	$(BIN)/python -m validation.original --reference $(REFERENCE) --workloads $(WORKLOADS) \
	  --job-files $(JOB_FILES) --jobs "$(JOBS)" --page "$(PAGE)" --without "$(WITHOUT)" --again "$(AGAIN)" \
	  --allocations "$(ALLOCATIONS)" --trace "$(TRACE)" --trace-name "$(TRACE_NAME)" \
	  --results "$(RESULTS)" --seeds $(SEEDS) --out "$(OUT)"

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	touch $@

$(STAMP): $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist
