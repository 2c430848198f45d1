import math

import pytest

from artist.astra.model.analytical import AnalyticalBackend
from artist.calibrate.communication_shares import Scales, ShareModel
from artist.calibrate.fit_models import FittedModel, calibrate, calibration_of
from artist.calibrate.fit_scales import pattern_search
from artist.calibrate.measurements import Measurement, MeasurementSet, default_measurements
from artist.cluster.fabric import load_fabric
from artist.errors import ConfigError
from artist.estimates.calibration import ModelCalibration, load_calibration
from artist.workload.models import workload

FABRIC = load_fabric("dally2025")
BACKEND = AnalyticalBackend()
TABLE1 = default_measurements()


def _measured(*rows: Measurement) -> MeasurementSet:
    return MeasurementSet("m", "sha256:0", "a test", "", "", "", rows)


@pytest.fixture(scope="module")
def fitted() -> dict[str, FittedModel]:
    return {model: calibrate(model, TABLE1, FABRIC, BACKEND) for model in TABLE1.models()}


@pytest.mark.parametrize("model", TABLE1.models())
def test_the_machine_column_of_table_1_is_met_within_a_percent(
    model: str, fitted: dict[str, FittedModel]
) -> None:
    result = fitted[model]
    assert result.error <= 0.01
    machine, rack, network = result.levels
    assert (machine.placement, rack.placement, network.placement) == ("4+4", "4,4", "4/4")
    assert machine.role == "fitted"
    assert machine.simulated_percent == pytest.approx(machine.measured_percent, rel=0.01)
    # GPUs that lie farther apart never communicate faster.
    assert machine.simulated_percent < rack.simulated_percent < network.simulated_percent


def test_the_shipped_calibration_is_what_the_command_writes(fitted: dict[str, FittedModel]) -> None:
    shipped = load_calibration("dally2025-table1")
    assert shipped is not None
    assert shipped.models == {one.model: one.calibration for one in fitted.values()}
    ours = list(fitted.values())
    assert shipped == calibration_of("dally2025-table1", ours, TABLE1, FABRIC, BACKEND)


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


def test_two_measurements_find_both_scales() -> None:
    """Shares simulated with known scales lead back to them."""
    truth = Scales(0.05, 1.7)
    places = ("4+4", "4,4", "4/4")
    rows = [
        Measurement("alexnet", p, ShareModel(workload("alexnet"), p, FABRIC, BACKEND).exact(truth))
        for p in places
    ]
    result = calibrate("alexnet", _measured(*rows), FABRIC, BACKEND)
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
