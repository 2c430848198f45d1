"""The values of the page, all from the rows. `page.md.j2` has the words and the tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from studies.common.page import Interval, interval_of, rendered
from studies.common.rows import Row
from studies.llm.study.observations import CHECKPOINT_S, HERE, PLACE, RESTART_S
from studies.llm.study.plan import (
    BEST,
    FAILURES,
    LAYOUTS,
    ORDERS,
    OVERSUBSCRIPTIONS,
    POLICIES,
    REPLICATES,
    USUAL_LAYOUT,
)
from studies.llm.study.workloads import GPUS, JOBS, KINDS, LOAD


class World(NamedTuple):
    """What the policies are compared in."""

    over: int
    failures: str


BASE, FAILING = POLICIES[0], FAILURES[1]
WORLDS = [World(over, failures) for failures in FAILURES for over in OVERSUBSCRIPTIONS]
COMPARISONS = (len(POLICIES) - 1) * len(WORLDS)
TOGETHER = 1 - 0.05 / COMPARISONS
"""The level of each interval of a table, so that all of the policies hold together (Bonferroni)."""
LAYOUT_COMPARISONS = 2 * len(OVERSUBSCRIPTIONS)
"""Of a layout with the usual one: by two policies."""


class Change(Interval):
    """A mean of logarithms of ratios, and half its interval."""

    __slots__ = ()

    @property
    def verdict(self) -> str:
        """Lower, higher or undecided."""
        return "undecided" if self.is_noise else "lower" if self.mean < 0 else "higher"

    def percent(self) -> str:
        """As `-12 % [-20 .. -3]`, bold where it is sure."""
        low, mean, high = (
            100 * math.expm1(x) for x in (self.mean - self.half, self.mean, self.mean + self.half)
        )
        text = f"{mean:+.0f} % [{low:+.0f} .. {high:+.0f}]"
        return text if self.is_noise else f"**{text}**"


def page_text(rows: Sequence[Row]) -> str:
    """The whole page."""
    by_place = {tuple(row[x] for x in PLACE): row for row in rows}

    def of(
        policy: str = BASE,
        over: int = OVERSUBSCRIPTIONS[0],
        failures: str = FAILING,
        order: str = BEST,
        layout: str = USUAL_LAYOUT,
    ) -> list[Row]:
        """The replicates of a setting, in the order of seeds."""
        place = (policy, str(over), failures, order, layout)
        return [by_place[(*place, str(seed))] for seed in range(REPLICATES)]

    def domain(policy: str, level: float = TOGETHER) -> dict[str, int]:
        """In how many worlds the mean JCT of a policy is lower and higher than the first one's."""
        found = [change(of(policy, *x), of(BASE, *x), level=level).verdict for x in WORLDS]
        return {word: found.count(word) for word in ("lower", "higher", "undecided")}

    return rendered(
        HERE,
        runs=len(rows),
        replicates=REPLICATES,
        jobs=JOBS,
        gpus=GPUS,
        load=LOAD,
        kinds=KINDS,
        policies=POLICIES,
        base=BASE,
        worlds=WORLDS,
        comparisons=COMPARISONS,
        together=TOGETHER,
        overs=OVERSUBSCRIPTIONS,
        orders=ORDERS,
        layouts=LAYOUTS,
        usual_layout=USUAL_LAYOUT,
        layout_comparisons=LAYOUT_COMPARISONS,
        layouts_together=1 - 0.05 / LAYOUT_COMPARISONS,
        usual_machines=LAYOUTS[USUAL_LAYOUT][1],
        rail_machines=LAYOUTS["rails"][1],
        ports=LAYOUTS[USUAL_LAYOUT][1] * LAYOUTS[USUAL_LAYOUT][2],
        checkpoint_s=CHECKPOINT_S,
        restart_s=RESTART_S,
        of=of,
        change=change,
        domain=domain,
        mean=lambda rows, metric: interval_of([float(row[metric]) for row in rows]).mean,
    )


def change(rows: Sequence[Row], base: Sequence[Row], level: float = 0.95) -> Change:
    """The ratio of mean JCTs of two settings over pairs of equal seeds, as a logarithm."""
    pairs = zip(rows, base, strict=True)
    return Change(
        *interval_of(
            [math.log(float(a["jct_mean_s"]) / float(b["jct_mean_s"])) for a, b in pairs], level
        )
    )
