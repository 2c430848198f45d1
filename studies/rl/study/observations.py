"""The rows of `results.csv`: one per run. They alone stand between the runs and the page."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from artist.config import Scenario
from artist.estimates.query import Estimate, LatencyQuery
from artist.run import drive, prepare
from artist.units import TICKS_PER_S
from studies.common.rows import RowsFile, Runs
from studies.rl.study.plan import Planned, planned

HERE = Path(__file__).resolve().parent.parent

PLACE = ("machines", "load", "policy", "seed")
COLUMNS = (*PLACE, "jct_mean_s")


class Kept:
    """Estimates of this process. They are facts about models and links, the same in all runs."""

    def __init__(self) -> None:
        self._kept: dict[tuple[LatencyQuery, str, bool], Estimate] = {}

    def get(self, query: LatencyQuery, source: str, *, profile: bool = False) -> Estimate | None:
        """A kept estimate, or None."""
        return self._kept.get((query, source, profile))

    def put(self, query: LatencyQuery, estimate: Estimate, *, profile: bool = False) -> None:
        """Keep an estimate."""
        self._kept[query, estimate.source, profile] = estimate


ESTIMATES = Kept()


def jct_mean_s(scenario: Scenario) -> float:
    """Do a run: mean JCT in seconds."""
    prepared = prepare(scenario, store=ESTIMATES)
    drive(prepared)
    jobs = prepared.simulator.rows.jobs
    return fmean((row.finish - row.arrival) / TICKS_PER_S for row in jobs)


def row_of(run: Planned) -> dict[str, str]:
    """Do a run of the plan."""
    # Ten digits: sums of floats differ in their last ones between processors.
    text = f"{jct_mean_s(run.scenario()):.10g}"
    return {**dict(zip(PLACE, run.place, strict=True)), "jct_mean_s": text}


ROWS = RowsFile(HERE / "results.csv", COLUMNS, "rl")
RUNS = Runs(ROWS, PLACE, planned, row_of)
