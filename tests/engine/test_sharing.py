"""Do jobs share GPUs as the closed forms say, and is nothing lost or counted twice?"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import trees
from support import EstimateByLevel, Outage, S, Script, cluster, finishes, intervals, job, on

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.contract import (
    BasePolicy,
    ClusterView,
    Decision,
    EventSource,
    Hold,
    JobView,
    Migrate,
    Preempt,
    Restore,
    Start,
    Wake,
    Withdraw,
)
from artist.contract.gates import without
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.errors import InvariantError, PolicyError
from artist.network.rates.interference import PairSpeeds, interfered, read_speeds, table_path
from artist.network.rates.isolated import AloneRates
from artist.units import TICKS_PER_S, ticks
from artist.workload.job import Job

ONE = on({0: 1})


def shared(
    tree: ClusterTree,
    jobs: Sequence[Job],
    *,
    lease_s: float | None = None,
    events: EventSource | None = None,
    jobs_per_gpu: int = 2,
    interference: str = "time-slicing",
) -> Simulator:
    """A checked simulator in which this many jobs may share a GPU."""
    rates = AloneRates(tree, EstimateByLevel(tree))
    return Simulator(
        tree,
        jobs,
        interfered(rates, interference, tree, jobs_per_gpu),
        lease=None if lease_s is None else ticks(lease_s),
        events=events,
        jobs_per_gpu=jobs_per_gpu,
        check=True,
    )


def shares(rows: Rows) -> Fraction:
    """GPU time that jobs attained, in GPU-ticks."""
    held = [row.placement.gpus * (row.end - row.start) for row in rows.placements]
    sharers = [1 + len(row.beside) for row in rows.placements]
    return sum(map(Fraction, held, sharers), Fraction(0))


def beside_at(second: float, at: Placement = ONE) -> Script:
    """Job 0 starts at 0, and job 1 beside it at a second."""
    return Script({0: [Start(0, at), Wake(ticks(second))], second: [Start(1, at, beside=0)]})


def test_two_equal_jobs_that_start_together_end_together_after_twice_the_time() -> None:
    # Job 1 joins a nanosecond later: a host runs already.
    script = Script({0: [Start(0, ONE), Wake(1)], 1 / S: [Start(1, ONE, beside=0)]})
    rows = shared(cluster([1]), [job("a"), job("b")]).run(script)
    assert finishes(rows)["a"] == pytest.approx(20.0, abs=1e-8)
    assert finishes(rows)["b"] == pytest.approx(20.0, abs=1e-8)
    assert shares(rows) == rows.jobs[-1].finish  # one GPU, held throughout


def test_jobs_of_one_answer_share_gpus_from_the_start_or_where_one_moves() -> None:
    # At 4 s both have done 2 s of work, and go to the other GPU together; b has its 5 s at 10 s.
    other = on({1: 1})
    script = Script(
        {
            0: [Start(0, ONE), Start(1, ONE, beside=0), Wake(4 * S)],
            4: [Migrate(1, other), Migrate(0, other, beside=1)],
        }
    )
    rows = shared(cluster([1, 1]), [job("a"), job("b", iterations=5)]).run(script)
    assert finishes(rows) == {"b": 10.0, "a": 15.0}
    assert [(row.start // S, row.end // S, row.beside) for row in intervals(rows, 0)] == [
        (0, 4, (1,)),
        (4, 10, (1,)),
        (10, 15, ()),
    ]
    assert shares(rows) == 15 * S


def test_a_job_beside_a_shorter_one_is_slow_until_that_has_finished() -> None:
    # Alone until 4 s, half as fast from then on: b's 3 s take 6 s, in which a does 3 s of work.
    jobs = [job("a"), job("b", iterations=3)]
    rows = shared(cluster([1]), jobs).run(beside_at(4.0))
    assert finishes(rows) == {"b": 10.0, "a": 13.0}
    assert [
        (row.start // S, row.end // S, row.iteration_s, row.beside) for row in intervals(rows, 0)
    ] == [(0, 4, 1.0, ()), (4, 10, 2.0, (1,)), (10, 13, 1.0, ())]
    assert [row.iterations for row in intervals(rows, 0)] == [4, 3, 3]
    assert [(row.tick // S, row.gpus_held) for row in rows.timeline] == [
        (0, 1),
        (4, 1),
        (10, 1),
        (13, 0),
    ]
    assert shares(rows) == 13 * S


def test_a_preempted_job_leaves_the_gpu_to_the_other_one() -> None:
    # From 2 s on both run at half speed; at 8 s a has done 2 + 3 s of its 10 s.
    script = Script(
        {
            0: [Start(0, ONE), Wake(2 * S)],
            2: [Start(1, ONE, beside=0), Wake(8 * S)],
            8: [Preempt(1)],
            13: [Start(1, ONE)],
        }
    )
    rows = shared(cluster([1]), [job("a"), job("b")]).run(script)
    assert finishes(rows) == {"a": 13.0, "b": 20.0}
    assert rows.jobs[1].preemptions == 1


def test_the_host_may_leave_first() -> None:
    script = Script(
        {
            0: [Start(0, ONE), Wake(2 * S)],
            2: [Start(1, ONE, beside=0), Wake(8 * S)],
            8: [Migrate(0, on({1: 1}))],
        }
    )
    rows = shared(cluster([1, 1]), [job("a"), job("b")]).run(script)
    assert finishes(rows) == {"a": 13.0, "b": 15.0}
    assert [row.gpus_held for row in rows.timeline] == [1, 1, 2, 1, 0]


def test_a_running_job_may_move_beside_another_one_and_its_gpus_are_free_then() -> None:
    script = Script(
        {
            0: [Start(0, ONE), Start(1, on({1: 1})), Wake(4 * S)],
            4: [Migrate(1, ONE, "packs", beside=0), Start(2, on({1: 1}))],
        }
    )
    rows = shared(cluster([1, 1]), [job("a"), job("b"), job("c")]).run(script)
    assert finishes(rows) == {"a": 16.0, "b": 16.0, "c": 14.0}


def test_three_jobs_on_a_gpu_have_a_third_of_it_each() -> None:
    script = Script(
        {
            0: [Start(0, ONE), Wake(S)],
            1: [Start(1, ONE, beside=0), Wake(3 * S)],
            3: [Start(2, ONE, beside=1)],
        }
    )
    # By 3 s a has done 2 s and b 1 s. c's 2 s take 6 s; then a has done 4 s, b 3 s of 10 s each.
    jobs = [job("a"), job("b"), job("c", iterations=2)]
    rows = shared(cluster([1]), jobs, jobs_per_gpu=3).run(script)
    assert finishes(rows) == {"c": 9.0, "a": 21.0, "b": 22.0}
    assert {row.beside for row in intervals(rows, 1)} == {(0,), (0, 2), ()}
    assert shares(rows) == 22 * S


def test_gpus_are_free_once_the_last_of_several_jobs_has_left() -> None:
    script = Script(
        {
            0: [Start(0, ONE), Wake(S)],
            1: [Start(1, ONE, beside=0), Start(2, ONE, beside=0), Wake(4 * S)],
            4: [Preempt(0), Preempt(1), Wake(5 * S)],
            5: [Start(1, ONE, beside=2), Wake(6 * S)],
            6: [Preempt(1), Preempt(2), Start(0, ONE)],
            14: [Start(1, ONE), Wake(15 * S)],
            15: [Migrate(1, ONE)],
            23: [Start(2, ONE)],
        }
    )
    jobs = [job("a"), job("b"), job("c")]
    rows = shared(cluster([1]), jobs, jobs_per_gpu=3).run(script)
    # By 4 s a has done 2 s, the others one; from 5 s on b and c do halves, which they lose.
    assert finishes(rows) == {"a": 14.0, "b": 23.0, "c": 31.0}


def test_attained_service_is_a_share_of_the_gpus() -> None:
    seen = {}

    class Looks(Script):
        def decide(self, view: ClusterView) -> Sequence[Decision]:
            seen[view.now // S] = {
                x.handle: x.service_gpu_s(view.now) for x in view.running.values()
            }
            return super().decide(view)

    two = on({0: 2})
    script = Looks(
        {
            0: [Start(0, two), Wake(4 * S)],
            4: [Start(1, two, beside=0), Wake(7 * S)],
            7: [Wake(8 * S)],
            8: [Preempt(1), Wake(9 * S)],
            9: [Start(1, two, beside=0)],
        }
    )
    shared(cluster([2]), [job("a", gpus=2), job("b", gpus=2)]).run(script)
    assert seen[4] == {0: 8.0}
    assert seen[7] == {0: 11.0, 1: 3.0}
    assert seen[9] == {0: 14.0}
    assert seen[10 + 5] == {1: 4.0 + 6.0}  # a finishes its last 3 s of work at 15 s


@pytest.mark.parametrize("position", [None, 0])
def test_an_outage_stops_all_jobs_on_the_gpus(position: int | None) -> None:
    events = Outage(Withdraw(6 * S, ONE, None, position), Restore(7 * S, ONE))
    script = beside_at(4.0)
    script.decisions[7 * S] = [Start(1, ONE)]
    script.decisions[16 * S] = [Start(0, ONE)]
    rows = shared(cluster([1]), [job("a"), job("b")], events=events).run(script)
    assert [row.preemptions for row in rows.jobs] == [1, 1]
    assert rows.outages[0].stopped == (0, 1)
    assert finishes(rows) == {"b": 16.0, "a": 21.0}  # b's only iteration was lost, a had done 5 s


def test_an_outage_counts_shared_gpus_once() -> None:
    # Of three GPUs two leave: one is free, so the latest arrival and the job beside it go.
    events = Outage(Withdraw(6 * S, on({0: 2})), Restore(90 * S, on({0: 2})))
    jobs = [job("a"), job("b"), job("c")]
    script = Script(
        {
            0: [Start(0, ONE), Start(1, ONE), Wake(S)],
            1: [Start(2, ONE, beside=0)],
            10: [Start(0, ONE)],
            90: [Start(2, ONE)],
        }
    )
    rows = shared(cluster([3]), jobs, events=events).run(script)
    assert rows.outages[0].stopped == (0, 2)
    assert finishes(rows)["b"] == 10.0


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([Start(1, ONE, beside=1)], "'b' beside job 'b', which has no GPUs by then"),
        ([Start(1, ONE, beside=2), Start(2, on({1: 1}))], "'c', which has no GPUs by then; place"),
        ([Start(1, ONE, beside=7)], "unknown job 7 is not running"),
        ([Start(1, on({1: 1}), beside=0)], "'b' beside job 'a' on .* but that one has"),
        ([Start(1, ONE, beside=0), Preempt(0)], "beside job 'a', which has no GPUs by then"),
        ([Start(1, ONE, beside=0), Start(2, ONE, beside=0)], "3 jobs on a GPU, .* lets 2 share"),
        ([Start(1, ONE, beside=True)], "beside True, expected the handle of a job"),
        ([Migrate(0, ONE, beside=0)], "which has no GPUs by then"),
        ([Start(1, ONE)], "1 GPUs of machine 0 claimed, but 0 are free"),
    ],
)
def test_unlawful_sharing_is_an_error_and_changes_nothing(
    answer: list[Decision], words: str
) -> None:
    engine = shared(cluster([1, 1]), [job("a"), job("b"), job("c")])
    engine.next_question()
    engine.answer([Start(0, ONE), Wake(S)])
    engine.next_question()
    with pytest.raises(PolicyError, match=words):
        engine.answer(answer)
    engine.answer([Start(1, ONE, beside=0)])
    engine.next_question()


def test_without_leave_no_job_shares_a_gpu() -> None:
    engine = shared(cluster([1]), [job("a"), job("b")], jobs_per_gpu=1)
    with pytest.raises(PolicyError, match="makes 2 jobs on a GPU, and the policy lets 1 share one"):
        engine.run(beside_at(2.0))
    with pytest.raises(PolicyError, match="jobs_per_gpu is 5, expected 1 to 4"):
        shared(cluster([1]), [job("a")], jobs_per_gpu=5)


@pytest.mark.parametrize("broken", ["placement", "beside"])
def test_check_notices_jobs_that_do_not_share_what_they_say(broken: str) -> None:
    engine = shared(cluster([1, 1]), [job("a"), job("b")])
    script = beside_at(2.0)
    for _ in range(2):
        view = engine.next_question()
        assert view is not None
        engine.answer(script.decide(view))
    state: Any = engine._holdings.running[1]
    setattr(state, broken, on({1: 1}) if broken == "placement" else ())
    with pytest.raises(InvariantError, match="share"):
        engine.next_question()


# -- tables of pairs -------------------------------------------------------------------


def test_measured_pairs_have_their_speeds_and_others_take_turns(tmp_path: Any) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("model_a,model_b,speed_a,speed_b,source\nresnet50,vgg16,0.8,0.5,mine\n")
    jobs = [job("a", model="resnet50"), job("b", model="vgg16", iterations=3)]
    rows = shared(cluster([1]), jobs, interference=str(table)).run(beside_at(4.0))
    # b's 3 s take 6 s, in which a does .8 x 6 s = 4.8 s of its last 6 s.
    assert finishes(rows) == pytest.approx({"b": 10.0, "a": 11.2}, abs=1e-8)
    assert intervals(rows, 0)[1].source == "by-level+shared"


def test_the_shipped_table_is_read_with_its_comments() -> None:
    speeds = read_speeds(table_path("h200"))
    assert speeds["resnet50", "bert-base", ""] == 0.687
    assert speeds["bert-base", "resnet50", ""] == 0.634
    assert len(speeds) == 8 * 8  # every pair of eight models, both ways


def test_what_other_jobs_cost_adds_up_on_the_slowest_kind() -> None:
    tree = replace(cluster([1], [1]), kinds=("new", "old"))
    pairs = PairSpeeds(tree, {("a", "b", "new"): 0.8, ("a", "b", "old"): 0.5, ("a", "c", ""): 0.25})
    a, b, c = (job(name, model=name) for name in "abc")
    assert pairs.slowdown(a, on({0: 1}), [b]) == pytest.approx(1.25)
    assert pairs.slowdown(a, on({0: 1, 1: 1}), [b]) == 2.0
    assert pairs.slowdown(a, on({0: 1}), [b, c]) == pytest.approx(1 + 0.25 + 3)
    assert pairs.slowdown(b, on({0: 1}), [a, c]) == 3.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model_a,speed_a\na,1\n", ":1: columns model_a, speed_a, expected .*add model_b, speed_b"),
        ("model_a,model_b,speed_a,speed_b\na,b,2,.5\n", ":2: speed_a '2', expected a number"),
        ("# mine\nmodel_a,model_b,speed_a,speed_b\na,,1,.5\n", ":3: a row without two models"),
        ("model_a,model_b,speed_a,speed_b\na,b,1,.5\nb,a,.6,1\n", ":3: b beside a is 0.6, but 0.5"),
    ],
)
def test_a_bad_table_is_an_error(tmp_path: Any, text: str, words: str) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text(text)
    with pytest.raises(Exception, match=words):
        read_speeds(table)


# -- random runs -----------------------------------------------------------------------


class Whims(BasePolicy):
    """Any valid decision at any time, sharing included."""

    jobs_per_gpu = 3

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.questions = 0

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Random decisions for 25 questions, then whatever lets all jobs finish."""
        self.questions += 1
        calm = self.questions > 25
        choices = ["stay"] if calm else ["stay", "stay", "go", "move"]
        whims = {handle: self.random.choice(choices) for handle in view.running}
        free, decisions = view.free.copy(), []
        for handle, state in view.running.items():
            together = (handle, *state.beside)
            if handle == min(together) and all(whims[x] != "stay" for x in together):
                free.release(state.placement)
        there = {handle: 1 + len(state.beside) for handle, state in view.running.items()}
        hosts = [handle for handle, whim in whims.items() if whim == "stay"]
        # Whose GPUs others may come to share: of jobs that stay, and of jobs that get them here.
        held = {handle: view.running[handle].placement for handle in hosts}
        placing: list[JobView] = [x for x in view.running.values() if whims[x.handle] == "move"]
        decisions += [Preempt(handle) for handle, whim in whims.items() if whim == "go"]
        placing += [x for x in view.waiting.values() if calm or self.random.random() < 0.7]
        for state in placing:
            kind = Migrate if state.placement is not None else Start
            host = next((x for x in held if self.suits(held[x], state, there[x])), None)
            if host is not None and self.random.random() < 0.6:
                for handle in (host, *(view.running[host].beside if host in hosts else ())):
                    there[handle] += 1
                decisions.append(kind(state.handle, held[host], beside=host))
            elif (placement := self.somewhere(free, state.job)) is not None:
                decisions.append(kind(state.handle, placement))
                held[state.handle], there[state.handle] = placement, 1
            elif state.placement is not None:
                decisions.append(Preempt(state.handle))
        if not calm:
            decisions += [
                Hold(handle, view.now + self.random.randint(1, 10**10))
                for handle in hosts
                if self.random.random() < 0.2
            ]
            decisions.append(Wake(view.now + self.random.randint(1, 20 * TICKS_PER_S)))
        return decisions

    def suits(self, held: Placement, state: JobView, there: int) -> bool:
        """Whether a job may come to share GPUs that this many jobs hold."""
        fits = state.job.gpus_min <= held.gpus <= state.job.gpus_max
        return fits and there < self.jobs_per_gpu

    def somewhere(self, free: FreeGpus, wanted: Job) -> Placement | None:
        """Free GPUs."""
        if free.total < wanted.gpus_min:
            return None
        gpus = self.random.randint(wanted.gpus_min, min(wanted.gpus_max, free.total))
        taken: dict[int, int] = {}
        for leaf, count in enumerate(free.counts(0).tolist()):
            if count and gpus:
                taken[leaf] = min(count, gpus)
                gpus -= taken[leaf]
        placement = Placement.of(taken)
        free.claim(placement)
        return placement


