"""Every column of the tables in a run directory, with unit and formula.

If two tables have a column of one name, it means the same in both.
"""

from __future__ import annotations

from artist.results.terms.glossary import Term

_JOB = Term("job_id", "", "name of the job in the trace")
_GPUS = Term(
    "gpus",
    "1",
    "GPUs that the job asked for; in placements, that it held; in outages, that left service",
)
_JOBS = Term(
    "jobs",
    "1",
    "jobs that send on the link in the interval; in outages, jobs that it stopped; in "
    "failure_sizes, jobs of this size",
)
_JOB_IDS = Term("job_ids", "", "their ids, by arrival")
_RUN = Term(
    "run_s",
    "s",
    "time with GPUs; in failure_sizes, of all jobs of this size",
    "sum over placements of end_s - start_s",
)
_LEVEL = Term("level", "", "the outermost level that the GPUs span: machine, rack or network")
_STALLED = Term(
    "stalled_s", "s", "time with GPUs but without progress: restart, migration", "part of run_s"
)
_LOST = Term(
    "lost_s",
    "s",
    "work that the job lost with its GPUs: on an unfinished iteration, or in a failure all since "
    "its last checkpoint",
)
_CHECKPOINT = Term(
    "checkpoint_s",
    "s",
    "time in which the job wrote checkpoints; only where something fails or jobs write them",
    "(time held - stalled) x share of an iteration's time that checkpoints add",
)
_FAILURES = Term(
    "failures",
    "1",
    "how often failing units stopped the job; in failure_sizes, all jobs of this size; only where "
    "something fails or jobs write checkpoints",
)
_RATIO = Term(
    "training_time_ratio",
    "1",
    "effective training time ratio: productive time, in iterations that were kept and without "
    "checkpoints, over the time with GPUs; only where something fails or jobs write checkpoints",
    "(run_s - stalled_s - lost_s - checkpoints kept) / run_s; in failure_sizes, of all jobs' time",
)
_LOST_GPU = Term(
    "lost_gpu_s",
    "GPU-s",
    "GPU time of work that jobs lost in failures: all since their last checkpoint",
    "sum(GPUs x lost_s of intervals that ended failed)",
)
_SOURCE = Term("source", "", "where the iteration times come from; several sources are joined by |")
_ITERATIONS = Term(
    "iterations", "1", "training steps of the job; in placements, those that ended in the interval"
)
_TIME = Term("time_s", "s", "time of the row; a row of the timeline holds until the next one")
_START = Term(
    "start_s",
    "s",
    "when the interval began; in jobs, when the job first got GPUs; in waits, when the wait began",
)
_END = Term(
    "end_s",
    "s",
    "when the interval ended; an interval has one speed; in waits, when the wait ended",
)

_TENANT = Term("tenant", "", "the team that the job counts for; empty if the trace names none")
_PRIORITY = Term("priority", "1", "urgency from 1, the highest, to 7; 0: none given")
_ENTITLED = Term(
    "entitled_gpus",
    "1",
    "GPUs that the tenant is entitled to: its quota, or an equal part if there are no quotas",
)
_PREEMPTIONS = Term("preemptions", "1", "how often jobs lost their GPUs before they finished")

