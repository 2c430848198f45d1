"""Are the causes that MAST gives for waits true? Without the named cause, the job starts."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from policies.mast.test_mast_policy import QUOTAS, TWO_REGIONS, Held, random_jobs
from support import interpreted

from artist.contract import ClusterView, Preempt, Start, Wait
from artist.engine.simulator import Simulator
from artist.policies.mast.queue import Where
from artist.rng import FIRST_DRAWS
from artist.run import open_policy
from artist.testing import LevelRates

ALL_CAUSES = {"quota", "policy", "data"}
PLACES = {
    6: {"in one cluster", "in one region", "in one cluster to which it may go"},
    5: {"in one cluster to which it may go", "in one region to which it may go"},
    1: {"in the one cluster to which it was bound", "in one region"},
}


def lifted(policy: Any, wait: Wait, view: ClusterView, cause: str = "") -> Any:
    """A copy of the policy whose rule does not hold for one job; `cause`: another one's rule.

    A job that is bound to a place could not go to its data elsewhere, so both are lifted.
    """
    other, handle = copy.deepcopy(policy), wait.handle
    cause = cause or wait.cause
    job = view.waiting[handle].job
    everywhere = other._books.regions_with(job.gpu_kinds, job.gpus)
    if cause != "quota" and job.tables:
        where = other._cells.where
        other._cells.where = lambda free, one, gpus, regions, kinds: (
            Where(regions) if one == handle else where(free, one, gpus, regions, kinds)
        )
    if cause == "quota":
        charge = other._ledger._charge

        def charged(entry: Any, one: int, now: int) -> None:
            charge(entry, one, now)
            if one == handle:
                entry.within, entry.rank = True, entry.priority

        other._ledger._charge = charged
    elif cause == "data":
        regions = other._regions
        other._regions = lambda view, job: (
            everywhere if job is view.waiting[handle].job else regions(view, job)
        )
    else:
        other._where[handle] = Where(everywhere)
    return other


def left_free(view: ClusterView, answer: list[Any]) -> Any:
    """What is free after an answer."""
    free = view.free.copy()
    for one in answer:
        if isinstance(one, Start):
            free.claim(one.placement)
        elif isinstance(one, Preempt):
            free.release(view.running[one.handle].placement)
    return free


def assert_apart(view: ClusterView, answer: list[Any], wait: Wait) -> None:
    """Enough GPUs stay free in all, but in no cluster."""
    gpus = view.waiting[wait.handle].job.gpus
    by_cluster = left_free(view, answer).counts(TWO_REGIONS.level_names.index("cluster"))
    assert max(by_cluster) < gpus <= sum(by_cluster)


def assert_none_of_the_free_help(view: ClusterView, answer: list[Any], wait: Wait) -> None:
    """A job above quota is told where it needed free GPUs, and no place there has this many."""
    gpus, tree = view.waiting[wait.handle].job.gpus, TWO_REGIONS
    level = "cluster" if gpus <= tree.largest(tree.level_names.index("cluster")) else "region"
    assert f"and needed {gpus} free ones" in wait.reason
    if f"in one {level}" in wait.reason and not wait.reason.endswith("may go"):
        assert max(left_free(view, answer).counts(tree.level_names.index(level))) < gpus


@interpreted
@pytest.mark.parametrize(
    ("cell", "causes"), [(6, {"quota", "data"}), (5, ALL_CAUSES), (1, ALL_CAUSES)]
)
def test_without_the_stated_cause_the_job_starts(cell: int, causes: set[str]) -> None:
    told, told_apart, places = set(), 0, set()
    for seed in range(3):
        policy = open_policy("mast", {"cell": cell}, FIRST_DRAWS, QUOTAS)
        engine = Simulator(TWO_REGIONS, random_jobs(seed), LevelRates(TWO_REGIONS), check=True)
        standing: set[int] = set()
        while (view := engine.next_question(policy)) is not None:
            view = view._replace(data=Held())
            before = copy.deepcopy(policy)
            answer = list(policy.decide(view))
            for wait in [x for x in answer if isinstance(x, Wait)]:
                (standing.add if wait.reason else standing.remove)(wait.handle)
                if wait.cause == "consolidation":
                    told_apart += 1
                    assert_apart(view, answer, wait)
                elif wait.reason:
                    if wait.cause == "quota":
                        assert_none_of_the_free_help(view, answer, wait)
                        places.add(wait.reason.partition(" free ones ")[2])
                    told.add(wait.cause)
                    starts = lifted(before, wait, view).decide(view)
                    assert wait.handle in {x.handle for x in starts if isinstance(x, Start)}
                    if wait.cause == "data":
                        starts = lifted(before, wait, view, "policy").decide(view)
                        assert wait.handle not in {x.handle for x in starts if isinstance(x, Start)}
            standing -= {x.handle for x in answer if isinstance(x, Start)}
            engine.answer(answer)
    assert told == causes
    assert told_apart
    assert places - {""} == PLACES[cell]  # a gang larger than a region needs no one place


def test_only_clusters_are_causes_where_every_region_may_plan_for_every_job() -> None:
    """Without quotas and tables. Where too few GPUs are free in all, nothing is told."""
    made = [replace(one, tables=()) for one in random_jobs(1)]
    policy = open_policy("mast", {}, FIRST_DRAWS, {})
    rows = Simulator(TWO_REGIONS, made, LevelRates(TWO_REGIONS)).run(policy)
    assert {row.cause for row in rows.wait_reasons if row.reason} == {"consolidation"}
