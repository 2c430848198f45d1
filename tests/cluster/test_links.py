"""Which links does a placement cross?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import placements_on
from support import on

from artist.cluster.fabric import load_fabric
from artist.cluster.links import links

FABRIC = load_fabric("dally2025")
# Leaves are sockets of four; machines 0-1 are in rack 0, 2-3 in rack 1.
TREE = FABRIC.cluster(racks=2, machines_per_rack=2, gpus_per_machine=8)


def crossed(taken: dict[int, int]) -> list[tuple[str, int, str]]:
    return [(link.level, link.unit, link.direction) for link in links(TREE, FABRIC, on(taken))]


def both(level: str, *units: int) -> list[tuple[str, int, str]]:
    return [(level, unit, direction) for unit in units for direction in ("up", "down")]


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        ({0: 1}, []),
        ({0: 4, 1: 4}, []),  # sockets state no uplink
        ({0: 4, 2: 4}, both("machine", 0, 1)),  # inside rack 0: no rack uplink
        ({1: 1, 2: 1, 3: 1}, both("machine", 0, 1)),  # two sockets share a machine's NICs
        ({0: 1, 4: 1}, [*both("machine", 0, 2), *both("rack", 0, 1)]),
        ({0: 1, 2: 1, 7: 1}, [*both("machine", 0, 1, 3), *both("rack", 0, 1)]),
    ],
)
def test_links_out_of_units_that_hold_a_part_of_the_placement(
    taken: dict[int, int], expected: list[tuple[str, int, str]]
) -> None:
    assert crossed(taken) == expected


def test_capacities_are_all_links_of_a_unit_together() -> None:
    capacities = {
        link.level: link.capacity_gib_per_s for link in links(TREE, FABRIC, on({0: 1, 4: 1}))
    }
    assert capacities == {"machine": 46.57 * 8, "rack": 93.13 * 32}


@given(placements_on(TREE))
def test_each_direction_of_a_link_comes_once(placement) -> None:
    crossed_links = links(TREE, FABRIC, placement)
    assert len(set(crossed_links)) == len(crossed_links)
    ups = [link for link in crossed_links if link.direction == "up"]
    assert len(ups) * 2 == len(crossed_links)


@given(st.integers(0, 7))
def test_gpus_of_one_leaf_cross_no_link(leaf: int) -> None:
    assert links(TREE, FABRIC, on({leaf: 1})) == ()
