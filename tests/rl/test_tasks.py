"""Which actions does a task offer, and what do they do? Worked out by hand, and by brute force."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from support import EstimateByLevel, cluster, job

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.contract import Decision, Start
from artist.engine.simulator import Simulator
from artist.errors import ConfigError
from artist.network.rates.isolated import AloneRates
from artist.policies.learned.observation_grid import Grid
from artist.policies.learned.observation_sensitivity import OF_A_CANDIDATE, OF_THE_CLUSTER
from artist.policies.learned.observations import open_observation, open_task
from artist.policies.learned.place_task import PlaceTask, lists_of, placement_on
from artist.policies.learned.task import AgentTask
from artist.policies.learned.task_options import TaskOptions
from artist.workload.job import Job

FOUR = cluster([8, 8, 8, 8])


def at_first_question(
    options: Mapping[str, Any], *jobs: Job, tree: Any = FOUR
) -> tuple[AgentTask, Any]:
    """A task in the round of the first question."""
    rates = AloneRates(tree, EstimateByLevel(tree, rack=1.0))
    simulator = Simulator(tree, jobs, rates)
    view = simulator.next_question()
    assert view is not None
    task = open_task(TaskOptions.model_validate(options), tree)
    assert task.begin(view)
    return task, simulator


def starts(decisions: Sequence[Decision]) -> dict[int, Placement]:
    return {d.handle: d.placement for d in decisions if isinstance(d, Start)}


def test_candidates_are_the_first_in_order_that_fit() -> None:
    jobs = [job("a", 2, 30), job("b", 1, 20), job("c", 4, 10), job("d", 32, 1), job("e", 1, 50)]
    task, _ = at_first_question({"candidates": 3}, *jobs)
    # Areas are 60, 20, 40, 32 and 50 GPU-seconds.
    assert [view.job.id for _, view in task.candidates] == ["b", "d", "c"]
    assert task.mask().tolist() == [True, True, True, False]  # nobody runs: none is forbidden
    assert task.act(0)
    # One GPU is taken, so d (32 GPUs) does not fit any more.
    assert [view.job.id for _, view in task.candidates] == ["c", "e", "a"]
    assert task.mask().tolist() == [True, True, True, True]
    assert not task.act(3)
    assert starts(task.decisions()) == {1: Placement((0,), (1,))}


def test_a_round_ends_when_no_candidate_is_left() -> None:
    task, _ = at_first_question({}, job("a", 20), job("b", 12), job("c", 1))
    assert task.act(0)  # c, 1 GPU
    assert not task.act(0)  # b, 12 GPUs; a does not fit then
    assert set(starts(task.decisions())) == {1, 2}


def test_an_agent_that_may_not_wait_cannot_answer_none() -> None:
    task, _ = at_first_question({"may_wait": False}, job("a"), job("b"))
    assert task.act(0)
    assert task.mask().tolist() == [True] + [False] * 8


def test_the_lists_of_four_and_eight_machines_are_all_sets() -> None:
    four = lists_of(4, one_machine=True).machines
    assert len(four) == 4 + 6 + 1
    assert four[:5] == [(0,), (1,), (2,), (3,), (0, 1)]
    assert len(lists_of(4, one_machine=False).machines) == 7
    assert len(lists_of(8, one_machine=True).machines) == 8 + 28 + 70 + 1


def test_a_large_cluster_has_lists_of_neighbours() -> None:
    lists = lists_of(64, one_machine=True).machines
    assert len(lists) == 64 + 32 + 16 + 8 + 4 + 2 + 1
    assert (2, 3) in lists and (1, 2) not in lists


def test_all_machines_are_a_list_whatever_their_number() -> None:
    assert lists_of(6, one_machine=True).machines[-1] == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("gpus", [1, 2, 3, 5, 8, 9, 12, 16, 24, 27])
def test_allowed_lists_are_those_with_room_on_every_machine(gpus: int) -> None:
    task, _ = at_first_question({"task": "place", "candidates": 1}, job("a", gpus))
    assert isinstance(task, PlaceTask)
    task.contest.free.claim(Placement((0, 2), (3, 7)))
    free = [5, 8, 1, 8]
    task._choose()
    allowed = {
        machines for machines, yes in zip(task.lists.machines, task.mask()[:-1], strict=True) if yes
    }
    expected = {
        machines
        for length in (1, 2, 4)
        for machines in itertools.combinations(range(4), length)
        if length <= gpus and all(free[m] >= -(-gpus // length) for m in machines)
    }
    assert allowed == expected


def test_a_job_gets_equal_shares_of_its_machines() -> None:
    free = FreeGpus(FOUR)
    assert placement_on(free, (1, 3), 12) == Placement((1, 3), (6, 6))
    assert placement_on(free, (0, 1, 2, 3), 10) == Placement((0, 1, 2, 3), (3, 3, 2, 2))


def test_an_action_is_a_candidate_on_a_list() -> None:
    jobs = [job("a", 2, 1), job("b", 2, 2), job("c", 8, 1)]
    task, _ = at_first_question({"task": "place", "candidates": 2}, *jobs)
    # Of equal demands only the first is a candidate.
    assert [view.job.id for _, view in task.candidates] == ["a", "c"]
    lists = task.lists.machines  # type: ignore[attr-defined]
    assert task.act(1 * len(lists) + lists.index((2, 3)))
    assert not task.act(task.actions - 1)
    assert starts(task.decisions()) == {2: Placement((2, 3), (4, 4))}


def test_a_job_that_no_list_can_hold_is_refused() -> None:
    tree = cluster([8, 8, 1])
    with pytest.raises(ConfigError, match=r"no list of machines of this cluster holds job 'a'"):
        at_first_question({"task": "place"}, job("a", 17), tree=tree)


def test_the_grid_shows_slots_of_jobs_and_shapes_of_candidates() -> None:
    """Communication takes as long as computing between machines: the profile is 0.75 there."""
    options = {"task": "place", "candidates": 3, "observation": "grid"}
    task, simulator = at_first_question(options, job("a", 3), job("b", 8), job("c", 4, 100))
    grid = Grid(task.options, FOUR)
    right = grid.update(task)[:, 8:]
    assert right[0].tolist() == [0, 0, 0.5, 0.5, 0, 0, 0, 0.5]  # 1 machine: 3, 4 or 8 GPUs
    assert right[1].tolist() == [0, 0.75, 0, 0.75, 0, 0, 0, 0]  # 2 machines: 3, 4 and 8 GPUs
    assert right[2].tolist() == [0.75, 0.75, 0, 0, 0, 0, 0, 0]  # 4 machines: 4 and 8 GPUs
    lists = task.lists.machines  # type: ignore[attr-defined]
    task.act(1 * len(lists) + lists.index((1, 2)))  # b
    left = grid.update(task)[:, :8]
    assert left[1].tolist() == left[2].tolist() == [0.75] * 4 + [0.0] * 4
    simulator.answer(task.decisions())
    view = simulator.next_question()  # b has finished
    assert view is not None and task.begin(view)
    assert not grid.update(task)[:, :8].any()


def test_a_job_whose_gpus_were_taken_is_no_longer_shown() -> None:
    """A job of all 32 GPUs runs. One of 8 GPUs and less work displaces it: 24 GPUs become free."""
    options = {"preemption": "at-once", "observation": "grid"}
    large, small = job("a", 32, 100), job("b", 8, 10, arrival_s=1.0)
    task, simulator = at_first_question(options, large, small)
    grid = Grid(task.options, FOUR)
    task.act(0)
    assert (grid.update(task)[:, :8] == 0.75).all()
    simulator.answer(task.decisions())
    view = simulator.next_question()
    assert view is not None and task.begin(view)
    assert (grid.update(task)[:, :8] == 0.75).all()  # nothing is chosen: it would go on
    task.act(0)
    assert [*task.outcome().placed] == [1] and task.outcome().free.total == 24
    assert (grid.update(task)[:, :8] == 0.5).sum(axis=1).tolist() == [8, 0, 0, 0]
    assert len(task.decisions()) == 2  # the start, and what was only tried before: preemption


def test_slots_that_a_machine_lacks_are_marked() -> None:
    tree = cluster([8, 4])
    grid = Grid(TaskOptions(), tree)
    assert grid.values[1, :8].tolist() == [0.0] * 4 + [-1.0] * 4


def test_sensitivity_says_what_is_where() -> None:
    task, _ = at_first_question({"candidates": 2}, job("a", 12), job("b", 1))
    values = open_observation(task.options, FOUR).update(task)
    rows = values[: 2 * len(OF_A_CANDIDATE)].reshape(2, -1)
    named = [dict(zip(OF_A_CANDIDATE, row.tolist(), strict=True)) for row in rows]
    assert [one["GPUs / GPUs of the cluster"] for one in named] == [1 / 32, 12 / 32]
    assert [one["communication where it would lie"] for one in named] == [0.0, 0.5]
    assert [one["machines needed / machines used"] for one in named] == [1.0, 1.0]
    around = dict(zip(OF_THE_CLUSTER, values[-len(OF_THE_CLUSTER) :].tolist(), strict=True))
    assert around["free GPUs"] == 1.0
    assert around["GPUs of the first job that waits"] == 1 / 32


def test_every_number_of_sensitivity_stays_between_0_and_1() -> None:
    huge = job("a", 32, 10**9, compute_s=1e3)
    task, _ = at_first_question({"candidates": 2}, huge, job("b", 1, 1, compute_s=1e-9))
    values = open_observation(task.options, FOUR).update(task)
    assert np.isfinite(values).all() and values.min() >= 0.0 and values.max() <= 1.0
