"""Caveats of a result, as sentences below its table: what decides it and no table shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import nan
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from artist.cluster.fabric import Fabric
from artist.cluster.links import most_oversubscribed
from artist.cluster.tree import ClusterTree
from artist.errors import shortened
from artist.results.statistics.sorted_values import percentile
from artist.results.terms.columns import Table
from artist.results.terms.number_text import job_text, listed, percent, short, time_text
from artist.units import counted, ratio_text

FREE_PREEMPTIONS = "Preemptions cost nothing here; --set restart_s=SECONDS gives them a cost."
"""For runs in which `preempts_freely`."""


def cancelled_sentence(summaries: Iterable[Mapping[str, Any]]) -> str:
    """How many jobs of these runs were cancelled, and what that does to figures; empty if none."""
    count = sum(one.get("jobs_cancelled", 0) for one in summaries)
    if not count:
        return ""
    return (
        f"{counted(count, 'job')} {'was' if count == 1 else 'were'} cancelled (jobs_cancelled): "
        "completion times and makespan leave them out, so do not compare them with runs that "
        "finished other jobs."
    )


def no_verdict(cancelled: Mapping[str, float]) -> str:
    """Why runs that cancelled jobs are not compared.

    `cancelled` maps a variant to the jobs cancelled in a run, on average.
    """
    told = [
        f"{short(count)} a run under {variant}" for variant, count in cancelled.items() if count
    ]
    rest = len(cancelled) - len(told)
    told += ["none under the others" if rest > 1 else "none under the other"] if rest else []
    return (
        f"No verdict: jobs were cancelled ({listed(told)}), so the figures are of different jobs. "
        "Slurm cancels preempted jobs where PreemptMode, of the cluster, QOS or partition, is "
        "CANCEL, and those that may not be requeued: --no-requeue, salloc, srun, or JobRequeue=0."
    )


_NEGLIGIBLE_GPU_S = 1.0
"""A preemption that costs less has no restart cost: it lost at most a part of an iteration."""


def preempts_freely(summaries: Iterable[Mapping[str, Any]]) -> bool:
    """Whether these runs preempted or moved jobs at a mean cost below `_NEGLIGIBLE_GPU_S`."""
    ran = list(summaries)
    moves = [one["preemptions"] + one["migrations"] for one in ran]
    costs = [one["preemption_cost_gpu_s"] for one in ran]
    free = (
        cost < _NEGLIGIBLE_GPU_S * count for cost, count in zip(costs, moves, strict=True) if cost
    )
    return any(moves) and all(free)


def is_most_of_the_makespan(ran_s: float, makespan_s: float) -> bool:
    """Whether one job ran for more than half of a makespan; never if the makespan is 0."""
    return 0 < makespan_s < 2 * ran_s


_AS_LONG = 0.005
"""A ratio this near to 1 counts as 1."""


def times_as_long(ratio: float) -> str:
    """`3.1 times as long as`, or `as long as` for a ratio near 1."""
    return f"{'' if abs(ratio - 1) < _AS_LONG else f'{short(ratio)} times '}as long as"


def last_job_sentence(jobs: Table, makespan_s: float, placements: Table) -> str:
    """Which job finished last, if its run is most of the makespan; else empty.

    Then another policy can hardly shorten the makespan, except by placing this job better.
    """
    last = int(np.argmax(jobs["finish_s"]))
    ran_s = float(jobs["run_s"][last])
    if not is_most_of_the_makespan(ran_s, makespan_s):
        return ""
    times = times_as_long(ran_s / float(jobs["alone_s"][last]))
    makespan = f"{percent(ran_s / makespan_s)} % of the makespan"
    return (
        f"Job {_which(jobs, last)} finished last. It ran for {makespan}, "
        f"{times} in isolation{_as_submitted(jobs, last, placements)}{_slowed(jobs, last)}."
    )


def _which(jobs: Table, row: int) -> str:
    return job_text(str(jobs["job_id"][row]), str(jobs["model"][row]), int(jobs["gpus"][row]))


def _as_submitted(jobs: Table, row: int, placements: Table) -> str:
    """Say that `alone_s` is for the submitted GPUs and batch, if the job ran with others."""
    held = np.asarray(placements["job_id"], str) == str(jobs["job_id"][row])
    if "batch" in placements and np.asarray(placements["batch"])[held].any():
        return " with the GPUs and the batch that it was submitted with"
    if any(np.asarray(placements["gpus"])[held] != jobs["gpus"][row]):
        return " with the GPUs that it was submitted with"
    return ""


_LEAST_SLOWED = 0.05
"""A cost that takes a smaller share of a job's run is not mentioned."""