@st.composite
def cases(draw: st.DrawFn) -> tuple[ClusterTree, list[Job]]:
    """A cluster, and up to six jobs, many of one size."""
    tree = draw(trees())
    arrivals = sorted(draw(st.lists(st.sampled_from([0.0, 0.5, 40.0]), min_size=2, max_size=6)))
    jobs = []
    for index, arrival_s in enumerate(arrivals):
        gpus = min(tree.gpus, draw(st.sampled_from([1, 1, 2, 4])))
        jobs.append(
            job(
                f"job-{index}",
                gpus,
                draw(st.integers(1, 60)),
                arrival_s=arrival_s,
                gpus_min=draw(st.integers(1, gpus)),
                gpus_max=gpus,
                compute_s=draw(st.sampled_from([0.1, 1 / 3, 2.5])),
                restart_s=draw(st.sampled_from([0.0, 7.5])),
            )
        )
    return tree, jobs


def random_run(
    tree: ClusterTree, jobs: Sequence[Job], seed: int, lease_s: float | None, *, outages: bool
) -> Rows:
    leaf = on({0: tree.levels[0].gpus[0]})
    events = Outage(Withdraw(9 * S, leaf), Restore(30 * S, leaf)) if outages else None
    engine = shared(tree, jobs, lease_s=lease_s, events=events, jobs_per_gpu=3)
    return engine.run(Whims(seed))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    case=cases(),
    seed=st.integers(0, 1000),
    lease_s=st.sampled_from([None, 2.0, 45.0]),
    outages=st.booleans(),
)
def test_the_engine_keeps_its_laws_under_any_sharing(
    case: tuple[ClusterTree, list[Job]], seed: int, lease_s: float | None, outages: bool
) -> None:
    tree, jobs = case
    rows = random_run(tree, jobs, seed, lease_s, outages=outages)
    assert sorted(row.handle for row in rows.jobs) == list(range(len(jobs)))
    for row in rows.jobs:
        parts = intervals(rows, row.handle)
        worth = sum(x.iterations * x.placement.gpus for x in parts) / row.job.gpus
        assert row.job.iterations <= worth + 1e-9 < row.job.iterations + 1
        for x in parts:
            slow = x.iteration_s == pytest.approx(x.alone_iteration_s * (1 + len(x.beside)))
            assert slow and row.handle not in x.beside
    # Whoever holds GPUs beside a job says the same of that job.
    by_start = {(row.handle, row.start): row for row in rows.placements if row.end > row.start}
    for row in by_start.values():
        for handle in row.beside:
            others = [x for x in intervals(rows, handle) if x.start < row.end and x.end > row.start]
            assert all(row.handle in x.beside and x.placement == row.placement for x in others)
            assert others[0].start <= row.start and others[-1].end >= row.end
    counted = sum(
        row.placement.gpus * (row.end - row.start) for row in rows.placements if row.first
    )
    assert counted == shares(rows)
    renamed = [replace(one, id=f"{len(jobs) - n}") for n, one in enumerate(jobs)]
    again = random_run(tree, renamed, seed, lease_s, outages=outages)
    assert again.placements == rows.placements
    assert again.timeline == rows.timeline


