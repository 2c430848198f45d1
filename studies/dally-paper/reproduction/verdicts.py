"""The claims, judged in each regime and on each number of racks: holds, noise or opposite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from claims import CLAIMS, Claim, words
from evidence import Cell, Evidence
from formatting import interval, percent, table
from sources import DRAWN, OWN, Original

from artist.results.bootstrap import Difference

HOLDS, NOISE, OPPOSITE = "holds", "noise", "**opposite**"


@dataclass(frozen=True, slots=True)
class Regime:
    """The runs that judge a claim.

    `within` names two studies: of a Dally that moves within a level, and of variants that do. Their
    runs stand in for those of Dally and its variants.
    """

    study: str
    traces: Mapping[str, str]
    within: tuple[str, str] | None = None

    def cell(self, arrivals: str, racks: int, policy: str) -> Cell:
        """The cell that holds a policy's runs."""
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
"""The columns of the tables of claims."""

JUDGED = tuple(name for name in REGIMES if name != "H100, catalogue")
"""Regimes that ran on every cluster."""
SUMMARIZED = tuple(name for name in JUDGED if name != "the paper's jobs")
"""Regimes that the summary shows."""


def summary(evidence: Evidence) -> str:
    """The verdicts on the main claims, and how many verdicts of each kind all claims have."""
    tallies = (tally(evidence, regime) for regime in SUMMARIZED)
    counts = ["/".join(str(count) for count in counted.values()) for counted in tallies]
    return table(
        ["claim", "the paper", *SUMMARIZED],
        [
            *(_verdicts(evidence, claim, SUMMARIZED) for claim in CLAIMS if claim.main),
            [f"all {len(CLAIMS)} claims: holds/noise/opposite", "", *counts],
        ],
    )


def every_verdict(evidence: Evidence) -> str:
    """The verdicts on all claims."""
    rows = (_verdicts(evidence, claim, JUDGED) for claim in CLAIMS)
    return table(["claim", "the paper", *JUDGED], rows)


def _verdicts(evidence: Evidence, claim: Claim, regimes: Sequence[str]) -> list[str]:
    judged = (verdict(evidence, claim, regime) for regime in regimes)
    return [f"{claim.id}: {words(claim)}", claim.paper or "a figure", *judged]


def detail(evidence: Evidence, original: Original) -> str:
    """Every claim at every number of racks, with its intervals."""
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
                    *(in_program(original, claim, variant, racks) for variant in ("asis", "fix")),
                    *(_cell(evidence, claim, regime, racks) for regime in REGIMES),
                ]
            )
    return table(columns, rows)


def verdict(evidence: Evidence, claim: Claim, regime: str) -> str:
    """The racks on which a claim holds, is within noise, and turns into its opposite."""
    racks_of: dict[str, list[str]] = {HOLDS: [], NOISE: [], OPPOSITE: []}
    for racks in claim.racks:
        difference = compared(evidence, claim, regime, racks)
        if difference is not None:
            racks_of[outcome(claim, difference)].append(str(racks))
    parts = [f"{kind} {', '.join(racks)}" for kind, racks in racks_of.items() if racks]
    # The same outcome on every cluster needs no list of clusters.
    same = any(len(racks) == len(claim.racks) for racks in racks_of.values())
    if len(claim.racks) > 1 and same:
        return parts[0].split(" ")[0]
    return "; ".join(parts)


def tally(evidence: Evidence, regime: str) -> Mapping[str, int]:
    """How often the claims hold, are within noise, and turn into their opposite."""
    counts = dict.fromkeys((HOLDS, NOISE, OPPOSITE), 0)
    for claim, _, difference in comparisons(evidence, (regime,)):
        counts[outcome(claim, difference)] += 1
    return counts


def comparisons(
    evidence: Evidence, regimes: Sequence[str] = tuple(REGIMES), replicates: int | None = None
) -> list[tuple[Claim, int, Difference]]:
    """All claims on all racks of some regimes, where there are such runs."""
    every = (
        (claim, racks, compared(evidence, claim, regime, racks, replicates))
        for regime in regimes
        for claim in CLAIMS
        for racks in claim.racks
    )
    return [(claim, racks, difference) for claim, racks, difference in every if difference]


def outcome(claim: Claim, difference: Difference) -> str:
    """Whether a difference confirms a claim."""
    if difference.verdict not in ("less", "more"):
        return NOISE
    return HOLDS if difference.verdict == ("less" if claim.less else "more") else OPPOSITE


def compared(
    evidence: Evidence, claim: Claim, regime: str, racks: int, replicates: int | None = None
) -> Difference | None:
    """The difference that a claim is about. None: there are no such runs."""
    chosen = REGIMES[regime]
    cell = chosen.cell(claim.arrivals, racks, claim.policy)
    rival = chosen.cell(claim.arrivals, claim.rival_racks or racks, claim.rival)
    if not (evidence.has(cell) and evidence.has(rival)):
        return None
    return evidence.difference(cell, rival, claim.metric, replicates)


def in_program(original: Original, claim: Claim, variant: str, racks: int) -> str:
    """The same difference in one run of the original program. Empty: it was not run."""
    trace = OWN[claim.arrivals]
    mine = original.get((variant, trace, claim.policy, racks))
    theirs = original.get((variant, trace, claim.rival, claim.rival_racks or racks))
    if mine is None or theirs is None or claim.metric not in mine:
        return ""
    return percent(mine[claim.metric] / theirs[claim.metric] - 1)


def _cell(evidence: Evidence, claim: Claim, regime: str, racks: int) -> str:
    difference = compared(evidence, claim, regime, racks)
    return "" if difference is None else interval(difference)
