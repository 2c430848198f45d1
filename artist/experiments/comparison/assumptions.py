"""A comparison with one assumption changed at a time: what decides its verdicts?

Each **assumption** makes a world (`across.py`): the scenario with one choice of the model replaced
by the other reasonable one. Assumptions that a scenario does not make are left out, such as the
load of a trace whose arrivals are recorded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from artist.config import ARRIVALS, Scenario
from artist.estimates.calibration import fitted_as_asked
from artist.experiments.comparison.across import Domain, World, domains
from artist.experiments.comparison.compare import is_drawn
from artist.experiments.comparison.comparison_result import Comparison
from artist.results.statistics.compare_values import Verdict
from artist.run import asked_fabric, build_calibration, build_fabric

AS_GIVEN = "as given"

RESTART_S = 30.0
"""Cost of a restart where the scenario has none: Pollux (OSDI 2021) charges 30 s."""

FAILURES = "meta-rsc"
"""Failures where the scenario has none: the shipped model of measured failures."""

LOAD = 0.2
"""Drawn arrivals come this share more and less often. Our choice."""

OTHER_SEED = 1000
"""Added to the seed for another draw: replicates never reach it."""


@dataclass(frozen=True, slots=True)
class Effect:
    """How far an assumption moves one difference."""

    assumption: str
    domain: Domain
    shift: float
    """|log(ratio there / ratio as given)|; NaN where a value is 0."""

    @property
    def given(self) -> Verdict:
        """The verdict of the scenario as given."""
        return self.domain.verdicts[AS_GIVEN]

    @property
    def there(self) -> Verdict:
        """The verdict under the other assumption."""
        return self.domain.verdicts[self.assumption]

    @property
    def flips(self) -> bool:
        """Whether the sign of a sure difference changes."""
        return {self.given, self.there} == {Verdict.LESS, Verdict.MORE}


def assumptions_of(scenario: Scenario) -> list[World]:
    """The scenario as given, and with each of its assumptions changed."""
    worlds = [World(AS_GIVEN, scenario)]
    for label, changes in _changes(scenario):
        worlds.append(World(label, scenario.model_copy(update=changes)))
    return worlds


def effects(comparisons: Mapping[str, Comparison]) -> list[Effect]:
    """For each metric and variant the effects of all assumptions, the largest first."""
    found = []
    for domain in domains(comparisons):
        ratios = {
            world: each.differences[domain.variant][domain.metric].ratio
            for world, each in comparisons.items()
        }
        of_domain = [
            Effect(world, domain, abs(math.log(ratio / ratios[AS_GIVEN])))
            for world, ratio in ratios.items()
            if world != AS_GIVEN
        ]
        of_domain.sort(key=lambda effect: (math.isnan(effect.shift), -effect.shift))
        found += of_domain
    return found


def _changes(scenario: Scenario) -> Iterator[tuple[str, dict[str, Any]]]:
    """Label and changed settings of each assumption."""
    if scenario.backend != "none":
        yield from _of_the_network(scenario)
    if scenario.restart_s:
        yield "restart_s=0", {"restart_s": 0.0}
    else:
        yield f"restart_s={RESTART_S:g}", {"restart_s": RESTART_S}
    if scenario.failures == "none":
        yield f"failures={FAILURES}", {"failures": FAILURES}
    else:
        yield "failures=none", {"failures": "none", "checkpoint": None}
    if (match := ARRIVALS.fullmatch(scenario.arrivals)) and match[1]:
        for factor in (1 + LOAD, 1 - LOAD):
            rate = f"poisson:{float(match[1]) * factor:.6g}"
            yield f"load {factor - 1:+.0%}", {"arrivals": rate}
    if is_drawn(scenario):
        yield "another draw", {"seed": scenario.seed + OTHER_SEED}


def _of_the_network(scenario: Scenario) -> Iterator[tuple[str, dict[str, Any]]]:
    """How ASTRA-sim is asked, the calibration, and contention."""
    fabric = build_fabric(scenario)
    system = asked_fabric(scenario, fabric).system
    calibration = build_calibration(scenario, fabric)
    others = {
        "collectives": "bucketed" if system.collectives == "per-layer" else "per-layer",
        "rings": "one" if system.rings == "per-level" else "per-level",
        "uneven": "flat" if system.uneven == "bounded" else "bounded",
    }
    if system.rings == "one":
        del others["uneven"]  # there are no uneven shapes then
    own = {"collectives": None, "uneven": None}
    chosen = {name: getattr(scenario, name) for name in own if getattr(scenario, name) is not None}
    for name, value in others.items():
        changes: dict[str, Any] = {**own, "system": {**scenario.system, **chosen, name: value}}
        asked = asked_fabric(scenario.model_copy(update=changes), fabric)
        fitted = fitted_as_asked(asked) if calibration is not None else None
        label = f"{name}={value}"
        if fitted is not None:
            label, changes = f"{label}, {fitted}", {**changes, "calibration": fitted}
        yield label, changes
    if calibration is not None:
        yield "calibration=none", {"calibration": "none"}
    if scenario.contention != "none":
        yield "contention=none", {"contention": "none", "contention_options": {}}
    elif fabric.uplink_levels:
        yield "contention=mean", {"contention": "mean"}
