"""Drift: time-shifts get lost by jitter, and are reset (CASSINI, section 5.7).

A worker sets its time-shift again when an Up phase starts more than 5 % of the ideal iteration off.
With jitter x of the period per iteration, lateness is a random walk. It leaves +-5 % after about
(.05 / x)^2 iterations, so corrections per minute are about 60 s / period x (x / .05)^2.
"""

from __future__ import annotations

from artist.policies.cassini.link_circle import DRIFT
from artist.rng import stream
from artist.units import Tick

JITTER = 0.005
"""Standard deviation of an iteration, as a share of the period. The largest at which there are
under two corrections a minute, as the paper measured (Fig. 17): 2.0, 1.7 and 1.6 for its periods
of 255, 300 and 336 ms (tests/studies/test_cassini_drift.py)."""


def is_off(late: Tick, ideal: Tick) -> bool:
    """Whether a start so late, or early if negative, has drifted too far from its time-shift."""
    return abs(late) > DRIFT * ideal


def corrections_per_minute(
    period_s: float, jitter: float = JITTER, *, hours: float = 24.0, seed: int = 0
) -> float:
    """How often a job would be corrected whose iterations jitter, by simulation.

    `jitter` is the standard deviation of an iteration, as a share of `period_s`.
    """
    iterations = max(round(hours * 3600 / period_s), 1)
    late, corrections = 0.0, 0
    for step in stream(seed, "cassini.drift").normal(0.0, jitter, iterations).tolist():
        late += step
        if abs(late) > DRIFT:
            late, corrections = 0.0, corrections + 1
    return corrections * 60.0 / (iterations * period_s)
