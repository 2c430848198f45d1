"""Does the policy `slurm` keep schedules worked out by hand from slurm.conf(5)?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support import cluster, job, make_policy, run

from artist.engine.job_state import JobState
from artist.errors import ConfigError, TraceError
from artist.policies.slurm.fair_share import FairShare
from artist.policies.slurm.machines import Free, Machines, bits
from artist.policies.slurm.request import RequestReader
from artist.policies.slurm.reservations import Reservations
from artist.policies.slurm.selection import Selection, shares
from artist.policies.slurm.settings import settings_of
from artist.run.traces import cut_by
from artist.slurm.facts import Account, SlurmFacts, SlurmReservation
from artist.trace.native.trace import Trace
from artist.units import seconds
from artist.workload.job import Job

SCHEDULER = "bf_interval=2,bf_resolution=1,batch_sched_delay=1,sched_interval=5"
TWO = cluster([8, 8])


def asked(name: str, gpus: int, run_s: float, limit_min: float, **given: Any) -> Job:
    hints = {"hint_time_limit_s": 60 * limit_min}
    own = {key: given.pop(key) for key in ("arrival_s", "user", "tenant") if key in given}
    hints |= {f"hint_{key}": value for key, value in given.items()}
    return job(name, gpus, run_s, hints=hints, **own)


class Waiting(JobState):
    """A job that waits."""

    def __init__(self, waiting: Job) -> None:
        super().__init__(waiting, 0, 0)


def starts(jobs: list[Job], *, scheduler: str = SCHEDULER, **facts: Any) -> dict[str, float]:
    """When each job starts on two machines of 8 GPUs, in whole seconds."""
    settings = {"SchedulerParameters": scheduler, **facts.pop("settings", {})}
    policy = make_policy("slurm", facts={"settings": settings, **facts})
    rows = run(TWO, jobs, policy)
    return {row.job.id: int(seconds(row.start)) for row in rows.jobs}


def test_backfill_starts_what_ends_before_the_reservation() -> None:
    jobs = [
        asked("long", 8, 100, 2),
        asked("wide", 16, 10, 1, arrival_s=1.0),
        asked("fits", 8, 10, 1, arrival_s=2.0),
        asked("late", 8, 10, 2, arrival_s=2.0),
    ]
    # `wide` is expected at 120 s, the limit of `long`, and starts when that ends. `late` would
    # run until after that, by its limit.
    found = starts(jobs)
    assert (found["fits"], found["wide"], found["late"]) == (2, 100, 110)


def test_backfill_reserves_whole_machines() -> None:
    jobs = [
        asked("long", 6, 100, 2),
        asked("full", 8, 300, 9),
        asked("next", 4, 100, 2, arrival_s=1.0),
        asked("thin", 2, 100, 9, arrival_s=2.0),
    ]
    # The machine of `long` is reserved for `next` from 120 s on. `thin` would fit beside both, but
    # it would be there at 120 s.
    assert starts(jobs)["thin"] == 100


def test_a_job_expected_after_the_last_slot_of_the_window_is_tried_once() -> None:
    jobs = [
        asked("long", 8, 500, 9),
        asked("soon", 4, 100, 2),
        asked("then", 4, 200, 3.6),
        asked("next", 4, 100, 9, arrival_s=1.0),
        asked("last", 8, 10, 1, arrival_s=2.0),
    ]
    # `next` has the machine of `soon` from 100 s on, to the end of the window: 242 s, of which 200
    # are slots. `last` is expected at 216 s, the limit of `then`, where nothing is reserved.
    slots = "bf_resolution=100,bf_window=4,bf_interval=2,batch_sched_delay=1,sched_interval=5"
    found = starts(jobs, scheduler=slots)
    assert (found["next"], found["last"]) == (100, 200)


def test_without_backfill_the_first_that_does_not_fit_closes_its_partition() -> None:
    jobs = [
        asked("long", 8, 100, 2),
        asked("wide", 16, 10, 1, arrival_s=1.0),
        asked("fits", 8, 10, 1, arrival_s=2.0),
    ]
    settings = {"SchedulerType": "sched/builtin"}
    assert starts(jobs, settings=settings) == {"long": 0, "wide": 100, "fits": 110}


def test_a_job_waits_for_limits_not_for_run_times() -> None:
    long = asked("long", 16, 20, 10)
    assert starts([long, asked("next", 16, 1, 1)])["next"] == 20


@pytest.mark.parametrize(
    ("weights", "first"),
    [
        ({"PriorityWeightQOS": "1000"}, "b"),
        ({"PriorityWeightJobSize": "1000"}, "c"),
        ({"PriorityWeightJobSize": "1000", "PriorityFavorSmall": "Yes"}, "a"),
        ({"PriorityWeightTRES": "gres/gpu=1000"}, "c"),
        ({}, "d"),
    ],
)
def test_the_job_with_the_highest_priority_comes_first(weights: dict[str, str], first: str) -> None:
    jobs = [
        asked("now", 16, 10, 1),
        asked("a", 1, 10, 1, arrival_s=1.0, nodes=1),
        asked("b", 8, 10, 1, arrival_s=1.0, qos="high"),
        asked("c", 16, 10, 1, arrival_s=1.0),
        asked("d", 8, 10, 1, arrival_s=1.0, nice=-5),
    ]  # fmt: skip
    found = starts(
        jobs,
        settings={"PriorityType": "priority/multifactor", **weights},
        qos=[{"name": "high", "priority": 10}],
    )
    del found["now"]
    assert min(found.values()) == found[first]


def test_an_event_is_served_after_batch_sched_delay_and_others_at_sched_interval() -> None:
    jobs = [asked("now", 16, 7, 1), asked("next", 16, 1, 1), asked("soon", 1, 1, 1, arrival_s=8.2)]
    slow = "bf_interval=1000,sched_interval=1000,batch_sched_delay=3"
    # `now` starts at .5 s and ends at 7.5 s. slurmctld looks a second later, and then after 3 s.
    assert starts(jobs, scheduler=slow) == {"now": 0, "next": 8, "soon": 11}


@pytest.mark.parametrize(
    ("scheduler", "told"),
    [("bf_one_resv_per_job", "SchedulerParameters=bf_one_resv_per_job"), ("bf_window=x", "whole")],
)
def test_what_is_not_modelled_or_broken_is_refused_by_name(scheduler: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        starts([asked("a", 1, 1, 1)], scheduler=scheduler)


@pytest.mark.parametrize(
    ("hints", "told"),
    [
        ({"partition": "night"}, "hint_partition is 'night'"),
        ({"partition": "night,eve"}, "hint_partition is 'night'"),
        ({"qos": "gold"}, "hint_qos is 'gold'"),
        ({"nodes": 3}, "2 machines of 4 GPUs"),
        ({"nice": "low"}, "hint_nice is 'low'"),
        ({"tasks_at_once": 4}, "hint_tasks_at_once is 4, expected hint_job_number"),
        ({"requeue": "yes"}, "hint_requeue is 'yes', expected 1 or 0"),
        ({"dependency": "singleton"}, "hint_dependency is 'singleton'"),
    ],
)
def test_what_a_job_asks_for_must_be_there(hints: dict[str, Any], told: str) -> None:
    partitions = [{"name": "day", "nodes": "ALL"}]
    with pytest.raises(TraceError, match=told):
        starts([asked("a", 12, 1, 1, **hints)], partitions=partitions, qos=[{"name": "any"}])


def test_a_cluster_without_partitions_is_reported_as_such() -> None:
    with pytest.raises(TraceError, match="is 'night', and the cluster has no partitions at all"):
        starts([asked("a", 1, 1, 1, partition="night")])


def test_fair_tree_visits_the_most_underserved_account_first() -> None:
    accounts = (
        Account(name="big", shares=3, users={"ann": 1, "ben": 1}),
        Account(name="small", shares=1, users={"eve": 1}),
    )
    shares = FairShare(accounts, half_life_s=0)
    shares.use(("big", "ann"), 10.0, 0, 20)
    shares.use(("big", "ben"), 10.0, 0, 10)
    shares.use(("small", "eve"), 10.0, 0, 10)
    shares.rank(20)
    # big: 3/4 of the shares, 3/4 of the usage, so 1; small: 1/4 and 1/4, also 1. The accounts tie,
    # and are not merged: eve ties with the last user of `big`.
    assert shares.factors == {("big", "ben"): 1.0, ("big", "ann"): 2 / 3, ("small", "eve"): 2 / 3}
    shares.use(("small", "eve"), 10.0, 20, 30)
    shares.rank(30)
    assert shares.factors[("small", "eve")] == 1 / 3


def test_usage_decays_by_the_second() -> None:
    shares = FairShare((Account(name="a", users={"u": 1}),), half_life_s=100)
    shares.rank(0)
    shares.use(("a", "u"), 2.0, 0, 10)
    keep = 1 - 0.693 / 100
    assert shares.root.usage == pytest.approx(20 * keep**10)
    shares.decay(50)
    assert shares.root.usage == pytest.approx(20 * keep**60)


def chosen(gpus: int, nodes: int, free: list[int], **facts: Any) -> list[int] | None:
    """The machines that a job gets of four racks of two, which have this many GPUs free."""
    machines = Machines(cluster([8, 8], [8, 8], [8, 8]), None, SlurmFacts(**facts))
    topology = facts.get("settings", {}).get("TopologyPlugin") == "topology/tree"
    selection = Selection(machines, topology=topology)
    request = RequestReader(machines, {}).request(
        Waiting(asked("a", gpus * nodes, 1, 1, nodes=nodes, tasks_per_node=1))
    )
    mask = selection.choose(request, Free(free, [9] * 6), machines.everything)
    return None if mask is None else list(bits(mask))


TREE = {"settings": {"TopologyPlugin": "topology/tree"}}


def test_a_job_gets_the_smallest_set_of_neighbours_that_suffices() -> None:
    assert chosen(8, 1, [8, 8, 8, 0, 8, 0]) == [4]
    assert chosen(8, 2, [8, 8, 8, 0, 8, 8]) == [4, 5]
    assert chosen(8, 4, [8, 8, 8, 0, 8, 8]) == [0, 1, 2, 4]
    assert chosen(8, 3, [8, 0, 8, 0, 0, 0]) is None


def test_switches_are_filled_one_after_the_other() -> None:
    assert chosen(8, 2, [0, 8, 8, 0, 8, 8]) == [1, 2]
    assert chosen(8, 2, [0, 8, 8, 0, 8, 8], **TREE) == [4, 5]
    assert chosen(8, 1, [8, 8, 8, 0, 8, 8], **TREE) == [2]
    assert chosen(8, 3, [8, 0, 8, 8, 8, 0], **TREE) == [0, 2, 3]


def test_machines_of_a_low_weight_come_first() -> None:
    machines = Machines(cluster([8, 8], [8, 8]), None, SlurmFacts())
    machines.weights = [2, 2, 1, 2]
    request = RequestReader(machines, {}).request(Waiting(asked("a", 16, 1, 1, nodes=2)))
    for topology in (False, True):
        selection = Selection(machines, topology=topology)
        mask = selection.choose(request, Free([8] * 4, [9] * 4), machines.everything)
        assert mask is not None
        assert list(bits(mask)) == [2, 3]


@pytest.mark.parametrize(
    ("free", "gpus", "expected"),
    [([3, 3, 4, 4], 6, {0: 3, 1: 3}), ([3, 3, 6, 6], 12, {2: 6, 3: 6})],
)
def test_machines_of_a_low_weight_come_first_if_as_many_as_allowed_suffice(
    free: list[int], gpus: int, expected: dict[int, int]
) -> None:
    partitions: list[Any] = [{"name": "p", "nodes": "ALL", "default": True, "max_nodes": 2}]
    machines = Machines(cluster([8] * 4), None, SlurmFacts(partitions=partitions))
    machines.weights = [1, 1, 2, 2]
    request = RequestReader(machines, {}).request(Waiting(asked("a", gpus, 1, 1, nodes=0)))
    left = Free(free, [9] * 4)
    mask = Selection(machines, topology=False).choose(request, left, machines.everything)
    assert mask is not None
    assert dict(shares(request, left, mask)) == expected


RACKS = cluster([8] * 4, [8] * 4, [8] * 4, [8] * 4)


@pytest.mark.parametrize("settings", [{}, {"TopologyPlugin": "topology/tree"}])
@pytest.mark.parametrize(
    ("free", "gpus", "expected"),
    [
        ("4263 1527 0041 3265", 7, {7: 7}),
        ("4263 1527 0041 3265", 8, {2: 6, 7: 2}),
        ("4263 1527 0041 3265", 12, {2: 6, 7: 6}),
        ("4263 1527 0041 3265", 14, {2: 6, 7: 7, 14: 1}),
        ("2222 2222 2222 2222", 5, {0: 2, 1: 2, 2: 1}),
        ("1234 5654 3212 3456", 20, {4: 5, 5: 6, 6: 5, 15: 4}),
        ("0050 0500 0500 3333", 11, {2: 5, 5: 5, 9: 1}),
        ("2222 3338 1111 1111", 9, {4: 3, 7: 6}),
    ],
)
def test_gpus_of_several_machines_come_from_those_with_most_free(
    free: str, gpus: int, expected: dict[int, int], settings: dict[str, str]
) -> None:
    """As a real Slurm 22.05 placed `sbatch --gpus`, with and without switches."""
    machines = Machines(RACKS, None, SlurmFacts(settings=settings))
    selection = Selection(machines, topology=bool(settings))
    left = Free([int(x) for x in free.replace(" ", "")], [64] * 16)
    request = RequestReader(machines, {}).request(Waiting(asked("a", gpus, 1, 1, nodes=0)))
    mask = selection.choose(request, left, machines.everything)
    assert mask is not None
    held = dict(shares(request, left, mask))
    assert held == expected


@pytest.mark.parametrize(
    ("gpus", "nodes", "most", "start_s"),
    [(12, 0, 2, 100), (10, 0, 2, 100), (12, 0, 4, 1), (12, 0, None, 1), (6, 0, 2, 1),
     (20, 0, 2, 100), (9, 0, 1, 1), (9, "", 1, 1)],
)  # fmt: skip
def test_gpus_lie_on_no_more_machines_than_a_partition_allows(
    gpus: int, nodes: int | str, most: int | None, start_s: int
) -> None:
    """Each of four machines has 3 GPUs free until 100 s. What MaxNodes never allows ignores it."""
    four = cluster([8] * 4)
    held = [asked(f"h{n}", 5, 100, 2, nodes=1) for n in range(4)]
    one = asked("a", gpus, 10, 1, arrival_s=1.0, nodes=nodes)
    partitions = [{"name": "p", "nodes": "ALL", "default": True, "max_nodes": most}]
    settings = {"SchedulerParameters": SCHEDULER}
    policy = make_policy("slurm", facts={"partitions": partitions, "settings": settings})
    rows = run(four, [*held, one], policy)
    found = next(int(seconds(row.start)) for row in rows.jobs if row.job.id == "a")
    assert start_s <= found <= start_s + 2


QOS = [
    {"name": "high", "priority": 100, "preempts": ["low"]},
    {"name": "mid", "priority": 50},
    {"name": "low", "priority": 10},
]
BY_QOS = {"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE"}


def test_a_qos_takes_the_gpus_of_another_which_waits_for_two_minutes() -> None:
    jobs = [
        asked("victim", 8, 100, 5, qos="low"),
        asked("spared", 8, 100, 5, qos="mid"),
        asked("urgent", 8, 10, 5, arrival_s=20.0, qos="high"),
        asked("behind", 8, 10, 5, arrival_s=20.0, qos="mid"),
    ]
    found = starts(jobs, settings=BY_QOS, qos=QOS)
    # The victim lost its GPUs at 20 s, is eligible 121 s later, and does its one iteration again.
    assert (found["urgent"], found["behind"], found["spared"]) == (20, 30, 0)
    settings = {"SchedulerParameters": SCHEDULER, **BY_QOS}
    policy = make_policy("slurm", facts={"settings": settings, "qos": QOS})
    rows = run(TWO, jobs, policy)
    stays = [row for row in rows.placements if row.handle == 0]
    assert [(int(seconds(x.start)), x.ended) for x in stays] == [
        (0, "preempted: requeued by Slurm for job urgent"), (142, "finished"),
    ]  # fmt: skip


def test_as_few_jobs_as_possible_are_preempted() -> None:
    jobs = [
        asked("small", 2, 100, 5, qos="low"),
        asked("other", 6, 100, 5, qos="low"),
        asked("whole", 8, 100, 5, qos="low"),
        asked("urgent", 8, 10, 5, arrival_s=20.0, qos="high"),
    ]
    found = starts(jobs, settings=BY_QOS, qos=QOS)
    # `small` and `other` come first and would do; the job that gave most machines comes first when
    # it is tried again, but both share one.
    assert found["urgent"] == 20


def test_partition_tiers_preempt() -> None:
    partitions = [
        {"name": "day", "nodes": "ALL", "default": True, "preempt_mode": "REQUEUE"},
        {"name": "now", "nodes": "ALL", "priority_tier": 2},
    ]
    settings = {"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE"}
    jobs = [asked("a", 16, 100, 5), asked("b", 8, 10, 5, arrival_s=20.0, partition="now")]
    assert starts(jobs, settings=settings, partitions=partitions)["b"] == 20
    settings["PreemptExemptTime"] = "00:01:00"
    assert starts(jobs, settings=settings, partitions=partitions)["b"] >= 60


def test_modes_that_are_not_modelled_are_named() -> None:
    with pytest.raises(ConfigError, match="PreemptMode=REQUEUE,WITHIN"):
        starts([asked("a", 1, 1, 1)], settings={**BY_QOS, "PreemptMode": "REQUEUE,WITHIN"})
    with pytest.raises(ConfigError, match="PreemptMode=REQUEUE,CANCEL"):
        starts([asked("a", 1, 1, 1)], settings={**BY_QOS, "PreemptMode": "REQUEUE,CANCEL"})
    qos = [{"name": "low", "preempt_mode": "within"}]
    with pytest.raises(ConfigError, match="QOS low: PreemptMode=within"):
        starts([asked("a", 1, 1, 1)], settings=BY_QOS, qos=qos)
    partitions = [{"name": "day", "nodes": "ALL", "preempt_mode": "REQUEUE,WITHIN"}]
    with pytest.raises(ConfigError, match="partition day: PreemptMode=REQUEUE,WITHIN"):
        starts([asked("a", 1, 1, 1)], settings=BY_QOS, partitions=partitions)


NIGHT = {
    "name": "night",
    "nodes": "ALL",
    "starts_at": "1970-01-01T00:02:00",
    "ends_at": "1970-01-01T00:04:00",
}


def test_no_job_runs_into_a_reservation_by_its_limit() -> None:
    jobs = [asked("short", 8, 10, 1), asked("long", 8, 10, 3), asked("later", 8, 10, 1)]
    policy = make_policy("slurm", facts={"reservations": [NIGHT]}, epoch_s=0)
    rows = run(TWO, jobs, policy)
    at = {row.job.id: int(seconds(row.start)) for row in rows.jobs}
    assert (at["short"], at["later"]) == (0, 0)
    assert 240 <= at["long"] <= 270
    with pytest.raises(ConfigError, match=r"policy\.epoch_s does not say when the trace begins"):
        starts(jobs, reservations=[NIGHT])


@pytest.mark.parametrize(
    ("starts_at", "ends_at"),
    [("1970-01-01T01:02:00+0100", "1970-01-01T01:04:00+0100"), ("120", "240")],
)
def test_times_of_reservations_may_have_a_zone_or_be_seconds(starts_at: str, ends_at: str) -> None:
    kept = SlurmReservation(name="night", nodes="ALL", starts_at=starts_at, ends_at=ends_at)
    reservations = Reservations([kept], Machines(TWO, None, SlurmFacts()))
    assert [bool(reservations.closed(x, x + 1)) for x in (119, 120, 239, 240)] == [
        False,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("singleton", ()),
        ("aftercorr:7", ()),
        ("after:7+5", ()),
        ("afterok:7?afterok:8", ()),
        ("afterok:7_1:8,singleton", (("afterok", 8),)),
    ],
)
def test_dependencies_that_are_not_modelled_are_dropped_if_asked(
    text: str, known: tuple[tuple[str, int], ...]
) -> None:
    job = asked("a", 8, 1, 1, dependency=text)
    with pytest.raises(TraceError, match=r"policy\.not_modelled=ignore drops others"):
        starts([job])
    machines = Machines(TWO, None, SlurmFacts())
    assert RequestReader(machines, {}, ignores=True).request(Waiting(job)).after == known
    assert seconds(run(TWO, [job], make_policy("slurm", not_modelled="ignore")).jobs[0].start) < 1


DAY_AND_NOW = [
    {"name": "day", "nodes": "ALL", "default": True, "preempt_mode": "REQUEUE"},
    {"name": "eve", "nodes": "ALL", "preempt_mode": "REQUEUE"},
    {"name": "now", "nodes": "ALL", "priority_tier": 2},
]


@pytest.mark.parametrize("asks", ["day,now", "now,day", "day,now,day", "lost,now"])
def test_a_job_starts_in_that_of_its_partitions_where_it_can_first(asks: str) -> None:
    jobs = [
        asked("held", 16, 20, 1),
        asked("first", 16, 20, 1, arrival_s=1.0),
        asked("both", 16, 20, 1, arrival_s=2.0, partition=asks),
    ]
    settings = {"SchedulerParameters": SCHEDULER}
    policy = make_policy("slurm", facts={"settings": settings, "partitions": DAY_AND_NOW})
    rows = run(TWO, jobs, policy)
    found = {row.job.id: int(seconds(row.start)) for row in rows.jobs}
    assert found["both"] < found["first"] == 40
    assert policy._requests[2].partition.name == "now"


@pytest.mark.parametrize(
    ("limit_min", "partition"), [(1, "brief"), (2, "long"), (20, "brief"), (None, "brief")]
)
def test_a_job_starts_in_no_partition_that_does_not_allow_its_limit(
    limit_min: int | None, partition: str
) -> None:
    """If no partition allows the limit, or there is none, all partitions count: the job ran."""
    partitions = [
        {"name": "brief", "nodes": "ALL", "max_time_s": 60.0},
        {"name": "long", "nodes": "ALL", "max_time_s": 600.0},
    ]
    one = asked("a", 2, 20, limit_min or 1, partition="brief,long")
    if limit_min is None:
        del one.hints["hint_time_limit_s"]  # type: ignore[attr-defined]
    policy = make_policy("slurm", facts={"partitions": partitions})
    run(TWO, [one], policy)
    assert policy._requests[0].partition.name == partition


@pytest.mark.parametrize(
    ("gpus", "nodes", "partition"),
    [(2, 1, "small"), (16, 2, "large"), (12, 0, "large"), (6, 0, "small")],
)
def test_a_job_starts_in_no_partition_with_fewer_max_nodes(
    gpus: int, nodes: int, partition: str
) -> None:
    """As in slurmctld: PartitionNodeLimit."""
    partitions = [
        {"name": "small", "nodes": "ALL", "max_nodes": 1},
        {"name": "large", "nodes": "ALL"},
    ]
    policy = make_policy("slurm", facts={"partitions": partitions})
    run(TWO, [asked("a", gpus, 20, 1, partition="small,large", nodes=nodes)], policy)
    assert policy._requests[0].partition.name == partition


def test_a_job_of_several_partitions_starts_once() -> None:
    job = asked("both", 2, 20, 1, partition="day,eve")
    assert starts([job], partitions=DAY_AND_NOW) == {"both": 0}


def test_a_job_of_several_partitions_ages_in_all_of_them_from_its_arrival() -> None:
    """By the clock of the trace, which may begin at any time."""
    settings = {"PriorityType": "priority/multifactor", "PriorityWeightAge": "1000"}
    settings["SchedulerParameters"] = SCHEDULER
    jobs = [
        asked("held", 16, 50, 1),
        asked("first", 16, 20, 1, arrival_s=1.0),
        asked("both", 16, 20, 1, arrival_s=40.0, partition="day,eve"),
    ]
    facts = {"settings": settings, "partitions": DAY_AND_NOW}
    rows = run(TWO, jobs, make_policy("slurm", epoch_s=1_700_000_000, facts=facts))
    found = {row.job.id: int(seconds(row.start)) for row in rows.jobs}
    assert found == {"held": 0, "first": 50, "both": 70}


def test_a_job_of_several_partitions_that_is_requeued_waits_in_all_of_them() -> None:
    settings = {"PreemptType": "preempt/partition_prio", "PreemptMode": "REQUEUE"}
    jobs = [
        asked("low", 16, 200, 5, partition="day,eve"),
        asked("high", 8, 10, 5, arrival_s=20.0, partition="now"),
    ]
    settings["SchedulerParameters"] = SCHEDULER
    facts = {"settings": settings, "partitions": DAY_AND_NOW}
    rows = run(TWO, jobs, make_policy("slurm", facts=facts))
    stays = sorted(int(seconds(x.start)) for x in rows.placements if x.handle == 0)
    assert stays[0] == 0
    assert 141 <= stays[1] <= 143


@pytest.mark.parametrize(
    ("most", "started"), [(0, [1, 1, 1, 1]), (1, [1, 21, 41, 61]), (3, [1, 1, 1, 21])]
)
@pytest.mark.parametrize("scheduler", [SCHEDULER, f"{SCHEDULER},assoc_limit_stop"])
def test_no_more_tasks_of_an_array_run_than_may(
    most: int, started: list[int], scheduler: str
) -> None:
    """Others pass them meanwhile, whatever a limit of an account would do to these."""
    tasks = [
        asked(f"t{n}", 2, 20, 1, job_number=7, tasks_at_once=most, arrival_s=1.0) for n in range(4)
    ]
    other = asked("other", 2, 20, 1, job_number=8, arrival_s=1.0)
    found = starts([*tasks, other], scheduler=scheduler)
    assert [found[f"t{n}"] for n in range(4)] == started
    assert found["other"] == 1


def test_numbers_of_jobs_of_a_federation_are_large() -> None:
    jobs = [
        asked("a", 8, 50, 1, job_number=2**32 - 2),
        asked("b", 8, 10, 1, job_number=2**32 - 1, dependency=f"afterok:{2**32 - 2}"),
    ]
    assert starts(jobs)["b"] >= 50


@pytest.mark.parametrize("queued", [1, 3])
def test_machines_are_reserved_for_no_more_tasks_than_may_run(queued: int) -> None:
    """Two machines are busy until 100 s, half of the third is free, and a task takes a whole one.

    Where all tasks had a reservation, what runs for long could not start before the last of them.
    """
    three = cluster([8, 8, 8])
    held = [asked(f"h{n}", gpus, 100, 2, job_number=n) for n, gpus in enumerate((8, 8, 4), 1)]
    tasks = [
        asked(f"t{n}", 8, 50, 2, arrival_s=1.0, job_number=7, tasks_at_once=1)
        for n in range(queued)
    ]
    last = asked("long", 4, 200, 9, arrival_s=2.0, job_number=9)
    facts = {"settings": {"SchedulerParameters": SCHEDULER}}
    rows = run(three, [*held, *tasks, last], make_policy("slurm", facts=facts))
    assert int(seconds(next(row.start for row in rows.jobs if row.job.id == "long"))) == 2


@pytest.mark.parametrize("most", [0, 1, 2, 3, 20])
def test_machines_are_reserved_for_so_many_tasks_of_an_array(most: int) -> None:
    """As above, but all tasks may run. `long` can start unless all machines are reserved."""
    three = cluster([8, 8, 8])
    held = [asked(f"h{n}", gpus, 100, 2, job_number=n) for n, gpus in enumerate((8, 8, 4), 1)]
    tasks = [asked(f"t{n}", 8, 50, 2, arrival_s=1.0, job_number=7) for n in range(4)]
    last = asked("long", 4, 200, 9, arrival_s=2.0, job_number=9)
    some = f"{SCHEDULER},bf_max_job_array_resv={most}"
    facts = {"settings": {"SchedulerParameters": some}}
    rows = run(three, [*held, *tasks, last], make_policy("slurm", facts=facts))
    start_s = int(seconds(next(row.start for row in rows.jobs if row.job.id == "long")))
    assert (start_s == 2) is (most < 3)


def test_a_job_waits_for_those_that_it_depends_on() -> None:
    jobs = [
        asked("first", 8, 50, 1, job_number=7),
        asked("second", 8, 10, 1, job_number=8, dependency="afterok:7"),
        asked("started", 8, 10, 1, job_number=9, dependency="after:7"),
        asked("third", 8, 10, 1, job_number=10, dependency="afterany:7:8"),
    ]
    found = starts(jobs)
    assert (found["started"], found["second"]) == (2, 50)
    assert 60 <= found["third"] <= 63


ENFORCED = {"AccountingStorageEnforce": "associations,limits,qos"}


def team(name: str, arrival_s: float, gpus: int, account: str, user: str, **given: Any) -> Job:
    return asked(name, gpus, 20, 1, arrival_s=arrival_s, tenant=account, user=user, **given)


@pytest.mark.parametrize(
    ("facts", "late"),
    [
        ({"accounts": [{"name": "v", "limits": {"GrpTRES": "gres/gpu=4"}}]}, {"b", "c"}),
        ({"accounts": [{"name": "v", "limits": {"GrpJobs": "2"}}]}, {"c"}),
        ({"accounts": [{"name": "v", "limits": {"GrpTRESRunMins": "gres/gpu=10"}}]}, {"c"}),
        ({"accounts": [{"name": "v", "user_limits": {"ann": {"MaxJobs": "1"}}}]}, {"b"}),
        ({"qos": [{"name": "q", "limits": {"MaxJobsPU": "1"}}]}, {"b"}),
        ({"qos": [{"name": "q", "limits": {"MaxTRESPA": "gres/gpu=8"}}]}, {"c"}),
        ({"qos": [{"name": "q", "limits": {"GrpTRES": "node=1"}}]}, {"c", "d"}),
        ({"qos": [{"name": "q", "limits": {"GrpTRES": "billing=3"}}]}, {"d"}),
        ({"accounts": [{"name": "v", "limits": {"MaxJobs": "1"}}]}, {"b"}),
    ],
)
def test_a_limit_keeps_a_job_waiting_and_lets_others_pass(
    facts: dict[str, Any], late: set[str]
) -> None:
    above = {"accounts": [{"name": "w"}, {"name": "v", "parent": "w"}], "qos": [{"name": "q"}]}
    jobs = [
        team("a", 0.0, 4, "v", "ann", qos="q"),
        team("b", 1.0, 4, "v", "ann", qos="q"),
        team("c", 1.0, 4, "v", "ben", qos="q"),
        team("d", 1.0, 4, "w", "eve", qos="q"),
    ]
    found = starts(jobs, settings=ENFORCED, **{**above, **facts})
    assert {name for name, at in found.items() if at > 10} == late
    assert max(starts(jobs, **{**above, **facts}).values()) < 10


@pytest.mark.parametrize("name", ["bf_window", "bf_max_job_test", "default_queue_depth"])
def test_of_a_number_below_0_the_default_counts_and_is_named(name: str) -> None:
    found = settings_of(SlurmFacts(settings={"SchedulerParameters": f"{name}=-1"}))
    assert found.not_modelled == (f"SchedulerParameters={name}=-1",)
    assert found.numbers == settings_of(SlurmFacts()).numbers


@pytest.mark.parametrize(
    ("name", "value"), [("bf_interval", 0), ("bf_resolution", 0), ("bf_window", 50_000)]
)
def test_of_a_number_that_slurm_refuses_the_default_counts(name: str, value: int) -> None:
    found = settings_of(SlurmFacts(settings={"SchedulerParameters": f"{name}={value}"}))
    assert found.numbers == settings_of(SlurmFacts()).numbers


def test_limits_and_weights_of_what_is_not_counted_are_named() -> None:
    qos = [{"name": "q", "limits": {"MaxTRESPU": "gres/gpu:a100=4,mem=1T", "GrpJobs": "9"}}]
    accounts = [
        {"name": "v", "limits": {"GrpTRES": "fs/disk=5,cpu=4"}},
        {"name": "w", "user_limits": {"ann": {"GrpTRESRunMins": "mem=1"}}},
    ]
    weights = {"PriorityWeightTRES": "CPU=1,Mem=2,GRES/gpu=3,license/x=0"}
    facts = SlurmFacts(settings={**ENFORCED, **weights}, qos=qos, accounts=accounts)
    assert settings_of(facts).not_modelled == (
        "PriorityWeightTRES of mem",
        "QOS q: MaxTRESPU=mem=1T",
        "account v: GrpTRES=fs/disk=5",
        "account w, user ann: GrpTRESRunMins=mem=1",
    )
    assert settings_of(SlurmFacts(qos=qos, accounts=accounts)).not_modelled == ()
    policy = make_policy("slurm", not_modelled="ignore", facts=facts.model_dump())
    rows = run(TWO, [team("a", 0.0, 8, "v", "ann", qos="q", cpus=4)], policy)
    assert seconds(rows.jobs[0].start) < 1


def test_a_limit_of_each_job_is_named_and_not_taken_for_one_of_all_jobs_of_a_user() -> None:
    qos = [{"name": "q", "limits": {"MaxTRESRunMins": "gres/gpu=1", "MaxWall": "60"}}]
    accounts = [{"name": "v", "user_limits": {"ann": {"MaxTRES": "gres/gpu=4"}}}]
    facts = SlurmFacts(settings=ENFORCED, qos=qos, accounts=accounts)
    assert settings_of(facts).not_modelled == (
        "QOS q: MaxTRESRunMins=gres/gpu=1",
        "QOS q: MaxWall=60",
        "account v, user ann: MaxTRES=gres/gpu=4",
    )
    jobs = [team(x, 0.0, 4, "v", "ann", qos="q") for x in "ab"]
    policy = make_policy("slurm", not_modelled="ignore", facts=facts.model_dump())
    assert max(seconds(row.start) for row in run(TWO, jobs, policy).jobs) < 10


@pytest.mark.parametrize(
    ("facts", "whose"),
    [
        ({"qos": [{"name": "q", "limits": {"MaxTRESPU": "gres/gpu=2"}}]}, "each user of QOS q"),
        ({"qos": [{"name": "q", "limits": {"GrpTRES": "gres/gpu=2"}}]}, "QOS q"),
        (
            {"accounts": [{"name": "v", "user_limits": {"ann": {"GrpTRES": "gres/gpu=2"}}}]},
            "user ann of account v",
        ),
    ],
)
def test_the_owner_of_an_exceeded_limit_is_named_in_words(
    facts: dict[str, Any], whose: str
) -> None:
    with pytest.raises(TraceError, match=f"takes 4 gres/gpu, and {whose} may hold 2;"):
        starts([team("a", 0.0, 4, "v", "ann", qos="q")], settings=ENFORCED, **facts)


def test_without_limits_no_job_is_kept_for_them() -> None:
    policy = make_policy("slurm")
    run(TWO, [team(str(x), float(x), 1, "v", "ann") for x in range(100)], policy)
    assert len(policy._running.touched) < 20


def replaced(qos: dict[str, str], account: dict[str, str], **user: str) -> list[str]:
    """Which of three jobs of a user with 1 GPU each wait for another one to end."""
    facts: dict[str, Any] = {
        "qos": [{"name": "q", "limits": qos}],
        "accounts": [{"name": "v", "limits": account, "user_limits": {"ann": user}}],
    }
    jobs = [team(x, 0.0, 1, "v", "ann", qos="q") for x in "abc"]
    found = starts(jobs, settings=ENFORCED, **facts)
    return [name for name, at in found.items() if at > 10]


def test_a_limit_of_a_qos_replaces_that_of_accounts_and_users() -> None:
    """As a real Slurm 22.05 did: 5 jobs of an account with GrpJobs=4 ran."""
    two = ["c"]
    assert replaced({}, {"GrpJobs": "2"}) == two
    assert replaced({"GrpJobs": "9"}, {"GrpJobs": "2"}) == []
    assert replaced({"GrpTRES": "gres/gpu=9"}, {"GrpTRES": "gres/gpu=2"}) == []
    assert replaced({"GrpTRES": "cpu=9"}, {"GrpTRES": "gres/gpu=2"}) == two
    assert replaced({"MaxTRESPU": "gres/gpu=9"}, {"GrpTRES": "gres/gpu=2"}) == two
    assert replaced({"MaxJobsPU": "9"}, {"MaxJobs": "2"}) == []
    assert replaced({"MaxJobsPA": "9"}, {}, MaxJobs="2") == []
    assert replaced({"GrpJobs": "9"}, {}, MaxJobs="2") == two
    assert replaced({}, {"MaxJobs": "1"}, MaxJobs="2") == two
    assert replaced({}, {"MaxJobs": "1"}, MaxJobs="none") == []


def test_jobs_of_a_partition_have_the_limits_of_its_qos_first() -> None:
    facts: dict[str, Any] = {
        "qos": [
            {"name": "q", "limits": {"GrpJobs": "1"}},
            {"name": "of-p", "limits": {"GrpJobs": "2"}},
        ],
        "partitions": [
            {"name": "p", "nodes": "ALL", "qos": "of-p"},
            {"name": "other", "nodes": "ALL"},
        ],
    }
    names = {"a": "p", "b": "p", "c": "p", "d": "other"}
    jobs = [asked(x, 1, 20, 1, qos="q", partition=of) for x, of in names.items()]
    found = starts(jobs, settings=ENFORCED, **facts)
    assert {name for name, at in found.items() if at > 10} == {"c", "d"}


def test_a_limit_of_a_kind_of_gpus_holds_up_jobs_that_ask_for_the_kind() -> None:
    """But all GPUs of the kind count, also those of jobs that did not ask, as in a real Slurm."""
    facts: dict[str, Any] = {
        "settings": {"SchedulerParameters": SCHEDULER, **ENFORCED},
        "qos": [{"name": "q", "limits": {"GrpTRES": "gres/gpu:H100=4"}}],
    }
    mixed = replace(TWO, kinds=("h100", "a100"))
    any_ = [asked("any", 4, 20, 1, qos="q"), asked("more", 1, 20, 1, qos="q", arrival_s=2.0)]
    kind = replace(asked("kind", 1, 20, 1, qos="q", arrival_s=1.0), gpu_kinds=("h100",))
    rows = run(mixed, [any_[0], kind, any_[1]], make_policy("slurm", facts=facts))
    assert {row.job.id for row in rows.jobs if seconds(row.start) > 10} == {"kind"}


def test_a_limit_of_an_account_counts_those_below_it() -> None:
    accounts = [
        {"name": "all", "limits": {"GrpTRES": "gres/gpu=8"}},
        {"name": "v", "parent": "all"},
        {"name": "w", "parent": "all"},
    ]
    jobs = [
        team("a", 0.0, 4, "v", "ann"), team("b", 1.0, 4, "w", "eve"), team("c", 2.0, 1, "all", "x"),
    ]  # fmt: skip
    assert starts(jobs, settings=ENFORCED, accounts=accounts)["c"] >= 20
    with pytest.raises(ConfigError, match="limits of account all: GrpTRES is 'many'"):
        broken = [{"name": "all", "limits": {"GrpTRES": "gres/gpu=many"}}]
        starts(jobs, settings=ENFORCED, accounts=broken)


@pytest.mark.parametrize(
    ("settings", "options", "run_s"),
    [
        ({}, {}, 120.0),
        ({"OverTimeLimit": "1 min"}, {}, 180.0),
        ({"OverTimeLimit": "UNLIMITED"}, {}, 500.0),
        ({}, {"kill": False}, 500.0),
    ],
)
def test_slurm_kills_jobs_at_their_limit(
    settings: dict[str, str], options: dict[str, Any], run_s: float
) -> None:
    policy = make_policy("slurm", facts={"settings": settings}, **options)
    long, short = asked("long", 1, 500, 2), asked("short", 1, 60, 2)
    assert policy.killed_at_limit(long).ideal_s == run_s
    assert policy.killed_at_limit(short) is short


@pytest.mark.parametrize(
    ("partition", "limit_min", "run_s"),
    [
        ("night,lost", None, 60), ("night,noon", None, 60), ("noon,night", None, 500),
        ("", None, 60), ("any,night", None, 1000), ("night,noon", 5, 300), ("night,any", 15, 900),
        ("night,noon", 15, 500), ("night", 5, 60), ("cpu,noon", 10, 500), ("lost", 5, 300),
    ],
)  # fmt: skip
def test_the_limit_of_a_partition_kills(
    partition: str, limit_min: float | None, run_s: float
) -> None:
    """A partition where the job cannot start, for lack of GPUs or for its limit, does not count."""
    partitions = [
        {"name": "cpu", "nodes": "", "default": True, "max_time_s": 600.0},
        {"name": "night", "nodes": "ALL", "max_time_s": 60.0},
        {"name": "noon", "nodes": "ALL", "max_time_s": 500.0},
        {"name": "any", "nodes": "ALL"},
    ]
    policy = make_policy("slurm", facts={"partitions": partitions})
    hints = {"hint_time_limit_s": 60 * limit_min} if limit_min else {}
    plain = job("a", 1, 1000, hints={"hint_partition": partition, **hints})
    assert policy.killed_at_limit(plain).ideal_s == run_s


def test_a_run_says_how_many_jobs_are_cut() -> None:
    trace = Trace(
        "t", "native", (asked("long", 1, 500, 2), asked("short", 1, 60, 2)), "", [1, 2], "line"
    )
    cut = cut_by(make_policy("slurm"), trace)
    assert [x.ideal_s for x in cut.jobs] == [120, 60]
    assert cut.filled[-1].endswith("1 job")
    assert cut_by(make_policy("fifo"), trace) is trace


def test_a_job_that_waits_beside_free_gpus_has_a_reason() -> None:
    jobs = [
        asked("long", 8, 100, 2),
        asked("wide", 16, 10, 1, arrival_s=1.0),
        asked("late", 8, 10, 9, arrival_s=2.0),
    ]
    settings = {"SchedulerParameters": SCHEDULER}
    rows = run(TWO, jobs, make_policy("slurm", facts={"settings": settings}))
    told = {row.handle: row.reason for row in rows.wait_reasons}
    assert told == {2: "Priority: a job before it does not fit"}
