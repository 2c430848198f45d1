"""Is a backend queried for the right shapes, and are there no cliffs between them?"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest

import artist
from artist.cluster.fabric import Fabric, FabricSystem, load_fabric, with_system
from artist.cluster.placement_shape import (
    Shape,
    gpus_of,
    leaf_counts,
    parse_signature,
    regular_around,
)
from artist.errors import BackendSettingError, ConfigError, DivisionError
from artist.estimates.dimensions import asked_shapes, dimensions
from artist.estimates.divided.with_split import iteration_split
from artist.estimates.iteration_split import TimePart
from artist.estimates.latency_service import LatencyService
from artist.estimates.query_from_text import on_placement
from artist.run import build_fabric, open_backend
from artist.run.hardware import asked_fabric
from artist.workload.layers import Scope
from artist.workload.models import model_names, settings, workload

DALLY = load_fabric("dally2025")
T4 = load_fabric("t4")
RACK = T4.levels[1]


def asked(model: str, placement: str, **system: object) -> list[str]:
    question = on_placement(workload(model), placement, DALLY, system)
    return [labelled.signature for labelled in question.asked]


def test_a_regular_shape_is_queried_as_it_is() -> None:
    assert asked("resnet50", "8/8") == ["4+4/4+4"]


def test_an_uneven_shape_is_queried_as_wider_ones_neighbours_or_flat() -> None:
    assert asked("resnet50", "2/1") == ["1/1/1", "1,1/1,1", "1+1/1+1", "2/2"]
    assert asked("resnet50", "8/7", uneven="bounded") == ["3+3/3+3", "4+4/4+4"]
    assert asked("resnet50", "8/7", uneven="flat") == ["4+4/4+3"]


@pytest.mark.parametrize("model", ["resnet50", "bert-large", "gpt2@parallel=fsdp"])
@pytest.mark.parametrize("placement", ["8/7", "2/1", "8,7,3", "4,4/2"])
def test_the_slower_neighbour_counts(model: str, placement: str) -> None:
    bounded = {"uneven": "bounded"}
    question = on_placement(workload(model), placement, DALLY, bounded)
    alone = [
        artist.latency(model, one.signature, fabric="dally2025").finish_ns for one in question.asked
    ]
    assert len(alone) == 2
    whole = artist.latency(model, placement, fabric="dally2025", system=bounded)
    assert whole.finish_ns == max(alone)


def test_of_wider_shapes_the_fastest_counts() -> None:
    fabric = with_system(T4, {"rings": "per-level", "uneven": "wider"})
    question = on_placement(workload("vgg11"), "2,2,1", fabric, {})
    assert [one.signature for one in question.asked] == ["1,1,1,1,1", "2,2,2"]
    ends = [on_placement(workload("vgg11"), one.signature, fabric, {}) for one in question.asked]
    backend = open_backend("analytical")
    finish_ns = [one.answer(backend).estimate.finish_ns for one in ends]
    assert finish_ns[0] != finish_ns[1]
    assert question.answer(backend).estimate.finish_ns == min(finish_ns)


def test_another_refusal_is_an_error() -> None:
    # Halving-doubling does not work on 3 GPUs, and one neighbour alone is not an answer.
    backend = open_backend("analytical")
    question = on_placement(workload("resnet50"), "8/7", DALLY, {"all_reduce": "halvingDoubling"})
    with pytest.raises(BackendSettingError, match="power of"):
        question.answer(backend)


def test_recorded_tables_hold_the_queried_shapes(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text(
        "model,topologies,dim_types,units,bw_GBps,latency_ns,total_comp_us,finished_at_us\n"
    )
    scenario = artist.Scenario(racks=1, trace="tiny-batch", backend=f"recorded:{table}")
    assert _asked_system(scenario).uneven == "flat"
    assert _asked_system(scenario.model_copy(update={"uneven": "bounded"})).uneven == "bounded"
    assert _asked_system(artist.Scenario(racks=1)).uneven == "wider"


def _asked_system(scenario: artist.Scenario) -> FabricSystem:
    from artist.run.hardware import _system

    return with_system(DALLY, _system(scenario)).system


def test_a_setting_stands_in_one_place() -> None:
    scenario = artist.Scenario(trace="tiny-batch", uneven="flat", system={"uneven": "bounded"})
    with pytest.raises(ConfigError, match=r"uneven and system\.uneven are both set"):
        artist.simulate(scenario, cache=False)


def test_a_neighbour_that_a_divided_model_does_not_fit_is_left_out() -> None:
    # Groups of four do not fit on 3+3/3+3 GPUs twice, but on 4+4/4+4.
    with pytest.raises(BackendSettingError):
        artist.latency("gpt2@tensor=4", "3+3/3+3", fabric="dally2025")
    uneven, around = (
        artist.latency("gpt2@tensor=4", x, fabric="dally2025") for x in ("8/7", "8/8")
    )
    assert uneven.finish_ns == around.finish_ns


def test_the_scenario_comes_before_the_fabric() -> None:
    scenario = artist.Scenario(trace="tiny-poisson", racks=2, fabric="t4", machines_per_rack=2)
    plain = artist.simulate(scenario, cache=False).summary["comm_time_mean_s"]
    changed = scenario.model_copy(update={"collectives": "per-layer"})
    assert artist.simulate(changed, cache=False).summary["comm_time_mean_s"] != plain
    same = scenario.model_copy(update={"collectives": "bucketed"})
    assert artist.simulate(same, cache=False).summary["comm_time_mean_s"] == plain


def test_settings_of_a_fabric_have_no_place_on_bare_dimensions() -> None:
    from artist.estimates.query_from_text import on_dimensions

    columns = {"topology": "Ring", "npus": "4", "bandwidth": "1", "latency": "0"}
    with pytest.raises(ConfigError, match="bare dimensions have no fabric; give --placement"):
        on_dimensions(workload("resnet50"), columns, {"uneven": "flat"})


# -- one ring, and pairs of machines -------------------------------------------------


def test_one_ring_goes_through_all_gpus_at_the_outermost_level() -> None:
    for placement in ("4,3,1", "2,2,2,2"):
        shape = parse_signature(placement, T4.level_names)
        (ring,) = dimensions(shape, T4)
        assert (ring.level, ring.npus, ring.bandwidth_gib_per_s) == (
            "rack",
            8,
            RACK.bandwidth_gib_per_s,
        )
        assert asked_shapes(shape, T4) == (shape,)


def test_two_machines_alone_reach_a_share_of_the_bandwidth() -> None:
    pair_gib_per_s = RACK.bandwidth_gib_per_s * RACK.pair_share
    (ring,) = dimensions(parse_signature("4,3", T4.level_names), T4)
    assert ring.bandwidth_gib_per_s == pair_gib_per_s
    per_level = with_system(T4, {"rings": "per-level"})
    inner, outer = dimensions(parse_signature("4,4", T4.level_names), per_level)
    assert (inner.level, inner.npus, inner.bandwidth_gib_per_s) == ("machine", 4, 14.7)
    assert (outer.level, outer.npus, outer.bandwidth_gib_per_s) == ("rack", 2, pair_gib_per_s)


def test_wider_shapes_of_a_pair_of_machines_have_the_bandwidth_of_a_pair() -> None:
    fabric = with_system(T4, {"rings": "per-level", "uneven": "wider"})
    asked = on_placement(workload("vgg11"), "2,1", fabric, {}).asked
    assert [one.signature for one in asked] == ["1,1,1", "2,2"]
    outermost = {one.query.dimensions[-1].bandwidth_gib_per_s for one in asked}
    assert outermost == {RACK.bandwidth_gib_per_s * RACK.pair_share}


@pytest.mark.parametrize(("placement", "share"), [("4/4", T4.levels[2].pair_share), ("4,4/4", 1)])
def test_two_racks_reach_all_of_it_unless_they_hold_one_machine_each(
    placement: str, share: float
) -> None:
    (ring,) = dimensions(parse_signature(placement, T4.level_names), T4)
    assert ring.bandwidth_gib_per_s == T4.levels[2].bandwidth_gib_per_s * share


# -- no cliffs -----------------------------------------------------------------------

MOST = 0.3
"""One GPU more or less in a part moves the communication by at most this share."""

RARELY = 0.02
"""This share of the steps may move it by more: where two regular shapes differ by more."""

STEPS = 60
"""Random shapes per model."""

ROOM = (4, 2, 4, 3)
"""GPUs of a socket, sockets of a machine, machines of a rack, racks of the random shapes."""

FEWEST = 4
"""Two and three GPUs are regular shapes, and differ by more in ASTRA-sim itself."""


def a_shape(rng: random.Random, level: int = 3) -> Shape:
    if level == 0:
        return rng.randint(1, ROOM[0])
    parts = [a_shape(rng, level - 1) for _ in range(rng.randint(1, ROOM[level]))]
    return _sorted(parts)


def one_more(rng: random.Random, shape: Shape) -> Shape | None:
    """The shape with one more GPU in one of its parts; None if all sockets are full."""
    counts = leaf_counts(shape)
    with_room = [index for index, count in enumerate(counts) if count < ROOM[0]]
    if not with_room:
        return None
    chosen = rng.choice(with_room)
    leaves = iter(range(len(counts)))

    def changed(part: Shape) -> Shape:
        if isinstance(part, int):
            return part + (next(leaves) == chosen)
        return _sorted([changed(inner) for inner in part])

    return changed(shape)


def _sorted(parts: list[Shape]) -> Shape:
    return tuple(sorted(parts, key=lambda part: (gpus_of(part), leaf_counts(part)), reverse=True))


def _reduced(shape: Shape) -> Shape:
    while not isinstance(shape, int) and len(shape) == 1:
        shape = shape[0]
    return shape


@cache
def _service() -> LatencyService:
    return LatencyService(DALLY, open_backend("analytical"), workload)


def undivided() -> list[str]:
    """Models of which every GPU holds a replica, or a shard of one: they run on any shape."""
    chosen = {name: settings(name) for name in model_names()}
    return [name for name, x in chosen.items() if x.tensor * x.stages == 1 and x.experts is None]


@pytest.mark.slow
def test_one_gpu_more_or_less_is_hardly_ever_a_cliff() -> None:
    rng = random.Random("steps")
    steps = cliffs = 0
    for model in undivided():
        for _ in range(STEPS):
            shape = _reduced(a_shape(rng))
            more = one_more(rng, shape)
            if more is not None and gpus_of(shape) >= FEWEST:
                steps += 1
                cliffs += moved(model, shape, more) > MOST
    assert steps > 1000
    assert cliffs <= RARELY * steps, f"{cliffs} of {steps}"


@pytest.mark.parametrize("model", ["resnet50", "vgg11", "bert-large", "gpt2", "mobilenetv3"])
@pytest.mark.parametrize(
    ("placement", "more"),
    [
        ("8/7", "8/8"),
        ("8/6", "8/7"),
        ("8,8/8,7", "8,8/8,8"),
        ("8,7", "8,8"),
        ("8,4/8,4", "8,5/8,4"),
    ],
)
def test_nearly_full_machines_cost_as_full_ones(model: str, placement: str, more: str) -> None:
    shapes = [
        parse_signature(x, DALLY.level_names, DALLY.gpus_per_socket) for x in (placement, more)
    ]
    assert moved(model, *shapes) <= MOST


def moved(model: str, one: Shape, other: Shape) -> float:
    """The larger exposed communication of two shapes over the smaller, minus 1."""
    ends = [_service().estimate(model, shape).exposed_comm_ns for shape in (one, other)]
    return max(ends) / min(ends) - 1


def test_a_cliff_between_regular_shapes_stays() -> None:
    """No rule between them can smooth it: AlexNet hides its gradients on 2+2, not on 3+3."""
    two, three = (
        parse_signature(x, DALLY.level_names) for x in ("2+2,2+2,2+2,2+2", "3+3,3+3,3+3,3+3")
    )
    assert moved("alexnet", two, three) > 2


def test_the_flat_rule_is_a_cliff() -> None:
    """The other rules exist to avoid this cliff between 8/8 and 8/7."""
    flat = with_system(DALLY, {"uneven": "flat"})
    shape = parse_signature("8/7", DALLY.level_names, DALLY.gpus_per_socket)
    estimates = LatencyService(flat, open_backend("analytical"), workload)
    even = estimates.estimate("resnet50", regular_around(shape)).comm_ratio
    assert estimates.estimate("resnet50", shape).comm_ratio > 500 * even


def test_levels_with_equal_links_are_one_dimension_where_there_would_be_more_than_four() -> None:
    fabric = build_fabric(artist.Scenario(cluster="three-regions"))
    two_clusters = (((8, 8), (8, 8)), ((8, 8), (8, 8)))
    inside = dimensions(two_clusters, fabric)
    assert [(d.level, d.npus) for d in inside] == [
        ("machine", 8), ("rack", 2), ("cluster", 2), ("region", 2),
    ]  # fmt: skip
    across = dimensions((two_clusters, two_clusters), fabric)
    assert [(d.level, d.npus) for d in across] == [
        ("machine", 8), ("cluster", 4), ("region", 2), ("network", 2),
    ]  # fmt: skip


def test_levels_with_other_links_stay_apart() -> None:
    """Then the error names ASTRA-sim's own limit on dimensions."""
    fabric = build_fabric(artist.Scenario(cluster="three-regions"))
    levels = [
        level.model_copy(update={"latency_ns": level.latency_ns + 100.0 * number})
        for number, level in enumerate(fabric.levels)
    ]
    unlike = fabric.model_copy(update={"levels": tuple(levels)})
    two_clusters = (((8, 8), (8, 8)), ((8, 8), (8, 8)))
    assert len(dimensions((two_clusters, two_clusters), unlike)) == 5


