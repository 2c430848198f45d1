"""The page: tables and sentences from the rows, put into `page.md.j2`, which holds the other words.

Every number of a run comes from the rows. The template asks for it by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

from artist.results.statistics.compare_values import IDENTICAL, MORE, ComparedValues
from studies.common.page import rendered, table
from studies.common.rows import Row
from studies.contention.study.judging import METRICS, SURE, WITHOUT, Change, Judged, is_sure
from studies.contention.study.observations import EXPERIMENTS, HERE, POLICIES, RATIOS

SPEEDS = {"experiment": "100 Gbit/s", "slower": "50 Gbit/s"}
HOUR = 3600.0


def judged(rows: Sequence[Row]) -> dict[str, Judged]:
    """The comparisons of each experiment, in the order of the page."""
    return {
        name: Judged([row for row in rows if row["experiment"] == name]) for name in EXPERIMENTS
    }


def page_text(rows: Sequence[Row]) -> str:
    """The page.

    Raises:
        jinja2.UndefinedError: the template asks for something that does not exist.
    """
    experiments = judged(rows)
    return rendered(
        HERE,
        speeds=SPEEDS,
        replicates=replicates(experiments),
        runs=f"{len(rows):,}",
        table=lambda kind, name, *more: TABLES[kind](experiments[name], *more),
        reversals=lambda name: reversals(experiments[name]),
        best=lambda name: best(experiments[name]),
        pair=lambda name, setting: packing(experiments[name], setting),
        most=lambda name, ratio: most(experiments[name], ratio),
        families=lambda name: experiments[name].families(),
        equal=lambda name: equal(experiments[name]),
        crossing=lambda name, policy, ratio: percent(
            crossing(experiments[name], policy, ratio)
        ).removeprefix("+"),
        count=lambda name, policy, setting, metric: (
            f"{experiments[name].mean(policy, setting, metric):.0f}"
        ),
    )


def replicates(experiments: Mapping[str, Judged]) -> str:
    """How many replicates there are, in words."""
    counts = {name: len(one.seeds) for name, one in experiments.items()}
    if len(set(counts.values())) == 1:
        return f"{counts[EXPERIMENTS[0]]} replicates each"
    return _listed(f"{count} replicates at {SPEEDS[name]}" for name, count in counts.items())


def means(one: Judged, metric: str) -> str:
    """Mean of a metric in hours: without contention, and with it on each fabric."""
    settings = (WITHOUT, *RATIOS)
    ranks = {setting: one.ranks(setting, metric) for setting in settings}

    def cell(policy: str, setting: int) -> str:
        rank = ranks[setting].index(policy) + 1
        return f"{one.mean(policy, setting, metric) / HOUR:.2f} ({rank})"

    rows = [[policy, *(cell(policy, setting) for setting in settings)] for policy in POLICIES]
    return table(["policy", "without", *(f"{ratio}:1" for ratio in RATIOS)], rows)


def costs(one: Judged) -> str:
    """What contention adds to mean JCT and makespan."""
    rows = [
        [policy, *(interval(one.costs[metric, at, policy]) for metric in METRICS for at in RATIOS)]
        for policy in POLICIES
    ]
    heads = [f"{name}, {ratio}:1" for name in METRICS.values() for ratio in RATIOS]
    return table(["policy", *heads], rows)


def losses(one: Judged) -> str:
    """Slowdown by contention, job-hours lost to it, and stays that cross racks."""
    rows = []
    for policy in POLICIES:
        row = [policy]
        for metric, text in _LOSSES.items():
            row += [text(one.mean(policy, ratio, metric)) for ratio in RATIOS]
        row += [percent(crossing(one, policy, setting))[1:] for setting in (WITHOUT, RATIOS[-1])]
        rows.append(row)
    heads = [f"{name}, {ratio}:1" for name in ("slowdown", "P95", "job-hours") for ratio in RATIOS]
    heads += ["stays across racks, without", f"{RATIOS[-1]}:1"]
    return table(["policy", *heads], rows)


def changed(one: Judged) -> str:
    """Every pair whose order changes, and how sure that is."""
    rows = [
        [
            METRICS[change.metric], f"{change.ratio}:1", f"{change.other} over {change.first}",
            interval(change.before), interval(change.after), interval(change.move), change.kind,
        ]
        for change in one.changes()
    ]  # fmt: skip
    heads = ["metric", "racks", "pair", "without", "with contention", "move", "what changes"]
    return table(heads, rows, left=3) if rows else "No pair changes order."


TABLES: dict[str, Callable[..., str]] = {
    "means": means, "costs": costs, "losses": losses, "changed": changed,
}  # fmt: skip


def reversals(one: Judged) -> str:
    """The pairs that are surely reversed, as a sentence for each metric and fabric."""
    sure = [change for change in one.changes() if change.kind == SURE]
    if not sure:
        return "No pair of policies is surely reversed."
    return " ".join(
        f"On {ratio}:1 racks, {_listed([_reversed(change) for change in some])}"
        f" ({METRICS[metric]})."
        for metric in METRICS
        for ratio in RATIOS
        if (some := [x for x in sure if (x.metric, x.ratio) == (metric, ratio)])
    )


def _reversed(change: Change) -> str:
    """Who was ahead, and who is."""
    ahead, behind = change.first, change.other
    if change.before.ratio < 1:
        ahead, behind = behind, ahead
    return f"{ahead}, surely ahead of {behind} without contention, is surely behind it"


def best(one: Judged) -> str:
    """The policy with the least mean JCT in each setting."""
    where = {WITHOUT: "without contention", **{ratio: f"on {ratio}:1" for ratio in RATIOS}}
    first = {setting: one.ranks(setting, "jct_mean_s")[0] for setting in where}
    if len(set(first.values())) == 1:
        return f"{first[WITHOUT]} in all settings"
    return _listed(f"{first[setting]} {place}" for setting, place in where.items())


def most(one: Judged, ratio: int) -> str:
    """The policy that loses most of its mean JCT, and the range of the others."""
    added = {p: one.costs["jct_mean_s", ratio, p].ratio - 1 for p in POLICIES}
    first = max(added, key=lambda policy: added[policy])
    others = sorted(share for policy, share in added.items() if policy != first)
    sure = sum(
        one.costs["jct_mean_s", ratio, policy].verdict == MORE
        for policy in POLICIES
        if policy != first
    )
    return (
        f"{first} {percent(added[first])}, the others {percent(others[0])} to "
        f"{percent(others[-1])} (sure for {sure} of {len(others)})"
    )


def packing(one: Judged, setting: int) -> str:
    """What packing does to Gandiva's mean JCT, as a sentence."""
    compared = one.orders["jct_mean_s", setting, "gandiva", "gandiva-packed"]
    where = f"On {setting}:1 racks" if setting else "Without contention"
    sure = "surely" if is_sure(compared) else "not surely"
    text = interval(compared).replace("*", "")
    return f"{where} its mean JCT differs by {text}, {sure}."


