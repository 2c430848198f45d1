"""The same comparison in several worlds: where does a verdict hold?

A **world** is the scenario on another fabric, or with the settings of a file. Each world compares
the same variants on the same replicates. A verdict holds everywhere if every world gives it. If two
variants do not differ, that happens in at most 5 % of cases, since no single world gives a false
verdict more often. There is no correction between worlds: of n worlds, at most 0.05 n have a false
verdict on average.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from artist.cluster.fabric import fabric_names
from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.comparison.comparison_result import Comparison
from artist.experiments.comparison.runs import BudgetEndedError
from artist.results.statistics.compare_values import LEAST_REPLICATES, Verdict, sure_but_within
from artist.settings import load_scenario

FABRICS = "fabrics"
"""The value of `--across` that means every fabric of `artist list fabrics`."""


class World(NamedTuple):
    """A scenario of the comparison, and what tables call it."""

    label: str
    scenario: Scenario


@dataclass(frozen=True, slots=True)
class Domain:
    """The worlds in which a variant has less or more of a metric than the baseline."""

    metric: str
    variant: str
    verdicts: Mapping[str, Verdict]
    """World -> verdict against the baseline."""

    def worlds(self, verdict: Verdict) -> list[str]:
        """The worlds that give a verdict."""
        return [world for world, given in self.verdicts.items() if given == verdict]

    @property
    def holds_everywhere(self) -> bool:
        """Whether every world says `less`, or every world says `more`."""
        return set(self.verdicts.values()) in ({Verdict.LESS}, {Verdict.MORE})

    @property
    def flips(self) -> bool:
        """Whether one world says `less` and another one `more`."""
        return {Verdict.LESS, Verdict.MORE} <= set(self.verdicts.values())


def worlds_of(scenario: Scenario, names: Sequence[str]) -> list[World]:
    """The scenario in each world: `fabrics`, names of fabrics, or files of settings.

    A file of settings is a scenario file (YAML); its settings replace those of the scenario.

    Raises:
        ConfigError: fewer than two worlds, a repeated one, an unknown fabric or a bad file.
    """
    wanted = [each for name in names for each in (fabric_names() if name == FABRICS else [name])]
    if len(wanted) < 2 or len(set(wanted)) != len(wanted):
        raise ConfigError(
            f"--across {','.join(names)}: give at least two different worlds, fabrics or files of "
            "settings; or fabrics for all of artist list fabrics"
        )
    return [_world(scenario, name) for name in wanted]


def _world(scenario: Scenario, name: str) -> World:
    """The scenario in another world: a fabric by name, or what a scenario file states."""
    if name in fabric_names():
        return World(name, scenario.model_copy(update={"fabric": name}))
    path = Path(name)
    if not path.is_file():
        raise ConfigError(
            f"--across {name!r}: neither a fabric ({', '.join(fabric_names())}) nor a file"
        )
    own = load_scenario(path, {}, []).model_dump(exclude_unset=True)
    base = scenario.model_dump(exclude_unset=True)
    return World(path.stem, load_scenario(None, base | own, []))


class Across(NamedTuple):
    """Comparisons in several worlds."""

    comparisons: dict[str, Comparison]
    """World -> comparison."""
    not_tried: tuple[str, ...] = ()
    """The worlds for which the time budget left too little."""


def compare_across(
    worlds: Sequence[World],
    compare: Callable[[Scenario, Callable[[int, int], None]], Comparison],
    on_done: Callable[[int, int], None],
    go_on: Callable[[], bool] = lambda: True,
) -> Across:
    """Make the comparison in each world. `compare` makes it for one scenario.

    `on_done(done, all)` is called after each run, with numbers of runs in all worlds. Once `go_on`
    returns False, no other world begins. A world whose comparison was cut short counts if its
    replicates are enough for verdicts. The first world always counts.

    Raises:
        BudgetEndedError: not even the first world has a replicate.
    """
    comparisons: dict[str, Comparison] = {}
    before = 0
    for world in worlds:
        if comparisons and not go_on():
            break
        try:
            one = compare(world.scenario, partial(_count, on_done, before, len(worlds)))
        except BudgetEndedError:
            if not comparisons:
                raise
            break
        before += len(one.variants) * len(one.replicates)
        cut = len(one.replicates) < one.replicates_asked
        if not comparisons or not cut or one.independent >= LEAST_REPLICATES:
            comparisons[world.label] = one
    left = tuple(world.label for world in worlds if world.label not in comparisons)
    return Across(comparisons, left)


def _count(
    on_done: Callable[[int, int], None], before: int, worlds: int, done: int, total: int
) -> None:
    on_done(before + done, total * worlds)


def domains(comparisons: Mapping[str, Comparison]) -> list[Domain]:
    """A domain for each metric and variant except the baseline, in the order of the table."""
    first = next(iter(comparisons.values()))
    return [
        Domain(
            metric,
            variant,
            {world: _verdict(one, metric, variant) for world, one in comparisons.items()},
        )
        for metric in first.metrics
        for variant in first.variants[1:]
    ]


def _verdict(comparison: Comparison, metric: str, variant: str) -> Verdict:
    """The verdict of a world. A significant difference within the equivalence margin is none.

    A difference that is the same in every order (`Comparison.exact`) counts as significant.
    """
    compared = comparison.differences[variant][metric]
    if sure_but_within(compared, comparison.equivalence):
        return Verdict.NO_DIFFERENCE
    if variant not in comparison.exact(metric):
        return compared.verdict
    if abs(compared.ratio - 1) <= comparison.equivalence:
        return Verdict.NO_DIFFERENCE
    return Verdict.LESS if compared.difference < 0 else Verdict.MORE
