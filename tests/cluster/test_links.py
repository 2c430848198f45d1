"""Which links does a placement cross?"""

from __future__ import annotations

import pytest
from hypothesis import given
from strategies import placements_on
from support import on

from artist.cluster.fabric import Fabric, FabricLevel, fabric_names, load_fabric, with_system
from artist.cluster.fabric_options import with_options
from artist.cluster.links import (
    capacity_gib_per_s,
    granted_gib_per_s,
    links,
    oversubscription,
    oversubscription_text,
    usual_oversubscriptions,
)
from artist.cluster.tree import nested
from artist.settings import load_scenario
from artist.units import GIB

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
    # 8 GPUs of a machine, 16 of a rack, and the 400 GiB/s that the network grants each.
    assert capacities == {"machine": 8 * 400, "rack": 16 * 400}


PORTS = load_fabric("h100-quantum2-spectrum4")
PORTS_TREE = PORTS.cluster(racks=2, machines_per_rack=8, gpus_per_machine=8)


def test_stated_links_are_added() -> None:
    assert capacity_gib_per_s(PORTS_TREE, PORTS, 0, 3) == 8 * 46.57
    assert capacity_gib_per_s(PORTS_TREE, PORTS, 1, 1) == 32 * 93.13
    assert capacity_gib_per_s(PORTS_TREE, PORTS, 2, 0) is None
    # Racks of twice the size have the same links: 2:1.
    larger = PORTS.cluster(racks=2, machines_per_rack=16, gpus_per_machine=8)
    assert oversubscription(larger, PORTS, 1, 0) == pytest.approx(2, rel=1e-3)


def changed(fabric: Fabric, **settings: str) -> Fabric:
    sets = [f"fabric.{key.replace('__', '.')}={value}" for key, value in settings.items()]
    return with_options(fabric, load_scenario(None, {}, sets).fabric_options)


@pytest.mark.parametrize("ratio", [1, 2, 4, 2.5])
def test_an_oversubscription_holds_for_units_of_any_size(ratio: float) -> None:
    fabric = changed(PORTS, rack__oversubscription=str(ratio))
    tree = nested(fabric.level_names, [[8] * 8, [8] * 4, [4, 4, 2]])
    for rack, gpus in enumerate((64, 32, 10)):
        assert oversubscription(tree, fabric, 1, rack) == pytest.approx(ratio)
        assert capacity_gib_per_s(tree, fabric, 1, rack) == pytest.approx(gpus * 46.57 / ratio)


def test_an_oversubscribed_uplink_carries_at_least_one_flow() -> None:
    fabric = changed(PORTS, rack__oversubscription="4")
    tree = nested(fabric.level_names, [[2], [8]])
    assert capacity_gib_per_s(tree, fabric, 1, 0) == 46.57
    assert oversubscription(tree, fabric, 1, 0) == 2
    assert oversubscription(tree, fabric, 1, 1) == 4


def test_each_routed_link_of_an_oversubscribed_uplink_carries_at_least_one_flow() -> None:
    fabric = changed(PORTS, rack__oversubscription="4", rack__links="4", rack__routing="ecmp")
    tree = nested(fabric.level_names, [[8] * 8, [8]])
    assert capacity_gib_per_s(tree, fabric, 1, 0) == pytest.approx(64 * 46.57 / 4)
    assert capacity_gib_per_s(tree, fabric, 1, 1) == pytest.approx(4 * 46.57)
    assert oversubscription(tree, fabric, 1, 1) == pytest.approx(2)


def test_units_that_share_a_bandwidth_send_it_once() -> None:
    rings = with_system(PORTS, {"rings": "one"})
    # Eight machines of a rack, each with one ring at a time.
    assert granted_gib_per_s(PORTS_TREE, rings, 1, 0) == 8 * 46.57
    assert granted_gib_per_s(PORTS_TREE, rings, 0, 0) == 46.57
    by_machine = changed(PORTS, network__shared_by="machine", rack__bandwidth="1Gbit/s")
    assert granted_gib_per_s(PORTS_TREE, by_machine, 1, 0) == 8 * 46.57
    by_rack = changed(PORTS, network__shared_by="rack", rack__bandwidth="1Gbit/s")
    assert granted_gib_per_s(PORTS_TREE, by_rack, 1, 0) == 46.57


# Stated to three or four digits.
ROUNDED = 1e-3

# The fabrics that are oversubscribed on purpose; no other one is.
OVERSUBSCRIBED = {"cassini-testbed": "machine 1:1, rack 2:1", "leaf-spine": "machine 1:1, rack 2:1"}


@pytest.mark.parametrize("name", fabric_names())
def test_shipped_fabrics_grant_no_more_than_their_uplinks_carry(name: str) -> None:
    fabric = load_fabric(name)
    if name in OVERSUBSCRIBED:
        assert oversubscription_text(fabric) == OVERSUBSCRIBED[name]
    else:
        ratios = usual_oversubscriptions(fabric)
        assert all(ratio is None or ratio <= 1 + ROUNDED for ratio in ratios)


def test_the_testbed_of_cassini_has_two_links_of_50_gbit_per_s_out_of_a_rack() -> None:
    fabric = load_fabric("cassini-testbed")
    tree = fabric.cluster(racks=6, machines_per_rack=4, gpus_per_machine=1)
    assert tree.gpus == 24
    card = 50e9 / 8 / GIB
    assert capacity_gib_per_s(tree, fabric, 0, 0) == pytest.approx(card)
    assert capacity_gib_per_s(tree, fabric, 1, 0) == pytest.approx(2 * card)
    # Section 5.6: six servers of two GPUs. The card stays one card.
    pairs = fabric.cluster(racks=3, machines_per_rack=2, gpus_per_machine=2)
    assert capacity_gib_per_s(pairs, fabric, 0, 0) == pytest.approx(card)
    assert oversubscription(pairs, fabric, 1, 0) == 2


@pytest.mark.parametrize("ratio", [1, 2, 4])
def test_a_leaf_has_as_many_ports_up_as_its_ratio_says(ratio: int) -> None:
    # 64 GPUs of 400 Gbit/s down; 32, 16 or 8 ports of 800 Gbit/s up.
    fabric = changed(load_fabric("leaf-spine"), rack__oversubscription=str(ratio))
    tree = fabric.cluster(racks=2, machines_per_rack=8, gpus_per_machine=8)
    ports = 32 // ratio
    assert capacity_gib_per_s(tree, fabric, 1, 0) == pytest.approx(ports * 800e9 / 8 / GIB)
    assert oversubscription_text(fabric) == f"machine 1:1, rack {ratio}:1"


def test_levels_of_any_name_have_usual_sizes() -> None:
    row = FabricLevel(
        name="row", topology="Ring", bandwidth_gib_per_s=1, latency_ns=1, source="test"
    )
    fabric = PORTS.model_copy(update={"levels": (*PORTS.levels[:2], row, PORTS.levels[2])})
    assert len(usual_oversubscriptions(fabric)) == 4
    assert oversubscription_text(fabric) == "machine 1:1, rack 1:1"


@given(placements_on(TREE))
def test_each_direction_of_a_link_comes_once(placement) -> None:
    crossed_links = links(TREE, FABRIC, placement)
    assert len(set(crossed_links)) == len(crossed_links)
    ups = [link for link in crossed_links if link.direction == "up"]
    assert len(ups) * 2 == len(crossed_links)
