"""Do units fail as the model says, and do the same ones whoever is asking?"""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import fmean

import pytest
from failures.made import exponential, run_with_failures, units
from support import S, cluster, job, make_policy

from artist.cluster.tree import ClusterTree, nested, regular
from artist.contract import OutsideEvent, Restore, Withdraw
from artist.failures.events import FailureEvents, lifetime_s
from artist.failures.model_file import UnitFailures
from artist.rng import uniform


def first(events: FailureEvents, count: int) -> list[OutsideEvent]:
    told = [events.next_event(0) for _ in range(count)]
    return [event for event in told if event is not None]


def failures_of(tree: ClusterTree, model: dict, count: int, seed: int = 0) -> list[tuple]:
    told = first(FailureEvents(units(tree, model), seed), count)
    return [
        (event.at, event.outage.kind, event.outage.unit)
        for event in told
        if isinstance(event, Withdraw) and event.outage is not None
    ]


def test_lifetimes_have_the_mean_and_the_distribution_of_the_model() -> None:
    draws = [uniform(0, "lifetimes", (n,), 0) for n in range(20_000)]
    for shape, deviation in ((None, 1.0), (0.7, 1.4624), (2.0, 0.5227)):
        kind = "exponential" if shape is None else "weibull"
        model = UnitFailures(distribution=kind, mtbf_s=5e5, repair_s=0, shape=shape)
        times = [lifetime_s(model, chance) / 5e5 for chance in draws]
        # Standard deviations of Weibull of mean 1: sqrt(gamma(1 + 2/k) / gamma(1 + 1/k)^2 - 1).
        assert abs(fmean(times) - 1) < 3 * deviation / math.sqrt(len(times))
        spread = math.sqrt(fmean([(time - 1) ** 2 for time in times]))
        assert spread == pytest.approx(deviation, rel=0.03)


def test_a_unit_is_away_for_its_repair_time_and_then_lives_anew() -> None:
    told = first(FailureEvents(units(cluster([8]), {"machine": exponential(1e4, 600)}), 0), 40)
    assert [type(event) for event in told] == [Withdraw, Restore] * 20
    assert all(
        back.at - away.at == 600 * S for away, back in zip(told[::2], told[1::2], strict=True)
    )
    lives = [away.at - back.at for back, away in pairwise(told) if isinstance(away, Withdraw)]
    assert len(set(lives)) == len(lives)


def test_more_racks_behind_and_another_kind_of_failure_move_no_failure() -> None:
    small = failures_of(
        regular(racks=2, machines_per_rack=3, gpus_per_machine=4), {"machine": exponential(1e5)}, 80
    )
    model = {"machine": exponential(1e5), "gpu": exponential(9e5), "rack": exponential(8e5)}
    large = failures_of(regular(racks=3, machines_per_rack=3, gpus_per_machine=4), model, 300)
    same = [event for event in large if event[1] == "machine" and event[2] < 6]
    # Where a failing rack hides a machine's failure, the machine is told later.
    assert set(small[:20]) <= set(same)


def test_seeds_differ() -> None:
    tree, model = cluster([8, 8]), {"machine": exponential(1e5)}
    assert failures_of(tree, model, 20) == failures_of(tree, model, 20)
    assert failures_of(tree, model, 20) != failures_of(tree, model, 20, seed=1)


@pytest.mark.parametrize("policy", ["fifo", "tiresias", "dally"])
def test_the_same_failures_hit_every_policy(policy: str) -> None:
    tree = cluster([8, 8], [8, 8])
    jobs = [job(f"{n}", gpus=1 + n % 9, iterations=5000 + n) for n in range(30)]
    model = {"machine": exponential(5e3, 60), "rack": exponential(2e4, 100)}
    rows, _ = run_with_failures(tree, jobs, model, policy=make_policy(policy), interval_s=100)
    reference, _ = run_with_failures(tree, jobs, model, interval_s=100)
    hits = [(row.tick, row.placement, row.outage) for row in rows.outages]
    expected = [(row.tick, row.placement, row.outage) for row in reference.outages]
    shorter = min(len(hits), len(expected))
    assert shorter > 10
    assert hits[:shorter] == expected[:shorter]


