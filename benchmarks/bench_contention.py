"""Times runs in which jobs slow each other down on links, beside the same runs without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import accumulate, takewhile
from pathlib import Path

import pytest
from cases import LOAD, PHILLY, SEED, synthetic

from artist.cluster.fabric import load_fabric
from artist.config import Scenario
from artist.engine.rows import Rows
from artist.run import prepare
from artist.trace.native.writer import write_csv
from artist.trace.synthetic.generate import synth_jobs
from artist.workload.job import Job

# Racks of three machines with four GPUs. Jobs of 8 and more leave parts of racks, which others
# share: 102,408 GPUs.
RACKS, MACHINES, GPUS = 8_534, 3, 4
FULL = 0.9
QUESTIONS = 201


def oversubscribed(folder: Path) -> Path:
    """A fabric of H100 machines whose racks can send half of what their GPUs could."""
    fabric = load_fabric("h100-quantum2-spectrum4")
    machine, rack, network = fabric.levels
    assert rack.uplink is not None
    half = rack.uplink.model_copy(update={"count": rack.uplink.count // 2})
    levels = (machine, rack.model_copy(update={"uplink": half}), network)
    path = folder / "oversubscribed.yaml"
    # JSON is YAML, too.
    path.write_text(fabric.model_copy(update={"levels": levels}).model_dump_json(exclude_none=True))
    return path


def contended_loop(folder: Path, contention: str) -> Callable[[], Rows]:
    """The loop alone: Philly's jobs with models by `mix`, under FIFO."""
    scenario = Scenario(
        trace=str(PHILLY.trace(folder)),
        racks=PHILLY.racks,
        policy="fifo",
        fabric=str(oversubscribed(folder)),
        model_rule="mix",
        contention=contention,
    )
    prepared = prepare(scenario)
    return lambda: prepared.simulator.run(prepared.policy)


@pytest.mark.parametrize("contention", ["none", "mean"])
def bench_long_contended_loop(measure: Callable[..., None], traces: Path, contention: str) -> None:
    """Three months of a cluster whose racks are oversubscribed 2:1."""
    measure(prepare=lambda: contended_loop(traces, contention), rounds=1, items=PHILLY.jobs)


# 64 GPUs. Racks of 8 GPUs send a quarter of what these could.
FOUR_TO_ONE: dict[str, object] = {
    "racks": 8,
    "machines_per_rack": 4,
    "gpus_per_machine": 2,
    "fabric": "leaf-spine",
    "fabric_options": {"rack": {"oversubscription": 4}},
}


def small_jobs(folder: Path) -> Path:
    """2,000 jobs of up to four GPUs, which need up to two machines of two GPUs."""
    path = folder / "small-jobs.csv"
    every = synth_jobs(4_000, LOAD, 32, SEED)
    write_csv([job for job in every if job.gpus <= 4][:2_000], path)
    return path


def contended_run(folder: Path, cluster: str, contention: str) -> Callable[[], Rows]:
    """The loop alone, under LAS. What earlier rounds estimated is known."""
    settings: dict[str, object] = {"racks": 1} if cluster == "one-rack" else FOUR_TO_ONE
    trace = small_jobs(folder) if cluster == "small-jobs" else synthetic(500, 64, folder)
    scenario = Scenario(trace=str(trace), policy="las", contention=contention, **settings)
    prepared = prepare(scenario)
    return lambda: prepared.simulator.run(prepared.policy)


@pytest.mark.parametrize("contention", ["none", "mean", "phase"])
@pytest.mark.parametrize("cluster", ["one-rack", "four-to-one", "small-jobs"])
def bench_contended_run(
    measure: Callable[..., None], traces: Path, cluster: str, contention: str
) -> None:
    """500 jobs on 64 GPUs, in one rack or in racks 4:1; or 2,000 small ones."""
    measure(prepare=lambda: contended_run(traces, cluster, contention), rounds=3)


def full_cluster(folder: Path) -> tuple[Path, int]:
    """A trace that fills the cluster, and how many jobs that takes.

    All jobs arrive before the first one ends. The last `QUESTIONS` jobs have 16 GPUs or more, so
    they leave their rack.
    """
    capacity = RACKS * MACHINES * GPUS
    drawn = list(synth_jobs(40_000, LOAD, capacity, SEED))
    sums = accumulate(job.gpus for job in drawn)
    filling = sum(1 for _ in takewhile(lambda total: total <= FULL * capacity, sums))
    large = [job for job in drawn[filling:] if job.gpus >= 16][:QUESTIONS]

    def long(jobs: list[Job]) -> Iterator[Job]:
        for index, job in enumerate(jobs):
            yield replace(job, arrival_s=index / 1000, iterations=10**9)

    path = folder / "full-cluster.csv"
    write_csv(long(drawn[:filling] + large), path)
    return path, filling


def questions(folder: Path, contention: str, placement: str) -> Callable[[], None]:
    """A function that asks and answers the next question; each one starts a large job."""
    trace, filling = full_cluster(folder)
    scenario = Scenario(
        trace=str(trace),
        racks=RACKS,
        machines_per_rack=MACHINES,
        gpus_per_machine=GPUS,
        policy="fifo",
        policy_options={"placement": placement},
        fabric="leaf-spine",
        contention=contention,
    )
    prepared = prepare(scenario)
    simulator, policy = prepared.simulator, prepared.policy

    def ask() -> None:
        view = simulator.next_question(policy)
        assert view is not None
        simulator.answer(policy.decide(view))

    for _ in range(filling):
        ask()
    return ask


@pytest.mark.parametrize(
    ("contention", "placement"),
    [("none", "pack"), ("mean", "pack"), ("mean", "least-contended")],
    ids=["none-pack", "mean-pack", "mean-least-contended"],
)
def bench_question(
    measure: Callable[..., None], traces: Path, contention: str, placement: str
) -> None:
    """The median question on 102,408 GPUs: a job starts that leaves its rack, racks are 2:1.

    With `least-contended`, the policy asks how busy links are. Nothing is kept from other runs.
    """
    ask = questions(traces, contention, placement)
    measure(ask, rounds=QUESTIONS, statistic="median")
