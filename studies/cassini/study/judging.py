"""What CASSINI gains: iteration times of the host alone over those with CASSINI, per replicate.

A **gain** above 1 is good. Each question is a family of comparisons that are judged together:

- Themis in every cell of the plan, on every metric;
- Pollux in its cells, on metrics that do not depend on batches;
- every host in one cell, on every metric;
- every setting of CASSINI or contention, on every metric;
- the snapshots of Table 2.

Its **ceiling** is the gain if no job slowed another one.

| verdict | when |
|---|---|
| holds | the gain is surely above 1.1 (mean) or 1.3 (P99) |
| smaller | surely above 1, by more than 2 %, and not surely above these |
| opposite | surely below 1 |
| no difference | surely within 2 % |
| noise | none of these |
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, geometric_mean
from typing import TypeAlias

from artist.results.statistics.compare_values import (
    IDENTICAL,
    LESS,
    MORE,
    NO_DIFFERENCE,
    ComparedValues,
    sure_but_within,
)
from artist.results.statistics.holm import Pair, compare_together
from studies.cassini.study.links import FIRST, JITTER, ONE_WAY, RANDOM_ONE_WAY, SNAPSHOTS
from studies.cassini.study.links import RANDOM as RANDOM_OFFSETS
from studies.cassini.study.plan import (
    CASSINI,
    HOST,
    HOSTS,
    HOSTS_CELL,
    IDEAL,
    POLLUX_CELLS,
    RANDOM,
    SETTINGS,
    THEMIS_CELLS,
)
from studies.common.rows import Row

GAINS = {"mean_s": 1.1, "p99_s": 1.3, "stretch_mean": 1.1, "stretch_p99": 1.3}
"""Metrics, and the gain that the paper's ranges require (1.2 to 1.6, and 1.6 to 2.2)."""
METRICS = (*GAINS, "jct_mean_s")
POLLUX_METRICS = ("stretch_mean", "stretch_p99", "jct_mean_s")
"""Batches change the length of iterations, but not by how much others make them longer."""

HOLDS, SMALLER, OPPOSITE, NOISE = "holds", "smaller", "**opposite**", "noise"
SAME = "no difference"

EQUIVALENCE = 0.02
NEAR_IDEAL = 0.05
"""Fig. 11: Th+CASSINI is as Ideal."""

Cell: TypeAlias = "tuple[str, str, str]"


