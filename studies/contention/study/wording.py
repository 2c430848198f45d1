"""The values of the page, all from the rows. `page.md.j2` has the words and the tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from artist.results.statistics.compare_values import IDENTICAL, ComparedValues
from studies.common.page import rendered
from studies.common.rows import Row
from studies.contention.study.judging import METRICS, SETTINGS, WITHOUT, Judged, is_sure
from studies.contention.study.observations import EXPERIMENTS, HERE, POLICIES, RATIOS

SPEEDS = {"experiment": "100 Gbit/s", "slower": "50 Gbit/s"}


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
        **experiments,
        experiments=experiments,
        speeds=SPEEDS,
        runs=f"{len(rows):,}",
        policies=POLICIES,
        ratios=RATIOS,
        settings=SETTINGS,
        metrics=METRICS,
        added=added,
        leaders=lambda one: [one.ranks(setting, "jct_mean_s")[0] for setting in SETTINGS],
        sure_orders=sure_orders,
        crossing=lambda *place: percent(crossing(*place)).removeprefix("+"),
        percent=percent,
        interval=interval,
        is_sure=is_sure,
    )


def added(one: Judged, ratio: int) -> list[tuple[str, ComparedValues]]:
    """What contention adds to the mean JCT of each policy, the most first."""
    costs = [(policy, one.costs["jct_mean_s", ratio, policy]) for policy in POLICIES]
    return sorted(costs, key=lambda cost: -cost[1].ratio)


def sure_orders(one: Judged) -> tuple[int, int]:
    """How many pairs have a sure order of mean JCT without contention, and how many there are."""
    orders = [
        is_sure(compared)
        for (metric, setting, *_), compared in one.orders.items()
        if (metric, setting) == ("jct_mean_s", WITHOUT)
    ]
    return sum(orders), len(orders)


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
