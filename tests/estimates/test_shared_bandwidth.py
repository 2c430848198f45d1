"""Does a network card that the GPUs of a machine share carry what it can, and no more?

The numbers are worked by hand for one all-reduce of S bytes over m machines of g GPUs, with a card
of B per machine. One ring of all n = m g GPUs: every GPU sends 2 (n-1)/n S, and one of them sends
it out of the machine. Rings per level: g rings of m GPUs send 2 (m-1)/m S/g each, at B/g.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from artist import run
from artist.cluster.fabric import Fabric, load_fabric, with_system
from artist.cluster.fabric_options import LevelOptions, with_options
from artist.estimates.dimensions import dimensions
from artist.estimates.query_from_text import on_placement
from artist.settings import load_scenario
from artist.units import GIB
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Workload
from artist.workload.models import workload

BACKEND = run.open_backend("analytical")
INSIDE = 1000.0
"""GiB/s of a GPU inside its machine."""


def fabric(rings: str = "per-level", shared_by: str | None = "machine", **rack: object) -> Fabric:
    """Machines of GPUs without latency; the machine's card has 1 GiB/s."""

    def level(name: str, bandwidth: float, **more: object) -> dict:
        links = {"topology": "Ring", "bandwidth_gib_per_s": bandwidth, "latency_ns": 0}
        return {"name": name, **links, "source": "a test", **more}

    return Fabric.model_validate(
        {
            "name": "shared",
            "summary": "a test",
            "levels": [
                level("machine", INSIDE),
                level("rack", 1.0, shared_by=shared_by, **rack),
                level("network", 1.0, shared_by=shared_by, **rack),
            ],
            # In one piece, and without time for sums in memory.
            "system": {
                "rings": rings,
                "preferred_dataset_splits": 1,
                "local_mem_bandwidth_gb_per_s": 1e12,
            },
        }
    )


def seconds(placement: str, on: Fabric) -> float:
    """Time of an all-reduce of 1 GiB."""
    phase = Phase(0, Collective.ALL_REDUCE, GIB)
    one = Workload("m", Parallelism.MICRO, (Layer("a", Phase(), Phase(), phase),))
    return on_placement(one, placement, on, {}).answer(BACKEND).estimate.finish_ns / 1e9


def granted(shape: object, on: Fabric) -> list[float]:
    """Bandwidth per GPU of each dimension of a shape."""
    return [dim.bandwidth_gib_per_s for dim in dimensions(shape, on)]  # type: ignore[arg-type]


# -- what a GPU is granted -------------------------------------------------------------


def test_each_gpu_of_a_machine_gets_its_part_of_the_card() -> None:
    assert granted(8, fabric()) == [INSIDE]  # the job does not use the card
    assert granted((8, 8), fabric()) == [INSIDE, 1 / 8]
    assert granted((2, 2, 2), fabric()) == [INSIDE, 1 / 2]  # its own GPUs count, no others
    assert granted((1, 1), fabric()) == [1.0]
    # Between racks too, it is the machine's card: by 4 GPUs, not by the 8 of a rack.
    assert granted(((4, 4), (4, 4)), fabric()) == [INSIDE, 1 / 4, 1 / 4]


def test_gpus_of_a_rack_can_share_its_uplink() -> None:
    on = fabric(shared_by=None)
    options = {"network": LevelOptions(shared_by="rack")}
    assert granted(((4, 4), (4, 4)), with_options(on, options)) == [INSIDE, 1.0, 1 / 8]


def test_gpus_of_all_sockets_share_the_card() -> None:
    scenario = load_scenario(
        None, {}, ["fabric.rack.bandwidth_gib_per_s=16", "fabric.rack.shared_by=machine"]
    )
    on = with_options(load_fabric("dally2025"), scenario.fabric_options)
    assert granted(((4, 4), (4, 4)), on) == [600, 600, 16 / 8]


def test_one_ring_has_the_card_alone() -> None:
    assert granted((8, 8), fabric("one")) == [1.0]
    assert granted((8, 8), fabric("one")) == granted((8, 8), fabric("one", shared_by=None))


