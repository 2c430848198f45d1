"""Does `artist calibrate goodput` find the parameters behind measured steps?"""

from __future__ import annotations

import json
from dataclasses import replace
from math import hypot, log, sqrt
from pathlib import Path

import pytest

from artist.calibrate.fit_goodput import GoodputFit, StepTime, fit_goodput
from artist.estimates.goodput_table import load_goodput
from artist.workload.goodput import Batch, Goodput

pytest.importorskip("scipy")

TRUE = Goodput(64, 4096, 16, 256, 0.02, 0.0005, 0.01, 0.002, 0.05, 0.004, 1.5, ((0.0, 200.0),))
PLACEMENTS = ("1", "2", "4", "4,4", "4,4,4", "2,2")


def _measured(goodput: Goodput, placement: str, batch: int) -> StepTime:
    shares = [int(share) for share in placement.split(",")]
    gpus, one, compute = sum(shares), len(shares) == 1, Batch(batch, 0)
    step_s = goodput.step_s(gpus, compute, one_machine=one)
    return StepTime(gpus, one, batch, goodput.compute_s(compute), step_s)


def _fit(
    placements: tuple[str, ...], batches: tuple[int, ...] = (16, 64, 256), of: Goodput = TRUE
) -> GoodputFit:
    return fit_goodput([_measured(of, place, each) for place in placements for each in batches])


def test_steps_of_the_model_are_predicted_where_none_was_measured() -> None:
    fit = _fit(PLACEMENTS)
    fitted = Goodput(64, 4096, 16, 256, noise=TRUE.noise, **fit.parameters._asdict())
    assert fit.error < 0.02
    assert fit.undetermined == ()
    for placement in ("3", "4,4,4,4", "1,1,1"):
        for batch in (32, 128):
            told, true = _measured(fitted, placement, batch), _measured(TRUE, placement, batch)
            assert told.compute_s == pytest.approx(true.compute_s, rel=0.01)
            assert told.step_s == pytest.approx(true.step_s, rel=0.05)


@pytest.mark.parametrize(
    ("alpha_n", "beta_n", "alpha_r", "beta_r", "gamma"),
    [(0.03, 0.0, 0.01, 0.0, 2.0), (0.03, 0.0, 0.01, 0.0, 1.0), (0.03, 0.001, 0.01, 0.0005, 1.5)],
)
def test_steps_without_noise_give_their_parameters_back(
    alpha_n: float, beta_n: float, alpha_r: float, beta_r: float, gamma: float
) -> None:
    true = replace(
        TRUE, alpha_r=alpha_r, beta_r=beta_r, alpha_n=alpha_n, beta_n=beta_n, gamma=gamma
    )
    fit = _fit((*PLACEMENTS, "8", "4,4,4,4"), of=true)
    assert fit.error < 1e-4
    for name, value in fit.parameters._asdict().items():
        assert value == pytest.approx(getattr(true, name), rel=1e-3, abs=1e-6), name


def test_parameters_that_no_step_determines_are_guessed_as_by_the_authors() -> None:
    pair = _fit(("1", "2"))
    assert pair.undetermined == ("alpha_n", "beta_n", "beta_r")
    assert pair.parameters.alpha_n == pytest.approx(1.1 * pair.parameters.alpha_r)
    one = _fit(("1",), (64,))
    assert one.parameters.alpha_c == pytest.approx(0.052 / 2)
    assert one.parameters.beta_c == pytest.approx(0.026 / 64, rel=1e-3)


def test_the_loss_is_not_above_the_authors() -> None:
    """Their program (goodput.py, branch osdi21-artifact) reaches .02292 on these steps."""
    rows = [
        StepTime(1, True, 32, 0.0423, 0.0428),
        StepTime(2, True, 64, 0.0594, 0.0712),
        StepTime(4, True, 128, 0.0911, 0.1150),
        StepTime(4, False, 64, 0.0601, 0.1240),
        StepTime(8, False, 128, 0.0925, 0.1810),
        StepTime(12, False, 64, 0.0598, 0.1730),
    ]
    of = fit_goodput(rows).parameters
    fitted = Goodput(64, 4096, 16, 256, noise=TRUE.noise, **of._asdict())
    compute, step = [], []
    for row in rows:
        batch = Batch(row.per_gpu, 0)
        compute.append(log(fitted.compute_s(batch) / row.compute_s))
        step_s = fitted.step_s(row.gpus, batch, one_machine=row.one_machine)
        step.append(log(step_s / row.step_s))
    bends = (of.beta_n / of.alpha_n) ** 2 + (of.beta_r / of.alpha_r) ** 2
    penalties = 1e-3 * (of.gamma - 1) ** 2 + 1e-2 * bends
    assert sum(hypot(*errors) / sqrt(6) for errors in (compute, step)) + penalties <= 0.02292


