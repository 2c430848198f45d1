"""Random instances of Gavel's programs, from the shipped figures of its authors."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import numpy as np

from artist.estimates.speeds import load_speeds
from artist.policies.gavel.allocation import Jobs
from artist.policies.gavel.cones import Floats

KINDS = ("k80", "p100", "v100")
PRICES = np.array([0.45, 1.46, 2.48])


class Instance(NamedTuple):
    jobs: Jobs
    steps: Floats
    waited_s: Floats


def instance(seed: int) -> Instance:
    """2 to 40 jobs on 8 to 36 GPUs of each kind; in every other instance, of one GPU each."""
    draw = Random(seed)
    rows = load_speeds("gavel").speeds
    sizes = (1,) if seed % 2 == 0 else (1, 2, 4, 8)
    types = [(row, n) for row in rows.values() for n in sizes if all(n in row[k] for k in KINDS)]
    chosen = [draw.choice(types) for _ in range(draw.randint(2, 40))]
    speeds = np.array([[row[kind][gpus] for kind in KINDS] for row, gpus in chosen])
    capacity = np.array([draw.choice([8.0, 12.0, 36.0]) for _ in KINDS])
    steps = np.array([row.max() * draw.uniform(600, 1e5) for row in speeds])
    waited_s = np.array([draw.uniform(0, 1e5) for _ in chosen])
    gpus = np.array([float(gpus) for _, gpus in chosen])
    return Instance(Jobs(speeds, gpus, capacity), steps, waited_s)
