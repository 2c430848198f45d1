"""Our numbers next to the paper's: rows for a table and a file.

A claim is judged as in `artist compare`: the paper's policy against a rival on the same seeds, with
Holm's correction for all claims of a figure. The verdicts are worded as in
`studies/dally-paper/README.md`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, TypeAlias

from artist.cluster.fabric import load_fabric
from artist.estimates.calibration import CalibratedModels, choose_calibration
from artist.estimates.query_from_text import on_placement
from artist.papers.definition import SUBJECT, Claim, Item
from artist.results.statistics.compare_values import (
    LESS,
    MORE,
    TOO_FEW,
    ComparedValues,
    compare_values,
)
from artist.results.statistics.holm import holm
from artist.run import open_backend

Values: TypeAlias = Mapping[tuple[int, str, str], tuple[float, ...]]
"""(racks, policy, metric) -> value on each seed."""

HOLDS, OPPOSITE = "holds", "opposite"


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim on one cluster."""

    claim: Claim
    racks: int
    compared: ComparedValues

    @property
    def word(self) -> str:
        """The verdict of our runs on the claim and, if it holds, on its size."""
        verdict = self.compared.verdict
        if verdict == TOO_FEW:
            return "no verdict: too few replicates"
        if verdict not in (LESS, MORE):
            return verdict
        if (verdict == LESS) != self.claim.less:
            return OPPOSITE
        return f"{HOLDS}{self._size()}"

    def _size(self) -> str:
        """A clause that compares our difference with the paper's."""
        ends = [end for end in (self.claim.low, self.claim.high) if end is not None]
        if not ends:
            return ""
        ours = 100 * (self.compared.ratio - 1)
        if abs(ours) > max(map(abs, ends)):
            return ", larger than in the paper"
        if len(ends) == 2 and abs(ours) >= min(map(abs, ends)):
            return ", as large as in the paper"
        return ", smaller than in the paper" if len(ends) == 2 else ", within the paper's bound"

    @property
    def over_paper(self) -> float:
        """Our ratio over the paper's, or over the nearest of its range; NaN without a number."""
        claim, ratio = self.claim, self.compared.ratio
        ends = [1 + end / 100 for end in (claim.low, claim.high) if end is not None]
        if not ends or math.isnan(ratio):
            return math.nan
        nearest = min(max(ratio, min(ends)), max(ends)) if len(ends) == 2 else ends[0]
        return ratio / nearest


def judge(item: Item, values: Values) -> list[Judged]:
    """All claims of an item on all its clusters."""
    cells = [
        (claim, racks) for claim in item.claims for racks in claim.racks or item.racks
        if all((racks, policy, claim.metric) in values for policy in (SUBJECT, claim.rival))
    ]  # fmt: skip
    single = [
        compare_values(
            values[racks, claim.rival, claim.metric], values[racks, SUBJECT, claim.metric]
        )
        for claim, racks in cells
    ]
    together = holm(single) if single else []
    return [Judged(*cell, compared) for cell, compared in zip(cells, together, strict=True)]


def claim_rows(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """A row per claim and cluster."""
    return [
        {
            "metric": one.claim.metric,
            "policies": f"{SUBJECT} against {one.claim.rival}",
            "racks": one.racks,
            "ours": one.compared.ratio - 1,
            "low": one.compared.low - 1,
            "high": one.compared.high - 1,
            "paper": one.claim.paper,
            "ours / paper": one.over_paper,
            "verdict": one.word,
        }
        for one in judged
    ]


def value_rows(item: Item, values: Values) -> list[dict[str, Any]]:
    """A row per policy and metric of a table of the paper; ours is the mean over seeds."""
    rows = []
    for policy, numbers in item.values.items():
        for metric, number in zip(item.metrics, numbers, strict=True):
            ours = values.get((item.racks[0], policy, metric))
            if ours is not None:
                row = {"policy": policy, "metric": metric, "ours": fmean(ours), "paper": number}
                rows.append({**row, "ours / paper": fmean(ours) / number})
    return rows


def own_rows(item: Item, values: Values) -> list[dict[str, Any]]:
    """A row per metric, policy and cluster: our mean and range over the seeds."""
    ordered = sorted(values, key=lambda key: _place(item, key))
    return [
        {
            "metric": metric,
            "policy": policy,
            "racks": racks,
            "mean": fmean(values[racks, policy, metric]),
            "min": min(values[racks, policy, metric]),
            "max": max(values[racks, policy, metric]),
            "replicates": len(values[racks, policy, metric]),
        }
        for racks, policy, metric in ordered
    ]


def _place(item: Item, key: tuple[int, str, str]) -> tuple[int, int, int]:
    racks, policy, metric = key
    return item.metrics.index(metric), item.racks.index(racks), item.policies.index(policy)


LEVELS: Mapping[str, str] = {"machine": "4+4", "rack": "4,4", "network": "4/4"}
"""The placements of the columns of Table I on fabric `dally2025` (docs/calibration.md)."""


def latency_rows(item: Item, fabric: str, calibration: str) -> list[dict[str, Any]]:
    """A row per model and level: communication in percent of compute, ours and the paper's.

    A figure of the paper shows the same as iteration time over compute time.
    """
    on_fabric, backend = load_fabric(fabric), open_backend("analytical")
    models = CalibratedModels.on(on_fabric, choose_calibration(calibration, on_fabric))
    rows = []
    for model, percents in item.latencies.items():
        for (level, placement), paper in zip(LEVELS.items(), percents, strict=True):
            question = on_placement(models.workload(model), placement, on_fabric, {})
            answer = question.answer(backend)
            query = question.asked[answer.index].query
            ours = 100 * models.complete(model, query, answer.estimate).comm_ratio
            if item.id.startswith("figure"):
                ours, paper = 1 + ours / 100, 1 + paper / 100
            row = {"model": model, "level": level, "ours": ours, "paper": paper}
            rows.append({**row, "ours / paper": ours / paper})
    return rows
