"""Every number that artist reports, and every word it uses, with unit and formula."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """One entry: a formula in plain text where there is one."""

    name: str
    unit: str
    meaning: str
    formula: str = ""


METRICS = (
    Term("makespan_s", "s", "first arrival to last finish (Dally V-D)", "max finish - min arrival"),
    Term("jct_mean_s", "s", "job completion time, mean (Dally V-D)", "mean(finish - arrival)"),
    Term("jct_p50_s", "s", "job completion time, median", "linear-interpolated percentile"),
    Term("jct_p95_s", "s", "job completion time, 95th percentile", "as jct_p50_s"),
    Term("jct_p99_s", "s", "job completion time, 99th percentile", "as jct_p50_s"),
    Term(
        "queue_delay_mean_s",
        "s",
        "time without GPUs between arrival and finish (Dally V-D)",
        "mean(finish - arrival - time with GPUs)",
    ),
    Term("queue_delay_p95_s", "s", "queueing delay, 95th percentile", "as jct_p50_s"),
    Term("queue_delay_p99_s", "s", "queueing delay, 99th percentile", "as jct_p50_s"),
    Term(
        "comm_time_mean_s",
        "s",
        "exposed communication per job (Dally V-D, communication latency)",
        "mean over jobs of sum(progressing time x (1 - compute_s / iteration_s))",
    ),
    Term(
        "compute_time_mean_s",
        "s",
        "computing time per job",
        "mean over jobs of sum(progressing time x compute_s / iteration_s)",
    ),
    Term(
        "gpu_utilization",
        "1",
        "share of all GPU-seconds of the makespan that were held and progressing",
        "sum(GPUs x (time held - time stalled)) / (GPUs of the cluster x makespan)",
    ),
    Term(
        "gpu_allocation_rate",
        "1",
        "share of all GPU-seconds of the makespan that were held",
        "sum(GPUs x time held) / (GPUs of the cluster x makespan)",
    ),
    Term(
        "fragmentation",
        "1",
        "share of the free GPUs that the job mix cannot use because of the machines they lie "
        "in, over the time in which jobs wait (Weng et al., ATC 2023, for whole GPUs); 0 if no GPU "
        "is free then",
        "integral of sum over machines(free x share of jobs that need more than free) / integral "
        "of free GPUs; on machines of m GPUs a job of g needs (g - 1) mod m + 1",
    ),
    Term("preemptions", "1", "times a job lost its GPUs before it was done"),
    Term("migrations", "1", "times a running job moved to other GPUs"),
    Term(
        "preemption_cost_gpu_s",
        "GPU-s",
        "what preemptions and migrations cost: iterations lost and restarts waited for",
        "sum(GPUs x (lost_s + stalled_s))",
    ),
    Term("placements_machine", "1", "placements inside one machine"),
    Term("placements_rack", "1", "placements inside one rack, across machines"),
    Term("placements_network", "1", "placements across racks"),
    Term(
        "iteration_time_mean_s",
        "s",
        "time of an iteration, mean over all iterations of all jobs",
        "sum(iterations x iteration_s) / sum(iterations) over placements",
    ),
    Term("iteration_time_p50_s", "s", "time of an iteration, median", "weighted by iterations"),
    Term("iteration_time_p90_s", "s", "time of an iteration, 90th percentile", "as the median"),
    Term("iteration_time_p99_s", "s", "time of an iteration, 99th percentile", "as the median"),
    Term(
        "iteration_slowdown_mean",
        "1",
        "how much longer iterations took because of other jobs",
        "mean over iterations of iteration_s / alone_iteration_s",
    ),
    Term(
        "finish_time_fairness_mean",
        "1",
        "completion time against a dedicated cluster (Themis, NSDI 2020, section 3), mean",
        "mean(jct_s / ideal_s)",
    ),
    Term("finish_time_fairness_max", "1", "the worst-off job's", "max(jct_s / ideal_s)"),
    Term(
        "jain_index",
        "1",
        "how equal the jobs' finish-time fairness is; 1 is equal (Jain et al., 1984)",
        "(sum rho)^2 / (n x sum rho^2)",
    ),
    Term("latency_queries", "1", "placements whose speed was asked for"),
    Term(
        "latency_backend_calls",
        "1",
        "different questions among them, answered by the backend or its disk cache",
    ),
    Term(
        "latency_fallback_uses",
        "1",
        "questions that a recorded table lacked and the named fallback answered",
    ),
    Term("events", "1", "events handled, stale ones not counted"),
    Term("wall_s", "s", "wall-clock time of the simulation loop alone"),
)

TERMS = (
    Term("jct", "s", "job completion time: from arrival to finish", "finish_s - arrival_s"),
    Term("makespan", "s", "from the first arrival to the last finish"),
    Term(
        "placement",
        "",
        "machine -> number of GPUs that a job holds; its level is the outermost one it spans",
    ),
    Term(
        "signature",
        "",
        "the label-free shape of a placement: '+' between sockets, ',' between machines, "
        "'/' between racks, e.g. 4+4,8/2",
    ),
    Term("level", "", "machine, rack or network: the outermost level that a placement spans"),
    Term(
        "fabric",
        "",
        "per level: topology, bandwidth per GPU and direction (GiB/s), latency (ns per hop), "
        "collective algorithm; a file in astra_configs/fabrics",
    ),
    Term(
        "estimate",
        "ns",
        "compute and exposed communication of one iteration, and the source of the numbers",
    ),
    Term(
        "comm-ratio",
        "1",
        "exposed communication per compute time (Dally IV-C)",
        "iteration_s = compute_s x (1 + comm ratio)",
    ),
    Term(
        "lease",
        "s",
        "how long an allocation holds before the job competes again; it ends at the first "
        "iteration boundary at or after a multiple of its length and renews at no cost if nobody "
        "takes the GPUs",
    ),
    Term(
        "iteration",
        "",
        "one synchronous training step of the whole gang; never cut: a preempted job "
        "keeps its whole iterations and loses the one in progress (lost_s)",
    ),
    Term(
        "nw-sens",
        "1",
        "Dally's network-sensitive priority, smaller first (Dally IV-B1)",
        "(iterations done / iterations) / (time with GPUs / ideal run time)",
    ),
    Term("stalled", "s", "time with GPUs but without progress: restore, migration pause"),
    Term("queue-delay", "s", "time without GPUs", "finish_s - arrival_s - run_s"),
    Term(
        "communication-latency",
        "s",
        "a job's exposed communication over its whole life (Dally V-D); mean: comm_time_mean_s, "
        "per job: comm_s in jobs.parquet",
        "sum(progressing time x (1 - compute_s / iteration_s))",
    ),
    Term(
        "jct-cdf",
        "1",
        "share of the jobs that were complete within a time of their arrival: a figure of artist "
        "report, from jct_s in jobs.parquet",
        "jobs with jct_s <= t / jobs",
    ),
    Term(
        "jobs-remaining",
        "",
        "jobs that have arrived and not finished, over time: in timeline.parquet, a figure of "
        "artist report",
        "jobs_running + jobs_waiting",
    ),
    Term(
        "utilization",
        "1",
        "of GPUs: held and progressing is gpu_utilization, held alone gpu_allocation_rate; over "
        "time: gpus_held in timeline.parquet",
    ),
    Term(
        "finish-time-fairness",
        "1",
        "rho, a job's completion time against its time alone on its own GPUs without "
        "communication (after Themis, NSDI 2020, section 3); below 1 only on more GPUs",
        "jct_s / ideal_s",
    ),
    Term(
        "placements-per-level",
        "1",
        "times that jobs got GPUs, by the outermost level these span: placements_machine, "
        "placements_rack, placements_network",
    ),
    Term(
        "delay-timer",
        "s",
        "how long a Dally job waits for a level before it accepts the next one; tuned ones over "
        "time: autotuner.parquet (Dally, Algorithm 2)",
        "mean + 2 sample standard deviations of the recorded waits of its demand and level",
    ),
    Term("gang", "", "all GPUs of a job start and stop together"),
    Term("tick", "ns", "the engine's unit of time, an integer"),
)


def find(name: str) -> Term | None:
    """The entry for a term or metric, in any spelling of `-`, `_` and case."""
    plain = _plain(name)
    return next((term for term in (*TERMS, *METRICS) if _plain(term.name) == plain), None)


def names() -> list[str]:
    """All terms and metrics."""
    return [term.name for term in (*TERMS, *METRICS)]


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")
