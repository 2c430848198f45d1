import math

import pytest

from artist.astra.model.analytical import AnalyticalBackend
from artist.calibrate.communication_shares import Scales, ShareModel
from artist.calibrate.fit_models import FittedModel, calibrate, calibration_of
from artist.calibrate.fit_scales import Target, pattern_search, with_constant
from artist.calibrate.measurements import (
    Measurement,
    MeasurementSet,
    default_measurements,
    read_measurements,
)
from artist.cluster.fabric import load_fabric
from artist.errors import ConfigError
from artist.estimates.calibration import ModelCalibration, load_calibration
from artist.estimates.latency_service import single_gpu_ns
from artist.io.shipped import resource
from artist.workload.models import workload

FABRIC = load_fabric("dally2025")
BACKEND = AnalyticalBackend()
TABLE1 = default_measurements()


def _measured(*rows: Measurement) -> MeasurementSet:
    return MeasurementSet("m", "sha256:0", "a test", "", "", "", rows)


@pytest.fixture(scope="module")
def fitted() -> dict[str, FittedModel]:
    return {model: calibrate(model, TABLE1, FABRIC, BACKEND) for model in TABLE1.models()}


@pytest.mark.slow
@pytest.mark.parametrize("model", TABLE1.models())
def test_the_machine_column_of_table_1_is_met_within_a_percent(
    model: str, fitted: dict[str, FittedModel]
) -> None:
    result = fitted[model]
    assert result.error <= 0.01
    machine, rack, network = result.levels
    assert (machine.placement, rack.placement, network.placement) == ("4+4", "4,4", "4/4")
    assert machine.role == "fitted"
    # The fit starts from the catalogue's model, whose share is far below the measured one.
    assert machine.uncalibrated_percent < machine.one_level_percent / 10
    assert machine.one_level_deviation == pytest.approx(0, abs=0.01)
    assert machine.simulated_percent == pytest.approx(machine.measured_percent, rel=0.01)
    # GPUs that lie farther apart never communicate faster.
    assert machine.simulated_percent < rack.simulated_percent < network.simulated_percent


@pytest.mark.slow
def test_the_shipped_calibration_is_what_the_command_writes(fitted: dict[str, FittedModel]) -> None:
    shipped = load_calibration("dally2025-table1")
    assert shipped is not None
    assert shipped.models == {one.model: one.calibration for one in fitted.values()}
    ours = list(fitted.values())
    assert shipped == calibration_of("dally2025-table1", ours, TABLE1, FABRIC, BACKEND)


def test_the_shipped_steps_of_an_h100_are_what_the_command_writes() -> None:
    steps = read_measurements(resource("astra_configs", "calibrations", "h100-eager.csv"))
    assert len({model.partition("@")[0] for model in steps.models()}) == 24
    ours = [calibrate(model, steps, FABRIC, BACKEND) for model in steps.models()]
    shipped = load_calibration("h100-eager")
    assert shipped == calibration_of("h100-eager", ours, steps, FABRIC, BACKEND)
    assert (shipped.fabric, shipped.asked) == ("", {})  # no fabric was simulated for it
    for row in steps.rows:
        scaled = shipped.apply(workload(row.model))
        assert single_gpu_ns(scaled) == pytest.approx(1e6 * row.compute_ms)


@pytest.mark.parametrize("model", TABLE1.models())
def test_the_exact_share_is_where_rounding_goes(model: str) -> None:
    """If computing takes seconds, rounding to microseconds changes nothing: both shares agree."""
    shares = ShareModel(workload(model), "4,4", FABRIC, BACKEND)
    slow = Scales(100.0)
    assert shares.simulated(slow) == pytest.approx(shares.exact(slow), rel=1e-3)
    for scales in (slow, Scales(0.05), Scales(0.05, 2.0)):
        assert shares.rounded(scales) == pytest.approx(shares.simulated(scales), rel=1e-12)


def test_the_share_falls_with_compute() -> None:
    shares = ShareModel(workload("resnet50"), "4,4", FABRIC, BACKEND)
    values = [shares.exact(Scales(10.0**power)) for power in range(-6, 4)]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) == len(values)


def _simulated(model: str, truth: Scales, *places: str) -> MeasurementSet:
    """Measurements of a machine that is exactly the model with these numbers."""
    shares = {p: ShareModel(workload(model), p, FABRIC, BACKEND).exact(truth) for p in places}
    return _measured(*(Measurement(model, place, share) for place, share in shares.items()))


@pytest.mark.parametrize(
    ("model", "truth", "places"),
    [
        ("resnet50", Scales(0.4, constant=0.1), ("4+4", "4/4")),
        ("resnet50", Scales(0.4, constant=0.1), ("4+4", "4,4", "4/4")),
        ("alexnet", Scales(0.3, constant=0.05), ("4+4", "4,4", "4/4")),
        ("vgg11", Scales(2.0, constant=0.02), ("4,4", "4/4")),
    ],
)
def test_several_levels_find_a_constant_and_the_compute_scale(
    model: str, truth: Scales, places: tuple[str, ...]
) -> None:
    fitted = calibrate(model, _simulated(model, truth, *places), FABRIC, BACKEND).calibration
    assert fitted.compute_scale == pytest.approx(truth.compute, rel=0.01)
    assert fitted.constant_share == pytest.approx(truth.constant, rel=0.01)
    assert fitted.comm_scale == 1


