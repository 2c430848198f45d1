# `make sim` and `make test` need only Python 3.11 or newer: each sets up .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
READY := $(VENV)/.ready

.PHONY: help sim test lint docs wheel docker-test docker-batch ray-test rl-test slow mutations bench package-test fuzz attack oracles examples reproduction reference measured contention fgd pollux study-contention study-cassini study-rl study-failures study-mast study-loop study-llm clean
.DELETE_ON_ERROR:

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 18

# Installs artist without the tools of development, which are most of the packages.
sim: $(READY) ## set up, then simulate a first run
	$(BIN)/artist sim --racks 16 --policy dally

test: $(STAMP) lint ## linters, type checks and tests, under ten minutes on two cores
	$(BIN)/pytest -q -n auto --dist worksteal

lint: $(STAMP) ## linters and type checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# Writes the manual to build/manual: commands, files, results, names, policies, glossary.
docs: $(STAMP) ## write the manual to build/manual
	$(BIN)/python docs/generate.py build/manual

# Writes a wheel with a compiled core, for this Python and machine, to dist/. Needs a C compiler.
wheel: $(READY) ## build a wheel with a compiled core into dist/
	ARTIST_COMPILE=1 $(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

# Needs root. Installs Docker and debootstrap if missing, starts the engine, builds the images.
docker-test: $(STAMP) ## tests in containers; needs root
	PYTHON=$(BIN)/python docker/build-image.sh
	PYTHON=$(BIN)/python docker/build-image.sh --ray
	$(BIN)/pytest -q -m docker

# Runs EXPERIMENT in a container without network. Results go to runs/ or RUN; the caller owns them.
EXPERIMENT ?= studies/dally-paper/experiment.yaml
RUN ?=

docker-batch: $(STAMP) ## run EXPERIMENT in a container
	PYTHON=$(BIN)/python docker/build-image.sh
	docker/batch.sh $(EXPERIMENT) $(RUN)

# A Ray cluster of two workers on this machine. docker-test has one of two containers.
ray-test: $(STAMP) ## tests on a Ray cluster of this machine
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[ray]'
	$(BIN)/pytest -q -m ray

# Environments and training, among others a tiny one twice, which must give the same weights.
rl-test: $(STAMP) ## tests of learned policies
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[rl]'
	$(BIN)/pytest -q -m rl

slow: $(STAMP) ## tests that take minutes
	$(BIN)/pytest -q -m slow -n auto --dist loadfile --ignore tests/packaging

# Makes mistakes in comparisons and tie rules, one by one, in a copy. Each must make its test fail.
mutations: $(STAMP) ## make mistakes one by one; each must fail a test
	$(BIN)/python tests/mutations/mutate.py

# CPU time of the benchmarks, beside benchmarks/baseline.json (docs/performance.md).
# BENCH="-k 'not long'" selects some. BASELINE=--write makes this run the baseline.
BENCH ?=
BASELINE ?=

bench: $(STAMP) ## CPU time of the benchmarks, beside the baseline
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[bench]'
	mkdir -p build
	$(BIN)/pytest -c benchmarks/pytest.ini -q benchmarks --benchmark-json=build/bench.json $(BENCH)
	$(BIN)/python benchmarks/compare.py build/bench.json $(BASELINE)

# Builds wheel and sdist, and tests them in clean environments of every installed Python.
package-test: $(STAMP) ## test wheel and sdist in clean environments
	$(BIN)/pytest -q -m slow -n auto --dist loadfile tests/packaging

# Tries CASES broken files of each kind, from SEED on.
CASES ?= 100000
SEED ?= 1

fuzz: $(STAMP) ## try CASES broken files of each kind
	FUZZ_CASES=$(CASES) FUZZ_SEED=$(SEED) $(BIN)/pytest -q -m slow tests/fuzz tests/trace/test_fuzz.py

# Compares policies with naive simulators and Tetris with optima on CASES random cases each, and
# graphs with every recording of ASTRA-sim.
oracles: CASES = 10000
oracles: $(STAMP) ## compare with naive simulators on CASES random cases
	CASES=$(CASES) $(BIN)/pytest -q -m slow -n auto tests/astra tests/theory tests/failures tests/warehouse

# Kills sweeps and comparisons KILLS times, and lets sweeps run on DISKS disks that are too small.
KILLS ?= 100
DISKS ?= 100

attack: $(STAMP) ## kill sweeps, and fill their disks
	KILLS=$(KILLS) DISKS=$(DISKS) KILL_SEED=$(SEED) DISK_SEED=$(SEED) $(BIN)/pytest -q -m slow \
	  tests/experiments/test_kill_campaign.py tests/hostile/test_disk_campaign.py

# Writes expected.csv of the shipped experiments anew (examples/README.md).
examples: $(STAMP) ## write expected.csv of the examples anew
	$(BIN)/python tests/examples/expected.py

# Repeats the 11,240 runs behind studies/dally-paper/README.md and writes the page, its tables and figures.
# An hour and a quarter of CPU time.
reproduction: $(STAMP) ## repeat the runs of the Dally paper (75 minutes)
	$(BIN)/python studies/dally-paper/reproduction run --again
	$(BIN)/python studies/dally-paper/reproduction page

# Compares with recorded runs of the original simulator (docs/original-simulator.md). If JOBS,
# ALLOCATIONS, TRACE or RESULTS is empty, the files of REFERENCE are taken.
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

reference: $(STAMP) ## compare with runs of the original simulator
	$(BIN)/python -m validation.original --reference $(REFERENCE) --workloads $(WORKLOADS) \
	  --job-files $(JOB_FILES) --jobs "$(JOBS)" --without "$(WITHOUT)" --again "$(AGAIN)" \
	  --allocations "$(ALLOCATIONS)" --trace "$(TRACE)" --trace-name "$(TRACE_NAME)" \
	  --results "$(RESULTS)" --seeds $(SEEDS) --out "$(OUT)"

# Predicts step times measured on real machines (docs/fidelity.md). FABRICS is a folder of fabrics
# HARDWARE.yaml that come before the shipped ones. OUT is the input with a column predicted_s. With
# PICTURE it also compares configurations of ASTRA-sim, and draws the errors.
STEPS ?= ../shared/fidelity/measured/step_times.csv
FABRICS ?=
PICTURE ?=

measured: OUT = measured.csv
measured: $(STAMP) ## predict measured step times
	$(BIN)/python -m validation.measured --steps "$(STEPS)" --fabrics "$(FABRICS)" \
	  --out "$(OUT)" --picture "$(PICTURE)"

# Jobs that share links, against packets and a fluid simulator (docs/contention.md). MODEL is phase,
# fluid or mean. Without TRUTH the results beside CASES count. OUT has columns case,job,ours,truth.
MODEL ?= phase
TRUTH ?=

contention: CASES = ../shared/groundwork/contention/cases.jsonl
contention: OUT = contention.csv
contention: $(STAMP) ## compare contention with packets and fluid
	$(BIN)/python -m validation.contention --cases "$(CASES)" --truth "$(TRUTH)" --model "$(MODEL)" \
	  --out "$(OUT)"

# The published runs of fragmentation gradient descent, pod by pod (docs/how-to/shared-gpus.md). DATA
# is data/csv of the authors' program, GO_RANDOM the file src/math/rand/rng.go of Go.
FGD ?= ../shared/groundwork/field-data
DATA ?=
GO_RANDOM ?=

fgd: $(STAMP) ## compare with published runs of shared GPUs
	$(BIN)/python -m validation.fgd --runs "$(FGD)" --data "$(DATA)" --go-random "$(GO_RANDOM)"

# Every job of Pollux' published workloads under its two baselines (docs/how-to/elastic-jobs.md).
# SIMULATOR is simulator/ of petuum/adaptdl, branch osdi21-artifact.
SIMULATOR ?=

pollux: $(STAMP) ## compare with Pollux' published workloads
	$(BIN)/python -m validation.pollux --simulator "$(SIMULATOR)"

# Repeats the 1,680 runs behind studies/contention/README.md and writes the page and its pictures.
# A quarter of an hour of CPU time. Runs that are done are kept in build/ until `make clean`.
COMPETING := experiment experiment-packed slower slower-packed
WORKERS ?= 1

study-contention: $(STAMP) ## repeat studies/contention (15 minutes)
	for name in $(COMPETING); do $(BIN)/artist sweep studies/contention/$$name.yaml \
	  --out build/contention/$$name --workers $(WORKERS) --resume --quiet || exit; done
	$(BIN)/python -m studies.contention.study take $(addprefix build/contention/,$(COMPETING))
	$(BIN)/python -m studies.contention.study page

# Repeats the runs behind studies/cassini/README.md and writes the page and its pictures. Half an hour
# of CPU time. Runs that are done are kept in build/ until `make clean`.
study-cassini: $(STAMP) ## repeat studies/cassini (30 minutes)
	$(BIN)/python -m studies.cassini.study runs --workers $(WORKERS)
	$(BIN)/python -m studies.cassini.study page

# Repeats the runs behind studies/failures/README.md and writes the page. A minute of CPU time.
study-failures: $(STAMP) ## repeat studies/failures (a minute)
	$(BIN)/python -m studies.failures.study runs --workers $(WORKERS)
	$(BIN)/python -m studies.failures.study page

# Repeats the 300 runs behind studies/mast/README.md and writes the page. Five minutes of CPU time. Runs
# that are done are kept in build/ until `make clean`.
study-mast: $(STAMP) ## repeat studies/mast (5 minutes)
	$(BIN)/python -m studies.mast.study runs --workers $(WORKERS)
	$(BIN)/python -m studies.mast.study page

# Repeats the 600 runs behind studies/llm/README.md and writes the page. Half an hour of CPU time.
study-llm: $(STAMP) ## repeat studies/llm (30 minutes)
	$(BIN)/python -m studies.llm.study runs --workers $(WORKERS)
	$(BIN)/python -m studies.llm.study page

# Repeats the 200 runs behind studies/loop/README.md and writes the page. Fifteen minutes of CPU time.
study-loop: $(STAMP) ## repeat studies/loop (15 minutes)
	$(BIN)/python -m studies.loop.study runs --workers $(WORKERS)
	$(BIN)/python -m studies.loop.study page

# Repeats the runs behind studies/rl/README.md and writes the page. Half an hour of CPU time, most of it
# for searches. Runs that are done are kept in build/ until `make clean`. No training, no extra. The page says
# what it lacks: the paper's table needs its authors' files (`python -m studies.rl.study paper`), the table of
# trainings needs networks (`python -m studies.rl.study trainings`).
study-rl: $(STAMP) ## repeat studies/rl (30 minutes)
	$(BIN)/python -m studies.rl.study runs --workers $(WORKERS)
	$(BIN)/python -m studies.rl.study page

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	touch $@

$(STAMP): $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

clean: ## remove .venv, build and dist
	rm -rf $(VENV) build dist
