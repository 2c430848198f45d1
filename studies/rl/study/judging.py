"""Who beats whom: mean JCT over that of `srsf-threshold`, per cell, with 95 % intervals.

All comparisons of one policy with the baseline are a family, so its verdicts hold together (Holm).

| verdict | when |
|---|---|
| win | mean JCT is surely smaller |
| loss | surely larger |
| no difference | surely within 2 % |
| undecided | none of these |
"""

from __future__ import annotations

from collections.abc import Sequence

from artist.results.statistics.compare_values import LESS, MORE, NO_DIFFERENCE, ComparedValues
from artist.results.statistics.holm import Pair, compare_together
from studies.common.rows import Row
from studies.rl.study.plan import BASELINE, BASES, POLICIES, cells, ran

WORDS = {LESS: "**win**", MORE: "loss", NO_DIFFERENCE: "no difference"}
UNDECIDED = "undecided"


class Judged:
    """All comparisons."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._values: dict[tuple[int, str, str], dict[int, float]] = {}
        for row in rows:
            key = int(row["machines"]), row["load"], row["policy"]
            self._values.setdefault(key, {})[int(row["seed"])] = float(row["jct_mean_s"])

    def values(self, machines: int, load: str, policy: str) -> list[float]:
        """Mean JCT of each trace, in seconds, by seed."""
        return [value for _, value in sorted(self._values[machines, load, policy].items())]

    def against(self, baseline: str = BASELINE) -> dict[tuple[int, str, str], ComparedValues]:
        """By cell and policy."""
        compared: dict[tuple[int, str, str], ComparedValues] = {}
        for policy in POLICIES:
            if policy == baseline:
                continue
            compared |= compare_together(
                {
                    (machines, load, policy): self._pair(machines, load, policy, baseline)
                    for machines, load in cells()
                    if ran(machines, load, policy)
                }
            )
        return compared

    def of_searches(self) -> dict[tuple[int, str, str], ComparedValues]:
        """Each search against its base, by cell and search."""
        compared: dict[tuple[int, str, str], ComparedValues] = {}
        for search, base in BASES.items():
            compared |= compare_together(
                {
                    (machines, load, search): self._pair(machines, load, search, base)
                    for machines, load in cells()
                }
            )
        return compared

    def _pair(self, machines: int, load: str, policy: str, baseline: str) -> Pair:
        base = self.values(machines, load, baseline)
        return Pair(base, self.values(machines, load, policy), [(x, 0) for x in range(len(base))])


def verdict(compared: ComparedValues) -> str:
    """In a word."""
    if compared.low == compared.high == 1.0:
        return WORDS[NO_DIFFERENCE]  # the same runs
    return WORDS.get(compared.verdict, UNDECIDED)
