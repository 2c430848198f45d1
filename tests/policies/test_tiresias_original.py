"""Tiresias as in the original simulator: its list of models, and the levels that are open."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import nested, regular
from artist.errors import ConfigError
from artist.policies.original.hash_order import HashOrder
from artist.policies.original.options import OriginalOptions
from artist.policies.original.placement import place
from artist.policies.original.tiresias import OriginalTiresias, TiresiasRule
from artist.policies.shared.skew import original_skewed
from artist.run import open_policy

RACKS = [[4, 4], [4, 4]]


def free_gpus(free: list[int]) -> FreeGpus:
    state = FreeGpus(nested(("machine", "rack", "network"), RACKS))
    taken = {unit: 4 - left for unit, left in enumerate(free) if left < 4}
    if taken:
        state.claim(Placement.of(taken))
    return state


def test_list_of_models() -> None:
    skewed = {"alexnet", "VGG", "MobileNetV3", "whatever"}
    assert all(original_skewed(model) for model in skewed)
    assert not any(original_skewed(model) for model in ("ResNet50", "resnet18", "BERT"))


@pytest.mark.parametrize(
    ("free", "gpus", "skewed", "open_to"),
    [
        ([0, 0, 0, 3], 2, True, [0]),
        (
            [0, 0, 1, 3],
            2,
            True,
            [0, 1],
        ),  # as many GPUs are free as a machine has
        ([0, 0, 0, 3], 9, True, [0, 2]),  # larger than a rack
        ([0, 0, 0, 3], 8, True, [0]),  # as large as a rack: the rack is closed all the same
        ([0, 0, 0, 3], 2, False, [0, 1, 2]),
    ],
)
def test_levels_that_are_open(free, gpus, skewed, open_to) -> None:
    assert list(TiresiasRule().levels(free_gpus(free), gpus, skewed, 1e9)) == open_to


@pytest.mark.parametrize(
    ("free", "gpus", "skewed", "expected"),
    [
        ([0, 3, 0, 2], 2, True, {1: 2}),  # visited before the other, though it fits less well
        ([3, 3, 3, 3], 4, True, {0: 3, 1: 1}),
        ([1, 2, 0, 0], 3, True, None),
        ([1, 2, 0, 0], 3, False, {0: 1, 1: 2}),
        ([3, 0, 3, 0], 4, True, None),  # no rack has four; the network is not for skewed jobs
        ([3, 0, 3, 0], 4, False, {0: 3, 2: 1}),
        ([3, 2, 4, 0], 9, True, {0: 3, 1: 2, 2: 4}),
        ([1, 1, 1, 1], 5, False, None),
    ],
)
def test_first_fit_in_the_first_open_level_with_room(free, gpus, skewed, expected) -> None:
    state = free_gpus(free)
    placed = place(
        state, TiresiasRule().levels(state, gpus, skewed, 0.0), gpus, HashOrder(state.tree)
    )
    assert (placed and placed[1]) == (None if expected is None else Placement.of(expected))


def test_sockets_are_not_preferred() -> None:
    state = FreeGpus(regular(racks=1, machines_per_rack=1, gpus_per_machine=8, gpus_per_socket=4))
    state.claim(Placement.of({0: 3}))
    levels = TiresiasRule().levels(state, 2, True, 0.0)
    placed = place(state, levels, 2, HashOrder(state.tree))
    assert placed == (state.tree.machine, Placement.of({0: 1, 1: 1}))


def test_the_policy_keeps_its_own_leases() -> None:
    assert OriginalTiresias(OriginalOptions()).lease is None
    with pytest.raises(ValidationError):
        OriginalOptions.model_validate({"index": "gittins"})


@pytest.mark.parametrize("policy", ["dally", "tiresias", "fifo"])
def test_the_former_option_names_the_policies_of_the_original(policy: str) -> None:
    with pytest.raises(ConfigError, match=r"dally-original, .*tiresias-original"):
        open_policy(policy, {"rules": "original"})
