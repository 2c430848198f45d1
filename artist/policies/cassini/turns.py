"""From time-shifts to holds: when each job of a group starts its iterations, and how long it waits.

A time-shift delays a job's next iteration (CASSINI, section 4.2, step 3). Jobs are in the middle of
iterations when they are aligned, so a job waits for the next instant at which its shift lets an
iteration start. The zero of the shifts is free; it is chosen so that the least GPU time is lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from artist.contract import Hold, JobView, Turn, Uplink
from artist.policies.cassini.pace import TurnGroup
from artist.policies.cassini.solver import LinkSolver
from artist.units import Tick, seconds, ticks
from artist.workload.job import start_cost_s


@dataclass(frozen=True, slots=True)
class HeldJob:
    """A job that is about to get a turn.

    Without a hold, its next iteration would start at `ready`: `rest` ticks after `goes_on`, when
    its restart or present hold ends.
    """

    goes_on: Tick
    rest: Tick
    gpus: int

    @property
    def ready(self) -> Tick:
        """When its next iteration would start."""
        return self.goes_on + self.rest


def held(job: JobView, now: Tick, gpus: int, iteration_s: float, *, placed: bool) -> HeldJob:
    """A job at a question. `placed` says that it gets its GPUs now, perhaps after other ones."""
    if placed:
        again = job.former_placement is not None or job.placement is not None
        return HeldJob(now + ticks(start_cost_s(job.job, again=again)), 0, gpus)
    phase = job.phase(now)
    rest = ticks((1.0 - phase) * iteration_s) if phase else 0
    return HeldJob(max(now, job.productive_from), rest, gpus)


def turns(
    group: int, jobs: Mapping[int, HeldJob], shifts: Mapping[int, Tick], periods: Mapping[int, Tick]
) -> dict[int, tuple[Tick, Turn]]:
    """By job: until when it is held, and its turn without slack."""

    def waits(zero: Tick) -> dict[int, Tick]:
        return {x: (zero + shifts[x] - jobs[x].ready) % periods[x] for x in jobs}

    def lost(zero: Tick) -> int:
        return sum(wait * jobs[x].gpus for x, wait in waits(zero).items())

    zero = min((jobs[x].ready - shifts[x] for x in sorted(jobs)), key=lost)
    return {
        handle: (
            jobs[handle].goes_on + wait,
            Turn(group, jobs[handle].ready + wait, periods[handle], None),
        )
        for handle, wait in waits(zero).items()
    }


def holds(
    aligned: Mapping[int, tuple[Tick, Turn]], slacks: Mapping[int, Tick | None], now: Tick
) -> list[Hold]:
    """The decisions. A job that need not wait is held for one tick, because holds carry turns."""
    return [
        Hold(handle, max(until, now + 1), "time-shift", replace(turn, slack=slacks[handle]))
        for handle, (until, turn) in sorted(aligned.items())
    ]


def circle_rows(
    group: TurnGroup,
    solver: LinkSolver,
    shifts: Mapping[int, Tick],
    job_ids: Mapping[int, str],
    link_name: Callable[[Uplink], str],
) -> list[dict[str, Any]]:
    """Rows that describe the circles of a group's links: one for every job of every link.

    An iteration starts at `shift_s` on the circle, and its Up phase ends with it. The circle turns
    at the group's pace.
    """
    rows: list[dict[str, Any]] = []
    for use in group.uses:
        solution = solver.solve(use)
        phased = solver.phased(use)
        of_link = {
            "link": link_name(use.uplink),
            "turn_s": solution.period_s * group.stretch(use, solution),
            "capacity_bytes_per_s": use.capacity,
            "score": solution.score,
            "score_at_random": solver.expected(use),
        }
        for handle, circle in zip(use.jobs, use.circles, strict=True):
            if handle in phased:
                of_job = {
                    "job_id": job_ids[handle],
                    "iteration_s": circle.period_s,
                    "on_circle_s": group.periods_s[handle],
                    "up_s": math.fsum(arc.length_s for arc in circle.arcs),
                    "bytes_per_s": circle.peak,
                    "shift_s": seconds(shifts[handle]),
                }
                rows.append(of_link | of_job)
    return rows
