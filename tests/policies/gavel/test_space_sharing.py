"""Does Gavel with space sharing reach the optimum over all pairs, and keep its shares in rounds?"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from support import job, make_policy
from test_gavel import TABLE, cluster, finishes, scenario

import artist
from artist.cluster.tree import ClusterTree
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.errors import ArtistError
from artist.estimates.backends import NoCommunication
from artist.estimates.speeds import SpeedsOfRun
from artist.network.rates.interference import interfered
from artist.network.rates.isolated import AloneRates
from artist.policies.gavel.allocation import (
    Jobs,
    Optimum,
    equal_part,
    fairest,
    isolated,
    least_attained_service,
    makespan,
    per_cost,
)
from artist.policies.gavel.space_sharing import Beside
from artist.run import open_policy
from artist.testing import check_policy
from artist.units import seconds
from artist.workload.job import Job

PRICES = np.array([1.0, 2.5])


class Instance:
    """Up to ten jobs of up to four models on two kinds, and speeds beside each other."""

    def __init__(self, seed: int) -> None:
        draw = np.random.default_rng(seed)
        count, models = int(draw.integers(2, 11)), int(draw.integers(1, 5))
        of_model = draw.uniform(0.2, 1.0, (models, 2))
        self.groups = draw.integers(0, models, count)
        self.jobs = Jobs(
            of_model[self.groups], draw.choice([1.0, 1.0, 2.0], count), draw.integers(2, 5, 2) * 1.0
        )
        self.table = draw.uniform(0.1, 1.0, (models, models, 2))
        self.steps = draw.uniform(100.0, 1000.0, count)
        self.waited_s = draw.uniform(0.0, 500.0, count)

    def solved(self, *needs: Any) -> Jobs:
        return Beside(self.groups, self.table).added(self.jobs, *needs)

    def best(self, needs: Any, prices: Any = None) -> float:
        """The program over all pairs, written down row by row; largest sum if there are prices."""
        from scipy.optimize import linprog

        jobs, count = self.jobs, len(self.jobs.gpus)
        rows = [(i,) for i in range(count)]
        rows += [(i, j) for i in range(count) for j in range(i) if jobs.gpus[i] == jobs.gpus[j]]
        columns = [(row, kind) for row in rows for kind in range(2)]

        def speed(i: int, row: tuple[int, ...], kind: int) -> float:
            if i not in row:
                return 0.0
            slower = 1.0
            for j in row:
                if j != i:
                    slower = self.table[self.groups[i], self.groups[j], kind]
            return float(jobs.speeds[i, kind] * slower)

        gets = np.array([[speed(i, *column) for column in columns] for i in range(count)])
        once = np.array([[float(i in row) for row, _ in columns] for i in range(count)])
        fits = np.array(
            [[jobs.gpus[row[0]] * (kind == k) for row, kind in columns] for k in range(2)]
        )
        limits = [1.0] * count + jobs.capacity.tolist()
        if prices is not None:
            price = np.array([prices[kind] for _, kind in columns])
            found = linprog(-(gets / price).sum(axis=0), np.vstack([once, fits]), limits)
            return float(-found.fun)
        # Every job gets at least z x its need: z as the last column.
        least = np.column_stack([-gets, needs])
        bounded = np.vstack(
            [np.column_stack([np.vstack([once, fits]), np.zeros(count + 2)]), least]
        )
        cost = np.zeros(len(columns) + 1)
        cost[-1] = -1.0
        found = linprog(cost, bounded, [*limits, *[0.0] * count])
        return float(-found.fun)


def assert_possible(jobs: Jobs, found: Optimum) -> None:
    count = len(jobs.gpus)
    pairs = [] if jobs.pairs is None else jobs.pairs.jobs.tolist()
    assert (found.shares >= 0).all()
    times = found.shares[:count].sum(axis=1)
    used = jobs.gpus @ found.shares[:count]
    for (one, other), row in zip(pairs, found.shares[count:], strict=True):
        assert jobs.gpus[one] == jobs.gpus[other]
        times[[one, other]] += row.sum()
        used = used + jobs.gpus[one] * row
    assert (times <= 1 + 1e-9).all() and (used <= jobs.capacity * (1 + 1e-9)).all()


@pytest.mark.parametrize("seed", range(20))
def test_optima_are_those_of_the_program_over_all_pairs(seed: int) -> None:
    case = Instance(seed)
    needs = equal_part(case.jobs) / case.jobs.gpus
    jobs = case.solved()
    las = least_attained_service(jobs)
    assert_possible(jobs, las)
    assert las.value == pytest.approx(case.best(needs), rel=1e-6)
    assert (jobs.gets(las.shares) / needs).min() == pytest.approx(las.value, rel=1e-6)
    assert las.value >= least_attained_service(case.jobs).value * (1 - 1e-9)

    cost = per_cost(jobs, PRICES)
    assert cost.value == pytest.approx(case.best(None, PRICES), rel=1e-6)

    jobs = case.solved(case.steps)
    found = makespan(jobs, case.steps)
    assert_possible(jobs, found)
    assert found.value == pytest.approx(1 / case.best(case.steps), rel=1e-6)

    isolated_s = case.waited_s + case.steps / isolated(case.jobs)
    jobs = case.solved(case.steps, case.waited_s, isolated_s)
    fair = fairest(jobs, case.steps, case.waited_s, isolated_s)
    assert_possible(jobs, fair)
    # No smaller fairness is possible, and this one is.
    for fairness, possible in ((fair.value * (1 - 1e-6), False), (fair.value * (1 + 1e-6), True)):
        wants = case.steps / (fairness * isolated_s - case.waited_s)
        assert ((wants > 0).all() and case.best(wants) >= 1) is possible


@pytest.mark.parametrize(
    ("speed", "jobs", "gpus", "each"),
    [
        (0.5, 2, 1, 0.5),  # taking turns
        (0.8, 2, 1, 0.8),  # both all the time
        (0.8, 2, 2, 1.0),  # enough GPUs
        (0.8, 3, 1, 1.6 / 3),  # a pair at any time
        (0.8, 3, 2, 2.6 / 3),  # a pair and one alone
        (0.6, 7, 2, 2.4 / 7),
    ],
)
def test_equal_jobs_have_closed_forms(speed: float, jobs: int, gpus: int, each: float) -> None:
    alike = Jobs(np.ones((jobs, 1)), np.ones(jobs), np.array([float(gpus)]))
    shared = Beside(np.zeros(jobs, np.int64), np.array([[[speed]]])).added(alike)
    found = least_attained_service(shared)
    assert found.value == pytest.approx(each)
    assert shared.gets(found.shares) == pytest.approx(each)


def test_unequal_groups_of_equal_jobs_pair_without_loss() -> None:
    # Three of one model and two of another on two GPUs, .9 beside the other model: z for each of
    # two takes pairs 2 z / .9 of the time, and the three want another z alone, so z = 18 / 29.
    alike = Jobs(np.ones((5, 1)), np.ones(5), np.array([2.0]))
    table = np.array([[[0.1], [0.9]], [[0.9], [0.1]]])
    shared = Beside(np.array([0, 0, 0, 1, 1]), table).added(alike)
    assert shared.pairs is not None and len(shared.pairs.jobs) < 6
    found = least_attained_service(shared)
    assert found.value == pytest.approx(18 / 29)


# -- rounds ------------------------------------------------------------------------------


def ran(
    jobs: list[Job], tree: ClusterTree, folder: Path, speed: float | None, **options: Any
) -> Rows:
    """With a speed, each job beside another one has it."""
    none, table = NoCommunication(), folder / "pairs.csv"
    alone = AloneRates(tree, none.estimate, none.everywhere, SpeedsOfRun(TABLE, tree))
    table.write_text(f"model_a,model_b,speed_a,speed_b\nany,any,{speed},{speed}\n")
    rates = interfered(alone, "time-slicing" if speed is None else str(table), tree, 2)
    policy = open_policy("gavel", {"space_sharing": True, **options})
    return Simulator(tree, jobs, rates, jobs_per_gpu=2, check=True).run(policy)


def stays(rows: Rows, name: str) -> list[tuple[float, float, tuple[int, ...]]]:
    """From, until, beside whom."""
    handles = {row.job.id: row.handle for row in rows.jobs}
    return [
        (seconds(row.start), seconds(row.end), row.beside)
        for row in rows.placements
        if row.handle == handles[name]
    ]


def test_two_jobs_that_gain_share_a_gpu_from_the_start(tmp_path: Path) -> None:
    # Both at .8: b has done its 800 s after 1,000 s, and a its 1,600 s after another 800 s.
    rows = ran([job("a", iterations=1600), job("b", iterations=800)], cluster("new"), tmp_path, 0.8)
    assert finishes(rows) == {"a": 1800.0, "b": 1000.0}
    assert stays(rows, "a") == [(0.0, 1000.0, (1,)), (1000.0, 1800.0, ())]
    assert stays(rows, "b") == [(0.0, 1000.0, (0,))]


def test_two_jobs_that_gain_nothing_take_turns(tmp_path: Path) -> None:
    rows = ran([job("a", iterations=720), job("b", iterations=720)], cluster("new"), tmp_path, None)
    assert finishes(rows) == {"a": 1080.0, "b": 1440.0}
    assert not any(row.beside for row in rows.placements)


def test_three_jobs_on_a_gpu_pair_by_rounds_as_their_shares_say(tmp_path: Path) -> None:
    # Each pair has a third of the time: in three rounds each job has run in two, beside both.
    jobs = [job(name, iterations=576) for name in "abc"]
    rows = ran(jobs, cluster("new"), tmp_path, 0.8)
    assert finishes(rows) == {"a": 720.0, "b": 1080.0, "c": 1080.0}
    assert stays(rows, "a") == [(0.0, 360.0, (1,)), (360.0, 720.0, (2,))]
    assert stays(rows, "b") == [(0.0, 360.0, (0,)), (720.0, 1080.0, (2,))]


def test_a_job_that_stays_is_the_host_of_the_one_that_comes(tmp_path: Path) -> None:
    # b waits for a round in which a has the GPU alone, comes beside it, and both finish there.
    jobs = [job("a", iterations=720), job("b", iterations=288, arrival_s=10.0)]
    rows = ran(jobs, cluster("new"), tmp_path, 0.8, reset_s=0.0)
    assert finishes(rows) == {"a": 792.0, "b": 720.0}
    assert [row[2] for row in stays(rows, "a")] == [(), (1,), ()]


def test_fifo_packs_a_job_without_room_only_if_it_gains_much(tmp_path: Path) -> None:
    jobs = [job(name, iterations=1440) for name in "abc"]
    rows = ran(jobs, cluster("new"), tmp_path, 0.8, objective="fifo")
    assert stays(rows, "a")[0] == (0.0, 1800.0, (1,))  # and nobody beside c
    assert finishes(rows) == {"a": 1800.0, "b": 1800.0, "c": 3240.0}
    rows = ran(jobs, cluster("new"), tmp_path, 0.75, objective="fifo")
    assert not any(row.beside for row in rows.placements)


def test_the_job_left_of_a_pair_goes_on_until_shares_are_computed_anew(tmp_path: Path) -> None:
    jobs = [job("a", iterations=1440), job("b", iterations=288)]
    rows = ran(jobs, cluster("new"), tmp_path, 0.8, objective="fifo")
    assert finishes(rows) == {"b": 360.0, "a": 1512.0}


def test_gpus_that_a_pair_shared_are_left_free_only_if_both_leave(tmp_path: Path) -> None:
    # The round at 2,880 s takes e from beside d, who keeps both GPUs. One is left beside c, who
    # ends at 3,040 s: only then there are two for e, too late for the round.
    jobs = [job("a", iterations=300), job("b", iterations=900)]
    jobs += [job("c", iterations=2500, arrival_s=50.0)]
    jobs += [job(name, 2, iterations=900, arrival_s=800.0) for name in "de"]
    rows = ran(jobs, cluster("old", "new", gpus=2), tmp_path, 0.7)
    assert (2520.0, 2880.0, (4,)) in stays(rows, "d")
    told = [(seconds(row.tick), row.handle) for row in rows.wait_reasons if row.reason]
    assert told == [(50.0, 2), (800.0, 3), (800.0, 4), (3040.0, 4)]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("objective", ["las", "ftf", "fifo"])
def test_random_runs_are_lawful_and_the_same_twice(
    objective: str, seed: int, tmp_path: Path
) -> None:
    draw = Random(seed)
    jobs = [
        job(
            f"j{i}",
            draw.choice([1, 1, 2, 4]),
            draw.randint(1, 4000),
            arrival_s=float(draw.randint(0, 3000)),
            model=draw.choice(["any", "odd"]),
            restart_s=20.0,
        )
        for i in range(16)
    ]
    jobs.sort(key=lambda one: one.arrival_s)
    tree = cluster("old", "new", gpus=4)
    rows = ran(jobs, tree, tmp_path, 0.9, objective=objective)
    assert rows == ran(jobs, tree, tmp_path, 0.9, objective=objective)
    gpus = {row.handle: row.job.gpus for row in rows.jobs}
    shared = [row for row in rows.placements if row.beside]
    assert shared or objective == "fifo"
    assert all(gpus[row.handle] == gpus[row.beside[0]] for row in shared)


def test_failures_end_no_run(tmp_path: Path) -> None:
    log = tmp_path / "down.yaml"
    outages = [f"  - {{kind: machine, unit: {n}, at_s: 500, duration_s: 5000}}" for n in (18, 19)]
    log.write_text("\n".join(["outages:", *outages, ""]), encoding="utf-8")
    rows = [f"j{i},{10 * i},8,resnet50,3000,.3,v100" for i in range(9)]
    options = {"space_sharing": True}
    made = scenario(tmp_path, *rows, failures=str(log), policy_options=options, interference="h200")
    result = artist.simulate(made, cache=False, check=True)
    assert result.summary["jobs_finished"] == 9
    assert result.summary["gpu_shared_share"] > 0


@pytest.mark.slow
def test_space_sharing_keeps_the_contract() -> None:
    check_policy(lambda: make_policy("gavel", space_sharing=True))


def test_sharing_without_speeds_is_refused() -> None:
    with pytest.raises(ArtistError, match="space_sharing needs aware=true") as error:
        open_policy("gavel", {"space_sharing": True, "aware": False})
    assert "\n" not in str(error.value)
