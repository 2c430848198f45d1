"""Sentences on fillings: which placer allocates most, and whether that may be noise."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING

from artist.results.statistics.compare_values import (
    EQUIVALENCE,
    IDENTICAL,
    LEAST_REPLICATES,
    LESS,
    NO_DIFFERENCE,
    TOO_FEW,
)
from artist.results.statistics.holm import Pair, compare_together
from artist.results.terms.number_text import counted, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from artist.pods.machine_file import MachineFile
    from artist.pods.pod_list import PodList


def most_allocated(allocated: Mapping[str, Sequence[float]]) -> str:
    """Which placer allocates most, and how sure that is; empty for one placer.

    `allocated` is placer -> percent of GPUs held at the end, run by run. Run i of all placers has
    the same seed. All pairs of placers are judged together, since the best one is picked from them.
    """
    best, *others = sorted(allocated, key=lambda name: -fmean(allocated[name]))
    if not others:
        return ""
    seeds = [(run, 0) for run in range(len(allocated[best]))]
    pairs = {
        (one, other): Pair(allocated[one], allocated[other], seeds)
        for one, other in combinations((best, *others), 2)
    }
    found = compare_together(pairs)
    verdicts = {other: found[best, other].verdict for other in others}
    if all(verdict == IDENTICAL for verdict in verdicts.values()):
        return f"All placers allocate {fmean(allocated[best]):.1f} % of the GPUs."
    words = {LESS: "surely more than", NO_DIFFERENCE: f"within {EQUIVALENCE:.0%} of"}
    words |= {IDENTICAL: words[NO_DIFFERENCE], TOO_FEW: "untested against"}
    by_words: dict[str, list[str]] = {}
    for other, verdict in verdicts.items():
        by_words.setdefault(words.get(verdict, "undecided against"), []).append(other)
    parts = [f"{text} {listed(names)}" for text, names in by_words.items()]
    if len(seeds) < LEAST_REPLICATES:
        parts = [f"untested: a verdict needs --seeds {LEAST_REPLICATES}"]
    return f"{best} allocates most, {fmean(allocated[best]):.1f} % of the GPUs: {'; '.join(parts)}."


def without_machine(pods: PodList, file: MachineFile) -> str:
    """How many pods ask for kinds of GPUs that no machine has; empty if none does."""
    has = {group.kind for group in file.machines}
    of_demand = Counter(pods.which.tolist())
    lost = {
        number: demand.kinds
        for number, demand in enumerate(pods.demands)
        if demand.kinds and not has.intersection(demand.kinds)
    }
    if not lost:
        return ""
    kinds = listed(sorted({kind for each in lost.values() for kind in each}))
    return (
        f"{counted(sum(of_demand[number] for number in lost), 'pod')} of {len(pods.which):,} can "
        f"only use {kinds} (gpu_spec), which no machine of {file.name} has."
    )
