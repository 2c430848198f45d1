"""Does Sia give jobs the kinds and numbers of GPUs that its paper says, and no others?"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from support import intervals, job

pytest.importorskip("scipy")

from artist.cluster.tree import ClusterTree, nested
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.errors import ConfigError, TraceError
from artist.estimates.backends import NoCommunication
from artist.estimates.speeds import SpeedsOfRun, SpeedTable
from artist.network.rates.isolated import AloneRates
from artist.policies.sia.policy import Sia
from artist.run import open_policy
from artist.units import seconds
from artist.workload.goodput import Goodput, best
from artist.workload.job import Job

TABLE = SpeedTable(
    name="mine",
    summary="",
    reference="new",
    source="made up",
    speeds={
        "any": {"new": {1: 2}, "old": {1: 1}},
        "odd": {"new": {1: 1}, "old": {1: 3}},
    },
)
NOISY = Goodput(64, 1024, 8, 128, 0.1, 0.01, 0.1, 0.01, 0.5, 0.05, 2.0, ((0.0, 50.0), (0.5, 900.0)))


def cluster(**machines: list[int]) -> ClusterTree:
    """A rack of machines with this many GPUs, by kind."""
    kinds = [kind for kind, sizes in machines.items() for _ in sizes]
    return nested(
        ("machine", "rack", "network"), [[x for sizes in machines.values() for x in sizes]], kinds
    )


def ran(jobs: list[Job], tree: ClusterTree, **options: Any) -> Rows:
    none = NoCommunication()
    rates = AloneRates(tree, none.estimate, none.everywhere, SpeedsOfRun(TABLE, tree))
    return Simulator(tree, jobs, rates, check=True).run(open_policy("sia", options))


def stays(rows: Rows, tree: ClusterTree) -> dict[str, list[tuple[str, int]]]:
    """Kind and number of GPUs of each stay, in the order of time."""
    found: dict[str, list[tuple[str, int]]] = {row.job.id: [] for row in rows.jobs}
    names = {row.handle: row.job.id for row in rows.jobs}
    for row in sorted(rows.placements, key=lambda row: row.start):
        kinds = {tree.kinds[tree.machine_of[leaf]] for leaf in row.placement.leaves}
        assert len(kinds) == 1
        stay = (*kinds, row.placement.gpus)
        if found[names[row.handle]][-1:] != [stay]:
            found[names[row.handle]].append(stay)
    return found


def elastic(name: str, **fields: Any) -> Job:
    """A job that runs on 1 to 8 GPUs, and gets as much faster."""
    return job(name, gpus_min=1, gpus_max=8, **fields)


# -- closed forms -------------------------------------------------------------------------


@pytest.mark.parametrize("gpus", [1, 3, 4, 6])
def test_a_rigid_job_gets_what_it_asks_on_its_fastest_kind(gpus: int) -> None:
    tree = cluster(old=[4, 4], new=[4, 4])
    for model, kind in (("any", "new"), ("odd", "old")):
        rows = ran([job("a", gpus, 100, model=model)], tree)
        assert stays(rows, tree) == {"a": [(kind, gpus)]}
        assert rows.placements[0].placement.gpus == gpus
        assert seconds(rows.jobs[0].finish) == pytest.approx(100 if kind == "new" else 100 / 3)


def test_two_equal_elastic_jobs_share_equally() -> None:
    tree = cluster(new=[8])
    jobs = [elastic(name, iterations=8000) for name in "ab"]
    rows = ran(jobs, tree)
    # They explore 1, 2 and 4 GPUs; the second job ends as the first does.
    assert stays(rows, tree) == {x: [("new", 1), ("new", 2), ("new", 4)] for x in "ab"}
    assert rows.jobs[0].finish == rows.jobs[1].finish
    at_once = ran(jobs, tree, explore=False)
    assert stays(at_once, tree) == {x: [("new", 4)] for x in "ab"}
    assert seconds(at_once.jobs[0].finish) == 2000


def test_jobs_go_where_they_are_worth_most() -> None:
    """Each of two jobs is faster on another kind; of two that are alike, the first has the best."""
    tree = cluster(old=[1], new=[1])
    mixed = ran([job("a", iterations=100), job("b", iterations=100, model="odd")], tree)
    assert stays(mixed, tree) == {"a": [("new", 1)], "b": [("old", 1)]}
    alike = ran([job("a", iterations=1000), job("b", iterations=1000)], tree)
    # `b` moves once `a` has finished, at 1,000 s, in the round at 1,020 s.
    assert stays(alike, tree) == {"a": [("new", 1)], "b": [("old", 1), ("new", 1)]}
    assert seconds(alike.jobs[1].finish) == 1020 + (1000 - 1020 / 2)


@pytest.mark.parametrize(("delay", "starts"), [(30.0, [0, 60, 120]), (50.0, [0, 60, 180])])
def test_a_restart_must_be_worth_it(delay: float, starts: list[float]) -> None:
    """Twice the GPUs are worth 2 x (age - restarts x delay) / (age + delay); above 1 a job moves.

    With a delay of 50 s, that is 2 x 60 / 110, then 2 x 70 / 170 and 2 x 130 / 230.
    """
    jobs = [elastic("a", iterations=10000, restart_s=delay)]
    rows = ran(jobs, cluster(new=[4]))
    assert [seconds(row.start) for row in intervals(rows, 0)] == starts


def test_a_wide_rigid_job_younger_than_its_delay_moves_freely() -> None:
    """After 60 s and 240 GPU-seconds; else 2 x 60 / 160 would keep it on the old GPUs."""
    jobs = [job("a", 4, 55), job("b", 4, 1000, restart_s=100.0)]
    tree = cluster(old=[4], new=[4])
    rows = ran(jobs, tree)
    assert stays(rows, tree)["b"] == [("old", 4), ("new", 4)]
    assert [seconds(row.start) for row in intervals(rows, 1)] == [0, 60]


def test_a_job_that_restarts_keeps_its_gpus() -> None:
    jobs = [elastic("a", iterations=4000, restart_s=100.0), job("b", 4, 10, arrival_s=70.0)]
    rows = ran(jobs, cluster(new=[4]), unallocated=50.0)
    # `a` moves to 2 GPUs at 60 s and restarts until 160 s.
    assert seconds(intervals(rows, 1)[0].start) == 180.0


def test_a_round_is_left_out_only_if_it_would_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The jobs are long and rigid, and move to other kinds."""
    fixed = {"goodput": None, "compute_s": 1.0, "restart_s": 100.0}
    made = []
    for seed in (24, 27, 39):
        tree, jobs = cluster(old=[4], new=[4]), _random(seed)[1][:5]
        rigid = [replace(x, gpus_min=x.gpus, gpus_max=x.gpus, gpu_kinds=(), **fixed) for x in jobs]
        made.append((tree, [replace(x, iterations=3 * x.iterations) for x in rigid]))
    left_out = [ran(jobs, tree).placements for tree, jobs in made]
    monkeypatch.setattr(Sia, "settled", lambda self, view: False)
    assert left_out == [ran(jobs, tree).placements for tree, jobs in made]


