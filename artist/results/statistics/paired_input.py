"""Checks of paired values, the means of their clusters, and whether they vary beyond rounding."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from artist.errors import ConfigError, shortened

Floats: TypeAlias = npt.NDArray[np.float64]

ROUNDING = 1e-12
"""Relative difference of two sums of the same terms in another order; no policy's doing."""

LARGEST = 1e300
"""Sums of larger values would overflow."""


def checked_pairs(
    baseline: Sequence[float],
    other: Sequence[float],
    clusters: Sequence[Hashable] | None,
    level: float,
    equivalence: float,
) -> tuple[Floats, Floats]:
    """The arguments of `compare_values`, checked, and the values as arrays.

    Raises:
        ConfigError: as there.
    """
    base, values = _numbers("baseline", baseline), _numbers("other", other)
    lengths = [len(base), len(values), *([] if clusters is None else [_names(clusters)])]
    if len(set(lengths)) != 1 or not lengths[0]:
        raise ConfigError(
            f"compare_values: {lengths} values, expected the same number of each, at least 1"
        )
    _check_share("level", level, 0.5, "a number above 0.5 and below 1")
    if equivalence != 0:
        _check_share("equivalence", equivalence, 0.0, "a share from 0 to below 1")
    return base, values


def _numbers(name: str, given: Any) -> Floats:
    """A column of values as floats."""
    try:
        array = np.asarray(given)
        numbers = np.array(array, np.float64)
    except (TypeError, ValueError, OverflowError):
        array = numbers = np.empty(())
    if array.ndim != 1 or array.dtype.kind in "SU":
        raise ConfigError(
            f"compare_values: {name} {shortened(given)}, expected a sequence of numbers"
        )
    if not np.isfinite(numbers).all():
        raise ConfigError(
            f"compare_values: a value of {name} is not finite; leave out runs without a result"
        )
    if (size := float(np.abs(numbers).max(initial=0.0))) > LARGEST:
        raise ConfigError(
            f"compare_values: a value of {name} is {size:g}, expected at most {LARGEST:g}; "
            "use a larger unit"
        )
    return numbers


def _names(clusters: Any) -> int:
    """How many pairs have the name of a cluster."""
    try:
        set(clusters)
        return len(clusters)
    except TypeError:
        raise ConfigError(
            f"compare_values: clusters {shortened(clusters)}, expected a sequence of "
            "names, such as numbers or texts"
        ) from None


def _check_share(name: str, value: Any, above: float, expected: str) -> None:
    try:
        inside = above < value < 1
    except TypeError:
        inside = False
    if not inside:
        raise ConfigError(f"compare_values: {name} {shortened(value)}, expected {expected}")


def per_cluster(steps: Floats, clusters: Sequence[Hashable] | None) -> Floats:
    """The mean of each cluster, in the order of their first pair."""
    if clusters is None:
        return steps
    members: dict[Hashable, list[float]] = {}
    for cluster, step in zip(clusters, steps.tolist(), strict=True):
        members.setdefault(cluster, []).append(step)
    return np.array([math.fsum(part) / len(part) for part in members.values()])


def do_not_vary(values: Floats) -> bool:
    """Whether values of replicates are equal, rounding aside: then these may be copies of one."""
    return spread_within(values, float(np.abs(values).max()))


def spread_within(values: Floats, size: float) -> bool:
    """Whether values differ by rounding only, of sums that are as large as `size`."""
    return bool(np.ptp(values) <= ROUNDING * size)
