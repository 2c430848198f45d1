"""Are measured steps read as written, and does the fit recover the machine that made them?"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from artist.calibrate.fit_machine import MachineNumbers, fit_machine
from artist.calibrate.measured_steps import PlacedStep, read_steps
from artist.calibrate.step_prediction import doubtful_steps, predict
from artist.cluster.fabric import load_fabric
from artist.errors import TraceError
from artist.estimates.calibration import ModelCalibration
from artist.estimates.latency_service import single_gpu_ns
from artist.estimates.query_from_text import on_placement
from artist.run import open_backend
from artist.workload.models import workload

ANALYTICAL = open_backend("analytical")
PLACEMENTS = ("2", "4", "1,1", "4,4", "4,3", "2,2,2", "4,4,4", "3,3,2,1")


def written(folder: Path, *rows: str) -> Path:
    path = folder / "steps.csv"
    header = "hardware,task,batch_per_gpu,placement,step_s,sync_s\n"
    path.write_text(header + "".join(f"{row}\n" for row in rows))
    return path


def test_comments_may_stand_at_the_top(tmp_path: Path) -> None:
    path = written(tmp_path, "t4,resnet50,32,1,0.2,0")
    path.write_text("# source: made up, here\n# who: nobody\n" + path.read_text())
    assert [step.step_s for step in read_steps(path)] == [0.2]
    path.write_text(path.read_text() + "t4,resnet50,32,1,0,0\n")
    with pytest.raises(TraceError, match=r"steps\.csv:5: "):
        read_steps(path)


def made_steps(numbers: MachineNumbers) -> list[PlacedStep]:
    """Steps of ResNet-50 that a machine with these numbers would take."""
    plain = [
        PlacedStep(2, "t4", "resnet50", batch, placement, 1.0, f"resnet50@batch={batch}", compute_s)
        for batch, compute_s in ((4, 0.02), (32, 0.2))
        for placement in PLACEMENTS
    ]
    values = predict(plain, numbers.on(load_fabric("t4")), ANALYTICAL)
    return [
        replace(one, step_s=value or math.nan) for one, value in zip(plain, values, strict=True)
    ]


# -- the steps -----------------------------------------------------------------------


def test_the_compute_time_is_the_median_step_on_one_gpu(tmp_path: Path) -> None:
    rows = [f"t4,resnet50,16,1,{step_s},0" for step_s in (0.3, 0.2, 0.25)]
    *_, last = read_steps(written(tmp_path, *rows, 't4,resnet50,16,"4,3",0.5,0'))
    assert (last.compute_s, last.model, last.shares) == (0.25, "resnet50@batch=16", (4, 3))


def test_a_step_that_takes_longer_than_one_of_a_larger_batch_was_disturbed(tmp_path: Path) -> None:
    rows = ("t4,resnet50,8,1,0.1,0", "t4,resnet50,16,1,0.4,0", "t4,resnet50,32,1,0.3,0")
    other = "t4,vgg11,64,1,0.01,0"
    steps = read_steps(written(tmp_path, *rows, other))
    assert [step.compute_s for step in steps] == [0.1, 0.3, 0.3, 0.01]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("t4,resnet50,32,0,0.2,0", r"steps.csv:2: placement '0'"),
        ("t4,resnet50,x,1,0.2,0", r"steps.csv:2: .*batch 'x'"),
        ("t4,resnet50,32,1,-1,0", r"steps.csv:2: .*step_s '-1'"),
        ("t4,resnet50,32,1,nan,0", r"steps.csv:2: .*step_s 'nan'"),
        ("t4,resnet50,32,1,,0", r"steps.csv:2: .*step_s ''"),
        ("t4,resnet50,32,1,0.2", r"steps.csv:2: 5 fields, expected 6"),
        ("t4,resnet50,32,1,0.2,0,7", r"steps.csv:2: 7 fields, expected 6"),
        ('t4,resnet50,32,"4, 3",0.2,0', r"steps.csv:2: placement '4, 3'"),
        ("t4,resnet50,32,1_0,0.2,0", r"steps.csv:2: placement '1_0'"),
        (",resnet50,32,1,0.2,0", r"steps.csv:2: hardware ''"),
    ],
)
def test_a_bad_row_is_named_with_its_line(tmp_path: Path, row: str, reason: str) -> None:
    with pytest.raises(TraceError, match=reason):
        read_steps(written(tmp_path, row))


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    path.write_text("hardware,task\nt4,resnet50\n")
    with pytest.raises(TraceError, match="no column batch_per_gpu, placement, step_s"):
        read_steps(path)


# -- the prediction ------------------------------------------------------------------


def test_a_step_is_compute_plus_what_astra_sim_adds() -> None:
    fabric = load_fabric("t4")
    step = PlacedStep(2, "t4", "resnet50", 32, "4,3,1", 1.0, "resnet50@batch=32", 0.2)
    (value,) = predict([step], fabric, ANALYTICAL)
    plain = workload("resnet50")
    scaled = ModelCalibration(compute_scale=0.2e9 / single_gpu_ns(plain)).apply(plain)
    (asked,) = on_placement(scaled, "4,3,1", fabric, {}).asked
    estimate = ANALYTICAL.estimate(asked.query)
    assert estimate.compute_ns == pytest.approx(0.2e9, rel=1e-4)
    assert value == pytest.approx(0.2 * (1 + estimate.comm_ratio), rel=1e-12)


def test_what_the_catalogue_or_the_file_lacks_has_no_prediction() -> None:
    unknown = PlacedStep(2, "t4", "deepspeech2", 32, "4,4", 1.0, None, 0.2)
    unmeasured = PlacedStep(2, "t4", "resnet50", 32, "4,4", 1.0, "resnet50", None)
    assert predict([unknown, unmeasured], load_fabric("t4"), ANALYTICAL) == [None, None]


# -- the fit -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made",
    [
        MachineNumbers(1.5, 0.6, 0.7, 0.8),
        MachineNumbers(8.0, 2.0, 1.0, 1.0),
        MachineNumbers(0.5, 0.25, 0.5, 0.3),
    ],
)
def test_the_fit_finds_the_numbers_of_a_made_machine(made: MachineNumbers) -> None:
    fit = fit_machine(made_steps(made), load_fabric("t4"), ANALYTICAL)
    assert fit.at_least == {}
    found = fit.numbers
    assert found.outside_gib_per_s == pytest.approx(made.outside_gib_per_s, rel=0.03)
    assert found.inside_gib_per_s == pytest.approx(made.inside_gib_per_s, rel=0.05)
    assert found.pair_share == pytest.approx(made.pair_share, rel=0.03)
    assert found.hidden_share == pytest.approx(made.hidden_share, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_the_fit_ends_at_the_same_numbers_wherever_the_fabric_begins(factor: float) -> None:
    fabric, steps = load_fabric("t4"), made_steps(MachineNumbers(1.5, 0.6, 0.7, 0.8))
    own = MachineNumbers.of(fabric)
    wrong = MachineNumbers(own.inside_gib_per_s * factor, own.outside_gib_per_s * factor)
    right = fit_machine(steps, fabric, ANALYTICAL).numbers
    found = fit_machine(steps, wrong.on(fabric), ANALYTICAL).numbers
    assert found.inside_gib_per_s == pytest.approx(right.inside_gib_per_s, rel=0.02)
    assert found.outside_gib_per_s == pytest.approx(right.outside_gib_per_s, rel=0.02)
    assert found.hidden_share == pytest.approx(right.hidden_share, abs=0.02)


def test_steps_without_communication_only_bound_the_bandwidths() -> None:
    fabric = load_fabric("t4")
    silent = [
        replace(step, step_s=step.compute_s or 0.0) for step in made_steps(MachineNumbers(1, 1))
    ]
    fit = fit_machine(silent, fabric, ANALYTICAL)
    assert set(fit.at_least) == {"inside_gib_per_s", "outside_gib_per_s"}
    assert (fit.numbers.pair_share, fit.numbers.hidden_share) == (1.0, 1.0)
    own, fast = MachineNumbers.of(fabric), replace(MachineNumbers.of(fabric), outside_gib_per_s=4e3)
    assert own.outside_gib_per_s < fit.at_least["outside_gib_per_s"]
    assert MachineNumbers.of(fit.on(fabric)).outside_gib_per_s == fit.at_least["outside_gib_per_s"]
    assert MachineNumbers.of(fit.on(fast.on(fabric))).outside_gib_per_s == 4e3


def test_parameters_that_the_steps_do_not_determine_stay_as_in_the_fabric() -> None:
    fabric = load_fabric("t4")
    inside = [one for one in made_steps(MachineNumbers(1.5, 0.6)) if one.placement == "4"][:1]
    fit = fit_machine(inside, fabric, ANALYTICAL)
    assert fit.undetermined == {"outside_gib_per_s", "pair_share", "hidden_share"}
    assert set(fit.facts) == {"inside_gib_per_s"}
    own, fitted = MachineNumbers.of(fabric), fit.on(fabric, "fitted to mine")
    assert MachineNumbers.of(fitted) == replace(own, inside_gib_per_s=fit.numbers.inside_gib_per_s)
    assert predict(inside, fitted, ANALYTICAL) == [pytest.approx(inside[0].step_s, rel=2e-3)]
    assert [level.source for level in fitted.levels] == [
        "fitted to mine", *(level.source for level in fabric.levels[1:])
    ]  # fmt: skip
    assert fitted.system == fabric.system


def test_steps_that_can_hardly_be_are_named(tmp_path: Path) -> None:
    rows = ("t4,resnet50,32,1,180,0", "t4,resnet50,32,4,150,0", 't4,resnet50,32,"4,4",200,0')
    slow, fast = doubtful_steps(read_steps(written(tmp_path, *rows)))
    assert slow.startswith("2: a step on 1 GPU takes 180 s, ")
    assert slow.endswith("times as long as the catalogue says; step_s is in seconds")
    assert fast.startswith("3: a step on 4 GPUs takes 150 s, less than one on 1 GPU")


def test_without_a_step_to_fit_the_error_says_what_is_needed() -> None:
    alone = PlacedStep(2, "t4", "resnet50", 32, "1", 0.2, "resnet50@batch=32", 0.2)
    with pytest.raises(TraceError, match="no step on two or more GPUs can be fitted: each needs"):
        fit_machine([alone], load_fabric("t4"), ANALYTICAL)
