"""Random rounds of Sia: what each job is worth on each configuration, and what it has."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from artist.policies.sia.policy import _sizes
from artist.workload.goodput import Goodput, best

KINDS = (("slow", 4), ("fast", 8), ("middle", 8))
"""Kinds and GPUs of their machines."""


class Row(NamedTuple):
    """One job."""

    values: dict[tuple[int, int], float]
    """(index of kind, GPUs) -> goodput over the smallest, times the fewest GPUs."""
    factor: float
    """Restart factor."""
    present: tuple[int, int] | None
    rigid: bool


class Round(NamedTuple):
    machines: tuple[int, ...]
    """Of each kind."""
    rows: list[Row]

    @property
    def capacity(self) -> list[int]:
        """GPUs of each kind."""
        return [count * gpus for count, (_, gpus) in zip(self.machines, KINDS, strict=True)]


def random_round(seed: int) -> Round:
    """2 to 40 jobs on 1 to 6 machines of each kind; a third of them rigid, half of them running."""
    draw = Random(seed)
    machines = tuple(draw.randint(1, 6) for _ in KINDS)
    sizes = [_sizes(gpus, count * gpus) for count, (_, gpus) in zip(machines, KINDS, strict=True)]
    rows = []
    for _ in range(draw.randint(2, 40)):
        rigid = draw.random() < 1 / 3
        if rigid:
            gpus, speeds = draw.randint(1, 8), [draw.uniform(1, 9) for _ in KINDS]
            values = {(k, gpus): gpus * speed / min(speeds) for k, speed in enumerate(speeds)}
        else:
            values = _goodputs(draw, sizes)
        present = draw.choice(list(values)) if draw.random() < 0.5 else None
        rows.append(Row(values, draw.uniform(0.2, 1), present, rigid))
    return Round(machines, rows)


def _goodputs(draw: Random, sizes: list[tuple[int, ...]]) -> dict[tuple[int, int], float]:
    """The largest goodputs of a random model, on all configurations up to some number of GPUs."""
    most, noise, batch = draw.choice([1, 2, 4, 8, 16, 32]), draw.uniform(10, 5000), 64
    goodputs = {}
    for kind, (_, machine) in enumerate(KINDS):
        sync = draw.uniform(0.01, 0.2)
        goodput = Goodput(
            batch, 64 * batch, 8, draw.choice([64, 128, 256]),
            draw.uniform(0.01, 0.1), draw.uniform(0.0005, 0.01),
            sync, 0.02 * sync, draw.uniform(1, 4) * sync, 0.04 * sync,
            draw.uniform(1, 4), ((0.0, noise),),
        )  # fmt: skip
        for gpus in sizes[kind]:
            if gpus <= most:
                one_machine = gpus <= machine
                goodputs[kind, gpus] = best(goodput, gpus, noise, one_machine=one_machine)[0]
    least = min(goodputs.values())
    return {key: value / least for key, value in goodputs.items()}