def test_a_gpu_is_away_until_the_last_outage_around_it_is_over() -> None:
    model = {
        "outages": [
            {"kind": "rack", "unit": 0, "at_s": 10, "duration_s": 20},
            {"kind": "machine", "unit": 1, "at_s": 15, "duration_s": 30},
            {"kind": "gpu", "unit": 2, "at_s": 20, "duration_s": 5},
            {"kind": "gpu", "unit": 9, "at_s": 21, "duration_s": 5},
        ]
    }
    told = first(FailureEvents(units(cluster([4, 4], [4]), model), 0), 10)
    brief = [
        (type(event).__name__, event.at // S, dict(zip(*event.placement, strict=True)))
        for event in told
    ]
    assert brief == [
        ("Withdraw", 10, {0: 4, 1: 4}),
        ("Withdraw", 21, {2: 1}),
        ("Restore", 26, {2: 1}),
        ("Restore", 30, {0: 4}),
        ("Restore", 45, {1: 4}),
    ]


def test_a_unit_comes_back_before_it_leaves_again_at_the_same_tick() -> None:
    planned = [{"kind": "machine", "unit": 0, "at_s": at, "duration_s": 10} for at in (10, 20)]
    told = first(FailureEvents(units(cluster([4]), {"outages": planned}), 0), 4)
    brief = [(type(event).__name__, event.at // S) for event in told]
    assert brief == [("Withdraw", 10), ("Restore", 20), ("Withdraw", 20), ("Restore", 30)]


def test_the_position_of_a_gpu_counts_those_in_service() -> None:
    model = {
        "outages": [
            {"kind": "gpu", "unit": unit, "at_s": at, "duration_s": 100}
            for at, unit in ((1, 5), (2, 7), (3, 6), (4, 4))
        ]
    }
    told = first(FailureEvents(units(cluster([4, 4]), model), 0), 4)
    assert [event.position for event in told if isinstance(event, Withdraw)] == [1, 2, 1, 0]


def test_a_failing_link_takes_the_unit_below_it_out_of_service() -> None:
    model = {"outages": [{"kind": "link", "level": "rack", "unit": 1, "at_s": 1, "duration_s": 1}]}
    told = first(FailureEvents(units(cluster([4, 4], [4, 2]), model), 0), 1)
    assert told[0].placement == ((2, 3), (4, 2))
    assert told[0].outage is not None
    assert told[0].outage.text == "link 1 failed"


def test_a_unit_of_any_level_fails() -> None:
    tree = nested(("machine", "rack", "region", "network"), [[[2], [2]], [[2]]])
    model = {"outages": [{"kind": "region", "unit": 0, "at_s": 1, "duration_s": 1}]}
    told = first(FailureEvents(units(tree, model), 0), 1)
    assert told[0].placement == ((0, 1), (2, 2))
    rates = units(tree, {"levels": {"region": exponential(1e5)}, "machine": exponential(1e4)})
    assert [kind.name for kind in rates.kinds] == ["machine", "region"]


def test_an_endless_source_ends_with_the_last_job() -> None:
    rows, _ = run_with_failures(cluster([4]), [job("a")], {"machine": exponential(100.0, 10)})
    assert rows.timeline[-1].tick == rows.jobs[0].finish


def test_hazard_of_n_machines_is_n_r_and_racks_count_once() -> None:
    from support import on

    tree = cluster([8, 8], [8, 8])
    model = {"machine": exponential(1e5), "rack": exponential(1e6), "gpu": exponential(1e7)}
    hazard = units(tree, model).hazard
    assert hazard(on({0: 8, 1: 8})) == pytest.approx(2e-5 + 1e-6 + 16e-7)
    assert hazard(on({1: 4, 2: 1})) == pytest.approx(2e-5 + 2e-6 + 5e-7)
