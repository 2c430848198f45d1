"""A comparison with one assumption changed at a time: what decides its verdicts?

Each **assumption** makes a world (`across.py`): the scenario with one choice of the model replaced
by the other reasonable one. Assumptions that a scenario does not make are left out, such as the
load of a trace whose arrivals are recorded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artist.config import ARRIVALS, Scenario
from artist.estimates.calibration import fitted_as_asked
from artist.experiments.comparison.across import Across, Domain, World, domains
from artist.experiments.comparison.comparison_result import Comparison
from artist.experiments.comparison.draws import is_drawn
from artist.policies.option_places import takes_option
from artist.results.statistics.compare_values import LESS, MORE, ComparedValues, Verdict
from artist.results.statistics.holm import Pair, compare_together
from artist.run import asked_fabric, build_calibration, build_cluster, build_fabric, build_trace
from artist.run.trace_warnings import scaled_communication_of

AS_GIVEN = "as given"

RESTART_S = 30.0
"""Cost of a restart where the scenario has none: Pollux (OSDI 2021) charges 30 s."""

FAILURES = "meta-rsc"
"""Failures where the scenario has none: the shipped model of measured failures."""

LOAD = 0.2
"""The rate of drawn arrivals is raised and lowered by this share. Our choice."""

ESTIMATES = "learned"
"""Replaces exact run times: the estimates of Tsafrir, Etsion and Feitelson (TPDS 2007)."""

OTHER_SEED = 1000
"""Added to the seed for another draw. No usual number of replicates reaches it."""

STEPS_OF_H100 = "h100-eager"
"""The calibration with compute times measured on an H100."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of an assumption on one difference."""

    assumption: str
    domain: Domain
    shift: float
    """|log(ratio there / ratio as given)|; NaN where a value is 0."""
    moved: ComparedValues | None
    """The ratios there against those as given, replicate by replicate; None where a value is 0."""

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

    @property
    def surely_moves(self) -> bool:
        """Whether the difference is surely not the one as given."""
        return self.moved is not None and self.moved.verdict in (LESS, MORE)

    @property
    def decides(self) -> bool:
        """Whether the verdict changes, and not by noise."""
        return self.given != self.there and (self.surely_moves or self.flips)


def assumptions_of(scenario: Scenario, policies: Sequence[str] = ()) -> list[World]:
    """The scenario as given, and with each of its assumptions changed.

    `policies` are those that are compared, if not only the scenario's.
    """
    policies = policies or (scenario.policy,)
    worlds = [World(AS_GIVEN, scenario)]
    estimating = any(takes_option(name, "estimates", ESTIMATES) for name in policies)
    for label, changes in _changes(scenario, estimating=estimating):
        worlds.append(World(label, scenario.model_copy(update=changes)))
    return worlds


def effects(comparisons: Mapping[str, Comparison]) -> list[Effect]:
    """The effects of all assumptions on each metric and variant, the largest first.

    A verdict may change by noise alone. So the differences themselves are compared, on the same
    replicates; all of these comparisons are one family (Holm).
    """
    found = domains(comparisons)
    pairs = {
        (place, world): pair
        for place, domain in enumerate(found)
        for world in comparisons
        if world != AS_GIVEN
        and (pair := _pair(comparisons[AS_GIVEN], comparisons[world], domain)) is not None
    }
    moved = compare_together(pairs)
    ranked = []
    for place, domain in enumerate(found):
        of_domain = [
            _effect(world, domain, comparisons, moved.get((place, world)))
            for world in comparisons
            if world != AS_GIVEN
        ]
        of_domain.sort(key=lambda effect: (math.isnan(effect.shift), -effect.shift))
        ranked += of_domain
    return ranked


def _effect(
    world: str,
    domain: Domain,
    comparisons: Mapping[str, Comparison],
    moved: ComparedValues | None,
) -> Effect:
    """The effect of a world on a ratio, as a logarithm."""
    ratio, given = (
        comparisons[one].differences[domain.variant][domain.metric].ratio
        for one in (world, AS_GIVEN)
    )
    return Effect(world, domain, abs(math.log(ratio / given)), moved)


def _pair(given: Comparison, there: Comparison, domain: Domain) -> Pair | None:
    """The variant's ratios to the baseline in both worlds; None where a value is not positive."""
    count = min(len(given.replicates), len(there.replicates))
    ratios = [_ratios(one, domain)[:count] for one in (given, there)]
    return Pair(ratios[0], ratios[1], given.replicates[:count]) if all(ratios) else None


def _ratios(comparison: Comparison, domain: Domain) -> list[float]:
    """The variant's value over the baseline's on each replicate; empty if one is not positive."""
    base, other = (
        comparison.values[name][domain.metric] for name in (comparison.variants[0], domain.variant)
    )
    if min(*base, *other) <= 0:
        return []
    return [value / by for by, value in zip(base, other, strict=True)]


