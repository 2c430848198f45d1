"""Is there a warning if ASTRA-sim is configured differently than for the calibration's fit?"""

from __future__ import annotations

import pytest

from artist.calibrate.asked_otherwise import asked_otherwise
from artist.cluster.fabric import load_fabric, with_system
from artist.estimates.calibration import fitted_as_asked, load_calibration
from artist.run import open_backend

DALLY = load_fabric("dally2025")
BUCKETED = with_system(DALLY, {"collectives": "bucketed"})
ONE_RING = with_system(BUCKETED, {"rings": "one"})
BACKEND = open_backend("analytical")


@pytest.mark.parametrize(
    ("name", "fabric"),
    [
        ("dally2025-table1", DALLY),
        ("dally2025-table1-bucketed", BUCKETED),
        ("dally2025-table1-one-ring", ONE_RING),
    ],
)
def test_no_shipped_calibration_warns_of_its_own_settings(name, fabric) -> None:
    calibration = load_calibration(name)
    assert calibration is not None
    assert calibration.asked_otherwise(fabric.system) == {}
    assert fitted_as_asked(fabric) == name
    assert asked_otherwise(calibration, fabric, BACKEND) == ""


def test_other_settings_are_named_with_the_largest_error_and_the_command_that_refits() -> None:
    calibration = load_calibration("dally2025-table1")
    assert calibration is not None
    text = asked_otherwise(calibration, BUCKETED, BACKEND)
    assert text.startswith(
        "Calibration dally2025-table1 is used with collectives=bucketed instead of per-layer: "
    )
    assert " % of its compute time, where " in text
    assert text.endswith(
        "Fit it again with artist calibrate --all --fabric dally2025 --system collectives=bucketed."
    )


def test_a_calibration_that_does_not_state_its_settings_gives_no_warning() -> None:
    calibration = load_calibration("dally2025-table1")
    assert calibration is not None
    silent = calibration.model_copy(update={"asked": {}})
    assert asked_otherwise(silent, BUCKETED, BACKEND) == ""


@pytest.mark.slow
def test_a_run_warns_below_its_table(artist) -> None:
    world = ("--fabric", "dally2025", "--set", "collectives=bucketed")
    asked = ("sim", "--trace", "tiny-batch", "--racks", "2", *world)
    assert "is used with collectives=bucketed instead of per-layer" in artist(*asked).stdout
    refitted = artist(*asked, "--calibration", "dally2025-table1-bucketed")
    assert "instead of" not in refitted.stdout


LATENCY = ("latency", "--placement", "4,4", "--fabric", "dally2025", "--calibration", "auto")


@pytest.mark.parametrize("more", [(), ("--sweep", "fabric.rack.latency=1us..2us", "--points", "2")])
def test_latency_warns_too(artist, more: tuple[str, ...]) -> None:
    asked = (*LATENCY, "--model", "resnet18", *more)
    assert "instead of" not in artist(*asked).stdout
    bucketed = artist(*asked, "--system", "collectives=bucketed").stdout
    assert "is used with collectives=bucketed instead of per-layer" in bucketed


def test_latency_says_how_far_a_model_outside_the_calibration_is_from_those_in_it(artist) -> None:
    text = artist(*LATENCY, "--model", "gpt2@tensor=4").stdout
    assert "Calibration dally2025-table1 lacks gpt2" in text
    assert "the fit makes the others communicate " in text
    assert " times as much" in text
    assert "lacks" not in artist(*LATENCY, "--model", "resnet18").stdout
