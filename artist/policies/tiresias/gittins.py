"""The two-dimensional Gittins index of Tiresias, from a sample of past service.

Source: Gu et al., *Tiresias* (NSDI 2019), section 3.2. For a job that has attained `a`
GPU-seconds, S a job's total service and `quantum` the next stretch of service,

    index = P(S - a <= quantum | S > a) / E[min(S - a, quantum) | S > a]

the probability of finishing within the quantum per GPU-second spent on it. The
distribution is the empirical one. A job older than every sample has index 0: nothing
suggests that it will ever finish.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from artist.errors import ConfigError
from artist.io.reading import read_text


class GittinsIndex:
    """Index values under one empirical distribution of service (GPU-seconds)."""

    def __init__(self, past_gpu_s: Sequence[float]) -> None:
        self._sorted = np.sort(np.array(past_gpu_s, dtype=float))
        self._sums = np.concatenate([[0.0], np.cumsum(self._sorted)])

    def __call__(self, attained_gpu_s: float, quantum_gpu_s: float) -> float:
        """Larger comes first."""
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
    if column not in (rows.fieldnames or ()):
        known = ", ".join(rows.fieldnames or ())
        raise ConfigError(f"{path}:1: no column {column!r}; the columns are {known}")
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
