"""Do jobs get only GPUs of kinds that they accept, even under policies that ignore kinds?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pytest
from engine.gpu_sharing import scenario_of
from hypothesis import given, settings
from hypothesis import strategies as st
from support import (
    LACKING,
    EstimateByLevel,
    Script,
    intervals,
    job,
    make_policy,
    on,
    question,
    short_turns,
    simulator,
    starts,
)
from support import run as run_script

from artist.api import simulate
from artist.cluster.free_gpus import FreeGpus
from artist.cluster.host_resources import FreeHosts
from artist.cluster.kinds import accepts, kinds_of
from artist.cluster.tree import ClusterTree, gpus_by_kind, nested
from artist.contract import Policy, Start, Wait
from artist.engine.compiled_core import core
from artist.engine.rows import PREEMPTED, Rows
from artist.engine.simulator import Simulator
from artist.errors import ArtistError, InvariantError, PolicyError
from artist.network.rates.interference import InterferedRates, open_pairs
from artist.network.rates.isolated import AloneRates
from artist.policies.shared.gpu_counts import GpuCounts
from artist.policies.shared.usable import free_after
from artist.policies.table import POLICIES
from artist.run.traces import OBEY_KINDS
from artist.units import seconds
from artist.workload.job import Job

OLD, NEW = ("old",), ("new",)
LEVELS = ("machine", "rack", "network")


def obeys(policy: Policy) -> bool:
    return bool(getattr(policy, "obeys_gpu_kinds", False))


TABLE = [x.id for x in POLICIES if not x.wraps and x.id not in LACKING]
OBEY = [name for name in TABLE if obeys(make_policy(name))]
WRAPPED = ["random-placement(las)", "cassini(las)", "lookahead(srsf)", "random-placement(themis)"]
ROUNDS = ("equal-share", "max-throughput", "optimus", "tiresias-rounds", "slurm", "pollux")
AT_ONCE = [name for name in OBEY if name not in ROUNDS]
SERVES_ALL = ["fifo-backfill", "sjf", "srtf", "srsf", "las", "gandiva", "lucid", "themis"]
"""These leave no GPUs free that a waiting job could take, if it takes them wherever they lie."""


def of_kinds(tree: ClusterTree, *kinds: str) -> ClusterTree:
    return replace(tree, kinds=kinds)


def two_kinds() -> ClusterTree:
    """Four old GPUs, and four new ones."""
    return of_kinds(nested(LEVELS, [[4], [4]]), "old", "new")


def needs(name: str, gpus: int, kinds: tuple[str, ...] = (), s: int = 100, **more: Any) -> Job:
    return job(name, gpus, s, gpu_kinds=kinds, **more)


def ran(tree: ClusterTree, jobs: Sequence[Job], policy: Policy) -> Rows:
    return engine_of(tree, jobs, policy).run(policy)


def engine_of(tree: ClusterTree, jobs: Sequence[Job], policy: Policy) -> Simulator:
    jobs_per_gpu = getattr(policy, "jobs_per_gpu", 1)
    rates = AloneRates(tree, EstimateByLevel(tree))
    if jobs_per_gpu > 1:
        rates = InterferedRates(rates, open_pairs("time-slicing", tree, jobs_per_gpu))
    return Simulator(tree, jobs, rates, lease=policy.lease, jobs_per_gpu=jobs_per_gpu, check=True)


def lawful(tree: ClusterTree, rows: Rows) -> bool:
    jobs = {row.handle: row.job for row in rows.jobs}
    return all(accepts(tree, jobs[row.handle], row.placement) for row in rows.placements)


@pytest.mark.parametrize("policy", AT_ONCE)
def test_the_second_of_two_jobs_waits_for_its_kind_and_a_third_takes_the_other(policy: str) -> None:
    jobs = [
        needs("a", 4, NEW),
        needs("b", 4, NEW, arrival_s=10.0),
        needs("c", 2, OLD, arrival_s=20.0),
    ]
    rows = ran(two_kinds(), jobs, make_policy(policy))
    third = 100.0 if policy == "fifo" else 20.0  # strictly, nobody passes b
    assert starts(rows) == {"a": 0.0, "b": 100.0, "c": third}
    told = [row for row in rows.wait_reasons if row.handle == 1 and row.reason]
    assert [(seconds(row.tick), row.cause) for row in told] == [(10.0, "gpu_kind")]
    assert told[0].reason == "0 of 4 GPUs with room were GPUs of kind new, and it accepts no other"


@pytest.mark.parametrize("policy", [name for name in ROUNDS if name in OBEY])
def test_in_rounds_and_passes_a_job_waits_for_its_kind_and_says_so(policy: str) -> None:
    jobs = [needs("a", 4, NEW, s=600), needs("c", 2, OLD), needs("b", 4, NEW, arrival_s=100.0)]
    rows = ran(two_kinds(), jobs, make_policy(policy))
    assert starts(rows)["b"] >= 600.0 > starts(rows)["c"]
    told = {row.reason for row in rows.wait_reasons if row.cause == "gpu_kind"}
    assert told == {"0 of 4 GPUs with room were GPUs of kind new, and it accepts no other"}


def test_a_job_that_loses_its_gpus_in_a_round_waits_for_its_kind_at_once() -> None:
    """The two take turns on the new GPUs, while all old ones are free."""
    jobs = [needs("a", 4, NEW, s=2000), needs("b", 4, NEW, s=2000)]
    rows = ran(two_kinds(), jobs, make_policy("gavel"))
    lost = [x for x in rows.placements if x.reason == PREEMPTED]
    told = {(x.handle, x.tick): x for x in rows.wait_reasons if x.reason}
    assert len(lost) > 4
    for stay in lost:
        why = told[stay.handle, stay.end]
        assert why.cause == "gpu_kind" and why.reason.startswith("0 of 4 GPUs with room were GPUs")


def test_gpus_of_its_kind_that_come_within_a_round_come_late_though_others_were_free() -> None:
    jobs = [needs("a", 4, NEW, s=100), needs("b", 2, NEW), needs("on-old", 2, OLD, s=900)]
    rows = ran(two_kinds(), jobs, make_policy("equal-share"))
    told = [(seconds(x.tick), x.cause) for x in rows.wait_reasons if x.handle == 1 and x.reason]
    assert told == [(0.0, "gpu_kind"), (100.0, "timer")]


@pytest.mark.parametrize("policy", [*OBEY, *WRAPPED])
def test_a_job_that_accepts_two_kinds_may_lie_on_both_and_on_no_third(policy: str) -> None:
    tree = of_kinds(nested(LEVELS, [[2, 2, 2]]), "old", "mid", "new")
    rows = ran(tree, [needs("wide", 4, ("new", "old"))], make_policy(policy))
    assert set(kinds_of(tree, intervals(rows, 0)[0].placement)) == {"old", "new"}


@pytest.mark.parametrize("policy", ["srtf", "srsf"])
def test_a_job_displaces_only_those_on_gpus_of_its_kind(policy: str) -> None:
    """Both long jobs come behind the short one; taking the old GPUs would not help it."""
    jobs = [
        needs("on-old", 4, OLD, 1000),
        needs("on-new", 4, NEW, 900),
        needs("short", 2, NEW, 50, arrival_s=10.0),
    ]
    rows = ran(two_kinds(), jobs, make_policy(policy))
    assert starts(rows)["short"] == 10.0
    assert len(intervals(rows, 0)) == 1
    assert len(intervals(rows, 1)) == 2


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_reservations_are_of_a_kind(policy: str) -> None:
    """`head` has all new GPUs from 100 on. Old GPUs never delay it, new ones only until 100."""
    jobs = [
        needs("a", 3, NEW, 100),
        needs("head", 4, NEW, 100, arrival_s=1.0),
        needs("long-on-old", 4, OLD, 1000, arrival_s=2.0),
        needs("long-on-new", 1, NEW, 1000, arrival_s=3.0),
        needs("short-on-new", 1, NEW, 50, arrival_s=4.0),
        needs("anywhere", 1, s=1000, arrival_s=5.0),
    ]
    rows = ran(two_kinds(), jobs, make_policy(policy))
    assert starts(rows) == {
        "a": 0.0,
        "head": 100.0,
        "long-on-old": 2.0,
        "long-on-new": 200.0,
        "short-on-new": 4.0,
        "anywhere": 200.0,
    }


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_the_reason_of_a_job_with_a_reservation_names_kinds_once_others_are_free(
    policy: str,
) -> None:
    """From 100 on all old GPUs are free."""
    jobs = [
        needs("a", 4, NEW),
        needs("b", 4, OLD),
        needs("next", 4, NEW, arrival_s=1.0),
        needs("last", 4, NEW, arrival_s=2.0),
    ]
    told = [row for row in ran(two_kinds(), jobs, make_policy(policy)).wait_reasons if row.reason]
    assert [(row.handle, seconds(row.tick), row.cause) for row in told] == [(3, 100.0, "gpu_kind")]


def test_dally_waits_for_the_best_level_that_its_kind_has() -> None:
    """Two new GPUs in each of two racks: the best level is the network, so it does not wait."""
    tree = of_kinds(nested(LEVELS, [[4, 2], [4, 2]]), "old", "new", "old", "new")
    rows = ran(tree, [needs("a", 4, NEW)], make_policy("dally-fully-consolidated"))
    assert starts(rows) == {"a": 0.0}
    assert set(kinds_of(tree, intervals(rows, 0)[0].placement)) == {"new"}


def test_themis_gives_gpus_that_a_winner_does_not_accept_to_others() -> None:
    """Both waiting jobs win four GPUs, by number; only one of them may have the old ones."""
    jobs = [
        needs("a", 4, NEW, 500),
        needs("b", 4, NEW, 400, arrival_s=1.0),
        needs("c", 4, OLD, 100, arrival_s=1.0),
    ]
    assert starts(ran(two_kinds(), jobs, make_policy("themis")))["c"] == 1.0


def test_themis_gives_a_kind_to_the_worse_off_of_two_winners() -> None:
    """Eight GPUs are on offer and both bid for four; the short one has the larger rho."""
    jobs = [needs("long", 4, NEW, 400), needs("short", 4, NEW, 50)]
    rows = ran(two_kinds(), jobs, make_policy("themis", fairness_knob=0.0))
    assert starts(rows)["short"] == 0.0 < starts(rows)["long"]


def test_themis_gives_what_a_winner_cannot_use_to_others() -> None:
    """`apart` wins two new GPUs, but these lie on two machines; `last` would get none."""
    tree = of_kinds(nested(LEVELS, [[4, 4, 4]]), "new", "new", "old")
    jobs = [
        needs("a", 3, NEW, 900),
        needs("b", 3, NEW, 900),
        needs("apart", 2, NEW, 50, arrival_s=10.0),
        needs("whole", 4, OLD, 50, arrival_s=10.0),
        needs("last", 1, s=1000, arrival_s=10.0),
    ]
    options = {"fairness_knob": 0.0, "placement": "consolidate-or-wait"}
    rows = ran(tree, jobs, make_policy("themis", **options))
    assert starts(rows)["last"] == 10.0 == starts(rows)["whole"]
    assert starts(rows)["apart"] > 10.0


@pytest.mark.parametrize("policy", ["themis", "equal-share"])
def test_the_job_that_accepts_fewest_gpus_is_placed_first(policy: str) -> None:
    """The larger job would take the new GPUs, which come first in visiting order."""
    tree = of_kinds(nested(LEVELS, [[4], [4]]), "new", "old")
    rows = ran(tree, [needs("any", 4), needs("new", 2, NEW)], make_policy(policy))
    assert starts(rows) == {"any": 0.0, "new": 0.0}


def test_lucid_packs_a_job_only_beside_one_on_a_kind_that_it_accepts() -> None:
    jobs = [needs("old", 4, OLD), needs("new", 4, NEW), needs("third", 4, NEW, arrival_s=1.0)]
    rows = ran(two_kinds(), jobs, make_policy("lucid", sharing_capacity=4))
    assert starts(rows)["third"] == 1.0
    assert lawful(two_kinds(), rows)


@st.composite
def crowds(draw: st.DrawFn) -> tuple[ClusterTree, list[Job]]:
    """Jobs that each fit what they accept of a cluster of up to three kinds."""
    kinds = draw(st.lists(st.sampled_from("abc"), min_size=4, max_size=4))
    tree = of_kinds(nested(LEVELS, [[draw(st.integers(1, 4)) for _ in range(2)] * 2] * 1), *kinds)
    there = gpus_by_kind(tree)
    sets = [(), *((x,) for x in there), *combinations(there, 2)]
    jobs = []
    for number in range(draw(st.integers(1, 10))):
        accepted = draw(st.sampled_from(sets))
        most = sum(there[kind] for kind in accepted or there)
        gpus, s = draw(st.integers(1, min(most, 6))), draw(st.integers(1, 200))
        at, model = float(draw(st.integers(0, 200))), draw(st.sampled_from(["vgg11", "resnet18"]))
        jobs.append(needs(str(number), gpus, accepted, s, arrival_s=at, model=model))
    return tree, sorted(jobs, key=lambda x: x.arrival_s)


@pytest.mark.parametrize("policy", [*OBEY, *WRAPPED])
@given(st.data())
@settings(max_examples=5, deadline=None)
def test_no_job_is_ever_on_a_kind_that_it_does_not_accept_and_all_finish(
    policy: str, data: st.DataObject
) -> None:
    tree, jobs = data.draw(crowds())
    rows = ran(tree, jobs, make_policy(policy, **short_turns(policy)))
    assert len(rows.jobs) == len(jobs)
    assert lawful(tree, rows)


@pytest.mark.parametrize("policy", SERVES_ALL)
@given(st.data())
@settings(max_examples=8, deadline=None)
def test_no_job_waits_beside_free_gpus_that_it_accepts(policy: str, data: st.DataObject) -> None:
    tree, jobs = data.draw(crowds())
    placement = {} if policy == "gandiva" else {"placement": "any"}
    one = make_policy(policy, **{**short_turns(policy), **placement})
    engine = engine_of(tree, jobs, one)
    while (view := engine.next_question(one)) is not None:
        answer = one.decide(view)
        free = free_after(view, answer)
        started = {x.handle for x in answer if isinstance(x, Start)}
        for handle, state in view.waiting.items():
            if handle not in started:
                assert free.fed(state.job).total < state.job.gpus
        engine.answer(answer)


def test_gandiva_serves_a_job_whose_kind_a_migration_frees() -> None:
    """At 1 s the large job leaves the only GPU of kind b for two that a finished job held."""
    tree = of_kinds(nested(LEVELS, [[1, 2, 1, 2]]), "a", "a", "b", "a")
    jobs = [needs("large", 3, s=500), needs("x", 1, s=1), needs("y", 1, s=1), needs("z", 1, ("b",))]
    begun = starts(ran(tree, jobs, make_policy("gandiva", quantum_s=3000)))
    assert begun == {"large": 0, "x": 0, "y": 0, "z": 1}


@pytest.mark.parametrize("policy", ["fifo", "las", "dally", "tiresias", "easy", "themis"])
@given(st.data())
@settings(max_examples=6, deadline=None)
def test_jobs_that_accept_all_kinds_run_as_those_that_name_none(
    policy: str, data: st.DataObject
) -> None:
    tree, jobs = data.draw(crowds())
    every = tuple(dict.fromkeys(tree.kinds))
    named = [
        ran(tree, [replace(x, gpu_kinds=kinds) for x in jobs], make_policy(policy))
        for kinds in ((), every)
    ]
    assert named[0].placements == named[1].placements


def test_kinds_are_not_counted_where_every_job_accepts_every_kind() -> None:
    tree = two_kinds()
    jobs = [needs("a", 1), needs("b", 1, ("new", "old"))]
    assert FreeHosts.that_matter(tree, jobs) is None
    assert FreeHosts.that_matter(tree, [*jobs, needs("c", 1, OLD)]) is not None
    assert question(simulator(tree, jobs)).free.hosts is None


def test_the_engine_refuses_gpus_of_another_kind_alone_and_beside_others() -> None:
    tree, jobs = two_kinds(), [needs("a", 2), needs("b", 2, NEW)]
    alone = Script({0: [Start(0, on({1: 2})), Start(1, on({0: 2}))]})
    with pytest.raises(PolicyError, match=r"job 'b': .* 0 free GPUs of kind new of the 2"):
        run_script(tree, jobs, alone)
    beside = Script({0: [Start(0, on({0: 2})), Start(1, on({0: 2}), beside=0)]})
    beside.jobs_per_gpu = 2
    with pytest.raises(PolicyError, match=r"job 'b' beside job 'a', whose GPUs have 0 free GPUs"):
        engine_of(tree, jobs, beside).run(beside)


@pytest.mark.skipif(core() == "compiled", reason="rules of compiled classes cannot be lifted")
def test_the_check_finds_a_job_on_another_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FreeHosts, "claim", lambda hosts, placement, job: None)
    with pytest.raises(InvariantError, match="job 'b' runs on GPUs that have 0 free GPUs of kind"):
        run_script(two_kinds(), [needs("b", 2, NEW)], Script({0: [Start(0, on({0: 2}))]}))


@pytest.mark.skipif(core() == "compiled", reason="rules of compiled classes cannot be lifted")
@pytest.mark.parametrize("policy", ["fifo-backfill", "las", "srtf", "dally", "easy", "tiresias"])
def test_a_job_said_to_wait_for_a_kind_had_room_on_others(policy: str) -> None:
    draw, tree = Random(2), of_kinds(nested(LEVELS, [[4, 4], [4, 4]]), "x", "y", "x", "y")
    jobs = [
        needs(
            str(number),
            draw.choice([1, 2, 4]),
            draw.choice([(), ("x",), ("y",)]),
            draw.randint(10, 200),
            arrival_s=float(9 * number),
        )
        for number in range(40)
    ]
    one = make_policy(policy, **short_turns(policy))
    engine = engine_of(tree, jobs, one)
    told = 0
    while (view := engine.next_question(one)) is not None:
        answer = list(one.decide(view))
        held = sum(x.gpus for x in view.lease_ended) + (policy == "srtf") * tree.gpus
        for wait in answer:
            if isinstance(wait, Wait) and wait.cause == "gpu_kind":
                told += 1
                assert jobs[wait.handle].gpu_kinds
                assert view.free.total + held >= jobs[wait.handle].gpus
        engine.answer(answer)
    assert told


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_what_is_left_for_a_job_is_what_an_exchange_of_gpus_can_give_it(
    data: st.DataObject,
) -> None:
    """The most that a flow can carry from jobs to kinds, by trying every kind for every GPU."""
    tree = of_kinds(nested(LEVELS, [[1, 2, 1]]), "a", "b", "c")
    free = FreeGpus(tree)
    free.hosts = FreeHosts.of_idle(tree)
    room = GpuCounts(free, ())
    kinds = st.lists(st.sampled_from("abc"), unique=True, max_size=3).map(tuple)
    given_so_far: list[str] = []
    for _ in range(data.draw(st.integers(1, 4))):
        one = needs("x", 1, data.draw(kinds))
        left = room.left(one.gpu_kinds)
        accepted = "".join(one.gpu_kinds) or "abc"
        assert left == max(n for n in range(5) if feasible([*given_so_far, *[accepted] * n]))
        take = data.draw(st.integers(0, left))
        room.promise(one.gpu_kinds, take)
        given_so_far += [accepted] * take
    assert room.total == 4 - len(given_so_far)


def feasible(wanted: Sequence[str], there: Mapping[str, int] | None = None) -> bool:
    left = {"a": 1, "b": 2, "c": 1} if there is None else there
    if not wanted:
        return True
    first, *others = wanted
    return any(left[x] and feasible(others, {**left, x: left[x] - 1}) for x in first)


CLUSTER = """name: two
summary: old and new GPUs
levels: [rack, machine]
tree: {count: 1, machine: [{gpus: 4, kind: old}, {gpus: 4, kind: new}]}
"""
TRACE = "job_id,arrival_s,gpus,model,iterations,compute_s,gpu_kinds\n"
ROWS = "a,0,4,vgg16,100,1,new\nb,10,2,vgg16,100,1,new\nc,20,4,vgg16,100,1,old new\n"


def test_the_tables_name_the_kind_as_the_cause(tmp_path: Path) -> None:
    result = simulate(scenario_of(tmp_path, CLUSTER, TRACE + ROWS), check=True, cache=False)
    waits = result.tables["waits"]
    assert list(waits["job_id"]) == ["b"]
    assert list(waits["cause"]) == ["gpu_kind"]
    assert result.summary["reads_gpu_kinds"] == "no"


@pytest.mark.parametrize(
    ("rows", "policy", "words"),
    [
        ("a,0,5,vgg16,9,1,new\n", "pollux", "t.csv:2: job 'a' wants 5 GPUs of kind new, but the"),
        ("a,0,5,vgg16,9,1,new\n", "quota(pollux)", "job 'a' wants 5 GPUs of kind new, but the"),
        ("a,0,5,vgg16,9,1,new\n", "fifo", "t.csv:2: job 'a' wants 5 GPUs of kind new, but the"),
        ("a,0,1,vgg16,9,1,newer\n", "fifo", "accepts GPUs of kind 'newer', which the cluster lack"),
    ],
)
def test_impossible_requests_are_refused_in_one_sentence(
    tmp_path: Path, rows: str, policy: str, words: str
) -> None:
    with pytest.raises(ArtistError, match=words) as refused:
        simulate(scenario_of(tmp_path, CLUSTER, TRACE + rows, policy=policy), cache=False)
    assert "\n" not in str(refused.value)


def test_a_rigid_policy_needs_a_kind_for_all_gpus_that_an_elastic_job_asks_for(
    tmp_path: Path,
) -> None:
    trace = TRACE.replace("gpu_kinds", "gpus_min,gpus_max,gpu_kinds") + "a,0,6,vgg16,9,1,2,8,new\n"
    with pytest.raises(ArtistError, match="wants 6 GPUs of kind new, but the cluster has 4"):
        simulate(scenario_of(tmp_path, CLUSTER, trace), cache=False)
    elastic = scenario_of(tmp_path, CLUSTER, trace.replace("0,6", "0,4"), policy="optimus")
    assert simulate(elastic, check=True, cache=False).summary["jobs_finished"] == 1


def test_a_policy_of_ones_own_must_say_that_it_keeps_to_kinds(tmp_path: Path) -> None:
    source = """from artist.contract import BasePolicy, Start
from artist.policies.shared.placers import PackPlacer
class Mine(BasePolicy):
    def decide(self, view):
        job = next(iter(view.waiting.values()), None)
        placement = job and PackPlacer().place(view.free.fed(job.job), job.job.gpus)
        return [Start(job.handle, placement)] if placement else []
"""
    (tmp_path / "mine.py").write_text(source)
    made = scenario_of(tmp_path, CLUSTER, TRACE + ROWS, policy=f"{tmp_path / 'mine.py'}:Mine")
    with pytest.raises(ArtistError, match=r"ignores kinds of GPUs, but job .*obeys_gpu_kinds"):
        simulate(made, cache=False)
    says = source.replace("    def decide", "    obeys_gpu_kinds = True\n    def decide")
    (tmp_path / "mine.py").write_text(says)
    assert simulate(made, check=True, cache=False).summary["jobs_finished"] == 3


def test_messages_name_policies_that_keep_to_kinds() -> None:
    for name in OBEY_KINDS:
        one = make_policy(name) if name not in LACKING else None
        assert one is None or obeys(one) or getattr(one, "reads_gpu_kinds", False)
