"""Prints the figures of a run: those that people ask for first, then the others in groups.

Each time has the unit that suits it, so names have none: `jct_mean` is `jct_mean_s` of
`summary.json`, which has all times in seconds. `artist explain` knows both names.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any

from artist.cli.output import print_facts, print_text
from artist.config import Scenario
from artist.errors import one_line
from artist.results.caveats import (
    FREE_PREEMPTIONS,
    cancelled_sentence,
    communication_warning,
    no_pair_met,
    nothing_lost,
    preempts_freely,
)
from artist.results.terms.chief_metrics import FIRST_OF_A_RUN, GROUPS_OF_A_RUN
from artist.results.terms.columns import Table
from artist.results.terms.glossary import find
from artist.results.terms.number_text import (
    FEW_DAYS,
    HOUR,
    DisplayUnit,
    gpu_hours_text,
    percent,
    short,
    time_text,
    time_unit,
)
from artist.run import asked_fabric, build_calibration, build_cluster, build_fabric, open_backend
from artist.run.hardware import cluster_of
from artist.units import counted

_REPEATS = {"comm_kept_mean": "comm_time_mean", "compute_kept_mean": "compute_time_mean"}
"""Figure -> another that it equals unless jobs lose iterations. Shown only where they differ."""

# In the title, or easily confused: `communication` weights jobs differently.
_NOT_SHOWN = ("policy", "trace", "gpus", "jobs_total", "comm_time_share")

_LEAST_SLOWDOWN = 0.00005
"""A smaller slowdown would be printed as 0.00 %."""

_FEW_HOURS = 0.1
"""Job-hours below which the loss to contention is given in a smaller unit."""

_ON_LINKS = "other jobs on links or to their own full uplinks"
"""What jobs lose time to. A job that fills its own uplinks is slowed even alone (decision 20)."""

_MOST_TENANTS = 8
"""Further tenants are counted, not named; `tenants.parquet` has all."""


def print_summary(summary: Mapping[str, Any]) -> None:
    """Print the first figures, then each group with its heading."""
    figures = {
        name: value for name, value in summary.items() if value != "" and name not in _NOT_SHOWN
    }
    if "contention" not in summary:
        figures.pop("iteration_slowdown_mean", None)  # without contention it means nothing
    figures["communication"] = communicating_share(summary)
    unit = time_unit(summary["jct_p95_s"], days=FEW_DAYS)
    title = f"{summary['policy']} on {summary['trace']}, {counted(summary['gpus'], 'GPU')}"
    print_facts(title, _rows({name: figures.pop(name) for name in FIRST_OF_A_RUN}, unit))
    for heading, group in _groups(figures):
        print_facts(heading, _rows(group, unit))


def communicating_share(summary: Mapping[str, Any]) -> float:
    """Communication as a share of the GPU time that jobs held."""
    return float(summary["gpu_communicating_share"] / summary["gpu_allocated_share"])


def _groups(figures: dict[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Heading and figures of each group that is not empty. A figure is in the first that fits."""
    for heading, starts in GROUPS_OF_A_RUN.items():
        group = {name: value for name, value in figures.items() if name.startswith(starts)}
        for name in group:
            del figures[name]
        if group:
            yield heading, group


def _rows(figures: Mapping[str, Any], unit: DisplayUnit) -> dict[str, Any]:
    rows = {name.removesuffix("_s"): _shown(name, value, unit) for name, value in figures.items()}
    return {
        name: value for name, value in rows.items() if value != rows.get(_REPEATS.get(name, ""))
    }


def _shown(name: str, value: Any, unit: DisplayUnit) -> Any:
    """A figure in the unit that people use. The times of jobs share a unit."""
    if isinstance(value, str) or name == "seed":
        return str(value)
    term = find(name)
    if name == "communication" or name.endswith("_share"):
        return f"{100 * value:.1f} %"
    if term is None or term.unit not in ("s", "GPU-s"):
        return value
    if term.unit == "GPU-s":
        return gpu_hours_text(value)
    of_a_job = name.startswith(GROUPS_OF_A_RUN["a job's time"])
    return time_text(value, unit if of_a_job else None)


# -- sentences -----------------------------------------------------------------------


def communication_sentence(summary: Mapping[str, Any], *, remote: bool = False) -> str:
    """Communication's share of the GPU time that jobs held, and how `comm_time_share` differs."""
    held, communicating = (summary[f"gpu_{part}_share"] for part in ("allocated", "communicating"))
    where = "inside machines and between them"
    if remote:
        where += ", and reading tables from other regions"
    return (
        f"Jobs held {100 * held:.1f} % of the cluster's GPU time. Of that, "
        f"{100 * communicating / held:.1f} % went into communication that computing does not "
        f"hide, {where}. Of the time in which jobs computed or "
        "communicated, not weighted by GPUs, it is "
        f"{100 * summary['comm_time_share']:.1f} % (comm_time_share)."
    )


