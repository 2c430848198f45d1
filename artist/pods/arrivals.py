"""In which order pods arrive, and how many: as many as make the demand wanted.

Source: the experiments of Weng et al., *Beware of fragmentation: Scheduling GPU-sharing workloads
with fragmentation gradient descent* (USENIX ATC 2023, section 6.1; option `tune` of their program).
"""

from __future__ import annotations

import numpy as np

from artist.errors import ConfigError
from artist.pods.pod_list import Ints, PodList
from artist.rng import stream

MOST_PODS = 10_000_000
_DRAWN = 4096
"""Pods that are drawn at once."""


def arrivals(pods: PodList, wanted_milli: int, seed: int) -> Ints:
    """The pods in their order of arrival, by number.

    First comes every pod of the list, shuffled. If they ask for less than `wanted_milli`
    thousandths of GPUs, pods follow that are drawn from the list, again and again, up to the first
    whose share of one GPU would exceed it. If they ask for more, pods drawn at random stay away.

    Raises:
        ConfigError: more than `MOST_PODS` are expected, or none comes.
    """
    draws = stream(seed, "pod-arrivals")
    milli = pods.milli
    order = draws.permutation(len(milli))
    asked = int(milli.sum())
    if wanted_milli * len(milli) > MOST_PODS * asked:
        raise ConfigError(
            f"so much demand takes some {wanted_milli * len(milli) // asked:,} pods, expected at "
            f"most {MOST_PODS:,}; give a smaller --until"
        )
    if asked > wanted_milli:
        away = draws.permutation(len(order))
        gone = np.searchsorted(np.cumsum(milli[order[away]]), asked - wanted_milli) + 1
        if gone == len(order):
            raise ConfigError("so little demand leaves no pod; give a larger --until")
        return np.delete(order, away[:gone])
    each = np.array([one.gpu_milli for one in pods.demands], np.int64)[pods.which]
    chunks = [order]
    while True:
        drawn = draws.integers(len(milli), size=_DRAWN)
        before = asked + np.cumsum(milli[drawn]) - milli[drawn]
        over = np.flatnonzero(before + each[drawn] > wanted_milli)
        if over.size:
            return np.concatenate([*chunks, drawn[: over[0]]])
        chunks.append(drawn)
        asked = int(before[-1] + milli[drawn[-1]])