class Gated(Whims):
    """Random decisions, some of which a gate turns down."""

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """The decisions that are left, and the next wake-up."""
        answer = super().decide(view)
        moves = [x.handle for x in answer if isinstance(x, Start | Migrate)]
        refused = {handle for handle in moves if self.random.random() < 0.3}
        kept, _ = without(answer, {} if self.questions > 25 else refused, view, "")
        return kept


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(), seed=st.integers(0, 1000))
def test_what_a_gate_leaves_of_any_lawful_answer_is_lawful(
    case: tuple[ClusterTree, list[Job]], seed: int
) -> None:
    tree, jobs = case
    rows = shared(tree, jobs, jobs_per_gpu=3).run(Gated(seed))
    assert len(rows.jobs) == len(jobs)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])  # noqa: S301
def test_a_copy_of_a_run_with_shared_gpus_goes_on_to_the_same_rows(duplicate: Any) -> None:
    tree = cluster([2, 2])
    jobs = [job(f"j{n}", gpus=1 + n % 2, iterations=5 + n, arrival_s=2.0 * n) for n in range(6)]
    expected = shared(tree, jobs, lease_s=5.0, jobs_per_gpu=3).run(Whims(3))
    assert any(row.beside for row in expected.placements)
    engine, policy = shared(tree, jobs, lease_s=5.0, jobs_per_gpu=3), Whims(3)
    while (view := engine.next_question(policy)) is not None:
        engine.answer(policy.decide(view))
        engine, policy = duplicate((engine, policy))
    assert engine.rows == expected
