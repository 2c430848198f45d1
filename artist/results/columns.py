"""Every column of a run directory's tables, with unit and formula.

A column is explained once: where tables share a name it means the same in both.
"""

from __future__ import annotations

from artist.results.glossary import Term

_JOB = Term("job_id", "", "the trace's name of the job")
_GPUS = Term("gpus", "1", "GPUs that the job asked for; in placements, that it held")
_LEVEL = Term("level", "", "outermost level that the GPUs span: machine, rack or network")
_STALLED = Term(
    "stalled_s", "s", "time with GPUs but without progress: restart, migration", "part of run_s"
)
_LOST = Term("lost_s", "s", "progress of the iteration that a preemption threw away")
_SOURCE = Term("source", "", "who computed the iteration's time; several are joined by |")
_ITERATIONS = Term(
    "iterations", "1", "training steps of the job; in placements, those finished in the interval"
)
_TIME = Term("time_s", "s", "when; the row holds until the next one")

TABLES: dict[str, tuple[Term, ...]] = {
    "jobs": (
        _JOB,
        Term("user", "", "the trace's name of the owner"),
        Term("model", "", "the trace's name of the model"),
        _GPUS,
        Term("gpus_min", "1", "fewest GPUs that the job can run on"),
        Term("gpus_max", "1", "most GPUs that the job can use"),
        _ITERATIONS,
        Term("arrival_s", "s", "when the job was submitted"),
        Term("start_s", "s", "when the job first got GPUs"),
        Term("finish_s", "s", "when the job's last iteration ended"),
        Term("jct_s", "s", "job completion time (Dally V-D)", "finish_s - arrival_s"),
        Term("queue_delay_s", "s", "time without GPUs (Dally V-D)", "jct_s - run_s"),
        Term("run_s", "s", "time with GPUs", "sum over placements of end_s - start_s"),
        Term(
            "ideal_s",
            "s",
            "time on a cluster of one's own without communication",
            "iterations x compute_s of an iteration",
        ),
        Term(
            "finish_time_fairness",
            "1",
            "completion time against a dedicated cluster (Themis, section 3)",
            "jct_s / ideal_s",
        ),
        Term(
            "compute_s",
            "s",
            "part of the progressing time that computed",
            "sum over placements of (end_s - start_s - stalled_s) x compute time / iteration_s",
        ),
        Term(
            "comm_s",
            "s",
            "part of the progressing time that waited for communication",
            "run_s - stalled_s - compute_s",
        ),
        _STALLED,
        _LOST,
        Term("preemptions", "1", "times the job lost its GPUs before it was done"),
        Term("migrations", "1", "times the job moved to other GPUs while it ran"),
        _SOURCE,
    ),
    "placements": (
        _JOB,
        _GPUS,
        _LEVEL,
        Term("signature", "", "shape: + between sockets, `,` between machines, / between racks"),
        Term("placement", "", "machine:GPUs for each machine, machines counted from 0"),
        Term("start_s", "s", "when the interval (in jobs: the first one) began"),
        Term("end_s", "s", "when the interval of constant speed ended"),
        _ITERATIONS,
        Term(
            "iteration_s",
            "s",
            "time of one iteration in this place",
            "compute time x (1 + comm ratio) (Dally IV-C)",
        ),
        Term("alone_iteration_s", "s", "the same, were no other job on the cluster"),
        _STALLED,
        _LOST,
        _SOURCE,
        Term(
            "ended",
            "",
            "why: finished, lease-ended, preempted, migrated, re-rated (another speed follows), "
            "held (the job keeps its GPUs and stands still for a while) or withdrawn (its GPUs "
            "left service); after a colon the policy's reason, where it gives one",
        ),
    ),
    "timeline": (
        _TIME,
        Term("gpus_held", "1", "GPUs that some job holds"),
        Term("gpus_fragmented", "1", "free GPUs that the job mix cannot use", "`fragmentation`"),
        Term("jobs_running", "1", "jobs with GPUs"),
        Term("jobs_waiting", "1", "jobs that have arrived and have no GPUs"),
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
            "the timer tuned from them; empty without history (Dally, Algorithm 2)",
            "mean + deviations x standard deviation of the waits",
        ),
    ),
}


def find(name: str) -> Term | None:
    """The entry of a column, by its exact name; its first table's where several have it."""
    return next((term for terms in TABLES.values() for term in terms if term.name == name), None)


def names() -> list[str]:
    """All columns, each once."""
    return list(dict.fromkeys(term.name for terms in TABLES.values() for term in terms))
