"""Generated traces are compared with the figures of the measured ones (`TARGETS`)."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from foreign_samples import printed_and_peak_mib
from recordings import TRACES, needs_traces

from artist.errors import ConfigError
from artist.trace.arrivals import with_arrivals
from artist.trace.named import builtin, open_trace
from artist.trace.native.choices import ArrivalKind
from artist.trace.native.trace import Trace
from artist.trace.native.writer import write_csv
from artist.trace.read import read_trace
from artist.trace.stats import QUANTILES, stats
from artist.trace.synthetic.cassini import cassini
from artist.trace.synthetic.families import BATCH, COMPUTE_S, WEEK, WorkloadFamily
from artist.trace.synthetic.generate import synth, synth_jobs
from artist.trace.synthetic.mast import mast_synth
from artist.workload.models import canonical

# Measured on the two workloads published with Dally's simulator: jobs by model and by demand,
# quantiles (p5, p25, p50, p75, p95, p99) of the ideal JCT in s, and GPU-hours by model and demand
# where a cell holds more than 1 % of them.
TARGETS = {
    BATCH.id: {
        "models": {
            "mobilenetv3": 125, "bert-large": 125, "resnet50": 125, "alexnet": 53, "resnet18": 38,
            "vgg11": 34,
        },
        "demands": {1: 270, 2: 13, 4: 52, 8: 109, 16: 42, 32: 11, 40: 1, 48: 1, 56: 1},
        "ideal_s": [1988.4, 7511.7, 14195.4, 63138.1, 203001.7, 262608.6],
        "gpu_hours": {
            "bert-large": {1: 3389.7, 4: 260.85, 8: 481.48},
            "mobilenetv3": {
                1: 647.76, 2: 196.47, 4: 556.67, 8: 1590.9, 16: 1119.7, 32: 530.08,
            },
            "resnet50": {1: 2007.2, 2: 208.26, 4: 582.11, 8: 648.4, 16: 194.64},
        },
    },
    WEEK.id: {
        "models": {
            "mobilenetv3": 125, "bert-large": 125, "resnet50": 125, "alexnet": 29, "vgg11": 4,
            "resnet18": 3,
        },
        "demands": {2: 41, 3: 1, 4: 96, 8: 190, 16: 56, 32: 23, 40: 2, 48: 1, 56: 1},
        "ideal_s": [1292.4, 5221.8, 9809.3, 23713.8, 66467.5, 151724.5],
        "gpu_hours": {
            "bert-large": {2: 800.55, 4: 1182.7, 8: 1794.3, 16: 273.38, 32: 202.55},
            "mobilenetv3": {2: 196.47, 4: 556.67, 8: 1879.4, 16: 1267.9, 32: 789.63},
            "resnet50": {2: 708.62, 4: 1057.3, 8: 1762.1, 16: 358.83, 32: 312.06},
        },
    },
}  # fmt: skip

REAL_FILES = {BATCH.id: "sensetime_500_batch.json", WEEK.id: "sensetime_411_poisson_week.json"}
WITHIN = 0.10


@pytest.mark.parametrize("name", TARGETS)
def test_every_seed_is_within_a_tenth_of_the_measured_figures(name: str) -> None:
    target = TARGETS[name]
    for seed in range(200):
        jobs = builtin(name, seed).jobs
        assert Counter(job.model for job in jobs) == target["models"]
        assert Counter(job.gpus for job in jobs) == target["demands"]
        drawn_s = np.percentile([job.ideal_s for job in jobs], QUANTILES)
        assert np.abs(drawn_s / target["ideal_s"] - 1).max() < WITHIN, (seed, drawn_s)


@needs_traces
@pytest.mark.parametrize("name", TARGETS)
def test_the_figures_are_those_of_the_measured_trace(name: str) -> None:
    trace = read_trace(TRACES / REAL_FILES[name])
    real = stats(trace)
    target = TARGETS[name]
    models: Counter[str] = Counter()
    for model, jobs in real["jobs_by_model"].items():
        models[canonical(model)] += jobs
    assert models == target["models"]
    assert real["jobs_by_gpus"] == {str(k): v for k, v in target["demands"].items()}
    ideal_s = [real[f"ideal_jct_p{q}_s"] for q in QUANTILES]
    assert ideal_s == pytest.approx(target["ideal_s"], rel=1e-4)
    measured = gpu_hours(trace)
    least = sum(measured.values()) / 100
    large = {cell: hours for cell, hours in measured.items() if hours > least}
    assert large == pytest.approx(cells(target["gpu_hours"]), rel=1e-4)


@pytest.mark.parametrize("name", TARGETS)
def test_models_keep_their_gpu_hours_at_each_demand(name: str) -> None:
    """The mean of 20 seeds, for cells above 1 % of the work. Margins alone let them differ."""
    drawn = [gpu_hours(builtin(name, seed)) for seed in range(20)]
    for cell, hours in cells(TARGETS[name]["gpu_hours"]).items():
        assert np.mean([one[cell] for one in drawn]) == pytest.approx(hours, rel=0.05), cell


def gpu_hours(trace: Trace) -> dict[tuple[str, int], float]:
    """GPU-hours by model and demand."""
    hours: Counter[tuple[str, int]] = Counter()
    for job in trace.jobs:
        hours[canonical(job.model), job.gpus] += job.ideal_s * job.gpus / 3600
    return hours


def cells(by_model: dict[str, dict[int, float]]) -> dict[tuple[str, int], float]:
    return {(model, gpus): hours for model, by in by_model.items() for gpus, hours in by.items()}


@needs_traces
@pytest.mark.parametrize("name", TARGETS)
def test_models_keep_their_run_times_and_iterations(name: str) -> None:
    """Quartiles within a tenth, iterations within 5 %, for models of 100 jobs and more."""
    drawn = [job for seed in range(20) for job in builtin(name, seed).jobs]
    measured = read_trace(TRACES / REAL_FILES[name]).jobs
    for model in ("mobilenetv3", "resnet50", "bert-large"):
        ours = [job for job in drawn if job.model == model]
        theirs = [job for job in measured if canonical(job.model) == model]
        quartiles = [
            np.percentile([x.ideal_s for x in jobs], (25, 50, 75)) for jobs in (ours, theirs)
        ]
        assert quartiles[0] == pytest.approx(quartiles[1], rel=0.10), model
        steps = [np.sum([x.iterations * x.gpus for x in jobs]) for jobs in (ours, theirs)]
        assert steps[0] / 20 == pytest.approx(steps[1], rel=0.05), model


@needs_traces
def test_step_lengths_are_in_the_measured_range() -> None:
    real: dict[str, list[float]] = {model: [] for model in COMPUTE_S}
    for name in REAL_FILES.values():
        for job in read_trace(TRACES / name).jobs:
            real[canonical(job.model)].append(job.compute_s)
    for name in TARGETS:
        for job in builtin(name, seed=1).jobs:
            assert min(real[job.model]) <= job.compute_s <= max(real[job.model])


@pytest.mark.parametrize("family", [BATCH, WEEK], ids=lambda family: family.id)
def test_a_family_is_a_summary_not_a_trace(family: WorkloadFamily) -> None:
    assert sum(len(cell.knots) for cell in family.cells) <= sum(x.jobs for x in family.cells) / 4
    for cell in family.cells:
        shares, times_s = zip(*cell.knots, strict=True)
        assert list(shares) == sorted(shares)
        assert list(times_s) == sorted(times_s)


def test_the_batch_arrives_at_once_and_the_week_over_a_week() -> None:
    assert {job.arrival_s for job in builtin(BATCH.id, 2).jobs} == {0.0}
    arrivals_s = np.array([job.arrival_s for job in builtin(WEEK.id, 2).jobs])
    assert (np.diff(arrivals_s) >= 0).all()
    assert 0 <= arrivals_s[0] < arrivals_s[-1] < 7 * 86_400
    # Poisson: gaps are exponential, so their deviation is their mean.
    gaps_s = np.diff(arrivals_s)
    assert gaps_s.std() == pytest.approx(gaps_s.mean(), rel=0.2)


def test_a_seed_gives_one_trace_and_another_seed_another() -> None:
    for name in TARGETS:
        assert builtin(name, 7) == builtin(name, 7)
        assert builtin(name, 7).jobs != builtin(name, 8).jobs
        assert builtin(name, 7).digest != builtin(name, 8).digest


DRAWN: dict[str, Callable[[int, float, int, int], Trace]] = {
    "synth": synth,
    "cassini": lambda jobs, load, gpus, seed: cassini(ArrivalKind.POISSON, jobs, gpus, seed, load),
    "mast-synth": lambda *numbers: mast_synth(*numbers).trace,
}


@pytest.mark.parametrize(
    ("name", "jobs", "load", "gpus"),
    [
        ("synth", 15_000, 3.0, 1),
        ("synth", 15_000, 0.9, 8),
        ("synth", 15_000, 0.9, 512),
        ("cassini", 2_000, 0.9, 24),
        ("mast-synth", 10_000, 1.0, 100_000),
    ],
)
def test_jobs_make_the_load_that_was_asked_for(
    name: str, jobs: int, load: float, gpus: int
) -> None:
    drawn = DRAWN[name](jobs, load, gpus, 11).jobs
    assert len(drawn) == jobs
    demand_gpu_s = sum(job.gpus * job.ideal_s for job in drawn)
    assert demand_gpu_s / (gpus * drawn[-1].arrival_s) == pytest.approx(load, rel=0.05)


@pytest.mark.parametrize(("name", "most"), [("synth", 16), ("cassini", 12), ("mast-synth", 16)])
def test_no_job_is_larger_than_the_cluster(name: str, most: int) -> None:
    assert max(job.gpus for job in DRAWN[name](500, 1.0, 20, 0).jobs) == most
    assert {job.gpus for job in DRAWN[name](20, 1.0, 1, 0).jobs} == {1}


@pytest.mark.parametrize("name", DRAWN)
def test_a_drawn_trace_repeats_with_its_seed_and_reads_back(tmp_path: Path, name: str) -> None:
    trace = DRAWN[name](50, 1.0, 1000, 7)
    assert trace == DRAWN[name](50, 1.0, 1000, 7)
    assert trace.digest != DRAWN[name](50, 1.0, 1000, 8).digest
    write_csv(trace.jobs, tmp_path / "t.csv")
    assert read_trace(tmp_path / "t.csv").jobs == trace.jobs


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize(
    ("jobs", "load", "gpus", "part"),
    [
        (0, 1.0, 8, "--jobs 0"),
        (5, 0.0, 8, "--load 0.0"),
        (5, float("nan"), 8, "--load nan"),
        (5, float("inf"), 8, "--load inf"),
        (5, 1.0, 0, "--gpus 0"),
        (50, 1e-12, 8, "raise the load"),
    ],
)
def test_numbers_that_make_no_trace_are_refused(
    name: str, jobs: int, load: float, gpus: int, part: str
) -> None:
    with pytest.raises(ConfigError, match=part):
        DRAWN[name](jobs, load, gpus, 0)


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_traces_do_not_depend_on_the_process(hash_seed: str) -> None:
    code = (
        "from artist.trace.named import builtin; "
        "from artist.trace.synthetic.generate import synth; "
        "print(builtin('sensetime-batch-500', 3).digest, "
        "builtin('sensetime-poisson-week', 3).digest, synth(50, 0.5, 32, 3).digest)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    here = [builtin(BATCH.id, 3).digest, builtin(WEEK.id, 3).digest, synth(50, 0.5, 32, 3).digest]
    assert done.stdout.split() == here


def test_synth_goes_on_across_its_blocks() -> None:
    jobs = list(synth_jobs(jobs=70_000, load=5.0, gpus=512, seed=1))
    assert [job.id for job in jobs] == [str(i) for i in range(70_000)]
    arrivals_s = np.array([job.arrival_s for job in jobs])
    assert (np.diff(arrivals_s) >= 0).all()
    assert np.diff(arrivals_s).max() < 30 * np.diff(arrivals_s).mean()


@pytest.mark.slow
def test_a_million_jobs_are_written_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "million.csv"
    code = (
        "from artist.trace.synthetic.generate import synth_jobs; "
        "from artist.trace.native.writer import write_csv; "
        "write_csv(synth_jobs(1_000_000, 0.9, 1024, seed=0), Path(sys.argv[1])); "
    )
    assert printed_and_peak_mib(code, path)[1] < 200
    with path.open() as file:
        assert sum(1 for _ in file) == 1_000_001


def test_arrivals_can_be_kept_collapsed_or_drawn() -> None:
    trace = builtin(WEEK.id, 1)
    assert with_arrivals(trace, "trace", 1) is trace
    batch = with_arrivals(trace, "batch", 1)
    assert {job.arrival_s for job in batch.jobs} == {0.0}
    drawn = with_arrivals(trace, "poisson:60", 1)
    assert drawn == with_arrivals(trace, "poisson:60", 1)
    assert drawn.jobs != with_arrivals(trace, "poisson:60", 2).jobs
    span_s = drawn.jobs[-1].arrival_s
    assert span_s == pytest.approx(60 * len(trace.jobs), rel=0.15)
    for other in (batch, drawn):
        assert [job.id for job in other.jobs] == [job.id for job in trace.jobs]


BAD_ARRIVALS = "|burst|poisson|poisson:|poisson:x|poisson:0|poisson:-1|poisson:nan|batch:3"


@pytest.mark.parametrize("spec", BAD_ARRIVALS.split("|"))
def test_other_arrivals_are_refused(spec: str) -> None:
    with pytest.raises(ConfigError, match="--arrivals"):
        with_arrivals(builtin("tiny-batch"), spec, 0)


def test_synth_by_name_is_what_the_command_writes() -> None:
    named = open_trace("synth:40:16:0.7", seed=5)
    assert named.jobs == synth(40, 0.7, 16, seed=5).jobs
    assert open_trace("synth:40:16:0.7", seed=6).jobs != named.jobs
    assert open_trace("synth", seed=5).jobs == synth(256, 0.9, 32, seed=5).jobs


@pytest.mark.parametrize("argument", ["40", "40:16", "40:16:x", "40:16:0.7:1", "4.5:16:1", ""])
def test_synth_needs_three_numbers(argument: str) -> None:
    with pytest.raises(ConfigError, match=r"expected synth:JOBS:GPUS:LOAD, three numbers"):
        open_trace(f"synth:{argument}")
