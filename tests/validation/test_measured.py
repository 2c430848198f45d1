"""Does `make measured` predict what it says it predicts, and are its aims met on real machines?"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from artist.calibrate.measured_steps import PlacedStep, read_steps
from artist.cluster.fabric import load_fabric
from artist.errors import ArtistError
from validation.measured.__main__ import TASKS, as_measured, main, predicted
from validation.measured.accuracy import Prediction, errors, measured_again, order, uneven_ratios
from validation.measured.report import numbers_table, summary_table

PAGE = Path(__file__).parents[2] / "docs" / "fidelity.md"
HEADER = "hardware,task,batch_per_gpu,placement,step_s,sync_s\n"


def written(folder: Path, *rows: str) -> Path:
    path = folder / "steps.csv"
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
    return path


def step(
    placement: str, step_s: float = 1.0, task: str = "resnet50", batch: int = 32
) -> PlacedStep:
    return PlacedStep(2, "t4", task, batch, placement, step_s)


# -- the fabric and the measures of accuracy ------------------------------------------


def test_a_fabric_that_says_nothing_is_used_as_the_measured_framework_does() -> None:
    plain = as_measured(load_fabric("hgx-h100"))
    assert (plain.system.rings, plain.system.collectives) == ("one", "bucketed")
    chosen = load_fabric("t4").system.model_copy(update={"collectives": "per-layer"})
    own = load_fabric("t4").model_copy(update={"system": chosen})
    assert as_measured(own).system.collectives == "per-layer"


def predictions(*rows: tuple[str, float, float]) -> list[Prediction]:
    return [Prediction(step(placement, measured), value) for placement, measured, value in rows]


def test_errors_are_shares_of_the_measured_step() -> None:
    rows = predictions(("2", 1.0, 1.1), ("3", 2.0, 1.0), ("4", 1.0, 1.0))
    found = errors(rows)
    assert found.steps == 3
    assert found.median == pytest.approx(0.1)
    assert found.p90 == pytest.approx(0.42)


def test_uneven_shapes_are_held_against_the_even_one_of_as_many_gpus() -> None:
    rows = predictions(("2,2", 1.0, 1.0), ("3,1", 1.2, 1.3), ("4,1", 9.0, 9.0))
    ratios = uneven_ratios(rows)
    assert ratios is not None
    assert (ratios.pairs, ratios.measured, ratios.near) == (1, 1.2, 0.0)
    assert ratios.predicted == pytest.approx(1.3)


def test_a_step_measured_again_predicts_the_first_one() -> None:
    # 3,1 three times, in either order; 2,2 once: nothing predicts it.
    rows = predictions(("3,1", 1.0, 9.0), ("1,3", 1.1, 9.0), ("3,1", 1.2, 9.0), ("2,2", 5.0, 9.0))
    found = measured_again(rows)
    assert found is not None
    assert found.steps == 3
    assert found.median == pytest.approx(1 - 1.05 / 1.2)  # of 1.15 / 1.0 - 1, 0 and this
    assert measured_again(rows[2:]) is None


def test_the_order_counts_pairs_that_differ_by_more_than_the_noise() -> None:
    # 3,1 and 2,2 differ by 10 %: that is the noise. All others differ by more.
    rows = predictions(("3,1", 1.1, 1.0), ("2,2", 1.0, 1.0), ("2", 0.5, 0.5), ("4,4", 2.0, 0.6))
    ranks = order(rows)
    assert ranks.noise == pytest.approx(0.1)
    assert ranks.pairs == 5
    # Right: 2 below each of the three others. Wrong: 4,4 is predicted below 3,1 and 2,2.
    assert ranks.tau == pytest.approx((3 - 2) / 5)


# -- the command ---------------------------------------------------------------------


def test_out_is_the_input_with_a_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = written(
        tmp_path,
        "t4,resnet50,32,1,0.2,0.001",
        't4,resnet50,32,"4,3,1",0.4,0.1',
        "t4,yolov3,8,1,0.3,",
        "t4,yolov3,8,2,0.3,",
        "t4,bert,4,2,0.3,0.2",
    )
    out = tmp_path / "out.csv"
    assert main(["--steps", str(steps), "--fabrics", "", "--out", str(out), "--picture", ""]) == 0
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert list(rows[0]) == [*HEADER.strip().split(","), "predicted_s"]
    assert [row["placement"] for row in rows] == ["1", "4,3,1", "1", "2", "2"]
    assert float(rows[0]["predicted_s"]) == 0.2
    assert float(rows[1]["predicted_s"]) > 0.2
    assert [row["predicted_s"] for row in rows[2:]] == ["", "", ""]
    assert "5 rows, 3 without prediction" in capsys.readouterr().out


@pytest.mark.slow
def test_a_picture_comes_with_tables_of_configurations_and_of_numbers_from_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    placements = {"1": 0.2, "2": 0.21, "4": 0.22, "1,1": 0.6, "2,2": 0.8, "2,2,2": 0.7}
    rows = [
        f'{hardware},{task},32,"{placement}",{step_s},0'
        for hardware in ("t4", "a100")
        for task in ("resnet50", "bert")
        for placement, step_s in placements.items()
    ]
    picture = tmp_path / "measured.svg"
    steps, out = written(tmp_path, *rows), tmp_path / "out.csv"
    assert main(["--steps", str(steps), "--out", str(out), "--picture", str(picture)]) == 0
    assert picture.is_file()
    printed = capsys.readouterr().out
    assert "| t4 | `one`, `bucketed` | " in printed
    rules = ("wider", "bounded", "flat")
    assert all(f"| t4 | `per-level`, `bucketed`, `{rule}` | " in printed for rule in rules)
    assert "| a100 | fitted to bert | " in printed
    assert "| t4 | data sheet, shares of the other kinds | " in printed


def test_a_folder_of_fabrics_comes_before_the_shipped_ones(tmp_path: Path) -> None:
    rows = ("fast,resnet50,32,1,0.2,0", 'fast,resnet50,32,"4,4",0.2,0')
    steps = read_steps(written(tmp_path, *rows))
    with pytest.raises(ArtistError, match=r"hardware 'fast': no fabric .*FABRICS/fast\.yaml"):
        predicted(steps, None)
    shipped = (Path(__file__).parents[2] / "astra_configs" / "fabrics" / "a100.yaml").read_text()
    (tmp_path / "fast.yaml").write_text(shipped.replace("name: a100", "name: fast"))
    outcome = predicted(steps, tmp_path)
    assert outcome.predicted_s[1] == pytest.approx(0.2, rel=0.1)


# -- real machines -------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured() -> Path:
    path = Path(__file__).parents[3] / "shared" / "fidelity" / "measured" / "step_times.csv"
    if not path.is_file():
        pytest.skip("the measured steps are not here (../shared/fidelity/measured)")
    return path


@pytest.mark.slow
def test_the_aims_are_met_on_machines_and_tasks_that_were_not_fitted(measured: Path) -> None:
    outcome = predicted(read_steps(measured, TASKS), None)
    assert None not in outcome.predicted_s
    kinds = {(x.step.hardware, x.step.task) for x in outcome.several}
    assert len(kinds) == 6
    for hardware, task in kinds:
        group = [x for x in outcome.several if (x.step.hardware, x.step.task) == (hardware, task)]
        error, uneven, ranks = errors(group), uneven_ratios(group), order(group)
        assert error.median <= 0.11, (hardware, task, error)
        assert error.p90 <= 0.17, (hardware, task, error)
        assert uneven is not None
        assert uneven.near >= 0.95
        # The page says why the order of ResNet-50 on A100 cannot be told.
        if (hardware, task) != ("a100", "resnet50"):
            assert ranks.tau >= 0.7, (hardware, task, ranks)
    page = PAGE.read_text()
    assert numbers_table(outcome.fitted) in page
    assert summary_table(outcome.several) in page
