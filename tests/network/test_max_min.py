"""Are max-min shares those of recorded fluids, lawful, and independent of names?"""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from random import Random

import pytest
from contentions import Network, network
from hypothesis import given
from hypothesis import strategies as st

from artist.network.models.patterns import Contention, Flow, Member, Pattern, SharedLink
from artist.network.models.sending_flows import SendingFlows

SLACK = 1e-9
GROUND_TRUTH = Path(__file__).parents[3] / "shared" / "groundwork" / "contention" / "rates.jsonl"


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Up to 12 flows on up to 6 links. Few distinct numbers, so that ties happen."""
    count = draw(st.integers(1, 6))
    numbers = st.sampled_from([0.1, 0.3, 1.0, 1.5, 2.0, 7.0])
    capacities = draw(st.lists(numbers, min_size=count, max_size=count))
    path = st.lists(st.integers(0, count - 1), min_size=1, max_size=4, unique=True)
    paths = draw(st.lists(path, min_size=1, max_size=12))
    flows = len(paths)
    caps = draw(
        st.lists(st.one_of(numbers, st.just(inf)), min_size=flows, max_size=flows),
    )
    weights = draw(st.lists(numbers, min_size=flows, max_size=flows))
    return network(capacities, paths, caps, weights)


@given(networks(), st.floats(0.5, 2.0))
def test_flows_of_a_contention_have_these_rates_to_the_bit(made: Network, noise: float) -> None:
    # Links that the same flows cross count as one there, and flows on one link are short work.
    made = network(made.capacities, made.paths, [min(x, 9.0) for x in made.caps], made.weights)
    flows = [
        Flow(tuple(path), cap, weight)
        for path, cap, weight in zip(made.paths, made.caps, made.weights, strict=True)
    ]
    jobs = tuple(Member(Pattern.simple(0.0, 1.0, flow)) for flow in flows)
    sending = SendingFlows(Contention(tuple(map(SharedLink, made.capacities)), jobs))
    sharers = [sum(link in path for path in made.paths) for link in range(len(made.capacities))]
    weights = [
        flow.weight * noise if any(sharers[link] > 1 for link in flow.links) else flow.weight
        for flow in flows
    ]
    noisy = network(made.capacities, made.paths, made.caps, weights)
    everyone = tuple(range(len(flows)))
    for _ in range(2):
        assert list(sending.rates(everyone, None)) == made.max_min()
        assert list(sending.rates(everyone, [noise] * len(flows))) == noisy.max_min()


def rack_links(racks: list[int], source: int, target: int) -> tuple[int, ...]:
    """Links from machine to machine: out of a NIC, up, down, into a NIC; numbered in this order."""
    machines, count = len(racks), max(racks) + 1
    inner = (source, machines + target)
    if racks[source] == racks[target]:
        return inner
    return (inner[0], 2 * machines + racks[source], 2 * machines + count + racks[target], inner[1])


def test_the_recorded_networks_have_these_rates() -> None:
    if not GROUND_TRUTH.is_file():
        pytest.skip("the recorded networks are not here (../shared/groundwork/contention)")
    for tree in map(json.loads, GROUND_TRUTH.read_text(encoding="utf-8").splitlines()):
        paths = [rack_links(tree["racks"], flow["src"], flow["dst"]) for flow in tree["flows"]]
        caps = [flow["rate_cap_bps"] for flow in tree["flows"]]
        rates = network([*tree["nic_bps"] * 2, *tree["uplink_bps"] * 2], paths, caps).max_min()
        recorded = [flow["simgrid_bps"] for flow in tree["flows"]]
        assert rates == pytest.approx(recorded, rel=1e-8, abs=0), tree["id"]


def test_a_long_flow_shares_each_link_and_short_ones_take_the_rest() -> None:
    # Bertsekas and Gallager's example: the long flow is held to 1/3 on link 0, so the only other
    # flow of link 1 gets 1 - 1/3.
    rates = network([1.0, 1.0], [[0, 1], [0], [0], [1]]).max_min()
    assert rates == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 3])


def test_weights_divide_a_link_and_caps_leave_the_rest_to_others() -> None:
    assert network([4.0], [[0], [0]], weights=[3.0, 1.0]).max_min() == pytest.approx([3, 1])
    rates = network([4.0], [[0], [0], [0]], caps=[0.5, inf, inf]).max_min()
    assert rates == pytest.approx([0.5, 1.75, 1.75])


def test_a_flow_without_links_has_its_cap() -> None:
    assert network([1.0], [[], [0]], caps=[5.0, inf]).max_min() == [5.0, 1.0]
    assert network([1.0], []).max_min() == []


@given(networks())
def test_no_link_carries_more_than_it_can_and_no_flow_exceeds_its_cap(drawn: Network) -> None:
    rates = drawn.max_min()
    for load, capacity in zip(drawn.carried(rates), drawn.capacities, strict=True):
        assert load <= capacity * (1 + SLACK)
    assert all(0 <= rate <= cap for rate, cap in zip(rates, drawn.caps, strict=True))


@given(networks())
def test_no_flow_can_gain_without_a_smaller_one_losing(drawn: Network) -> None:
    # A flow below its cap crosses a full link on which no flow has more per weight. Work is
    # conserved by this too: what is not used, no flow that could use it lacks.
    rates = drawn.max_min()
    carried = drawn.carried(rates)
    levels = [rate / weight for rate, weight in zip(rates, drawn.weights, strict=True)]
    for flow, path in enumerate(drawn.paths):
        at_cap = rates[flow] >= drawn.caps[flow] * (1 - SLACK)
        held = [
            carried[link] >= drawn.capacities[link] * (1 - SLACK)
            and levels[flow]
            >= (1 - SLACK)
            * max(level for level, path in zip(levels, drawn.paths, strict=True) if link in path)
            for link in path
        ]
        assert at_cap or any(held)


@given(networks(), st.randoms(use_true_random=False))
def test_order_and_numbering_change_no_bit(drawn: Network, random: Random) -> None:
    flows, names = list(range(len(drawn.paths))), list(range(len(drawn.capacities)))
    random.shuffle(flows)
    random.shuffle(names)
    other = network(
        [drawn.capacities[names.index(link)] for link in range(len(names))],
        [[names[link] for link in drawn.paths[flow]][::-1] for flow in flows],
        [drawn.caps[flow] for flow in flows],
        [drawn.weights[flow] for flow in flows],
    )
    rates = drawn.max_min()
    assert other.max_min() == [rates[flow] for flow in flows]


def test_sums_do_not_depend_on_the_order_of_flows() -> None:
    # .1 + .2 + .3 and .3 + .2 + .1 differ in their last bit, and so would what they leave of 1.5.
    caps = [0.1, 0.2, 0.3, inf]
    rates = network([1.5], [[0]] * 4, caps).max_min()
    assert network([1.5], [[0]] * 4, caps[::-1]).max_min() == rates[::-1]
