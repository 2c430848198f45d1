"""Does Gandiva pack jobs while others wait, judge the pairs, and undo what does not pay?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from support import EstimateByLevel, S, cluster, finishes, intervals, job, make_policy

from artist.cluster.tree import ClusterTree
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.network.rates.interference import interfered
from artist.network.rates.isolated import AloneRates
from artist.policies.gandiva.packing import UNPACKED
from artist.testing import check_policy
from artist.workload.job import Job


def run(tree: ClusterTree, jobs: Sequence[Job], speed: float | None, folder: Path) -> Rows:
    """Slices of ten seconds. With a speed, each job beside another one has it."""
    interference = "time-slicing"
    if speed is not None:
        interference = str(folder / "pairs.csv")
        Path(interference).write_text(f"model_a,model_b,speed_a,speed_b\nany,any,{speed},{speed}\n")
    policy = make_policy("gandiva", packing=True, quantum_s=10.0)
    rates = interfered(AloneRates(tree, EstimateByLevel(tree)), interference, tree, 2)
    return Simulator(tree, jobs, rates, jobs_per_gpu=2, check=True).run(policy)


def together(rows: Rows, handle: int) -> list[tuple[float, float, tuple[int, ...]]]:
    """When a job shared its GPUs, and with whom."""
    parts = intervals(rows, handle)
    return [(row.start / S, row.end / S, row.beside) for row in parts if row.beside]


def test_a_pair_that_pays_stays_together(tmp_path: Path) -> None:
    # a has the GPU until 10 s, b until 20 s; then a comes beside b. Both have 20 s of work left.
    jobs = [job("a", iterations=30), job("b", iterations=30)]
    rows = run(cluster([1]), jobs, 0.8, tmp_path)
    assert finishes(rows) == {"a": 45.0, "b": 45.0}
    assert together(rows, 0) == [(20.0, 45.0, (1,))]
    assert together(rows, 1) == [(20.0, 45.0, (0,))]


@pytest.mark.parametrize("speed", [None, 0.4])
def test_a_pair_that_does_not_pay_is_undone_and_not_tried_again(
    speed: float | None, tmp_path: Path
) -> None:
    jobs = [job("a", iterations=30), job("b", iterations=30)]
    rows = run(cluster([1]), jobs, speed, tmp_path)
    (span,) = together(rows, 0)
    assert span == (20.0, 30.0, (1,))
    assert [row.note for row in intervals(rows, 0) if row.beside] == [UNPACKED]
    # Taking turns, both have done ten seconds by 20 s; in pairs five or four more by 30 s.
    assert max(finishes(rows).values()) == (60.0 if speed is None else 62.0)


def test_the_rate_of_a_pair_is_not_a_jobs_own_even_if_one_ends_with_the_slice(
    tmp_path: Path,
) -> None:
    # a ends beside b at 30 s, the end of a slice, with b at half speed. c comes beside b at 40 s.
    jobs = [job("a", iterations=15), job("b", iterations=90), job("c", iterations=90)]
    rows = run(cluster([1]), jobs, None, tmp_path)
    assert finishes(rows)["a"] == 30.0
    assert together(rows, 2) == [(40.0, 50.0, (1,))]


def test_a_packed_job_moves_to_free_gpus_once_no_job_waits(tmp_path: Path) -> None:
    # c takes b's GPU at 10 s, b comes beside a at 20 s, and c has finished at 25 s.
    jobs = [job("a", iterations=60), job("b", iterations=60), job("c", iterations=15)]
    rows = run(cluster([2]), jobs, 0.8, tmp_path)
    assert together(rows, 1) == [(20.0, 25.0, (0,))]
    assert intervals(rows, 1)[-1].start == 25 * S
    assert finishes(rows)["c"] == 25.0
    assert finishes(rows)["a"] == pytest.approx(61.0)


def test_the_jobs_with_the_idlest_gpus_are_tried_together_first(tmp_path: Path) -> None:
    # On two machines of one GPU, jobs of two GPUs communicate for half of the time.
    tree = cluster([1, 1])
    estimate = EstimateByLevel(tree, rack=1.0)
    jobs = [job(name, gpus=gpus, iterations=90) for name, gpus in (("a", 2), ("b", 1), ("c", 2))]
    rates = interfered(AloneRates(tree, estimate), "time-slicing", tree, 2)
    policy = make_policy("gandiva", packing=True, quantum_s=10.0)
    rows = Simulator(tree, jobs, rates, jobs_per_gpu=2, check=True).run(policy)
    assert together(rows, 0)[0][2] == (2,)
    assert together(rows, 1) == []


@pytest.mark.slow
def test_packing_keeps_the_contract() -> None:
    check_policy(lambda: make_policy("gandiva", packing=True, quantum_s=1800.0))


def test_without_packing_no_job_shares_a_gpu() -> None:
    assert make_policy("gandiva").jobs_per_gpu == 1