def test_no_constant_is_found_where_there_is_none() -> None:
    measured = _simulated("resnet18", Scales(0.2), "4+4", "4,4", "4/4")
    fitted = calibrate("resnet18", measured, FABRIC, BACKEND).calibration
    assert fitted.compute_scale == pytest.approx(0.2, rel=0.01)
    assert fitted.constant_share == pytest.approx(0, abs=1e-5)


@pytest.mark.slow
def test_levels_that_are_all_alike_fix_no_constant() -> None:
    """A constant with any large compute scale would meet them. So bytes are scaled instead."""
    rows = [Measurement("resnet50", place, 0.12) for place in ("4+4", "4,4")]
    assert calibrate("resnet50", _measured(*rows), FABRIC, BACKEND).calibration.constant_share == 0


def test_bytes_are_not_scaled_where_a_constant_meets_the_levels_within_5_percent() -> None:
    measured = _simulated("resnet50", Scales(0.05, 1.02), "4+4", "4,4", "4/4")
    fitted = calibrate("resnet50", measured, FABRIC, BACKEND)
    assert fitted.calibration.comm_scale == 1
    assert 0 < fitted.error < 0.05


def test_the_order_of_the_measurements_does_not_matter() -> None:
    measured = _simulated("resnet50", Scales(0.4, constant=0.1), "4/4", "4+4")
    fitted = calibrate("resnet50", measured, FABRIC, BACKEND).calibration
    assert fitted.constant_share == pytest.approx(0.1, rel=0.01)


@pytest.mark.slow
def test_the_row_of_resnet50_is_met_in_every_cell(fitted: dict[str, FittedModel]) -> None:
    levels = fitted["resnet50"].levels
    assert [level.measured_percent for level in levels] == [12, 12, 38]
    assert all(abs(level.deviation or 1) < 0.15 for level in levels)
    # Before: the compute scale alone absorbed the 12 %, and the network showed.
    assert levels[2].one_level_percent > 1000


@pytest.mark.slow
@pytest.mark.parametrize("model", TABLE1.models())
def test_table_1_is_fitted_in_all_columns_where_two_numbers_meet_them_all(
    model: str, fitted: dict[str, FittedModel]
) -> None:
    """The rule of docs/calibration.md: all three columns within 15 %, or the machine's alone."""
    rows = TABLE1.of(model)
    targets = [
        Target(
            row.placement, row.share, ShareModel(workload(model), row.placement, FABRIC, BACKEND)
        )
        for row in rows
    ]
    scales = with_constant(targets)
    usable = all(abs(one.model.exact(scales) / one.share - 1) <= 0.15 for one in targets)
    assert [row.fitted for row in rows] == [True, usable, usable]
    assert usable == (fitted[model].calibration.constant_share > 0) == (model == "resnet50")


def test_several_measurements_find_both_scales() -> None:
    """Shares simulated with known scales lead back to them."""
    truth = Scales(0.05, 1.7)
    measured = _simulated("alexnet", truth, "4+4", "4,4", "4/4")
    result = calibrate("alexnet", measured, FABRIC, BACKEND)
    assert result.calibration.constant_share == 0
    assert result.calibration.compute_scale == pytest.approx(truth.compute, rel=0.01)
    assert result.calibration.comm_scale == pytest.approx(truth.comm, rel=0.01)
    assert result.error <= 0.01
    assert len(result.calibration.fit) == 3


def test_contradicting_measurements_leave_residuals() -> None:
    rows = [Measurement("alexnet", "4+4", 0.5), Measurement("alexnet", "4/4", 0.01)]
    result = calibrate("alexnet", _measured(*rows), FABRIC, BACKEND)
    assert result.error > 0.1
    assert {point.placement for point in result.calibration.fit} == {"4+4", "4/4"}


def test_pattern_search_finds_a_minimum_in_a_bent_valley() -> None:
    def cost(point: tuple[float, float]) -> float:
        x, y = point
        return (1 - x) ** 2 + 5 * (y - x * x) ** 2

    assert pattern_search(cost, (-1.0, 2.0)) == pytest.approx((1.0, 1.0), abs=1e-2)


def test_scales_change_compute_and_bytes() -> None:
    before = workload("alexnet")
    after = ModelCalibration(compute_scale=0.5, comm_scale=0.25).apply(before)
    for old, new in zip(before.layers, after.layers, strict=True):
        assert new.forward.compute_us == old.forward.compute_us / 2
        assert new.weight_grad.comm_bytes == round(old.weight_grad.comm_bytes / 4)
        assert math.isclose(new.weight_grad.compute_us, old.weight_grad.compute_us / 2)


def test_a_placement_of_another_fabric_is_refused() -> None:
    with pytest.raises(ConfigError, match="separator"):
        calibrate("vgg11", TABLE1, load_fabric("h100-quantum2-spectrum4"), BACKEND)
