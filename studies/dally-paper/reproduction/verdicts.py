"""The claims, judged in each regime and on each number of racks.

A claim `holds` or is `opposite` where its difference is surely less or more, and not surely within
2 %. It holds `smaller` if its whole interval is nearer to 0 than the published size. Else the
verdict is that of `artist.compare_values`. The claims about one cluster and one trace are judged
together in each regime (Holm), as by `artist compare`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from claims import ALL, CLAIMS, METRICS, Claim, words
from evidence import Cell, Evidence, together
from formatting import interval, percent, table
from sources import DRAWN, OWN, Original

from artist.results.statistics.compare_values import (
    EQUIVALENCE,
    IDENTICAL,
    LESS,
    MORE,
    NO_DIFFERENCE,
    TOO_FEW,
    UNDECIDED,
    ComparedValues,
    sure_but_within,
)

HOLDS, SMALLER, OPPOSITE = "holds", "holds, smaller", "**opposite**"
OUTCOMES = (HOLDS, SMALLER, OPPOSITE, NO_DIFFERENCE, IDENTICAL, UNDECIDED, TOO_FEW)
"""What a claim's difference can say, in the order of the pages."""
LETTERS = dict(zip(OUTCOMES, "Hho==?.", strict=True))
NOT_CLAIMED = "-"


@dataclass(frozen=True, slots=True)
class Regime:
    """The runs that judge a claim.

    `within` names a study of a Dally that moves within a level. Its runs stand in for Dally's;
    such a Dally has no variants.
    """

    study: str
    traces: Mapping[str, str]
    within: str | None = None

    def cell(self, arrivals: str, racks: int, policy: str) -> Cell:
        """The cell that holds a policy's runs."""
        plain = Cell(self.study, self.traces[arrivals], racks, policy)
        if self.within is None or not policy.startswith("dally"):
            return plain
        moving = "dally-within-level" if policy == "dally" else f"{policy}-within-level"
        return plain.of(study=self.within, policy=moving)


SETTINGS: Mapping[str, str] = {
    "default": "default",
    "flat": "flat",
    "machine column": "machine-column",
    "bucketed": "bucketed",
    "one ring": "one-ring",
    "H100": "h100",
    "recorded": "recorded",
}
"""What was assumed about communication, and the study that has it."""
OWN_JOBS = "{}, the paper's jobs"
REGIMES: Mapping[str, Regime] = {
    **{name: Regime(study, DRAWN) for name, study in SETTINGS.items()},
    "default, within-level": Regime("default", DRAWN, "default-within-level"),
    "recorded, within-level": Regime("recorded", DRAWN, "within-level"),
    **{OWN_JOBS.format(name): Regime(f"own-jobs-{study}", OWN) for name, study in SETTINGS.items()},
}
"""The columns of the tables of claims."""

DRAWN_JOBS = tuple(name for name, regime in REGIMES.items() if regime.traces is DRAWN)


def summary(evidence: Evidence) -> str:
    """A letter per number of racks for the main claims, on drawn jobs and on the paper's."""
    settings = [name for name in SETTINGS if name != "recorded"]
    rows = [
        [
            _short(claim),
            *(_letters(evidence, claim, name) for name in settings),
        ]
        for claim in CLAIMS
        if claim.main
    ]
    return table(["claim", *settings], rows)


def _short(claim: Claim) -> str:
    """A claim without its policy and racks: `M1 makespan < tiresias`."""
    relation = "<" if claim.less else ">"
    return f"{claim.id} {METRICS[claim.metric].removesuffix(' time')} {relation} {claim.rival}"


def _letters(evidence: Evidence, claim: Claim, setting: str) -> str:
    """The outcomes on 2, 4, 8 and 16 racks, a letter each: drawn jobs, then the paper's if run."""
    of_jobs = []
    for regime in (setting, OWN_JOBS.format(setting)):
        letters = ""
        for racks in ALL:
            difference = compared(evidence, claim, regime, racks) if racks in claim.racks else None
            letters += NOT_CLAIMED if difference is None else LETTERS[outcome(claim, difference)]
        if set(letters) != {NOT_CLAIMED}:
            of_jobs.append(letters)
    return f"`{'/'.join(of_jobs)}`"


