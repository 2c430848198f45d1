"""Table 2 and Figs. 15 and 17: jobs of a snapshot on one link, at random offsets and in turn.

Rings send in both directions. `one way` sends in one only, which the paper's links do not.

`packets.csv` has the same of two snapshots packet by packet (ns-3 3.37, DCTCP, settings of
docs/contention.md): links of 1 Gbit/s, iterations of a fifth of the time, 48 of them, and the same
jitter, offsets and agent. Its times are those of the full scale. What ran it is not kept here.

The patterns are inferred from Table 2 after it was seen: a fit (docs/cassini.md).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from artist.policies.cassini.job_circle import Circle
from artist.policies.cassini.link_circle import Choice
from artist.policies.cassini.time_shifts import SolverOptions, solve
from artist.rng import stream
from studies.cassini.study.observations import HERE
from studies.cassini.study.simulated import BOTH, LINK_GBPS, simulated
from studies.common.rows import RowsFile

COLUMNS = (
    "snapshot", "variant", "jitter", "seed", "mean_ms", "p99_ms", "stretch", "sending_ms",
    "corrections_per_min",
)  # fmt: skip
LINKS = RowsFile(HERE / "links.csv", COLUMNS, "cassini")
PACKETS = RowsFile(HERE / "packets.csv", COLUMNS, "cassini")

RANDOM, STEP, FIRST, CENTRE = "random", "in step", "first", "centre"
RANDOM_ONE_WAY, FIRST_ONE_WAY = "random, one way", "first, one way"
ONE_WAY = {RANDOM_ONE_WAY: RANDOM, FIRST_ONE_WAY: FIRST}
"""Variants of which nothing comes back, and that with the same offsets."""
JITTER = 0.005
JITTERS = (0.0, 0.0025, 0.005, 0.01, 0.02)
REPLICATES = 20
ITERATIONS = 256


def _circle(period_ms: float, up_ms: float, gbps: float) -> Circle:
    return Circle.down_then_up(period_ms / 1e3, up_ms / 1e3, gbps)


SNAPSHOTS: dict[int, tuple[Circle, ...]] = {
    1: (_circle(300, 138, 39), _circle(300, 148, 40)),
    2: (_circle(336, 168, 37), _circle(336, 163, 37), _circle(336, 59, 19)),
    3: (_circle(272, 157.2, 39), _circle(272, 151.4, 39)),
    4: (_circle(216, 150, 37), _circle(216, 150, 37)),
    5: (_circle(336, 199, 44), _circle(336, 168, 37), _circle(336, 138, 39)),
}
"""As in tests/policies/cassini/snapshots.py: period, Up time (ms) and demand (Gbit/s)."""


def write_links() -> None:
    """Simulate everything, and write `links.csv`."""
    LINKS.write(row_of(*place) for place in places())


def places() -> Iterator[tuple[int, str, float, int]]:
    """Snapshot, variant, jitter and seed of each row."""
    for snapshot in SNAPSHOTS:
        for variant in (RANDOM, STEP, FIRST, CENTRE, *ONE_WAY):
            for jitter in JITTERS:
                if variant in (STEP, *ONE_WAY) and jitter != JITTER:
                    continue
                for seed in range(REPLICATES):
                    yield snapshot, variant, jitter, seed


def row_of(snapshot: int, variant: str, jitter: float, seed: int) -> dict[str, str]:
    """Simulate the jobs of a snapshot."""
    circles, phases = SNAPSHOTS[snapshot], ONE_WAY.get(variant, variant)
    done = simulated(
        circles,
        [(0,)] * len(circles),
        _offsets_s(snapshot, phases, seed),
        aligned=phases in (FIRST, CENTRE),
        jitter=jitter,
        iterations=ITERATIONS,
        seed=seed,
        directions=1 if variant in ONE_WAY else BOTH,
    )
    every = np.concatenate(done.took_s) * 1e3
    sending = [
        float(np.mean(took_s) - circle.arcs[0].start_s) * 1e3
        for took_s, circle in zip(done.took_s, circles, strict=True)
    ]
    values = (every.mean(), np.percentile(every, 99), done.stretch)
    return dict(
        zip(
            COLUMNS,
            (
                str(snapshot), variant, str(jitter), str(seed), *(f"{x:.6g}" for x in values),
                " ".join(f"{x:.4g}" for x in sending), f"{done.corrections_per_min:.6g}",
            ),
            strict=True,
        )
    )  # fmt: skip


def _offsets_s(snapshot: int, variant: str, seed: int) -> list[float]:
    circles = SNAPSHOTS[snapshot]
    if variant == RANDOM:
        drawn = stream(seed, f"study.cassini.offsets {snapshot}").random(len(circles)).tolist()
        return [part * circle.period_s for part, circle in zip(drawn, circles, strict=True)]
    if variant == STEP:
        starts = [circle.arcs[0].start_s for circle in circles]
        return [max(starts) - start_s for start_s in starts]
    choice = Choice.FIRST if variant == FIRST else Choice.CENTRE
    return list(solve(circles, LINK_GBPS, SolverOptions(choice=choice)).shifts_s)
