"""The jobs and the link of `artist circle`, and the facts that the command prints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from artist.errors import ConfigError, shortened
from artist.network.demand.curves import down_and_up
from artist.policies.cassini.job_circle import Circle
from artist.policies.cassini.link_circle import Choice
from artist.policies.cassini.score import expected_score
from artist.policies.cassini.time_shifts import Solution, SolverOptions, solve
from artist.run import open_backend
from artist.units import BANDWIDTH_UNITS, GIB, TICKS_PER_S, in_base_unit, quantity
from artist.workload.models import canonical, workload

MOST_JOBS = 64
MOST_WORKERS = 1024
PERIODS_MS = (0.001, 1e7)
MOST_GBPS = 1e6
LEAST_LINK_GBPS = 0.001

_GBIT = 1e9 / 8 / GIB  # in GiB/s
_JOB = re.compile(r"([^:]+):([0-9]{1,9})(?:,|$)")


@dataclass(frozen=True, slots=True)
class LinkJob:
    """A job by the name that the user gave it, with its circle. Demands are Gbit/s."""

    name: str
    circle: Circle


@dataclass(frozen=True, slots=True)
class LinkAnswer:
    """Jobs on a link, and how they interleave. `first` has the first feasible shifts."""

    capacity_gbps: float
    jobs: tuple[LinkJob, ...]
    solution: Solution
    first: Solution

    def facts(self) -> dict[str, Any]:
        """What `--format json` prints.

        `first_shift_ms` and `plateau_ms` belong to the second job, as the first one stays: its
        first feasible shift, and the range of shifts that keep its score.
        """
        place = min(1, len(self.jobs) - 1)
        circles = [job.circle for job in self.jobs]
        return {
            "link_gbps": self.capacity_gbps,
            "score": self.solution.score,
            "score_at_random": expected_score(circles, self.capacity_gbps),
            "shifts_ms": [_ms(shift_s) for shift_s in self.solution.shifts_s],
            "period_ms": _ms(self.solution.period_s),
            "first_shift_ms": _ms(self.first.shifts_s[place]),
            "plateau_ms": _range_ms(self.solution.plateaus_s[place]),
            "jobs": [self._row(place) for place in range(len(self.jobs))],
        }

    def _row(self, place: int) -> dict[str, Any]:
        """The job's row of the table."""
        job, solution = self.jobs[place], self.solution
        up_s = sum(arc.length_s for arc in job.circle.arcs)
        return {
            "job": job.name,
            "period_ms": _ms(job.circle.period_s),
            "on_circle_ms": _ms(solution.periods_s[place]) if solution.plateaus_s[place] else None,
            "up_ms": _ms(up_s),
            "gbps": round(job.circle.peak, 3),
            "shift_ms": _ms(solution.shifts_s[place]),
            "plateau_ms": _range_ms(solution.plateaus_s[place]),
        }


def link_of(text: str) -> float:
    """The capacity of a link in Gbit/s, from a number with a unit.

    Raises:
        ConfigError: not a bandwidth above 0.
    """
    number = quantity(text, BANDWIDTH_UNITS)
    if number is None or not number[1] or number[0] <= 0:
        raise ConfigError(
            f"--link {shortened(text)}: expected a bandwidth above 0 with its unit, such as 50Gbps"
        )
    gbps = in_base_unit(*number, BANDWIDTH_UNITS) / _GBIT
    if not LEAST_LINK_GBPS <= gbps <= MOST_GBPS:
        raise ConfigError(
            f"--link {shortened(text)}: expected {LEAST_LINK_GBPS:g} up to {MOST_GBPS:g} Gbit/s"
        )
    return round(gbps, 9)