def sent_ns(model: str, placement: str, fabric: str) -> dict[str, int]:
    split = artist.latency(model, placement, fabric=fabric, split=True).split
    assert split is not None and split.sent_ns is not None
    return {part.value: ns for part, ns in split.sent_ns.items()}


@pytest.mark.parametrize("fabric", ["t4", "a100", "h100-quantum2-spectrum4"])
def test_tensor_groups_do_not_pay_for_machines_that_they_do_not_leave(fabric: str) -> None:
    inside, across = (sent_ns("gpt3-xl@tensor=4", placed, fabric) for placed in ("4", "4,4"))
    assert inside["tensor"] == across["tensor"]


def test_replicas_share_the_card_of_a_machine() -> None:
    """Four rings of two leave each DGX A100: each has a quarter of 1.6 Tbit/s (50 GB/s).

    A ring of n sends 2 (n - 1)/n of its bytes; latency and memory add a tenth.
    """
    bytes_of_a_gpu = 2 * 1_315_723_264 / 4
    at_least_ns = 2 * (1 / 2) * bytes_of_a_gpu / 50
    for model, placed in (("gpt3-xl@tensor=4", "4,4"), ("gpt3-xl@tensor=4", "4/4")):
        assert at_least_ns < sent_ns(model, placed, "a100")["data"] < 1.15 * at_least_ns