TABLES: dict[str, tuple[Term, ...]] = {
    "jobs": (
        _JOB,
        Term("user", "", "name of the job's owner in the trace"),
        Term("model", "", "name of the model in the trace"),
        _GPUS,
        Term("gpus_min", "1", "fewest GPUs that the job can run on"),
        Term("gpus_max", "1", "most GPUs that the job can use"),
        _ITERATIONS,
        Term("arrival_s", "s", "when the job was submitted"),
        Term("start_s", "s", "when the job first got GPUs"),
        Term("finish_s", "s", "when the job's last iteration ended"),
        Term("jct_s", "s", "job completion time (Dally V-D)", "finish_s - arrival_s"),
        Term("queue_delay_s", "s", "time without GPUs (Dally V-D)", "jct_s - run_s"),
        _RUN,
        Term(
            "ideal_s",
            "s",
            "run time on the GPUs that the job asked for, without communication",
            "iterations x compute_s of an iteration",
        ),
        Term(
            "finish_time_fairness",
            "1",
            "completion time relative to ideal_s, which has no communication; so waiting, restarts "
            "and all communication make it larger",
            "jct_s / ideal_s",
        ),
        Term(
            "alone_s",
            "s",
            "run time on the GPUs that the job asked for, as close together as an empty cluster "
            "allows, with communication; left out if the backend does not know these placements",
            "iterations x iteration_s on these GPUs",
        ),
        Term(
            "finish_time_fairness_alone",
            "1",
            "completion time relative to alone_s, which has communication: rho of Themis (section "
            "3.2), with the GPUs that the job asked for as its share of the cluster",
            "jct_s / alone_s",
        ),
        Term(
            "compute_s",
            "s",
            "time in which the job computed",
            "sum over placements of (end_s - start_s - stalled_s) x compute time / iteration_s",
        ),
        Term(
            "comm_s",
            "s",
            "exposed communication: time in which the job waited for communication",
            "run_s - stalled_s - compute_s",
        ),
        _STALLED,
        _LOST,
        Term("preemptions", "1", "how often the job lost its GPUs before it was done"),
        Term("migrations", "1", "how often the job moved to other GPUs while it ran"),
        _SOURCE,
        Term(
            "contention_slowdown",
            "1",
            "how much longer the job ran because other jobs used its links: 0.1 is a tenth more; "
            "only with --contention",
            "(with - alone) / alone; with = run_s - stalled_s, alone = sum over placements of "
            "(end_s - start_s - stalled_s) x alone_iteration_s / iteration_s",
        ),
        Term(
            "contention_lost_s",
            "s",
            "running time that the job lost because other jobs used its links; only with "
            "--contention",
            "with - alone, as in contention_slowdown",
        ),
        _FAILURES,
        _CHECKPOINT,
        _RATIO,
        _TENANT,
        _PRIORITY,
    ),
    "placements": (
        _JOB,
        _GPUS,
        _LEVEL,
        Term("signature", "", "shape of the GPUs: + separates sockets, `,` machines, / racks"),
        Term("placement", "", "machine:GPUs for each machine; machines are numbered from 0"),
        _START,
        _END,
        _ITERATIONS,
        Term(
            "iteration_s",
            "s",
            "time of one iteration on these GPUs",
            "compute time x (1 + comm ratio) (Dally IV-C)",
        ),
        Term("alone_iteration_s", "s", "the same if no other job used the network"),
        _STALLED,
        _LOST,
        _SOURCE,
        Term(
            "ended",
            "",
            "why the interval ended: finished, lease-ended, preempted, migrated, re-rated (another "
            "speed follows), held (the job keeps its GPUs and stands still for a while) or "
            "withdrawn (its GPUs left service) or failed (it fell back to its last checkpoint); if "
            "the policy gave a reason, it follows a colon, as does what failed",
        ),
        _CHECKPOINT,
    ),
    "outages": (
        _TIME,
        Term("until_s", "s", "when the unit comes back; of a notice, when it leaves"),
        Term("kind", "", "what left service: machine, rack, link, gpu or another level"),
        Term("unit", "", "its number; of a link, that of the unit below it"),
        Term(
            "event",
            "",
            "failed (jobs fell back), maintenance (jobs saved first) or notice (nobody starts "
            "there from now on; jobs are those that are there)",
        ),
        _GPUS,
        _JOBS,
        _JOB_IDS,
        _LOST_GPU,
    ),
    "failure_sizes": (
        _GPUS,
        _JOBS,
        _RUN,
        _FAILURES,
        Term(
            "failures_expected",
            "1",
            "failures that the rates of the units under the jobs lead to expect",
            "sum over placements of (end_s - start_s) x sum over units of 1 / mtbf_s",
        ),
        Term("mttf_s", "s", "mean time to failure; empty without failures", "run_s / failures"),
        Term(
            "mttf_expected_s",
            "s",
            "mean time to failure to be expected: 1 / (n r) for jobs on n units of failure rate r",
            "run_s / failures_expected",
        ),
        _RATIO,
        _LOST_GPU,
    ),
    "links": (
        Term("link", "", "level, unit and direction of a link: machine 3 up"),
        _START,
        _END,
        _JOBS,
        _JOB_IDS,
        Term(
            "bytes",
            "B",
            "what they send on it in the interval, spread evenly over their iterations",
            "sum over jobs of bytes of an iteration on the link x (end_s - start_s) / iteration_s",
        ),
        Term(
            "utilisation",
            "1",
            "share of what the link can carry; above 1 only where nobody limits a job by its own "
            "links (--contention none)",
            "bytes / (capacity x (end_s - start_s))",
        ),
        Term(
            "demand",
            "1",
            "what its jobs would send if all communicated at once, each as fast as alone, as a "
            "share of what the link carries while jobs share it; only above 1 do they slow each "
            "other here",
            "sum over jobs of bytes of an iteration on the link / (time for which it sends alone x "
            "capacity x eta)",
        ),
    ),
    "tenants": (
        _TENANT,
        _ENTITLED,
        Term("jobs", "1", "its jobs; in priorities, jobs of the priority"),
        Term("used_gpu_h", "GPU-h", "GPU time that its jobs held"),
        Term(
            "used_share",
            "1",
            "share of the cluster that it used",
            "GPU time held / (GPUs of the cluster x makespan_s)",
        ),
        Term("entitled_share", "1", "share of the cluster that it is entitled to"),
        Term("queue_delay_mean_s", "s", "time without GPUs of a job, mean"),
        Term("queue_delay_p95_s", "s", "the same, 95th percentile"),
        _PREEMPTIONS,
    ),
    "tenant_use": (
        _TENANT,
        _START,
        _END,
        Term("gpus_held_mean", "1", "GPUs that its jobs held, mean over the interval"),
        _ENTITLED,
    ),
    "priorities": (
        _PRIORITY,
        Term("jobs", "1", "jobs of the priority"),
        Term("queue_delay_mean_s", "s", "time without GPUs of a job, mean"),
        Term("queue_delay_p95_s", "s", "the same, 95th percentile"),
        _PREEMPTIONS,
    ),
    "queue": (
        Term("time_s", "s", "when the job stopped waiting within its quota"),
        Term("job", "", "position of the job in the order of arrival"),
        _PRIORITY,
        Term("wait_s", "s", "how long it had waited within its quota"),
        Term("late", "", "whether that is more than policy.slo_s"),
        Term(
            "started",
            "",
            "whether it got GPUs; else a pass gave the quota to other jobs of the tenant",
        ),
    ),
    "passes": (
        Term("time_s", "s", "when all waiting jobs were ranked anew"),
        Term("waiting", "1", "waiting jobs"),
        Term("started", "1", "of these, jobs that got GPUs then"),
        Term("over_quota", "1", "jobs left waiting above their tenant's quota"),
        Term("refusals", "1", "looks that found no room: one per class and set of regions"),
        Term("hits", "1", "jobs that were refused because an earlier, no larger one was"),
    ),
    "timeline": (
        _TIME,
        Term("gpus_held", "1", "GPUs that jobs hold", "the sum of the next four"),
        Term(
            "gpus_computing",
            "1",
            "GPUs that compute, in iterations that are kept; a job's GPUs count by the part of the "
            "iteration in which it computes",
            "sum over progressing jobs of GPUs x compute time / iteration_s",
        ),
        Term(
            "gpus_communicating",
            "1",
            "GPUs that wait for communication, in iterations that are kept",
            "sum over progressing jobs of GPUs x (1 - compute time / iteration_s)",
        ),
        Term("gpus_stalled", "1", "GPUs of jobs that restart, migrate, are held or save"),
        Term("gpus_lost", "1", "GPUs of jobs in work that they will lose with the GPUs"),
        Term(
            "gpus_withdrawn",
            "1",
            "GPUs out of service; only where something fails or jobs write checkpoints",
        ),
        Term(
            "gpus_fragmented",
            "1",
            "free GPUs that the job mix cannot use",
            "the sum over machines in fragmentation",
        ),
        Term("jobs_running", "1", "jobs with GPUs"),
        Term("jobs_waiting", "1", "jobs that have arrived and have no GPUs"),
    ),
    "waits": (
        _JOB,
        Term("start_s", "s", "when the wait began: the job arrived or lost its GPUs"),
        Term("end_s", "s", "when the wait ended: the job got GPUs"),
        Term("wait_s", "s", "how long the wait took", "end_s - start_s"),
        _GPUS,
        Term(
            "began",
            "",
            "how the wait began: arrived, or how the job lost its GPUs, as ended in placements",
        ),
        Term(
            "cause",
            "",
            "why the job waited, in one word, the first that holds: policy (the policy told a "
            "reason), left-free (for some time enough GPUs stayed free, and the policy left them), "
            "order (enough GPUs were free at some instant only, and other jobs got them) or gpus "
            "(never were enough GPUs free); enough is gpus_min in jobs",
        ),
        Term("reason", "", "the same in one sentence, with figures"),
        Term(
            "free_gpus_max",
            "1",
            "most GPUs that the policy could have given to the job at one instant of the wait: "
            "those in service that no job held both before and after that instant, whether the "
            "policy gave them to other jobs then or left them free. So a job that loses its GPUs "
            "to others sees them. The instant at which the wait ends is not part of it",
            "max over instants t, start_s <= t < end_s, of GPUs in service (just before t or at t, "
            "the fewer) - sum over jobs of GPUs held (just before t or at t, the fewer)",
        ),
        Term(
            "left_free_s", "s", "how much of the wait enough GPUs stayed free; enough as in cause"
        ),
        Term(
            "waited_for",
            "",
            "the jobs that held most GPU time during the wait, the most first; at most 5, ties in "
            "the order of arrival",
            "sum over placements of gpus x time within the wait",
        ),
        Term(
            "overtaken_by",
            "",
            "the first jobs that come later in the trace and got GPUs during the wait; at most 5",
        ),
        Term("overtakers", "1", "how many such jobs there are"),
    ),
    "turns": (
        _JOB,
        _START,
        _END,
        Term(
            "corrections_per_min",
            "1/min",
            "how often the job waited so as to keep its turn, in the interval (CASSINI 5.7)",
        ),
    ),
    "autotuner": (
        _TIME,
        _LEVEL,
        _GPUS,
        Term("waited_s", "s", "how long the job had waited when it accepted the level"),
        Term("samples", "1", "recorded waits of this level and number of GPUs"),
        Term(
            "timer_s",
            "s",
            "the timer tuned from these waits; empty if there are none (Dally, Algorithm 2)",
            "mean + deviations x standard deviation of the waits",
        ),
    ),
    "copies": (
        Term("table", "", "the table that was copied to another region"),
        Term("partitions", "1", "partitions of it that were copied; 0 if it has none"),
        Term("bytes", "B", "size of the copy"),
        Term("source", "", "the region that sent it"),
        Term("target", "", "the region that got it"),
        Term("job_id", "", "the job for which it was made"),
        Term("start_s", "s", "when it set out"),
        Term("end_s", "s", "when all of it was there; empty if all jobs finished before that"),
    ),
    "data_use": (
        _JOB,
        Term("tables", "", "the tables and partitions that the job reads"),
        _PRIORITY,
        Term("arrival_s", "s", "when the job was submitted"),
        Term("region", "", "a region in which it had GPUs"),
        Term("gpu_h", "GPU-h", "GPU hours that it held there"),
    ),
    "data_tables": (
        Term("table", "", "a table of the data file"),
        Term("partition", "", "its partition; empty for a whole table"),
        Term("size_bytes", "B", "its size; in data_moves, of a table that moved"),
        Term("regions", "", "the regions that hold it at the start, home first"),
    ),
    "data_regions": (
        Term("region", "", "a region of the cluster"),
        Term("region_gpus", "1", "its GPUs"),
        Term("storage_bytes", "B", "its storage for tables; empty without a limit"),
    ),
    "data_plan": (
        Term("number", "", "a number of the plan; term_NAME is a term of its objective"),
        Term("before", "1", "before the plan"),
        Term("after", "1", "after it"),
    ),
    "data_balance": (
        Term("region", "", "a region of the plan"),
        Term("kind", "", "a kind of GPUs"),
        Term("supply_gpu_h", "GPU-h", "GPU hours of the kind that the region offers"),
        Term("urgent_over_supply_before", "1", "high-priority demand over supply before the plan"),
        Term("urgent_over_supply_after", "1", "the same after it"),
        Term("demand_over_supply_before", "1", "demand of all priorities over supply before it"),
        Term("demand_over_supply_after", "1", "the same after it"),
    ),
    "data_days": (
        Term("day", "1", "a day of the plan, from 1"),
        Term("moved_bytes", "B", "bytes of tables that get another home on that day"),
        Term("objective", "1", "the plan's objective at its end"),
        Term("ratio_max", "1", "high-priority demand over supply of the most overloaded region"),
        Term("ratio_sd", "1", "standard deviation of these ratios over regions"),
    ),
    "data_moves": (
        Term("day", "1", "the day of the move"),
        Term("table", "", "the table that gets another home"),
        Term("from", "", "its home before"),
        Term("to", "", "its home after"),
        Term("size_bytes", "B", "its size"),
        Term("gain", "1", "what the objective falls by; empty if it moves together with others"),
    ),
}


def find(name: str) -> Term | None:
    """The entry of a column, by its exact name; if several tables have it, that of the first."""
    return next((term for terms in TABLES.values() for term in terms if term.name == name), None)


def names() -> list[str]:
    """The names of all columns, each once."""
    return list(dict.fromkeys(term.name for terms in TABLES.values() for term in terms))
