"""Is goodput that of Pollux's authors' program, and are wrong parameters refused?"""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import job

from artist.cluster.tree import ONE_KIND
from artist.errors import ConfigError
from artist.estimates.goodput_table import GoodputRow, GoodputTable, load_goodput, with_goodput
from artist.workload.goodput import Batch, Goodput, best

# What goodput.py of petuum/adaptdl (branch osdi21-artifact) answers for random arguments.
ANSWERS = Path(__file__).parent / "data" / "goodput.csv"
TIMES = ("alpha_c", "beta_c", "alpha_n", "beta_n", "alpha_r", "beta_r", "gamma")
BATCHES = ("batch", "batch_max", "per_gpu_min", "per_gpu_max")

ROW: dict[str, Any] = {
    "batch": 128,
    "batch_max": 4096,
    "per_gpu_min": 16,
    "per_gpu_max": 1024,
    "alpha_c": 0.02,
    "beta_c": 0.0005,
    "alpha_r": 0.01,
    "alpha_n": 0.03,
    "noise": {0: 200, 0.5: 1000},
}
GOODPUT = GoodputRow(**ROW).goodput()


def test_goodput_and_best_batch_are_those_of_the_authors() -> None:
    rows = list(csv.DictReader(ANSWERS.read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 24
    for row in rows:
        noise, gpus = float(row["noise"]), int(row["gpus"])
        goodput = Goodput(
            **{name: int(row[name]) for name in BATCHES},
            **{name: float(row[name]) for name in TIMES},
            noise=((0.0, noise),),
        )
        one = row["machines"] == "1"
        batch = Batch(int(row["per_gpu"]), int(row["accumulation"]))
        value = goodput.goodput(gpus, batch, noise, one_machine=one)
        assert value == pytest.approx(float(row["goodput"]), rel=1e-9)
        chosen = Batch(int(row["best_per_gpu"]), int(row["best_accumulation"]))
        found = best(goodput, gpus, noise, one_machine=one)
        assert found == (pytest.approx(float(row["best"]), rel=1e-9), chosen)


def test_a_step_without_overlap_is_the_sum_of_its_parts() -> None:
    step_s = GOODPUT.step_s(4, Batch(100, 2), one_machine=True)
    assert step_s == pytest.approx(3 * (0.02 + 0.05) + 0.01)
    assert GOODPUT.compute_s(Batch(100, 2)) == pytest.approx(3 * 0.07)


def test_the_submitted_batch_is_worth_one_iteration_whatever_the_noise() -> None:
    for gpus in (1, 2, 4, 8):
        batch = GOODPUT.submitted(gpus)
        assert batch.total(gpus) == 128
        assert GOODPUT.worth(gpus, batch, 7.0) == GOODPUT.worth(gpus, batch, 7e6) == 1.0
    assert GOODPUT.submitted(3) == Batch(43, 0)
    assert replace(GOODPUT, per_gpu_max=20).submitted(2) == Batch(16, 3)


def test_noise_makes_large_batches_worth_more() -> None:
    batch = Batch(256, 0)
    assert GOODPUT.worth(2, batch, 0.0) == 1.0
    assert GOODPUT.worth(2, batch, 1e12) == pytest.approx(512 / 128)
    assert GOODPUT.worth(2, batch, 128.0) == pytest.approx(4 * 256 / 640)


def test_the_noise_holds_from_its_share_of_the_iterations_on() -> None:
    assert GOODPUT.noise_at(0, 11) == (200, 6)
    assert GOODPUT.noise_at(5, 11) == (200, 6)
    assert GOODPUT.noise_at(6, 11) == (1000, None)


@pytest.mark.parametrize(
    ("gpus", "batch", "words"),
    [
        (4, Batch(8, 3), "8 samples per GPU with 3 accumulated passes, but it takes 16 to 1024"),
        (4, Batch(2048, 0), "2048 samples per GPU"),
        (4, Batch(32, -1), "-1 accumulated passes"),
        (2, Batch(32, 0), "a batch of 64 on 2 GPUs, but it takes 128 to 4096"),
        (4, Batch(1024, 1), "a batch of 8192 on 4 GPUs"),
    ],
)
def test_a_batch_outside_its_limits_has_a_flaw(gpus: int, batch: Batch, words: str) -> None:
    assert words in GOODPUT.flaw(gpus, batch)


def test_batches_inside_their_limits_have_none() -> None:
    # The last: 4096 on 5 GPUs, rounded up to whole samples.
    for gpus, batch in (
        (4, Batch(1024, 0)),
        (2, Batch(64, 0)),
        (64, Batch(2, 0)),
        (5, Batch(820, 0)),
    ):
        assert not GOODPUT.flaw(gpus, batch)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch_max": 100}, "batch_max is 100, expected at least 128"),
        ({"per_gpu_max": 4}, "per_gpu_max is 4, expected at least per_gpu_min, 16"),
        ({"noise": {0.5: 10}}, "noise is given from [0.5], expected rising shares, 0 to below 1"),
        ({"gamma": 0.5}, "gamma"),
        ({"alpha_c": -1}, "alpha_c"),
        ({"beta": 1}, "unknown setting"),
        ({"kinds": {"t4": {"batch": 1}}}, "unknown setting"),
        ({"kinds": {"t4": {"per_gpu_max": 4}}}, "per_gpu_max on t4 is 4, expected at least"),
    ],
)
def test_a_bad_file_ends_in_one_sentence_with_its_line(tmp_path: Path, change, words: str) -> None:
    table = {"name": "mine", "summary": "", "source": "made up", "models": {"any": ROW | change}}
    file = tmp_path / "goodput.yaml"
    file.write_text(yaml.safe_dump(table), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_goodput(str(file))
    message = str(caught.value)
    assert message.startswith(f"{file}:")
    assert words in message
    assert "\n" not in message


def test_jobs_of_the_tables_models_become_elastic() -> None:
    table = GoodputTable(name="t", summary="", source="me", models={"resnet18": ROW})
    jobs = [
        job("a", gpus=2, model="resnet18"),
        job("b", gpus=2, model="vgg16"),
    ]
    a, b = with_goodput(jobs, table, 64, str)
    assert (a.gpus_min, a.gpus, a.gpus_max, a.compute_s) == (1, 2, 64, pytest.approx(0.052))
    assert b is jobs[1]
    ranged = job("c", gpus=2, model="resnet18", gpus_min=2, gpus_max=6)
    a, _, c = with_goodput([*jobs, ranged], table, 64, str, ranged=True)
    assert (c.gpus_min, c.gpus_max) == (2, 6)
    assert (a.gpus_min, a.gpus_max) == (2, 2)  # the trace says which jobs are elastic
    large = job("d", gpus=512, model="resnet18")
    with pytest.raises(ConfigError, match=r"file:1: job 'd' wants 512 GPUs.*feeds 256"):
        with_goodput([large], table, 1024, lambda index: "file:1")


def test_a_job_whose_numbers_of_gpus_no_batch_fits_is_refused() -> None:
    """65 samples are two passes of 33 on one GPU, but a pass takes at least 40."""
    narrow = ROW | {"batch": 65, "batch_max": 160, "per_gpu_min": 40, "per_gpu_max": 64}
    table = GoodputTable(name="t", summary="", source="me", models={"any": narrow})
    (free,) = with_goodput([job("a", model="any")], table, 8, str)
    assert free.goodput is not None
    assert [free.goodput.fits(gpus) for gpus in (1, 2)] == [True, True]
    models = {"any": narrow | {"batch_max": 70}}
    tight = GoodputTable(name="t", summary="", source="me", models=models)
    with pytest.raises(ConfigError, match=r"^1: job 'a' may have 1 to 1 GPUs, on which no batch"):
        with_goodput([job("a", model="any")], tight, 8, lambda index: "1")


def test_parameters_of_a_kind_are_those_of_the_row_but_what_differs() -> None:
    kinds = {"t4": {"alpha_c": 0.5, "per_gpu_max": 64}, "a100": {"gamma": 10}}
    table = GoodputTable(name="t", summary="", source="me", models={"any": ROW | {"kinds": kinds}})
    jobs = [job("a", model="any"), job("b", model="any", gpu_kinds=("t4",))]
    a, b = with_goodput(jobs, table, 8, str, ("a100", "t4"))
    plain = table.models["any"].goodput()
    t4, a100 = replace(plain, alpha_c=0.5, per_gpu_max=64), replace(plain, gamma=10)
    assert a.goodput is not None
    assert (a.goodput.on(("t4",)), a.goodput.on(("a100",)), b.goodput) == (t4, a100, t4)
    # GPUs of a gang wait for each other: the longer times, the smaller memory, the less overlap.
    assert a.goodput.on(("a100", "t4")) == t4
    assert a.goodput.least_gpu_s == a100.least_gpu_s < t4.least_gpu_s
    assert with_goodput(jobs[:1], table, 8, str, (ONE_KIND,))[0].goodput == plain
    with pytest.raises(ConfigError, match="1: job 'a' may get GPUs of kind v100, which 'any' in g"):
        with_goodput(jobs, table, 8, lambda index: "1", ("a100", "v100"))
