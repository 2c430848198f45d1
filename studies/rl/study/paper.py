"""The paper's setting: rounds of 300 s on 4 machines of 8 GPUs, with the paper's own tables.

The tables belong to the authors and do not ship. Their repository has them: throughputs alone
(`isolated_thp.csv`), throughputs beside another job over alone (`shared_thp_ratio.csv`), and traces
in JSON. A row of either table is named `MODEL,GPUS,MACHINES`.

A round, as their code has it: take all GPUs; sort the queue; give GPUs to the first job until one
does not fit; run for 300 s. A job that ends within a round keeps its GPUs until the round is over,
and is served for the whole of it. `coded` does that with their orders, which are the reverse of
what they are called: LAS serves the most served job first, SRTF the job of which the smallest share
is done. It spreads a job over as many machines as possible, and never takes a single one. The
correct policies have the orders the right way round and pass a job that does not fit. `pack` takes
as few machines as can be, but two at least as in the code; `one machine` may take a single one.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from artist.cluster.placement import Placement
from artist.cluster.tree import nested
from artist.contract import (
    NO_SHARED_LINKS,
    BasePolicy,
    ClusterView,
    Decision,
    JobView,
    Migrate,
    Preempt,
    Rate,
    Start,
    Wake,
)
from artist.engine.simulator import Simulator
from artist.units import TICKS_PER_S, Tick
from artist.workload.job import Job
from studies.common.rows import RowsFile
from studies.rl.study.observations import HERE

COLUMNS = ("policy", "placement", "service_s", "jct_mean_s", "jct_p90_s", "utilisation")
PAPER = RowsFile(HERE / "paper.csv", COLUMNS, "rl")

MACHINES, GPUS = 4, 8
ROUND = 300 * TICKS_PER_S
"""Round length of the code; the paper leaves it open."""
FLOOR = 0.35
"""No job is slower than this share of its speed (code)."""


@dataclass(frozen=True)
class Tables:
    """Throughputs, by model, GPUs and machines."""

    alone: Mapping[tuple[str, int, int], float]
    beside: Mapping[tuple[str, int, int], Mapping[tuple[str, int, int], float]]

    @classmethod
    def read(cls, folder: Path) -> Tables:
        """The two tables in a folder."""
        with (folder / "isolated_thp.csv").open(encoding="utf-8-sig", newline="") as stream:
            alone = {_kind(row[0]): float(row[1]) for row in [*csv.reader(stream)][1:]}
        with (folder / "shared_thp_ratio.csv").open(encoding="utf-8-sig", newline="") as stream:
            head, *rows = csv.reader(stream)
        kinds = [_kind(name) for name in head[1:]]
        beside = {_kind(row[0]): dict(zip(kinds, map(float, row[1:]), strict=True)) for row in rows}
        return cls(alone, beside)

    def jobs(self, trace: Path) -> list[Job]:
        """The jobs of a trace: all at time 0, an iteration is a sample."""
        data = json.loads(trace.read_text(encoding="utf-8"))
        return [
            Job(
                id=name,
                arrival_s=0.0,
                gpus=int(row["gpu_demand"]),
                model=row["model"],
                iterations=max(1, round(row["total_samples_to_train"])),
                compute_s=1.0 / self._best(row["model"], int(row["gpu_demand"])),
            )
            for name, row in data.items()
        ]

    def _best(self, model: str, gpus: int) -> float:
        return max(
            x for (name, count, _), x in self.alone.items() if (name, count) == (model, gpus)
        )


class TableRates:
    """Throughput alone x the smallest ratio beside a job of several machines on a shared one."""

    links = NO_SHARED_LINKS

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """All jobs from scratch: there are sixteen at most."""
        return {handle: self._rate(handle, running) for handle in running}

    def alone(self, job: Job, placement: Placement) -> Rate:
        """Without other jobs. One machine is not in the table: as on two."""
        machines = max(2, len(placement.leaves))
        iteration_s = 1.0 / self._tables.alone[job.model, job.gpus, machines]
        return Rate(iteration_s, 1.0, "table", iteration_s)

    def ratio(self, handle: int, placed: Mapping[int, tuple[Job, Placement]]) -> float:
        """Share of its speed that a job keeps beside the others."""
        job, own = placed[handle]
        if len(own.leaves) == 1:
            return 1.0
        row = self._tables.beside[job.model, job.gpus, len(own.leaves)]
        ratios = [
            row[other.model, other.gpus, len(there.leaves)]
            for key, (other, there) in placed.items()
            if key != handle and len(there.leaves) > 1 and {*own.leaves} & {*there.leaves}
        ]
        return min([1.0, *(max(x, FLOOR) for x in ratios)])

    def _rate(self, handle: int, running: Mapping[int, JobView]) -> Rate:
        placed = {
            key: (view.job, view.placement) for key, view in running.items() if view.placement
        }
        job, placement = placed[handle]
        alone = self.alone(job, placement)
        iteration_s = alone.iteration_s / self.ratio(handle, placed)
        return Rate(iteration_s, 1.0, "table", alone.iteration_s)


SHARES = {"spread": (4, 2), "pack": (2, 4), "one machine": (1, 2, 4)}
"""Over how many machines a job is laid, the first choice first."""

Key = Callable[[JobView, int, Tick], float]
"""By which waiting jobs are sorted: job, rounds that it was served, now."""

KEYS: dict[str, Key] = {
    "las as coded": lambda view, rounds, now: -rounds,
    "srtf as coded": lambda view, rounds, now: view.iterations_done(now) / view.job.iterations,
    "las": lambda view, rounds, now: rounds * view.job.gpus,
    "srtf": lambda view, rounds, now: _left_s(view, now),
    "srsf": lambda view, rounds, now: _left_s(view, now) * view.job.gpus,
}


class Rounds(BasePolicy):
    """A policy of rounds. At questions between them it does nothing."""

    def __init__(self, name: str, placement: str, least: float, rates: TableRates) -> None:
        self._key, self._coded = KEYS[name], name.endswith("as coded")
        self._shares, self._least, self._rates = SHARES[placement], least, rates
        self._queue: list[int] = []
        self.rounds: dict[int, int] = {}
        self.held: list[int] = []

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """A round, if it is time for one."""
        self._queue += [job.handle for job in view.entered if job.handle not in self.rounds]
        self.rounds |= {job.handle: 0 for job in view.entered if job.handle not in self.rounds}
        if view.now % ROUND:
            return ()
        here = {**view.waiting, **view.running}
        if not here:
            return ()
        self._queue = [handle for handle in self._queue if handle in here]
        self._queue.sort(key=lambda x: self._key(here[x], self.rounds[x], view.now))
        placed = self._placed(here)
        for handle in placed:
            self.rounds[handle] += 1
        # As coded: who was served goes to the end of the queue.
        self._queue = [x for x in self._queue if x not in placed] + list(placed)
        self.held.append(sum(placement.gpus for _, placement in placed.values()))
        return [*_moves(view, placed), Wake(view.now + ROUND)]

    def _placed(self, here: Mapping[int, Any]) -> dict[int, tuple[Job, Placement]]:
        free = [GPUS] * MACHINES
        placed: dict[int, tuple[Job, Placement]] = {}
        for handle in self._queue:
            job = here[handle].job
            placement = self._place(job.gpus, free)
            trial = {**placed, handle: (job, placement)} if placement else placed
            if placement and min(self._rates.ratio(x, trial) for x in trial) >= self._least:
                placed = trial
                for machine, count in zip(placement.leaves, placement.counts, strict=True):
                    free[machine] -= count
            elif self._coded:
                break
        return placed

    def _place(self, gpus: int, free: Sequence[int]) -> Placement | None:
        """Equal shares on machines that have them free; packed, on those with the least left."""
        for count in self._shares:
            share = gpus // count
            if not share or gpus % count:
                continue
            fitting = [machine for machine, left in enumerate(free) if left >= share]
            if len(fitting) >= count:
                if self._shares[0] < 4:
                    fitting.sort(key=lambda machine: free[machine])
                return Placement.of(dict.fromkeys(sorted(fitting[:count]), share))
        return None


def measured(
    tables: Tables, jobs: Sequence[Job], name: str, placement: str, least: float = 0.0
) -> dict[str, str]:
    """A row of `paper.csv`. No start leaves anybody less than `least` of its speed."""
    rates = TableRates(tables)
    policy = Rounds(name, placement, least, rates)
    tree = nested(("machine", "rack"), [GPUS] * MACHINES)
    rows = Simulator(tree, jobs, rates).run(policy)
    jct_s = [row.finish / TICKS_PER_S for row in rows.jobs]
    values = (
        fmean(policy.rounds.values()) * ROUND / TICKS_PER_S,
        fmean(jct_s),
        float(np.percentile(jct_s, 90)),
        fmean(policy.held) / (GPUS * MACHINES),
    )
    if least:
        placement += f", {least:g} or wait"
    return dict(zip(COLUMNS, (name, placement, *(f"{x:.6g}" for x in values)), strict=True))


def write_paper(folder: Path, trace: Path) -> None:
    """All rows, into `paper.csv`."""
    tables = Tables.read(folder)
    jobs = tables.jobs(trace)
    correct = ("las", "srtf", "srsf")
    rows = [measured(tables, jobs, name, "spread") for name in KEYS if name != "srsf"]
    rows += [measured(tables, jobs, name, "pack") for name in correct]
    rows += [measured(tables, jobs, name, "pack", 0.6) for name in correct]
    rows += [measured(tables, jobs, name, "one machine") for name in correct]
    PAPER.write(rows)


def _moves(view: ClusterView, placed: Mapping[int, tuple[Job, Placement]]) -> list[Decision]:
    answer: list[Decision] = [Preempt(handle) for handle in view.running if handle not in placed]
    for handle, (_, placement) in placed.items():
        if handle in view.waiting:
            answer.append(Start(handle, placement))
        elif view.running[handle].placement != placement:
            answer.append(Migrate(handle, placement))
    return answer


def _left_s(view: JobView, now: Tick) -> float:
    return (view.job.iterations - view.iterations_done(now)) * view.job.compute_s


def _kind(text: str) -> tuple[str, int, int]:
    model, gpus, machines = text.split(",")
    return model, int(gpus), int(machines)
