"""How far Algorithms 1 and 2 are from the best shifts of a whole component, judged by `phase`.

A case has two to four jobs and links that each join two of them. The search goes job by job over a
grid of shifts, from the algorithms' shifts and from random ones; the job order and the grid are
fixed. What it chose is resimulated with other random numbers, as the algorithms' choice is: else
it would profit from its own luck.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from artist.policies.cassini.affinity import JoinedJobs
from artist.policies.cassini.candidates import Chosen, choose
from artist.policies.cassini.job_circle import Circle
from artist.policies.cassini.link_circle import Choice
from artist.policies.cassini.pace import groups
from artist.policies.cassini.solver import LinkPatterns, LinkSolver
from artist.policies.cassini.time_shifts import SolverOptions
from artist.policies.cassini.wrapper import CassiniOptions
from artist.rng import stream
from artist.units import seconds
from studies.cassini.study.observations import HERE
from studies.cassini.study.simulated import LINK_GBPS, simulated
from studies.common.rows import RowsFile

COLUMNS = (
    "case", "jobs", "links", "cycles", "score", "unaligned", "algorithms", "centre", "ours",
    "search",
)  # fmt: skip
JOINT = RowsFile(HERE / "joint.csv", COLUMNS, "cassini")
"""`algorithms`: every link, first angles, as the paper. `centre`: middles of plateaus. `ours`:
middles, and only links that gain .03 or more, as runs do."""

CASES = 24
PERIODS_MS = (300.0, 300.0, 300.0, 150.0)
GRID = 16
SWEEPS = 2
SEARCHED = 40
"""Iterations of a simulation in the search."""
JUDGED = 256
DRAWS = 8
"""How many simulations judge a choice, and how many random offsets stand for no alignment."""
JITTER = 0.005
LEAST_GAIN: float = CassiniOptions.model_fields["least_gain"].default


@dataclass(frozen=True)
class Case:
    """A component."""

    circles: tuple[Circle, ...]
    pairs: tuple[tuple[int, int], ...]
    """The jobs of each link."""

    @property
    def links_of(self) -> list[tuple[int, ...]]:
        """The links of each job."""
        return [
            tuple(link for link, pair in enumerate(self.pairs) if job in pair)
            for job in range(len(self.circles))
        ]

    def stretch(
        self,
        shifts_s: Sequence[float],
        iterations: int,
        seed: int,
        *,
        aligned: bool = True,
        group_of: Sequence[int | None] | None = None,
    ) -> float:
        """Mean iteration over that alone."""
        return simulated(
            self.circles, self.links_of, shifts_s,
            aligned=aligned, jitter=JITTER, iterations=iterations, seed=seed, group_of=group_of,
        ).stretch  # fmt: skip


def write_joint() -> None:
    """Do all cases, and write `joint.csv`."""
    JOINT.write(row_of(number) for number in range(CASES))


def case(number: int) -> Case:
    """One of the cases."""
    rng = stream(number, "study.cassini.joint")
    jobs = 2 + number % 3
    circles = []
    for period_ms, up, gbps in zip(
        rng.choice(PERIODS_MS, jobs), rng.uniform(0.15, 0.5, jobs), rng.uniform(25, 50, jobs),
        strict=True,
    ):  # fmt: skip
        circles.append(Circle.down_then_up(period_ms / 1e3, up * period_ms / 1e3, gbps))
    most = int(rng.integers(jobs - 1, jobs + 1))
    while True:
        pairs = {tuple(sorted(rng.choice(jobs, 2, False).tolist())) for _ in range(max(most, 1))}
        joined = JoinedJobs()
        for pair in sorted(pairs):
            joined.join(pair)
        if joined.loops(range(jobs)) == jobs - 1:
            return Case(tuple(circles), tuple(sorted(pairs)))


def row_of(number: int) -> dict[str, str]:
    """A case: the algorithms, the search, and random offsets."""
    one = case(number)
    uses = [
        LinkPatterns(LINK_GBPS, pair, tuple(one.circles[job] for job in pair)) for pair in one.pairs
    ]
    solver, centred = LinkSolver(), LinkSolver(SolverOptions(choice=Choice.CENTRE))
    chosen = choose([uses], solver)
    ours = _shifts_s(one, chosen)
    best = _searched(one, ours, number)
    rng = stream(number, "study.cassini.joint.offsets")
    offsets = [
        [x * circle.period_s for x, circle in zip(rng.random(len(ours)), one.circles, strict=True)]
        for _ in range(DRAWS)
    ]
    judged = range(1000, 1000 + DRAWS)
    loose = [
        one.stretch(x, JUDGED, seed, aligned=False) for x, seed in zip(offsets, judged, strict=True)
    ]
    middle = _shifts_s(one, choose([uses], centred))
    gaining = choose([uses], centred, least_gain=LEAST_GAIN)
    group_of = _groups(one, [uses[link] for link in gaining.links], centred)
    some = [
        one.stretch(
            [x if group is None else y for x, y, group in zip(
                loose_s, _shifts_s(one, gaining), group_of, strict=True)],
            JUDGED, seed, group_of=group_of,
        )
        for loose_s, seed in zip(offsets, judged, strict=True)
    ]  # fmt: skip
    means = (
        np.mean(loose),
        np.mean([one.stretch(ours, JUDGED, seed) for seed in judged]),
        np.mean([one.stretch(middle, JUDGED, seed) for seed in judged]),
        np.mean(some),
        np.mean([one.stretch(best, JUDGED, seed) for seed in judged]),
    )
    values = (
        str(number), str(len(ours)), str(len(one.pairs)), str(chosen.cycles),
        *(f"{x:.6g}" for x in (chosen.score, *means)),
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def _shifts_s(one: Case, chosen: Chosen) -> list[float]:
    return [seconds(chosen.shifts.get(job, 0)) for job in range(len(one.circles))]


def _groups(one: Case, uses: Sequence[LinkPatterns], solver: LinkSolver) -> list[int | None]:
    """Which group each job takes turns in, if any."""
    joined = groups(uses, solver)
    return [
        next((index for index, group in enumerate(joined) if job in group.jobs), None)
        for job in range(len(one.circles))
    ]


def _searched(one: Case, ours: Sequence[float], number: int) -> list[float]:
    """Coordinate descent over a grid of shifts; of equal results the first."""
    rng = stream(number, "study.cassini.joint.starts")
    drawn = [int(x) / GRID * circle.period_s for x, circle in zip(
        rng.integers(GRID, size=len(ours)), one.circles, strict=True)]  # fmt: skip
    known: dict[tuple[float, ...], float] = {}

    def cost(shifts_s: Sequence[float]) -> float:
        key = tuple(shifts_s)
        if key not in known:
            known[key] = one.stretch(key, SEARCHED, number)
        return known[key]

    for start in (list(ours), drawn):
        at = start
        for _ in range(SWEEPS):
            before = cost(at)
            for job in range(1, len(at)):
                tried = [at]
                for step in range(GRID):
                    other = list(at)
                    other[job] = step / GRID * one.circles[job].period_s
                    tried.append(other)
                at = min(tried, key=cost)
            if cost(at) >= before:
                break
    best, _ = min(known.items(), key=lambda item: item[1])
    return list(best)
