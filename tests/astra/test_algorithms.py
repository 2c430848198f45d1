"""Is a stage's time what ASTRA-sim's equations say? Expected figures are worked out by hand.

One byte per nanosecond, 10 ns latency, 5 ns endpoint delay, 3 ns to reduce a byte.
"""

from __future__ import annotations

import pytest
from analytical_queries import A2A, AG, AR, FULL, RING, RS, SWITCH, data, dims, micro, query

from artist.astra.algorithms.double_binary_tree import TreeNode, tree
from artist.astra.messages.chunks_and_stages import chunks
from artist.astra.messages.message_costs import Delays, MessageNetwork
from artist.astra.model.analytical import AnalyticalBackend
from artist.estimates.query import Dimension, LatencyQuery, Topology
from artist.workload.layers import Collective


def finish_ns(asked: LatencyQuery) -> int:
    return AnalyticalBackend().estimate(asked).finish_ns


@pytest.mark.parametrize(
    ("topology", "npus", "algorithm", "collective", "size", "expected_ns"),
    [
        # k net + (k + 1) e + r R: k = 6 of 1000 B, 3 of them reduced
        (RING, 4, "ring", AR, 4000, 6 * 1010 + 7 * 5 + 3 * 3000),
        (SWITCH, 4, "ring", AR, 4000, 6 * 1020 + 7 * 5 + 3 * 3000),
        (RING, 4, "ring", RS, 4000, 3 * 1010 + 4 * 5 + 3 * 3000),
        (RING, 4, "ring", AG, 4000, 3 * 4010 + 4 * 5),
        (RING, 4, "ring", A2A, 4000, 6 * 1010 + 7 * 5),
        # 2 e + the farthest peer, two hops on a ring of 4
        (FULL, 4, "direct", RS, 4000, 2 * 5 + 1010 + 3000),
        (RING, 4, "direct", RS, 4000, 2 * 5 + 1020 + 3000),
        (RING, 4, "direct", AG, 4000, 2 * 5 + 4020),
        (SWITCH, 4, "direct", A2A, 4000, 2 * 5 + 1020),
        # a second wave after all of the first has come
        (FULL, 4, "direct", AR, 4000, 3 * 5 + 2 * 1010 + 3000),
        # arrivals at 1015, 1015, 1025 become credits at 4020, 4020, 4030; each sends one
        # message, to 1, 2 (two hops) and 3 positions on: the slowest leaves at 4020
        (RING, 4, "direct", AR, 4000, 4020 + 1020 + 5),
        # one peer at a time: six messages in a chain; bundles 1 and 5 of 0..6 are reduced
        (FULL, 4, "direct1", AR, 4000, 6 * 1010 + 7 * 5 + 2 * 3000),
        # 2000 and 1000 B there and back; one reduction, of 1000 B
        (FULL, 4, "halvingDoubling", AR, 4000, 2 * (2010 + 1010) + 5 * 5 + 3000),
        (RING, 4, "halvingDoubling", AR, 4000, 2 * (2010 + 1020) + 5 * 5 + 3000),
        (FULL, 4, "halvingDoubling", RS, 4000, 2010 + 1010 + 3 * 5 + 3000),
        (FULL, 4, "halvingDoubling", AG, 1000, 1010 + 2010 + 3 * 5),
        # 6 and 3 B there, 2 and 4 B back: the odd byte is lost at the turn
        (FULL, 4, "halvingDoubling", AR, 12, 16 + 13 + 12 + 14 + 5 * 5 + 9),
        # 2 k s + 2 e + (2 k - 1)(e + R), k = 2
        (FULL, 4, "doubleBinaryTree", AR, 4000, 4 * 4010 + 2 * 5 + 3 * (5 + 12000)),
        (FULL, 2, "doubleBinaryTree", AR, 4000, 2 * 4010 + 2 * 5 + 1 * (5 + 12000)),
    ],
)
def test_one_stage(
    topology: Topology,
    npus: int,
    algorithm: str,
    collective: Collective,
    size: int,
    expected_ns: int,
) -> None:
    assert (
        finish_ns(query(micro((collective, size)), dims((topology, npus)), algorithm))
        == expected_ns
    )


def test_flat_ring_runs_over_all_npus_in_the_first_dimension() -> None:
    two = dims((RING, 2), (SWITCH, 3))
    expected_ns = 10 * (10 + 1000) + 11 * 5 + 5 * 3000
    assert finish_ns(query(micro((AR, 6000)), two, ("oneRing",))) == expected_ns


def test_flat_direct_reaches_each_peer_in_the_first_dimension_that_differs() -> None:
    slow = (Dimension(FULL, 2, 1e9 / 2**30, 10.0), Dimension(FULL, 3, 1e9 / 2**31, 10.0))
    # 6 NPUs, 1000 B each: peers 2 and 4 positions on differ in the slow dimension alone.
    assert finish_ns(query(micro((AG, 1000)), slow, ("oneDirect",))) == 2 * 5 + 10 + 2000


def test_an_all_reduce_reduces_inwards_and_gathers_outwards() -> None:
    """Reduce-scatter of 4000 B over 2, all-reduce of 2000 B over 2, all-gather of 2000 B."""
    scatter, reduce, gather = 2010 + 2 * 5 + 6000, 2 * 1010 + 3 * 5 + 3000, 2010 + 2 * 5
    two = dims((RING, 2), (RING, 2))
    assert finish_ns(query(micro((AR, 4000)), two)) == scatter + reduce + gather