class Judged:
    """All comparisons of runs."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows: dict[tuple[str, ...], dict[int, Row]] = {}
        for row in rows:
            key = tuple(row[x] for x in ("workload", "arrivals", "cluster", "host", "variant"))
            self._rows.setdefault((*key, row["setting"]), {})[int(row["seed"])] = row
        self.themis = compare_together(
            {
                (*cell, metric): self._gain(cell, "themis", metric)
                for cell in THEMIS_CELLS
                for metric in METRICS
            }
        )
        self.ideal = compare_together(
            {
                cell: self._pair(
                    (*cell, "themis", IDEAL, ""), (*cell, "themis", CASSINI, ""), "mean_s"
                )
                for cell in THEMIS_CELLS
            }
        )
        self.pollux = compare_together(
            {
                (*cell, metric): self._gain(cell, "pollux", metric)
                for cell in POLLUX_CELLS
                for metric in POLLUX_METRICS
            }
        )
        self.hosts = compare_together(
            {
                (host, metric): self._gain(HOSTS_CELL, host, metric)
                for host in ("themis", *HOSTS, RANDOM)
                for metric in METRICS
            }
        )
        self.settings = compare_together(
            {
                (setting, metric): self._gain(HOSTS_CELL, "themis", metric, setting)
                for setting in ("", *SETTINGS)
                for metric in METRICS
                if self.ended(setting)
            }
        )

    def cell(self, cell: Cell, host: str, variant: str, setting: str = "") -> Mapping[int, Row]:
        """The rows of some runs that ended, by seed."""
        rows = self._rows[(*cell, host, variant, setting)]
        return {seed: row for seed, row in sorted(rows.items()) if row["mean_s"]}

    def ended(self, setting: str) -> int:
        """How many runs of a setting were not refused."""
        return len(self.cell(HOSTS_CELL, "themis", CASSINI, setting))

    def mean(self, cell: Cell, host: str, variant: str, metric: str, setting: str = "") -> float:
        """The mean of a metric over the replicates that have it."""
        rows = self.cell(cell, host, variant, setting).values()
        values = [float(row[metric]) for row in rows if row[metric]]
        return fmean(values) if values else float("nan")

    def ceiling(self, cell: Cell, host: str, metric: str, setting: str = "") -> float:
        """The gain if no job slowed another one: the geometric mean of the gain's replicates.

        Of stretches it is the host's own. Of `p99_s` it is the host's over that of Ideal.
        """
        rows, ideal = self.cell(cell, host, HOST), self._rows.get((*cell, host, IDEAL, ""), {})

        def alone(seed: int) -> float:
            if metric.startswith("stretch"):
                return 1.0
            if metric == "mean_s":
                return float(rows[seed]["alone_mean_s"])
            return float(ideal[seed][metric])

        seeds = self.cell(cell, host, CASSINI, setting)
        return geometric_mean(float(rows[seed][metric]) / alone(seed) for seed in seeds)

    def _gain(self, cell: Cell, host: str, metric: str, setting: str = "") -> Pair:
        return self._pair((*cell, host, CASSINI, setting), (*cell, host, HOST, ""), metric)

    def _pair(self, first: tuple[str, ...], other: tuple[str, ...], metric: str) -> Pair:
        *cell, host, variant, setting = first
        base = self.cell((cell[0], cell[1], cell[2]), host, variant, setting)
        *cell, host, variant, setting = other
        values = self.cell((cell[0], cell[1], cell[2]), host, variant, setting)
        if not setting and not base.keys() <= values.keys():
            raise ValueError(f"{' '.join(first)}: a seed lacks its run without CASSINI")
        return Pair(
            [float(base[seed][metric]) for seed in base],
            [float(values[seed][metric]) for seed in base],
            [(seed, 0) for seed in base],
        )


def judged_links(rows: Sequence[Row]) -> dict[tuple[int, str, float], ComparedValues]:
    """Of each snapshot, variant and jitter: time not computing at random offsets over that of the
    variant."""
    values: dict[tuple[int, str, float], list[float]] = {}
    for row in rows:
        key = int(row["snapshot"]), row["variant"], float(row["jitter"])
        values.setdefault(key, []).append(sum(map(float, row["sending_ms"].split())))
    pairs = {
        key: Pair(own, values[key[0], at_random, key[2]], [(x, 0) for x in range(len(own))])
        for key, own in values.items()
        if (at_random := _at_random(key[1])) != key[1]
    }
    compared = compare_together(pairs)
    table_2 = compare_together(
        {key: pairs[key] for x in SNAPSHOTS if (key := (x, FIRST, JITTER)) in pairs}
    )  # a family of its own: the claims of the paper
    return {**compared, **table_2}


def ceiling_of_links(rows: Sequence[Row], snapshot: int, variant: str) -> float:
    """The gain if no job of a snapshot slowed another one: its sending times over those alone."""
    alone_ms = math.fsum(1e3 * circle.arcs[0].length_s for circle in SNAPSHOTS[snapshot])
    place = str(snapshot), _at_random(variant), str(JITTER)
    return geometric_mean(
        math.fsum(map(float, row["sending_ms"].split())) / alone_ms
        for row in rows
        if (row["snapshot"], row["variant"], row["jitter"]) == place
    )


def _at_random(variant: str) -> str:
    return RANDOM_ONE_WAY if variant in ONE_WAY else RANDOM_OFFSETS


def verdict(gain: ComparedValues, least: float) -> str:
    """The verdict on a gain that should be above `least`."""
    if gain.verdict == MORE and gain.low > least:
        return HOLDS
    if gain.verdict in (NO_DIFFERENCE, IDENTICAL) or sure_but_within(gain, EQUIVALENCE):
        return SAME
    if gain.verdict == MORE:
        return SMALLER
    return OPPOSITE if gain.verdict == LESS else NOISE
