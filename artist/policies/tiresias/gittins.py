"""The two-dimensional Gittins index of Tiresias, from a sample of past service.

Source: Gu et al., *Tiresias* (NSDI 2019), section 3.2.

    index = P(S - a <= quantum | S > a) / E[min(S - a, quantum) | S > a]

- `a`: service that the job has attained, GPU-seconds.
- `S`: total service of a job. Its distribution is that of the sample.
- `quantum`: the next piece of service, GPU-seconds.

The index is the probability that the job finishes within the quantum, per GPU-second spent on it.
A job that has attained more than every job of the sample has index 0: nothing suggests that it
will ever finish.

Example: the sample is 10 and 100 GPU-seconds, the quantum is infinite. A job that has attained 0
has 1 / 55, one that has attained 10 has 1 / 90.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from artist.errors import ConfigError, did_you_mean
from artist.io.reading import read_text


class GittinsIndex:
    """The index under one sample of services. All arguments are GPU-seconds."""

    def __init__(self, past_gpu_s: Sequence[float]) -> None:
        self._sorted = np.sort(np.array(past_gpu_s, dtype=float))
        self._sums = np.concatenate([[0.0], np.cumsum(self._sorted)])

    def __call__(self, attained_gpu_s: float, quantum_gpu_s: float) -> float:
        """The index of a job; the larger one comes first."""
        # `alive` and `ended` are positions: how many services are at most `a`, and at most `limit`.
        total = len(self._sorted)
        alive = int(np.searchsorted(self._sorted, attained_gpu_s, side="right"))
        if alive == total:
            return 0.0
        limit = attained_gpu_s + quantum_gpu_s
        ended = int(np.searchsorted(self._sorted, limit, side="right"))
        served = float(self._sums[ended] - self._sums[alive]) - attained_gpu_s * (ended - alive)
        if ended < total:
            served += quantum_gpu_s * (total - ended)
        return (ended - alive) / served


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
    if not 0 < value < math.inf:
        raise ConfigError(f"{path}:{line}: {column} is {text!r}, expected GPU-seconds above 0")
    return value