def print_sentences(summary: Mapping[str, Any], scenario: Scenario) -> None:
    """Print what a newcomer looks for, below the table: costs, bounds and caveats in sentences."""
    if cancelled := cancelled_sentence([summary]):
        print_text(cancelled)
    remote = scenario.data_options.get("remote") == "slow"
    print_text(communication_sentence(summary, remote=remote))
    share = communicating_share(summary)
    if warning := communication_warning(share, summary["calibration"], scenario.fabric):
        print_text(warning)
    if preempts_freely([summary]):
        print_text(FREE_PREEMPTIONS)
    bound_s, makespan_s = summary["makespan_bound_s"], summary["makespan_s"]
    if bound_s > 0:  # jobs of nanoseconds have none
        print_text(
            f"No policy can finish these jobs in less than {time_text(bound_s)} (lower bound); "
            f"this one took {makespan_s / bound_s:,.2f} times as long."
        )
    if "contention" in summary:
        print_text(contention_sentence(summary, scenario))
    if "gpu_shared_share" in summary:
        print_text(
            f"Several jobs shared a GPU in {100 * summary['gpu_shared_share']:.1f} % of the "
            "cluster's GPU time."
        )
    if "speeds" in summary and summary.get("reads_gpu_kinds") == "no":
        print_text(
            f"Policy {summary['policy']} does not choose among kinds of GPUs: a job gets whatever "
            "is free of those that it accepts, fast or slow; a gang on several runs as fast as "
            "on the slowest."
        )
    if "jobs_measured" in summary:
        print_text(_measured_sentence(summary))
    if "training_time_ratio_mean" in summary:
        print_text(_failures_sentence(summary))
        if "slowed_gpu_s" in summary or summary["outages"]:
            print_text(_in_jct(summary, scenario))
    if lacking := summary["models_not_calibrated"]:
        print_text(_lacking(scenario, lacking.split()))


def tenants_sentence(tenants: Table, finished: Table) -> str:
    """The mean wait by tenant, the longest first; empty if no job finished.

    `finished` is the table of jobs without cancelled ones. A tenant without a job there has no
    mean.
    """
    rows = zip(tenants["tenant"], tenants["queue_delay_mean_s"], strict=True)
    some = set(finished["tenant"])
    waits = sorted((-round(float(wait_s), 3), str(name)) for name, wait_s in rows if name in some)
    if not waits:
        return ""
    unit = time_unit(-waits[0][0], days=FEW_DAYS)
    told = [f"{one_line(name, 40)} {time_text(-wait_s, unit)}" for wait_s, name in waits]
    rest = len(told) - _MOST_TENANTS
    more = f" and {counted(rest, 'other tenant')} less" if rest > 0 else ""
    return f"Mean wait of a job by tenant: {', '.join(told[:_MOST_TENANTS])}{more}."


def contention_sentence(summary: Mapping[str, Any], scenario: Scenario) -> str:
    """What jobs lost on links, or why they lost nothing."""
    lost_h = summary["contention_lost_job_h"]
    if not lost_h:
        fabric = build_fabric(scenario)
        if scenario.contention.startswith("table:"):
            return no_pair_met(fabric)
        return nothing_lost(build_cluster(scenario, fabric), fabric)
    mean, p95 = (summary[f"contention_slowdown_{which}"] for which in ("mean", "p95"))
    lost = f"{lost_h:,.{1 if lost_h >= 10 else 3}f} job-hours"
    if lost_h < _FEW_HOURS:
        lost = f"{'less than 1 s' if lost_h * HOUR < 1 else time_text(lost_h * HOUR)} in all"
    own = summary.get("contention_own_job_h", 0.0) / lost_h
    to = f"{_ON_LINKS} ({percent(own)} % to their own)" if own else _ON_LINKS
    if max(mean, p95) < _LEAST_SLOWDOWN:
        return (
            f"Jobs lost {lost} to {to}; each ran less than "
            f"{100 * _LEAST_SLOWDOWN:g} % longer, on average and at the 95th percentile of jobs "
            f"(contention {summary['contention']})."
        )
    return (
        f"Jobs lost {lost} to {to}; each "
        f"ran {100 * mean:.2f} % longer on average, {100 * p95:.2f} % at the 95th percentile "
        f"of jobs (contention {summary['contention']})."
    )


def _measured_sentence(summary: Mapping[str, Any]) -> str:
    """Which part of the run the figures cover."""
    start, end = (time_text(summary[f"measured_{edge}_s"]) for edge in ("from", "until"))
    return (
        f"Measured from {start} to {end}: {counted(summary['jobs_measured'], 'job')} of that time, "
        "and GPU time up to the end of it. Makespan, failures and tenants are those of the whole "
        "run."
    )


