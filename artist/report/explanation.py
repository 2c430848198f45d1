"""Why the runs of a setting came out as they did, in a few sentences after the verdict.

They name the world, the share of communication, and what makes most of the difference between the
policy with the lowest average JCT and the next, and the one with the highest: the cause of
waiting, or the level of placements, in which the two differ most. The sentences are in
`templates/explanation.html.j2`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from artist.report.figures_of_jobs import difference, gpu_hours_by_level
from artist.report.grouping import Setting, Study
from artist.report.quantities import Quantity
from artist.report.reader import RecordedRun
from artist.report.templating import section
from artist.report.wait_causes import half_of_the_waiting, waited
from artist.results.terms.chief_metrics import parts_of
from artist.results.terms.number_text import time_text
from artist.results.waiting.job_story import cause_words
from artist.run.world import busiest_model, window_words

if TYPE_CHECKING:
    from markupsafe import Markup

_LEAST = 0.005
"""Policies whose average JCT differs by less are not compared."""
_TOLD = 0.05
"""A part that makes a smaller share of the difference is not named."""
_EXPLAINED = 1 / 3
"""A part that makes at least this share of the difference is explained."""
_SPREAD = {
    "machine": "Jobs inside one machine",
    "rack": "Jobs over several machines of a rack",
    "network": "Jobs over several racks",
}
"""Level of a placement -> the jobs that are placed there, where racks make up the cluster."""
_MOST_POLICIES = 4
"""Of more policies, only the two that communicate least and most are named."""
_ROUNDING = 1e-9
"""A smaller share of the GPU time is a rounding error."""


def explanation(study: Study) -> Markup:
    """A paragraph per setting. The page's script shows the one of the chosen setting."""
    return section(
        "explanation.html",
        settings=[_of_setting(study, setting) for setting in study.settings],
        several=len(study.settings) > 1,
    )


def _of_setting(study: Study, setting: Setting) -> dict[str, Any]:
    """The facts of the text about one setting."""
    runs = [run for replicates in setting.runs.values() for run in replicates.values()]
    shares = {policy: _communication(list(some.values())) for policy, some in setting.runs.items()}
    if len(shares) > _MOST_POLICIES:
        ends = (min(shares, key=lambda one: shares[one]), max(shares, key=lambda one: shares[one]))
        shares = {policy: shares[policy] for policy in ends}
    return {
        "setting": setting,
        "worlds": list(dict.fromkeys(_world(run) for run in runs)),
        "windows": list(
            dict.fromkeys(_window(run) for run in runs if "jobs_measured" in run.summary)
        ),
        "shares": list(shares.items()),
        "all_named": len(shares) == len(setting.runs),
        "busiest": _busiest(runs),
        "contrasts": list(_contrasts(study, setting)),
    }


def _world(run: RecordedRun) -> str:
    """The run's fabric and calibration, and whether jobs compete on links and what fails."""
    known = run.manifest.get("world")
    words = known if isinstance(known, str) and known else f"fabric {run.scenario.get('fabric')}"
    contention = run.scenario.get("contention", "none")
    compete = f"jobs compete on links ({contention})" if run.contended else ""
    failures = run.scenario.get("failures", "none")
    fails = "" if failures == "none" else f"; failures: {failures}"
    return f"{words}; {compete or 'jobs do not compete on links'}{fails}"


def _window(run: RecordedRun) -> str:
    """The part of a run that its summary is about; empty if it is all of it."""
    if "measured_from_s" not in run.summary:
        return ""
    whole = run.scenario.get("measure_until_s") is None
    until_s = None if whole else run.metric("measured_until_s")
    return window_words(run.scenario.get("measure_from_s") or 0.0, until_s)


def _communication(runs: Sequence[RecordedRun]) -> float:
    """The share of the GPU time that jobs held which communication took, mean over runs."""
    shares = [
        run.metric("gpu_communicating_share") / (run.metric("gpu_allocated_share") or 1.0)
        for run in runs
    ]
    mean = float(np.mean(shares))
    # GPU time is counted in whole units, and their remainder is not communication.
    return mean if mean > _ROUNDING else 0.0


def _busiest(runs: Sequence[RecordedRun]) -> str:
    """Which model makes most of the communication of all runs."""
    return busiest_model({
        "model": [model for run in runs for model in run.jobs.text["model"]],
        **{
            key: np.concatenate([run.jobs[key] for run in runs])
            for key in ("comm_s", "gpus", "gpus_min", "gpus_max")
        },
    })  # fmt: skip