STEPS = "hardware,task,batch_per_gpu,placement,step_s\n" + "".join(
    f'{hardware},resnet18,{batch},"{place}",{scale * _measured(TRUE, place, batch).step_s}\n'
    for hardware, scale in (("t4", 2.0), ("a100", 1.0))
    for place in PLACEMENTS
    for batch in (16, 64)
)
ASKED = ("calibrate", "goodput", "--model", "resnet18", "--steps", "steps.csv", "--batch", "64",
         "--batch-max", "4096", "--noise", "0=200,0.3=1000", "--out", "ours.yaml")  # fmt: skip


def test_the_file_is_one_that_runs_read(artist, tmp_path: Path) -> None:
    (tmp_path / "steps.csv").write_text(STEPS)
    ran = artist(*ASKED, "--format", "json", code=0)
    fits = json.loads(ran.stdout)["fits"]
    row = load_goodput(str(tmp_path / "ours.yaml")).models["resnet18"]
    assert (row.batch, row.per_gpu_min, row.per_gpu_max) == (64, 16, 64)
    assert row.noise == {0: 200, 0.3: 1000}
    assert list(row.kinds) == ["t4", "a100"]
    assert row.kinds["t4"].beta_c == pytest.approx(fits["t4"]["beta_c"])
    assert fits["t4"]["beta_c"] == pytest.approx(2 * fits["a100"]["beta_c"], rel=0.1)
    again = artist(*ASKED, code=2)
    assert "--overwrite" in again.stderr
    one = artist(*ASKED, "--hardware", "a100", "--overwrite")
    assert "goodput parameters of resnet18" in one.stdout
    assert not load_goodput(str(tmp_path / "ours.yaml")).models["resnet18"].kinds


def test_a_fit_that_misses_its_steps_says_so(artist, tmp_path: Path) -> None:
    (tmp_path / "steps.csv").write_text(STEPS)
    assert "misses" not in artist(*ASKED).stderr
    # Two thirds of the steps on A100s became those of a machine that is eight times as slow.
    slow = [
        ",".join((*cells[:-1], str(8 * float(cells[-1]))))
        if index % 3 and cells[0] == "a100" else line
        for index, line in enumerate(STEPS.splitlines())
        for cells in [line.split(",")]
    ]  # fmt: skip
    (tmp_path / "steps.csv").write_text("\n".join(slow) + "\n")
    told = artist(*ASKED, "--overwrite").stderr
    assert "the fit misses the steps on a100 by" in told
    assert "on t4 by" not in told


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("--noise", "0=200,x"), "--noise '0=200,x': expected samples"),
        (("--noise", "0.5=200"), "noise is given from [0.5]"),
        (("--batch-max", "8"), "batch_max is 8, expected at least 64"),
        (("--model", "vgg16"), "--model 'vgg16': steps.csv has no steps of it"),
        (("--hardware", "h100"), "steps.csv has steps of t4, a100"),
    ],
)
def test_what_cannot_be_fitted_ends_in_one_sentence(
    artist, tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    (tmp_path / "steps.csv").write_text(STEPS)
    option, value = change
    asked = list(ASKED) if option in ASKED else [*ASKED, option, ""]
    asked[asked.index(option) + 1] = value
    refused = artist(*asked, code=2)
    assert words in refused.stderr
    assert not (tmp_path / "ours.yaml").exists()


def test_steps_without_one_on_one_gpu_are_refused(artist, tmp_path: Path) -> None:
    (tmp_path / "steps.csv").write_text("".join(STEPS.splitlines(keepends=True)[:1]) +
                                        't4,resnet18,16,"4",0.1\n')  # fmt: skip
    refused = artist(*ASKED, code=3)
    assert "no step can be fitted" in refused.stderr
