"""The claims, judged: per regime and number of racks, outside noise or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from claims import CLAIMS, Claim, words
from evidence import Cell, Evidence
from sources import DRAWN, OWN, Original
from tabular import interval, percent, table

from artist.experiments.compare import Difference


@dataclass(frozen=True, slots=True)
class Regime:
    """Which runs a claim is judged by. `within`: studies of Dally, and of its variants, that move
    within a level; they stand in for Dally and its variants."""

    study: str
    traces: Mapping[str, str]
    within: tuple[str, str | None] | None = None

    def cell(self, arrivals: str, racks: int, policy: str) -> Cell:
        """Where a policy's runs are."""
        plain = Cell(self.study, self.traces[arrivals], racks, policy)
        if self.within is None or policy not in _TIMERS:
            return plain
        dally, variants = self.within
        if policy == "dally":
            return plain.of(study=dally, policy="dally-within-level")
        options = f"policy.timers={_TIMERS[policy]}"
        return plain.of(study=variants, policy="dally-within-level", options=options)


_TIMERS = {
    "dally": "auto",
    "dally-manual": "manual",
    "dally-no-wait": "none",
    "dally-fully-consolidated": "unbounded",
}


REGIMES: Mapping[str, Regime] = {
    "recorded": Regime("recorded", DRAWN),
    "the paper's jobs": Regime("own-jobs", OWN),
    "within-level": Regime("recorded", DRAWN, ("within-level", "within-level-variants")),
    "calibrated": Regime("calibrated", DRAWN),
    "calibrated, within-level": Regime(
        "calibrated", DRAWN, ("calibrated-within-level", "calibrated-within-level-variants")
    ),
    "H100, calibrated": Regime("h100-calibrated", DRAWN),
    "H100, catalogue": Regime("h100-catalogue", DRAWN),
}
"""The columns of the verdicts."""

INTERVALS = ("recorded", "within-level")
"""Regimes whose intervals the summary shows."""
JUDGED = tuple(name for name in REGIMES if name != "H100, catalogue")
"""Regimes whose verdicts the summary shows."""


def summary(evidence: Evidence, original: Original) -> str:
    """The screen that a reader sees first."""
    shown = [claim for claim in CLAIMS if claim.main]
    intervals = [f"{regime}, 8 racks" for regime in INTERVALS]
    return table(
        ["claim", "the paper", "leak closed, 8 racks", *intervals, *JUDGED],
        (
            [
                f"{claim.id}: {words(claim)}",
                claim.paper or "a figure",
                _original(original, claim, "fix", _shown(claim)),
                *(_cell(evidence, claim, regime, _shown(claim)) for regime in INTERVALS),
                *(verdict(evidence, claim, regime) for regime in JUDGED),
            ]
            for claim in shown
        ),
    )


def detail(evidence: Evidence, original: Original) -> str:
    """Every claim at every number of racks."""
    columns = ["claim", "racks", "the paper", "published", "leak closed", *REGIMES]
    rows = []
    for claim in CLAIMS:
        for racks in claim.racks:
            first = racks == claim.racks[0]
            rows.append(
                [
                    f"{claim.id} {words(claim)}; {claim.source}" if first else "",
                    str(racks),
                    (claim.paper or "a figure") if first else "",
                    *(_original(original, claim, variant, racks) for variant in ("asis", "fix")),
                    *(_cell(evidence, claim, regime, racks) for regime in REGIMES),
                ]
            )
    return table(columns, rows)


def verdict(evidence: Evidence, claim: Claim, regime: str) -> str:
    """Where a claim holds outside noise, where it is within noise, and where the opposite holds."""
    found: dict[str, list[str]] = {"holds": [], "noise": [], "**opposite**": []}
    for racks in claim.racks:
        difference = compared(evidence, claim, regime, racks)
        if difference is None:
            continue
        wanted = "less" if claim.less else "more"
        judged = difference.verdict
        kind = "holds" if judged == wanted else "**opposite**" if judged in _OTHER else "noise"
        found[kind].append(str(racks))
    parts = [f"{kind} {', '.join(where)}" for kind, where in found.items() if where]
    whole = len(claim.racks) > 1 and any(len(where) == len(claim.racks) for where in found.values())
    return (parts[0].split(" ")[0] if whole else "; ".join(parts)) if parts else ""


def compared(evidence: Evidence, claim: Claim, regime: str, racks: int) -> Difference | None:
    """The difference that a claim is about; None where there are no such runs."""
    chosen = REGIMES[regime]
    cell = chosen.cell(claim.arrivals, racks, claim.policy)
    rival = chosen.cell(claim.arrivals, claim.rival_racks or racks, claim.rival)
    if not (evidence.has(cell) and evidence.has(rival)):
        return None
    return evidence.difference(cell, rival, claim.metric)


def _cell(evidence: Evidence, claim: Claim, regime: str, racks: int) -> str:
    difference = compared(evidence, claim, regime, racks)
    return "" if difference is None else interval(difference)


def _original(original: Original, claim: Claim, variant: str, racks: int) -> str:
    trace = OWN[claim.arrivals]
    mine = original.get((variant, trace, claim.policy, racks))
    theirs = original.get((variant, trace, claim.rival, claim.rival_racks or racks))
    if mine is None or theirs is None or claim.metric not in mine:
        return ""
    return percent(mine[claim.metric] / theirs[claim.metric] - 1)


def _shown(claim: Claim) -> int:
    return 8 if 8 in claim.racks else claim.racks[0]


_OTHER = ("less", "more")
