"""What do all-to-alls of experts send outside machines, and what do other microbatches hide?"""

from __future__ import annotations

from itertools import product

import pytest

from artist.astra.model.analytical import AnalyticalBackend
from artist.estimates.divided.layer_wise import LayerwiseBackend
from artist.estimates.divided.with_split import iteration_split
from artist.estimates.group_members import shares_of_copies
from artist.estimates.iteration_split import TimePart
from artist.estimates.query import Dimension, Estimate, LatencyQuery, SystemSettings, Topology
from artist.network.demand.curves import busy_ns
from artist.workload.layers import Scope
from artist.workload.models import workload

BACKEND = LayerwiseBackend(AnalyticalBackend())
MODEL = "mixtral-8x7b@expert=8,batch=2,microbatches=2,sequence=512"


def dimensions(**npus: int) -> tuple[Dimension, ...]:
    """Switches of this many GPUs, outside machines slow ones."""
    return tuple(
        Dimension(Topology.SWITCH, n, 500.0 if level == "machine" else 5.0, 500.0, level)
        for level, n in npus.items()
    )


def answer(model: str, dims: tuple[Dimension, ...], *, profile: bool = False) -> Estimate:
    ring, straight = ("ring",) * len(dims), ("direct1",) * len(dims)
    system = SystemSettings(ring, ring, ring, straight)
    query = LatencyQuery(workload(model), dims, system)
    return BACKEND.estimate(query, profile=profile)


@pytest.mark.parametrize(("machines", "copies"), [(2, 3), (4, 2), (3, 4), (5, 1)])
def test_a_machine_gets_one_copy_of_a_token(machines: int, copies: int) -> None:
    """The mean over all ways to draw the machines of a token's experts."""
    draws = list(product(range(machines), repeat=copies))
    reached = sum(len(set(draw)) for draw in draws) / len(draws)
    inside, outside = shares_of_copies(dimensions(machine=8, rack=machines), copies)
    assert inside == 1
    assert outside == pytest.approx(reached / copies)


def test_experts_dispatched_by_machine_send_less_outside_and_as_much_inside() -> None:
    """Two of eight experts on two machines: three of four copies are left."""
    dims = dimensions(machine=4, rack=2)
    each, once = answer(MODEL, dims), answer(f"{MODEL},dispatch=machine", dims)
    exchanged = sum(
        phase.comm_bytes
        for layer in workload(MODEL).layers
        for phase in (layer.forward, layer.input_grad)
        if phase.scope is Scope.EXPERT
    )
    assert each.bytes_per_dimension is not None
    assert once.bytes_per_dimension is not None
    (inside, outside), (as_much, less) = each.bytes_per_dimension, once.bytes_per_dimension
    assert as_much == inside
    assert outside - less == pytest.approx(2 * exchanged / 2 / 4, rel=1e-6)
    assert once.compute_ns == each.compute_ns
    assert each.finish_ns - once.finish_ns == pytest.approx((outside - less) / 5.37, rel=0.01)


def test_what_another_microbatch_hides_is_what_blocks_compute_for_each_exchange() -> None:
    """A block has four exchanges, two in each pass. On a slow network, the rest is left."""
    slow = (Dimension(Topology.SWITCH, 8, 0.5, 500.0, "machine"),)
    made = workload(f"{MODEL},overlap=experts")
    computed_us = sum(
        phase.compute_us
        for layer in made.layers
        if "." in layer.name
        for phase in (layer.forward, layer.input_grad, layer.weight_grad)
    )
    assert made.staged is not None
    hidden_ns = made.staged.hidden_ns
    assert hidden_ns == pytest.approx(1000 * computed_us / (4 * 32), abs=1)
    shown, hidden = answer(MODEL, slow), answer(made.name, slow)
    exchanges = 4 * 32 * made.staged.microbatches
    assert shown.finish_ns - hidden.finish_ns == exchanges * hidden_ns
    assert hidden.bytes_per_dimension == shown.bytes_per_dimension


@pytest.mark.parametrize("gib_per_s", [0.5, 20.0, 1000.0])
def test_hidden_exchanges_are_on_the_network_all_the_same(gib_per_s: float) -> None:
    """None, some or all of an exchange is left. Fewer gaps are between the same bytes."""
    dims = (Dimension(Topology.SWITCH, 8, gib_per_s, 500.0, "machine"),)
    busy = {}
    for spec in (MODEL, f"{MODEL},overlap=experts"):
        found = answer(spec, dims, profile=True)
        assert found.profile is not None
        assert found.bytes_per_dimension is not None
        sent = sum(burst.size_bytes for burst in found.profile)
        assert sent == found.bytes_per_dimension[0]
        assert all(burst.offset_ns >= 0 for burst in found.profile)
        ends = [burst.offset_ns + burst.duration_ns for burst in found.profile]
        assert max(ends) <= found.finish_ns * (1 + 1e-5)
        busy[spec] = busy_ns(found.profile, {0}) / found.finish_ns
    assert busy[f"{MODEL},overlap=experts"] >= busy[MODEL]


def test_what_is_shorter_than_the_computing_beside_it_takes_no_time() -> None:
    fast = (Dimension(Topology.SWITCH, 8, 1e6, 1.0, "machine"),)
    assert answer(f"{MODEL},overlap=experts", fast).finish_ns < answer(MODEL, fast).finish_ns
    query = LatencyQuery(
        workload(f"{MODEL},overlap=experts"), fast, SystemSettings(*[("ring",)] * 4)
    )
    split = iteration_split(BACKEND, query, BACKEND.estimate(query))
    assert split.sent_ns is not None
    assert split.sent_ns[TimePart.EXPERT] > 0
    assert split.parts_ns.get(TimePart.EXPERT, 0) == 0


@pytest.mark.parametrize("levels", [{"machine": 8}, {"rack": 8}, {"rack": 4, "network": 2}])
def test_nothing_is_saved_where_no_two_machines_or_no_two_gpus_of_one_hold_experts(
    levels: dict[str, int],
) -> None:
    dims = dimensions(**levels)
    assert answer(f"{MODEL},dispatch=machine", dims) == answer(MODEL, dims)
