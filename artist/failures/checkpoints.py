"""When jobs write checkpoints, and how often they should.

A scenario or a file of failures states `CheckpointOptions`. The best interval, and the share of a
job's time that failures leave, are closed forms. Failures come at random, with a mean time of
`mttf_s` between them. A checkpoint costs `cost_s`, and a restart `restart_s`.

Sources: J. W. Young, *A first order approximation to the optimum checkpoint interval* (CACM 17(9),
1974); J. T. Daly, *A higher order estimate of the optimum checkpoint interval for restart dumps*
(Future Generation Computer Systems 22(3), 2006), where M is `mttf_s`, delta `cost_s`, tau
`interval_s` and R `restart_s`.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from artist.io.documents import Document, Duration, NonNegative

BEST = ("auto", "daly", "young")
"""Settings that mean the best interval."""

NO_INTERVAL = "none"

SHORTEST_S = 1e-9
"""A tick of the engine's clock."""


def _seconds_or_word(value: object) -> object:
    """Refuse anything else in one sentence, where pydantic would name the parts of a union."""
    if value in (NO_INTERVAL, "off") or value is False:  # YAML reads off as false
        return NO_INTERVAL
    try:
        good = value is None or value in BEST or float(str(value)) >= SHORTEST_S
    except ValueError:
        good = False
    if not good:
        raise ValueError(f"expected seconds above 0, {', '.join(BEST)} or {NO_INTERVAL}")
    return value


class CheckpointOptions(Document):
    """How often a job saves its state, and how long it stands still for it.

    `auto` is the interval that loses least, for the failures that hit the job's GPUs; it is
    `daly`.
    """

    interval_s: Annotated[
        Duration | Literal["auto", "daly", "young", "none"] | None,
        BeforeValidator(_seconds_or_word),
    ] = Field(
        default=None,
        description="work between two checkpoints, seconds; or auto, daly or young: the best "
        "interval for the failures of the run (artist/failures/checkpoints.py); or none",
    )
    # Dally, section IV-B, calls saving and restoring a job negligible, as restart_s.
    cost_s: NonNegative | None = Field(
        default=None,
        description="how long a job stands still to write one, seconds (0 if nothing says it)",
    )

    def over(self, other: CheckpointOptions | None) -> CheckpointOptions:
        """These options, completed by those of `other`."""
        if other is None:
            return self
        return CheckpointOptions(**{**_given(other), **_given(self)})


def _given(options: CheckpointOptions) -> dict[str, Any]:
    return {name: value for name, value in options if value is not None}


def young_interval_s(cost_s: float, mttf_s: float) -> float:
    """The interval that loses least time, to first order: sqrt(2 delta M)."""
    return math.sqrt(2.0 * cost_s * mttf_s)


def daly_interval_s(cost_s: float, mttf_s: float) -> float:
    """The interval that loses least time, by Daly's higher order estimate (equation 37).

    It is sqrt(2 delta M) [1 + sqrt(delta / 2M) / 3 + (delta / 2M) / 9] - delta, or M if a
    checkpoint takes 2 M or more.
    """
    if cost_s >= 2.0 * mttf_s:
        return mttf_s
    ratio = cost_s / (2.0 * mttf_s) if math.isfinite(mttf_s) else 0.0
    better = 1.0 + math.sqrt(ratio) / 3.0 + ratio / 9.0
    return young_interval_s(cost_s, mttf_s) * better - cost_s if cost_s else 0.0


def daly_ratio(interval_s: float, cost_s: float, restart_s: float, mttf_s: float) -> float:
    """Productive time over run time, for exponential failures (Daly, equation 20).

    Daly's complete model gives the wall time of a job that takes T_s without failures as
    M e^(R / M) (e^((tau + delta) / M) - 1) T_s / tau. Failures may also hit restarts and
    checkpoints.
    """
    per_interval_s = (
        mttf_s * math.exp(restart_s / mttf_s) * math.expm1((interval_s + cost_s) / mttf_s)
    )
    return interval_s / per_interval_s
