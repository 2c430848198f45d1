"""Does the visiting order follow the original simulator's hash map, and can a seed change it?"""

from __future__ import annotations

import pytest

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import regular
from validation.original.hash_order import HashOrder, hash_order, machine_numbers, unit_hashes

TREE = regular(racks=2, machines_per_rack=8, gpus_per_machine=8, gpus_per_socket=4)
SOCKET, MACHINE = 0, TREE.machine


def test_hash_of_zero_is_worked_out_by_hand() -> None:
    # 0 + ~0 = 2^32 - 1; ^= h >>> 14 clears its lower 18 bits: 0xfffc0000;
    # + (h << 4): 0xfffc0000 + 0xffc00000 = 0xffbc0000; ^ h >>> 10 (0x003fef00) = 0xff83ef00.
    assert unit_hashes(TREE, MACHINE, machine_numbers(TREE))[0] == 0xFF83EF00


def test_machine_1_of_rack_0_and_machine_0_of_rack_1_collide() -> None:
    hashes = unit_hashes(TREE, MACHINE, machine_numbers(TREE))
    assert hashes[1] == hashes[8]


def test_later_entries_of_a_bucket_come_first_and_buckets_from_high_to_low() -> None:
    assert hash_order([0, 1, 2, 3], [5, 9, 5, 1]) == [1, 2, 0, 3]


def test_map_doubles_at_three_quarters_and_reverses_what_stays_together() -> None:
    same = [0] * 12
    assert hash_order(range(11), same) == list(range(10, -1, -1))
    assert hash_order(range(12), same) == list(range(12))


def test_doubling_splits_buckets_by_the_next_bit() -> None:
    hashes = [0, 16] * 6
    assert hash_order(range(12), hashes) == [1, 3, 5, 7, 9, 11, 0, 2, 4, 6, 8, 10]


def test_first_allocations_of_a_recorded_run() -> None:
    # The original simulator's batch run on two racks: 4 GPUs, 16 GPUs in a rack, 2 GPUs.
    free = FreeGpus(TREE)
    visits = HashOrder(TREE)
    first = visits.first_fit(free, SOCKET, 4)
    assert first == socket(1, 7, 1)
    free.claim(Placement.of({first: 4}))
    free.claim(Placement.of(dict.fromkeys(range(4), 4)))
    assert visits.first_fit(free, SOCKET, 2) == socket(1, 6, 0)


@pytest.mark.parametrize("level", [SOCKET, MACHINE])
def test_only_units_with_room_are_taken(level: int) -> None:
    free = FreeGpus(TREE)
    for visits in (HashOrder(TREE), HashOrder(TREE, 3)):
        assert visits.first_fit(free, level, 9) is None
        first = visits.first_fit(free, level, 4)
        assert first is not None
        assert free.of(level, first) >= 4


def test_a_seed_numbers_the_machines_anew_inside_their_racks() -> None:
    assert machine_numbers(TREE) == [*range(8), *range(8)]
    drawn = machine_numbers(TREE, 1)
    assert sorted(drawn[:8]) == sorted(drawn[8:]) == list(range(8))
    assert drawn == machine_numbers(TREE, 1) != machine_numbers(TREE, 2)
    assert drawn[:8] != drawn[8:]


def test_machines_and_their_sockets_are_visited_by_their_new_numbers() -> None:
    numbers = machine_numbers(TREE, 5)
    for level, size in ((SOCKET, 4), (MACHINE, 8)):
        own, drawn = (
            [named(unit, level, known) for unit in drain(visits, level, size)]
            for visits, known in (
                (HashOrder(TREE), machine_numbers(TREE)),
                (HashOrder(TREE, 5), numbers),
            )
        )
        # The same numbers one after the other. Units of equal hash may swap places.
        assert [hashed(*each) for each in drawn] == [hashed(*each) for each in own]
        assert drain(HashOrder(TREE, 5), level, size) != drain(HashOrder(TREE), level, size)


def named(unit: int, level: int, numbers: list[int]) -> tuple[int, ...]:
    """Rack, number of the machine, and socket."""
    machine, socket = (unit, 0) if level == MACHINE else divmod(unit, 2)
    return machine // 8, numbers[machine], socket


def hashed(rack: int, machine: int, socket: int) -> int:
    return rack ^ machine ^ socket


def drain(visits: HashOrder, level: int, size: int) -> list[int]:
    """Units in the order in which they are taken, all of each at once."""
    free = FreeGpus(TREE)
    taken = []
    while (unit := visits.first_fit(free, level, size)) is not None:
        taken.append(unit)
        sockets = {unit: 4} if level == SOCKET else {2 * unit: 4, 2 * unit + 1: 4}
        free.claim(Placement.of(sockets))
    return taken


def socket(rack: int, machine: int, socket: int) -> int:
    return (rack * 8 + machine) * 2 + socket
