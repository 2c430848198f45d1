"""Do jobs that ask for shares of GPUs get them, and is no GPU given away more than once?"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from engine.gpu_sharing import ONE, OTHER, READERS, assert_lawful, part, ran, together
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import trees
from support import (
    SELF_SUFFICIENT,
    Outage,
    S,
    Script,
    cluster,
    finishes,
    job,
    make_policy,
    on,
    speeds,
)
from support import run as run_script

from artist.api import simulate
from artist.cluster.tree import ClusterTree, HostSizes, nested
from artist.config import Scenario
from artist.contract import (
    BasePolicy,
    ClusterView,
    Decision,
    Migrate,
    Notice,
    Preempt,
    Restore,
    Start,
    Wake,
    Withdraw,
)
from artist.contract import Outage as Leaves
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.errors import ArtistError, InvariantError, PolicyError
from artist.network.rates.interference import PairSpeeds
from artist.run.traces import READ_SHARES
from artist.units import GPU_MILLI, TICKS_PER_S, seconds
from artist.workload.job import Job


def held(rows: Rows) -> list[tuple[float, float]]:
    """Times in seconds, and the number of GPUs held from each time on."""
    parts = rows.timeline.gpu_parts
    return [(row.tick / S, row.gpus_held / parts) for row in rows.timeline]


@pytest.mark.parametrize("policy", READERS)
def test_two_halves_share_one_gpu_each_as_fast_as_alone(policy: str) -> None:
    rows = ran(cluster([1]), [part("a", 500), part("b", 500)], policy)
    assert finishes(rows) == {"a": 10.0, "b": 10.0}
    assert held(rows) == [(0.0, 1.0), (10.0, 0.0)]
    assert together(rows) == {frozenset({0, 1})}


@pytest.mark.parametrize("policy", READERS)
def test_a_half_and_two_thirds_of_a_half_need_two_gpus(policy: str) -> None:
    """.5 + .3 + .3 is more than one GPU: with one, the third job waits for the first to leave."""
    jobs = [part("a", 500), part("b", 300), part("c", 300)]
    rows = ran(cluster([2]), jobs, policy)
    assert finishes(rows) == {"a": 10.0, "b": 10.0, "c": 10.0}
    assert held(rows) == [(0.0, 1.1), (10.0, 0.0)]
    assert together(rows) == {frozenset({0, 1})}
    rows = ran(cluster([1]), jobs, policy)
    assert finishes(rows) == {"a": 10.0, "b": 10.0, "c": 20.0}
    assert held(rows) == [(0.0, 0.8), (10.0, 0.3), (20.0, 0.0)]


@pytest.mark.parametrize("policy", READERS)
def test_the_fullest_gpu_that_still_fits_gets_a_job(policy: str) -> None:
    # One after the other .6 and .5 go to two GPUs; .4 fits both, .3 and .2 only the second.
    jobs = [
        part(name, milli, arrival_s=float(at))
        for at, (name, milli) in enumerate(zip("abcde", (600, 500, 400, 300, 200), strict=True))
    ]
    rows = ran(cluster([1], [1]), jobs, policy)
    assert {row.handle: row.placement for row in rows.placements} == {
        0: ONE, 1: OTHER, 2: ONE, 3: OTHER, 4: OTHER,
    }  # fmt: skip
    assert [row.start for row in sorted(rows.jobs, key=lambda row: row.handle)] == [
        at * S for at in range(5)
    ]


def test_thousandths_add_up_to_a_gpu_without_rounding() -> None:
    jobs = [part(f"j{n}", milli) for n, milli in enumerate([333, 333, 334, 1])]
    rows = ran(cluster([1]), jobs)
    assert [seconds(row.start) for row in sorted(rows.jobs, key=lambda x: x.handle)] == [
        0,
        0,
        0,
        10,
    ]


def test_a_whole_gpu_is_not_free_while_a_part_of_it_is_held() -> None:
    jobs = [part("a", 1), job("b", 2, 5, arrival_s=1.0), job("c", 1, 5, arrival_s=1.0)]
    rows = ran(cluster([2]), jobs)
    assert finishes(rows) == {"a": 10.0, "b": 15.0, "c": 6.0}


def test_shares_are_kept_until_the_end_and_whole_gpus_may_be_lost_to_them() -> None:
    # The shortest first: b takes the GPU of a, but c not that of b, and d comes beside b.
    jobs = [
        job("a", 1, 100),
        part("b", 600, 50, arrival_s=1.0),
        job("c", 1, 5, arrival_s=2.0),
        part("d", 400, 60, arrival_s=3.0),
    ]
    rows = ran(cluster([1]), jobs, "srtf")
    assert finishes(rows) == {"b": 51.0, "d": 63.0, "c": 68.0, "a": 167.0}


@pytest.mark.parametrize("policy", ["las", "tiresias"])
def test_a_share_has_no_lease_that_ends(policy: str) -> None:
    jobs = [part("a", 500, 20_000), job("b", 1, 5, arrival_s=1.0)]
    assert finishes(ran(cluster([1]), jobs, policy)) == {"a": 20_000.0, "b": 20_005.0}


def test_two_shares_that_take_gpus_from_a_job_take_one() -> None:
    jobs = [job("a", 2, 100), part("b", 500, arrival_s=1.0), part("c", 500, arrival_s=1.0)]
    rows = ran(cluster([2]), jobs, "srtf")
    assert together(rows) == {frozenset({1, 2})}
    assert finishes(rows) == {"b": 11.0, "c": 11.0, "a": 110.0}


def test_in_a_contest_a_share_comes_beside_one_that_has_just_been_given_away() -> None:
    # The lease of a ends when b and c arrive; two GPUs are free.
    lease_s = seconds(make_policy("las").lease)
    others = [part(name, 500, arrival_s=lease_s) for name in "bc"]
    rows = ran(cluster([1], [1], [1]), [job("a", 1, 20_000), *others], "las")
    assert together(rows) == {frozenset({1, 2})}


def test_easy_reserves_by_the_ends_of_shares() -> None:
    """c wants the whole GPU at 10 s; d, of .5, would delay it, and e would not."""
    jobs = [
        part("a", 500, 10),
        job("c", 1, 10, arrival_s=1.0),
        part("d", 500, 20, arrival_s=2.0),
        part("e", 500, 8, arrival_s=2.0),
    ]
    rows = ran(cluster([1]), jobs, "easy")
    assert finishes(rows) == {"a": 10.0, "e": 10.0, "c": 20.0, "d": 40.0}


def test_attained_service_is_the_share() -> None:
    seen = {}

    class Looks(Script):
        def decide(self, view: ClusterView) -> Sequence[Decision]:
            seen[view.now // S] = {h: x.service_gpu_s(view.now) for h, x in view.running.items()}
            return super().decide(view)

    script = Looks({0: [Start(0, ONE), Wake(4 * S)], 4: [Start(1, ONE), Wake(8 * S)]})
    run_script(cluster([1]), [part("a", 250), part("b", 500)], script)
    assert seen[4] == {0: 1.0}
    assert seen[8] == {0: 2.0, 1: 2.0}


def test_an_outage_stops_all_jobs_on_a_gpu() -> None:
    events = Outage(Withdraw(6 * S, ONE), Restore(7 * S, ONE))
    jobs = [part("a", 500), part("b", 300), part("c", 300)]
    rows = Simulator(cluster([2]), jobs, speeds(), events=events, check=True).run(
        make_policy("fifo")
    )
    # The latest arrival goes first: c has a GPU of its own.
    assert rows.outages[0].stopped == (2,)
    assert finishes(rows) == {"a": 10.0, "b": 10.0, "c": 11.0}
    events = Outage(Withdraw(6 * S, on({0: 2})), Restore(7 * S, on({0: 2})))
    rows = Simulator(cluster([2]), jobs, speeds(), events=events, check=True).run(
        make_policy("fifo")
    )
    assert rows.outages[0].stopped == (0, 1, 2)
    assert finishes(rows) == {"a": 11.0, "b": 11.0, "c": 11.0}


@pytest.mark.parametrize("policy", READERS)
def test_no_share_is_given_away_on_a_unit_about_to_leave(policy: str) -> None:
    coming = Leaves("machine", 0, 50 * S, failed=False)
    events = Outage(Notice(2 * S, (0,), 40 * S, coming))
    jobs = [part("a", 500), part("b", 300, arrival_s=3.0)]
    rows = Simulator(cluster([1], [1]), jobs, speeds(), events=events, check=True).run(
        make_policy(policy)
    )
    assert {row.handle: row.placement for row in rows.placements} == {0: ONE, 1: OTHER}


def test_a_share_goes_where_the_machine_has_the_memory() -> None:
    """Two machines of one GPU and 10 GiB: 8 GiB are left for a, 8 for b, and 2 for c beside a."""
    mib = (10 * 1024,) * 2
    tree = nested(("machine", "rack", "network"), [[1, 1]], hosts=HostSizes((None, None), mib))
    jobs = [
        part("a", 500, memory_mib=8 * 1024),
        part("b", 400, memory_mib=8 * 1024),
        part("c", 500, memory_mib=2 * 1024),
        part("d", 100, memory_mib=1024),
    ]
    rows = ran(tree, jobs, "fifo-backfill")
    first = {row.handle: row.placement for row in rows.placements if row.start == 0}
    assert first == {0: ONE, 1: OTHER, 2: ONE, 3: OTHER}


def test_beside_a_measured_pair_a_share_may_be_slower_than_alone_and_never_faster() -> None:
    tree = cluster([1])
    pairs = PairSpeeds(tree, {("a", "b", ""): 0.4, ("b", "a", ""): 0.9})
    jobs = [part("a", 500, model="a"), part("b", 500, model="b"), part("c", 250, model="c")]
    engine = Simulator(tree, jobs, speeds(), check=True)
    engine.next_question()
    engine.answer([Start(0, ONE), Start(1, ONE)])
    running = engine._holdings.running
    assert pairs.stretch(running[0], running) == pytest.approx(0.5 / 0.4)
    assert pairs.stretch(running[1], running) == 1.0
    assert PairSpeeds(tree, {}).stretch(running[0], running) == 1.0


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([Start(1, ONE)], "'b': 1 GPUs of machine 0 claimed, but 0 are free there"),
        ([Migrate(0, ONE), Start(1, OTHER), Start(2, OTHER)], "'c': 1 GPUs of machine 1 claimed"),
        ([Start(1, ONE, beside=0)], "makes 3 jobs on a GPU"),
        ([Start(1, on({0: 1, 1: 1}))], "placed on 2 GPUs, but it runs on 1"),
    ],
)
def test_an_unlawful_answer_is_an_error_and_changes_nothing(
    answer: list[Decision], words: str
) -> None:
    jobs = [part("a", 300), part("b", 800), part("c", 300), part("d", 600)]
    engine = Simulator(cluster([1], [1]), jobs, speeds(), check=True)
    engine.next_question()
    engine.answer([Start(0, ONE), Start(3, ONE), Wake(S)])
    engine.next_question()
    before = engine._holdings.free.shares.gpus()
    with pytest.raises(PolicyError, match=words):
        engine.answer(answer)
    assert engine._holdings.free.shares.gpus() == before
    engine.answer([Preempt(0), Start(2, ONE), Start(1, OTHER)])
    assert {x: engine._holdings.running[x].beside for x in (1, 2, 3)} == {1: (), 2: (3,), 3: (2,)}


def test_whole_gpus_are_not_packed_where_jobs_ask_for_shares() -> None:
    with pytest.raises(PolicyError, match="the policy lets jobs share whole ones"):
        Simulator(cluster([1]), [part("a", 300)], speeds(), jobs_per_gpu=2)


@pytest.mark.parametrize("broken", ["beside", "idle", "left"])
def test_check_notices_shares_that_do_not_add_up(broken: str) -> None:
    engine = Simulator(
        cluster([1]), [part("a", 300), part("b", 300, arrival_s=1.0)], speeds(), check=True
    )
    engine.next_question()
    engine.answer([Start(0, ONE)])
    shares: Any = engine._holdings.free.shares
    if broken == "beside":
        engine._holdings.sharing.clear()
    elif broken == "idle":
        shares.idle -= 1
    else:
        (gpu,) = shares._ranked
        shares._ranked = [(gpu[0] + 1, *gpu[1:])]
    with pytest.raises(InvariantError, match=r"shares|left"):
        engine.next_question()


# -- results ---------------------------------------------------------------------------

TRACE = """job_id,arrival_s,gpus,model,iterations,compute_s,gpu_share
a,0,1,resnet50,100,1,0.5
b,0,1,resnet50,50,1,0.3
c,0,1,resnet50,100,1,0.3
d,10,1,resnet50,10,1,
e,20,1,resnet50,30,1,0.7
"""


def scenario(path: Path, text: str = TRACE, **fields: Any) -> Scenario:
    path.write_text(text)
    fields = {"policy": "fifo-backfill", "backend": "none", **fields}
    return Scenario(trace=str(path), racks=1, machines_per_rack=1, gpus_per_machine=2, **fields)


def test_metrics_count_shares(tmp_path: Path) -> None:
    """50 + 15 + 30 + 10 + 21 GPU-seconds in 110 s of two GPUs."""
    result = simulate(scenario(tmp_path / "t.csv"), check=True, cache=False)
    assert result.summary["gpu_allocated_share"] == pytest.approx(126 / 220)
    assert result.summary["gpu_computing_share"] == pytest.approx(126 / 220)
    assert result.summary["makespan_bound_s"] == 100.0
    assert result.tables["jobs"]["gpu_share"].tolist() == [0.5, 0.3, 0.3, 1.0, 0.7]
    # At 20 s: a and b on one GPU, c and e on the other.
    timeline = result.tables["timeline"]
    assert dict(zip(timeline["time_s"], timeline["gpus_held"], strict=True)) == pytest.approx(
        {0.0: 1.1, 10.0: 1.1, 20.0: 1.8, 50.0: 0.8, 100.0: 1.0, 110.0: 0.0}
    )


def test_the_bound_counts_shares(tmp_path: Path) -> None:
    """Eight jobs of a quarter for 100 s fill two GPUs; a ninth lengthens the bound by 12.5 s."""
    rows = [f"j{n},0,1,resnet50,100,1,0.25" for n in range(9)]
    text = "\n".join([TRACE.splitlines()[0], *rows, ""])
    summary = simulate(scenario(tmp_path / "t.csv", text), check=True, cache=False).summary
    assert summary["makespan_s"] == 200.0
    assert summary["makespan_bound_s"] == 112.5


@pytest.mark.parametrize("policy", sorted({*SELF_SUFFICIENT} - {*READERS}))
def test_a_policy_that_hands_out_whole_gpus_refuses_shares(policy: str, tmp_path: Path) -> None:
    with pytest.raises(ArtistError) as caught:
        simulate(scenario(tmp_path / "t.csv", policy=policy), cache=False)
    assert str(caught.value) == (
        f"policy {policy} hands out whole GPUs only, but job 'a' asks for 0.5 of a GPU; choose "
        "fifo, las, srtf, tiresias, easy, dally, or leave gpu_share out"
    )


def test_the_policies_that_a_refusal_names_take_shares() -> None:
    assert {*READ_SHARES} <= {*READERS}


# -- random runs -----------------------------------------------------------------------


@st.composite
def cases(draw: st.DrawFn) -> tuple[ClusterTree, list[Job]]:
    """Up to twelve jobs, most of which ask for shares."""
    tree = draw(trees())
    arrivals = sorted(
        draw(st.lists(st.sampled_from([0.0, 0.5, 7.0, 300.0]), min_size=1, max_size=12))
    )
    jobs = []
    for index, arrival_s in enumerate(arrivals):
        milli = draw(st.sampled_from([GPU_MILLI, 1, 250, 333, 500, 700, 999]))
        gpus = draw(st.integers(1, tree.gpus)) if milli == GPU_MILLI else 1
        iterations = draw(st.integers(1, 100))
        jobs.append(job(f"j{index}", gpus, iterations, arrival_s=arrival_s, gpu_milli=milli))
    return tree, jobs


@pytest.mark.parametrize("policy", READERS)
@settings(max_examples=12)
@given(case=cases())
def test_no_gpu_is_given_away_twice_whatever_jobs_are_called(
    policy: str, case: tuple[ClusterTree, list[Job]]
) -> None:
    tree, jobs = case
    rows = ran(tree, jobs, policy)
    assert len(rows.jobs) == len(jobs)
    assert_lawful(rows, jobs)
    for row in rows.jobs:
        assert row.job.gpu_milli == GPU_MILLI or not row.preemptions
    renamed = [replace(one, id=f"{len(jobs) - index}") for index, one in enumerate(jobs)]
    again = ran(tree, renamed, policy)
    assert rows.placements == again.placements
    assert rows.timeline == again.timeline


class Whims(BasePolicy):
    """Starts, preempts and moves whatever it likes, on whatever has room."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.questions = 0

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Random decisions for 25 questions, then whatever lets all jobs finish."""
        self.questions += 1
        calm = self.questions > 25
        free, decisions = view.free.copy(), list[Decision]()
        whims = {
            x: "stay" if calm else self.random.choice(["stay", "go", "move"]) for x in view.running
        }
        for handle, state in view.running.items():
            if whims[handle] != "stay":
                free.release(state.placement, state.job)
        decisions += [Preempt(handle) for handle, whim in whims.items() if whim == "go"]
        placing = [x for x in view.running.values() if whims[x.handle] == "move"]
        for state in [*placing, *view.waiting.values()]:
            usable = free.fed(state.job) if self.random.random() < 0.7 else free
            placement = self.somewhere(usable.leaves, state.job.gpus)
            kind = Migrate if state.placement is not None else Start
            if placement is not None:
                free.claim(placement, state.job)
                decisions.append(kind(state.handle, placement))
            elif state.placement is not None:
                decisions.append(Preempt(state.handle))
        if not calm:
            decisions.append(Wake(view.now + self.random.randint(1, 20 * TICKS_PER_S)))
        return decisions

    def somewhere(self, leaves: Sequence[int], gpus: int) -> Any:
        """Free GPUs."""
        taken: dict[int, int] = {}
        for leaf in self.random.sample(range(len(leaves)), len(leaves)):
            if leaves[leaf] and gpus:
                taken[leaf] = min(leaves[leaf], gpus)
                gpus -= taken[leaf]
        return on(taken) if not gpus else None


@settings(max_examples=60)
@given(case=cases(), seed=st.integers(0, 10**6))
def test_any_decisions_keep_the_books_true(case: tuple[ClusterTree, list[Job]], seed: int) -> None:
    tree, jobs = case
    engine = Simulator(tree, jobs, speeds(), check=True)
    policy = Whims(seed)
    for _ in range(5):
        view = engine.next_question()
        if view is None:
            break
        engine.answer(policy.decide(view))
    twin, twins = copy.deepcopy(engine), copy.deepcopy(policy)
    assert outcome(twin.run(twins)) == outcome(engine.run(policy))


def outcome(rows: Rows) -> Mapping[str, Any]:
    return {"jobs": rows.jobs, "placements": rows.placements, "timeline": list(rows.timeline)}