def is_notable(cost_s: float, ran_s: float) -> bool:
    """Whether a cost took enough of a job's run to be mentioned."""
    return cost_s >= _LEAST_SLOWED * ran_s > 0


def _slowed(jobs: Table, row: int) -> str:
    """How much slow units lengthened a job's run; empty if hardly at all."""
    slowed_s = float(jobs["slowed_s"][row]) if "slowed_s" in jobs else 0.0
    if not is_notable(slowed_s, float(jobs["run_s"][row])):
        return ""
    return f"; slow units cost it {time_text(slowed_s)}"


# -- results that no machine would give ----------------------------------------------

MOST_MEASURED = 0.82
"""The largest share of a step that communication took on measured machines: ResNet-18 at batch 32
on two T4 machines, 5.7 times its step on one GPU (docs/fidelity.md)."""

SPREAD_TOO_FAR = 10.0
"""A job that runs more than this many times as long as isolated deserves a sentence: on measured
machines no placement took more than 5.7 times as long as one GPU (docs/fidelity.md)."""


def communication_warning(share: float, calibration: str = "", fabric: str = "") -> str:
    """What to do about a share of communication above any measured one; else empty.

    `share` is the GPU time of communication over all GPU time that jobs held. The `calibration` and
    `fabric` of the run are not proposed again.
    """
    if share <= MOST_MEASURED:
        return ""
    measured = " or ".join(f"--fabric {name}" for name in ("t4", "a100") if name != fabric)
    advice = f"Compare with a measured fabric ({measured})"
    if calibration == "none":
        advice += ", and look at which models cause it (jobs.parquet: comm_s, run_s)"
    else:
        advice += " and without the calibration (--calibration none)"
    # With two decimals, a share just above the maximum does not print as the maximum.
    places = 0 if round(100 * share) > round(100 * MOST_MEASURED) else 2
    return (
        f"No measured machine communicates for {100 * share:.{places}f} % of its time (T4: at most "
        f"{100 * MOST_MEASURED:.{places}f} %). {advice}."
    )


def slowest_job_sentence(jobs: Table, placements: Table, *, spreads: bool = True) -> str:
    """Which job ran far longer than isolated, and the main cause; empty if none did.

    If the main cause is communication that closer GPUs would have saved, the sentence names
    policies that avoid it, unless the run's own policy does (`spreads`, as in `spreads_jobs`).
    """
    ratios = np.asarray(jobs["run_s"]) / np.asarray(jobs["alone_s"])
    slowest = int(np.argmax(ratios))
    if not ratios[slowest] > SPREAD_TOO_FAR:
        return ""
    told = (
        f"Job {_which(jobs, slowest)} ran {short(float(ratios[slowest]))} times as long as isolated"
    )
    if _REMOTE in str(jobs["source"][slowest]):
        return f"{told}; it read tables over the network between regions."
    cost_s = {
        what: float(jobs[column][slowest]) for column, what in _COSTS.items() if column in jobs
    }
    run_s, alone_s = (float(jobs[column][slowest]) for column in ("run_s", "alone_s"))
    closest_s = max(0.0, alone_s - float(jobs["ideal_s"][slowest]))
    spread_s = float(jobs["comm_s"][slowest]) - closest_s - cost_s.get(_COSTS[_CONTENDED], 0.0)
    if 2 * spread_s > run_s - alone_s:
        told += f", mostly spread over the level {_mostly_at(jobs['job_id'][slowest], placements)}"
        told += f"{_slowed(jobs, slowest)}."
        return f"{told} {_CLOSER}" if spreads else told
    most = max(cost_s, key=lambda what: cost_s[what])
    cost = f"; {most} cost it {time_text(cost_s[most])}" if is_notable(cost_s[most], run_s) else ""
    return f"{told}{cost}."