def signs(evidence: Evidence) -> tuple[int, int]:
    """On how many differences drawn jobs and the paper's agree in sign, and where both are sure."""
    both = []
    for name in SETTINGS:
        drawn, own = (
            {
                (claim, racks): one.ratio
                for claim, racks, one in comparisons(evidence, (regime,))
                if outcome(claim, one) in (HOLDS, SMALLER, OPPOSITE)
            }
            for regime in (name, OWN_JOBS.format(name))
        )
        both += [(drawn[key] < 1) == (own[key] < 1) for key in drawn.keys() & own.keys()]
    return sum(both), len(both)


def every_verdict(evidence: Evidence) -> str:
    """The verdicts on all claims."""
    rows = (_verdicts(evidence, claim, DRAWN_JOBS) for claim in CLAIMS)
    return table(["claim", "the paper", *DRAWN_JOBS], rows)


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
    """The outcomes of a claim, each with the racks on which it comes out so."""
    racks_of: dict[str, list[str]] = {kind: [] for kind in OUTCOMES}
    for racks in claim.racks:
        difference = compared(evidence, claim, regime, racks)
        if difference is not None:
            racks_of[outcome(claim, difference)].append(str(racks))
    named = {kind: racks for kind, racks in racks_of.items() if racks}
    # The same outcome on every cluster needs no list of clusters.
    if len(claim.racks) > 1 and len(next(iter(named.values()), ())) == len(claim.racks):
        return next(iter(named))
    return "; ".join(f"{kind} {', '.join(racks)}" for kind, racks in named.items())


def comparisons(
    evidence: Evidence, regimes: Sequence[str] = tuple(REGIMES), replicates: int | None = None
) -> list[tuple[Claim, int, ComparedValues]]:
    """All claims on all racks of some regimes, where there are such runs."""
    every = (
        (claim, racks, compared(evidence, claim, regime, racks, replicates))
        for regime in regimes
        for claim in CLAIMS
        for racks in claim.racks
    )
    return [(claim, racks, difference) for claim, racks, difference in every if difference]


def outcome(claim: Claim, difference: ComparedValues) -> str:
    """Whether a difference confirms a claim, turns it round, or what else it says."""
    if difference.verdict not in (LESS, MORE):
        return difference.verdict
    if sure_but_within(difference, EQUIVALENCE):
        return NO_DIFFERENCE
    if difference.verdict != (LESS if claim.less else MORE):
        return OPPOSITE
    if claim.size is None:
        return HOLDS
    far = difference.low - 1 if claim.less else 1 - difference.high
    return HOLDS if far <= -abs(claim.size) else SMALLER


def compared(
    evidence: Evidence, claim: Claim, regime: str, racks: int, replicates: int | None = None
) -> ComparedValues | None:
    """The difference that a claim is about, judged with its family. None: no such runs."""
    return _judged(evidence, regime, replicates).get((claim, racks))


@cache
def _judged(
    evidence: Evidence, regime: str, replicates: int | None
) -> Mapping[tuple[Claim, int], ComparedValues]:
    """The differences of all claims of a regime, by claim and racks."""
    single = {}
    for claim in CLAIMS:
        for racks in claim.racks:
            cell = REGIMES[regime].cell(claim.arrivals, racks, claim.policy)
            rival = REGIMES[regime].cell(claim.arrivals, claim.rival_racks or racks, claim.rival)
            if evidence.has(cell) and evidence.has(rival):
                difference = evidence.difference(cell, rival, claim.metric, replicates)
                single[claim, racks] = difference
    return together(single, lambda key: (key[0].arrivals, key[1]))


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
