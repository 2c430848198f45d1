"""Max-min shares: against recorded fluid rates, by their laws, and under other names."""

from __future__ import annotations

import numpy as np
import pytest
from ground_truth import GROUND_TRUTH, lines, rack_capacities, rack_links
from hypothesis import given
from hypothesis import strategies as st

from artist.errors import ConfigError
from artist.network.models.max_min import Network, max_min, shared_links

SLACK = 1e-9


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
        st.lists(st.one_of(numbers, st.just(np.inf)), min_size=flows, max_size=flows),
    )
    weights = draw(st.lists(numbers, min_size=flows, max_size=flows))
    return Network.of(capacities, paths, caps, weights)


def carried(network: Network, rates: np.ndarray) -> np.ndarray:
    return np.bincount(network.links, rates[network.flow_of_entry], len(network.capacities))


def test_the_recorded_networks_have_these_rates() -> None:
    if not GROUND_TRUTH.is_dir():
        pytest.skip("the recorded networks are not here (../shared/groundwork/contention)")
    for tree in lines("rates.jsonl"):
        paths = [rack_links(tree["racks"], flow["src"], flow["dst"]) for flow in tree["flows"]]
        caps = [flow["rate_cap_bps"] for flow in tree["flows"]]
        rates = max_min(Network.of(rack_capacities(tree), paths, caps))
        recorded = [flow["simgrid_bps"] for flow in tree["flows"]]
        assert rates == pytest.approx(recorded, rel=1e-8, abs=0), tree["id"]


def test_a_long_flow_shares_each_link_and_short_ones_take_the_rest() -> None:
    # Bertsekas and Gallager's example: the long flow is held to 1/3 on link 0, so the only other
    # flow of link 1 gets 1 - 1/3.
    rates = max_min(Network.of([1.0, 1.0], [[0, 1], [0], [0], [1]]))
    assert rates == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 3])


def test_weights_divide_a_link_and_caps_leave_the_rest_to_others() -> None:
    assert max_min(Network.of([4.0], [[0], [0]], weights=[3.0, 1.0])) == pytest.approx([3, 1])
    rates = max_min(Network.of([4.0], [[0], [0], [0]], caps=[0.5, np.inf, np.inf]))
    assert rates == pytest.approx([0.5, 1.75, 1.75])


def test_a_flow_without_links_has_its_cap() -> None:
    assert max_min(Network.of([1.0], [[], [0]], caps=[5.0, np.inf])).tolist() == [5.0, 1.0]
    assert max_min(Network.of([1.0], [])).tolist() == []


@given(networks())
def test_no_link_carries_more_than_it_can_and_no_flow_exceeds_its_cap(network: Network) -> None:
    rates = max_min(network)
    assert (carried(network, rates) <= network.capacities * (1 + SLACK)).all()
    assert (rates <= network.caps).all()
    assert (rates >= 0).all()


@given(networks())
def test_no_flow_can_gain_without_a_smaller_one_losing(network: Network) -> None:
    # A flow below its cap crosses a full link on which no flow has more per weight. Work is
    # conserved by this too: what is not used, no flow that could use it lacks.
    rates = max_min(network)
    full = carried(network, rates) >= network.capacities * (1 - SLACK)
    level = rates / network.weights
    most = np.zeros(len(full))
    np.maximum.at(most, network.links, level[network.flow_of_entry])
    for flow in range(network.flows):
        path = network.links[network.first[flow] : network.first[flow + 1]]
        at_cap = rates[flow] >= network.caps[flow] * (1 - SLACK)
        held = full[path] & (level[flow] >= most[path] * (1 - SLACK))
        assert at_cap or held.any()


@given(networks(), st.randoms(use_true_random=False))
def test_order_and_numbering_change_no_bit(network: Network, random: object) -> None:
    flows = list(range(network.flows))
    names = list(range(len(network.capacities)))
    random.shuffle(flows)  # type: ignore[attr-defined]
    random.shuffle(names)  # type: ignore[attr-defined]
    capacities = np.empty_like(network.capacities)
    capacities[names] = network.capacities
    paths = [
        [names[link] for link in network.links[network.first[f] : network.first[f + 1]]][::-1]
        for f in flows
    ]
    other = Network.of(capacities, paths, network.caps[flows], network.weights[flows])
    assert max_min(other).tolist() == max_min(network)[flows].tolist()


def test_sums_do_not_depend_on_the_order_of_flows() -> None:
    # .1 + .2 + .3 and .3 + .2 + .1 differ in their last bit, and so would what they leave of 1.5.
    caps = [0.1, 0.2, 0.3, np.inf]
    rates = max_min(Network.of([1.5], [[0]] * 4, caps))
    assert max_min(Network.of([1.5], [[0]] * 4, caps[::-1])).tolist() == rates[::-1].tolist()


def test_eta_takes_from_shared_links_alone() -> None:
    network = Network.of([50.0, 50.0], [[0], [0], [1], [1]])
    jobs = np.array([0, 1, 2, 2])
    assert shared_links(network, jobs).tolist() == [True, False]
    # CASSINI, section 2.2: two jobs get 22 Gbit/s each on a link of 50 Gbit/s.
    assert max_min(network.with_efficiency(jobs, 0.88)) == pytest.approx([22, 22, 25, 25])


@pytest.mark.parametrize("eta", [0.0, -1.0, 1.1, float("nan")])
def test_an_eta_that_is_no_efficiency_is_refused(eta: float) -> None:
    with pytest.raises(ConfigError, match=r"eta .*above 0 and at most 1"):
        Network.of([1.0], [[0]]).with_efficiency(np.array([0]), eta)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (([0.0], [[0]]), "capacity of link 0: 0"),
        (([1.0], [[0]], [-1.0]), "cap of flow 0: -1"),
        (([1.0], [[0]], None, [0.0]), "weight of flow 0: 0"),
        (([1.0], [[1]]), "flow 0: crosses link 1, expected 0 to 0"),
        (([1.0], [[]]), "flow 0: has neither a cap nor a link"),
        (([float("inf")], [[0]]), "capacity of link 0: inf"),
    ],
)
def test_numbers_out_of_range_are_named(numbers: tuple, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Network.of(*numbers)