_CLOSER = (
    "Policies that wait for GPUs close together avoid that: dally, or the option "
    "placement=consolidate-or-wait."
)

_REMOTE = "remote-data"
"""Marks stays that read tables of other regions, in column `source` (`data/remote_reads.py`)."""

_CONTENDED = "contention_lost_s"

_COSTS = {
    "slowed_s": "slow units",
    "lost_s": "work lost with its GPUs",
    "stalled_s": "starts, restarts and moves",
    "checkpoint_s": "checkpoints",
    _CONTENDED: "other jobs on links or its own full uplinks",
}
"""Column of `jobs.parquet` -> what lengthens a run, apart from its placement."""


def _mostly_at(job: str, placements: Table) -> str:
    """The level over which a job was spread for the longest time."""
    held_s = np.asarray(placements["end_s"]) - np.asarray(placements["start_s"])
    by_level: dict[str, float] = {}
    for name, level, each_s in zip(
        placements["job_id"], placements["level"], held_s.tolist(), strict=True
    ):
        if name == job:
            by_level[str(level)] = by_level.get(str(level), 0.0) + each_s
    return max(by_level, key=lambda name: by_level[name])


MORE_GPUS = ("racks", "machines_per_rack", "gpus_per_machine")
MORE_HELPS = (*MORE_GPUS, "bandwidth")
FEWER_HELPS = ("jobs",)

MUCH_WORSE = 1.5
"""The order of machines alone moves a makespan by a third (studies/dally-paper/tables.md, machine
order), so a smaller factor may be noise."""

_SIZE = re.compile(r"([x+]?)(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(.*)")

_UNCHANGED = {"x": 1.0, "+": 0.0}
"""Sign of a relative value -> the number that changes nothing."""

Point: TypeAlias = Mapping[str, str]
"""Setting -> its value as the user wrote it. A missing setting has the scenario's value."""


def more_is_worse(
    metric: str, means: Sequence[tuple[Point, float]], *, once: bool = False, spreads: bool = True
) -> str:
    """Where more GPUs, faster links or fewer jobs made a metric much worse; empty if nowhere.

    `metric` is its name in words, and `means` has its mean at each point. Only the worst pair is
    reported. With `once`, each point is a single run, which may be a rare catastrophe, so the
    sentence gives no cause. `spreads` is as in `spreads_jobs`.
    """
    worst, told, adds_gpus = MUCH_WORSE, "", False
    for less, before in means:
        for more, after in means:
            if after > worst * before > 0 and _has_more(more, less):
                worst = after / before
                adds_gpus = _adds_gpus(more, less)
                told = (
                    f"With {_told(more, less)} the {metric} is {short(worst)} times that "
                    f"{_told(less, more, 'with ')}"
                )
    if not told or once:
        return told and f"{told}, in one run each."
    if not (adds_gpus and spreads):
        return f"{told}."
    return f"{told}: where more GPUs are free, jobs spread over more links. {_CLOSER}"


def spreads_jobs(backend: str, policy: str, options: Mapping[str, Any]) -> bool:
    """Whether placement affects run times and the policy does not wait for close GPUs."""
    host = options.get("host", {})
    waits = any(one.get("placement") == "consolidate-or-wait" for one in (options, host))
    return backend != "none" and not waits and "dally" not in policy


def _differ(more: Point, less: Point) -> list[str]:
    return [key for key in {**more, **less} if more.get(key) != less.get(key)]


def _adds_gpus(more: Point, less: Point) -> bool:
    return any(key.rpartition(".")[2] in MORE_GPUS for key in _differ(more, less))


def _has_more(more: Point, less: Point) -> bool:
    """Whether two points differ, and only in settings that should help the first."""
    differ = _differ(more, less)
    return bool(differ) and all(_helps(key, less.get(key), more.get(key)) for key in differ)


