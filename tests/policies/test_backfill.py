"""EASY and conservative backfilling by hand, and what they do beyond the textbook."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support import EstimateByLevel, Outage, cluster, finishes, job, make_policy, run, simulator

from artist.cluster.placement import Placement
from artist.contract import ClusterView, JobView, Restore, Withdraw
from artist.errors import ConfigError, TraceError
from artist.network.rates.isolated import AloneRates
from artist.policies.backfill.estimates import RunEstimates
from artist.policies.option_places import WITH_ESTIMATES, known_options
from artist.policies.table import POLICIES
from artist.testing import check_policy
from artist.units import seconds, ticks
from artist.workload.job import Job

ONE = cluster([4])
"""A machine with four GPUs."""

# `long` leaves one GPU. `head` waits until it ends at 10 s, and `wide` until the head ends. `thin`
# would use the GPU until 12 s. EASY lets it, since the head fits beside it. But then `wide` starts
# at 12 s instead of 11 s.
TEXTBOOK = [
    job("long", 3, 10),
    job("head", 3, 1, arrival_s=1.0),
    job("wide", 4, 1, arrival_s=1.0),
    job("thin", 1, 11, arrival_s=1.0),
]


def starts(policy: str, jobs: list[Job], **options: Any) -> dict[str, float]:
    rows = run(ONE, jobs, make_policy(policy, **options))
    return {row.job.id: seconds(row.start) for row in rows.jobs}


def test_easy_may_delay_a_job_behind_the_head() -> None:
    assert starts("easy", TEXTBOOK) == {"long": 0, "head": 10, "thin": 1, "wide": 12}


def test_conservative_delays_no_job() -> None:
    assert starts("conservative", TEXTBOOK) == {"long": 0, "head": 10, "wide": 11, "thin": 12}


def test_a_long_estimate_keeps_a_job_from_the_hole_that_it_fits() -> None:
    def jobs(*limits_s: float) -> list[Job]:
        hints = [{"hint_time_limit_s": limit_s} for limit_s in limits_s]
        return [
            job("long", 3, 10, hints=hints[0]),
            job("head", 4, 1, arrival_s=1.0, hints=hints[1]),
            job("fits", 1, 5, arrival_s=1.0, hints=hints[2]),
        ]

    assert starts("easy", jobs(10, 1, 9), estimates="limit")["fits"] == 1
    assert starts("easy", jobs(10, 1, 10), estimates="limit")["fits"] == 11


def test_a_first_start_counts_for_the_hole_that_a_job_fits() -> None:
    def jobs(first_start_s: float) -> list[Job]:
        fits = job("fits", 1, 8, arrival_s=1.0, first_start_s=first_start_s)
        return [job("long", 3, 10), job("head", 4, 1, arrival_s=1.0), fits]

    assert [starts("easy", jobs(first_s))["fits"] for first_s in (1.0, 2.0)] == [1, 11]


class _FourTimesAsFast:
    """Speeds of a kind on which jobs compute in a quarter of the time."""

    def scale_on(self, job: Job, placement: Placement) -> float:
        return 0.25


def test_a_job_fits_a_hole_that_it_would_not_fit_on_slower_gpus() -> None:
    jobs = [
        job("small", 1, 2),  # so it is known how fast jobs of one GPU are
        job("long", 3, 40),
        job("head", 4, 4, arrival_s=1.0),
        job("fits", 1, 20, arrival_s=1.0),
    ]
    rates = AloneRates(ONE, EstimateByLevel(ONE), speeds=_FourTimesAsFast())
    begun = {
        row.job.id: seconds(row.start)
        for row in run(ONE, jobs, make_policy("conservative"), rates).jobs
    }
    assert begun == {"small": 0, "long": 0, "head": 10, "fits": 1}


@pytest.mark.parametrize("run_s", [10.0000000004, 10.0000000006, 10.1])
def test_a_job_that_runs_to_its_limit_delays_no_reservation(run_s: float) -> None:
    # Limits need not be whole nanoseconds. A job that outlasts its own voids all reservations, so
    # that the shorter `late` would go first.
    jobs = [
        Job("first", 0.0, 4, "unknown", 1, run_s, hints={"hint_time_limit_s": run_s}),
        job("next", 4, 5, arrival_s=1.0, hints={"hint_time_limit_s": 5}),
        job("late", 4, 1, arrival_s=2.0, hints={"hint_time_limit_s": 1}),
    ]
    found = starts("conservative", jobs, estimates="limit", order="length")
    assert found["next"] == pytest.approx(run_s, abs=2e-9)


@pytest.mark.parametrize("limit", [None, "", "soon", "-5", "nan"])
def test_a_job_without_a_limit_is_named(limit: object) -> None:
    hints = {} if limit is None else {"hint_time_limit_s": limit}
    jobs = [job("a", 4, 5, hints=hints), job("b", 1, 1, hints=hints)]
    with pytest.raises(TraceError, match=r"job 'a': hint_time_limit_s is .* time limit of every"):
        run(ONE, jobs, make_policy("easy", estimates="limit"))


@pytest.mark.parametrize("rule", ["", "Exact", "factor", "factor:", "factor:0", "factor:nan"])
def test_an_unknown_rule_is_refused(rule: str) -> None:
    with pytest.raises(ConfigError, match="expected exact, limit, learned or factor:F"):
        make_policy("conservative", estimates=rule)


def test_a_bad_rule_is_reported_once_and_other_policies_have_none() -> None:
    with pytest.raises(ConfigError) as caught:
        make_policy("easy", estimates="factor:-1")
    assert str(caught.value).count("factor:-1") == 1
    having = {x.id for x in POLICIES if "estimates" in known_options(x.id)}
    assert having == set(WITH_ESTIMATES)
    with pytest.raises(ConfigError, match=r"policy las: .* only policies easy and conserv"):
        make_policy("las", estimates="exact")


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_gpus_that_leave_service_void_reservations(policy: str) -> None:
    jobs = [job("long", 4, 10), job("short", 4, 5), job("next", 4, 1, arrival_s=1.0)]
    tree = cluster([4], [4])
    second = Placement((1,), (4,))
    events = Outage(Withdraw(ticks(3), second), Restore(ticks(30), second))
    rows = simulator(tree, jobs, events=events).run(make_policy(policy))
    # The short job has two seconds left, and comes first again.
    assert finishes(rows) == {"long": 10, "short": 12, "next": 13}


@pytest.mark.parametrize("policy", ["easy", "conservative"])
@pytest.mark.parametrize("estimates", ["factor:0.3", "factor:3"])
def test_the_contract_is_kept(policy: str, estimates: str) -> None:
    options = {"placement": "consolidate-or-wait", "order": "sensitivity", "estimates": estimates}
    check_policy(lambda: make_policy(policy, **options))


@pytest.mark.parametrize(
    ("policy", "words"),
    [("easy", "it would have delayed job '"), ("conservative", "it would have run into")],
)
def test_the_reason_of_a_wait_beside_free_gpus_is_stated_once(policy: str, words: str) -> None:
    jobs = [job("a", 3, 10), job("b", 4, 1, arrival_s=1.0), job("c", 1, 30, arrival_s=1.0)]
    rows = run(ONE, [*jobs, job("d", 4, 1, arrival_s=2.0)], make_policy(policy))
    said = [(row.handle, seconds(row.tick)) for row in rows.wait_reasons if words in row.reason]
    assert said == [(2, 1.0)]


def test_jobs_that_may_not_pass_the_head_are_not_timed_at_each_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timed: list[str] = []
    alone = RunEstimates._alone

    def watched(self: RunEstimates, view: ClusterView, one: JobView, at: Placement) -> int:
        if view.now < ticks(10) and one.job.id.startswith("thin"):
            timed.append(one.job.id)
        return alone(self, view, one, at)

    monkeypatch.setattr(RunEstimates, "_alone", watched)
    thin = [job(f"thin{index}", 1, 20, arrival_s=1.0) for index in range(8)]
    later = [job(f"thin{index}", 1, 20, arrival_s=index - 6.0) for index in range(8, 12)]
    # It fits the hole, though jobs like it do not.
    fits = job("fits", 1, 4, arrival_s=6.0)
    rows = [job("long", 3, 10), job("head", 4, 1, arrival_s=1.0), *thin, *later, fits]
    assert starts("easy", rows)["fits"] == 6
    assert timed == 6 * ["thin0"]  # the questions at 1 to 6 s


def test_a_start_lets_a_job_that_would_have_delayed_the_head_start_elsewhere() -> None:
    # From 2 s on, two GPUs of either machine are free. The head gets those of the first one at
    # 10 s. `first` would have one of them for too long, and so would `last`, until `short` has
    # taken both.
    jobs = [job("until10", 4, 10), job("until1000", 4, 1000), job("one", 1, 2), job("two", 2, 2)]
    queue = [("head", 6, 1), ("first", 1, 100), ("short", 2, 5), ("last", 1, 100)]
    jobs += [job(*waiting, arrival_s=1.0) for waiting in queue]
    policy = make_policy("easy", placement="consolidate-or-wait")
    rows = run(cluster([6, 6]), jobs, policy)
    started = {row.job.id: seconds(row.start) for row in rows.jobs}
    assert (started["short"], started["last"]) == (2, 2)


def test_a_job_that_comes_back_with_less_to_do_is_timed_anew() -> None:
    one = job("a", 1, iterations=10)
    done = iter([0, 4])
    waiting = SimpleNamespace(
        job=one, handle=0, former_placement=None, iterations_done=lambda now: next(done)
    )
    view = SimpleNamespace(now=0, cluster=ONE, entered=[waiting], finished=[])
    estimates = RunEstimates("exact")
    estimates._compute_scales[one.model, 1] = 1.0
    for left_s in (10, 6):
        estimates.learn(view)
        assert estimates.shortest(view, waiting) == estimates.shortest(view, waiting)
        assert seconds(estimates.shortest(view, waiting)) == left_s


@pytest.mark.parametrize(("kinds", "least_s"), [("aa", 40), ("ab", 0)])
def test_the_speed_of_one_kind_bounds_no_run_time_on_another(kinds: str, least_s: float) -> None:
    slow = SimpleNamespace(compute_scale=4.0, submitted_iteration_s=4.0)
    view: Any = SimpleNamespace(
        now=0, cluster=SimpleNamespace(kinds=tuple(kinds)), alone=lambda *of: slow
    )
    waiting: Any = SimpleNamespace(
        job=job("a", 1, 10), handle=0, former_placement=None, iterations_done=lambda now: 0
    )
    estimates = RunEstimates("exact")
    assert seconds(estimates.duration(view, waiting, Placement.of({0: 1}))) == 40
    assert estimates.shortest(view, waiting) == max(1, ticks(least_s))
