"""Sentences on `artist fill`: which placer is best, and whether that may be noise."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING

from artist.pods.machines import Machines
from artist.results.statistics.compare_values import (
    EQUIVALENCE,
    IDENTICAL,
    LEAST_REPLICATES,
    LESS,
    MORE,
    NO_DIFFERENCE,
    TOO_FEW,
    Verdict,
)
from artist.results.statistics.holm import Pair, compare_together
from artist.results.terms.number_text import listed, time_text
from artist.units import counted

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
    value = f"{fmean(allocated[best]):.1f} % of the GPUs"
    against = _against(allocated, best, others, {LESS: "surely more than"})
    if against is None:
        return f"All placers allocate {value}."
    return f"{best} allocates most, {value}: {against}."


def least_waiting(waits: Mapping[str, Sequence[float]]) -> str:
    """Under which placer pods wait least, and how sure that is; as `most_allocated`.

    `waits` is placer -> mean wait in seconds, run by run.
    """
    if not any(map(any, waits.values())):
        return "No pod that was placed had to wait; --load sets how busy the machines are."
    best, *others = sorted(waits, key=lambda name: fmean(waits[name]))
    if not others:
        return ""
    mean = {name: time_text(fmean(values)) for name, values in waits.items()}
    named = {name: f"{name} ({mean[name]})" for name in others}
    against = _against(waits, best, others, {MORE: "surely less than"}, named)
    if against is None:
        return f"Under all placers a pod waits {mean[best]} on average."
    return f"Pods wait least under {best}, {mean[best]} on average: {against}."


def _against(
    values: Mapping[str, Sequence[float]],
    best: str,
    others: Sequence[str],
    sure: Mapping[Verdict, str],
    named: Mapping[str, str] | None = None,
) -> str | None:
    """How sure it is that `best` is better than each other; None if all are alike."""
    seeds = [(run, 0) for run in range(len(values[best]))]
    pairs = {
        (one, other): Pair(values[one], values[other], seeds)
        for one, other in combinations((best, *others), 2)
    }
    found = compare_together(pairs)
    verdicts = {other: found[best, other].verdict for other in others}
    if all(verdict == IDENTICAL for verdict in verdicts.values()):
        return None
    if len(seeds) < LEAST_REPLICATES:
        return f"untested: a verdict needs --seeds {LEAST_REPLICATES}"
    words = {NO_DIFFERENCE: f"within {EQUIVALENCE:.0%} of", TOO_FEW: "untested against", **sure}
    words |= {IDENTICAL: words[NO_DIFFERENCE]}
    by_words: dict[str, list[str]] = {}
    for other, verdict in verdicts.items():
        name = other if named is None else named[other]
        by_words.setdefault(words.get(verdict, "undecided against"), []).append(name)
    return "; ".join(f"{text} {listed(names)}" for text, names in by_words.items())


def without_machine(pods: PodList, file: MachineFile) -> str:
    """How many pods ask for GPUs that no machine has, by kind or MIG mode; empty if none does."""
    machines = Machines(file.machines)
    of_demand = Counter(pods.which.tolist())
    lost = {
        number: demand
        for number, demand in enumerate(pods.demands)
        if not machines.allowed(demand).any()
    }
    if not lost:
        return ""
    kinds = sorted({kind for each in lost.values() for kind in each.kinds})
    profiles = sorted({each.mig for each in lost.values() if each.mig})
    wanted = [f"{listed(kinds)} (gpu_spec)"] if kinds else []
    wanted += [f"{listed(profiles)} (mig)"] if profiles else []
    if not all(each.kinds or each.mig for each in lost.values()):
        wanted.append("GPUs in no MIG mode")
    return (
        f"{counted(sum(of_demand[number] for number in lost), 'pod')} of {len(pods.which):,} can "
        f"only use {listed(wanted)}, which no machine of {file.name} has."
    )
