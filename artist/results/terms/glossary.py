"""Every statistic that artist reports, and every word that it uses, with unit and formula."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Term:
    """One entry. The formula is plain text, and empty if there is none."""

    name: str
    unit: str
    meaning: str
    formula: str = ""


METRICS = (
    Term(
        "makespan_s",
        "s",
        "time from the first arrival to the last finish (Dally V-D)",
        "max finish - min arrival",
    ),
    Term(
        "makespan_bound_s",
        "s",
        "lower bound on the makespan: no policy can finish these jobs on this cluster earlier. A "
        "job counts with its best possible speed: no waiting, no restarts and no communication but "
        "the constant share of its calibration. So perhaps no policy reaches the bound",
        "max(max over jobs of (arrival + shortest run time) - first arrival, sum over jobs of "
        "least GPU time / GPUs of the cluster)",
    ),
    Term("jct_mean_s", "s", "job completion time, mean (Dally V-D)", "mean(finish - arrival)"),
    Term("jct_p50_s", "s", "job completion time, median", "linear-interpolated percentile"),
    Term("jct_p95_s", "s", "job completion time, 95th percentile", "as jct_p50_s"),
    Term("jct_p99_s", "s", "job completion time, 99th percentile", "as jct_p50_s"),
    Term(
        "queue_delay_mean_s",
        "s",
        "time without GPUs between arrival and finish, mean (Dally V-D)",
        "mean(finish - arrival - time with GPUs)",
    ),
    Term("queue_delay_p95_s", "s", "queueing delay, 95th percentile", "as jct_p50_s"),
    Term("queue_delay_p99_s", "s", "queueing delay, 99th percentile", "as jct_p50_s"),
    Term(
        "comm_time_share",
        "1",
        "share of the jobs' running time that they spend on communication which computing does not "
        "hide; running time contains work that is lost later; 0 if every job fits one GPU, and "
        "larger the farther apart jobs are placed",
        "sum over jobs of comm_s / sum over jobs of (comm_s + compute_s)",
    ),
    Term(
        "comm_time_mean_s",
        "s",
        "exposed communication of a job, mean (Dally V-D, communication latency), also in "
        "iterations that it lost",
        "mean over jobs of sum(running time x (1 - compute_s / iteration_s)); running time = time "
        "held - stalled, so it contains lost work",
    ),
    Term(
        "compute_time_mean_s",
        "s",
        "compute time of a job, mean, also in iterations that it lost",
        "mean over jobs of sum(running time x compute_s / iteration_s)",
    ),
    Term(
        "comm_kept_mean_s",
        "s",
        "exposed communication of a job, mean, in iterations that it kept. jct_mean_s is the sum "
        "of queue_delay_mean_s and this and the next two",
        "mean over jobs of sum((time held - stalled - lost) x (1 - compute_s / iteration_s))",
    ),
    Term(
        "compute_kept_mean_s",
        "s",
        "compute time of a job, mean, in iterations that it kept: the same under every policy, "
        "unless jobs are elastic",
        "mean over jobs of sum((time held - stalled - lost) x compute_s / iteration_s)",
    ),
    Term(
        "preemption_time_mean_s",
        "s",
        "time in which a job held GPUs in vain, mean: restarts, migrations, holds and lost work",
        "mean over jobs of (stalled_s + lost_s)",
    ),
    Term(
        "gpu_allocated_share",
        "1",
        "share of the cluster's GPU time, over the makespan, in which jobs held the GPU: the sum "
        "of the next four",
        "sum(GPUs x time held) / (GPUs of the cluster x makespan)",
    ),
    Term(
        "gpu_computing_share",
        "1",
        "share of the cluster's GPU time in which jobs computed, in iterations that were kept",
        "sum(GPUs x progressing time kept x compute_s / iteration_s) / (GPUs of the cluster x "
        "makespan); progressing time kept = time held - stalled - lost",
    ),
    Term(
        "gpu_communicating_share",
        "1",
        "share of the cluster's GPU time in which jobs waited for communication, in iterations "
        "that were kept",
        "sum(GPUs x progressing time kept x (1 - compute_s / iteration_s)) / (GPUs of the cluster "
        "x makespan)",
    ),
    Term(
        "gpu_stalled_share",
        "1",
        "share of the cluster's GPU time in which jobs held the GPU and stood still: restart, "
        "migration, hold; and in which they wrote checkpoints that were kept",
        "sum(GPUs x (stalled_s + checkpoints kept)) / (GPUs of the cluster x makespan)",
    ),
    Term(
        "gpu_lost_share",
        "1",
        "share of the cluster's GPU time in which jobs worked on iterations that they lost with "
        "their GPUs, computing or communicating; after a failure that is all since the last "
        "checkpoint",
        "sum(GPUs x lost_s) / (GPUs of the cluster x makespan)",
    ),
    Term(
        "fragmentation",
        "1",
        "share of the free GPUs that the job mix cannot use because of the machines that they are "
        "in; only the time in which jobs wait counts, and the value is 0 if no GPU is free then "
        "(Weng et al., ATC 2023, for whole GPUs)",
        "integral of sum over machines(free x share of jobs that need more than free) / integral "
        "of free GPUs; on machines of m GPUs a job of g GPUs needs (g - 1) mod m + 1",
    ),
    Term("preemptions", "1", "how often jobs lost their GPUs before they were done"),
    Term("migrations", "1", "how often running jobs moved to other GPUs"),
    Term(
        "preemption_cost_gpu_s",
        "GPU-s",
        "GPU time that preemptions and migrations cost: lost iterations and restarts",
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
    Term(
        "iteration_time_p50_s",
        "s",
        "time of an iteration, median",
        "the smallest that half of all iterations, or more, do not exceed",
    ),
    Term("iteration_time_p90_s", "s", "time of an iteration, 90th percentile", "as the median"),
    Term("iteration_time_p99_s", "s", "time of an iteration, 99th percentile", "as the median"),
    Term(
        "iteration_slowdown_mean",
        "1",
        "by which factor iterations took longer because of other jobs",
        "mean over iterations of iteration_s / alone_iteration_s",
    ),
    Term(
        "finish_time_fairness_mean",
        "1",
        "completion time relative to ideal_s, which has no communication, mean",
        "mean(jct_s / ideal_s)",
    ),
    Term("finish_time_fairness_max", "1", "the same, of the worst-off job", "max(jct_s / ideal_s)"),
    Term(
        "finish_time_fairness_alone_mean",
        "1",
        "completion time relative to alone_s, which has communication, mean: rho of Themis (NSDI "
        "2020, section 3.2); left out if the backend does not know alone_s",
        "mean(jct_s / alone_s)",
    ),
    Term(
        "finish_time_fairness_alone_max",
        "1",
        "the same, of the worst-off job: what Themis minimizes",
        "max(jct_s / alone_s)",
    ),
    Term(
        "jain_index",
        "1",
        "how equal finish_time_fairness is among jobs; 1 is equal (Jain et al., 1984)",
        "(sum rho)^2 / (n x sum rho^2), rho = jct_s / ideal_s of each of n jobs",
    ),
    Term(
        "contention_slowdown_mean",
        "1",
        "how much longer a job ran because other jobs used its links, mean over jobs: 0.1 is a "
        "tenth more; only with --contention",
        "mean(contention_slowdown in jobs)",
    ),
    Term(
        "contention_slowdown_p95",
        "1",
        "the same, 95th percentile",
        "as jct_p50_s",
    ),
    Term(
        "contention_lost_job_h",
        "job-h",
        "running time that jobs lost because others used their links, in hours, summed over jobs; "
        "only with --contention",
        "sum(contention_lost_s in jobs) / 3600",
    ),
    Term(
        "outages",
        "1",
        "how often a unit failed or went into maintenance until the last job finished; only where "
        "something fails or jobs write checkpoints, as the next five",
        "rows of outages.parquet without notices",
    ),
    Term("failures", "1", "how often failures stopped jobs", "sum(failures in jobs)"),
    Term(
        "lost_gpu_s",
        "GPU-s",
        "GPU time of work that jobs lost in failures: all since their last checkpoint",
        "sum(GPUs x lost_s of intervals that ended failed)",
    ),
    Term(
        "checkpoint_gpu_s",
        "GPU-s",
        "GPU time in which jobs wrote checkpoints, also such as they lost later",
        "sum(GPUs x checkpoint_s)",
    ),
    Term(
        "withdrawn_gpu_s",
        "GPU-s",
        "GPU time out of service until the last job finished",
        "integral of gpus_withdrawn in timeline",
    ),
    Term(
        "training_time_ratio_mean",
        "1",
        "effective training time ratio, mean over jobs: productive over run time (Kokolis et al., "
        "HPCA 2025, without the time in the queue)",
        "mean(training_time_ratio in jobs)",
    ),
    Term("tenants", "1", "tenants of the run; only where jobs have tenants"),
    Term(
        "tenants_jain_index",
        "1",
        "how evenly tenants are served, from 1 / tenants to 1, which is even",
        "Jain's index of used_share / entitled_share in tenants, where that is above 0",
    ),
    Term(
        "queue_delay_urgent_mean_s",
        "s",
        "queueing delay of jobs of priorities 1 to 3, mean; only where jobs have priorities",
        "as queue_delay_mean_s",
    ),
    Term("queue_delay_urgent_p95_s", "s", "the same, 95th percentile", "as jct_p50_s"),
    Term(
        "late_share",
        "1",
        "share of waits within quota of priorities 1 to 3 that took longer than policy.slo_s; only "
        "with tenants and a policy that knows quotas",
        "mean(late in queue, priority <= 3)",
    ),
    Term("latency_queries", "1", "how often the speed of a placement was asked for"),
    Term(
        "latency_backend_calls",
        "1",
        "different queries among them, answered by the backend or the disk cache",
    ),
    Term(
        "data_copies",
        "1",
        "tables that were copied to another region for a job (only in runs with --data)",
    ),
    Term("data_copied_bytes", "B", "size of these copies", "sum(bytes in copies)"),
    Term(
        "data_refused_jobs",
        "1",
        "jobs that could not start where a policy wanted them, or in no region, because their "
        "tables were elsewhere (MAST, Figure 6, counts those that wait for data)",
    ),
    Term(
        "latency_fallback_uses",
        "1",
        "queries that a recorded table lacked and the fallback backend answered",
    ),
    Term("events", "1", "events that the engine handled, without stale ones"),
    Term("wall_s", "s", "wall-clock time of the simulation loop alone"),
)

TERMS = (
    Term("jct", "s", "job completion time: from arrival to finish", "finish_s - arrival_s"),
    Term("makespan", "s", "time from the first arrival to the last finish"),
    Term(
        "makespan-bound",
        "s",
        "lower bound on the makespan, makespan_bound_s: the larger of the job that must end last "
        "and all work on all GPUs, at the best possible speed. No policy can beat it; perhaps "
        "none reaches it",
        "max(max over jobs of (arrival + shortest run time) - first arrival, sum over jobs of "
        "least GPU time / GPUs of the cluster)",
    ),
    Term("lower-bound", "s", "a time that no policy can beat: see makespan-bound"),
    Term(
        "placement",
        "",
        "which GPUs a job holds: machine -> number of GPUs",
    ),
    Term(
        "signature",
        "",
        "the shape of a placement as text, without names of machines: '+' separates sockets, ',' "
        "machines and '/' racks, e.g. 4+4,8/2",
    ),
    Term(
        "level",
        "",
        "socket, machine, rack or network; in tables, the tier of the placement",
    ),
    Term("tier", "", "the outermost level that a placement spans: machine, rack or network"),
    Term(
        "fabric",
        "",
        "what the links of each level can do: topology, bandwidth per GPU and direction (GiB/s), "
        "latency (ns per hop), collective algorithm; a file in astra_configs/fabrics",
    ),
    Term(
        "cluster-file",
        "",
        "regions, datacenters, clusters, racks and machines of any sizes and kinds, with their "
        "links: a file in astra_configs/clusters (--cluster NAME|FILE, artist list clusters, "
        "artist cluster show)",
    ),
    Term(
        "region",
        "",
        "a unit of the outermost level of a cluster file. Tables are in regions, and a wide-area "
        "network joins regions",
    ),
    Term(
        "wide-area",
        "GiB/s",
        "the network between regions. Each region has one link to all others, which jobs across "
        "regions, copies of tables and remote reads use; a cluster file states it as wide_area",
    ),
    Term(
        "table",
        "",
        "data that jobs read (the column tables of a trace). It has a size, perhaps partitions, a "
        "home region and other regions that hold it: a row of the file of --data",
    ),
    Term(
        "copy",
        "B",
        "a table on its way to a region that lacks it. Copies share the links of their regions "
        "max-min fair. A job that needs it waits without GPUs (data.replicate=on-demand)",
        "bytes / share of the wide-area links",
    ),
    Term(
        "uplink",
        "GiB/s",
        "the physical links that lead out of a unit of a level: the network cards of a machine, "
        "the ports of a rack's switch to the spine. Jobs compete on them under a model of "
        "contention (--contention). A level without an uplink carries whatever is sent",
        "links of a unit x rate of a link, or what its GPUs can send / oversubscription; in one "
        "direction, at least one flow",
    ),
    Term(
        "oversubscription",
        "1",
        "what a unit's GPUs can send at once over what its uplink carries, written 2:1; 1:1 is not "
        "oversubscribed. artist explain FABRIC shows it for each level, and "
        "--set fabric.rack.oversubscription=2 changes it",
        "GPUs of the unit x the largest bandwidth per GPU of a level outside / capacity of the "
        "uplink; machines count in place of GPUs where one ring passes all GPUs of a job",
    ),
    Term(
        "estimate",
        "ns",
        "compute time and exposed communication of one iteration, and the source of the numbers",
    ),
    Term(
        "comm-ratio",
        "1",
        "exposed communication / compute time (Dally IV-C), and the calibration's constant share",
        "iteration_s = compute_s x (1 + comm ratio)",
    ),
    Term(
        "calibration",
        "",
        "numbers that fit the models to measurements of a machine: scales of compute times and "
        "bytes, and a constant share; a file in astra_configs/calibrations. In a summary: the one "
        "that the run used, or none",
    ),
    Term(
        "contention",
        "",
        "how jobs slow each other down that share links: a model of artist list contention. In a "
        "summary: the one of the run; left out if none",
    ),
    Term(
        "fabric_changes",
        "",
        "what the scenario changes of its fabric, in words (--set fabric.LEVEL.KEY=VALUE); left "
        "out if nothing",
    ),
    Term(
        "models_not_calibrated",
        "",
        "models of the trace that the calibration of the run lacks, separated by blanks; they run "
        "with the compute times of the catalogue",
    ),
    Term(
        "constant-share",
        "1",
        "communication that a model exposes on every placement of more than one GPU, as a fraction "
        "of compute; part of a calibration, 0 for most models",
        "comm ratio = constant share + comm ratio of the scaled iteration",
    ),
    Term(
        "lease",
        "s",
        "how long a job keeps its GPUs before it competes for them again; a lease ends at the "
        "first iteration boundary at or after a multiple of its length, and is renewed at no cost "
        "if no other job takes the GPUs",
    ),
    Term(
        "iteration",
        "",
        "one synchronous training step of the whole gang; a preempted job keeps its whole "
        "iterations and loses the one in progress (lost_s)",
    ),
    Term(
        "nw-sens",
        "1",
        "Dally's network-sensitive priority; smaller values go first (Dally IV-B1)",
        "(iterations done / iterations) / (time with GPUs / ideal run time)",
    ),
    Term("stalled", "s", "time with GPUs but without progress: restart, migration"),
    Term("queue-delay", "s", "time without GPUs", "finish_s - arrival_s - run_s"),
    Term(
        "wait",
        "s",
        "a stretch of time in which a job has arrived and has no GPUs: from its arrival, or from "
        "the loss of its GPUs, to its next start; waits.parquet has a row for each, with its cause "
        "(policy, left-free, order or gpus), and artist why tells the waits of a job",
        "the waits of a job add up to queue_delay_s",
    ),
    Term(
        "communication-latency",
        "s",
        "exposed communication of a job over its whole life (Dally V-D); per job: comm_s in "
        "jobs.parquet, mean: comm_time_mean_s",
        "sum(running time x (1 - compute_s / iteration_s)); running time = time held - stalled, so "
        "it contains lost work",
    ),
    Term(
        "jct-cdf",
        "1",
        "share of the jobs that finished within a time t after their arrival; a figure of artist "
        "report, from jct_s in jobs.parquet",
        "jobs with jct_s <= t / jobs",
    ),
    Term(
        "jobs-remaining",
        "",
        "jobs that have arrived and not finished, over time; a figure of artist report, from "
        "timeline.parquet",
        "jobs_running + jobs_waiting",
    ),
    Term(
        "utilization",
        "1",
        "not one number: GPUs that jobs hold (gpu_allocated_share) compute, communicate, stand "
        "still, or do work that is lost; over time: gpus_held, gpus_computing, "
        "gpus_communicating, gpus_stalled and gpus_lost in timeline.parquet",
        "allocated = computing + communicating + stalled + lost",
    ),
    Term(
        "finish-time-fairness",
        "1",
        "rho: a job's completion time relative to its run time if it were alone. Without "
        "communication: finish_time_fairness, against ideal_s. With communication: "
        "finish_time_fairness_alone, against alone_s; this is the rho of Themis (NSDI 2020, "
        "section 3.2) and of artist's policy themis. Both take the GPUs that the job asked for, "
        "where Themis takes its share of the cluster; below 1 only on more GPUs. The Dally paper "
        "reports neither",
        "jct_s / ideal_s; jct_s / alone_s",
    ),
    Term(
        "placements-per-level",
        "1",
        "how often jobs got GPUs, by the tier of the placement: placements_machine, "
        "placements_rack, placements_network",
    ),
    Term(
        "delay-timer",
        "s",
        "how long a job under Dally waits for a level before it accepts the next one; "
        "autotuner.parquet has the tuned timers over time (Dally, Algorithm 2)",
        "mean + 2 sample standard deviations of the recorded waits of its demand and level",
    ),
    Term(
        "permutation",
        "",
        "another order, without a meaning, in which machines and jobs that arrive together are "
        "visited, and other draws; 0 is the natural order. It breaks ties, and changes a makespan "
        "by tens of percent, so comparisons run several (--permutations)",
    ),
    Term(
        "within noise",
        "",
        "said of a difference that the order of visiting, or the draw of a trace, would make too: "
        "artist compare calls it undecided, or no difference if it is surely within "
        "--equivalence; less and more are beyond noise",
        "Student's 95 % interval of the ratios, paired by replicate, contains 1 (after Holm)",
    ),
    Term(
        "replicate",
        "",
        "a seed and a permutation on which all policies of a comparison run, so that their values "
        "are pairs; where several seeds are drawn, the permutations of one seed are one "
        "independent replicate. A verdict needs five (artist compare --seeds, --permutations)",
    ),
    Term(
        "undecided",
        "",
        "a verdict of artist compare and artist report: the replicates neither show a difference "
        "nor that it is within --equivalence. More replicates would decide; it says about how "
        "many. It is no sign that two policies are equal",
        "Student's 95 % interval of the ratios contains 1 (after Holm), and that of 90 % reaches "
        "beyond the equivalence",
    ),
    Term(
        "family",
        "",
        "the comparisons whose verdicts less and more hold together (Holm): if no policy "
        "differed, one such verdict among all of them would appear in at most 5 % of cases. "
        "artist compare and artist report name the family of each table and of the best policies",
    ),
    Term(
        "exposed",
        "",
        "communication is exposed while the GPUs of a job wait for it; the rest is hidden behind "
        "computing. comm_s in jobs.parquet is exposed communication",
        "exposed communication of an iteration = iteration_s - compute time",
    ),
    Term(
        "slowdown",
        "1",
        "how many times as long as alone: of a job, with its waits (artist why, artist report), "
        "alone meaning on the GPUs that it asked for, as close together as an empty cluster "
        "allows; of a stay, the same per iteration, without waits. iteration_slowdown_mean is "
        "another: by how much other jobs' traffic slowed iterations",
        "jct_s / alone_s; of a stay, iteration_s x iterations / alone_s",
    ),
    Term(
        "cycle",
        "ns",
        "ASTRA-sim's unit of time: its output and artist latency count cycles, and a cycle is a "
        "nanosecond of simulated time; no cycle of a processor",
        "1 cycle = 1 ns",
    ),
    Term(
        "circle",
        "",
        "what a job wants to send over one iteration, rolled around a circle: its perimeter is the "
        "iteration time, its arcs are the Up phases. The unified circle of a link holds whole "
        "iterations of all its jobs; rotating a job's circle delays the job. artist circle draws "
        "it (CASSINI, NSDI 2024, section 3)",
        "perimeter = least common multiple of the iteration times, snapped to ratios of terms up "
        "to 8",
    ),
    Term(
        "Up and Down",
        "",
        "phases of an iteration: a job sends while it is Up, and computes without sending while it "
        "is Down (CASSINI, section 2.1)",
    ),
    Term(
        "compatibility score",
        "1",
        "how well the jobs of a link interleave at their best rotations: 1 if they never want more "
        "than its capacity, below 0 if they want more than twice of it on average (CASSINI, "
        "Table 1); the score of a placement is the mean over the links with more than one job, and "
        "1 without such a link",
        "1 - mean over angles of max(demand - capacity, 0) / capacity",
    ),
    Term(
        "time-shift",
        "s",
        "how long a job's next iteration is delayed, once, so that it communicates while the jobs "
        "that share its links compute (CASSINI, eq. 5)",
        "(rotation / full turn x perimeter) mod iteration time",
    ),
    Term(
        "affinity graph",
        "",
        "jobs that share links, and links with more than one job; an edge weighs the job's "
        "time-shift on that link. Without loops, one time-shift per job follows that keeps the "
        "jobs of every link apart as that link wants it (CASSINI, section 4.1, Theorem 1)",
        "loops = edges - vertices + connected parts",
    ),
    Term(
        "checkpoint",
        "",
        "a job's saved state. After a failure the job goes on from the last one. It writes one "
        "after every interval of work, and stands still meanwhile (--set checkpoint.interval_s, "
        "checkpoint.cost_s); a job that loses its GPUs to another saves as well",
    ),
    Term(
        "MTTF",
        "s",
        "mean time to failure of a job: run time over failures. On n units that fail at rate r it "
        "is 1 / (n r)",
        "run_s / failures in failure_sizes.parquet",
    ),
    Term("gang", "", "the GPUs of one job; they start and stop together"),
    Term("tick", "ns", "the engine's unit of time, an integer"),
)


def find(name: str) -> Term | None:
    """The entry of a term or metric; `-`, `_`, blanks and case do not matter."""
    plain = _plain(name)
    return next((term for term in (*TERMS, *METRICS) if _plain(term.name) == plain), None)


def unit_after(name: str) -> str:
    """What follows a number of this metric: ` s`, or nothing for counts and shares."""
    term = find(name)
    return "" if term is None or term.unit in ("", "1") else f" {term.unit}"


def names() -> list[str]:
    """The names of all terms and metrics."""
    return [term.name for term in (*TERMS, *METRICS)]


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")
