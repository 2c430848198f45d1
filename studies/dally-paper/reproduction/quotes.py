"""The numbers that the sentences of the pages quote.

A template never holds a number of a run itself. It asks for it: `{{ claim("M1", "recorded", 8) }}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from claims import CLAIMS, words
from evidence import Cell, Evidence
from explanations import communicating, slowdown, streams, switched, waiting
from formatting import from_to, interval, seconds, share
from pairs import RACKS, all_pairs
from sources import DRAWN, OWN, PAPER_TABLES, STATISTICS, Original, latency_origins
from values import HEADINGS
from verdicts import compared, comparisons, in_program, signs


class Quotes:
    """One method per kind of number. Racks, regimes and policies are named as in the tables."""

    def __init__(self, evidence: Evidence, original: Original) -> None:
        self._evidence = evidence
        self._original = original
        self._claims = {claim.id: claim for claim in CLAIMS}
        # Cells are quoted with the verdicts of their table.
        self._switched = {
            key: difference
            for pairs in all_pairs().values()
            for key, difference in switched(evidence, pairs).items()
        }
        self._metrics = {heading: metric for metric, heading in HEADINGS.items()}

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """The methods by the names that templates use."""
        return {
            "paper": self.paper,
            "claim": self.claim,
            "claims": self.claims,
            "program": self.program,
            "switched": self.switched,
            "all_switched": self.all_switched,
            "all_leak_times": self.all_leak_times,
            "statistic": self.statistic,
            "off_table": self.off_table,
            "communication": self.communication,
            "order": self.order,
            "ratio": lambda signature: f"{slowdown(signature):,.0f}",
            "cells": lambda: str(len(comparisons(self._evidence))),
            "changed": self.changed,
            "replicates": self.replicates,
            "signs": lambda: "{} of {}".format(*signs(self._evidence)),
            "uneven": self.uneven,
            "waiting": self.waiting,
            "load": self.load,
            "main_claims": lambda: [(x.id, words(x)) for x in CLAIMS if x.main],
            "runs": lambda: f"{self._evidence.runs:,}",
            "latencies": lambda origin: f"{latency_origins()[origin]:,}",
        }

    def paper(self, name: str) -> str:
        """The paper's number of a claim."""
        return self._claims[name].paper

    def claim(self, name: str, regime: str, racks: int) -> str:
        """A claim's difference with its interval.

        Raises:
            KeyError: there are no such runs.
        """
        difference = compared(self._evidence, self._claims[name], regime, racks)
        if difference is None:
            raise KeyError(f"{name}, {regime}, {racks} racks: no runs")
        return interval(difference)

    def claims(self, name: str, regime: str, *racks: int) -> str:
        """A claim's smallest and largest difference over some racks (none named: all)."""
        claim = self._claims[name]
        every = (compared(self._evidence, claim, regime, each) for each in racks or claim.racks)
        return from_to(difference for difference in every if difference is not None)

    def program(self, name: str, variant: str, racks: int) -> str:
        """A claim's difference in the original program: `asis` as published, `fix` without leak."""
        return in_program(self._original, self._claims[name], variant, racks)

    def switched(self, words: str, heading: str) -> str:
        """One cell of a table of pairs, by the words of its row and the heading of its column."""
        return interval(self._switched[words, self._metrics[heading]])

    def all_switched(self, words: str, heading: str, *racks: int) -> str:
        """The smallest and the largest of such cells over racks: `{}` in the words is the racks."""
        metric = self._metrics[heading]
        return from_to(self._switched[words.replace("{}", str(each)), metric] for each in racks)

    def all_leak_times(self, heading: str) -> str:
        """A metric of the program as published, over the same with its leak closed: all runs."""
        metric = self._metrics[heading]
        times = [
            row[metric] / self._original["fix", *run][metric]
            for (variant, *run), row in self._original.items()
            if variant == "asis" and ("fix", *run) in self._original
        ]
        return f"{min(times):.0f} to {max(times):,.0f}"

    def statistic(self, source: str, arrivals: str, policy: str, statistic: str) -> str:
        """Seconds on 8 racks: `paper` (Table II or III), `asis`, `fix` or `recorded` (median)."""
        metric = f"jct_{statistic}_s"
        if source == "paper":
            row = dict(zip(STATISTICS, PAPER_TABLES[arrivals][policy], strict=True))
            return seconds(row[metric])
        if source == "recorded":
            cell = Cell(source, DRAWN[arrivals], 8, policy)
            return seconds(self._evidence.middle(cell, metric))
        return seconds(self._original[source, OWN[arrivals], policy, 8][metric])

    def off_table(self, arrivals: str, policy: str, *statistics: str) -> str:
        """How far the program as published is from the paper's table, at most."""
        row = dict(zip(STATISTICS, PAPER_TABLES[arrivals][policy], strict=True))
        ours = self._original["asis", OWN[arrivals], policy, 8]
        names = [f"jct_{statistic}_s" for statistic in statistics]
        return share(max(abs(ours[name] / row[name] - 1) for name in names))

    def communication(self, study: str, arrivals: str, policy: str) -> str:
        """Communication over computing, smallest and largest over the clusters."""
        cells = (Cell(study, DRAWN[arrivals], racks, policy) for racks in RACKS)
        ranked = sorted(communicating(self._evidence, cell) for cell in cells)
        low, high = share(ranked[0]), share(ranked[-1])
        return low if low == high else f"{low.removesuffix(' %')} to {high}"

    def order(self, policy: str, heading: str) -> str:
        """Range over median in several machine orders of one trace."""
        cell = Cell("order", DRAWN["batch"], 8, policy)
        values = self._evidence.values(cell, self._metrics[heading])
        middle = self._evidence.middle(cell, self._metrics[heading])
        return f"{min(values) / middle:.2f} to {max(values) / middle:.2f}"

    def uneven(self, study: str, racks: int, policy: str) -> str:
        """In how many drawn batches the last job to finish lies unevenly."""
        rows = self._evidence.rows(Cell(study, DRAWN["batch"], racks, policy)).values()
        return f"{sum(row.values['last_job_even'] == 'False' for row in rows)} of {len(rows)}"

    def waiting(self, arrivals: str, racks: int, policy: str) -> str:
        """The share of a job's completion time that it waits, with recorded latencies."""
        return share(waiting(self._evidence, Cell("recorded", DRAWN[arrivals], racks, policy)))

    def load(self, rate: int, rival: str, heading: str) -> str:
        """Dally against a rival on a stream of this many jobs per hour, 8 racks."""
        return interval(streams(self._evidence)[rate, rival, self._metrics[heading]])

    def replicates(self, study: str) -> str:
        """How many replicates a study's runs of Dally on 8 racks have, batch."""
        trace = (OWN if study.startswith("own-jobs") else DRAWN)["batch"]
        policy = "dally-within-level" if study.endswith("within-level") else "dally"
        return str(self._evidence.replicates(Cell(study, trace, 8, policy)))

    def changed(self, replicates: int) -> str:
        """How many verdicts would be others with fewer replicates."""
        few = comparisons(self._evidence, replicates=replicates)
        pairs = zip(few, comparisons(self._evidence), strict=True)
        return str(sum(one[2].verdict != other[2].verdict for one, other in pairs))
