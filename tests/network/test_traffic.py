"""Is the traffic out of a unit right, by hand for each algorithm, and in sum?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import placements_on
from support import on

from artist.astra.messages.groups import algorithm_of
from artist.cluster.fabric import Fabric, load_fabric, with_system
from artist.cluster.links import links
from artist.cluster.placement import Placement
from artist.cluster.placement_shape import shape
from artist.errors import ConfigError
from artist.estimates.latency_service import Asker
from artist.estimates.query import Dimension, Topology
from artist.network.demand.curves import Curves
from artist.network.demand.traffic import (
    SentBytes,
    Traffic,
    _between_parts,
    between_npus,
    sendings,
    sent_between,
)
from artist.network.demand.ways import JobOnLinks, bytes_on_links, contention, ways
from artist.run import open_backend
from artist.workload.models import workload

DALLY = load_fabric("dally2025")
# Leaves are sockets of four; machines 0-1 are in rack 0, 2-3 in rack 1.
TREE = DALLY.cluster(racks=2, machines_per_rack=2, gpus_per_machine=8)
MACHINE, RACK = 1, 2
ALGORITHMS = ["ring", "direct", "direct2", "halvingDoubling", "doubleBinaryTree"]


def dimension(npus: int, level: str = "") -> Dimension:
    return Dimension(Topology.RING, npus, 100.0, 0.0, level)


def one_dimension(algorithm: str, npus: int, bytes_: float) -> Traffic:
    return Traffic((dimension(npus, "network"),), (algorithm,), (bytes_,))


def volumes(sent: list[SentBytes]) -> dict[tuple[int, int], float]:
    return {(x.source, x.target): x.volume_bytes for x in sent}


def out_of(sent: list[SentBytes], unit: int) -> float:
    return math.fsum(x.volume_bytes for x in sent if x.source == unit)


# -- algorithms by hand: eight NPUs, four in each of two units -------------------------

HALVES = [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_ring_leaves_a_contiguous_unit_once() -> None:
    # 3 -> 4 and 7 -> 0 cross.
    sent = between_npus(HALVES, one_dimension("ring", 8, 700))
    assert sent == [SentBytes(0, 1, 700.0, 1.0), SentBytes(1, 0, 700.0, 1.0)]


def test_a_ring_leaves_a_scattered_unit_each_time() -> None:
    sent = between_npus([0, 1, 0, 1, 0, 1, 0, 1], one_dimension("ring", 8, 700))
    assert volumes(sent) == {(0, 1): 2800.0, (1, 0): 2800.0}


def test_direct_sends_reach_every_peer_outside() -> None:
    # Each of four NPUs sends 100 of its 700 bytes to each of four peers in the other unit.
    sent = between_npus(HALVES, one_dimension("direct", 8, 700))
    assert sent == [SentBytes(0, 1, 1600.0, 16.0), SentBytes(1, 0, 1600.0, 16.0)]


def test_halving_doubling_crosses_in_its_widest_step() -> None:
    # An all-reduce of S = 400 bytes: 200 to p XOR 1, 100 to p XOR 2, 50 to p XOR 4, twice. That
    # is 700 bytes per NPU. Only p XOR 4 leaves the unit: four NPUs, 2 x 50 bytes each.
    sent = between_npus(HALVES, one_dimension("halvingDoubling", 8, 700))
    assert volumes(sent) == {(0, 1): pytest.approx(400.0), (1, 0): pytest.approx(400.0)}
    # With NPUs 0 and 1, 2 and 3 ... together, p XOR 2 and p XOR 4 leave.
    pairs = between_npus([0, 0, 1, 1, 2, 2, 3, 3], one_dimension("halvingDoubling", 8, 700))
    assert volumes(pairs)[0, 1] == pytest.approx(2 * 2 * 100)
    assert volumes(pairs)[0, 2] == pytest.approx(2 * 2 * 50)
    assert (0, 3) not in volumes(pairs)


def test_double_binary_trees_cross_where_their_edges_do() -> None:
    # S = 400: 14 messages over 8 NPUs are a mean of 700 bytes. Half of the chunks on each tree:
    #   tree 0: 7 - 3; 3 - 1, 3 - 5; 1 - 0, 1 - 2; 5 - 4, 5 - 6   7-3 and 3-5 cross
    #   tree 1: 0 - 4; 4 - 2, 4 - 6; 2 - 1, 2 - 3; 6 - 5, 6 - 7   0-4 and 4-2 cross
    # Four crossing edges carry 200 bytes each way.
    sent = between_npus(HALVES, one_dimension("doubleBinaryTree", 8, 700))
    assert volumes(sent) == {(0, 1): pytest.approx(800.0), (1, 0): pytest.approx(800.0)}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("nodes", [2, 4, 8, 16])
def test_all_that_is_sent_is_the_bytes_of_the_query(algorithm: str, nodes: int) -> None:
    sent = between_npus(range(nodes), one_dimension(algorithm, nodes, 960.0))
    assert math.fsum(x.volume_bytes for x in sent) == pytest.approx(960.0 * nodes)
    parts = [len(x.sources) * x.part for x in sendings(algorithm_of(algorithm), nodes)]
    assert math.fsum(parts) == pytest.approx(nodes)


def test_a_flat_ring_over_all_dimensions_is_one_ring() -> None:
    both = Traffic((dimension(4, "machine"), dimension(2, "rack")), ("oneRing", "oneRing"), (7, 0))
    assert volumes(between_npus(HALVES, both)) == {(0, 1): 7.0, (1, 0): 7.0}
    mixed = Traffic((dimension(4, "machine"), dimension(2, "rack")), ("ring", "oneRing"), (7, 7))
    with pytest.raises(ConfigError, match="ring, oneRing: an algorithm over all dimensions"):
        between_npus(HALVES, mixed)


# -- placements ------------------------------------------------------------------------


def traffic_of(fabric: Fabric, placement: Placement, model: str = "vgg11") -> Traffic:
    tree = fabric.cluster(racks=2, machines_per_rack=2, gpus_per_machine=8)
    curves = Curves(Asker(fabric, open_backend("analytical"), workload), shares=(1.0,))
    return curves.curve(model, shape(tree, placement), frozenset({"rack", "network"})).traffic


EVEN = [
    {0: 4, 1: 4, 2: 4, 3: 4},
    {0: 2, 2: 2},
    {0: 4, 4: 4},
    {0: 4, 1: 4, 2: 4, 3: 4, 4: 4, 5: 4, 6: 4, 7: 4},
    {0: 2, 2: 2, 4: 2, 6: 2},
]


@pytest.mark.parametrize("taken", EVEN)
def test_even_shapes_send_gpus_inside_times_bytes_per_npu_of_what_spans_more(
    taken: dict[int, int],
) -> None:
    placement = on(taken)
    traffic = traffic_of(DALLY, placement)
    by_level = {
        x.level: y for x, y in zip(traffic.dimensions, traffic.bytes_per_dimension, strict=True)
    }
    for level, outside in ((MACHINE, ("rack", "network")), (RACK, ("network",))):
        sent = sent_between(TREE, placement, traffic, level)
        expected = sum(by_level.get(name, 0) for name in outside)
        inside: dict[int, int] = {}
        for leaf, gpus in taken.items():
            unit = TREE.ancestor(0, leaf, level)
            inside[unit] = inside.get(unit, 0) + gpus
        for unit, gpus in inside.items():
            assert out_of(sent, unit) == pytest.approx(gpus * expected)


@pytest.mark.parametrize("taken", EVEN)
def test_parts_of_a_regular_placement_send_what_its_npus_send(taken: dict[int, int]) -> None:
    placement = on(taken)
    traffic = traffic_of(DALLY, placement)
    by_npu = volumes(sent_between(TREE, placement, traffic, MACHINE))
    by_part = volumes(_between_parts(TREE, placement, traffic, MACHINE))
    assert by_part == pytest.approx(by_npu)


@pytest.mark.parametrize("uneven", ["bounded", "wider"])
def test_an_uneven_placement_sends_what_the_shape_asked_sends(uneven: str) -> None:
    # 4+4,2 costs as 4+4,4+4: 4 sockets of 4, in 2 machines. Each machine sends its 8 GPUs' bytes
    # of the rack dimension.
    placement = on({0: 4, 1: 4, 2: 2})
    traffic = traffic_of(with_system(DALLY, {"uneven": uneven}), placement)
    assert [x.npus for x in traffic.dimensions] == [4, 2, 2]
    expected = 8 * traffic.bytes_per_dimension[2]
    sent = sent_between(TREE, placement, traffic, MACHINE)
    assert volumes(sent) == {(0, 1): pytest.approx(expected), (1, 0): pytest.approx(expected)}


def test_a_flattened_placement_is_a_ring_in_visiting_order() -> None:
    # 4+4,4 flat: 4 in a socket, then rings of 3 sockets. The ring leaves machine 0 once (socket 1
    # to 2) and machine 1 once, in each of 4 rings.
    flat = with_system(DALLY, {"uneven": "flat"})
    placement = on({0: 4, 1: 4, 2: 4})
    traffic = traffic_of(flat, placement)
    assert [x.npus for x in traffic.dimensions] == [4, 3]
    sent = sent_between(TREE, placement, traffic, MACHINE)
    expected = 4 * traffic.bytes_per_dimension[1]
    assert volumes(sent) == {(0, 1): pytest.approx(expected), (1, 0): pytest.approx(expected)}


def test_one_ring_through_all_gpus_leaves_each_machine_once() -> None:
    one = with_system(DALLY, {"rings": "one"})
    placement = on({0: 4, 1: 1, 2: 2, 4: 3})
    traffic = traffic_of(one, placement)
    assert [x.npus for x in traffic.dimensions] == [10]
    sent = sent_between(TREE, placement, traffic, MACHINE)
    bytes_ = traffic.bytes_per_dimension[0]
    assert sent == [SentBytes(x, y, bytes_, 1.0) for x, y in ((0, 1), (1, 2), (2, 0))]


def test_links_on_the_way_up_and_down() -> None:
    placement = on({0: 4, 4: 4})
    traffic = traffic_of(DALLY, placement)
    there, back = ways(TREE, DALLY, placement, traffic)
    assert [(x.level, x.unit, x.direction) for x in there.links] == [
        ("machine", 0, "up"), ("rack", 0, "up"), ("rack", 1, "down"), ("machine", 2, "down"),
    ]  # fmt: skip
    assert [(x.level, x.unit, x.direction) for x in back.links] == [
        ("machine", 2, "up"), ("rack", 1, "up"), ("rack", 0, "down"), ("machine", 0, "down"),
    ]  # fmt: skip
    assert there.volume_bytes == 4 * traffic.bytes_per_dimension[-1]
    assert there.connections == 4


@given(placements_on(TREE))
def test_what_goes_into_a_unit_comes_out_of_others(placement: Placement) -> None:
    traffic = traffic_of(DALLY, placement, "resnet50")
    total = bytes_on_links(ways(TREE, DALLY, placement, traffic))
    for level in ("machine", "rack"):
        up = math.fsum(
            x for link, x in total.items() if (link.level, link.direction) == (level, "up")
        )
        down = math.fsum(
            x for link, x in total.items() if (link.level, link.direction) == (level, "down")
        )
        assert up == pytest.approx(down)


@given(placements_on(TREE), st.sampled_from(["bounded", "wider", "flat"]))
def test_only_links_that_the_placement_crosses_carry_bytes(
    placement: Placement, uneven: str
) -> None:
    fabric = with_system(DALLY, {"uneven": uneven})
    traffic = traffic_of(fabric, placement, "resnet50")
    carried = bytes_on_links(ways(TREE, fabric, placement, traffic))
    assert set(carried) <= set(links(TREE, fabric, placement))


def test_jobs_meet_on_the_links_that_both_cross() -> None:
    placements = [on({0: 4, 2: 4}), on({1: 4, 4: 4})]
    jobs = [
        JobOnLinks(ways(TREE, DALLY, placement, traffic_of(DALLY, placement)), 1.0, 0.25)
        for placement in placements
    ]
    made = contention(jobs, eta=0.9, fair_queued=frozenset({"machine"}))
    assert [member.pattern.down_s for member in made.members] == [0.75, 0.75]
    mine, theirs = (
        {link for flow in member.pattern.flows for link in flow.links} for member in made.members
    )
    shared = [made.links[link] for link in mine & theirs]
    assert len(shared) == 2  # machine 0, up and down
    assert all(link.fair_queued and link.eta == 1.0 for link in shared)
    assert {link.eta for link in made.links if not link.fair_queued} == {0.9}
    flow = made.members[0].pattern.flows[0]
    assert flow.cap_bytes_per_s == pytest.approx(
        made.members[0].pattern.steps[0].volumes_bytes[0] / 0.25
    )


def test_a_job_on_one_machine_has_no_ways() -> None:
    placement = on({0: 4, 1: 4})
    assert ways(TREE, DALLY, placement, traffic_of(DALLY, placement)) == ()
    quiet = contention([JobOnLinks((), 1.0, 0.5)])
    assert quiet.members[0].pattern.down_s == 1.0
    assert np.isclose(quiet.members[0].offset_s, 0.0)


def test_a_divided_job_sends_to_the_peers_of_each_axis() -> None:
    """4 machines of 8: tensor inside, pipelines on pairs of machines, replicas across the pairs."""
    fabric = load_fabric("h100-quantum2-spectrum4")
    curves = Curves(Asker(fabric, open_backend("analytical"), workload))
    job = "gpt2@tensor=8,pipeline=2,order=tensor-pipeline-data"
    sent = curves.sent(job, (8, 8, 8, 8), frozenset({"network"})).traffic
    machines = np.repeat(range(4), 8)
    pairs = {(x.source, x.target): x.volume_bytes for x in between_npus(machines, sent)}
    pipelines, replicas = {(0, 1), (2, 3)}, {(0, 2), (1, 3)}
    assert pairs.keys() == {*pipelines, *replicas, *((y, x) for x, y in pipelines | replicas)}
    by_axis = {(x.stride, x.npus): x.size_bytes for x in sent.axes or ()}
    assert by_axis.keys() == {(1, 8), (8, 2), (16, 2)}
    assert pairs[0, 1] == 8 * by_axis[8, 2]
    assert pairs[0, 2] == 8 * by_axis[16, 2]
    outside = sum(x for (_, size), x in by_axis.items() if size == 2)
    assert outside == pytest.approx(sent.bytes_per_dimension[1], rel=1e-6)
