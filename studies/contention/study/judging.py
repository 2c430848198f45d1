"""What contention costs each policy, and which pairs of policies change order. All over replicates.

A **setting** is a way to run: without contention, or with it on one of the fabrics. Without
contention uplinks have no effect, so all fabrics give the same runs.

Three families of comparisons are judged together, each for one experiment:

- what contention costs: every policy, fabric and metric, with against without;
- orders: every pair of policies in every setting, on every metric;
- moves: for every pair, fabric and metric, the ratio of the pair with contention against the ratio
  without. A move says that contention harms one of the two more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from artist.results.statistics.compare_values import LESS, MORE, ComparedValues
from artist.results.statistics.holm import Pair, compare_together, judged_together
from studies.common.rows import Row
from studies.contention.study.observations import POLICIES, RATIOS

METRICS = {"jct_mean_s": "mean JCT", "makespan_s": "makespan"}
WITHOUT = 0
"""The setting without contention. The others are the oversubscription of the racks."""
SETTINGS = (WITHOUT, *RATIOS)
PAIRS = tuple(combinations(POLICIES, 2))

SURE = "surely reversed"
NOISE = "perhaps noise"
OPENED = "a sure order is lost"
CLOSED = "a sure order appears"


@dataclass(frozen=True, slots=True)
class Change:
    """A pair of policies whose order is not the same with contention as without.

    `before` and `after` compare `other` with `first`; `move` compares their ratios.
    """

    metric: str
    ratio: int
    first: str
    other: str
    before: ComparedValues
    after: ComparedValues
    move: ComparedValues
    kind: str

    @property
    def ahead(self) -> str:
        """The policy that has less without contention."""
        return self.other if self.before.ratio < 1 else self.first

    @property
    def behind(self) -> str:
        """The policy that has more without contention."""
        return self.first if self.before.ratio < 1 else self.other


class Judged:
    """All comparisons of one experiment."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._values = _by_setting(rows)
        self.seeds = sorted({int(row["seed"]) for row in rows})
        self._replicates = [(seed, 0) for seed in self.seeds]
        self.costs = compare_together(
            {
                (metric, ratio, policy): self._pair((policy, WITHOUT), (policy, ratio), metric)
                for metric in METRICS
                for ratio in RATIOS
                for policy in POLICIES
            }
        )
        self.orders = compare_together(
            {
                (metric, setting, first, other): self._pair(
                    (first, setting), (other, setting), metric
                )
                for metric in METRICS
                for setting in SETTINGS
                for first, other in PAIRS
            }
        )
        self.moves = compare_together(
            {
                (metric, ratio, *pair): Pair(
                    self._ratios(pair, WITHOUT, metric),
                    self._ratios(pair, ratio, metric),
                    self._replicates,
                )
                for metric in METRICS
                for ratio in RATIOS
                for pair in PAIRS
            }
        )

    def values(self, policy: str, setting: int, metric: str) -> list[float]:
        """One value per replicate; a metric of contention is 0 without it."""
        return [float(row[metric] or 0) for row in self._values[policy, setting]]

    def mean(self, policy: str, setting: int, metric: str) -> float:
        """The mean over the replicates."""
        return fmean(self.values(policy, setting, metric))

    def ranks(self, setting: int, metric: str) -> list[str]:
        """The policies by their means, the least first."""
        return sorted(POLICIES, key=lambda policy: self.mean(policy, setting, metric))

    def changes(self) -> list[Change]:
        """Every change of order, by metric and fabric."""
        changes = []
        for metric in METRICS:
            for ratio in RATIOS:
                for first, other in PAIRS:
                    before = self.orders[metric, WITHOUT, first, other]
                    after = self.orders[metric, ratio, first, other]
                    move = self.moves[metric, ratio, first, other]
                    kind = kind_of_change(before, after, move)
                    if kind:
                        changes.append(
                            Change(metric, ratio, first, other, before, after, move, kind)
                        )
        return changes

    def reversals(self) -> dict[tuple[str, int], list[Change]]:
        """The pairs that are surely reversed, by metric and fabric."""
        sure: dict[tuple[str, int], list[Change]] = {}
        for change in self.changes():
            if change.kind == SURE:
                sure.setdefault((change.metric, change.ratio), []).append(change)
        return sure

    def families(self) -> tuple[int, int, int]:
        """How many comparisons of costs, orders and moves are judged together."""
        families = (self.costs.values(), self.orders.values(), self.moves.values())
        costs, orders, moves = (judged_together(family) for family in families)
        return costs, orders, moves

    def _pair(self, first: tuple[str, int], other: tuple[str, int], metric: str) -> Pair:
        return Pair(self.values(*first, metric), self.values(*other, metric), self._replicates)

    def _ratios(self, pair: tuple[str, str], setting: int, metric: str) -> list[float]:
        first, other = (self.values(policy, setting, metric) for policy in pair)
        return [b / a for a, b in zip(first, other, strict=True)]


def kind_of_change(before: ComparedValues, after: ComparedValues, move: ComparedValues) -> str:
    """How a pair's order changes; empty: it does not.

    An order that becomes sure, or unsure, is a change only where the means change order too, or
    contention surely moves the pair: else it may just stand near the threshold.
    """
    sure_before, sure_after = is_sure(before), is_sure(after)
    reversed_ = (before.ratio - 1) * (after.ratio - 1) < 0
    if sure_before == sure_after:
        if not reversed_:
            return ""
        return SURE if sure_before else NOISE
    if not reversed_ and not is_sure(move):
        return ""
    return OPENED if sure_before else CLOSED


def is_sure(compared: ComparedValues) -> bool:
    """Whether one of two surely has less, judged together with its family."""
    return compared.verdict in (LESS, MORE)


def _by_setting(rows: Sequence[Row]) -> Mapping[tuple[str, int], list[Row]]:
    """The rows of each policy and setting, in the order of the seeds.

    Raises:
        ValueError: runs without contention differ between fabrics, or a run is missing.
    """
    cells: dict[tuple[str, int], list[Row]] = {}
    for policy in POLICIES:
        bare = [_cell(rows, policy, ratio, contended=False) for ratio in RATIOS]
        results = [[(row["makespan_s"], row["jct_mean_s"]) for row in cell] for cell in bare]
        if any(one != results[0] for one in results):
            raise ValueError(f"{policy}: without contention the fabrics give different runs")
        cells[policy, WITHOUT] = bare[0]
        for ratio in RATIOS:
            cells[policy, ratio] = _cell(rows, policy, ratio, contended=True)
    if len({tuple(row["seed"] for row in cell) for cell in cells.values()}) != 1:
        raise ValueError("a policy or a fabric lacks a seed that another has")
    return cells


def _cell(rows: Sequence[Row], policy: str, ratio: int, *, contended: bool) -> list[Row]:
    cell = [
        row
        for row in rows
        if (row["policy"], row["oversubscription"]) == (policy, str(ratio))
        and (row["contention"] != "none") == contended
    ]
    return sorted(cell, key=lambda row: int(row["seed"]))
