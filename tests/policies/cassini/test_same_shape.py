"""Which other placements are as good for a job: those of its shape, in a fixed order."""

from __future__ import annotations

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import nested
from artist.policies.cassini.same_shape import other_joint_placements, others_of_shape

# Four racks of two servers with one GPU: servers 0 and 1 in rack 0, and so on.
RACKS = [[1, 1]] * 4


def on(*servers: int) -> Placement:
    return Placement.of(dict.fromkeys(servers, 1))


def without(*servers: int) -> FreeGpus:
    free = FreeGpus(nested(("machine", "rack", "network"), RACKS))
    free.claim(on(*servers))
    return free


def test_parts_move_to_other_racks_the_smallest_first() -> None:
    # Server 3 is taken. Rack 0 keeps its pair as long as the single one can move.
    others = list(others_of_shape(without(3), on(0, 1, 2)))
    assert others[:2] == [on(0, 1, 4), on(0, 1, 6)]
    # A pair fits into racks 0, 2 and 3, a single one beside it into any other rack.
    assert len(others) == len(set(others)) == 3 * 3 - 1
    assert on(4, 5, 2) in others and on(6, 7, 0) in others


def test_equal_parts_take_racks_once() -> None:
    others = list(others_of_shape(without(1, 3, 5, 7), on(0, 2)))
    assert others == [on(0, 4), on(0, 6), on(2, 4), on(2, 6), on(4, 6)]


def test_a_whole_placement_moves_to_another_rack() -> None:
    assert list(others_of_shape(without(2), on(0, 1))) == [on(4, 5), on(6, 7)]


def test_a_job_inside_a_machine_stays() -> None:
    assert list(others_of_shape(without(3), on(0))) == []


def test_moves_come_before_swaps_and_former_gpus_are_not_offered() -> None:
    first = {5: on(0, 2), 7: on(4, 6)}
    pool = without(0, 2, 4, 6, 1, 3, 5)  # only server 7 is free
    others = list(other_joint_placements(pool, first, {}))
    # Rack 3 has server 7, which is alike: the first that is visited counts.
    assert others[0] == {5: on(0, 7), 7: on(4, 6)}
    assert {5: on(4, 6), 7: on(0, 2)} in others
    kept = {5: on(0, 7), 7: on(0, 2)}
    assert all(
        other[handle] != former
        for other in other_joint_placements(pool, first, kept)
        for handle, former in kept.items()
    )
