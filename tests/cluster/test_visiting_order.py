"""Does the visiting order break ties, and nothing else?"""

from __future__ import annotations

import numpy as np
import pytest

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import regular
from artist.cluster.visiting_order import VisitingOrder

TREE = regular(racks=3, machines_per_rack=4, gpus_per_machine=8, gpus_per_socket=4)


def test_permutation_zero_is_the_natural_order() -> None:
    order = VisitingOrder(TREE)
    assert list(order.turns[TREE.machine]) == list(range(12))


@pytest.mark.parametrize("permutation", [1, 2, 77])
def test_turns_and_units_are_inverse_and_the_same_every_time(permutation: int) -> None:
    order, again = VisitingOrder(TREE, permutation), VisitingOrder(TREE, permutation)
    turns = list(order.turns[TREE.machine])
    assert sorted(turns) == list(range(12)) != turns
    assert [order.units[TREE.machine][turn] for turn in turns] == list(range(12))
    assert turns == list(again.turns[TREE.machine])
    mask = np.arange(12) == 5
    assert order.as_visited(TREE.machine, mask)[order.turns[TREE.machine][5]]


@pytest.mark.parametrize("permutation", [0, 3])
def test_the_index_finds_the_fullest_fit_and_breaks_ties_by_turn(permutation: int) -> None:
    order = VisitingOrder(TREE, permutation)
    free = FreeGpus(TREE, order)
    free.claim(Placement((0, 4, 8), (4, 4, 2)))  # machines 0 and 2 have 4 free, machine 4 has 6
    assert free.index_is_true(TREE.machine)
    assert free.best_fit(TREE.machine, 3) == min((0, 2), key=order.turns[1].__getitem__)
    assert free.best_fit(TREE.machine, 5) == 4
    visited = list(free.at_least(TREE.machine, 1))
    assert visited == sorted(range(12), key=order.turns[1].__getitem__)
    assert free.first_fit(TREE.machine, 1) == visited[0]
    twin = free.copy()
    twin.release(Placement((0, 4, 8), (4, 4, 2)))
    assert twin.index_is_true(TREE.machine)
    assert twin.total == free.total + 10
