"""Patterns that CASSINI's paper shows or lets infer, in milliseconds and Gbit/s.

Table 2 names jobs, iterations and scores, no patterns. Those here are inferred, after the table was
seen: they are a fit. Down comes first, then one Up phase. Where the score is 1, Up is as long as
the communication time that the paper measured. Elsewhere it is the volume of a ring of three
workers, 4/3 of the model's bytes, at the demand; BERT's in snapshot 5 is fitted to the score.
"""

from __future__ import annotations

from dataclasses import dataclass

from artist.policies.cassini.job_circle import Circle

LINK_GBPS = 50.0


@dataclass(frozen=True)
class Snapshot:
    """A row of Table 2. `shifts_ms` and `score` are the paper's."""

    circles: tuple[Circle, ...]
    score: float
    shifts_ms: tuple[float, ...]
    first_ms: tuple[float, ...]
    """What the search gives."""


def circle(period_ms: float, up_ms: float, gbps: float) -> Circle:
    return Circle.down_then_up(period_ms / 1e3, up_ms / 1e3, gbps)


FIG_2 = (circle(348, 118, 40), circle(348, 118, 40))
FIG_5 = (circle(40, 10, 50), circle(60, 10, 50))

TABLE_2 = {
    1: Snapshot((circle(300, 138, 39), circle(300, 148, 40)), 1.0, (0, 150), (0, 150)),
    2: Snapshot(
        (circle(336, 168, 37), circle(336, 163, 37), circle(336, 59, 19)),
        1.0,
        (0, 158, 46),
        (0, 168, 9.33),
    ),
    3: Snapshot((circle(272, 157.2, 39), circle(272, 151.4, 39)), 0.9, (0, 100), (0, 117.11)),
    4: Snapshot((circle(216, 150, 37), circle(216, 150, 37)), 0.8, (0, 60), (0, 66)),
    5: Snapshot(
        (circle(336, 199, 44), circle(336, 168, 37), circle(336, 138, 39)),
        0.6,
        (0, 42, 191),
        (0, 135.33, 140),
    ),
}
