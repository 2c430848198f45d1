"""Does the table say why jobs waited? Worked out by hand, and against the definitions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from naive_waits import naive_waits
from strategies import elastic_jobs, trees
from support import (
    SELF_SUFFICIENT,
    EstimateByLevel,
    Outage,
    S,
    Script,
    cluster,
    job,
    make_policy,
    on,
    run,
    simulator,
)

from artist.cluster.tree import ClusterTree
from artist.contract import (
    WAIT_CAUSES,
    Migrate,
    Preempt,
    Restore,
    Start,
    Wait,
    Wake,
    Withdraw,
)
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.network.rates.interference import interfered
from artist.network.rates.isolated import AloneRates
from artist.policies.table import POLICIES
from artist.results.terms import columns
from artist.results.terms.number_text import NO_DAYS, time_text, time_unit
from artist.results.waiting import wait_neighbours
from artist.results.waiting.stays import wait_inputs
from artist.results.waiting.wait_neighbours import Waits, longest_heads
from artist.results.waiting.waits import CAUSES, cause_table, seconds_by_cause, wait_table
from artist.rng import stream
from artist.units import seconds
from artist.workload.job import Job

examples = settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])


def simulated(policy: str, tree: ClusterTree, jobs: Sequence[Job], **options: Any) -> Rows:
    chosen = make_policy(policy, **options)
    rates = AloneRates(tree, EstimateByLevel(tree, rack=0.5, network=1.0))
    lease_s = None if chosen.lease is None else seconds(chosen.lease)
    return run(tree, jobs, chosen, rates, lease_s=lease_s)


def table(
    rows: Rows, tree: ClusterTree, jobs: Sequence[Job], *, head_blocks: bool = False
) -> list[dict[str, Any]]:
    columns = wait_table(wait_inputs(rows, tree.gpus, jobs, head_blocks=head_blocks))
    lists = [values if isinstance(values, list) else values.tolist() for values in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]


def some(rows: Sequence[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in rows]


# -- by hand -------------------------------------------------------------------------


def test_waits_under_fifo_by_hand() -> None:
    # wide holds 3 of 4 GPUs until 10. pair wants 2 and there is 1. thin would fit, but stands
    # behind pair. all comes when pair and thin get what wide leaves at 10; it starts after both.
    jobs = [
        job("wide", 3, 10),
        job("pair", 2, 5, arrival_s=1.0),
        job("thin", 1, 4, arrival_s=2.0),
        job("all", 4, 1, arrival_s=3.0),
    ]
    tree = cluster([4])
    waits = table(simulated("fifo", tree, jobs), tree, jobs)
    assert some(waits, "job_id", "start_s", "end_s", "wait_s", "gpus", "began", "cause") == [
        ("pair", 1.0, 10.0, 9.0, 2, "arrived", "gpus"),
        ("thin", 2.0, 10.0, 8.0, 1, "arrived", "left-free"),
        ("all", 3.0, 15.0, 12.0, 4, "arrived", "order"),
    ]
    assert some(waits, "free_gpus_max", "left_free_s", "overtaken_by") == [
        (1, 0.0, []),
        (1, 8.0, []),
        (4, 0.0, []),
    ]
    # all: wide held 3 x 7 GPU-seconds, pair 2 x 5, thin 1 x 4.
    assert some(waits, "waited_for") == [(["wide"],), (["wide"],), (["wide", "pair", "thin"],)]
    assert [wait["reason"] for wait in waits] == [
        "at most 1 GPU was free, and it wanted 2",
        "it wanted 1, and all the while that many stayed free, but the policy's order "
        "or rule of placement left them unused; no other job got GPUs meanwhile",
        "it wanted 4; that many were last free at once 5 s before it started, but went to other "
        "jobs; from then on at most 2 GPUs were free; 2 other jobs got GPUs meanwhile, all before "
        "it in the trace",
    ]
    in_order = table(simulated("fifo", tree, jobs), tree, jobs, head_blocks=True)
    assert [wait["reason"] for wait in in_order] == [
        "it headed the queue itself all the while; at most 1 GPU was free, and it wanted 2",
        "it stood behind pair (2 GPUs), which headed the queue all the while, and no job passes "
        "the head; it wanted 1, and all the while that many stayed free; no other job got GPUs "
        "meanwhile",
        "it stood behind pair (2 GPUs), which headed the queue for 7 s, and no job passes the "
        "head; it wanted 4; that many were last free at once 5 s before it started, but went to "
        "other jobs; from then on at most 2 GPUs were free; 2 other jobs got GPUs meanwhile, all "
        "before it in the trace",
    ]


@pytest.mark.parametrize(
    ("compute_s", "said"),
    [
        (
            57_600.0,
            "last free at once 80 h before it started, but went to other jobs; from then on at",
        ),
        (240.0, "last free at once 0.333 h before it started, but"),
        (
            1e-6,
            "that many were last free at once when it started, but other jobs came first",
        ),
    ],
)
def test_times_of_a_wait_have_one_unit_and_none_is_an_instant(compute_s: float, said: str) -> None:
    # all waits for the 75 h of wide, and then for the 5 iterations of pair.
    jobs = [
        job("wide", 3, 10, compute_s=27_000.0),
        job("pair", 2, 5, arrival_s=1.0, compute_s=compute_s),
        job("all", 4, 1, arrival_s=3.0),
    ]
    tree = cluster([4])
    wait = table(simulated("fifo", tree, jobs), tree, jobs)[-1]
    assert wait["job_id"] == "all"
    assert said in wait["reason"]


def test_shared_gpus_stay_held_when_the_first_of_the_jobs_leaves() -> None:
    # first holds the GPU from 0 and has half of it from 1 to 5, beside second, which keeps it until
    # 13. So third waits for this GPU without a break, and nobody gets any meanwhile.
    jobs = [job("first", 1, 3), job("second", 1, 10), job("third", 1, 2, arrival_s=2.0)]
    tree, gpu = cluster([1]), on({0: 1})
    script = {
        0.0: [Start(0, gpu), Wake(1 * S)],
        1.0: [Start(1, gpu, beside=0)],
        13.0: [Start(2, gpu)],
    }
    rates = AloneRates(tree, EstimateByLevel(tree))
    taking_turns = interfered(rates, "time-slicing", tree, 2)
    rows = Simulator(tree, jobs, taking_turns, jobs_per_gpu=2, check=True).run(Script(script))
    wait = table(rows, tree, jobs)[-1]
    figures = ("job_id", "start_s", "end_s", "cause", "free_gpus_max", "waited_for", "overtakers")
    assert some([wait], *figures) == [("third", 2, 13, "gpus", 0, ["second", "first"], 0)]
    assert "got GPUs" not in wait["reason"]


def test_the_cause_of_a_wait_is_what_took_most_of_it() -> None:
    # small could have the fourth GPU from 1 until 5, when wide is done, but all waits before it.
    jobs = [job("wide", 3, 5), job("all", 4, 9, arrival_s=1.0), job("small", 1, 1, arrival_s=1.0)]
    tree = cluster([4])
    wait = table(simulated("fifo", tree, jobs), tree, jobs, head_blocks=True)[1]
    assert (wait["job_id"], wait["cause"], wait["left_free_s"], wait["wait_s"]) == (
        "small", "order", 4.0, 13.0,
    )  # fmt: skip
    assert "for 4 s of 13 s that many stayed free; for 9 s no GPU did" in wait["reason"]
    jobs[1] = job("all", 4, 3, arrival_s=1.0)
    assert table(simulated("fifo", tree, jobs), tree, jobs)[1]["cause"] == "left-free"


def test_the_head_of_the_queue_is_the_first_waiting_job_at_each_instant() -> None:
    # 0 waits again from 30 on, as after a failure. 2 heads the queue while 0 runs, 10-30 and 40-50:
    # its wait is told of 0, which headed it at 5-10 and 30-40.
    waits = [(0, 0, 10), (1, 0, 10), (2, 5, 50), (3, 5, 45), (0, 30, 40)]
    by_begin = sorted(waits, key=lambda wait: (wait[1], wait[0]))
    columns = [np.array(column, dtype=np.int64) for column in zip(*by_begin, strict=True)]
    assert {
        (handle, begin): tuple(head)
        for (handle, begin, _), head in zip(by_begin, longest_heads(Waits(*columns)), strict=True)
    } == {(0, 0): (0, 10), (1, 0): (0, 10), (2, 5): (0, 15), (3, 5): (2, 25), (0, 30): (0, 10)}


@pytest.mark.parametrize(
    ("options", "blocks"),
    [({"strict": True}, True), ({}, False), ({"strict": True, "order": "length"}, False)],
)
def test_only_strict_arrival_order_has_a_head_that_blocks(
    options: dict[str, Any], blocks: bool
) -> None:
    assert make_policy("fifo-backfill", **options).head_blocks is blocks  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("spec", "blocks"),
    [
        ("cassini(fifo)", True), ("cassini(las)", False), ("random-placement(fifo)", True),
        ("quota(fifo)", False), ("lookahead(fifo)", False),
    ],
)  # fmt: skip
def test_a_wrapper_that_keeps_the_order_of_its_host_has_its_head(spec: str, blocks: bool) -> None:
    assert make_policy(spec).head_blocks is blocks  # type: ignore[attr-defined]


def test_waits_under_las_by_hand() -> None:
    # The lease of old ends at 10. It has had service and new has not, so new takes its GPUs.
    jobs = [job("old", 2, 20), job("new", 2, 5, arrival_s=4.0)]
    tree = cluster([2])
    waits = table(simulated("las", tree, jobs, lease_s=10.0), tree, jobs)
    assert some(waits, "job_id", "start_s", "end_s", "began", "cause", "free_gpus_max") == [
        ("new", 4.0, 10.0, "arrived", "gpus", 0),
        ("old", 10.0, 15.0, "lease-ended", "order", 2),
    ]
    assert waits[0]["reason"] == "no GPU was free, and it wanted 2"
    assert waits[1]["reason"] == (
        "it wanted 2; that many were last free at once 5 s before it started, but went to other "
        "jobs; from then on no GPU was free; 1 other job got GPUs meanwhile, which comes after it "
        "in the trace"
    )
    assert some(waits, "waited_for", "overtaken_by", "overtakers") == [
        (["old"], [], 0),
        (["new"], ["new"], 1),
    ]


def test_waits_under_dally_by_hand() -> None:
    # One GPU is free in each machine. Dally's machine timer keeps pair from taking both until 11.
    jobs = [job("a", 2, 100), job("b", 2, 100), job("pair", 2, 10, arrival_s=1.0)]
    tree = cluster([3, 3])
    timers = {"machine_timer_s": 10.0, "rack_timer_s": 30.0, "lease_s": 1000.0}
    waits = table(simulated("dally-manual", tree, jobs, **timers), tree, jobs)
    assert some(waits, "job_id", "start_s", "end_s", "cause", "free_gpus_max", "left_free_s") == [
        ("pair", 1.0, 11.0, "timer", 2, 10.0)
    ]
    assert waits[0]["reason"] == (
        "the closest 2 free GPUs spanned the rack level, which its delay timers accept from 11 s "
        "on; it wanted 2, and at most 2 GPUs were free in all"
    )


def test_an_instant_of_hours_is_written_in_hours() -> None:
    jobs = [job("a", 2, 10**5), job("b", 2, 10**5), job("pair", 2, 10)]
    tree = cluster([3, 3])
    timers = {"machine_timer_s": 5400.0, "rack_timer_s": 9000.0, "lease_s": 1e6}
    (wait,) = table(simulated("dally-manual", tree, jobs, **timers), tree, jobs)
    assert "accept from 1.5 h on" in wait["reason"]


def test_a_job_that_moves_keeps_its_gpus() -> None:
    # At 5 mover goes from machine 0 to machine 1. Nobody could have had its GPUs for waiting.
    jobs = [job("mover", 2, 10), job("waiting", 2, 1, arrival_s=1.0)]
    tree = cluster([2, 1], [1])
    answers = {0: [Start(0, on({0: 2})), Wake(5 * S)], 5: [Migrate(0, on({1: 1, 2: 1}))]}
    rows = run(tree, jobs, Script({**answers, 10: [Start(1, on({0: 2}))]}))
    assert some(table(rows, tree, jobs), "job_id", "cause", "free_gpus_max") == [
        ("waiting", "left-free", 2)
    ]
    # In 4 GPUs there are always 2 free; with a third GPU wanted it is short, also at 5.
    jobs[1] = job("waiting", 3, 1, arrival_s=1.0)
    rows = run(tree, jobs, Script({**answers, 10: [Start(1, on({0: 2, 1: 1}))]}))
    assert some(table(rows, tree, jobs), "cause", "free_gpus_max") == [("gpus", 2)]


def test_an_elastic_job_waits_for_the_fewest_gpus_that_it_runs_on() -> None:
    jobs = [job("a", 3, 10), job("b", 3, 5, gpus_min=1, arrival_s=2.0)]
    tree = cluster([4])
    waits = table(simulated("fifo", tree, jobs), tree, jobs)
    assert some(waits, "cause", "free_gpus_max", "left_free_s") == [("left-free", 1, 8.0)]
    assert waits[0]["reason"].startswith("it wanted 3 (at least 1), and all the while")


def test_gpus_out_of_service_are_not_free() -> None:
    # Machine 1 leaves at 2 and comes back at 8; b needs both machines, and a holds one GPU.
    jobs = [job("a", 1, 20), job("b", 3, 1, arrival_s=1.0), job("c", 2, 1, arrival_s=3.0)]
    jobs.append(job("d", 3, 1, arrival_s=4.0))
    tree = cluster([2, 2])
    events = Outage(Withdraw(2 * S, on({1: 2})), Restore(8 * S, on({1: 2})))
    answers = {
        0: [Start(0, on({0: 1}))],
        8: [Start(2, on({1: 2}))],
        9: [Start(3, on({0: 1, 1: 2}))],
        20: [Start(1, on({0: 2, 1: 1}))],
    }
    rows = simulator(tree, jobs, events=events).run(Script(answers))
    waits = table(rows, tree, jobs)
    assert some(waits, "job_id", "cause", "free_gpus_max", "left_free_s") == [
        ("b", "left-free", 3, 11.0),  # at 1 and from 10 on, when d has finished
        ("c", "gpus", 1, 0.0),
        ("d", "order", 3, 0.0),  # at 8, when c got GPUs that came back
    ]
    assert waits[1]["reason"] == (
        "at most 1 GPU was free, and it wanted 2; 2 of 4 GPUs were out of service"
    )
    assert waits[2]["reason"].startswith(
        "it wanted 3; that many were last free at once 1 s before it started, but went to other "
        "jobs; from then on at most 1 GPU was free; "
    )


def test_a_wait_for_a_kind_mentions_gpus_out_of_service() -> None:
    """The job accepts those of machine 1 only, which is away until 8."""
    jobs, tree = [job("b", 2, 1, arrival_s=3.0)], cluster([2, 2])
    events = Outage(Withdraw(2 * S, on({1: 2})), Restore(8 * S, on({1: 2})))
    words = "0 of 2 GPUs with room were GPUs of kind new, and it accepts no other"
    answers = {3: [Wait(0, words, "gpu_kind")], 8: [Start(0, on({1: 2}))]}
    waits = table(simulator(tree, jobs, events=events).run(Script(answers)), tree, jobs)
    rest = "it wanted 2, and at most 2 GPUs were free in all; 2 of 4 GPUs were out of service"
    assert some(waits, "cause", "reason") == [("gpu_kind", f"{words}; {rest}")]


def test_gpus_that_stay_free_until_the_job_gets_them_went_to_no_other_job() -> None:
    # wide has all GPUs until 600. late gets them a nanosecond later, and later a second later.
    jobs = [job("wide", 8, 600), job("late", 8, 9, arrival_s=100.0)]
    jobs.append(job("later", 8, 9, arrival_s=609.0))
    wide, tree = on({0: 8}), cluster([8])
    answers = {
        0: [Start(0, wide)],
        600: [Wake(600 * S + 1)],
        600.000000001: [Start(1, wide)],
        609.000000001: [Wake(611 * S)],
        611: [Start(2, wide)],
    }
    rows = run(tree, jobs, Script(answers))
    late, later = table(rows, tree, jobs)
    assert (late["cause"], late["wait_s"], late["free_gpus_max"]) == ("gpus", 500.000000001, 8)
    assert late["reason"] == "it wanted 8, and all the while fewer were free"
    assert (later["cause"], later["left_free_s"]) == ("left-free", 1.999999999)
    assert_as_defined(rows, tree, jobs)


def test_too_few_gpus_before_others_are_left_free_are_written_down() -> None:
    # wide has all GPUs until 4, and from then on nobody has until 9.
    jobs = [job("wide", 8, 4), job("late", 8, 9, arrival_s=1.0)]
    answers = {0: [Start(0, on({0: 8}))], 4: [Wake(9 * S)], 9: [Start(1, on({0: 8}))]}
    tree = cluster([8])
    rows = run(tree, jobs, Script(answers))
    (wait,) = table(rows, tree, jobs)
    assert (wait["cause"], wait["left_free_s"], wait["wait_s"]) == ("left-free", 5.0, 8.0)
    assert "for 5 s of 8 s that many stayed free" in wait["reason"]
    assert "for 3 s no GPU did; no other job got GPUs meanwhile" in wait["reason"]
    assert spent(rows, tree, jobs) == {("late", 1.0): {"left-free": 5.0, "gpus": 3.0}}
    assert seconds_by_cause(wait_inputs(rows, 8, jobs)) == {"left-free": 5.0, "gpus": 3.0}


def test_a_job_that_starts_at_once_has_no_wait() -> None:
    jobs = [job("a"), job("b", arrival_s=3.0)]
    tree = cluster([2])
    assert table(simulated("fifo", tree, jobs), tree, jobs) == []


# -- reasons of a policy -------------------------------------------------------------


def test_the_last_words_of_a_wait_are_its_reason() -> None:
    jobs = [job("a", 1, 10), job("b", 1, 5)]
    answers = {
        0: [Start(0, on({0: 1})), Wait(1, "first words"), Wake(2 * S)],
        2: [Wait(1, "last words"), Wake(4 * S)],
        4: [Wait(1, "last words")],
        10: [Start(1, on({0: 1})), Wake(12 * S)],
        12: [Preempt(1), Wake(13 * S)],
        13: [Start(1, on({0: 1}))],
    }
    tree = cluster([1])
    rows = run(tree, jobs, Script(answers))
    assert [(row.tick, row.reason) for row in rows.wait_reasons] == [
        (0, "first words"),
        (2 * S, "last words"),
    ]
    waits = table(rows, tree, jobs)
    assert some(waits, "start_s", "cause") == [(0.0, "policy"), (12.0, "left-free")]
    assert waits[0]["reason"] == "last words; it wanted 1, and no GPU was free"


def test_gpus_that_only_change_hands_are_not_called_free_beside_a_policys_reason() -> None:
    # At 5, long's 3 GPUs end and go to next at once; late, told of a quota, never saw more than 1.
    jobs = [job("long", 3, 5), job("next", 3, 5), job("late", 2, 5)]
    answers = {
        0: [Start(0, on({0: 3})), Wait(1, "a queue"), Wait(2, "above its quota")],
        5: [Start(1, on({0: 3}))],
        10: [Start(2, on({0: 2}))],
    }
    tree = cluster([4])
    late = table(run(tree, jobs, Script(answers)), tree, jobs)[1]
    assert late["reason"] == "above its quota; it wanted 2, and at most 1 GPU was free"
    assert late["free_gpus_max"] == 4  # what passed from hand to hand counts there


def test_seconds_by_cause_by_hand() -> None:
    # b is told of a timer from 1 to 3, and of a quota from 5 until that is taken back at 6. a holds
    # the only GPU until 10, but nobody does from 8 to 9.
    jobs = [job("a", 1, 9), job("b", 1, 5)]
    answers = {
        0: [Start(0, on({0: 1})), Wake(S)],
        1: [Wait(1, "not yet", "timer", until=3 * S), Wake(5 * S)],
        5: [Wait(1, "too much", "quota"), Wake(6 * S)],
        6: [Wait(1, ""), Wake(8 * S)],
        8: [Preempt(0), Wake(9 * S)],
        9: [Start(0, on({0: 1}))],
        10: [Start(1, on({0: 1}))],
    }
    tree = cluster([1])
    rows = run(tree, jobs, Script(answers))
    causes = cause_table(wait_inputs(rows, tree.gpus, jobs))
    assert list(causes) == [term.name for term in columns.TABLES["wait_causes"]]
    cause, cause_s, words = causes["cause"], list(causes["cause_s"]), causes["reason"]
    assert list(zip(cause, cause_s, words, strict=True)) == [
        ("order", 4.0, ""),  # a got the GPU at 0, and again at 9
        ("timer", 2.0, "not yet"),
        ("gpus", 2.0, ""),
        ("quota", 1.0, "too much"),
        ("left-free", 1.0, ""),
    ]


def test_the_times_of_a_reason_add_up_to_the_wait() -> None:
    # wide has 7 of 8 GPUs until 9. pair could start then, and is left waiting until 12, from 10 on
    # with a reason.
    jobs = [job("wide", 7, 9), job("pair", 2, 1, arrival_s=1.0)]
    answers = {
        0: [Start(0, on({0: 7})), Wake(10 * S)],
        10: [Wait(1, "says so"), Wake(12 * S)],
        12: [Start(1, on({0: 2}))],
    }
    tree = cluster([8])
    (wait,) = table(run(tree, jobs, Script(answers)), tree, jobs)
    assert (wait["cause"], wait["wait_s"]) == ("gpus", 11.0)
    assert wait["reason"] == (
        "it wanted 2, and for 8 s of 11 s fewer were free; for 1 s that many stayed free; besides, "
        "says so (for 2 s of 11 s)"
    )


def test_gpus_left_free_just_before_the_start_did_not_go_to_other_jobs() -> None:
    # wide leaves 7 of 8 GPUs at 9 and next takes them until 12. From then on pair is told why not.
    jobs = [job("wide", 7, 9), job("pair", 2, 1, arrival_s=1.0), job("next", 7, 3, arrival_s=2.0)]
    answers = {
        0: [Start(0, on({0: 7}))],
        9: [Start(2, on({0: 7}))],
        12: [Wait(1, "too far apart"), Wake(14 * S)],
        14: [Start(1, on({0: 2}))],
    }
    tree = cluster([8])
    pair = table(run(tree, jobs, Script(answers)), tree, jobs)[0]
    assert (pair["cause"], pair["left_free_s"]) == ("order", 2.0)
    assert pair["reason"] == (
        "it wanted 2; that many went to other jobs at times, and stayed free for the last 2 s "
        "before it started; 1 other job got GPUs meanwhile, which comes after it in the trace; "
        "besides, too far apart (for 2 s of 13 s)"
    )


def test_too_few_gpus_are_not_said_to_be_enough() -> None:
    # wide has 7 of 8 GPUs until 9. From then on all are free, and pair is told why not.
    jobs = [job("wide", 7, 9), job("pair", 2, 1, arrival_s=1.0)]
    answers = {
        0: [Start(0, on({0: 7}))],
        9: [Wait(1, "above its quota", "quota"), Wake(12 * S)],
        12: [Start(1, on({0: 2}))],
    }
    tree = cluster([8])
    (pair,) = table(run(tree, jobs, Script(answers)), tree, jobs)
    assert (pair["cause"], pair["free_gpus_max"]) == ("gpus", 8)
    assert pair["reason"] == (
        "it wanted 2, and for 8 s of 11 s fewer were free; besides, above its quota (for 3 s of "
        "11 s)"
    )


# -- against the definitions ---------------------------------------------------------


@st.composite
def cases(draw: st.DrawFn) -> tuple[ClusterTree, list[Job]]:
    tree = draw(trees())
    return tree, draw(elastic_jobs(tree, 90.0, 100))


def short_leases(policy: str) -> dict[str, float]:
    return {"lease_s": 60.0} if "lease_s" in POLICIES[policy].load().Options.model_fields else {}


@pytest.mark.parametrize("policy", SELF_SUFFICIENT)
@examples
@given(case=cases())
def test_waits_are_what_the_definitions_say(
    policy: str, case: tuple[ClusterTree, list[Job]]
) -> None:
    tree, jobs = case
    rows = simulated(policy, tree, jobs, **short_leases(policy))
    assert_as_defined(rows, tree, jobs)
    assert_lawful(rows, tree, jobs)
    renamed = [replace(job, id=f"{len(jobs) - index}-x") for index, job in enumerate(jobs)]
    plain = ("start_s", "end_s", "cause", "free_gpus_max", "left_free_s", "overtakers")
    others = simulated(policy, tree, renamed, **short_leases(policy))
    one, other = table(rows, tree, jobs), table(others, tree, renamed)
    assert some(one, *plain) == some(other, *plain)
    reasons = [[re.sub(r"job '[^']*'", "job", row["reason"]) for row in x] for x in (one, other)]
    assert reasons[0] == reasons[1]


def assert_as_defined(rows: Rows, tree: ClusterTree, jobs: Sequence[Job]) -> None:
    waits = table(rows, tree, jobs)
    expected = naive_waits(rows, tree.gpus, jobs)
    causes = [(row["job_id"], row["start_s"], row.pop("causes")) for row in expected]
    chances = [row.pop("last_chance") for row in expected]
    least = {one.id: one.gpus_min for one in jobs}
    for wait, chance in zip(waits, chances, strict=True):
        if "stayed free for the last" in wait["reason"]:
            ((_, _, at_last_s),) = chance
            at_last = time_text(at_last_s, time_unit(wait["wait_s"], days=NO_DAYS))
            assert f"stayed free for the last {at_last} before it started" in wait["reason"]
        if "were last free" in wait["reason"]:
            ((before_s, most, _),) = chance
            assert most < least[wait["job_id"]] or before_s < 1e-3
            if before_s < 1e-3:
                assert "last free at once when it started, but other" in wait["reason"]
                continue
            before = time_text(before_s, time_unit(wait["wait_s"], days=NO_DAYS))
            assert f"last free at once {before} before it started" in wait["reason"]
            assert f"from then on {free_text(most)}" in wait["reason"]
    assert [{key: wait[key] for key in row} for wait, row in zip(waits, expected, strict=True)] == (
        expected
    )
    told = spent(rows, tree, jobs)
    written = {(wait["job_id"], wait["start_s"]) for wait in waits if wait["cause"] == "left-free"}
    assert told == {
        (name, start): x
        for name, start, x in causes
        if set(x) & set(WAIT_CAUSES) or ((name, start) in written and "gpus" in x)
    }
    for wait in waits:
        causes_s = told.get((wait["job_id"], wait["start_s"]))
        assert causes_s is None or sum(causes_s.values()) == pytest.approx(wait["wait_s"])


def free_text(gpus: int) -> str:
    if gpus < 2:
        return ("no GPU was free", "at most 1 GPU was free")[gpus]
    return f"at most {gpus} GPUs were free"


def spent(
    rows: Rows, tree: ClusterTree, jobs: Sequence[Job]
) -> dict[tuple[str, float], dict[str, float]]:
    """Seconds by cause, by job and begin of a wait."""
    columns = cause_table(wait_inputs(rows, tree.gpus, jobs))
    found: dict[tuple[str, float], dict[str, float]] = {}
    for name, start_s, cause, cause_s, _ in zip(*columns.values(), strict=True):
        found.setdefault((name, float(start_s)), {})[cause] = float(cause_s)
    return found


def assert_lawful(rows: Rows, tree: ClusterTree, jobs: Sequence[Job]) -> None:
    """Waits and stays fill the time from arrival to finish; the cause fits the figures."""
    waits = table(rows, tree, jobs)
    least = {one.id: one.gpus_min for one in jobs}
    for row in rows.jobs:
        waited_s = sum(wait["wait_s"] for wait in waits if wait["job_id"] == row.job.id)
        missed_s = seconds(row.finish - row.arrival - row.run) - waited_s
        assert missed_s == pytest.approx(0.0, abs=1e-5)
    for wait in waits:
        assert wait["cause"] in CAUSES
        assert wait["wait_s"] > 0
        assert 0 <= wait["free_gpus_max"] <= tree.gpus
        if wait["cause"] == "order":
            assert wait["free_gpus_max"] >= least[wait["job_id"]]
        assert wait["job_id"] not in wait["waited_for"] + wait["overtaken_by"]


def busy(jobs: int) -> tuple[ClusterTree, list[Job]]:
    """So many jobs on 64 GPUs that some 40 run at a time, and many wait."""
    rng = stream(3, "test.waits")
    arrivals = sorted(rng.integers(0, 4000, jobs).tolist())
    sizes = rng.choice([1, 1, 1, 2, 4, 16], jobs).tolist()
    lengths = rng.integers(50, 900, jobs).tolist()
    rows = zip(arrivals, sizes, lengths, strict=True)
    return cluster([8] * 4, [8] * 4), [
        job(f"j{index}", gpus, length, arrival_s=float(arrival_s))
        for index, (arrival_s, gpus, length) in enumerate(rows)
    ]


@pytest.mark.parametrize("policy", ["las", "dally", "fifo-backfill"])
@pytest.mark.parametrize(("pairs", "pieces"), [(1 << 17, 32), (50, 6)])
def test_a_busy_cluster_is_looked_at_in_groups(
    policy: str, pairs: int, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait_neighbours, "_PAIRS", pairs)
    monkeypatch.setattr(wait_neighbours, "_PIECES", pieces)
    tree, jobs = busy(160)
    rows = simulated(policy, tree, jobs, **short_leases(policy))
    assert len(table(rows, tree, jobs)) > 60
    assert_as_defined(rows, tree, jobs)


def test_outages_are_looked_at_as_defined() -> None:
    tree, jobs = busy(120)
    events = [
        event
        for at in range(300, 5000, 700)
        for event in (Withdraw(at * S, on({0: 8, 5: 8})), Restore((at + 350) * S, on({0: 8, 5: 8})))
    ]
    policy = make_policy("las", lease_s=60.0)
    rows = simulator(tree, jobs, lease_s=60.0, events=Outage(*events)).run(policy)
    assert any(row.preemptions for row in rows.jobs)
    assert_as_defined(rows, tree, jobs)


def test_gpu_time_of_a_century_does_not_overflow() -> None:
    # 4 GPUs for 3e9 s are 1.2e19 GPU-nanoseconds, more than 63 bits hold.
    jobs = [job("long", 4, 1, compute_s=3e9), job("next", 4, 1, arrival_s=1.0), job("last", 4, 1)]
    jobs = sorted(jobs, key=lambda one: one.arrival_s)
    tree = cluster([4])
    waits = table(simulated("fifo", tree, jobs), tree, jobs)
    assert some(waits, "job_id", "waited_for") == [("last", ["long"]), ("next", ["long", "last"])]


def test_the_same_run_gives_the_same_table() -> None:
    tree, jobs = busy(60)
    one, other = (simulated("dally", tree, jobs, lease_s=60.0) for _ in range(2))
    assert table(one, tree, jobs) == table(other, tree, jobs)


def test_the_most_free_gpus_are_those_that_the_policy_could_give_also_if_it_gave_them() -> None:
    # wide holds 3 of 4 GPUs until 10, then all four go to first. second wanted 4: at 10 it could
    # have had them, though the policy gave all away and left none. Before, 1 GPU was free.
    jobs = [
        job("wide", 3, 10),
        job("first", 4, 5, arrival_s=1.0),
        job("second", 4, 5, arrival_s=2.0),
    ]
    tree = cluster([4])
    waits = table(simulated("fifo", tree, jobs), tree, jobs)
    assert some(waits, "job_id", "end_s", "free_gpus_max") == [
        ("first", 10.0, 1),
        ("second", 15.0, 4),
    ]
    meaning = columns.find("free_gpus_max").meaning
    assert "whether the policy gave them to other jobs then or left them free" in meaning
    assert "The instant at which the wait ends is not part of it" in meaning
