"""The section that opens the page: the verdict on several policies, or what one run was like.

The sentences are in `templates/verdict.html.j2`; here are the facts that they state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from artist.report.grouping import Replicate, Setting, Study
from artist.report.packing import alone_column, slowdowns
from artist.report.quantities import in_words
from artist.report.reader import Numbers, RecordedRun
from artist.report.templating import section
from artist.report.verdict_sentences import best_sentence, catastrophe_sentence, family_words
from artist.report.wait_causes import causes_in_words, half_of_the_waiting
from artist.results.caveats import is_most_of_the_makespan, is_notable, times_as_long
from artist.results.statistics.best_policy import Best, Measured, bests
from artist.results.statistics.catastrophes import far_off
from artist.results.statistics.compare_values import (
    LEAST_REPLICATES,
    MORE,
    NO_DIFFERENCE,
    PERMUTATIONS,
    TOO_FEW,
    kind_of,
)
from artist.results.statistics.replicate_means import are_geometric
from artist.results.terms.chief_metrics import HEADLINES
from artist.results.terms.number_text import NO_DAYS, listed, time_text, time_unit
from artist.units import counted

if TYPE_CHECKING:
    from markupsafe import Markup

_MUCH_LONGER = 1.1
"""A job that ran this many times as long as isolated needs a reason."""

_AS_LONG = 1.005
"""A smaller slowdown prints as 1 with three digits."""

_DIFFERING = {
    "seeds": "each with a seed of its own",
    PERMUTATIONS: "each with the machines in another order (permutation)",
}
"""The kind of independent replicates (`kind_of`) -> how they differ."""


class _Compared(NamedTuple):
    """Policies of a setting that share replicates, or settings in place of policies."""

    setting: Setting
    policies: tuple[str, ...]

    @property
    def label(self) -> str:
        """The setting, and the policies if they are not all of its policies."""
        all_ = len(self.policies) == len(self.setting.runs)
        return self.setting.label + ("" if all_ else f" ({listed(self.policies)})")

    @property
    def replicates(self) -> list[Replicate]:
        """Those that all of the policies have."""
        return self.setting.shared_by(self.policies)


def verdict_section(study: Study) -> Markup:
    """Heading and sentences."""
    if len(study.runs) == 1:
        return section("verdict.html", kind="one run", **_one_run(study, study.runs[0]))
    policies, settings = (
        [_Compared(setting, some) for setting in each for some in setting.comparable()]
        for each in (study.settings, study.settings_as_policies())
    )
    cancelled = any(setting.cancelled for setting in study.settings)
    if cancelled or not (policies or settings):
        ranges = list(_ranges(study))
        return section(
            "verdict.html", kind="nothing to compare", policies=study.policies, ranges=ranges,
            cancelled=cancelled,
        )  # fmt: skip
    what = "policies" if policies else "settings"
    return section("verdict.html", kind="several", **_several(study, policies or settings, what))


def _several(study: Study, compared: Sequence[_Compared], what: str) -> dict[str, Any]:
    """The best policy, or value of another setting, in each metric, and how sure that is."""
    measured = [_measured(one, metric) for metric in HEADLINES for one in compared]
    judged = bests(measured)
    several = len({one.setting.index for one in compared}) < len(compared)
    sentences = [best_sentence(best, in_words(study, best.metric, best.value)) for best in judged]
    labels = [one.label for _ in HEADLINES for one in compared]
    counts = [len(one.replicates) for one in compared]
    pairs = f"all pairs of {what}, on these metrics"
    pairs += ", in all settings" if what == "policies" and len(study.settings) > 1 else ""
    return {
        "what": what,
        "policy": study.policies[0],
        "noun": "groups that share replicates" if several else "settings",
        "chief": [
            (name, _of_metric([best for best in judged if best.metric == metric], sentences[place]))
            for place, (metric, name) in enumerate(HEADLINES.items())
        ],
        "each": list(zip(labels, sentences, strict=True))
        if len(labels) > len(HEADLINES) or (what == "policies" and len(study.settings) > 1)
        else [],
        "known": any(best.with_verdict(MORE, NO_DIFFERENCE) for best in judged),
        "certainty": _certainty(judged),
        "replicates": sorted({min(counts), max(counts)}),
        "differing": _DIFFERING[judged[0].kind],
        "equal": any(best.with_verdict(NO_DIFFERENCE) for best in judged),
        "means": _means(measured),
        "catastrophe": _catastrophe(study),
        "least": LEAST_REPLICATES,
        "family": family_words(max(best.family for best in judged), pairs),
        "apart": list(_apart(study)),
    }


def _measured(one: _Compared, metric: str) -> Measured:
    shared, runs = one.replicates, one.setting.runs
    values = {
        policy: [runs[policy][key].metric(metric) for key in shared] for policy in one.policies
    }
    return Measured(metric, values, shared)


def _means(measured: Sequence[Measured]) -> str:
    """Which kind of mean the sentences are about (`replicate_means.py`)."""
    each = [are_geometric(v for one in some.values.values() for v in one) for some in measured]
    if all(each):
        return "Geometric means"
    return "Geometric means (arithmetic where a value is 0)" if any(each) else "Arithmetic means"


def _catastrophe(study: Study) -> str:
    """The run that lies farthest above its replicates, if one is far off."""
    found = [
        (far.factor, metric, policy, [*runs.items()][far.at], kind_of([*runs]))
        for setting in study.settings
        for policy, runs in setting.runs.items()
        for metric in HEADLINES
        if (far := far_off([run.metric(metric) for run in runs.values()])) is not None
    ]
    if not found:
        return ""
    factor, metric, policy, (key, run), kind = max(found, key=lambda one: one[0])
    who = f"{policy} with seed {key[0]} and permutation {key[1]}"
    return catastrophe_sentence(who, metric, factor, f"more {kind}", run.name)


def _certainty(judged: Sequence[Best]) -> str:
    """How sure the replicates make the verdict on the best policies."""
    if all(len(best.exactly) == len(best.others) for best in judged):
        return "exact"
    if all(best.with_verdict(TOO_FEW) or not best.others for best in judged):
        return "too few"
    return "replicates"


def _of_metric(judged: Sequence[Best], sentence: str) -> dict[str, Any]:
    """Which policies are best in how many settings; for a single one, its sentence as `only`."""
    if len(judged) == 1:
        return {"only": sentence}
    few = all(best.with_verdict(TOO_FEW) or not best.others for best in judged)
    surely = Counter(best.policies[0] for best in judged if best.surely)
    return {
        "only": "",
        "count": len(judged),
        "wins": Counter(p for best in judged for p in best.policies if best.others).most_common(),
        "ties": any(len(best.policies) > 1 and best.others for best in judged),
        "equal": sum(not best.others for best in judged),
        "surely": None if few else surely.most_common(),
    }


def _apart(study: Study) -> Iterator[dict[str, Any]]:
    """The settings in which not all policies share replicates."""
    for setting in study.settings:
        groups = setting.comparable()
        others = [policy for policy in setting.runs if not any(policy in some for some in groups)]
        if groups and (others or len(groups) > 1):
            yield {"setting": setting.label, "groups": groups, "others": others}


def _ranges(study: Study) -> Iterator[tuple[str, list[str]]]:
    """The range of each metric over all runs."""
    for metric, name in HEADLINES.items():
        values = [run.metric(metric) for run in study.runs]
        ends = (in_words(study, metric, value) for value in (min(values), max(values)))
        yield name, list(dict.fromkeys(ends))


def _one_run(study: Study, run: RecordedRun) -> dict[str, Any]:
    """The facts of a single run."""
    waits = run.finished["queue_delay_s"]
    return {
        "run": run,
        "policy": study.policies[0],
        "words": partial(in_words, study),
        "summary": lambda metric: in_words(study, metric, run.metric(metric)),
        "against": "in isolation" if alone_column(run) == "alone_s" else "without communication",
        "held": _held_while_any_waited(run),
        "last": _last(run),
        "waited": {
            "jobs": int(np.count_nonzero(waits > 0)),
            "mean_s": float(waits.mean()),
            "jct_s": float(run.finished["jct_s"].mean()),
            "causes": causes_in_words(run),
            "few": half_of_the_waiting(run),
        },
        "worst": _worst(study, run),
    }


def _held_while_any_waited(run: RecordedRun) -> float:
    """The share of GPU time that jobs held while any job waited.

    0 if no job waited, or if metrics are of a part of the run.
    """
    if run.scenario.get("measure_from_s") or run.scenario.get("measure_until_s"):
        return 0.0
    rows = run.timeline
    waiting_s = np.diff(rows["time_s"]) * (rows["jobs_waiting"][:-1] > 0)
    whole_gpu_s = float(waiting_s.sum()) * run.metric("gpus")
    return float(waiting_s @ rows["gpus_held"][:-1]) / whole_gpu_s if whole_gpu_s > 0 else 0.0


def _last(run: RecordedRun) -> dict[str, Any]:
    """The job that finished last, with its share of the makespan if that is more than half."""
    row = int(np.argmax(np.where(_cancelled(run), 0.0, run.jobs["finish_s"])))
    ran_s, makespan_s = float(run.jobs["run_s"][row]), run.metric("makespan_s")
    alone_s = float(run.jobs[alone_column(run)][row])
    times = times_as_long(ran_s / alone_s)
    share = ran_s / makespan_s if is_most_of_the_makespan(ran_s, makespan_s) else 0.0
    spread = _spread(run, row) if ran_s >= _MUCH_LONGER * alone_s else None
    return {
        "row": row,
        "ran_s": ran_s,
        "times": times,
        "share": share,
        "spread": spread,
        "slowed": _slowed(run, row),
    }


def _cancelled(run: RecordedRun) -> Numbers:
    """Above 0 for each job that was cancelled."""
    return run.jobs.numbers.get("cancelled", np.zeros(run.jobs.count))


def _slowed(run: RecordedRun, row: int) -> tuple[str, float] | None:
    """The slow units that a job ran on, and by how much they lengthened its computing."""
    slowed_s = float(run.jobs["slowed_s"][row]) if "slowed_s" in run.jobs.numbers else 0.0
    if not is_notable(slowed_s, float(run.jobs["run_s"][row])):
        return None
    stays = zip(run.placements.text["job_id"], run.placements.text["slow_unit"], strict=True)
    job = run.jobs.text["job_id"][row]
    units = list(dict.fromkeys(unit for name, unit in stays if unit and name == job))
    return listed(units), slowed_s


def _spread(run: RecordedRun, row: int) -> tuple[str, float] | None:
    """Over how many racks or machines a job ran longest, and for how long; None: in one machine."""
    rows, job = run.placements, run.jobs.text["job_id"][row]
    spans: dict[str, float] = {}
    for index, name in enumerate(rows.text["job_id"]):
        if name == job:
            shape = rows.text["signature"][index]
            mark, noun = ("/", "rack") if "/" in shape else (",", "machine")
            if count := shape.count(mark):
                stay_s = float(rows["end_s"][index] - rows["start_s"][index])
                span = counted(count + 1, noun)
                spans[span] = spans.get(span, 0.0) + stay_s
    return max(spans.items(), key=lambda span: span[1]) if spans else None


def _worst(study: Study, run: RecordedRun) -> dict[str, Any] | None:
    """The job with the largest slowdown; None if no job took longer than isolated."""
    ratios = np.where(_cancelled(run), 0.0, slowdowns(run))
    row = int(np.argmax(ratios))
    if ratios[row] < _AS_LONG:
        return None
    return {
        "row": row,
        "slowdown": ratios[row],
        "jct_s": float(run.jobs["jct_s"][row]),
        "wait_s": float(run.jobs["queue_delay_s"][row]),
        "slowed": _slowed(run, row),
        "longest": _longest_wait(run, run.jobs.text["job_id"][row]),
    }


def _longest_wait(run: RecordedRun, job: str) -> dict[str, Any] | None:
    """When a job waited longest, and why; None if the run did not record it.

    Times have the unit that the reason uses.
    """
    waits = run.waits
    rows = [i for i, name in enumerate(waits.text["job_id"]) if name == job] if waits else []
    if waits is None or not rows:
        return None
    row = max(rows, key=lambda index: float(waits["wait_s"][index]))
    wait_s = float(waits["wait_s"][row])
    unit = time_unit(wait_s, days=NO_DAYS)
    return {
        "start": time_text(float(waits["start_s"][row]), unit),
        "took": time_text(wait_s, unit),
        "reason": waits.text["reason"][row].rstrip("."),
    }
