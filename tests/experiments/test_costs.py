"""What does a variant cost, and is the price of a GPU-hour gained right where it is known?"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from artist.cli.costs_text import cheapest, costs_json, print_costs
from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.comparison.compare import compare
from artist.experiments.comparison.costs import (
    Amount,
    Price,
    PriceFile,
    check_prices,
    load_costs,
    priced,
)

# Four jobs of one GPU, 1,000 s each: one GPU needs 4,000 s, two need 2,000 s.
FOUR = "job_id,arrival_s,gpus,model,iterations,compute_s\n" + "".join(
    f"{i},0,1,vgg16,1000,1.0\n" for i in range(4)
)


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    (tmp_path / "four.csv").write_text(FOUR)
    sizes = {"racks": 1, "machines_per_rack": 1, "gpus_per_machine": 1}
    return Scenario(trace=str(tmp_path / "four.csv"), backend="none", policy="fifo", **sizes)


def test_a_gpu_more_costs_what_a_gpu_costs(scenario: Scenario) -> None:
    """All of its time is gained, and jobs hold as much GPU time as before."""
    made = compare(scenario, vary={"racks": ["+1"]}, seeds=1, permutations=2)
    given, more = priced(made, PriceFile(gpu_hour=2.0))
    assert (given.per_hour, given.more_per_hour, given.gained.mean) == (2.0, 0.0, 0.0)
    assert (more.per_hour, more.more_per_hour) == (4.0, 2.0)
    assert more.gained.mean == pytest.approx(1.0)
    assert more.gained.sure and more.price == pytest.approx(2.0)
    assert more.prices == pytest.approx((2.0, 2.0))
    assert (given.held_share, more.held_share) == (1.0, 1.0)
    assert (given.gpus, more.gpus, more.extra_gpu_hour) == (1, 2, 0.0)


def test_an_hour_of_jct_costs_what_the_job_hours_cost_that_are_saved(scenario: Scenario) -> None:
    """Mean JCTs of 2,500 and 1,500 s: 4 x 1,000 job-seconds in the 4,000 s that one GPU takes."""
    made = compare(scenario, vary={"racks": ["+1"]}, seeds=1, permutations=2)
    given, more = priced(made, PriceFile(gpu_hour=2.0))
    assert given.saved.mean == 0.0
    assert more.saved.mean == pytest.approx(1.0)
    assert more.saved.price(more.more_per_hour) == pytest.approx(2.0)
    assert "Each hour by which a job finishes sooner costs 2 EUR with racks=+1." in cheapest(
        [given, more], PriceFile(gpu_hour=2.0, currency="EUR")
    )


def test_what_costs_no_more_has_no_price(scenario: Scenario, capsys) -> None:
    """The price is neither negative nor 0: only variants that cost more are ranked."""
    made = compare(scenario, vary={"racks": ["+1", "+3"]}, seeds=1, permutations=2)
    costs = PriceFile(gpu_hour=2.0, currency="EUR")
    given, paid, free = priced(made, costs)
    free = replace(free, more_per_hour=-1.0)
    told = cheapest([given, free, paid], costs)
    assert told.startswith("racks=+3 costs no more and gains GPU time. Cheapest of the others: ra")
    assert "EUR. racks=+3 costs no more and finishes jobs sooner. Each hour by which" in told
    assert told.endswith(" costs 2 EUR with racks=+1.")
    both = cheapest([given, free, replace(paid, more_per_hour=0.0)], costs)
    assert both == (
        "racks=+3 and racks=+1 cost no more and gain GPU time; a GPU-hour costs 2 EUR. "
        "racks=+3 and racks=+1 cost no more and finish jobs sooner."
    )
    print_costs([given, free, replace(free, saved=Amount(1.0, -1.0, 3.0))], costs, "racks")
    rows = capsys.readouterr().out.splitlines()
    assert rows[3].endswith("\tcosts no more\tcosts no more")
    assert rows[4].endswith("\tcosts no more, perhaps nothing saved")
    assert costs_json([free])[0]["per_jct_hour_saved"] is None


def test_a_price_is_lower_only_where_the_same_replicates_say_so(scenario: Scenario) -> None:
    made = compare(scenario, vary={"racks": ["+1", "+3"]}, seeds=1, permutations=6)
    given, one, three = made.variants
    # One more rack always gains 1 GPU, three gain 3 on average, for three times the price.
    held = {given: [10.0] * 6, one: [10.0] * 6, three: [10.0, 9.9, 10.1] * 2}
    made = replace(made, held_gpu_h=held, makespan_h=dict.fromkeys(made.variants, [1.0] * 6))
    costs = PriceFile(gpu_hour=2.0, currency="EUR")
    found = priced(made, costs)
    assert [x.undecided for x in found] == [frozenset(), frozenset({three}), frozenset({one})]
    assert "; racks=+3 2 [1.94 .. 2.06] (undecided); a GPU-hour" in cheapest(found, costs)
    dearer = costs.model_copy(update={"settings": {three: Price(gpu_hour=2.0)}})
    assert [x["undecided"] for x in costs_json(found)] == [[], [three], [one]]
    found = priced(made, dearer)
    assert not any(x.undecided for x in found)
    assert "(undecided)" not in cheapest(found, dearer)


def test_other_jobs_have_no_price_of_their_jct(scenario: Scenario) -> None:
    made = compare(scenario, vary={"jobs": ["4", "3"]}, seeds=1, permutations=2)
    _, fewer = priced(made, PriceFile(gpu_hour=2.0))
    assert math.isnan(fewer.saved.mean)
    assert not fewer.saved.sure


def test_gpus_that_no_job_uses_are_paid_and_a_price_of_a_setting_comes_on_top(
    scenario: Scenario,
) -> None:
    made = compare(scenario, vary={"racks": ["+7"]}, seeds=1, permutations=2)
    costs = PriceFile(gpu_hour=2.0, settings={"racks=+7": Price(gpu_hour=0.5)})
    _, more = priced(made, costs)
    assert (more.per_hour, more.extra_gpu_hour) == (8 * 2.5, 0.5)
    assert more.held_share == pytest.approx(0.5)  # four jobs on eight GPUs


def test_time_that_jobs_hold_less_is_gained(tmp_path: Path) -> None:
    """One job holds both GPUs all the time: what it runs shorter is gained twice."""
    job = "job_id,arrival_s,gpus,model,iterations,compute_s\na,0,2,vgg16,1000,0.01\n"
    (tmp_path / "one.csv").write_text(job)
    scenario = Scenario(
        racks=2, machines_per_rack=1, gpus_per_machine=1, trace=str(tmp_path / "one.csv"),
        fabric="dally2025", calibration="none", policy="fifo",
        fabric_options={"network": {"bandwidth": "1Gbit/s"}},
    )  # fmt: skip
    vary = {"fabric.network.bandwidth": ["x2"]}
    made = compare(scenario, vary=vary, seeds=1, permutations=2)
    costs = PriceFile(gpu_hour=2.0, settings={"fabric.network.bandwidth=x2": Price(gpu_hour=0.3)})
    _, faster = priced(made, costs)
    before, after = (made.values[one]["makespan_s"][0] for one in made.variants)
    assert after < 0.7 * before
    assert faster.gained.mean == pytest.approx(2 * (1 - after / before))
    assert faster.price == pytest.approx(0.6 / faster.gained.mean)
    # Its only job: as much sooner as the makespan, while the first run would take.
    assert faster.saved.price(0.6) == pytest.approx(0.6 * before / (before - after))


@pytest.mark.parametrize(
    ("price", "per_hour"),
    [
        ({"gpu_hour": 0.5}, 4.0),
        ({"hour": 7.0}, 7.0),
        ({"once": 8766.0, "years": 2.0}, 0.5),
        ({"gpu_hour": 0.5, "hour": 7.0, "once": 8766.0, "years": 2.0}, 11.5),
        ({}, 0.0),
    ],
)
def test_a_price_is_per_gpu_per_hour_or_once(price: dict[str, float], per_hour: float) -> None:
    assert Price(**price).per_hour(8) == pytest.approx(per_hour)


def test_what_varies_too_much_is_not_sure(scenario: Scenario) -> None:
    made = compare(scenario, vary={"racks": ["+1"]}, seeds=1, permutations=1)
    _, one_run = priced(made, PriceFile(gpu_hour=2.0))
    assert not one_run.gained.sure and math.isnan(one_run.gained.low)


def test_a_setting_without_a_price_is_refused_before_any_run() -> None:
    points = [{"restart_s": "30"}, {"restart_s": "5"}]
    with pytest.raises(ConfigError, match=r"no price of restart_s=5; add it under settings, as {}"):
        check_prices(points, PriceFile(gpu_hour=1))
    check_prices(points, PriceFile(gpu_hour=1, settings={"restart_s=5": Price()}))
    check_prices(
        [{}, {"racks": "+2", "policy": "las", "policy.lease_s": "60"}], PriceFile(gpu_hour=1)
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("currency: EUR\n", "setting 'gpu_hour' is missing"),
        ("gpu_hour: -1\n", "p.yaml:1: 'gpu_hour' is -1"),
        ("gpu_hour: 1\nsettings: {a=b: {once: 5}}\n", "once needs years"),
        ("gpu_hour: 1\nsetting: {}\n", "did you mean 'settings'"),
    ],
)
def test_a_bad_price_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        load_costs(tmp_path / "p.yaml")
