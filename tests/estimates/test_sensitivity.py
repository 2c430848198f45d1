"""Does a sweep over a network ask about the values that it names, and say where they hurt?"""

from __future__ import annotations

import pytest

from artist import run
from artist.cluster.fabric import Fabric, load_fabric
from artist.cluster.fabric_options import LevelOptions, with_options
from artist.errors import ConfigError
from artist.estimates.query import Estimate, LatencyQuery
from artist.estimates.query_from_text import on_placement
from artist.estimates.sensitivity import (
    LevelShares,
    Point,
    RememberingBackend,
    asking,
    level_fabrics,
    level_shares,
    little_gained,
    parse_sweep,
    sweep_fabric,
    where_it_hurts,
)
from artist.workload.models import workload

DALLY = load_fabric("dally2025")
BACKEND = run.open_backend("analytical")
RESNET = workload("resnet50")


class Counting:
    """The analytical backend, and how often it was asked."""

    source = BACKEND.source

    def __init__(self) -> None:
        self.asked = 0

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        self.asked += 1
        return BACKEND.estimate(query, profile=profile)


def swept(text: str, *placements: str, points: int = 5) -> list[Point]:
    ask = asking(lambda on, one: on_placement(RESNET, one, on, {}), BACKEND, lambda _, it: it)
    return sweep_fabric(parse_sweep(text, points), DALLY, placements, ask)


# -- which values ----------------------------------------------------------------------


def test_ends_a_factor_of_more_than_ten_apart_get_a_logarithmic_scale() -> None:
    wide = parse_sweep("fabric.network.latency=1us..100us", 5)
    assert wide.values == (1, 3.162, 10, 31.62, 100)
    assert wide.logarithmic
    narrow = parse_sweep("fabric.network.latency=10us..100us", 4)
    assert narrow.values == (10, 40, 70, 100)
    assert not narrow.logarithmic
    from_nothing = parse_sweep("fabric.network.latency_ns=0..100", 3)
    assert (from_nothing.values, from_nothing.logarithmic) == ((0, 50, 100), False)


def test_values_are_in_the_unit_that_was_written_first() -> None:
    mixed = parse_sweep("fabric.rack.bandwidth=500Mbit/s..2Gbit/s", 2)
    assert (mixed.values, mixed.setting) == ((500, 2000), "rack bandwidth, Mbit/s")
    listed = parse_sweep("fabric.rack.bandwidth=100Gbit/s,25Gbit/s,12.5GB/s", 2)
    assert listed.values == (25, 100)
    assert parse_sweep("fabric.rack.latency_ns=1..2", 2).setting == "rack latency, ns"
    assert parse_sweep("fabric.rack.pair_share=0.5..1", 2).setting == "rack pair_share"


