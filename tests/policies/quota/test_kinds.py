"""Does `quota(HOST)` count only GPUs of the kinds that a job accepts?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from engine.gpu_sharing import scenario_of
from hypothesis import given, settings
from hypothesis import strategies as st
from support import LACKING, SHARING, job, make_policy, short_turns

from artist.api import simulate
from artist.cluster.kinds import accepts, kinds_of
from artist.cluster.tree import ClusterTree, gpus_by_kind, nested
from artist.contract import ClusterView, Policy, Preempt
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.errors import ArtistError
from artist.policies.quota.ledger import LAST_CLASS
from artist.policies.quota.preemption import gpus_for
from artist.policies.quota.reasons import _BEHIND
from artist.policies.quota.wrapper import QuotaWrapper
from artist.policies.shared.gpu_counts import overlap
from artist.policies.table import POLICIES
from artist.rng import FIRST_DRAWS
from artist.run import open_policy
from artist.testing import LevelRates
from artist.units import seconds
from artist.workload.job import Job
from artist.workload.tenants import Tenant

OLD, NEW = ("old",), ("new",)
LEVELS = ("machine", "rack", "network")
TENANTS = {"ads": Tenant(quota=5), "web": Tenant(quota=4, weight=2.0), "lab": Tenant(quota=0)}


def obeys(name: str) -> bool:
    if name in (*LACKING, *SHARING):
        return False
    one = make_policy(name)
    known = getattr(one, "obeys_gpu_kinds", False) or getattr(one, "reads_gpu_kinds", False)
    return known and not getattr(one, "has_quotas", False)


HOSTS = [x.id for x in POLICIES if not x.wraps and obeys(x.id)]
SERVES_ALL = ["fifo-backfill", "sjf", "srtf", "srsf", "las"]
"""These give waiting jobs GPUs whenever enough are free of the kinds that they accept."""


def two_kinds() -> ClusterTree:
    """Four old GPUs, and four new ones."""
    return replace(nested(LEVELS, [[4], [4]]), kinds=("old", "new"))


def ran(tree: ClusterTree, jobs: Sequence[Job], policy: Policy) -> Rows:
    return engine_of(tree, jobs, policy).run(policy)


def engine_of(tree: ClusterTree, jobs: Sequence[Job], policy: Policy) -> Simulator:
    """`check` finds GPUs of wrong kinds, and GPUs that two jobs have."""
    return Simulator(tree, jobs, LevelRates(tree), lease=policy.lease, check=True)


def quota(host: str, tenants: Mapping[str, Tenant] = TENANTS, **options: Any) -> QuotaWrapper:
    opened = open_policy(f"quota({host})", options, FIRST_DRAWS, tenants)
    assert isinstance(opened, QuotaWrapper)
    return opened


def stays(rows: Rows) -> dict[str, list[tuple[float, float]]]:
    """Begin and end of each stay of each job, in whole seconds."""
    names = {row.handle: row.job.id for row in rows.jobs}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in names.values()}
    for row in sorted(rows.placements, key=lambda x: x.start):
        found[names[row.handle]].append((round(seconds(row.start)), round(seconds(row.end))))
    return found


def test_a_trace_worked_out_by_hand() -> None:
    """Four old and four new GPUs; ads and web have a quota of 4 each, lab has none.

    0    a takes the new GPUs within quota, b the old ones above it.
    10   c is within quota, and lacks 2 new GPUs: a has the same class, and b has no new ones.
    20   d is within quota, and lacks 2 old GPUs: b loses its 4.
    30   f takes 1 of the 2 old GPUs that are free; b, of 4, can use none, nor can c.
    40   g would take 2 new ones, or 2 old ones. Only 1 is free, and lab may displace nobody.
    70   d ends. Of 3 free old GPUs b can use none, and g takes 2.
    100  a ends. ads' quota is free, and b is within it. c takes 2 new ones.
         b lacks 4 old ones: g and f, above quota, lose 3, and g takes the other new ones. It does
         its 30th iteration again: it began a nanosecond late, after b had lost its GPUs to d.
    180  b ends, and f goes on.
    """
    tenants = {"ads": Tenant(quota=4), "web": Tenant(quota=4), "lab": Tenant(quota=0)}
    made = [
        job("a", 4, 100, tenant="ads", gpu_kinds=NEW),
        job("b", 4, 100, tenant="ads", gpu_kinds=OLD),
        job("c", 2, 50, arrival_s=10.0, tenant="web", gpu_kinds=NEW),
        job("d", 2, 50, arrival_s=20.0, tenant="web", gpu_kinds=OLD),
        job("f", 1, 100, arrival_s=30.0, tenant="lab", gpu_kinds=OLD),
        job("g", 2, 90, arrival_s=40.0, tenant="lab"),
    ]
    rows = ran(two_kinds(), made, quota("fifo-backfill", tenants))
    assert stays(rows) == {
        "a": [(0, 100)],
        "b": [(0, 20), (100, 180)],
        "c": [(100, 150)],
        "d": [(20, 70)],
        "f": [(30, 100), (180, 210)],
        "g": [(70, 100), (100, 161)],
    }


def test_gpus_that_either_of_two_jobs_may_take_are_freed_for_one_after_the_other() -> None:
    """`any` is served first, and its placer prefers new GPUs: those of `v-old` are free alone.

    Were `v-new` to lose its GPUs at once too, `any` would take these, and `new` would wait for it.
    """
    tree = replace(two_kinds(), kinds=("new", "old"))
    made = [
        job("v-old", 4, 500, tenant="lab", gpu_kinds=OLD),
        job("v-new", 4, 500, arrival_s=1.0, tenant="lab", gpu_kinds=NEW),
        job("any", 4, 100, arrival_s=10.0, tenant="web", priority=1),
        job("new", 4, 100, arrival_s=10.0, tenant="ads", priority=5, gpu_kinds=NEW),
    ]
    found = stays(ran(tree, made, quota("fifo-backfill")))
    assert [found[x][0][0] for x in ("any", "new")] == [10, 10]
    assert [len(found[x]) for x in ("v-old", "v-new")] == [2, 2]


@pytest.mark.parametrize(
    ("host", "rows", "starts"),
    [
        # x lacks new GPUs, which a has: it is not at the head of a queue in which y waits.
        ("fifo", "a 0 4 ads new, x 10 4 lab new, y 20 4 hub old", {"x": 100, "y": 20}),
        # v takes the new GPUs above quota, so that x cannot have them, and y the old ones.
        ("fifo", "v 0 4 lab new, x 0 4 hub new, y 0 4 few old", {"v": 0, "x": 100, "y": 0}),
        # w, within quota, takes the new GPUs.
        ("fifo", "w 0 4 web new, x 0 4 lab new, y 0 4 hub old", {"w": 0, "x": 100, "y": 0}),
        # Both w and z are within quota, and 4 GPUs are new: the old ones are spare.
        (
            "fifo-backfill",
            "w 0 4 web new, z 0 4 web new, y 0 4 lab old",
            {"w": 0, "z": 100, "y": 0},
        ),
        # w and z take all new GPUs between them, so 4 are spare, and y comes before x.
        (
            "fifo-backfill",
            "w 0 4 web new, z 0 2 web new, y 0 4 lab old, x 0 1 lab old",
            {"w": 0, "z": 100, "y": 0, "x": 100},
        ),
        # v loses the old GPUs to w and takes the new ones: x stands behind both.
        ("fifo", "v 0 4 lab old/new, w 10 4 web old, x 10 2 hub old/new", {"w": 10, "x": 100}),
        # w cannot have its 4 new GPUs yet: x may have 2 of them.
        ("fifo-backfill", "a 0 2 ads new, w 10 4 web new, x 20 2 lab new", {"x": 20}),
    ],
)
def test_gpus_of_a_kind_are_spare_for_jobs_that_accept_it(
    host: str, rows: str, starts: dict[str, int]
) -> None:
    tenants = {name: Tenant(quota=0) for name in ("lab", "hub", "few")}
    tenants |= {"ads": Tenant(quota=4), "web": Tenant(quota=8)}
    made = [
        job(
            name,
            int(gpus),
            100,
            arrival_s=float(at),
            tenant=tenant,
            gpu_kinds=tuple(kinds.split("/")),
        )
        for name, at, gpus, tenant, kinds in (row.split() for row in rows.split(", "))
    ]
    found = stays(ran(two_kinds(), made, quota(host, tenants)))
    assert {name: found[name][0][0] for name in starts} == starts


def test_behind_a_head_that_lacks_gpus_of_its_kind_a_job_above_quota_stays_hidden() -> None:
    """4 new GPUs are free. h, above quota too, was let in for spare ones; b took those it accepts.

    Seen by a host that lets nobody pass h, y would wait in front of jobs within quota.
    """
    tenants = {"web": Tenant(quota=4), "lab": Tenant(quota=0)}
    made = [
        job("b", 4, 100, tenant="web"),
        job("h", 1, 100, tenant="lab", gpu_kinds=OLD),
        job("y", 1, 100, arrival_s=10.0, tenant="lab", gpu_kinds=NEW),
    ]
    rows = ran(two_kinds(), made, quota("fifo", tenants))
    assert stays(rows)["b"] == [(0, 100)]
    told = [(row.cause, row.reason) for row in rows.wait_reasons if row.handle == 2]
    assert told == [("policy", _BEHIND)]


def test_a_job_behind_a_mate_that_the_host_knows_waits_until_something_happens() -> None:
    """h lacks GPUs of its kind, so its mate i stays hidden, although GPUs are spare for it.

    The host was asked again and again, a nanosecond later each time.
    """
    tree = replace(nested(LEVELS, [[8, 8]] * 4), kinds=("a",) * 4 + ("b",) * 4)
    tenants = {"v": Tenant(quota=32), "n": Tenant(quota=16, weight=2.0), "o": Tenant(quota=16)}
    rows = [
        ("a", 163, 2, 14618, "o", 2, "b a"),
        ("b", 1151, 8, 8247, "v", 1, ""),
        ("c", 1753, 16, 5347, "o", 2, "b a"),
        ("d", 2001, 24, 3813, "o", 3, "b a"),
        ("e", 2065, 8, 12872, "o", 1, "a"),
        ("f", 2618, 16, 9006, "v", 1, "b a"),
        ("g", 3434, 24, 5654, "n", 1, "b"),
        ("h", 7061, 16, 3791, "n", 2, "a"),
        ("i", 9544, 2, 14197, "n", 2, "b a"),
    ]
    made = [
        job(
            name, gpus, steps, arrival_s=float(at), tenant=tenant, priority=priority,
            gpu_kinds=tuple(kinds.split()),
        )
        for name, at, gpus, steps, tenant, priority, kinds in rows
    ]  # fmt: skip
    assert len(ran(tree, made, quota("fifo", tenants)).jobs) == len(made)


def test_a_job_that_no_kind_can_hold_is_said_to_lack_room_not_to_be_late() -> None:
    """Each minute sia would preempt o for b, and may not: o is within quota, and b above it."""
    tenants = {"ads": Tenant(quota=5), "lab": Tenant(quota=0)}
    made = [
        job("a", 3, 300, tenant="ads", gpu_kinds=NEW),
        job("o", 2, 300, tenant="ads", gpu_kinds=OLD),
        job("b", 3, 100, arrival_s=10.0, tenant="lab"),
    ]
    rows = ran(two_kinds(), made, quota("sia", tenants))
    assert stays(rows)["b"] == [(300, 400)]
    words = "3 GPUs were free, but at most 2 of one kind, and the policy mixes no kinds"
    assert [(row.handle, row.cause, row.reason) for row in rows.wait_reasons] == [
        (2, "gpu_kind", words)
    ]


@pytest.mark.parametrize("host", ["equal-share", "gavel"])
def test_a_job_that_had_its_round_did_not_come_late(host: str) -> None:
    """l enters again right after a round: equal-share took its GPUs, gavel's start for it fell.

    At 410 w gives back all old GPUs. Under equal-share that is late for l, which gets them at 430.
    """
    made = [
        job("a", 2, 300, arrival_s=10.0, tenant="ads"),
        job("f", 3, 100, arrival_s=20.0, tenant="lab", gpu_kinds=NEW),
        job("w", 4, 100, arrival_s=30.0, tenant="ads", gpu_kinds=OLD),
        job("l", 2, 300, arrival_s=30.0, tenant="lab", gpu_kinds=OLD),
    ]
    tenants = {"ads": Tenant(quota=8), "lab": Tenant(quota=0)}
    rows = ran(two_kinds(), made, quota(host, tenants))
    late = [(round(seconds(x.tick)), x.handle) for x in rows.wait_reasons if x.cause == "timer"]
    assert late == [(20, 1), (30, 3), *([(410, 3)] if host == "equal-share" else [])]
    assert next(x for x, _ in stays(rows)["l"] if x > 310) == (
        430 if host == "equal-share" else 410
    )
    said = [(round(seconds(x.tick)), x.cause) for x in rows.wait_reasons if x.handle == 2]
    assert said[0] == (30, "gpu_kind")
    assert said[1] == (
        70 if host == "equal-share" else 310,
        "policy",
    )  # too few are free of any kind


@st.composite
def crowds(draw: st.DrawFn, *, on_one: bool = False) -> tuple[ClusterTree, list[Job]]:
    """Jobs of tenants and priorities that each fit what they accept of up to three kinds.

    `on_one`: also if all of a job's GPUs are of one kind.
    """
    kinds = draw(st.lists(st.sampled_from("abc"), min_size=4, max_size=4))
    sizes = [[draw(st.integers(1, 4)) for _ in range(2)] for _ in range(2)]
    tree = replace(nested(LEVELS, sizes), kinds=tuple(kinds))
    there = gpus_by_kind(tree)
    sets = [(), *((x,) for x in there), *combinations(there, 2)]
    names = [*TENANTS, None]
    jobs = []
    for number in range(draw(st.integers(1, 14))):
        accepted = draw(st.sampled_from(sets))
        most = (max if on_one else sum)(there[kind] for kind in accepted or there)
        made = job(
            str(number),
            draw(st.integers(1, min(most, 6))),
            draw(st.integers(1, 200)),
            arrival_s=float(draw(st.integers(0, 150))),
            tenant=draw(st.sampled_from(names)),
            priority=draw(st.sampled_from([None, 1, 5])),
            gpu_kinds=accepted,
        )
        jobs.append(made)
    return tree, sorted(jobs, key=lambda x: x.arrival_s)


@pytest.mark.parametrize("host", HOSTS)
@given(st.data())
@settings(max_examples=5, deadline=None)
def test_no_job_is_ever_on_a_kind_that_it_does_not_accept_and_all_finish(
    host: str, data: st.DataObject
) -> None:
    tree, jobs = data.draw(crowds(on_one=host.startswith(("gavel", "sia"))))
    rows = ran(tree, jobs, quota(host, **short_turns(host)))
    assert len(rows.jobs) == len(jobs)
    by_handle = {row.handle: row.job for row in rows.jobs}
    assert all(accepts(tree, by_handle[row.handle], row.placement) for row in rows.placements)


class Watch:
    """Looks at every answer, and at how things stand when an instant is over."""

    def __init__(self, policy: QuotaWrapper) -> None:
        self.policy = policy
        self.ledger = policy._ledger
        self.preempted = self.waits = 0

    def before(self, view: ClusterView, last: int) -> None:
        """A question that comes a nanosecond after the last one goes on with its instant."""
        if view.now <= last + 1:
            return
        held = [x for x in view.running if self.ledger.running[x].rank == LAST_CLASS]
        for handle, state in view.waiting.items():
            if handle not in self.ledger.waiting:
                continue  # it arrives
            entry = self.ledger.waiting[handle]
            free = view.free.fed(state.job).total
            if view.finished or view.entered:
                continue  # what is free now was not free before
            self.waits += 1
            assert free < entry.gpus
            if entry.within:
                above = sum(
                    gpus_for(entry.accepts, view.running[x].placement, view.cluster) for x in held
                )
                assert free + above < entry.gpus

    def after(self, view: ClusterView, answer: Sequence[Any]) -> None:
        """A waiting job of an earlier class accepts GPUs of each job that the quota preempts.

        And the host gives it as many.
        """
        assert not self.policy._wasted_on
        for one in answer:
            if not (isinstance(one, Preempt) and one.reason.startswith("for a job of class")):
                continue
            self.preempted += 1
            victim = view.running[one.handle]
            served = [self.ledger.waiting[x] for x in self.policy._reserved_for]
            assert any(
                x.rank < self.ledger.running[one.handle].rank
                and overlap(x.accepts, kinds_of(view.cluster, victim.placement))
                for x in served
            )


@pytest.mark.parametrize("host", SERVES_ALL)
@given(st.data())
@settings(max_examples=20, deadline=None)
def test_work_is_conserved_and_no_preemption_is_useless(host: str, data: st.DataObject) -> None:
    tree, jobs = data.draw(crowds())
    policy = quota(host, placement="any", **short_turns(host))
    engine, watch, last = engine_of(tree, jobs, policy), Watch(policy), -2
    while (view := engine.next_question(policy)) is not None:
        watch.before(view, last)
        answer = policy.decide(view)
        watch.after(view, answer)
        last = view.now
        engine.answer(answer)


CLUSTER = """name: two
summary: old and new GPUs
levels: [rack, machine]
tree: {count: 1, machine: [{gpus: 4, kind: old}, {gpus: 4, kind: new}]}
"""
TRACE = """job_id,arrival_s,gpus,model,iterations,compute_s,tenant,gpu_kinds
a,0,4,vgg16,100,1,ads,new
b,0,4,vgg16,100,1,ads,old
c,10,2,vgg16,100,1,web,old
"""


def test_a_trace_with_required_kinds_runs_and_quotas_by_kind_are_still_refused(
    tmp_path: Path,
) -> None:
    made = scenario_of(tmp_path, CLUSTER, TRACE, policy="quota(fifo)")
    given = made.model_copy(update={"tenants": {"ads": Tenant(quota=4), "web": Tenant(quota=4)}})
    jobs = simulate(given, check=True, cache=False).tables["jobs"]
    assert list(jobs["preemptions"]) == [0, 1, 0]
    by_kind = {"ads": Tenant.model_validate({"quota": {"new": 4}}), "web": Tenant(quota=4)}
    with pytest.raises(ArtistError, match=r"keeps no quotas by kind of GPUs, .* choose mast or"):
        simulate(made.model_copy(update={"tenants": by_kind}), cache=False)