# -- the lowest average JCT beside the next and the highest ---------------------------


def _contrasts(study: Study, setting: Setting) -> Iterator[dict[str, Any]]:
    """The differences of the policy with the lowest average JCT from the next and the highest.

    None if fewer than two policies share a replicate, if they hardly differ, or if runs cancelled
    jobs.
    """
    groups = setting.comparable()
    if not groups or setting.cancelled:
        return
    shared = setting.shared_by(groups[0])
    runs = {policy: [setting.runs[policy][key] for key in shared] for policy in groups[0]}
    means = {p: float(np.mean([run.metric("jct_mean_s") for run in r])) for p, r in runs.items()}
    low, *others = sorted(means, key=lambda policy: means[policy])
    for high in dict.fromkeys((others[0], others[-1])):
        gap_s = means[high] - means[low]
        if gap_s > _LEAST * means[high]:
            yield {"low": low, "high": high} | _difference(study, gap_s, runs[low], runs[high])


def _difference(
    study: Study, gap_s: float, low: Sequence[RecordedRun], high: Sequence[RecordedRun]
) -> dict[str, Any]:
    """The parts that a difference of average JCT consists of, and what explains the larger ones."""
    told = parts_of(run.summary for run in (*low, *high))
    seconds = dict(zip(told, difference(high, low, told), strict=True))
    parts = sorted(seconds, key=lambda part: -abs(seconds[part]))
    unit = study.units[Quantity.JCT]
    return {
        "gap": time_text(gap_s, unit),
        "parts": [
            (part, time_text(abs(seconds[part]), unit), seconds[part] > 0)
            for part in parts
            if abs(seconds[part]) >= _TOLD * gap_s
        ],
        "facts": [
            fact
            for part in parts
            if seconds[part] >= _EXPLAINED * gap_s
            if part in _FACTS
            for fact in _FACTS[part](study, low, high)
        ],
    }


def _waiting(
    study: Study, low: Sequence[RecordedRun], high: Sequence[RecordedRun]
) -> Iterator[dict[str, Any]]:
    """The cause of waiting that differs most per job, and how few jobs account for the waiting."""
    ours, theirs = _per_job(high), _per_job(low)
    if not ours:
        return
    cause = max(ours, key=lambda one: ours[one] - theirs.get(one, 0.0))
    unit = study.units[Quantity.JCT]
    more, less = ours[cause], theirs.get(cause, 0.0)
    yield {
        "kind": "waiting",
        "cause": cause_words(cause),
        "times": [
            time_text(more, unit),
            time_text(less, unit) if less >= _LEAST * more else "next to none",
        ],
        "others_less": sum(ours.values()) - more < sum(theirs.values()) - less - _LEAST * more,
        "few": half_of_the_waiting(high[0]) if len(high) == 1 else "",
    }


def _per_job(runs: Sequence[RecordedRun]) -> Mapping[str, float]:
    """Seconds by cause, mean over the jobs of all runs."""
    total: Counter[str] = Counter()
    for run in runs:
        total.update(waited(run).by_cause)
    jobs = sum(run.jobs.count for run in runs)
    return {cause: length_s / jobs for cause, length_s in total.items()}


def _communicating(
    study: Study, low: Sequence[RecordedRun], high: Sequence[RecordedRun]
) -> Iterator[dict[str, Any]]:
    """The level of placements on which jobs spent more of their GPU time than under the other."""
    ours, theirs = _by_level(high), _by_level(low)
    level = max(ours, key=lambda one: ours[one] - theirs.get(one, 0.0))
    shares = [of.get(level, 0.0) for of in (ours, theirs)]
    if shares[0] - shares[1] >= _TOLD:
        spread = f"Placements on the level {level}"
        if not any(run.scenario.get(key) for run in (*low, *high) for key in ("cluster", "tree")):
            spread = _SPREAD.get(level, spread)
        yield {"kind": "level", "spread": spread, "shares": shares}


def _by_level(runs: Sequence[RecordedRun]) -> Mapping[str, float]:
    """The share of each level in the GPU time of all runs."""
    hours: Counter[str] = Counter()
    for run in runs:
        hours.update(gpu_hours_by_level(run))
    total = sum(hours.values()) or 1.0  # no stay takes any time in damaged runs
    return {level: value / total for level, value in hours.items()}


_FACTS = {"waiting": _waiting, "communication": _communicating}
"""Part of a completion time -> what explains that it differs."""
