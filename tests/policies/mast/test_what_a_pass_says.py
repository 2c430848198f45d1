"""Is it true what MAST tells of waits? Without the cause that it names, the job starts then."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from policies.mast.test_mast_policy import QUOTAS, TWO_REGIONS, Held, random_jobs

from artist.contract import ClusterView, Start, Wait
from artist.engine.compiled_core import core
from artist.engine.simulator import Simulator
from artist.policies.mast.queue import Where
from artist.rng import FIRST_DRAWS
from artist.run import open_policy
from artist.testing import LevelRates

interpreted = pytest.mark.skipif(core() == "compiled", reason="its rules cannot be lifted")


def lifted(policy: Any, wait: Wait, view: ClusterView) -> Any:
    """A copy of the policy whose rule does not hold for one job."""
    other, handle = copy.deepcopy(policy), wait.handle
    job = view.waiting[handle].job
    everywhere = other._books.regions_with(job.gpu_kinds, job.gpus)
    if wait.cause == "quota":
        charge = other._ledger._charge

        def charged(entry: Any, one: int, now: int) -> None:
            charge(entry, one, now)
            if one == handle:
                entry.within, entry.rank = True, entry.priority

        other._ledger._charge = charged
    elif wait.cause == "data":
        regions = other._regions
        other._regions = lambda view, one, job: (
            everywhere if one == handle else regions(view, one, job)
        )
    else:
        other._where[handle] = Where(everywhere)
    return other


@interpreted
@pytest.mark.parametrize(
    ("cell", "causes"), [(6, {"quota", "data"}), (5, {"quota", "policy"}), (1, {"quota", "policy"})]
)
def test_without_the_cause_that_is_told_the_job_starts(cell: int, causes: set[str]) -> None:
    told = set()
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
                if wait.reason:
                    told.add(wait.cause)
                    starts = lifted(before, wait, view).decide(view)
                    assert wait.handle in {x.handle for x in starts if isinstance(x, Start)}
            standing -= {x.handle for x in answer if isinstance(x, Start)}
            engine.answer(answer)
    assert told == causes


def test_nothing_is_told_where_too_few_gpus_are_free() -> None:
    """Without quotas and tables, every region may plan for every job."""
    made = [replace(one, tables=()) for one in random_jobs(1)]
    policy = open_policy("mast", {}, FIRST_DRAWS, {})
    rows = Simulator(TWO_REGIONS, made, LevelRates(TWO_REGIONS)).run(policy)
    assert any(row.start > 0 for row in rows.placements) and not rows.wait_reasons
