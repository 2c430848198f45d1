"""Do `tiresias-rounds` and `optimus` decide as the program in which Pollux was compared?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support import Outage, S, cluster, finishes, intervals, job, make_policy, run, with_free

import artist
from artist.cluster.placement import Placement
from artist.contract import Restore, Withdraw
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.policies.elastic.emptiest import emptiest
from artist.testing import LevelRates
from artist.workload.goodput import Goodput
from artist.workload.job import Job


def starts(rows: Rows, handle: int) -> list[int]:
    """When a job's stays begin, seconds."""
    return [row.start // S for row in intervals(rows, handle)]


# -- where -------------------------------------------------------------------------------


def test_the_machines_with_most_free_gpus_come_first() -> None:
    free = with_free([[4, 4], [4, 4]], 1, 3, 0, 3)
    one, five = emptiest(free, 1), emptiest(free, 5)
    assert one is not None
    assert five is not None
    assert (one.leaves, one.counts) == ((1,), (1,))
    assert (five.leaves, five.counts) == ((1, 3), (3, 2))
    assert emptiest(free, 8) is None


# -- rounds --------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["pollux", "sia", "gavel", "equal-share", "tiresias-rounds"])
def test_a_job_waits_for_its_round_once_its_machine_is_repaired(
    tmp_path: Path, policy: str
) -> None:
    """Of two machines one is down from 20 s to 50 s: until then GPUs lack, then only the round."""
    trace, log = tmp_path / "two.csv", tmp_path / "down.csv"
    trace.write_text(
        "job_id,arrival_s,gpus,model,iterations,compute_s\n"
        "a,0,4,resnet50,1000,1\nb,0,4,resnet50,1000,1\n"
    )
    log.write_text("unit,from,until\nmachine 0,20,50\n")
    made: dict[str, Any] = {"racks": 1, "machines_per_rack": 2, "gpus_per_machine": 4}
    made |= {"trace": str(trace), "failures": str(log), "backend": "none", "policy": policy}
    result = artist.simulate(artist.Scenario(**made), cache=False, check=True)
    causes = result.table("wait_causes").set_index("cause").cause_s.to_dict()
    assert causes == {"gpus": 30, "timer": 310 if policy == "gavel" else 10}


@pytest.mark.parametrize(
    ("policy", "iterations"),
    [("pollux", 10), ("sia", 10), ("equal-share", 10), ("tiresias-rounds", 90_000)],
)
def test_rounds_get_rare_again_after_each_event(
    policy: str, iterations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five jobs come and go within an hour; then one waits for a day, of 1,440 periods."""
    jobs = [job("long", gpus=3, iterations=90_000), job("waits", gpus=4, iterations=iterations)]
    jobs += [job(f"short{n}", gpus=1, iterations=90, arrival_s=600.0 * n + 1) for n in range(5)]
    tried = make_policy(policy)
    place, rounds = tried.round, list[int]()
    monkeypatch.setattr(tried, "round", lambda view: rounds.append(view.now // S) or place(view))
    run(cluster([4]), jobs, tried)
    after = [at for at in rounds if 40_000 < at < 90_000]
    assert len(after) <= 10  # gaps of 1, 2, 4, ... periods


@pytest.mark.parametrize("policy", ["equal-share", "tiresias-rounds", "pollux"])
def test_other_gpus_free_at_a_wake_up_that_an_event_overtook_begin_a_round(policy: str) -> None:
    """At 900 s, asked for before x came at 430 s, w's kind returns as another one leaves."""
    tree = replace(cluster([4], [4]), kinds=("a100", "h100"))
    old, new = Placement((0,), (4,)), Placement((1,), (4,))
    events = Outage(Withdraw(S, old), Restore(900 * S, old), Withdraw(900 * S, new))
    jobs = [
        job(name, gpus=4, iterations=10, arrival_s=arrival_s, gpu_kinds=("a100",))
        for name, arrival_s in (("w", 0.0), ("x", 430.0))
    ]
    simulator = Simulator(tree, jobs, LevelRates(tree), events=events, check=True)
    assert starts(simulator.run(make_policy(policy)), 0) == [0, 900]


# -- two queues ---------------------------------------------------------------------------


def test_a_waiting_job_takes_the_gpus_of_one_that_came_later() -> None:
    """At 60 s the third fits, not the second; at 120 s the first has ended, and the second fits."""
    jobs = [
        job("first", gpus=3, iterations=100),
        job("second", gpus=4, iterations=50, arrival_s=1.0),
        job("third", gpus=1, iterations=500, arrival_s=2.0),
    ]
    rows = run(cluster([4]), jobs, make_policy("tiresias-rounds"))
    assert finishes(rows) == {"first": 100, "second": 170, "third": 620}
    assert starts(rows, 2) == [60, 180]


def test_a_demoted_job_comes_after_jobs_that_are_not_and_for_ever() -> None:
    """The first reaches 200 GPU-seconds at 100 s, which the round at 120 s sees."""
    jobs = [
        job("first", gpus=2, iterations=300),
        job("second", gpus=2, iterations=100, arrival_s=60.0),
    ]
    rows = run(cluster([2]), jobs, make_policy("tiresias-rounds", threshold_gpu_s=200.0))
    # The second reaches the threshold at 220 s, exactly when it ends.
    assert starts(rows, 1) == [120]
    assert finishes(rows) == {"first": 420, "second": 220}
    assert starts(rows, 0) == [0, 240]


def test_demoted_jobs_stand_in_the_order_of_their_demotion() -> None:
    """The second reaches the threshold first, as it has more GPUs; nothing waits until 400 s."""
    jobs = [
        job("first", gpus=1, iterations=1000),
        job("second", gpus=3, iterations=1000),
        job("third", gpus=1, iterations=50, arrival_s=400.0),
    ]
    rows = run(cluster([4]), jobs, make_policy("tiresias-rounds", threshold_gpu_s=300.0))
    # Demoted at 300 and 120 s. The third takes a GPU, and the second needs three of the others.
    assert starts(rows, 0) == [0, 480]
    assert starts(rows, 1) == [0]
    assert finishes(rows)["third"] == 470


@pytest.mark.parametrize("seed", range(20))
def test_random_jobs_are_served_as_a_naive_loop_serves_them(seed: int) -> None:
    random = Random(seed)
    jobs = sorted(
        (
            job(
                f"j{n}",
                gpus=random.choice([1, 1, 2, 3, 5, 8]),
                iterations=random.randint(5, 900),
                arrival_s=float(random.randint(0, 900)),
            )
            for n in range(25)
        ),
        key=lambda job: job.arrival_s,
    )
    rows = run(cluster([4, 4, 4]), jobs, make_policy("tiresias-rounds", threshold_gpu_s=720.0))
    assert finishes(rows) == naive(jobs, 12, 60, 720)


def naive(jobs: list[Job], gpus: int, period: int, threshold: int) -> dict[str, float]:
    """When jobs finish: second by second, with nothing but lists."""
    now = int(jobs[0].arrival_s)
    left = {job.id: job.iterations for job in jobs}
    served = dict.fromkeys(left, 0)
    running: list[Job] = []
    demoted: list[Job] = []
    ends: dict[str, float] = {}
    origin = now
    while len(ends) < len(jobs):
        if (now - origin) % period == 0:
            here = [job for job in jobs if job.arrival_s <= now and job.id not in ends]
            demoted += [x for x in here if served[x.id] >= threshold and x not in demoted]
            free, running = gpus, []
            for x in [x for x in here if x not in demoted] + [x for x in demoted if x in here]:
                if x.gpus <= free:
                    free -= x.gpus
                    running.append(x)
        now += 1
        for x in [x for x in running if x.id not in ends]:
            left[x.id] -= 1
            served[x.id] += x.gpus
            if not left[x.id]:
                ends[x.id] = now
    return ends


# -- Optimus ------------------------------------------------------------------------------


def test_optimus_may_know_what_follows_the_present_stretch_only() -> None:
    """Both have as much left, but the present stretch of `late` is nearly all of it."""
    flat = Goodput(64, 1024, 8, 128, 0.1, 0.01, 0.1, 0.0, 0.1, 0.0, 1.0, ((0.0, 1e9), (0.1, 1e9)))
    late = Goodput(64, 1024, 8, 128, 0.1, 0.01, 0.1, 0.0, 0.1, 0.0, 1.0, ((0.0, 1e9), (0.9, 1e9)))
    jobs = [
        job("late", iterations=1000, goodput=late, gpus_min=1, gpus_max=8, model="late"),
        job("flat", iterations=1000, goodput=flat, gpus_min=1, gpus_max=8, model="flat"),
    ]
    for known, gpus in (("now", (3, 3)), ("stretch", (1, 5))):
        rows = run(cluster([2, 2, 2]), jobs, make_policy("optimus", known=known))
        assert tuple(intervals(rows, handle)[0].placement.gpus for handle in (0, 1)) == gpus


def test_small_jobs_take_the_emptiest_machines_first() -> None:
    """Packed, each takes the machine that it fills; else the small one takes the one with 4."""
    jobs = [job("large", gpus=3, iterations=200), job("small", gpus=2, iterations=100)]
    for placement, leaves in (("pack", [(1,), (2,)]), ("emptiest", [(1,), (0,)])):
        rows = run(cluster([4, 3, 2]), jobs, make_policy("optimus", placement=placement))
        assert [intervals(rows, handle)[0].placement.leaves for handle in (0, 1)] == leaves