def jobs_of(
    jobs: str | None, patterns: Sequence[str], capacity_gbps: float, backend: str
) -> tuple[LinkJob, ...]:
    """The jobs of `--jobs` and, behind them, of `--pattern`.

    Raises:
        ConfigError: none or too many, an unknown model, or a bad number.
        BackendError: the backend cannot answer.
    """
    models = _models(jobs) if jobs is not None else []
    if not models and not patterns:
        raise ConfigError(
            "give --jobs MODEL:WORKERS,... such as vgg16:2,vgg19:3, or --pattern "
            "PERIOD_MS:UP_MS:GBPS, once for each job"
        )
    if len(models) + len(patterns) > MOST_JOBS:
        raise ConfigError(
            f"{len(models) + len(patterns)} jobs on a link, expected at most {MOST_JOBS}"
        )
    chosen = [_of_pattern(text) for text in patterns]
    if models:
        chosen = [*_of_models(models, capacity_gbps, backend), *chosen]
    return tuple(chosen)


def solve_link(jobs: Sequence[LinkJob], capacity_gbps: float, options: SolverOptions) -> LinkAnswer:
    """The best shifts of these jobs on a link of this capacity.

    Raises:
        ConfigError: as `artist.policies.cassini.time_shifts.solve`.
    """
    circles = [job.circle for job in jobs]
    first = solve(circles, capacity_gbps, replace(options, choice=Choice.FIRST))
    chosen = first
    if options.choice is not Choice.FIRST:
        chosen = solve(circles, capacity_gbps, options)
    return LinkAnswer(capacity_gbps, tuple(jobs), chosen, first)


def _models(text: str) -> list[tuple[str, int]]:
    """Models and workers. A job ends after its workers, as settings of models may hold commas."""
    jobs, rest = [], text
    while rest:
        match = _JOB.match(rest)
        if match is None or not 1 <= int(match[2]) <= MOST_WORKERS:
            raise ConfigError(
                f"--jobs {shortened(rest)}: expected MODEL:WORKERS, comma-separated, with 1 to "
                f"{MOST_WORKERS} workers, such as vgg16:2,vgg19:3"
            )
        jobs.append((match[1].strip(), int(match[2])))
        rest = rest[match.end() :]
    return jobs


def _of_models(
    models: Sequence[tuple[str, int]], capacity_gbps: float, backend: str
) -> list[LinkJob]:
    """Jobs of the catalogue, each with its workers, as they send on the link."""
    opened = open_backend(backend)
    jobs = []
    for model, workers in models:
        isolated = down_and_up(workload(model), workers, capacity_gbps * _GBIT, opened)
        gbps = isolated.bytes_per_s * 8 / 1e9
        circle = Circle.down_then_up(isolated.iteration_s, isolated.up_s, gbps)
        jobs.append(LinkJob(f"{canonical(model)}:{workers}", circle))
    return jobs


def _of_pattern(text: str) -> LinkJob:
    """A job from `PERIOD_MS:UP_MS:GBPS`."""
    parts = text.split(":")
    try:
        period_ms, up_ms, gbps = map(float, parts)
        if not PERIODS_MS[0] <= period_ms <= PERIODS_MS[1] or gbps > MOST_GBPS:
            raise ConfigError(
                f"expected a period of {PERIODS_MS[0]:g} to {PERIODS_MS[1]:g} ms and at most "
                f"{MOST_GBPS:g} Gbit/s"
            )
        return LinkJob(text, Circle.down_then_up(period_ms / 1e3, up_ms / 1e3, gbps))
    except ValueError:
        raise ConfigError(
            f"--pattern {shortened(text)}: expected PERIOD_MS:UP_MS:GBPS, such as 348:118:40"
        ) from None
    except ConfigError as problem:
        raise ConfigError(f"--pattern {shortened(text)}: {problem}") from None


def _ms(time_s: float) -> float:
    """Milliseconds, to the nanosecond."""
    return round(time_s * TICKS_PER_S) / 1e6


def _range_ms(range_s: tuple[float, float] | None) -> list[float] | None:
    return None if range_s is None else [_ms(range_s[0]), _ms(range_s[1])]
