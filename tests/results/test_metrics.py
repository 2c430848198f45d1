"""Do the metrics compute what the glossary says? Worked out by hand on two jobs."""

from __future__ import annotations

import numpy as np
import pytest

from artist.cluster.placement_shape import depth
from artist.cluster.tree import nested
from artist.config import Scenario
from artist.contract import Rate
from artist.engine.simulator import Simulator
from artist.errors import BackendError
from artist.estimates.query import Estimate
from artist.network.rates.isolated import AloneRates
from artist.policies.classic import Classic, ClassicOptions
from artist.results.isolated_run_time import isolated_seconds
from artist.results.metrics import summarise
from artist.results.statistics.sorted_values import weighted_percentile
from artist.results.tables import job_table, timeline_table
from artist.results.terms.chief_metrics import parts_of
from artist.run import simulate
from artist.workload.job import Job

TREE = nested(("machine", "rack", "network"), [[2, 2]])
RATES = AloneRates(TREE, lambda _, shape: Estimate(200 if depth(shape) else 100, 100, "hand"))
"""Across machines communication doubles an iteration."""

WIDE_AND_THIN = (Job("wide", 0, 4, "m", 5, 1.0), Job("thin", 1, 1, "m", 4, 1.0))
"""wide: 4 GPUs across machines, 5 iterations of 1 s doubled: 0-10. thin: 1 GPU, waits 1-10, 4
iterations of 1 s: 10-14."""


def run(*jobs: Job, **options: object):
    policy = Classic(ClassicOptions(**options))
    rows = Simulator(TREE, jobs, RATES, lease=policy.lease, check=True).run(policy)
    table = job_table(rows)
    return rows, table, summarise(rows, TREE, table, timeline_table(rows, TREE), len(jobs))


def preempted() -> dict[str, object]:
    """The summary of a run in which a short job preempts a long one."""
    long = Job("long", 0, 4, "m", 10, 0.5, restart_s=3.0)
    short = Job("short", 2.5, 4, "m", 1, 0.5)
    return run(long, short, order="remaining", preemption="at-once")[2]


def test_two_jobs_by_hand() -> None:
    rows, table, summary = run(*WIDE_AND_THIN)
    assert summary["makespan_s"] == 14
    assert summary["jct_mean_s"] == (10 + 13) / 2
    assert summary["queue_delay_mean_s"] == 9 / 2
    assert summary["comm_time_mean_s"] == 5 / 2
    assert summary["compute_time_mean_s"] == (5 + 4) / 2
    # 5 s of 14 s with progress; of their means, and not a mean of the two jobs' shares.
    assert summary["comm_time_share"] == 5 / 14
    # wide holds 4 GPUs for 10 s and computes in half of it, thin computes for 4 s on one.
    assert summary["gpu_allocated_share"] == 44 / 56
    assert summary["gpu_computing_share"] == 24 / 56
    assert summary["gpu_communicating_share"] == 20 / 56
    assert summary["gpu_stalled_share"] == summary["gpu_lost_share"] == 0
    assert (summary["placements_machine"], summary["placements_rack"]) == (1, 1)
    assert summary["iteration_time_mean_s"] == (5 * 2 + 4 * 1) / 9
    assert summary["iteration_time_p50_s"] == summary["iteration_time_p99_s"] == 2
    assert summary["iteration_slowdown_mean"] == 1
    assert table["finish_time_fairness"].tolist() == [10 / 5, 13 / 4]
    assert summary["finish_time_fairness_max"] == 3.25
    assert summary["jain_index"] == pytest.approx((2 + 3.25) ** 2 / (2 * (4 + 3.25**2)))
    assert timeline_table(rows, TREE)["gpus_held"].tolist() == [4, 4, 1, 0]
    assert timeline_table(rows, TREE)["jobs_waiting"].tolist() == [0, 1, 0, 0]


def test_a_preemption_costs_what_it_loses_and_waits() -> None:
    # long is preempted at 2.5: half an iteration lost on 4 GPUs; it restarts at 3.5 and stands
    # still for 3 s on them.
    summary = preempted()
    assert summary["preemptions"] == 1
    assert summary["preemption_cost_gpu_s"] == 4 * (0.5 + 3)
    assert "first_start_time_mean_s" not in summary
    # An iteration takes 1 s, half of it computing. long: 0-2.5, half an iteration lost; short:
    # 2.5-3.5; long stalls until 6.5, and needs 8 s more. Together 5.5 s of computing are kept.
    assert summary["makespan_s"] == 14.5
    assert summary["gpu_allocated_share"] == 1
    assert summary["gpu_stalled_share"] == 3 / summary["makespan_s"]
    assert summary["gpu_lost_share"] == 0.5 / summary["makespan_s"]
    assert summary["gpu_computing_share"] == pytest.approx(5.5 / summary["makespan_s"])


