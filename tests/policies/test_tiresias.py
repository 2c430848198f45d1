"""Tiresias: each rule on a trace worked out by hand. Comments derive the expected times."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_cases import count, job, leaves, run, times
from pydantic import ValidationError

from artist.errors import ConfigError
from artist.policies.tiresias.placement import skew
from artist.policies.tiresias.policy import Tiresias, TiresiasOptions
from artist.policies.tiresias.queues import GittinsIndex, read_services
from artist.units import TICKS_PER_S, seconds, ticks

SKEWED, UNSKEWED = "vgg11", "resnet50"


def tiresias(**options: object) -> Tiresias:
    return Tiresias(TiresiasOptions.model_validate({"lease_s": 5, **options}))


# -- queues ------------------------------------------------------------------------


def test_a_served_job_moves_down_and_gives_way_at_the_end_of_its_lease() -> None:
    jobs = [
        job("a", 0, 1, 30),  # 10 GPU-s at 10: second queue; b is in the first at 15. 25-40
        job("b", 12, 1, 12),  # 15-25: 10 GPU-s are the threshold, not below it; a is older. 40-42
    ]
    rows = run(tiresias(thresholds_gpu_s=[10]), [[1]], jobs)
    assert times(rows) == {"a": (0, 40), "b": (15, 42)}
    assert count(rows, "preemptions") == {"a": 1, "b": 1}


def test_service_counts_gpus() -> None:
    jobs = [
        job("wide", 0, 2, 20),  # 2 x 5 = 10 GPU-s at 5: second queue; 8-23
        job("thin", 1, 1, 3),  # 5-8
    ]
    rows = run(tiresias(thresholds_gpu_s=[10]), [[2]], jobs)
    assert times(rows) == {"wide": (0, 23), "thin": (5, 8)}


def test_inside_a_queue_the_job_that_started_first_stays() -> None:
    jobs = [job("a", 0, 1, 20), job("b", 1, 1, 3)]  # both below 100 GPU-s; b never started
    rows = run(tiresias(thresholds_gpu_s=[100]), [[1]], jobs)
    assert times(rows) == {"a": (0, 20), "b": (20, 23)}


@pytest.mark.parametrize(
    ("knob", "expected"),
    [
        # a: 0-10, due after waiting 1 x 10 s, at 20; clocks at zero: 20-30, queue 2 again; 40-60
        (1, {"a": (0, 60), "b": (10, 20), "c": (30, 40)}),
        # due at 0 + 10 + 20 = 30, when c is done anyway
        (2, {"a": (0, 60), "b": (10, 20), "c": (20, 30)}),
        (None, {"a": (0, 60), "b": (10, 20), "c": (20, 30)}),
    ],
)
def test_a_starving_job_is_promoted(knob: float | None, expected: dict) -> None:
    jobs = [job("a", 0, 1, 40), job("b", 6, 1, 10), job("c", 12, 1, 10)]
    rows = run(tiresias(thresholds_gpu_s=[10], promote_knob=knob), [[1]], jobs)
    assert times(rows) == expected


@pytest.mark.parametrize(
    ("knob", "expected"),
    [
        # a loses its GPU at 10, due after waiting 0.7 x 10 s, at 17; b's leases end at 15 and 20.
        # Clocks of a at zero since 17: 20-30, due again at 17 + 10 + 7 = 34, so 35-45. Had the
        # promotion waited for the question at 20, it would be due at 37, and a would get 40-50.
        # b: 10-20, due at 6 + 10 + 7 = 23; 30-35, 45-60
        (0.7, {"a": (0, 45), "b": (10, 60)}),
        # no promotion: one after the other in the second queue, a first
        (None, {"a": (0, 40), "b": (10, 60)}),
    ],
)
def test_a_promotion_happens_at_its_own_tick(knob: float | None, expected: dict) -> None:
    jobs = [job("a", 0, 1, 30), job("b", 6, 1, 30)]
    rows = run(tiresias(thresholds_gpu_s=[10], promote_knob=knob), [[1]], jobs)
    assert times(rows) == expected


def test_the_wait_that_counts_includes_the_first_one() -> None:
    jobs = [
        job("a", 0, 1, 10),  # 0-10
        job("b", 0, 1, 20),  # 10-20; loses its GPU with 10 s of wait, 1 x 10 s are due: promoted
        job("c", 11, 1, 20),  # 20-25: b, in the first queue too, started before
    ]
    rows = run(tiresias(thresholds_gpu_s=[10], promote_knob=1), [[1]], jobs)
    assert times(rows) == {"a": (0, 10), "b": (10, 35), "c": (20, 50)}


def test_without_options_there_are_three_queues_parted_at_3250_and_7200_gpu_seconds() -> None:
    # queue_limit and num_queue of the authors' simulator
    assert TiresiasOptions().thresholds_gpu_s == (3250.0, 7200.0)
    jobs = [
        job("a", 0, 1, 9000),  # 0-3250; 6510-10460, when it has 7200; 12210-14010
        job("b", 100, 1, 5000),  # 3250-6500, when it has 3250; 10460-12210
        job("c", 3300, 1, 10),  # 6500-6510
    ]
    rows = run(tiresias(lease_s=50), [[1]], jobs)
    stays = sorted((seconds(row.start), seconds(row.end)) for row in rows.placements)
    assert stays == [
        *[(0, 3250), (3250, 6500), (6500, 6510)],
        *[(6510, 10460), (10460, 12210), (12210, 14010)],
    ]


# -- Gittins -----------------------------------------------------------------------


def test_gittins_prefers_the_job_that_is_likelier_to_end_soon() -> None:
    jobs = [
        job("a", 0, 1, 30),  # at 5: 1/50 > 1/55, stays; at 10: 1/90 < 1/55. 0-10, 14-34
        job("b", 1, 1, 4),  # 10-14
    ]
    options = {"index": "gittins", "past_service_gpu_s": [10, 100], "thresholds_gpu_s": []}
    assert times(run(tiresias(**options), [[1]], jobs)) == {"a": (0, 34), "b": (10, 14)}


@pytest.mark.parametrize(
    ("attained", "quantum", "index"),
    [
        (0, math.inf, 1 / 55),  # mean of 10 and 100
        (5, math.inf, 1 / 50),  # mean of 5 and 95
        (10, math.inf, 1 / 90),  # more than 10: only 100 is left
        (0, 20, 0.5 / 15),  # one of two ends within 20; mean of 10 and 20
        (5, 5, 0.5 / 5),  # 10 is within 5 more: mean of 5 and 5
        (10, 20, 0.0),  # none ends
        (100, 20, 0.0),  # older than every sample
    ],
)
def test_gittins_index(attained: float, quantum: float, index: float) -> None:
    gpu_ticks = None if math.isinf(quantum) else ticks(quantum)
    per_tick, _ = GittinsIndex([100, 10])(ticks(attained), gpu_ticks)
    assert per_tick * TICKS_PER_S == pytest.approx(index)


@given(st.lists(st.integers(1, 10**6), min_size=1), st.integers(0, 10**15), st.integers(1, 10**15))
def test_gittins_index_is_its_definition(past: list[int], attained: int, quantum: int) -> None:
    services = [TICKS_PER_S * service for service in past]
    alive = [service - attained for service in services if service > attained]
    expected = Fraction(0)
    if alive:
        ended = sum(left <= quantum for left in alive)
        expected = Fraction(ended, sum(min(left, quantum) for left in alive))
    value, exact = GittinsIndex(past)(attained, quantum)
    assert (value, Fraction(exact.num, exact.den)) == (float(expected), expected)


def test_a_column_of_past_service(tmp_path) -> None:
    path = tmp_path / "past.csv"
    path.write_text("job,gpu_s\nx,10\ny,100\n")
    assert read_services(path, "gpu_s") == [10, 100]
    options = {"index": "gittins", "past_service_file": str(path), "past_service_column": "gpu_s"}
    jobs = [job("a", 0, 1, 30), job("b", 1, 1, 4)]
    assert times(run(tiresias(**options, thresholds_gpu_s=[]), [[1]], jobs))["b"] == (10, 14)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("job\nx\n", "no column 'gpu_s'"),
        ("gpu_s\n", "no rows"),
        ("gpu_s\n5\n-1\n", ":3: gpu_s is '-1'"),
        ("gpu_s\nmuch\n", ":2: gpu_s is 'much'"),
        ("", "no column"),
    ],
)
def test_bad_past_service_is_named(tmp_path, text: str, words: str) -> None:
    path = tmp_path / "past.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        read_services(path, "gpu_s")


@pytest.mark.parametrize(
    "options",
    [
        {"index": "gittins"},
        {"thresholds_gpu_s": [5, 5]},
        {"thresholds_gpu_s": [0]},
        {"past_service_gpu_s": [0]},
        {"promote_knob": 0},
    ],
)
def test_contradictory_options_are_refused(options: dict) -> None:
    with pytest.raises(ValidationError):
        tiresias(**options)


# -- placement ---------------------------------------------------------------------


def test_skewed_jobs_wait_for_one_machine_and_others_scatter() -> None:
    jobs = [
        job("a", 0, 2, 10, model=SKEWED),
        job("b", 0, 2, 20, model=SKEWED),  # one GPU is left in each machine
        job("tight", 1, 2, 5, model=SKEWED),  # waits for a's machine: 10-15
        job("loose", 1, 2, 4, model=UNSKEWED),  # across machines at once: 4 x 1.5 s
    ]
    rows = run(tiresias(lease_s=1000), [[3, 3]], jobs)
    assert times(rows) == {"a": (0, 10), "b": (0, 20), "tight": (10, 15), "loose": (1, 7)}


@pytest.mark.parametrize(("model", "start", "finish"), [(SKEWED, 10, 16), (UNSKEWED, 1, 7)])
def test_a_large_skewed_job_waits_for_the_fewest_machines(model, start, finish) -> None:
    jobs = [
        job("a", 0, 2, 10, model=SKEWED),
        job("b", 0, 2, 20, model=SKEWED),
        job("big", 1, 5, 4, model=model),  # free 1 + 1 + 3: five need three machines, not two
    ]
    rows = run(tiresias(lease_s=1000), [[3, 3, 3]], jobs)
    assert times(rows)["big"] == (start, finish)


def test_the_last_machine_of_a_large_job_is_the_fullest_that_suffices() -> None:
    jobs = [
        job("a", 0, 2, 50, model=SKEWED),
        job("b", 0, 1, 50, model=SKEWED),  # in a's machine: 1 GPU left there
        job("big", 1, 5, 4, model=SKEWED),  # 4 + 1: an empty machine, and a's last GPU
    ]
    rows = run(tiresias(lease_s=1000), [[4, 4, 4]], jobs)
    assert leaves(rows, jobs)["big"] == [(0, 1)]


def test_skew_of_the_catalogue_gives_the_classes_of_dallys_table() -> None:
    high = {"vgg11", "alexnet", "mobilenetv3"}
    low = {"resnet18", "resnet50", "bert-large"}
    assert all(skew(model) > TiresiasOptions().skew_threshold for model in high)
    assert all(skew(model) < TiresiasOptions().skew_threshold for model in low)
    # VGG11's first fully connected layer: 25,088 x 4,096 weights and 4,096 biases, fp32.
    assert skew("VGG") == (25_088 * 4_096 + 4_096) * 4 / 531_453_344
    assert skew("not-a-model") == 0.0


@pytest.mark.parametrize("services", [[1e300], [0], [math.inf]])
def test_no_service_is_longer_than_a_simulation(services: list[float]) -> None:
    for option in ("thresholds_gpu_s", "past_service_gpu_s"):
        with pytest.raises(ValidationError, match=option):
            TiresiasOptions(**{option: services})
