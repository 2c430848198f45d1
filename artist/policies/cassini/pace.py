"""The pace of jobs that links join: that of the slowest job, in the ratios of their circles.

No job can make up for lost time, so jobs in turn go as fast as the job that is slowest relative to
its period on the circle. On a circle of 309 ms, jobs of 301.6 and 316.4 ms both take 316.4 ms, and
time-shifts on the circle grow by the same factor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from artist.policies.cassini.solver import LinkPatterns, LinkSolver
from artist.policies.cassini.time_shifts import Solution


@dataclass(frozen=True, slots=True)
class TurnGroup:
    """Jobs that links join, with the seconds of each one's iteration at the group's pace."""

    periods_s: Mapping[int, float]
    uses: tuple[LinkPatterns, ...]

    @property
    def jobs(self) -> frozenset[int]:
        """Handles of the jobs."""
        return frozenset(self.periods_s)

    def stretch(self, use: LinkPatterns, solution: Solution) -> float:
        """Time at the group's pace over time on the circle of one of its links."""
        job = next(job for job in use.jobs if job in self.periods_s)
        return self.periods_s[job] / solution.periods_s[use.jobs.index(job)]


def groups(uses: Sequence[LinkPatterns], solver: LinkSolver) -> list[TurnGroup]:
    """The groups of jobs that links without loops connect, by first job.

    Periods are snapped link by link, starting from the first job, so that on every link the
    periods of its jobs have the ratios of its circle.
    """
    of_job: dict[int, list[LinkPatterns]] = {}
    for use in uses:
        for handle in solver.phased(use):
            of_job.setdefault(handle, []).append(use)
    joined: list[TurnGroup] = []
    seen: set[int] = set()
    for root in sorted(of_job):
        if root in seen:
            continue
        ratios = {root: 1.0}
        front = [root]
        links: list[LinkPatterns] = []
        while front:
            handle = front.pop(0)
            for use in of_job[handle]:
                if any(use is other for other in links):
                    continue
                links.append(use)
                snapped = dict(zip(use.jobs, solver.solve(use).periods_s, strict=True))
                for other in solver.phased(use):
                    if other not in ratios:
                        ratios[other] = ratios[handle] * snapped[other] / snapped[handle]
                        front.append(other)
        seen |= ratios.keys()
        joined.append(TurnGroup(_at_the_slowest(ratios, links), tuple(links)))
    return joined


def _at_the_slowest(ratios: Mapping[int, float], uses: Sequence[LinkPatterns]) -> dict[int, float]:
    """The shortest periods in these ratios that are at least the jobs' iterations."""
    unit_s = max(
        circle.period_s / ratios[job]
        for use in uses
        for job, circle in zip(use.jobs, use.circles, strict=True)
        if job in ratios
    )
    return {job: unit_s * ratio for job, ratio in ratios.items()}