@pytest.mark.parametrize(("arrives_s", "first_s", "lost_s"), [(2.5, 2.0, 0.5), (1.0, 1.0, 0.0)])
def test_a_first_start_is_a_part_of_its_own(arrives_s, first_s, lost_s) -> None:
    """long starts from 0 to 2 and is preempted; it restarts 3 s later, for 3 s more, then runs."""
    long = Job("long", 0, 4, "m", 10, 0.5, restart_s=3.0, first_start_s=2.0)
    short = Job("short", arrives_s, 4, "m", 1, 0.5, first_start_s=2.0)
    _, table, summary = run(long, short, order="remaining", preemption="at-once")
    assert table["jct_s"].tolist() == [arrives_s + 3 + 3 + 10, 3]
    assert table["stalled_s"].tolist() == [first_s + 3, 2]
    assert table["first_start_s"].tolist() == [first_s, 2]
    assert summary["preemption_cost_gpu_s"] == 4 * (lost_s + 3)
    assert summary["first_start_time_mean_s"] == (first_s + 2) / 2
    parts = parts_of([summary])
    assert list(parts)[3] == "first starts"
    assert sum(summary[metric] for metric in parts.values()) == summary["jct_mean_s"]


def test_a_job_that_never_waits_has_a_queueing_delay_of_zero() -> None:
    # In seconds 0.3 + 0.6 - 0.3 is not 0.6; in ticks it is.
    table = run(Job("a", 0.3, 2, "m", 2, 0.3), Job("b", 0.7, 2, "m", 1, 0.1))[1]
    assert table["queue_delay_s"].tolist() == [0, 0]
    assert table["jct_s"].tolist() == table["run_s"].tolist() == [0.6, 0.1]


def test_weighted_percentile_counts_weights() -> None:
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 98.0, 1.0])
    assert weighted_percentile(values, weights, 50) == 1
    assert weighted_percentile(values, weights, 98.5) == 2
    assert weighted_percentile(values, weights, 100) == 3


def test_fairness_against_a_run_alone_has_communication() -> None:
    # wide alone: 5 iterations of 2 s across machines; thin alone: 4 of 1 s. They took 10 and 13 s.
    rows = run(*WIDE_AND_THIN)[0]
    table = job_table(rows, isolated_seconds(WIDE_AND_THIN, TREE, RATES.alone))
    assert table["alone_s"].tolist() == [10, 4]
    assert table["finish_time_fairness_alone"].tolist() == [1, 13 / 4]
    summary = summarise(rows, TREE, table, timeline_table(rows, TREE), 2)
    assert summary["finish_time_fairness_alone_mean"] == (1 + 13 / 4) / 2
    assert summary["finish_time_fairness_alone_max"] == 13 / 4


def test_a_backend_that_lacks_a_placement_leaves_the_column_out() -> None:
    def lacks(*_: object) -> Rate:
        raise BackendError("not recorded")

    assert isolated_seconds(WIDE_AND_THIN, TREE, lacks) is None
    _, table, summary = run(*WIDE_AND_THIN)
    assert "alone_s" not in table
    assert "finish_time_fairness_alone_mean" not in summary


def test_the_parts_of_a_mean_jct_add_up() -> None:
    # long: 2.5 s of progress of which half an iteration, 0.5 s, is lost; 1 s waiting; 3 s stalled;
    # 8 s: kept 10 s, half of it computing. short: 1 s of progress.
    summary = preempted()
    assert summary["queue_delay_mean_s"] == 1 / 2
    assert summary["comm_kept_mean_s"] == pytest.approx((5 + 0.5) / 2)
    assert summary["compute_kept_mean_s"] == pytest.approx((5 + 0.5) / 2)
    assert summary["preemption_time_mean_s"] == (3 + 0.5) / 2
    assert sum(summary[part] for part in parts_of([summary]).values()) == pytest.approx(
        summary["jct_mean_s"]
    )
    # Where lost work is not told apart, it counts as computing and communication.
    assert summary["comm_time_mean_s"] > summary["comm_kept_mean_s"]


def test_no_communication_is_0_beside_checkpoints_too() -> None:
    settings = {"policy": "fifo", "racks": 1, "trace": "tiny-batch", "backend": "none"}
    checkpoint = {"interval_s": 977.0, "cost_s": 7.3}
    scenario = Scenario.model_validate({**settings, "checkpoint": checkpoint})
    assert simulate(scenario).summary["comm_kept_mean_s"] == 0


def test_the_bound_stands_beside_the_makespan() -> None:
    summary = run(*WIDE_AND_THIN)[2]
    # 24 GPU-seconds on 4 GPUs; thin could end at 5.
    assert summary["makespan_bound_s"] == 6
    assert list(summary).index("makespan_bound_s") == list(summary).index("makespan_s") + 1
