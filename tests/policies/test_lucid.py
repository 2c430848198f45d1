"""Does Lucid put short jobs first, and only jobs on one GPU that hardly disturb each other?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import EstimateByLevel, Outage, S, cluster, finishes, intervals, job, make_policy

from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.contract import Notice, Restore, Withdraw
from artist.contract import Outage as Cause
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.errors import ConfigError
from artist.network.rates.interference import InterferedRates, PairSpeeds
from artist.network.rates.isolated import AloneRates
from artist.testing import check_policy
from artist.workload.job import Job

TINY, MEDIUM, JUMBO = "tiny", "medium", "jumbo"
SPEEDS = {TINY: 0.96, MEDIUM: 0.9, JUMBO: 0.5}
"""Of each model, beside whichever other."""


def run(
    tree: ClusterTree,
    jobs: Sequence[Job],
    speeds: Mapping[str, float] = SPEEDS,
    events: Outage | None = None,
    **options: Any,
) -> Rows:
    pairs = PairSpeeds(tree, {(one, other, ""): speeds[one] for one in speeds for other in speeds})
    rates = InterferedRates(AloneRates(tree, EstimateByLevel(tree)), pairs)
    policy = make_policy("lucid", **options)
    return Simulator(tree, jobs, rates, jobs_per_gpu=2, events=events, check=True).run(policy)


def pairs_of(rows: Rows) -> set[tuple[int, ...]]:
    """Handles of the jobs that shared GPUs."""
    return {tuple(sorted((row.handle, *row.beside))) for row in rows.placements if row.beside}


def test_a_tiny_job_comes_beside_another_one_at_once() -> None:
    rows = run(cluster([1]), [job("a", model=TINY), job("b", model=TINY)])
    assert pairs_of(rows) == {(0, 1)}
    assert finishes(rows) == pytest.approx({"a": 10 / 0.96, "b": 10 / 0.96}, abs=1e-8)


def test_jobs_get_free_gpus_before_they_share_any() -> None:
    rows = run(cluster([2]), [job("a", model=TINY), job("b", model=TINY)])
    assert pairs_of(rows) == set()


@pytest.mark.parametrize(
    ("models", "capacity", "shares"),
    [
        ((TINY, JUMBO), 2, True),
        ((MEDIUM, MEDIUM), 2, True),
        ((MEDIUM, JUMBO), 2, False),
        ((JUMBO, JUMBO), 2, False),
        ((JUMBO, JUMBO), 4, True),
        ((TINY, MEDIUM), 0, False),
        ((TINY, TINY), 0, True),
    ],
)
def test_scores_add_up_to_the_capacity_at_most(
    models: tuple[str, str], capacity: int, shares: bool
) -> None:
    jobs = [job(f"job-{index}", model=model) for index, model in enumerate(models)]
    rows = run(cluster([1]), jobs, sharing_capacity=capacity)
    assert pairs_of(rows) == ({(0, 1)} if shares else set())


def test_a_score_is_the_mean_over_the_models_that_have_arrived() -> None:
    # Beside its own kind at .92 and beside the other at .76, the mean of x is .84: jumbo.
    table = {("x", "x", ""): 0.92, ("x", "y", ""): 0.76, ("y", "x", ""): 0.99, ("y", "y", ""): 0.99}
    for other_y, shares in ((0.76, False), (0.78, True)):
        tree = cluster([2])
        pairs = PairSpeeds(tree, {**table, ("x", "y", ""): other_y})
        rates = InterferedRates(AloneRates(tree, EstimateByLevel(tree)), pairs)
        # c comes beside y in any case, so d finds x alone.
        jobs = [job("a", model="y"), job("b", model="x"), job("c", model="x"), job("d", model="x")]
        rows = Simulator(tree, jobs, rates, jobs_per_gpu=2, check=True).run(make_policy("lucid"))
        assert intervals(rows, 2)[0].beside == (0,)
        assert (intervals(rows, 3)[0].start == 0) == shares


def test_the_host_is_the_job_that_started_first_and_may_share() -> None:
    # a disturbs too much, b's GPU has a second job soon, and d finds c.
    jobs = [
        job(name, model=model) for name, model in zip("abc", (JUMBO, MEDIUM, MEDIUM), strict=True)
    ]
    jobs += [job("d", model=MEDIUM, arrival_s=1.0), job("e", model=MEDIUM, arrival_s=2.0)]
    rows = run(cluster([3]), jobs)
    assert pairs_of(rows) == {(1, 3), (2, 4)}
    assert [row.start // S for row in intervals(rows, 4)] == [2, 10]


def test_only_jobs_of_as_many_gpus_in_one_machine_share() -> None:
    tree = cluster([2], [2])
    jobs = [job("a", 2, model=TINY), job("b", 2, model=TINY), job("c", 1, model=TINY)]
    assert pairs_of(run(tree, jobs)) == set()
    whole = [job("a", 4, model=TINY), job("b", 4, model=TINY)]
    assert pairs_of(run(tree, whole, placement="any")) == set()
    assert pairs_of(run(cluster([4]), whole)) == {(0, 1)}


@pytest.mark.parametrize(
    ("host", "refused", "taken"),
    [
        (job("a", 2, model=MEDIUM), {"model": JUMBO}, {"model": MEDIUM}),
        (job("a", 2, model=TINY), {"gpus": 1}, {"gpus": 2}),
        (job("a", 2, model=TINY), {"tensor": 2}, {"tensor": 1}),
        (job("a", 2, model=TINY), {"gpu_kinds": ("old",)}, {"gpu_kinds": ("new",)}),
    ],
)
def test_a_job_that_no_host_suits_does_not_keep_others_back(
    host: Job, refused: dict[str, Any], taken: dict[str, Any]
) -> None:
    tree = replace(cluster([2, 2]), kinds=("new", "old"))
    first = [replace(host, gpu_kinds=("new",)), job("b", 2, model=JUMBO, gpu_kinds=("old",))]
    later = [
        job(name, **{"gpus": 2, "model": MEDIUM, **fields})
        for name, fields in (("c", refused), ("d", taken))
    ]
    assert pairs_of(run(tree, [*first, *later])) == {(0, 3)}


def test_short_jobs_come_first_by_the_run_times_of_those_that_finished() -> None:
    # Models s and l have run 2 and 20 s; then c (l), d (s) and e (s, of two GPUs: 4 s) wait.
    jobs = [job("a", 2, iterations=2, model="s"), job("b", 2, iterations=20, model="l")]
    jobs += [job("blocks", 2, iterations=30, model="m")]
    jobs += [job("c", 2, 5, model="l", arrival_s=30.0), job("e", 2, 5, model="s", arrival_s=31.0)]
    jobs += [job("d", 1, 5, model="s", arrival_s=32.0)]
    rows = run(cluster([2]), jobs, speeds={})
    order = sorted(rows.placements, key=lambda row: row.start)
    assert [row.handle for row in order] == [
        0, 1, 2, 5, 4, 3,
    ]  # fmt: skip


def test_run_times_of_a_user_count_before_those_of_others() -> None:
    jobs = [job("a", 1, 2, model="s", user="ann"), job("b", 1, 20, model="s", user="bob")]
    jobs += [job("other", 1, 100, model="m"), job("blocks", 1, 30, model="m")]
    jobs += [job("c", 1, 5, model="s", user="bob", arrival_s=130.0)]
    jobs += [job("d", 1, 5, model="s", user="eve", arrival_s=131.0)]
    jobs += [job("e", 1, 5, model="s", user="ann", arrival_s=132.0)]
    rows = run(cluster([1]), jobs, speeds={})
    order = sorted(rows.placements, key=lambda row: row.start)
    # 2 s, 11 s (of the model; 40 s of all), 20 s
    assert [row.handle for row in order] == [0, 1, 2, 3, 6, 5, 4]


def test_a_job_of_an_unknown_model_is_estimated_again_as_jobs_finish() -> None:
    # When d arrives, c is taken to run 2 s, as the first of all; b shows that it is long.
    jobs = [job("a", 1, 2, model="s"), job("b", 1, 500, model="l"), job("c", 1, 500, model="l")]
    jobs += [job("d", 1, 2, model="s", arrival_s=3.0)]
    assert finishes(run(cluster([1]), jobs, speeds={})) == {"a": 2, "b": 502, "d": 504, "c": 1004}


def test_a_job_that_started_before_any_finished_is_a_host() -> None:
    jobs = [job("a", 1, 2, model=TINY), job("b", 1, 1000, model=TINY)]
    jobs += [job("c", 1, 1000, model=TINY), job("d", 1, 5, model=TINY, arrival_s=10.0)]
    rows = run(cluster([2]), jobs)
    assert intervals(rows, 3)[0].start == 10 * S
    assert intervals(rows, 3)[0].beside == (1,)


def test_the_run_time_of_a_job_is_that_of_all_its_stays() -> None:
    # a has GPUs for 95 s and for 5 s after an outage: longer than b, of 10 s.
    tree = cluster([1])
    only = Placement((0,), (1,))
    events = Outage(Withdraw(95 * S, only), Restore(200 * S, only))
    jobs = [job("a", 1, 100, model="l"), job("b", 1, 10, model="s")]
    jobs += [job("blocks", 1, 10, model="m")]
    jobs += [job("c", 1, 5, model="l", arrival_s=216.0)]
    jobs += [job("d", 1, 5, model="s", arrival_s=216.0)]
    rows = run(tree, jobs, speeds={}, events=events)
    assert intervals(rows, 4)[0].start < intervals(rows, 3)[0].start


@pytest.mark.parametrize(
    ("first", "second", "medium_s", "shares"),
    [(MEDIUM, TINY, 9, True), (TINY, MEDIUM, 8, True), (TINY, MEDIUM, 9, False)],
)
def test_a_job_is_at_most_twice_as_long_as_the_one_that_it_joins(
    first: str, second: str, medium_s: int, shares: bool
) -> None:
    # Known run times: tiny 4 s, medium 8 or 9 s.
    jobs = [job("a", 1, 4, model=TINY), job("b", 1, medium_s, model=MEDIUM, arrival_s=5.0)]
    later = [job("c", 1, 8, model=first, arrival_s=20.0)]
    later += [job("d", 1, 8, model=second, arrival_s=21.0)]
    rows = run(cluster([1]), [*jobs, *later], sharing_capacity=1)
    assert ((2, 3) in pairs_of(rows)) == shares


def test_no_job_joins_one_whose_gpus_are_on_notice() -> None:
    coming = Cause("machine", 0, 50 * S, failed=False)
    jobs = [job("a", model=TINY), job("b", model=TINY), job("c", model=TINY, arrival_s=5.0)]
    rows = run(cluster([1], [1]), jobs, events=Outage(Notice(2 * S, (0,), 40 * S, coming)))
    assert pairs_of(rows) == {(1, 2)}


def test_what_only_takes_turns_shares_nothing() -> None:
    assert pairs_of(run(cluster([1]), [job("a"), job("b")], speeds={})) == set()


def test_classes_out_of_order_are_refused() -> None:
    with pytest.raises(ConfigError, match="medium_speed is above tiny_speed"):
        make_policy("lucid", medium_speed=0.99)


@pytest.mark.parametrize("capacity", [2, 4])
def test_lucid_keeps_the_contract(capacity: int) -> None:
    check_policy(lambda: make_policy("lucid", sharing_capacity=capacity))


@st.composite
def traces(draw: st.DrawFn) -> list[Job]:
    """More jobs than fit, many of one size."""
    arrivals = sorted(draw(st.lists(st.sampled_from([0.0, 3.0, 20.0]), min_size=3, max_size=10)))
    return [
        job(
            f"job-{index}",
            draw(st.sampled_from([1, 1, 2, 4])),
            draw(st.integers(1, 30)),
            arrival_s=arrival_s,
            model=draw(st.sampled_from(sorted(SPEEDS))),
            user=draw(st.sampled_from(["ann", "bob"])),
        )
        for index, arrival_s in enumerate(arrivals)
    ]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(jobs=traces(), capacity=st.integers(0, 4))
def test_any_trace_ends_with_lawful_pairs_and_the_same_rows(jobs: list[Job], capacity: int) -> None:
    tree = cluster([2, 2], [4])
    rows = run(tree, jobs, sharing_capacity=capacity)
    assert len(rows.jobs) == len(jobs)
    assert rows == run(tree, jobs, sharing_capacity=capacity)
    by_handle = {row.handle: row.job for row in rows.jobs}
    for pair in pairs_of(rows):
        one, other = (by_handle[handle] for handle in pair)
        assert one.gpus == other.gpus
        assert one.model != JUMBO or other.model != JUMBO or capacity == 4
    for row in rows.jobs:
        assert row.preemptions == row.migrations == 0
