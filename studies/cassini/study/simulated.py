"""Jobs on links, simulated by the model `phase`: with jitter for all, in turn or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from artist.network.models.patterns import Contention, Flow, InTurn, Member, Pattern, SharedLink
from artist.network.models.phase import PhaseSettings, iterations_s, lognormal
from artist.network.models.simulation import Simulation, alone_s
from artist.network.models.turns import with_jitter
from artist.policies.cassini.job_circle import Circle
from artist.policies.cassini.link_circle import DRIFT

GBIT = 1e9 / 8
LINK_GBPS = 50.0
ETA = 0.88
"""Two jobs that queue for a link of 50 Gbit/s got 22 Gbit/s each (section 2.2)."""

BOTH = 2
"""Directions in which a ring sends."""


@dataclass(frozen=True)
class Simulated:
    """The later half of the iterations of each job, in seconds."""

    took_s: tuple[tuple[float, ...], ...]
    alone_s: tuple[float, ...]
    corrections_per_min: float
    """Of all jobs together."""

    @property
    def stretch(self) -> float:
        """Iterations over those alone; the mean of all jobs."""
        means = [sum(x) / len(x) for x in self.took_s]
        return sum(x / y for x, y in zip(means, self.alone_s, strict=True)) / len(means)


def simulated(
    circles: Sequence[Circle],
    links_of: Sequence[Sequence[int]],
    offsets_s: Sequence[float],
    *,
    aligned: bool,
    jitter: float,
    iterations: int,
    seed: int,
    group_of: Sequence[int | None] | None = None,
    directions: int = BOTH,
) -> Simulated:
    """Simulate jobs of one Up phase each, two machines in a ring.

    `links_of` has the links that each job crosses, from 0 on. A ring of two sends as much back as
    forth, so a job has a flow in each direction of its links, and ends when the later one does.
    With 1 direction nothing comes back. `aligned`: the jobs keep their turns, and who is ahead by
    5 % of its iteration waits. `group_of` says who does so with whom; None: all jobs with each
    other.
    """
    if group_of is None:
        group_of = [0 if aligned else None] * len(circles)
    lone = max((group + 1 for group in group_of if group is not None), default=0)
    count = 1 + max(map(max, links_of))
    links = (SharedLink(LINK_GBPS * GBIT, eta=ETA),) * (directions * count)
    members = []
    for job, (circle, of_job, offset_s) in enumerate(
        zip(circles, links_of, offsets_s, strict=True)
    ):
        (up,) = circle.arcs
        flows = [
            Flow(tuple(direction * count + link for link in of_job), up.demand * GBIT)
            for direction in range(directions)
        ]
        group = group_of[job]
        slack_s = None if group is None else DRIFT * circle.period_s
        # A job without a group is one of its own, so that it jitters.
        turn = InTurn(lone + job if group is None else group, circle.period_s, slack_s)
        pattern = Pattern.simple(up.start_s, up.length_s * up.demand * GBIT, *flows)
        members.append(Member(pattern, offset_s, (), turn))
    contention = Contention(links, tuple(members))
    alone = [alone_s(contention, index) for index in range(len(members))]
    settings = PhaseSettings(seed=seed)
    varied = with_jitter(contention, alone, jitter, iterations, seed)
    simulation = Simulation(varied, lognormal(contention, settings), settings.two_bottleneck_weight)
    simulation.run(lambda now: min(job.iterations for job in now.jobs) >= iterations)
    assert simulation.turns is not None
    return Simulated(
        tuple(tuple(iterations_s(job, job.iterations // 2)) for job in simulation.jobs),
        tuple(alone),
        sum(simulation.turns.corrections) * 60 / simulation.now_s,
    )
