"""Is the bound on the makespan what it says? By hand; `test_properties.py` attacks it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from support import run

from artist.cluster.tree import nested
from artist.config import Scenario
from artist.network.rates.interference import TIME_SLICING, gains
from artist.policies.classic import Classic, ClassicOptions
from artist.results.lower_bound import makespan_bound
from artist.run import simulate
from artist.units import TICKS_PER_S
from artist.workload.job import Job

TREE = nested(("machine", "rack", "network"), [[2, 2]])


def bound_s(*jobs: Job, share: float = 0.0) -> float:
    rows = run(TREE, jobs, Classic(ClassicOptions()))
    first, end = makespan_bound(rows.jobs, TREE.gpus, lambda _: share)
    return (end - first) / TICKS_PER_S


def test_the_job_that_must_end_last_counts_from_its_arrival() -> None:
    # long ends at 5 + 10 at the earliest; the work is 2 x 10 + 1 GPU-seconds on 4 GPUs.
    assert bound_s(Job("early", 5, 1, "m", 1, 1.0), Job("long", 10, 2, "m", 10, 1.0)) == 15


def test_all_work_needs_all_gpus() -> None:
    # Three jobs of 2 GPUs and 10 s: 60 GPU-seconds on 4 GPUs, though no two can share one.
    assert bound_s(*(Job(f"j{i}", 3, 2, "m", 10, 1.0) for i in range(3))) == 15


def test_what_every_placement_of_several_gpus_pays_counts() -> None:
    assert bound_s(Job("two", 0, 2, "m", 10, 1.0), share=0.5) == 15
    assert bound_s(Job("one", 0, 1, "m", 10, 1.0), share=0.5) == 10


def test_an_elastic_job_may_choose() -> None:
    # On 1 GPU 20 s of computing; on 4, 5 s x 1.5.
    elastic = Job("e", 0, 2, "m", 10, 1.0, gpus_min=1, gpus_max=4)
    assert bound_s(elastic, share=0.5) == pytest.approx(7.5, abs=2e-9)
    # All of its work on one GPU communicates nothing: 20 GPU-seconds, 5 s on 4 GPUs. It takes 10.
    assert bound_s(elastic, share=9.0) == pytest.approx(20, abs=2e-9)


@pytest.mark.parametrize("policy", ["dally", "tiresias", "gandiva", "srtf", "themis"])
def test_calibration_and_restarts_only_make_a_makespan_longer(policy: str) -> None:
    # ResNet50's calibration has a constant share; restarts cost ten minutes.
    scenario = Scenario(racks=1, machines_per_rack=4, jobs=40, policy=policy, restart_s=600)
    summary = simulate(scenario).summary
    assert summary["calibration"] == "dally2025-table1"
    free = simulate(scenario.model_copy(update={"backend": "none"})).summary
    assert free["makespan_bound_s"] <= summary["makespan_bound_s"] <= summary["makespan_s"]


def test_the_bound_is_the_same_under_every_policy() -> None:
    bounds = {
        simulate(Scenario(racks=1, jobs=40, policy=policy)).summary["makespan_bound_s"]
        for policy in ("dally", "fifo", "srtf")
    }
    assert len(bounds) == 1


def test_a_lone_job_without_communication_reaches_the_bound() -> None:
    rows = run(TREE, [Job("lone", 2.5, 4, "m", 7, 1 / 3)], Classic(ClassicOptions()))
    first, end = makespan_bound(rows.jobs, TREE.gpus, lambda _: 0.0)
    assert (first, rows.jobs[0].finish - end) in [(2_500_000_000, 0), (2_500_000_000, 1)]


def test_what_a_table_lets_jobs_gain_by_sharing(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    header = "model_a,model_b,speed_a,speed_b\n"
    table.write_text(f"{header}vgg11,vgg16,0.8,0.5\n")
    # Four jobs, each slowed by three others by 1/4 each.
    assert gains(str(table)) == (1.0, pytest.approx(4 / 1.75))
    table.write_text(f"{header}vgg11,vgg16,1.0,0.5\n")
    assert gains(str(table)) == (1.0, 4.0)
    table.write_text(f"{header}vgg11,vgg16,0.4,0.3\n")
    assert gains(str(table)) == (1.0, 1.0)
    table.write_text(f"{header}vgg11,vgg16,1.1,0.3\n")
    assert gains(str(table)) == pytest.approx((1 / (1 - 3 / 11), 4 / (1 - 3 / 11)))
    assert gains(TIME_SLICING) == (1.0, 1.0)


def test_a_gain_lowers_the_bound() -> None:
    jobs = [Job(f"j{i}", 3, 2, "m", 10, 1.0) for i in range(3)]
    rows = run(TREE, jobs, Classic(ClassicOptions())).jobs
    bound = partial(makespan_bound, rows, TREE.gpus, lambda _: 0.0)
    times = [(end - first) / TICKS_PER_S for first, end in (
        bound(), bound(gains=(1.0, 1.2)), bound(gains=(1.0, 2.0)), bound(gains=(1.25, 4.0))
    )]  # fmt: skip
    # 60 GPU-seconds on 4 GPUs, 1.2 times as fast; then a job of 10 s, and 1.25 times as fast.
    assert times == pytest.approx([15, 12.5, 10, 8])


@pytest.mark.parametrize(
    ("policy", "options"),
    [("las", {}), ("lucid", {}), ("gandiva", {}), ("gavel", {"space_sharing": True})],
)
def test_no_policy_that_shares_gpus_beats_the_bound_of_another(
    tmp_path: Path, policy: str, options: dict[str, bool]
) -> None:
    if policy == "gavel":
        pytest.importorskip("scipy")
    trace = tmp_path / "t.csv"
    rows = "".join(f"j{i},0,1,resnet18,20000,0.1\n" for i in range(6))
    trace.write_text(f"job_id,arrival_s,gpus,model,iterations,compute_s\n{rows}")
    scenario = Scenario(
        trace=str(trace), racks=1, machines_per_rack=1, gpus_per_machine=1, fabric="a100",
        interference="h100", policy=policy, policy_options=options,
    )  # fmt: skip
    summary = simulate(scenario).summary
    # Two resnet18 on a GPU are 1.63 times as fast as one, the fastest pair 4.05 with four jobs.
    assert summary["makespan_bound_s"] == pytest.approx(12_000 / 4.05, rel=0.01)
    assert summary["makespan_s"] == pytest.approx(7_343 if options else 12_000, rel=0.01)