@pytest.mark.parametrize(
    ("text", "points", "words"),
    [
        ("racks=1..4", 5, "expected fabric.LEVEL.KEY=FROM..TO"),
        ("fabric.network.latency", 5, "expected fabric.LEVEL.KEY=FROM..TO"),
        (
            "fabric.network.topology=Ring,Switch",
            5,
            "'topology' is not a number of a level; known: ",
        ),
        ("fabric.network.latency=1..100us", 5, "needs a unit"),
        ("fabric.network.latency=1us..", 5, "a number with a unit"),
        ("fabric.network.latency=100us..1us", 5, "FROM must be less than TO"),
        ("fabric.network.latency_ns=-1..5", 5, "expected at least 0"),
        ("fabric.network.pair_share=0.5..2", 5, "expected at most 1"),
        ("fabric.network.latency=1us..9us", 1, "--points 1: expected 2 to 1000"),
        ("fabric.network.latency=1us..9us", 1001, "--points 1001: expected 2 to 1000"),
        ("fabric.moon.latency=1us..9us", 5, "has the levels socket, machine, rack, network"),
    ],
)
def test_a_bad_sweep_has_its_sentence(text: str, points: int, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        swept(text, "8/8", points=points)
    assert words in str(caught.value)


# -- what they cost --------------------------------------------------------------------


def test_each_point_is_the_estimate_on_the_changed_fabric() -> None:
    for point in swept("fabric.network.latency=1us..100us", "4/4", "4,4"):
        options = {"network": LevelOptions(latency_ns=1000 * point.value)}
        question = on_placement(RESNET, point.placement, with_options(DALLY, options), {})
        estimate = question.answer(BACKEND).estimate
        assert point.iteration_s == pytest.approx(estimate.finish_ns / 1e9, rel=1e-12)
        assert point.comm_ratio == pytest.approx(estimate.comm_ratio, rel=1e-12)


def test_the_present_value_is_among_the_points_and_the_measure_of_slowdown() -> None:
    points = swept("fabric.network.latency=1us..100us", "4/4", "4,4")
    assert [p.value for p in points if p.placement == "4/4"] == [1, 3.162, 10, 31.62, 50, 100]
    assert [p.value for p in points if p.present] == [50, 50]
    now = next(p for p in points if p.present)
    for point in points[:6]:
        assert point.slowdown == pytest.approx(point.iteration_s / now.iteration_s, rel=1e-12)
    assert all(p.slowdown == 1 for p in points[6:])  # inside a rack there is no such network


def test_a_calibration_counts_in_every_point() -> None:
    def ask(on: Fabric, placement: str) -> Estimate:
        from artist.estimates.calibration import with_constant_share

        question = on_placement(RESNET, placement, on, {})
        return with_constant_share(question.answer(BACKEND).estimate, 0.5)

    plain = swept("fabric.network.latency=1us..100us", "4/4")
    sweep = parse_sweep("fabric.network.latency=1us..100us", 5)
    for point, without in zip(sweep_fabric(sweep, DALLY, ["4/4"], ask), plain, strict=True):
        assert point.comm_ratio == pytest.approx(without.comm_ratio + 0.5)


def test_equal_queries_are_made_once() -> None:
    counting = Counting()
    backend = RememberingBackend(counting)
    ask = asking(lambda on, one: on_placement(RESNET, one, on, {}), backend, lambda _, it: it)
    sweep = parse_sweep("fabric.network.latency=1us..100us", 5)
    sweep_fabric(sweep, DALLY, ["4,4"], ask)
    assert counting.asked == 1  # in a rack, all six values are one query
    sweep_fabric(sweep, DALLY, ["4/4"], ask)
    assert counting.asked == 1 + 6


def test_the_sentence_says_where_it_hurts() -> None:
    sweep = parse_sweep("fabric.network.latency=1us..100us", 5)

    def point(value: float, comm_s: float, slowdown: float) -> Point:
        return Point("4/4", value, value == 50, 1.0, comm_s, slowdown)

    points = [point(1, 0.0, 0.8), point(50, 0.25, 1), point(80, 0.37, 1.099), point(90, 0.4, 1.1)]
    assert where_it_hurts(sweep, points) == [
        "4/4: at 50 us, the present value, 20.0 % of an iteration is communication; at 90 us "
        "it takes 1.10 times as long; 1 us saves 20 %"
    ]
    assert where_it_hurts(sweep, points[1:3])[0].endswith(
        "no value in this range makes it 10 % slower"
    )
    same = [point(1, 0.25, 1), point(50, 0.25, 1)]
    assert where_it_hurts(sweep, same)[0].endswith("nothing in this range changes that")


# -- why more bandwidth gains little ------------------------------------------------------


def shares(level: str, model: str = "resnet50", **network: float) -> LevelShares:
    fabric = with_options(DALLY, {level: LevelOptions(**network)}) if network else DALLY
    ask = asking(
        lambda on, one: on_placement(workload(model), one, on, {}), BACKEND, lambda _, it: it
    )
    return level_shares(fabric, level, "8/8", ask)


def test_communication_is_split_into_hops_and_bytes_of_a_level() -> None:
    slow = shares("network", bandwidth_gib_per_s=0.5, latency_ns=0)
    assert slow.hops == 0
    assert slow.bytes > 0.9
    small = shares("network", model="mobilenetv3")  # 50 us a hop, few parameters
    assert small.hops > 0.9
    assert small.bytes < 0.05
    # All of a level's share without hops is what the bytes alone take.
    ask = asking(lambda on, one: on_placement(RESNET, one, on, {}), BACKEND, lambda _, it: it)
    now, hopless, weightless, neither = (
        ask(one, "8/8").comm_ratio for one in (DALLY, *level_fabrics(DALLY, "network"))
    )
    split = shares("network")
    assert split == pytest.approx((1 - hopless / now, 1 - weightless / now, neither / now))
    assert split.shared + sum(split) == pytest.approx(1)


@pytest.mark.parametrize(
    ("split", "words"),
    [
        ((0.85, 0.07, 0.08), "85 % is latency of hops, 7 % bytes and 8 % other levels"),
        (
            (0.1, 0.05, 0.25),
            "10 % is latency of hops, 5 % bytes, 25 % other levels and 60 % would go only with "
            "hops and bytes together",
        ),
        (
            (0.6, 0.5, 0.0),
            "50 % is latency of hops, 40 % bytes, 0 % other levels and 10 % would go with either "
            "hops or bytes alone",
        ),
    ],
)
def test_the_parts_of_communication_add_up(split: tuple[float, ...], words: str) -> None:
    assert str(LevelShares(*split)) == words


def test_only_a_small_gain_of_bandwidth_is_explained() -> None:
    text = "fabric.network.bandwidth=400GiB/s,800GiB/s"
    sweep = parse_sweep(text, 2)
    points = [
        Point(name, value, value == 400, 1.0, comm_s, slowdown)
        for name, value, comm_s, slowdown in (
            ("8/8", 400, 0.5, 1.0), ("8/8", 800, 0.49, 0.99), ("4,4", 400, 0.5, 1.0),
            ("4,4", 800, 0.4, 0.93), ("1", 400, 0.0, 1.0), ("1", 800, 0.0, 1.0),
        )
    ]  # fmt: skip
    assert little_gained(sweep, points) == ["8/8"]
    assert little_gained(parse_sweep("fabric.network.latency=1us,2us", 2), points) == []
