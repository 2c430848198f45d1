"""Does the index of free GPUs agree with counting them?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from strategies import placements_on, trees
from support import cluster, on

from artist.cluster.free_gpus import FreeGpus, Unit
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree, nested
from artist.cluster.visiting_order import VisitingOrder
from artist.errors import PolicyError

# More units than are counted in lists.
MANY_LEAVES = nested(("socket", "machine", "rack", "network"), [[[4, 2]] * 12, [[4, 4]] * 24])


class AgainstCounting(RuleBasedStateMachine):
    """Any history of claims and releases, beside a dictionary of free GPUs per leaf."""

    tree: ClusterTree
    visits: VisitingOrder
    free: FreeGpus
    naive: dict[int, int]
    held: list[Placement]

    @initialize(tree=trees() | st.just(MANY_LEAVES), permutation=st.integers(0, 3))
    def build(self, tree: ClusterTree, permutation: int) -> None:
        self.tree = tree
        self.visits = VisitingOrder(tree, permutation)
        self.free = FreeGpus(tree, self.visits)
        self.naive = dict(enumerate(tree.levels[0].gpus))
        self.held = []

    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        placement = data.draw(placements_on(self.tree))
        taken = list(zip(placement.leaves, placement.counts, strict=True))
        fits = all(self.naive[leaf] >= count for leaf, count in taken)
        assert self.free.has(placement) == fits
        if not fits:
            with pytest.raises(PolicyError):
                self.free.claim(placement)
            return
        self.free.claim(placement)
        self.held.append(placement)
        for leaf, count in taken:
            self.naive[leaf] -= count

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        placement = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.free.release(placement)
        for leaf, count in zip(placement.leaves, placement.counts, strict=True):
            self.naive[leaf] += count

    @rule(data=st.data())
    def release_gpus_that_are_free(self, data: st.DataObject) -> None:
        leaf = data.draw(st.sampled_from(sorted(self.naive)))
        held = self.tree.levels[0].gpus[leaf] - self.naive[leaf]
        with pytest.raises(PolicyError):
            self.free.release(on({leaf: held + 1}))

    @rule()
    def go_on_with_a_copy(self) -> None:
        original, self.free = self.free, self.free.copy()
        everything = on({leaf: count for leaf, count in self.naive.items() if count})
        if everything.leaves:
            original.claim(everything)  # must not reach the copy
            assert original.total == 0

    @invariant()
    def every_level_counts_the_same(self) -> None:
        for level in range(len(self.tree.levels)):
            assert self.free.counts(level).tolist() == self._counted(level)
        assert self.free.total == sum(self.naive.values())
        assert [self.free.of(0, leaf) for leaf in self.naive] == list(self.naive.values())

    @invariant()
    def the_index_answers_as_counting_does(self) -> None:
        for level in range(self.tree.machine, len(self.tree.levels)):
            counted = self._counted(level)
            assert self.free.index_is_true(level)
            for gpus in range(1, max(self.tree.levels[level].gpus) + 2):
                room = [unit for unit in self.visits.units[level] if counted[unit] >= gpus]
                fullest = min(room, key=counted.__getitem__, default=None)
                assert list(self.free.at_least(level, gpus)) == room
                tightest = sorted(room, key=counted.__getitem__)
                assert list(self.free.tightest(level, gpus)) == tightest
                assert self.free.fits_one(level, gpus) == bool(room)
                assert self.free.best_fit(level, gpus) == fullest
                assert self.free.first_fit(level, gpus) == next(iter(room), None)

    @invariant()
    def inside_a_unit_the_index_answers_as_counting_does(self) -> None:
        tree, visits = self.tree, self.visits
        for outer in range(tree.machine, len(tree.levels)):
            unit = len(tree.levels[outer]) // 2
            for level in range(tree.machine, outer + 1):
                if level == tree.root:
                    continue
                counted, inside = self._counted(level), Unit(outer, unit)
                within = [u for u in range(len(counted)) if tree.ancestor(level, u, outer) == unit]
                within.sort(key=visits.turns[level].__getitem__)
                for gpus in range(1, max(tree.levels[level].gpus) + 2):
                    room = [u for u in within if counted[u] >= gpus]
                    fullest = min(room, key=counted.__getitem__, default=None)
                    assert list(self.free.at_least(level, gpus, inside)) == room
                    assert self.free.fits_one(level, gpus, inside) == bool(room)
                    assert self.free.best_fit(level, gpus, inside) == fullest
                    assert self.free.first_fit(level, gpus, inside) == next(iter(room), None)

    def _counted(self, level: int) -> list[int]:
        counts = [0] * len(self.tree.levels[level])
        for leaf, free in self.naive.items():
            counts[self.tree.ancestor(0, leaf, level)] += free
        return counts


TestAgainstCounting = AgainstCounting.TestCase
TestAgainstCounting.settings = type(TestAgainstCounting.settings)(
    max_examples=30, stateful_step_count=20, deadline=None, derandomize=True
)


@pytest.mark.parametrize(
    ("placement", "message"),
    [
        (on({0: 2, 1: 9}), "9 GPUs of machine 1 claimed, but 8 are free there"),
        (on({0: 2, 5: 1}), "1 GPUs of machine 5 claimed"),
        (on({-1: 1}), "1 GPUs of machine -1 claimed"),
        (on({0: 2, 1: 0}), "a placement with 0 GPUs of machine 1"),
        (on({0: 2, 1: -3}), "a placement with -3 GPUs of machine 1"),
    ],
)
def test_a_claim_that_fails_changes_nothing(placement: Placement, message: str) -> None:
    free = FreeGpus(cluster([8, 8]))
    with pytest.raises(PolicyError, match=message):
        free.claim(placement)
    assert free.counts(0).tolist() == [8, 8]
    assert (free.total, free.best_fit(0, 8)) == (16, 0)


@pytest.mark.parametrize("placement", [on({0: 2, 1: 1}), on({0: 2, 5: 1}), on({0: 2, 1: -1})])
def test_a_release_that_fails_changes_nothing(placement: Placement) -> None:
    free = FreeGpus(cluster([8, 8]))
    free.claim(on({0: 2}))
    with pytest.raises(PolicyError, match="released, but 0 are held there"):
        free.release(placement)
    assert free.counts(0).tolist() == [6, 8]


def test_best_fit_takes_the_fullest_unit_with_room_and_the_first_among_equals() -> None:
    free = FreeGpus(cluster([8, 8, 8, 8]))
    free.claim(on({1: 3, 2: 4, 3: 4}))  # 8, 5, 4, 4 are free
    assert [free.best_fit(0, gpus) for gpus in (1, 4, 5, 6, 8, 9)] == [2, 2, 1, 0, 0, None]
    assert [free.first_fit(0, gpus) for gpus in (1, 4, 6, 9)] == [0, 0, 0, None]


@pytest.mark.parametrize("tree", [cluster([8]), MANY_LEAVES])
def test_counts_are_read_only(tree: ClusterTree) -> None:
    free = FreeGpus(tree)
    with pytest.raises(ValueError, match="read-only"):
        free.counts(0)[0] = 3


def test_a_cluster_of_thousands_of_machines_is_indexed_by_unit() -> None:
    tree = nested(("machine", "rack", "network"), [[8] * 50 for _ in range(100)])
    free = FreeGpus(tree)
    free.claim(Placement(tuple(range(4999)), (8,) * 4999))
    assert free.best_fit(0, 1) == free.first_fit(0, 8) == 4999
    assert list(free.at_least(1, 1)) == [99]
    assert np.count_nonzero(free.counts(0)) == 1
    assert free.fits_one(2, 8)
    assert not free.fits_one(2, 9)


@pytest.mark.parametrize("tree", [nested(("machine", "network"), [4, 4]), MANY_LEAVES])
def test_counts_of_leaves_are_read_only(tree: ClusterTree) -> None:
    free = FreeGpus(tree)
    with pytest.raises(TypeError):
        free.leaves[0] = 0  # type: ignore[index]
    assert list(free.leaves) == list(tree.levels[0].gpus)
