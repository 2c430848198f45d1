"""Figs. 2, 5, 17 and 18: what needs no run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement
from statistics import fmean, median

from artist.network.demand.curves import down_and_up
from artist.policies.cassini.job_circle import Circle
from artist.policies.cassini.score import expected_score
from artist.policies.cassini.time_shifts import Solution, SolverOptions, score_at, solve
from artist.run import open_backend
from artist.trace.synthetic.cassini import TABLE_3
from artist.units import GIB
from artist.workload.models import workload
from studies.cassini.study.drift import corrections_per_minute
from studies.cassini.study.links import SNAPSHOTS
from studies.cassini.study.simulated import LINK_GBPS

FIG_2 = (Circle.down_then_up(0.348, 0.118, 40.0),) * 2
FIG_5 = (Circle.down_then_up(0.040, 0.010, 50.0), Circle.down_then_up(0.060, 0.010, 50.0))
PAPER_SHIFTS_MS = {1: (0, 150), 2: (0, 158, 46), 3: (0, 100), 4: (0, 60), 5: (0, 42, 191)}
PAPER_SCORES = {1: 1.0, 2: 1.0, 3: 0.9, 4: 0.8, 5: 0.6}
PERIODS_MS = (255, 300, 336)
"""Snapshots 1 to 3 in Fig. 17, as the groundwork of the default jitter has them."""


def solved(circles: tuple[Circle, ...], angle_deg: int = 5) -> Solution:
    """The paper's solver."""
    return solve(circles, LINK_GBPS, SolverOptions(angle_deg=angle_deg))


def score_at_paper(snapshot: int) -> float:
    """Our score at the paper's time-shifts."""
    shifts_s = [ms / 1e3 for ms in PAPER_SHIFTS_MS[snapshot]]
    return score_at(SNAPSHOTS[snapshot], LINK_GBPS, shifts_s)


def at_random(snapshot: int) -> float:
    """The score that random phases give on average."""
    return expected_score(SNAPSHOTS[snapshot], LINK_GBPS)


def farthest_angle_deg() -> float:
    """How far shifts at 5 degrees are from those at 1 degree, of the snapshots with two jobs."""
    far = []
    for circles in (x for x in SNAPSHOTS.values() if len(x) == 2):
        coarse, fine = (solved(circles, angle_deg).shifts_s[1] for angle_deg in (5, 1))
        far.append(abs(coarse - fine) / circles[1].period_s * 360)
    return max(far)


def corrections(jitter: float) -> list[float]:
    """Corrections per minute of the three snapshots, each job by itself (a random walk)."""
    return [corrections_per_minute(ms / 1e3, jitter, hours=6) for ms in PERIODS_MS]


def alone(models: Sequence[str], workers: int = 4) -> dict[str, Circle]:
    """What jobs of these models do on the testbed, alone."""
    backend = open_backend("analytical")
    circles = {}
    for model in models:
        job = down_and_up(workload(model), workers, LINK_GBPS * 1e9 / 8 / GIB, backend)
        circles[model] = Circle.down_then_up(job.iteration_s, job.up_s, job.bytes_per_s * 8 / 1e9)
    return circles


def sending(circles: Iterable[Circle]) -> tuple[float, float, float]:
    """The least, median and largest share of an iteration in which jobs send."""
    shares = sorted(circle.arcs[0].length_s / circle.period_s for circle in circles)
    return shares[0], median(shares), shares[-1]


def pairs(circles: Sequence[Circle]) -> tuple[int, int, float, float]:
    """Of all pairs on one link, a job with its like included: how many, how many score .95 or more
    when aligned; the mean score aligned, and at random phases."""
    both = list(combinations_with_replacement(circles, 2))
    scores = [solved(pair).score for pair in both]
    random = [expected_score(pair, LINK_GBPS) for pair in both]
    return len(both), sum(x >= 0.95 for x in scores), fmean(scores), fmean(random)


CATALOGUE_MODELS = tuple(row.spec((row.least + row.most) // 2) for row in TABLE_3)
"""With the middle batch of Table 3."""
