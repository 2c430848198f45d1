"""Times decisions of CASSINI: candidates, scores of links, time-shifts. The host decides, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from artist.config import Scenario
from artist.contract import ClusterView, JobView, Rate
from artist.engine.simulator import Simulator
from artist.garbage_collector import many_objects
from artist.network.rates.contended_rates import ContendedRates, phase_rates
from artist.run import prepare
from artist.trace.native.choices import ArrivalKind
from artist.trace.native.writer import write_csv
from artist.trace.synthetic.cassini import cassini
from artist.units import Tick
from artist.workload.job import Job

# The paper's testbed, enlarged: racks of four servers with one GPU, 2:1 (CASSINI, Fig. 10).
SERVERS = 4
RUNNING = {24: 4, 1_024: 150, 10_240: 1_500}
"""By GPUs: jobs that run while decisions are timed. One ends, and one that waited starts."""
TIMED = {24: 101, 1_024: 51, 10_240: 11}
"""Decisions."""
SEED = 7


class AloneOnLinks:
    """Jobs that run as if alone, on links that CASSINI may ask about. Rates under contention take
    longer than its decisions, and are not what is timed here."""

    def __init__(self, rates: ContendedRates) -> None:
        self.alone, self.links = rates.alone, rates.links

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """The rates of jobs that get GPUs."""
        return {
            x.handle: self.alone(x.job, x.placement) for x in changed if x.placement is not None
        }


def turnover(gpus: int, folder: Path) -> Path:
    """A trace that fills the cluster at once; then a job ends every few seconds, others wait."""
    waiting = RUNNING[gpus] // 5 + 3 * TIMED[gpus]
    jobs = cassini(ArrivalKind.SNAPSHOT, RUNNING[gpus] + waiting, gpus, SEED).jobs

    def staggered() -> Iterator[Job]:
        for index, job in enumerate(jobs):
            lasts = round((100 + 7 * index) / job.compute_s)
            yield replace(job, iterations=max(lasts, 1))

    path = folder / f"turnover-{gpus}.csv"
    write_csv(staggered(), path)
    return path


def decisions(gpus: int, policy: str, folder: Path) -> Callable[[], Callable[[], Any]]:
    """A function that goes on to the next question in which a job starts, and gives its answer as
    another function."""
    scenario = Scenario(
        trace=str(turnover(gpus, folder)),
        fabric="cassini-testbed",
        racks=gpus // SERVERS,
        machines_per_rack=SERVERS,
        gpus_per_machine=1,
        policy=policy,
        seed=SEED,
    )
    prepared = prepare(scenario)
    deciding = prepared.policy
    rates = AloneOnLinks(phase_rates("", {}, prepared.network))
    simulator = Simulator(prepared.simulator.tree, prepared.trace.jobs, rates, lease=deciding.lease)
    answered: list[Any] = []

    def ask() -> Callable[[], None]:
        if answered:
            simulator.answer(answered.pop())
        while True:
            view = simulator.next_question(deciding)
            assert view is not None
            if simulator.now > 0 and view.waiting:
                return partial(decide, view)
            simulator.answer(deciding.decide(view))

    def decide(view: ClusterView) -> None:
        with many_objects():  # as in a run
            answered.append(deciding.decide(view))

    return ask


@pytest.mark.parametrize("host", ["fifo", "random-placement(fifo)"], ids=["packed", "random"])
@pytest.mark.parametrize("gpus", RUNNING)
def bench_cassini_decision(
    measure: Callable[..., None], traces: Path, gpus: int, host: str
) -> None:
    """The longest decision after a job has ended, with jobs in order or at random places."""
    ask = decisions(gpus, f"cassini({host})", traces)
    ask()()  # the first one imports what it needs
    measure(prepare=ask, rounds=TIMED[gpus], statistic="max")
