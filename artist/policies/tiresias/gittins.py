"""The two-dimensional Gittins index of Tiresias, from a sample of past service.

Source: Gu et al., *Tiresias* (NSDI 2019), section 3.2.

    index = P(S - a <= quantum | S > a) / E[min(S - a, quantum) | S > a]

- `a`: service that the job has attained.
- `S`: total service of a job. Its distribution is that of the sample.
- `quantum`: the next piece of service.

The index is the probability that the job finishes within the quantum, per unit of service spent on
it. The unit is the GPU-tick (a nanosecond of a GPU). Services are whole numbers of it, so the
index is exact.
A job that has attained more than every job of the sample has index 0: nothing suggests that it
will ever finish.

Example: the sample is 10 and 100 GPU-seconds, the quantum is infinite. A job that has attained 0
has 1 / 55, one that has attained 10 has 1 / 90.
"""

from __future__ import annotations

import csv
import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from artist.errors import ConfigError, did_you_mean
from artist.io.fields import MOST_GPU_S
from artist.io.reading import read_text
from artist.policies.shared.exact import ZERO, ExactKey, exact_key
from artist.units import ticks


class GittinsIndex:
    """The index under one sample of services, in GPU-seconds."""

    def __init__(self, past_gpu_s: Sequence[float]) -> None:
        self._sorted = sorted(ticks(service) for service in past_gpu_s)
        self._sums = [0, *accumulate(self._sorted)]

    def __call__(self, attained: int, quantum: int | None) -> ExactKey:
        """The index of a job, as a sorting key; the larger one comes first.

        Both arguments are GPU-ticks. A quantum of None has no end.
        """
        # `alive` and `ended` are positions: how many services are at most `a`, and at most the end
        # of the quantum.
        total = len(self._sorted)
        alive = bisect_right(self._sorted, attained)
        if alive == total:
            return ZERO
        ended = total if quantum is None else bisect_right(self._sorted, attained + quantum)
        served = self._sums[ended] - self._sums[alive] - attained * (ended - alive)
        if quantum is not None:
            served += quantum * (total - ended)
        return exact_key(ended - alive, served)


def read_services(path: Path, column: str) -> list[float]:
    """A column of positive numbers (GPU-seconds) of a CSV file.

    Raises:
        ConfigError: unreadable file, missing column or a bad value; names file and line.
    """
    rows = csv.DictReader(read_text(path).splitlines())
    columns = rows.fieldnames or ()
    if column not in columns:
        raise ConfigError(f"{path}:1: no column {column!r}: {did_you_mean(column, columns)}")
    services = [_service(path, rows.line_num, column, row[column]) for row in rows]
    if not services:
        raise ConfigError(f"{path}: no rows, expected services in GPU-seconds")
    return services


def _service(path: Path, line: int, column: str, text: str | None) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not 0 < value <= MOST_GPU_S:
        raise ConfigError(
            f"{path}:{line}: {column} is {text!r}, expected GPU-seconds above 0 and at most "
            f"{MOST_GPU_S:g}"
        )
    return value