def test_goodput_may_differ_by_kind() -> None:
    """A third of the time per sample on the new kind, and as much memory on both."""
    fast = replace(NOISY, alpha_c=NOISY.alpha_c / 3, beta_c=NOISY.beta_c / 3)
    by_kind = replace(NOISY, kinds=(("old", NOISY), ("new", fast)))
    fields: dict[str, Any] = {"goodput": by_kind, "compute_s": 0.74, "gpus_max": 8}
    jobs = [job("a", gpus_min=1, iterations=2000, **fields)]
    tree = cluster(old=[4], new=[4])
    rows = ran(jobs, tree)
    assert stays(rows, tree) == {"a": [("new", 1), ("new", 2), ("new", 4)]}
    first = intervals(rows, 0)[0]
    _, batch = best(fast, 1, 50.0, one_machine=True)
    assert first.iteration_s == fast.step_s(1, batch, one_machine=True)


# -- laws ---------------------------------------------------------------------------------


def _random(seed: int) -> tuple[ClusterTree, list[Job]]:
    random = Random(seed)
    tree = cluster(old=[4, 2], new=[8, 8], other=[4])
    jobs = []
    for index in range(8):
        fields: dict[str, Any] = {
            "arrival_s": index * random.uniform(0, 90),
            "iterations": random.randint(1, 600),
            "restart_s": random.choice([0, 30]),
            "model": "odd",
            "gpu_kinds": random.choice([(), ("old",), ("new", "old")]),
        }
        gpus = random.choice([1, 2, 3, 4])
        draw = random.random()
        if draw < 0.3:
            jobs.append(job(f"j{index}", gpus, **fields))
        elif draw < 0.6:
            jobs.append(job(f"j{index}", gpus, gpus_min=1, gpus_max=12, **fields))
        else:
            fields["compute_s"] = NOISY.compute_s(NOISY.submitted(gpus))
            fields |= {"goodput": NOISY, "gpus_min": 1, "gpus_max": 8}
            jobs.append(job(f"j{index}", gpus, **fields))
    return tree, sorted(jobs, key=lambda one: one.arrival_s)


def test_mixed_jobs_keep_all_laws_and_run_the_same_twice() -> None:
    """The run checks every invariant after every event."""
    for seed in range(3):
        tree, jobs = _random(seed)
        none = NoCommunication()
        twice = [
            Simulator(tree, jobs, AloneRates(tree, none.estimate, none.everywhere), check=True).run(
                open_policy("sia", {})
            )
            for _ in range(2)
        ]
        assert twice[0].placements == twice[1].placements
        assert len(twice[0].jobs) == len(jobs)
        kinds = stays(twice[0], tree)
        for one in jobs:
            for kind, gpus in kinds[one.id]:
                assert not one.gpu_kinds or kind in one.gpu_kinds
                assert one.gpus_min <= gpus <= one.gpus_max


# -- errors -------------------------------------------------------------------------------


def test_options_that_let_no_job_run_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"at policy.unallocated=0.1 all waiting jobs are better"):
        ran([job("a", 1)], cluster(old=[4]), unallocated=0.1)


def test_a_job_that_no_kind_holds_is_named() -> None:
    with pytest.raises(TraceError, match="job 'a' wants 5 GPUs of one kind"):
        ran([job("a", 5)], cluster(old=[4], new=[4]))


def test_a_power_of_0_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected a power below or above 0"):
        open_policy("sia", {"power": 0})