def _helps(setting: str, before: str | None, after: str | None) -> bool:
    """Whether a change of a setting should help. None is the scenario's own value."""
    name = setting.rpartition(".")[2]
    found = [_SIZE.fullmatch(value or "") for value in (before, after)]
    written = [size for size in found if size]
    if name not in MORE_HELPS + FEWER_HELPS or len({(size[1], size[3]) for size in written}) != 1:
        return False
    as_given = _UNCHANGED.get(written[0][1], nan)
    low, high = (float(size[2]) if size else as_given for size in found)
    return low < high if name in MORE_HELPS else high < low


def _told(point: Point, other: Point, before: str = "") -> str:
    """The settings in which a point differs from another: `racks=4, bandwidth=x2`."""
    told = [
        f"{key.rpartition('.')[2]}={value}"
        for key, value in point.items()
        if other.get(key) != value
    ]
    return f"{before}{', '.join(told)}" if told else "as given"


# -- contention ----------------------------------------------------------------------

_ROUNDED = 1.005
"""An oversubscription up to this comes from rounded bandwidths and counts as 1:1."""


def nothing_lost(tree: ClusterTree, fabric: Fabric) -> str:
    """Why jobs lost nothing to each other on the links of a cluster."""
    ratios = {
        level.name: most_oversubscribed(tree, fabric, index)
        for index, level in enumerate(fabric.levels)
        if level.uplink is not None
    }
    words = ", ".join(f"{name} {ratio_text(ratio)}" for name, ratio in ratios.items())
    if max(ratios.values(), default=0.0) <= _ROUNDED:
        outermost = fabric.levels[-2].name
        return (
            "Jobs lost nothing to each other on links: every uplink carries all that its GPUs can "
            f"send at once ({words}); --set fabric.{outermost}.oversubscription=4 makes one narrow."
        )
    return f"Jobs lost nothing to each other on links: no uplink was ever full ({words})."


def no_pair_met(fabric: Fabric) -> str:
    """Why jobs lost nothing to each other, if a table of pairs says what they lose.

    Such a table does not depend on demand, so oversubscription explains nothing.
    """
    inner = fabric.levels[:-1]
    stated = [level.name for level in inner if level.uplink is not None]
    silent = [level.name for level in inner if level.uplink is None]
    advice = f"; --set fabric.{silent[-1]}.oversubscription=1 states one" if silent else ""
    return (
        "Jobs lost nothing to each other on links: no two that the table slows met on an uplink "
        f"that fabric {fabric.name} states ({', '.join(stated) or 'none'}){advice}."
    )


# -- run times that the trace records ------------------------------------------------
#
# A recorded run time counts as compute time, and a run adds communication. Communication is a share
# of the compute time, whatever step it is cut into. So a model that hardly computes runs many times
# as long as recorded.

MUCH_LONGER = 10.0
"""A job that runs more than this many times as long as recorded causes a warning. This is a choice:
no job of the shipped traces comes close."""


class RunToRecorded(NamedTuple):
    """`run_s / ideal_s` of the jobs: the median, the largest, and the job and model of that."""

    median: float
    largest: float
    job: str
    model: str

    @property
    def much(self) -> bool:
        """Whether the largest is beyond what communication explains."""
        return self.largest > MUCH_LONGER

    def sentence(self) -> str:
        """The comparison in one sentence, with a remedy if the largest ratio is suspicious."""
        text = (
            f"Jobs run {short(self.median)} x their recorded time (median), "
            f"{short(self.largest)} x at most (job {shortened(self.job)}, {shortened(self.model)})"
        )
        if not self.much:
            return f"{text}."
        return (
            f"{text}: the recorded time counts as compute time, and communication is added as the "
            "model's share of it; check the job's model (--models), its GPUs and the fabric, or "
            "state its iterations and compute_s."
        )


def run_to_recorded(jobs: Table) -> RunToRecorded:
    """Compare run times of jobs whose `ideal_s` is a recorded time. Ties go to the first job."""
    ratios = np.asarray(jobs["run_s"]) / np.asarray(jobs["ideal_s"])
    most = int(np.argmax(ratios))
    return RunToRecorded(
        percentile(ratios, 50),
        float(ratios[most]),
        str(jobs["job_id"][most]),
        str(jobs["model"][most]),
    )