def test_a_pair_gets_its_share_of_the_card_first() -> None:
    assert granted((4, 4), fabric(pair_share=0.6)) == [INSIDE, 0.15]


# -- what that costs -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("placement", "machines", "gpus"), [("4,4", 2, 4), ("8,8", 2, 8), ("2,2,2", 3, 2)]
)
def test_the_card_carries_one_all_reduce_either_way(
    placement: str, machines: int, gpus: int
) -> None:
    n = machines * gpus
    inside = 2 * (gpus - 1) / gpus / INSIDE
    per_level = inside + 2 * (machines - 1) / machines
    assert seconds(placement, fabric()) == pytest.approx(per_level, rel=1e-6)
    assert seconds(placement, fabric("one")) == pytest.approx(2 * (n - 1) / n, rel=1e-6)


@pytest.mark.parametrize("rings", ["per-level", "one"])
def test_half_the_bandwidth_doubles_the_bandwidth_term(rings: str) -> None:
    def at(bandwidth: float) -> float:
        options = LevelOptions(bandwidth_gib_per_s=bandwidth)
        return seconds("4,4", with_options(fabric(rings), {"rack": options}))

    # T(B) = rest + term / B, so the three differ by term / B and by twice that.
    assert at(0.25) - at(0.5) == pytest.approx(2 * (at(0.5) - at(1.0)), rel=1e-6)


def test_more_latency_costs_its_hops() -> None:
    def at(latency_ns: float) -> float:
        options = LevelOptions(latency_ns=latency_ns)
        return seconds("1,1,1", with_options(fabric(), {"rack": options}))

    assert at(1e6) - at(0) == pytest.approx(2 * (3 - 1) * 1e-3, rel=1e-6)  # 2 (n-1) steps


# -- is faster never slower? -----------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["resnet50", "alexnet", "bert-large", "vgg11"]),
    st.sampled_from(["8", "4,4", "3,2", "4,4/4,4", "8,8,8", "1/1"]),
    st.sampled_from(["a100", "t4", "hgx-h100", "h100-quantum2-spectrum4"]),
    st.sampled_from(["machine", "rack", "network"]),
    st.tuples(st.floats(0.1, 1000), st.floats(0.1, 1000)).map(sorted),
    st.tuples(st.floats(0, 1e5), st.floats(0, 1e5)).map(sorted),
)
def test_a_faster_network_never_makes_an_iteration_longer(
    model: str,
    placement: str,
    name: str,
    level: str,
    bandwidths: list[float],
    latencies: list[float],
) -> None:
    """ASTRA-sim is not monotonic in general; over these ranges nothing was seen that is not.

    Beside these random cases: 18,816 neighbours of a grid over five fabrics and seven models.
    """

    def finish_ns(**options: float) -> int:
        # Uplinks are left out: a flow may not be faster than the links that it crosses.
        without = [one.model_copy(update={"uplink": None}) for one in load_fabric(name).levels]
        fabric = load_fabric(name).model_copy(update={"levels": tuple(without)})
        on = with_options(fabric, {level: LevelOptions(**options)})
        question = on_placement(workload(model), placement, on, {})
        return question.answer(BACKEND).estimate.finish_ns

    slow, fast = bandwidths
    assert finish_ns(bandwidth_gib_per_s=fast) <= finish_ns(bandwidth_gib_per_s=slow)
    low, high = latencies
    assert finish_ns(latency_ns=low) <= finish_ns(latency_ns=high)


def test_a_system_setting_decides_whether_a_shared_card_can_be_queried() -> None:
    shared = {"rack": LevelOptions(shared_by="machine")}
    on = with_options(load_fabric("dally2025"), shared)
    aware = {"collective_optimization": "localBWAware"}
    question = on_placement(workload("resnet50"), "4+4,4+4", on, aware)
    assert question.asked[0].query.system.collective_optimization == "localBWAware"
    assert with_system(on, {"rings": "one"}).system.rings == "one"
