"""The modes of `artist fill`: pods that stay until machines are full, or that come and leave."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from artist.pods.curves import Curves, Table, allocated_percents, curves, every_percent
from artist.pods.curves import summary as summary_of_fillings
from artist.pods.fill import Filling, fill
from artist.pods.machine_file import MachineFile
from artist.pods.machines import PodMachines
from artist.pods.over_time import Stay, over_time
from artist.pods.pod_list import PodList, read_pods
from artist.pods.pod_times import TimedPods, at_load, offered_load, read_timed_pods
from artist.pods.waits import mean_waits_s, timeline
from artist.pods.waits import summary as summary_of_waits
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
from artist.results.terms.number_text import listed, short, time_text
from artist.units import counted, seconds


def most_allocated(allocated: Mapping[str, Sequence[float]]) -> str:
    """Which placer allocates most, and how sure that is; empty for one placer.

    `allocated` is placer -> percent of GPUs held at the end of each run. Run i has the same seed
    for all placers. All pairs are judged together, because the best placer is picked from them.
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
    """The placer under which pods wait least, and how sure that is, as in `most_allocated`.

    `waits` is placer -> mean wait of each run in seconds.
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
    """How sure it is that `best` is better than each other placer; None if all are identical."""
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
    alike = f"within {100 * EQUIVALENCE:.0f} % of"
    words = {NO_DIFFERENCE: alike, TOO_FEW: "untested against", **sure}
    words |= {IDENTICAL: words[NO_DIFFERENCE]}
    by_words: dict[str, list[str]] = {}
    for other, verdict in verdicts.items():
        name = other if named is None else named[other]
        by_words.setdefault(words.get(verdict, "undecided against"), []).append(name)
    return "; ".join(f"{text} {listed(names)}" for text, names in by_words.items())


def without_machine(pods: PodList, file: MachineFile) -> str:
    """A sentence on pods that no machine can hold for their kind of GPU or MIG mode, if any."""
    machines = PodMachines(file.machines)
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


class Mode(ABC):
    """One way to run pods.

    `values` are what placers are compared by: placer -> one value per run. `settings` are written
    to `fill.json`; `words` are a part of the title.
    """

    table: ClassVar[str]
    table_has: ClassVar[str]

    def __init__(self, file: MachineFile, pods: PodList) -> None:
        self.file, self.pods = file, pods
        self.values: dict[str, list[float]] = {}
        self.settings: dict[str, Any] = {}
        self.words = ""

    @abstractmethod
    def run(self, placer: str, seed: int) -> Table:
        """Run the pods once and return the rows for `table`."""

    @abstractmethod
    def summary(self, placer: str) -> dict[str, Any]:
        """The chief numbers of a placer, once all its runs are done."""

    @abstractmethod
    def sentences(self) -> list[str]:
        """The answer. Empty ones are left out."""


class UntilFull(Mode):
    """Pods arrive and stay until they have asked for `until` times all GPUs."""

    table, table_has = "curves.csv", "every percent of demand"

    def __init__(self, file: MachineFile, path: Path, until: float) -> None:
        super().__init__(file, read_pods(path))
        self._until = until
        self.settings = {"until": until}
        self._runs: list[tuple[Filling, Curves]] = []

    def run(self, placer: str, seed: int) -> Table:
        """Fill the machines once."""
        filling = fill(self.file, self.pods, placer, self._until, seed)
        columns = curves(filling)
        self._runs.append((filling, columns))
        return every_percent(columns)

    def summary(self, placer: str) -> dict[str, Any]:
        """What is allocated and fragmented at 100 % of demand."""
        runs, self._runs = self._runs, []
        self.values[placer] = allocated_percents(runs)
        return summary_of_fillings(runs)

    def sentences(self) -> list[str]:
        """Which placer allocates most."""
        return [most_allocated(self.values), without_machine(self.pods, self.file)]


class OverTime(Mode):
    """Pods arrive, wait, run and leave: at the times of the list, or `count` drawn at a load."""

    table, table_has = "timeline.csv", "200 spans of time"

    def __init__(self, file: MachineFile, path: Path, load: float | None, count: int) -> None:
        self._list = read_timed_pods(path)
        super().__init__(file, self._list.pods)
        self._load, self._count = load, count
        self._runs: list[tuple[TimedPods, Stay]] = []
        self._drawn: dict[int, TimedPods] = {}
        recorded = offered_load(self._list, file)
        self.settings = {"load": recorded if load is None else load, "drawn": load is not None}
        if load is None:
            self.words = counted(len(self.pods.which), "pod")
            if recorded is None:
                self.words += " at once"
            else:
                span = time_text(seconds(int(self._list.arrival[-1])))
                self.words += f" in {span}, load {short(recorded)}"
        else:
            self.words = f"{counted(count, 'pod')} drawn at load {load:g}"
        self.words += ", "

    def run(self, placer: str, seed: int) -> Table:
        """Run the pods once. All placers get the same ones."""
        if self._load is None:
            timed = self._list
        else:
            if seed not in self._drawn:
                drawn = at_load(self._list, self.file, self._load, self._count, seed)
                self._drawn[seed] = drawn
            timed = self._drawn[seed]
        stay = over_time(self.file, timed, placer, seed)
        self._runs.append((timed, stay))
        return timeline(timed, stay)

    def summary(self, placer: str) -> dict[str, Any]:
        """How long pods wait, and what is allocated and fragmented meanwhile."""
        runs, self._runs = self._runs, []
        self.values[placer] = mean_waits_s(runs)
        return summary_of_waits(runs)

    def sentences(self) -> list[str]:
        """The placer under which pods wait least."""
        never = counted(self._list.left_out, "pod")
        left_out = f"Left out: {never} of the list that never ran." if self._list.left_out else ""
        return [least_waiting(self.values), left_out, without_machine(self.pods, self.file)]