def _changes(scenario: Scenario, *, estimating: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Label and changed settings of each assumption. `estimating`: policies expect run times."""
    if scenario.backend != "none":
        yield from _of_the_network(scenario)
    if scenario.restart_s:
        yield "restart_s=0", {"restart_s": 0.0}
    else:
        yield f"restart_s={RESTART_S:g}", {"restart_s": RESTART_S}
    # First starts that cost as much as restarts changed with restart_s above; this changes them
    # alone.
    if scenario.first_start_s:
        yield "first_start_s=0", {"first_start_s": 0.0}
    if scenario.failures == "none":
        yield f"failures={FAILURES}", {"failures": FAILURES}
    else:
        yield "failures=none", {"failures": "none", "checkpoint": None}
    if estimating:
        options = scenario.policy_options
        other = ESTIMATES if options.get("estimates", "exact") == "exact" else "exact"
        yield f"estimates={other}", {"policy_options": {**options, "estimates": other}}
    if (match := ARRIVALS.fullmatch(scenario.arrivals)) and match[1]:
        for factor in (1 + LOAD, 1 - LOAD):
            rate = f"poisson:{float(match[1]) * factor:.6g}"
            yield f"load {factor - 1:+.0%}", {"arrivals": rate}
    if is_drawn(scenario):
        yield "another draw", {"seed": scenario.seed + OTHER_SEED}


def _of_the_network(scenario: Scenario) -> Iterator[tuple[str, dict[str, Any]]]:
    """Changes of how ASTRA-sim is queried, the calibration, what jobs send, and contention."""
    fabric = build_fabric(scenario)
    system = asked_fabric(scenario, fabric).system
    calibration = build_calibration(scenario, fabric)
    others = {
        "collectives": "bucketed" if system.collectives == "per-layer" else "per-layer",
        "rings": "one" if system.rings == "per-level" else "per-level",
        # `flat` differs most from the other rules: if it does not change a verdict, they do not.
        "uneven": "flat" if system.uneven != "flat" else "wider",
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
    elif fabric.machine is not None and fabric.machine.kind in ("a100", "h100"):
        # Its scales are for an A100's compute times. Those of a T4 are far longer.
        yield f"calibration={STEPS_OF_H100}", {"calibration": STEPS_OF_H100}
    if scenario.communication == "absolute":
        yield "communication=proportional", {"communication": "proportional"}
    elif scaled_communication_of(scenario, build_trace(scenario, build_cluster(scenario, fabric))):
        yield "communication=absolute", {"communication": "absolute"}
    if scenario.contention != "none":
        yield "contention=none", {"contention": "none", "contention_options": {}}
    elif fabric.uplink_levels:
        yield "contention=mean", {"contention": "mean"}


def decides(made: Across) -> dict[str, Any]:
    """What decides the verdicts, as data of a figure: `decides.json` of the comparison's folder.

        {"setting": "policy", "baseline": "dally", "design": "8 permutations", "not_tried": [],
         "differences": [{"metric": "jct_mean_s", "variant": "las",
                          "worlds": [{"world": "as given", "ratio": 0.9, "low": 0.85, "high": 0.95,
                                      "verdict": "less"}, ...]}]}

    Under `--assumptions` the first world is the scenario as given, and the others come in the order
    of how far they move the difference. Ratios are those to the baseline; null where a value is 0.
    """
    first = next(iter(made.comparisons.values()))
    return {
        "setting": first.setting,
        "baseline": first.variants[0],
        "design": first.design,
        "not_tried": list(made.not_tried),
        "differences": [
            {
                "metric": metric,
                "variant": variant,
                "worlds": [
                    _world(made.comparisons[world], world, metric, variant) for world in order
                ],
            }
            for (metric, variant), order in _orders(made.comparisons).items()
        ],
    }


def _orders(comparisons: Mapping[str, Comparison]) -> dict[tuple[str, str], Sequence[str]]:
    """Metric and variant -> the worlds in their order."""
    if AS_GIVEN not in comparisons:
        return {(one.metric, one.variant): [*comparisons] for one in domains(comparisons)}
    orders: dict[tuple[str, str], list[str]] = {
        (one.metric, one.variant): [AS_GIVEN] for one in domains(comparisons)
    }
    for effect in effects(comparisons):
        orders[effect.domain.metric, effect.domain.variant].append(effect.assumption)
    return dict(orders)


def _world(comparison: Comparison, world: str, metric: str, variant: str) -> dict[str, Any]:
    one = comparison.differences[variant][metric]
    numbers = {"ratio": one.ratio, "low": one.low, "high": one.high}
    verdict = "exact" if variant in comparison.exact(metric) else str(one.verdict)
    return {
        "world": world,
        **{key: value if math.isfinite(value) else None for key, value in numbers.items()},
        "verdict": verdict,
    }