def equal(one: Judged) -> str:
    """How many of the pairs of policies without contention have a sure order."""
    orders = [
        compared
        for (metric, setting, *_), compared in one.orders.items()
        if (metric, setting) == ("jct_mean_s", WITHOUT)
    ]
    sure = sum(is_sure(compared) for compared in orders)
    return f"{sure} of {len(orders)}"


def crossing(one: Judged, policy: str, setting: int) -> float:
    """Which share of all stays spans racks."""
    levels = ("placements_machine", "placements_rack", "placements_network")
    counts = [fmean(one.values(policy, setting, level)) for level in levels]
    return counts[-1] / sum(counts)


def interval(compared: ComparedValues) -> str:
    """A relative difference with its 95 % interval. Bold: surely less or more."""
    if compared.verdict == IDENTICAL:
        return "0"
    text = percent(compared.ratio - 1)
    if not math.isnan(compared.low):
        low, high = (percent(end - 1).removesuffix(" %") for end in (compared.low, compared.high))
        text = f"{text} [{low} .. {high}]"
    return f"**{text}**" if is_sure(compared) else text


def percent(share: float) -> str:
    """A share in percent with a sign; a decimal below ten."""
    value = 100 * share
    text = f"{value:+.1f}" if abs(value) < 9.95 else f"{value:+.0f}"
    return "0 %" if text in ("+0.0", "-0.0") else f"{text} %"


def _hours(value: float) -> str:
    return f"{value:.2f}" if value < 1 else f"{value:.1f}"


_LOSSES: dict[str, Callable[[float], str]] = {
    "contention_slowdown_mean": lambda value: f"{100 * value:.1f} %",
    "contention_slowdown_p95": lambda value: f"{100 * value:.1f} %",
    "contention_lost_job_h": _hours,
}


def _listed(parts: Iterable[str]) -> str:
    *most_, last = parts
    return f"{', '.join(most_)} and {last}" if most_ else last