def test_a_flow_between_t4_machines_has_no_more_than_a_flow() -> None:
    """Four flows of 5 Gbit/s leave room on a card of 50; ten would not."""
    two = parse_signature("4,4", T4.level_names, None, 4)
    inside, between = dimensions(two, T4, in_groups=True)
    assert (inside.npus, inside.level, between.npus, between.level) == (4, "machine", 2, "rack")
    assert between.bandwidth_gib_per_s == RACK.bandwidth_gib_per_s * RACK.pair_share
    ten = parse_signature("10,10", T4.level_names, None, None)
    assert dimensions(ten, T4, in_groups=True)[1].bandwidth_gib_per_s == min(
        RACK.bandwidth_gib_per_s * RACK.pair_share, 5.82 / 10
    )
    (ring,) = dimensions(two, T4)
    assert (ring.npus, ring.level) == (8, "rack")


@pytest.mark.parametrize("placed", ["4,4,4", "2,2,2"])
def test_a_job_whose_groups_do_not_fit_its_machines_is_one_ring(placed: str) -> None:
    """Two stages of six or of three GPUs: a border runs through the second machine."""
    halves = "gpt1@batch=88,stages=2,microbatches=8"
    question = on_placement(workload(halves), placed, T4, {})
    ((ring,),) = (asked.query.dimensions for asked in question.asked)
    assert ring.level == "rack"
    assert artist.latency(halves, placed, fabric="t4").comm_ratio > 0


