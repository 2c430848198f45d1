"""Curves: at share 1 the estimate itself, the measured table, and what lies between the points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest
from contentions import curve

from artist.cluster.fabric import load_fabric, with_system
from artist.cluster.placement_shape import Shape, parse_signature
from artist.estimates.calibration import CalibratedModels, Calibration, choose_calibration
from artist.estimates.dimensions import asked_shapes
from artist.estimates.latency_service import Asker, LatencyService
from artist.estimates.query import Burst, Estimate, LatencyBackend, LatencyQuery
from artist.network.demand.curves import SHARES, Curves, busy_ns
from artist.run import open_backend
from artist.workload.models import workload

# How the table was asked: before buckets, with uneven shapes as flat rings (decision 15).
AS_THEN: Mapping[str, str] = {"uneven": "flat", "collectives": "per-layer"}
TABLE_SHARES = (1.0, 3 / 4, 1 / 2, 1 / 4, 1 / 8, 1 / 16)

# An iteration at these shares over an iteration alone. The last column is what a linear stretch
# of the busy time would give at 1/2. dally2025 with its calibration. Its row of resnet50 then had
# a compute scale of .026434702 and no constant share.
TABLE = [
    ("dally2025", "resnet50", "8/8", (1, 1.007, 1.020, 1.059, 1.137, 1.294), 1.917),
    ("dally2025", "vgg11", "8,8", (1, 1.102, 1.305, 1.915, 3.134, 5.573), 1.382),
    ("dally2025", "bert-large", "8,8/8,8", (1, 1.019, 1.057, 1.170, 1.397, 1.850), 1.611),
    ("dally2025", "mobilenetv3", "4,4", (1, 1.037, 1.111, 1.334, 1.780, 2.671), 1.834),
    ("dally2025", "vgg11", "5,3", (1, 1.188, 1.565, 2.695, 4.956, 9.477), 1.783),
    ("h100-quantum2-spectrum4", "vgg11", "5,3", (1, 1.000, 1.000, 1.534, 2.715, 5.075), 1.315),
    ("h100-quantum2-spectrum4", "resnet50", "8/8", (1, 1, 1, 1, 1, 1), 1.071),
]


def calibration_then(fabric_name: str) -> Calibration | None:
    calibration = choose_calibration("auto", load_fabric(fabric_name))
    if calibration is None:
        return None
    then = {"compute_scale": 0.026434702, "constant_share": 0.0}
    rows = dict(calibration.models)
    rows["resnet50"] = rows["resnet50"].model_copy(update=then)
    return calibration.model_copy(update={"models": rows})


@pytest.mark.parametrize(("fabric_name", "model", "signature", "ratios", "linear"), TABLE)
def test_the_measured_table(
    fabric_name: str, model: str, signature: str, ratios: tuple[float, ...], linear: float
) -> None:
    fabric = with_system(load_fabric(fabric_name), AS_THEN)
    models = CalibratedModels(calibration_then(fabric_name))
    backend, constant = open_backend("analytical"), models.constant_share
    asker = Asker(fabric, backend, models.workload, constant_share_of=constant)
    curves = Curves(asker, shares=TABLE_SHARES)
    placed = parse_signature(signature, fabric.level_names, fabric.gpus_per_socket)
    outermost = frozenset({"network" if "/" in signature else "rack"})
    asked = curves.curve(model, placed, outermost)
    alone = 1 + asked.comm_ratio(1.0)
    stretched = [(1 + asked.comm_ratio(share)) / alone for share in TABLE_SHARES]
    assert stretched == pytest.approx(ratios, abs=6e-4)
    assert (alone + asked.busy_ratio(1.0)) / alone == pytest.approx(linear, abs=6e-4)


def curves_on(fabric_name: str, **more: object) -> Curves:
    fabric = load_fabric(fabric_name)
    models = CalibratedModels(choose_calibration("auto", fabric))
    backend, constant = open_backend("analytical"), models.constant_share
    asker = Asker(fabric, backend, models.workload, constant_share_of=constant)
    return Curves(asker, **more)  # type: ignore[arg-type]


def placed(fabric_name: str, signature: str) -> Shape:
    fabric = load_fabric(fabric_name)
    return parse_signature(signature, fabric.level_names, fabric.gpus_per_socket)


PLACEMENTS = [
    ("dally2025", "resnet50", "8/8"),
    ("dally2025", "vgg11", "8,8"),
    ("dally2025", "bert-large", "5,3/2"),
    ("h100-quantum2-spectrum4", "alexnet", "8,8"),
    ("t4", "vgg16", "1,1"),
    ("a100", "gpt2", "8,8"),
]


@pytest.mark.parametrize(("fabric_name", "model", "signature"), PLACEMENTS)
def test_at_share_one_it_is_the_estimate_to_the_byte(
    fabric_name: str, model: str, signature: str
) -> None:
    fabric = load_fabric(fabric_name)
    models = CalibratedModels(choose_calibration("auto", fabric))
    service = LatencyService(
        fabric, open_backend("analytical"), models.workload, None, models.constant_share
    )
    shape = placed(fabric_name, signature)
    estimate = service.estimate(model, shape)
    asked = curves_on(fabric_name).curve(model, shape, frozenset({"rack", "network"}))
    assert asked.comm_ratio(1.0) == estimate.comm_ratio
    assert asked.source == estimate.source
    assert asked.traffic.bytes_per_dimension == estimate.bytes_per_dimension


@pytest.mark.parametrize(("fabric_name", "model", "signature"), PLACEMENTS)
def test_between_the_points_it_is_within_one_percent_of_an_iteration(
    fabric_name: str, model: str, signature: str
) -> None:
    shape, outside = placed(fabric_name, signature), frozenset({"rack", "network"})
    few = curves_on(fabric_name).curve(model, shape, outside)
    between = tuple((one * other) ** 0.5 for one, other in pairwise(SHARES))
    many = curves_on(fabric_name, shares=(1.0, *between)).curve(model, shape, outside)
    for share in between:
        ratio = (1 + few.comm_ratio(share)) / (1 + many.comm_ratio(share))
        assert ratio == pytest.approx(1.0, abs=0.01), share


@pytest.mark.parametrize(("fabric_name", "model", "signature"), PLACEMENTS)
def test_less_bandwidth_is_never_faster(fabric_name: str, model: str, signature: str) -> None:
    shape = placed(fabric_name, signature)
    asked = curves_on(fabric_name).curve(model, shape, frozenset({"rack", "network"}))
    ratios = [asked.comm_ratio(share) for share in SHARES]
    assert ratios == sorted(ratios)


def test_a_job_that_crosses_no_contended_level_has_one_point() -> None:
    asked = curves_on("dally2025").curve("vgg11", placed("dally2025", "4+4"), frozenset({"rack"}))
    assert asked.shares == (1.0,)
    assert asked.comm_ratio(0.3) == asked.comm_ratio(1.0)
    assert asked.busy_ratio(0.3) == 0.0


def test_each_curve_is_computed_once() -> None:
    asked = []

    def workload_of(model: str) -> object:
        asked.append(model)
        return workload(model)

    curves = Curves(Asker(load_fabric("t4"), open_backend("analytical"), workload_of))  # type: ignore[arg-type]
    shape = placed("t4", "1,1")
    first = curves.curve("resnet50", shape, frozenset({"rack"}))
    assert curves.curve("resnet50", shape, frozenset({"rack"})) is first
    assert asked == ["resnet50"]


def test_for_an_uneven_shape_only_the_decisive_query_computes_traffic() -> None:
    fabric, shape = load_fabric("leaf-spine"), placed("leaf-spine", "4,4,3,1/2,1")
    service = LatencyService(fabric, open_backend("analytical"), workload)
    service.estimate("resnet50", shape)
    backend = Profiles(service.asker.backend)
    curves = Curves(replace(service.asker, backend=backend), service.known_query)
    others = Curves(service.asker)
    contended = frozenset({"network"})
    assert curves.sent("resnet50", shape, contended) == others.sent("resnet50", shape, contended)
    assert backend.profiles == 1 < len(asked_shapes(shape, fabric))


class Profiles:
    """A backend that counts how often a profile is asked for."""

    def __init__(self, backend: LatencyBackend) -> None:
        self.source, self.profiles = backend.source, 0
        self._backend = backend

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        self.profiles += profile
        return self._backend.estimate(query, profile=profile)


def test_points_are_joined_in_one_over_the_share_and_extended_beyond_the_last() -> None:
    line = curve((1.0, 0.5, 0.25), (1.0, 2.0, 6.0), (0.0, 0.0, 0.0))
    for share, expected in ((1.0, 1.0), (1 / 1.5, 1.5), (0.5, 2.0), (1 / 3, 4.0), (0.125, 14.0)):
        assert line.comm_ratio(share) == pytest.approx(expected)


def test_time_in_which_two_dimensions_overlap_counts_once() -> None:
    profile = (Burst(0, 0, 10, 1), Burst(1, 5, 10, 1), Burst(0, 12, 1, 1), Burst(1, 20, 5, 1))
    assert busy_ns(profile, {0}) == 11
    assert busy_ns(profile, {1}) == 15
    assert busy_ns(profile, {0, 1}) == 20
    assert busy_ns(profile, ()) == 0
