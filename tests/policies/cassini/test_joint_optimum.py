"""How far Algorithms 1 and 2 are from shifting all jobs of a component at once, by score."""

from __future__ import annotations

import numpy as np
from snapshots import circle

from artist.policies.cassini.candidates import choose
from artist.policies.cassini.job_circle import Circle
from artist.policies.cassini.score import link_circle
from artist.policies.cassini.solver import LinkPatterns, LinkSolver
from artist.rng import stream

ANGLES = 36


def joint_optimum(jobs: list[Circle], pairs: list[tuple[int, int]]) -> float:
    """The best mean score of links with two of four jobs each, over all their shifts."""
    shifts = np.meshgrid(*(np.arange(n) for n in (1, ANGLES, ANGLES, ANGLES)), indexing="ij")
    total = np.zeros(shifts[0].shape)
    for one, two in pairs:
        link = link_circle([jobs[one], jobs[two]], 50.0, angle_deg=360 // ANGLES)
        scores = np.array([link.score((0, by)) for by in range(ANGLES)])
        total += scores[(shifts[two] - shifts[one]) % ANGLES]
    return float(total.max()) / len(pairs)


def test_without_loops_nothing_is_lost_and_with_loops_little() -> None:
    rng = stream(0, "joint")
    lost: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(60):
        jobs = [circle(100, up, gbps) for up, gbps in rng.uniform((15, 20), (60, 45), (4, 2))]
        drawn = [
            sorted(rng.choice(4, 2, replace=False).tolist()) for _ in range(rng.integers(3, 6))
        ]
        pairs = [(one, two) for one, two in drawn]
        uses = [LinkPatterns(50.0, pair, (jobs[pair[0]], jobs[pair[1]])) for pair in pairs]
        chosen = choose([uses], LinkSolver())
        lost[chosen.cycles > 0].append(joint_optimum(jobs, pairs) - chosen.score)
    assert min(map(len, lost.values())) >= 10
    assert max(lost[False]) < 0.001  # its angles are half as fine
    assert np.mean(lost[True]) < 0.005
    assert max(lost[True]) < 0.032
