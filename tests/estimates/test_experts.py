"""What do all-to-alls of experts send outside machines?"""

from __future__ import annotations

from itertools import product

import pytest

from artist.astra.model.analytical import AnalyticalBackend
from artist.estimates.divided.layer_wise import LayerwiseBackend
from artist.estimates.group_members import shares_of_copies
from artist.estimates.query import Dimension, Estimate, LatencyQuery, SystemSettings, Topology
from artist.workload.layers import Scope
from artist.workload.models import workload

BACKEND = LayerwiseBackend(AnalyticalBackend())
MODEL = "mixtral-8x7b@expert=8,batch=2,microbatches=2,sequence=512"


def dimensions(**npus: int) -> tuple[Dimension, ...]:
    """Switches of so many GPUs, outside machines slow ones."""
    return tuple(
        Dimension(Topology.SWITCH, n, 500.0 if level == "machine" else 5.0, 500.0, level)
        for level, n in npus.items()
    )


def answer(model: str, dims: tuple[Dimension, ...]) -> Estimate:
    ring, straight = ("ring",) * len(dims), ("direct1",) * len(dims)
    system = SystemSettings(ring, ring, ring, straight)
    return BACKEND.estimate(LatencyQuery(workload(model), dims, system))


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


@pytest.mark.parametrize("levels", [{"machine": 8}, {"rack": 8}, {"rack": 4, "network": 2}])
def test_nothing_is_saved_where_no_two_machines_or_no_two_gpus_of_one_hold_experts(
    levels: dict[str, int],
) -> None:
    dims = dimensions(**levels)
    assert answer(f"{MODEL},dispatch=machine", dims) == answer(MODEL, dims)
