"""What artist's models answer to a case: slowdowns of mean and P99 iterations of each job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from artist.network.models.mean import mean
from artist.network.models.patterns import Contention
from artist.network.models.phase import FLUID, PhaseSettings, iterations_s, lognormal
from artist.network.models.simulation import Simulation
from validation.contention.cases import Case, Truth

REPEATS = 8
"""Runs of `phase` with other random numbers. Their mean counts: two repeats of one packet run
differ by .056 (root mean square)."""

ETA = 0.976
"""Efficiency of a shared uplink: .958 of its capacity was payload while two jobs sent (packets,
DCTCP), over the .982 that a lone job reached. Slowdowns know only the ratio."""


def fluid(case: Case) -> list[Truth]:
    """Exact max-min shares."""
    return _simulated(case, case.contention(), FLUID)


def phase(case: Case) -> list[Truth]:
    """The event simulation with noise and two-bottleneck weight: the mean of `REPEATS` runs."""
    contention = case.contention(ETA)
    runs = [_simulated(case, contention, PhaseSettings(seed=seed)) for seed in range(REPEATS)]
    return [
        Truth(
            float(np.mean([run[job].slowdown for run in runs])),
            float(np.mean([run[job].p99 or np.nan for run in runs])),
        )
        for job in range(len(case.jobs))
    ]


def random_phases(case: Case) -> list[Truth]:
    """`mean`, which knows no offsets and no spread of iterations."""
    return [Truth(slowed.slowdown, None) for slowed in mean(case.contention(ETA))]


MODELS: Mapping[str, Callable[[Case], list[Truth]]] = {
    "fluid": fluid,
    "phase": phase,
    "mean": random_phases,
}


def _simulated(case: Case, contention: Contention, settings: PhaseSettings) -> list[Truth]:
    """The iterations that the case counts, over those of each job alone."""
    alone_s = [
        np.mean(_iterations_s(case, _alone(contention, job), FLUID)[0])
        for job in range(len(case.jobs))
    ]
    return [
        Truth(float(np.mean(times_s) / alone), float(np.quantile(times_s, 0.99) / alone))
        for times_s, alone in zip(_iterations_s(case, contention, settings), alone_s, strict=True)
    ]


def _iterations_s(case: Case, contention: Contention, settings: PhaseSettings) -> list[list[float]]:
    """The run ends when every job has done `min_iterations`. Those after `warmup` count."""
    noise = lognormal(contention, settings) if settings.sigma else None
    simulation = Simulation(contention, noise, settings.two_bottleneck_weight)
    simulation.run(lambda now: all(job.iterations >= case.min_iterations for job in now.jobs))
    return [iterations_s(job, case.warmup) for job in simulation.jobs]


def _alone(contention: Contention, job: int) -> Contention:
    return Contention(contention.links, (replace(contention.members[job], offset_s=0.0),))
