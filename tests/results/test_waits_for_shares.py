"""Do waits of jobs that ask for a share of a GPU count the room that GPUs had for it?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.gpu_sharing import machines, part, ran
from support import job

from artist.cluster.tree import ClusterTree
from artist.results.waiting.stays import wait_inputs
from artist.results.waiting.waits import seconds_by_cause, wait_table
from artist.workload.job import Job


def waits(tree: ClusterTree, jobs: Sequence[Job]) -> dict[str, dict[str, Any]]:
    """Of each job that waited, its row."""
    inputs = wait_inputs(ran(tree, jobs, "fifo"), tree.gpus, jobs)
    columns = wait_table(inputs)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    by_cause = seconds_by_cause(inputs)
    assert by_cause.get("left-free", 0.0) == sum(row["left_free_s"] for row in rows)
    assert sum(by_cause.values()) == sum(row["wait_s"] for row in rows)
    return {row["job_id"]: row for row in rows}


def figures(row: dict[str, Any]) -> tuple[float, float, int, str]:
    return row["wait_s"], row["left_free_s"], row["free_gpus_max"], row["cause"]


def test_what_is_left_of_a_gpu_is_free_to_a_job_that_asks_for_no_more() -> None:
    # half holds .5 and third .3 until 10 and 20; all wants the whole GPU and heads the queue from 1
    # on, so that neither fits (.2, all the while) nor two (.25, from 10 on) may pass it.
    jobs = [
        part("half", 500, 10),
        part("third", 300, 20),
        job("all", 1, 5, arrival_s=1.0),
        part("fits", 200, 5, arrival_s=2.0),
        part("quarter", 250, 5, arrival_s=2.0),
    ]
    found = waits(machines(None), jobs)
    assert figures(found["all"]) == (19.0, 0.0, 0, "gpus")
    # At 20 the GPU is free, and goes to all.
    assert figures(found["fits"]) == (23.0, 18.0, 1, "left-free")
    assert figures(found["quarter"]) == (23.0, 10.0, 1, "order")
    assert (
        "it wanted 0.2 of a GPU, and for 18 s of 23 s that much stayed free"
        in (found["fits"]["reason"])
    )
    assert (
        "it wanted 0.25 of a GPU, and for 10 s of 23 s that much stayed free"
        in (found["quarter"]["reason"])
    )


def test_a_share_that_goes_to_another_job_was_free_at_that_instant() -> None:
    # next gets at 10 what short gives back; last, which wants as much, waits until long ends.
    jobs = [
        part("short", 500, 10),
        part("long", 500, 20),
        part("next", 500, 30, arrival_s=1.0),
        part("last", 500, 5, arrival_s=2.0),
        part("more", 600, 5, arrival_s=3.0),
    ]
    found = waits(machines(None), jobs)
    assert figures(found["next"]) == (9.0, 0.0, 0, "gpus")
    assert figures(found["last"]) == (18.0, 0.0, 1, "order")
    assert "no GPU had room, and it wanted 0.5 of a GPU" in found["next"]["reason"]
    assert "that much was last free at once 10 s before it started" in found["last"]["reason"]
    assert "from then on no GPU had room" in found["last"]["reason"]
    # .5 is free from 25 on, when last ends, and at no instant .6.
    assert figures(found["more"]) == (37.0, 0.0, 0, "gpus")


def test_a_gpu_that_shares_begin_to_hold_is_counted_once() -> None:
    # At 10 the GPU goes from whole to some, which leaves .7 of it; all heads the queue then.
    jobs = [
        job("whole", 1, 10),
        part("some", 300, 10, arrival_s=1.0),
        job("all", 1, 5, arrival_s=2.0),
        part("fits", 300, 5, arrival_s=3.0),
    ]
    assert figures(waits(machines(None), jobs)["fits"]) == (22.0, 10.0, 1, "order")


def test_an_instance_has_no_room_beside_other_shares_nor_they_beside_it() -> None:
    def instance(name: str, **fields: Any) -> Job:
        return part(name, 500, 20, mig="3g.20gb", **fields)

    behind = [
        job("all", 1, 5, arrival_s=1.0),
        part("share", 500, 5, arrival_s=2.0),
        instance("another", arrival_s=2.0),
    ]
    beside = waits(machines("a100-40gb"), [instance("sliced"), *behind])
    assert [beside[name]["left_free_s"] for name in ("share", "another")] == [0.0, 18.0]
    beside = waits(machines("a100-40gb"), [part("shared", 500, 20), *behind])
    assert [beside[name]["left_free_s"] for name in ("share", "another")] == [18.0, 0.0]


def small(name: str, seconds: int, arrival_s: float = 0.0) -> Job:
    return part(name, 125, seconds, mig="1g.5gb", arrival_s=arrival_s)


def test_seven_small_instances_leave_no_room_for_an_eighth() -> None:
    """They hold 875 thousandths of a GPU, and all compute slices."""
    seven = [small(f"m{number}", 20) for number in range(1, 8)]
    found = waits(machines("a100-40gb"), [*seven, small("m8", 5, 1.0), small("m9", 5, 2.0)])
    assert figures(found["m8"]) == (19.0, 0.0, 0, "gpus")
    assert figures(found["m9"]) == (18.0, 0.0, 0, "gpus")
    assert "no GPU had room, and it wanted 0.125 of a GPU" in found["m9"]["reason"]


def test_what_a_small_instance_gives_back_is_room_for_another() -> None:
    # m8 gets at 10 what m1 gives back; m9, which wants as much, waits until the others end.
    seven = [small(f"m{number}", 10 if number == 1 else 20) for number in range(1, 8)]
    found = waits(machines("a100-40gb"), [*seven, small("m8", 20, 1.0), small("m9", 5, 2.0)])
    assert figures(found["m8"]) == (9.0, 0.0, 0, "gpus")
    assert figures(found["m9"]) == (18.0, 0.0, 1, "order")
    # Six leave room, but all heads the queue.
    behind = [job("all", 1, 5, arrival_s=1.0), small("next", 5, 2.0)]
    assert figures(waits(machines("a100-40gb"), [*seven[1:], *behind])["next"])[1:3] == (18.0, 1)