def _lacking(scenario: Scenario, models: list[str]) -> str:
    """The sentence on models that the calibration lacks."""
    from artist.calibrate.asked_otherwise import lacking_sentence

    fabric = build_fabric(scenario)
    calibration = build_calibration(scenario, fabric)
    assert calibration is not None  # or no model would be missing
    asked = asked_fabric(scenario, fabric)
    return lacking_sentence(models, calibration, asked, open_backend("analytical"))


def intervals_words(least_s: float, most_s: float) -> str:
    """Work between two checkpoints: `every 3.07 to 11.1 h of work`, in the unit of the longest."""
    scale_s, unit = time_unit(most_s)
    least, most = short(least_s / scale_s), short(most_s / scale_s)
    return f"every {least if least == most else f'{least} to {most}'} {unit} of work"


def chosen_intervals_sentence(scenario: Scenario, summary: Mapping[str, Any]) -> str:
    """The intervals that `checkpoint.interval_s=auto` chose; empty if they are given."""
    from artist.failures.failures_of_run import open_failures

    tree = build_cluster(scenario, build_fabric(scenario))
    failures = open_failures(scenario.failures, scenario.checkpoint, tree)
    if not failures.chooses or failures.checkpoint is None:
        return ""
    least_s, most_s = (summary.get(f"checkpoint_interval_{end}_s") for end in ("min", "max"))
    how = failures.checkpoint.interval_s
    if least_s is None or most_s is None:
        if summary["checkpoint_gpu_s"] > 0:  # at intervals that the jobs state
            return ""
        return f"Checkpoints ({how}): none, since nothing fails at random."
    if not most_s:
        return ""
    return (
        f"Checkpoints ({how}): {intervals_words(least_s, most_s)}, by the failures of a job's GPUs."
    )


def _in_jct(summary: Mapping[str, Any], scenario: Scenario) -> str:
    """The command that shows how failures or slow units delay jobs."""
    fails = summary["outages"] > 0 or summary["checkpoint_gpu_s"] > 0
    slows = "slowed_gpu_s" in summary
    without, copy = ("COPY", " (COPY: that file without slow)") if fails and slows else ("none", "")
    begin = "How much later jobs finish because of that" if slows else "What failures do to JCT"
    return (
        f"{begin}: artist compare with the same settings, "
        f"--policies {scenario.policy} --vary failures={without},{scenario.failures}{copy}."
    )


def _failures_sentence(summary: Mapping[str, Any]) -> str:
    """What failures, checkpoints and slow units cost."""
    lost_h, saving_h = (summary[f"{key}_gpu_s"] / 3600 for key in ("lost", "checkpoint"))
    slow = ""
    if "slowed_gpu_s" in summary:
        slow = f"Slow units cost {short(summary['slowed_gpu_s'] / 3600)} GPU-hours of computing"
        if not summary["outages"] and not saving_h:
            return f"{slow}; nothing failed."
        slow += ". "
    return slow + (
        f"{counted(summary['outages'], 'outage')}; failures stopped jobs "
        f"{counted(summary['failures'], 'time')} and cost "
        f"{short(lost_h)} GPU-hours of work, checkpoints {short(saving_h)}. Of the time in which "
        f"a job held GPUs, {100 * summary['training_time_ratio_mean']:.1f} % was productive on "
        "average (training_time_ratio_mean)."
    )


MOST_REGIONS = 8
"""Further regions are counted, not named."""


def regions_sentence(scenario: Scenario, jobs: Table, placements: Table) -> str:
    """`Jobs by region: north ran 13 (mean wait 2 h), ...`; empty if the cluster has no regions.

    `jobs` and `placements` are the tables of the run. A job that was in several regions counts in
    each.
    """
    tree, cluster = build_cluster(scenario, build_fabric(scenario)), cluster_of(scenario)
    if not tree.wide_area or cluster is None:
        return ""
    level = tree.root - 1
    names = cluster.names[tree.level_names[level]]
    ran: dict[int, set[str]] = defaultdict(set)
    for job, text in zip(placements["job_id"], placements["placement"], strict=True):
        for part in text.split():
            ran[tree.ancestor(0, int(part.partition(":")[0]), level)].add(job)
    wait_s = dict(zip(jobs["job_id"], map(float, jobs["queue_delay_s"]), strict=True))
    means_s = {one: round(fmean(wait_s[job] for job in sorted(ran[one])), 3) for one in ran}
    unit = time_unit(max(means_s.values(), default=0.0), days=FEW_DAYS)
    told = []
    for one, name in enumerate(names[:MOST_REGIONS]):
        wait = f" (mean wait {time_text(means_s[one], unit)})" if one in ran else ""
        told.append(f"{one_line(name, 40)} ran {len(ran[one]):,}{wait}")
    rest = len(names) - len(told)
    more = f" and {counted(rest, 'other region')} the rest" if rest > 0 else ""
    times = Counter(itertools.chain.from_iterable(ran.values()))
    several = sum(count > 1 for count in times.values())
    also = f"; {counted(several, 'job')} ran in several" if several else ""
    return f"Jobs by region: {', '.join(told)}{more}{also}."
