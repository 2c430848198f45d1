"""Which metrics come first, wherever a choice of them is shown, and what they are called there.

Every list of chief metrics is here, and which metrics can be compared. A metric that no list has is
in `summary.json`, and in the tables that show all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from artist.errors import ConfigError, closest_three
from artist.registry import UnknownNameError
from artist.results.terms import glossary
from artist.results.terms.glossary import Term

NAMES: Mapping[str, str] = {
    "makespan_s": "Makespan",
    "jct_mean_s": "Average JCT",
    "queue_delay_p95_s": "P95 queueing delay",
    "comm_time_mean_s": "Communication per job",
    "gpu_allocated_share": "GPU time allocated",
    "gpu_computing_share": "GPU time computing",
    "gpu_communicating_share": "GPU time communicating",
    "preemptions": "Preemptions",
}
"""The metrics of the first lines of a report's page, and their names as headings."""

HEADLINES: Mapping[str, str] = {
    metric: NAMES[metric]
    for metric in ("jct_mean_s", "makespan_s", "queue_delay_p95_s", "comm_time_mean_s")
}
"""The metrics that a best policy is named for; less is better."""

FIRST_OF_A_RUN = (
    "jobs_finished", "makespan_s", "jct_mean_s", "jct_p50_s", "jct_p95_s", "queue_delay_mean_s",
    "communication", "gpu_allocated_share",
)  # fmt: skip
"""The first lines of `artist sim`. `communication` is not a metric but a share of two."""

GROUPS_OF_A_RUN = {
    "a job's time": (
        "jct_",
        "queue_delay_",
        "compute_",
        "comm_",
        "preemption_time_",
        "first_start_time_",
        "checkpoint_time_",
        "late_",
    ),
    "the cluster's GPU time": ("gpu_", "fragmentation"),
    "moves and placements": ("preemptions", "migrations", "preemption_cost_", "placements_"),
    "iterations": ("iteration_",),
    "fairness": ("finish_time_", "jain_", "tenants"),
    "contention": ("contention_",),
    "failures": (
        "outages",
        "failures",
        "lost_",
        "checkpoint_",
        "withdrawn_",
        "training_",
        "slowed_",
    ),
    "data": ("data_",),
    "the run": ("",),
}
"""Heading -> how the names of the metrics below it begin, in the order of `artist sim`."""

IN_WORDS = ("jct_mean_s", "makespan_s")
"""The metrics about which `artist compare` makes sentences against the baseline."""

COMPARED = ("jct_mean_s", "makespan_s")
"""What `artist compare` compares, unless other metrics are asked for. All verdicts hold together,
so few metrics need few replicates."""

OF_A_SWEEP = ("makespan_s", "jct_mean_s", "jct_p95_s", "queue_delay_mean_s", "comm_time_mean_s")
"""What `artist sweep` prints of runs."""

OF_A_RESULT = (
    "makespan_s", "jct_mean_s", "jct_p95_s", "queue_delay_mean_s", "comm_time_share",
    "gpu_allocated_share", "gpu_computing_share", "preemptions", "migrations",
)  # fmt: skip
"""What a notebook shows of one run."""

OF_A_REPORT = (
    "makespan_s", "jct_mean_s", "jct_p50_s", "jct_p95_s", "jct_p99_s", "queue_delay_mean_s",
    "queue_delay_p95_s", "queue_delay_p99_s", "comm_time_mean_s", "gpu_allocated_share",
    "gpu_computing_share", "gpu_communicating_share", "preemptions", "migrations",
)  # fmt: skip
"""What the comparison of a report's page shows at once. It shows the others after a click."""

FIRST_STARTS, CHECKPOINTS = "first starts", "checkpoints"

PARTS = {
    "waiting": "queue_delay_mean_s",
    "communication": "comm_kept_mean_s",
    "preemption and restarts": "preemption_time_mean_s",
    FIRST_STARTS: "first_start_time_mean_s",
    CHECKPOINTS: "checkpoint_time_mean_s",
    "computing": "compute_kept_mean_s",
}
"""What a mean completion time consists of: part -> metric. The sum of all is `jct_mean_s`.

So a difference of two mean completion times is the sum of their differences.
"""


def parts_of(summaries: Iterable[Mapping[str, Any]]) -> Mapping[str, str]:
    """The `PARTS` of some runs: first starts and checkpoints only where a run has time of them."""
    known = {name for one in summaries for name in one}
    none = [x for x in (FIRST_STARTS, CHECKPOINTS) if PARTS[x] not in known]
    return {part: metric for part, metric in PARTS.items() if part not in none}


BOUND = "makespan_bound_s"

# These describe the simulation, or are the same under every policy.
_NOT_COMPARED = frozenset(
    {"wall_s", "events", "latency_queries", "latency_backend_calls", "latency_fallback_uses", BOUND}
)


def comparable_metrics() -> list[Term]:
    """The metrics that a comparison can have."""
    return [term for term in glossary.METRICS if term.name not in _NOT_COMPARED]


def check_metrics(metrics: Sequence[str]) -> None:
    """Refuse metrics that are not known, and lists without or with repeated ones.

    Raises:
        UnknownNameError: the message names the closest metrics, and the command that lists all.
        ConfigError: no metric, or one of them twice.
    """
    known = [term.name for term in comparable_metrics()]
    for metric in metrics:
        if metric not in known:
            remedy = f"{closest_three(metric, known)}; artist list metrics has all"
            raise UnknownNameError("metric", metric, known, remedy)
    if not metrics or len(set(metrics)) != len(metrics):
        raise ConfigError(f"--metrics {','.join(metrics)}: give at least one metric, each once")