def test_a_divided_job_with_one_gpu_in_each_machine_is_one_ring() -> None:
    spread = parse_signature("1,1/1,1", T4.level_names, None, 4)
    assert dimensions(spread, T4, in_groups=True) == dimensions(spread, T4)


@pytest.mark.parametrize("fabric", ["h100-quantum2-spectrum4", "a100"])
def test_tensor_groups_stay_in_machines_on_an_uneven_placement(fabric: str) -> None:
    """Machines of 8 and 4 cost what machines of 4 do; not so under `flat`."""
    spec = "gpt3-xl@tensor=4,pipeline=2,batch=8,microbatches=8"
    mixed, fours = (artist.latency(spec, x, fabric=fabric) for x in ("8,4,4", "4,4,4,4"))
    flat = artist.latency(spec, "8,4,4", fabric=fabric, system={"uneven": "flat"})
    assert mixed.finish_ns == fours.finish_ns < 0.95 * flat.finish_ns


def test_all_to_alls_go_straight_unless_a_ring_is_configured() -> None:
    """A GPU sends (n - 1)/n of its bytes, and a ring forwards n/2 times as much."""
    fabric = load_fabric("h100-quantum2-spectrum4")
    ring = with_system(fabric, {"all_to_all": "ring"})
    assert with_system(ring, {"all_to_all": "direct1"}).model_dump() == fabric.model_dump()
    made = workload("gpt2-moe@batch=64")
    (exchange,) = {x.forward.comm_bytes for x in made.layers if x.forward.scope is Scope.EXPERT}
    exchanges, messages = 4 * 6, 7 * fabric.system.preferred_dataset_splits  # six blocks of experts
    hops_ns = 2 * fabric.levels[0].latency_ns
    closed_ns = exchanges * ((7 / 8) * exchange / 450 + messages * hops_ns)

    def sent(on_fabric: Fabric) -> int:
        question = on_placement(made, "8", on_fabric, {})
        backend = open_backend("analytical")
        split = iteration_split(backend, question.asked[0].query, question.answer(backend).estimate)
        assert split.sent_ns is not None
        return split.sent_ns[TimePart.EXPERT]

    assert sent(fabric) == pytest.approx(closed_ns, rel=0.01)
    assert sent(ring) == pytest.approx(4 * sent(fabric), rel=0.01)
    scenario = artist.Scenario(fabric=fabric.name, system={"all_to_all": "ring"})
    assert asked_fabric(scenario, fabric) == ring


def test_a_divided_model_is_not_queried_on_one_gpu() -> None:
    """On one GPU it would compute only its share of the work."""
    service = LatencyService(T4, open_backend("analytical"), workload)
    with pytest.raises(DivisionError, match="1 GPU cannot be divided into tensor=2"):
        service.estimate("gpt3-xl@tensor=2", (1,))