def test_baseline_all_reduces_the_whole_chunk_in_each_dimension() -> None:
    each = 2 * 2010 + 3 * 5 + 6000
    two = dims((RING, 2), (RING, 2))
    assert finish_ns(query(micro((AR, 4000)), two, collective_optimization="baseline")) == 2 * each


def test_a_tree_does_not_shrink_what_the_outer_dimension_gets() -> None:
    """The first tree's root leaves it early, is the second tree's leaf and waits there.

    Its partner leaves the first tree after e, s, e + R, s, e, takes the whole chunk through
    the outer ring, reduces what the other sent meanwhile (e + R) and answers (s, e).
    """
    message, reduce = 4010, 5 + 12000
    first = 5 + message + reduce + message + 5
    outer = 2 * 2010 + 3 * 5 + 6000
    second = reduce + message + 5
    two = dims((RING, 2), (RING, 2))
    asked = query(micro((AR, 4000)), two, ("doubleBinaryTree", "ring"))
    assert finish_ns(asked) == first + outer + second


@pytest.mark.parametrize(
    ("size", "splits", "npus", "expected"),
    [
        (1_000_000, 4, 8, (4, 250_000)),
        (1_000_003, 4, 8, (5, 250_000)),
        (0, 4, 8, (4, 8)),
        (31, 4, 8, (4, 8)),
        (35, 4, 8, (5, 8)),
    ],
)
def test_a_remainder_is_one_more_full_chunk(
    size: int, splits: int, npus: int, expected: tuple[int, int]
) -> None:
    assert chunks(AR, size, splits, npus) == expected


def test_an_all_gather_has_no_smallest_chunk() -> None:
    assert chunks(AG, 7, 4, 64) == (7, 1)


def test_chunks_take_turns_in_one_slot_and_share_two() -> None:
    one_ns = 6 * 1010 + 7 * 5 + 3 * 3000
    four = query(micro((AR, 16000)), dims((RING, 4)), preferred_dataset_splits=4)
    assert finish_ns(four) == 4 * one_ns
    pairs = {"active_chunks_per_dimension": 2, "preferred_dataset_splits": 4}
    assert finish_ns(query(micro((AR, 16000)), dims((RING, 4)), **pairs)) == 2 * one_ns


def test_queues_divide_the_active_chunks_and_reducing_uses_the_first_half() -> None:
    """Four chunks in 2 queues of one slot: an all-reduce uses 1 queue, an all-gather both."""
    settings = {"queues_per_dimension": 2, "preferred_dataset_splits": 4}
    one_ns = 6 * 1010 + 7 * 5 + 3 * 3000
    assert finish_ns(query(micro((AR, 16000)), dims((RING, 4)), **settings)) == 4 * one_ns
    gather_ns = 3 * 4010 + 4 * 5
    assert finish_ns(query(micro((AG, 16000)), dims((RING, 4)), **settings)) == 2 * gather_ns


def test_an_iteration_hides_communication_behind_computation() -> None:
    """Layer 1's all-reduce runs beside what is left of the backward pass, layer 0's after it."""
    reduce_ns = 2 * 1010 + 3 * 5 + 3000
    asked = query(data((1, 9, 2, 2000), (1, 3, 4, 2000)), dims((RING, 2)))
    estimate = AnalyticalBackend().estimate(asked)
    assert estimate.compute_ns == 1000 * (1 + 1 + 4 + 3 + 2)
    assert estimate.finish_ns == max(11_000, 6_000 + reduce_ns) + reduce_ns
    assert estimate.exposed_comm_ns == estimate.finish_ns - 11_000


def test_a_computation_of_nothing_takes_a_nanosecond() -> None:
    asked = query(data((0, 0, 0, 2000)), dims((RING, 2)))
    assert AnalyticalBackend().estimate(asked).compute_ns == 2


def test_collectives_of_a_micro_workload_follow_each_other() -> None:
    one = finish_ns(query(micro((AR, 4000)), dims((RING, 4))))
    other = finish_ns(query(micro((A2A, 4000)), dims((RING, 4))))
    both = query(micro((AR, 4000), (A2A, 4000)), dims((RING, 4)), passes=3)
    assert finish_ns(both) == 3 * (one + other)


def test_none_is_an_all_reduce_of_the_smallest_size() -> None:
    asked = query(micro((Collective.NONE, 0)), dims((RING, 4)))
    assert finish_ns(asked) == finish_ns(query(micro((AR, 0)), dims((RING, 4)))) > 0


def test_a_message_truncates_latency_and_bytes_together() -> None:
    network = MessageNetwork((Dimension(SWITCH, 4, 1e9 / 2**30 * 4, 936.25),))
    assert network.message_on_route_ns((0, 2), 3) == 1873  # 1872.5 + 0.75


def test_a_reduction_truncates_each_of_its_three_terms() -> None:
    assert Delays(0, 2e9).reduction_ns(3) == 3 * 1


def test_trees_hang_off_the_last_and_the_first_position() -> None:
    assert tree(4, 0) == (
        TreeNode(1, ()),
        TreeNode(3, (0, 2)),
        TreeNode(1, ()),
        TreeNode(None, (1,)),
    )
    assert tree(4, 1) == (
        TreeNode(None, (2,)),
        TreeNode(2, ()),
        TreeNode(0, (1, 3)),
        TreeNode(2, ()),
    )
    assert tree(2, 0) == (TreeNode(1, ()), TreeNode(None, (0,)))
