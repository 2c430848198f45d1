"""Kinds of GPUs: those of a placement, and the free GPUs of a kind. Cluster files name kinds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.host_resources import Needy
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree, gpus_by_kind
from artist.errors import ConfigError, did_you_mean, shortened


def several_kinds(tree: ClusterTree) -> bool:
    """Whether a cluster has GPUs of more than one kind."""
    return len(set(tree.kinds)) > 1


def prices_of(tree: ClusterTree, prices: Mapping[str, float] | float) -> Mapping[str, float]:
    """The price of a GPU-hour of each kind, in the order of machines; one price is that of all.

    Raises:
        ConfigError: a kind of the cluster has no price, or a kind with a price is not there.
    """
    kinds = gpus_by_kind(tree)
    if not isinstance(prices, Mapping):
        return dict.fromkeys(kinds, prices)
    for kind in prices:
        if kind not in kinds:
            hint = did_you_mean(kind, list(kinds))
            raise ConfigError(f"prices: the cluster has no GPUs of kind {shortened(kind)} ({hint})")
    for kind in kinds:
        if kind not in prices:
            raise ConfigError(f"prices: kind {kind} has none; add {kind}: PRICE_OF_A_GPU_HOUR")
    return {kind: prices[kind] for kind in kinds}


def kinds_of(tree: ClusterTree, placement: Placement) -> tuple[str, ...]:
    """The kinds of a placement's GPUs, each once, in the order of machines."""
    kinds, machine_of = tree.kinds, tree.machine_of
    if len(placement.leaves) == 1:
        return (kinds[machine_of[placement.leaves[0]]],)
    return tuple(dict.fromkeys(kinds[machine_of[leaf]] for leaf in placement.leaves))


def accepts(tree: ClusterTree, job: Needy, placement: Placement) -> bool:
    """Whether a job accepts the kinds of all GPUs of a placement."""
    return not job.gpu_kinds or all(kind in job.gpu_kinds for kind in kinds_of(tree, placement))


def leaves_of_kinds(tree: ClusterTree, kinds: Collection[str]) -> list[int]:
    """The leaves with GPUs of these kinds, ascending."""
    return [leaf for leaf, machine in enumerate(tree.machine_of) if tree.kinds[machine] in kinds]


def free_of_kinds(free: FreeGpus, kinds: Collection[str]) -> FreeGpus:
    """A copy of the free GPUs in which GPUs of other kinds are taken."""
    left, counts = free.copy(), free.leaves
    wanted = set(leaves_of_kinds(free.tree, kinds))
    others = {leaf: int(count) for leaf, count in enumerate(counts) if count and leaf not in wanted}
    if others:
        left.claim(Placement.of(others))
    return left


def most_of_one_kind(free: FreeGpus) -> int:
    """The most free GPUs that are of the same kind."""
    tree, counts = free.tree, Counter[str]()
    if not several_kinds(tree):
        return free.total
    for kind, gpus in zip(tree.kinds, free.counts(tree.machine).tolist(), strict=True):
        counts[kind] += gpus
    return max(counts.values())
