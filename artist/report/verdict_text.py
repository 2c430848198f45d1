"""The section that opens the page: the verdict on several policies, or what one run was like."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from artist.report.grouping import Replicate, Setting, Study
from artist.report.job_packing import alone_column, slowdowns, waited_by_cause
from artist.report.markup import Html, join, tag
from artist.report.metric_units import in_words
from artist.report.quantities import Quantity
from artist.report.reader import Run
from artist.results.caveats import is_most_of_the_makespan, times_as_long
from artist.results.statistics.best_policy import Best, Measured, bests
from artist.results.statistics.compare_values import (
    LEAST_REPLICATES,
    MORE,
    NO_DIFFERENCE,
    TOO_FEW,
    family_words,
)
from artist.results.statistics.verdict_words import best_sentence, listed
from artist.results.terms.chief_metrics import HEADLINES
from artist.results.terms.number_text import counted, percent, short


def verdict_section(study: Study) -> Html:
    """Heading and sentences."""
    heading = tag("h2", "In short", id="verdict")
    if len(study.runs) == 1:
        sentences = list(_one_run(study, study.runs[0]))
        return join(
            [heading, tag("div", *(tag("p", text) for text in sentences), class_="verdict")]
        )
    return join([heading, tag("div", *_several(study), class_="verdict")])


def _several(study: Study) -> list[Html]:
    groups = [
        _Group(setting, policies) for setting in study.settings for policies in setting.comparable()
    ]
    if not groups:
        return [tag("p", _nothing_to_compare(study)), _ranges(study)]
    judged = bests([_measured(group, metric) for metric in HEADLINES for group in groups])
    several = len({group.setting.index for group in groups}) < len(groups)
    noun = "groups that share replicates" if several else "settings"
    lines = [
        tag("li", _over_settings(study, [best for best in judged if best.metric == metric], noun))
        for metric in HEADLINES
    ]
    caveat = join(tag("p", text) for text in (_caveat(groups, judged), *_apart(study)))
    # Where nothing is sure, that comes first.
    known = any(best.with_verdict(MORE, NO_DIFFERENCE) for best in judged)
    parts = [tag("ul", *lines), caveat] if known else [caveat, tag("ul", *lines)]
    if len(study.settings) > 1 or len(groups) > 1:
        labels = [group.label for _ in HEADLINES for group in groups]
        each = [
            tag("li", f"{label}: {_of_setting(study, best)}")
            for label, best in zip(labels, judged, strict=True)
        ]
        parts.append(tag("details", tag("summary", "Each setting"), tag("ul", *each)))
    return parts


class _Group(NamedTuple):
    """Policies of a setting that share replicates."""

    setting: Setting
    policies: tuple[str, ...]

    @property
    def label(self) -> str:
        """The setting, and the policies where they are not all."""
        all_ = len(self.policies) == len(self.setting.runs)
        return self.setting.label + ("" if all_ else f" ({listed(self.policies)})")

    @property
    def replicates(self) -> list[Replicate]:
        """Those that all of the policies have."""
        return self.setting.shared_by(self.policies)


def _measured(group: _Group, metric: str) -> Measured:
    shared, runs = group.replicates, group.setting.runs
    values = {
        policy: [runs[policy][key].metric(metric) for key in shared] for policy in group.policies
    }
    return Measured(metric, values, shared)


def _apart(study: Study) -> list[str]:
    """Which policies of a setting do not share replicates, as sentences."""
    told = []
    for setting in study.settings:
        groups = setting.comparable()
        alone = [policy for policy in setting.runs if not any(policy in some for some in groups)]
        if not groups or not (alone or len(groups) > 1):
            continue
        compared = "; ".join(listed(policies) for policies in groups)
        rest = f"; on no replicate of another ran {listed(alone)}" if alone else ""
        told.append(f"In {setting.label}, these policies share replicates: {compared}{rest}.")
    return told


def _over_settings(study: Study, of_metric: list[Best], noun: str) -> str:
    if len(of_metric) == 1:
        return _of_setting(study, of_metric[0])
    wins = Counter(policy for best in of_metric for policy in best.policies if best.others)
    name = HEADLINES[of_metric[0].metric]
    if not wins:
        return f"{name}: equal under all policies in all {len(of_metric)} {noun}."
    (first, count), *others = wins.most_common()
    counts = [f"{first} in {count} of {len(of_metric)} {noun}"]
    counts += [f"{policy} in {count}" for policy, count in others]
    ties = any(len(best.policies) > 1 for best in of_metric)
    text = f"{name} is lowest under {listed(counts)}{' (ties count for each)' if ties else ''}."
    if all(best.with_verdict(TOO_FEW) or not best.others for best in of_metric):
        return text
    sure = Counter(best.policies[0] for best in of_metric if best.surely)
    surely = listed([f"{policy} in {count}" for policy, count in sure.most_common()] or ["none"])
    return f"{text} Surely lower than every other policy: {surely}."


def _of_setting(study: Study, best: Best) -> str:
    return best_sentence(best, in_words(study, best.metric, best.value))


def _caveat(groups: list[_Group], judged: list[Best]) -> str:
    counts = sorted({len(group.replicates) for group in groups})
    replicates = " to ".join(str(count) for count in sorted({counts[0], counts[-1]}))
    if all(len(best.exactly) == len(best.others) for best in judged):
        return (
            "Exact: the same under all permutations, so it is no effect of the order of visiting. "
            "It holds for this trace: draw others with artist compare --arrivals "
            "poisson:JOBS_PER_HOUR --seeds 8, or run several traces."
        )
    if all(best.with_verdict(TOO_FEW) or not best.others for best in judged):
        noun = "replicate" if counts[-1] == 1 else "replicates"
        return (
            f"The lowest number may be lowest by chance: the policies share {replicates} {noun} "
            f"(seed x permutation) per setting, and a verdict needs {LEAST_REPLICATES} that are "
            "independent. Run more seeds: artist compare --seeds 8, or a list of seeds in a sweep."
        )
    return (
        f"Means over {replicates} replicates. {_family(judged)} Surely lower holds for all of "
        "these at once, at 95 %; no difference is said of each pair alone. The table below judges "
        "others together. Verdicts hold for replicates like these, not for other traces or "
        "clusters."
    )


def _family(judged: list[Best]) -> str:
    return family_words(
        max(best.family for best in judged),
        "all pairs of policies, on these metrics, in all settings",
    )


def _nothing_to_compare(study: Study) -> str:
    if len(study.policies) == 1:
        return f"All runs have one policy, {study.policies[0]}: there is nothing to compare."
    return "No two policies ran on the same setting and replicate, so none is better or worse."


def _ranges(study: Study) -> Html:
    """The range of each metric over all runs."""
    lines = []
    for metric, name in HEADLINES.items():
        values = sorted(run.metric(metric) for run in study.runs)
        ends = dict.fromkeys(in_words(study, metric, value) for value in (values[0], values[-1]))
        lines.append(tag("li", f"{name}: {' to '.join(ends)}."))
    return tag("ul", *lines)


def _one_run(study: Study, run: Run) -> list[str]:
    jobs = run.jobs
    wait, jct = float(jobs["queue_delay_s"].mean()), float(jobs["jct_s"].mean())
    waited = int(np.count_nonzero(jobs["queue_delay_s"] > 0))
    done = (
        f"{study.policies[0]} finished {jobs.count:,} jobs in "
        f"{in_words(study, 'makespan_s', run.metric('makespan_s'))}. Jobs held "
        f"{in_words(study, 'gpu_allocated_share', run.metric('gpu_allocated_share'))} of the "
        f"cluster's GPU time. In "
        f"{in_words(study, 'gpu_computing_share', run.metric('gpu_computing_share'))} of the "
        "cluster's GPU time they computed."
    )
    done = f"{done} {_last(study, run)}"
    if not waited:
        return [done, "No job waited.", *_worst(study, run), _ONE_RUN]
    waits = (
        f"{waited:,} jobs waited. Over all jobs, waiting is {100 * wait / jct:.0f} % of the "
        f"completion time: on average {in_words(study, 'jct_mean_s', wait)} of "
        f"{in_words(study, 'jct_mean_s', jct)}."
    )
    return [done, waits, *_why(run), *_worst(study, run), _ONE_RUN]


_AS_LONG = 1.005
"""A slowdown below it is 1 where three digits are shown."""

_ONE_RUN = (
    "One run shows what happened once. It does not tell this policy from another one, nor from "
    "itself on another seed."
)


def _last(study: Study, run: Run) -> str:
    """The job that ends the makespan, which it may set nearly alone."""
    jobs = run.jobs
    last = int(np.argmax(jobs["finish_s"]))
    ran_s, makespan_s = float(jobs["run_s"][last]), run.metric("makespan_s")
    times = times_as_long(ran_s / float(jobs[alone_column(run)][last]))
    text = (
        f"Last finished job {_job(run, last)}: it ran for {in_words(study, 'jct_mean_s', ran_s)}, "
        f"{times} {_against(run)}."
    )
    if is_most_of_the_makespan(ran_s, makespan_s):
        share = percent(ran_s / makespan_s)
        text += f" So this one job's run is {share} % of the makespan."
    return text


def _job(run: Run, row: int) -> str:
    gpus = counted(int(run.jobs["gpus"][row]), "GPU")
    return f"{run.jobs.text['job_id'][row]} ({run.jobs.text['model'][row]}, {gpus})"


def _against(run: Run) -> str:
    """What times are compared with, in words."""
    return "alone" if alone_column(run) == "alone_s" else "without communication"


def _why(run: Run) -> list[str]:
    causes = waited_by_cause(run)
    total = sum(causes.values())
    if not total:
        return []
    shares = [
        f"{cause}, {100 * value / total:.0f} %"
        for cause, value in causes.most_common()
        if value >= total / 200  # less would be 0 %
    ]
    return [f"What the time waited was due to: {'; '.join(shares)}."]


def _worst(study: Study, run: Run) -> list[str]:
    """The job with the largest slowdown, and why it waited longest."""
    ratios = slowdowns(run)
    worst = int(np.argmax(ratios))
    job = run.jobs.text["job_id"][worst]
    jct = in_words(study, "jct_mean_s", float(run.jobs["jct_s"][worst]))
    wait = float(run.jobs["queue_delay_s"][worst])
    if ratios[worst] < _AS_LONG:
        return [f"No job took longer than {_against(run)}."]
    waited = f"waited {in_words(study, 'jct_mean_s', wait)} of it" if wait else "never waited"
    text = (
        f"Worst off is job {_job(run, worst)}: it took {jct}, {short(ratios[worst])} times as "
        f"long as {_against(run)}, and {waited}."
    )
    return [text, *_longest_wait(study, run, job)]


def _longest_wait(study: Study, run: Run, job: str) -> list[str]:
    if run.waits is None:
        return []
    rows = [row for row, name in enumerate(run.waits.text["job_id"]) if name == job]
    if not rows:
        return []
    row = max(rows, key=lambda index: float(run.waits["wait_s"][index]) if run.waits else 0.0)
    seconds, unit = study.units[Quantity.TIME]
    start = short(float(run.waits["start_s"][row]) / seconds)
    length = in_words(study, "queue_delay_mean_s", float(run.waits["wait_s"][row]))
    reason = run.waits.text["reason"][row].rstrip(".")
    return [f"Its longest wait began at {start} {unit} and took {length}: {reason}."]
