"""`table:FILE`: slowdowns of pairs of jobs, measured on real machines.

    throughput of a job = its isolated throughput x min over its co-located jobs of CS
    CS(model, other)    = 1 / slowdown

(Ryu and Eo, Network Contention-Aware Cluster Scheduling with Reinforcement Learning, eq. 1; their
code takes the minimum.) Co-located jobs are jobs that cross an uplink of the job. The file is a CSV
with the columns `model`, `beside` and `slowdown`, or `model_a`, `model_b` and `slowdown`. A row
says how many times longer an iteration of the first model takes next to the second one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from artist.cluster.placement import Placement
from artist.contract import JobView, Moves, Options, PatternsUnknown, Rate, Slowdowns, Uplink
from artist.errors import ConfigError, TraceError, shortened
from artist.io.csv_rows import csv_rows
from artist.io.documents import validate
from artist.io.reading import as_float, decode, read_bytes
from artist.network.rates.interference import add_pair
from artist.network.rates.job_traffic import crossed
from artist.network.rates.network_of_run import NetworkOfRun
from artist.units import Tick
from artist.workload.job import Job
from artist.workload.models import canonical_if_known

COLUMNS = (("model", "beside"), ("model_a", "model_b"))
SLOWDOWN = "slowdown"

# The largest slowdown in a table. No measured pair comes near a ten-thousandth of the work.
_MOST = 1e4


class PairRates(PatternsUnknown):
    """A rate function: a job has the largest slowdown that any co-located job causes."""

    def __init__(self, network: NetworkOfRun, path: Path) -> None:
        """Raises TraceError if the file is not a table of slowdowns."""
        self._path, self._slowdowns = path, _read(path)
        self._tree, self._alone = network.tree, network.alone
        self._levels = network.fabric.uplink_levels
        self._crossed: dict[int, dict[Uplink, int]] = {}
        self._models: dict[int, str] = {}
        self._jobs: dict[Uplink, dict[int, str]] = {}
        """By uplink: the models of the jobs that cross it, by handle."""
        self._rates: dict[int, Rate] = {}
        self._lone: dict[int, Rate] = {}

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """Rates of the changed jobs that run, and of jobs that share or shared a link with one."""
        affected: set[int] = set()
        for view in changed:
            affected |= self._leave(view.handle)
        for view in changed:
            if view.placement is not None:
                affected |= self._enter(view, view.placement, now)
        for handle in sorted(affected & self._lone.keys()):
            self._rates[handle] = self._rate(handle)
        return {handle: self._rates[handle] for handle in sorted(affected & self._lone.keys())}

    def alone(self, job: Job, placement: Placement) -> Rate:
        """The rate of a job on some GPUs if no other job used the network."""
        return self._alone.alone(job, placement)

    @property
    def links(self) -> PairRates:
        """The rate function itself, which also answers about jobs that are not placed yet."""
        return self

    def busy(self, moves: Moves) -> Mapping[Uplink, float]:
        """By uplink: how many jobs cross it, since a table of pairs knows no bytes."""
        return {uplink: float(len(jobs)) for uplink, jobs in self._after(moves).items()}

    def slowdowns(
        self, job: Job, placement: Placement, moves: Moves, handle: int | None = None
    ) -> Slowdowns:
        """The largest slowdowns of the job and of each co-located job next to any other, less 1."""
        after = self._after(moves)
        here = crossed(self._tree, self._levels, placement)
        others = {x: model for uplink in here for x, model in after.get(uplink, {}).items()}
        slowed = {
            handle: self._most(others[handle], [*_co_located(after, handle), job.model]) - 1.0
            for handle in sorted(others)
        }
        return Slowdowns(self._most(job.model, others.values()) - 1.0, slowed)

    def _after(self, moves: Moves) -> dict[Uplink, dict[int, str]]:
        """By uplink: the models of the jobs that would cross it."""
        after = {
            uplink: {handle: model for handle, model in jobs.items() if handle not in moves}
            for uplink, jobs in self._jobs.items()
        }
        for handle, move in moves.items():
            if move is not None:
                for uplink in crossed(self._tree, self._levels, move[1]):
                    after.setdefault(uplink, {})[handle] = move[0].model
        return {uplink: jobs for uplink, jobs in after.items() if jobs}

    def _most(self, model: str, others: Iterable[str]) -> float:
        return max((self._slowdown(model, other) for other in sorted(set(others))), default=1.0)

    def _slowdown(self, model: str, other: str) -> float:
        """How many times longer an iteration takes, at least 1."""
        pair = canonical_if_known(model), canonical_if_known(other)
        known = self._slowdowns.get(pair)
        if known is None:
            raise ConfigError(
                f"{self._path} lacks the slowdown of {shortened(model)} beside "
                f"{shortened(other)}, and two such jobs share a link; add the row "
                f"{','.join(pair)},SLOWDOWN, or use another --contention"
            )
        return known

    def _leave(self, handle: int) -> set[int]:
        if handle not in self._lone:
            return set()
        affected: set[int] = set()
        for uplink in self._crossed.pop(handle):
            del self._jobs[uplink][handle]
            affected |= self._jobs[uplink].keys()
        del self._lone[handle], self._rates[handle], self._models[handle]
        return affected

    def _enter(self, view: JobView, placement: Placement, now: Tick) -> set[int]:
        handle = view.handle
        self._lone[handle] = self._alone.now(view, placement, now)
        self._models[handle] = view.job.model
        self._crossed[handle] = crossed(self._tree, self._levels, placement)
        affected = {handle}
        for uplink in self._crossed[handle]:
            self._jobs.setdefault(uplink, {})[handle] = view.job.model
            affected |= self._jobs[uplink].keys()
        return affected

    def _rate(self, handle: int) -> Rate:
        here = {uplink: self._jobs[uplink] for uplink in self._crossed[handle]}
        slowdown = self._most(self._models[handle], _co_located(here, handle))
        alone = self._lone[handle]
        if slowdown == 1.0:
            return alone
        return alone._replace(
            iteration_s=alone.iteration_s * slowdown, source=f"{alone.source}+table"
        )


def table_rates(argument: str, options: Mapping[str, Any], network: NetworkOfRun) -> PairRates:
    """The rate function of `--contention table:FILE`.

    Raises:
        ConfigError: no file, no uplink in the fabric, or a policy that lets jobs share GPUs.
        TraceError: the file is not a table of slowdowns.
    """
    if not argument:
        raise ConfigError("contention table needs a file; write table:FILE")
    validate(options, Options, "contention table")
    network.check_uplinks("table")
    if network.sharing is not None:
        raise ConfigError(
            "contention table: the policy lets jobs share GPUs, and a table does not say how many "
            "bytes such jobs send; use --contention mean, or a policy without sharing"
        )
    return PairRates(network, Path(argument))


def _co_located(on: Mapping[Uplink, Mapping[int, str]], handle: int) -> list[str]:
    """The models of the jobs that share an uplink with job `handle`."""
    return [
        model
        for jobs in on.values()
        if handle in jobs
        for other, model in jobs.items()
        if other != handle
    ]


def _read(path: Path) -> dict[tuple[str, str], float]:
    columns, rows = csv_rows(path, decode(path, read_bytes(path)))
    named = [pair for pair in COLUMNS if {*pair, SLOWDOWN} <= set(columns)]
    if not named:
        raise TraceError(
            f"{path}:1: columns {', '.join(columns)}, expected model, beside and slowdown; add them"
        )
    slowdowns: dict[tuple[str, str], float] = {}
    for where, cells in rows:
        pair = (canonical_if_known(cells[named[0][0]]), canonical_if_known(cells[named[0][1]]))
        add_pair(slowdowns, pair, _slowdown(cells[SLOWDOWN], where), where)
    return slowdowns


def _slowdown(text: str, where: str) -> float:
    value = as_float(text)
    if not 1.0 <= value <= _MOST:
        raise TraceError(
            f"{where}: slowdown {shortened(text)}, expected a number from 1 (time next to the "
            "other job over isolated time)"
        )
    return value
