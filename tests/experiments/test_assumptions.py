"""Does each world change one assumption, and are effects ranked by how far they move?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from artist.config import Scenario
from artist.experiments.comparison.assumptions import AS_GIVEN, assumptions_of, effects
from artist.experiments.comparison.comparison_result import Comparison, compared
from artist.results.statistics.compare_values import Verdict
from artist.run import asked_fabric, build_cluster, build_fabric, build_trace

BASE = Scenario(policy="las", racks=2, trace="tiny-batch", fabric="dally2025")


def changed(scenario: Scenario) -> dict[str, dict[str, object]]:
    """Label of each assumption -> the settings that differ from the scenario as given."""
    given, *others = assumptions_of(scenario)
    assert given == (AS_GIVEN, scenario)
    plain = scenario.model_dump()
    return {
        label: {key: value for key, value in one.model_dump().items() if value != plain.get(key)}
        for label, one in others
    }


def test_each_world_changes_one_assumption() -> None:
    worlds = changed(BASE)
    assert worlds["calibration=none"] == {"calibration": "none"}
    assert worlds["contention=mean"] == {"contention": "mean"}
    assert worlds["restart_s=30"] == {"restart_s": 30.0}
    assert worlds["failures=meta-rsc"] == {"failures": "meta-rsc"}
    assert worlds["rings=one"] == {"system": {"rings": "one"}}
    assert worlds["uneven=flat"] == {"system": {"uneven": "flat"}}
    bucketed = {"system": {"collectives": "bucketed"}, "calibration": "dally2025-table1-bucketed"}
    assert worlds["collectives=bucketed, dally2025-table1-bucketed"] == bucketed


def test_a_choice_of_the_scenario_is_replaced_wherever_it_stands() -> None:
    chosen = BASE.model_copy(update={"collectives": "bucketed", "restart_s": 5.0})
    worlds = dict(assumptions_of(chosen))
    asked = {
        label: asked_fabric(one, build_fabric(one)).system.collectives
        for label, one in worlds.items()
        if label.startswith(("collectives", "uneven", "rings"))
    }
    assert set(asked.values()) == {"per-layer", "bucketed"}
    assert asked["collectives=per-layer, dally2025-table1"] == "per-layer"
    assert "uneven=wider, dally2025-table1" in changed(BASE.model_copy(update={"uneven": "flat"}))
    assert worlds["restart_s=0"].restart_s == 0


@pytest.mark.parametrize("cost", ["restart", 90.0])
def test_first_starts_are_free_where_a_scenario_charges_them(cost: str | float) -> None:
    charged = Scenario.model_validate(
        {**BASE.model_dump(exclude_unset=True), "restart_s": 5.0, "first_start_s": cost}
    )
    assert changed(charged)["first_start_s=0"] == {"first_start_s": 0.0}
    assert changed(charged)["restart_s=0"] == {"restart_s": 0.0}
    free = dict(assumptions_of(charged))["restart_s=0"]
    jobs = build_trace(free, build_cluster(free, build_fabric(free))).jobs
    assert {job.first_start_s for job in jobs} == {0.0 if cost == "restart" else cost}


@pytest.mark.parametrize(
    ("settings", "absent", "present"),
    [
        ({"backend": "none"}, "calibration=none", "restart_s=30"),
        ({"fabric": "t4"}, "uneven=flat", "rings=per-level"),
        ({"fabric": "t4"}, "calibration=none", "contention=mean"),
        ({"fabric": "t4"}, "calibration=h100-eager", "contention=mean"),
        ({"fabric": "hgx-h100"}, "calibration=none", "calibration=h100-eager"),
        ({"fabric": "a100"}, "calibration=none", "calibration=h100-eager"),
        ({}, "another draw", "failures=meta-rsc"),
        ({}, "first_start_s=0", "restart_s=30"),
        ({"first_start_s": 0.0}, "first_start_s=0", "restart_s=30"),
        ({"arrivals": "poisson:100"}, "none", "load +20%"),
        ({"arrivals": "poisson:100"}, "none", "another draw"),
    ],
)
def test_what_a_scenario_does_not_assume_is_left_out(
    settings: dict[str, object], absent: str, present: str
) -> None:
    worlds = changed(Scenario.model_validate({**BASE.model_dump(exclude_unset=True), **settings}))
    assert absent not in worlds
    assert present in worlds


def test_a_trace_whose_steps_are_not_its_models_may_send_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "job_id,arrival_s,gpus,model,iterations,compute_s\na,0,2,vgg16,9,1\n", encoding="utf-8"
    )
    given = Scenario(trace=str(path), racks=1, policy="las", fabric="a100")
    absolute = given.model_copy(update={"communication": "absolute"})
    assert changed(given)["communication=absolute"] == {"communication": "absolute"}
    assert dict(assumptions_of(absolute))["communication=proportional"] == given
    assert not any("communication" in label for label in changed(BASE))  # a calibration scales them
    assert "communication=absolute" in changed(BASE.model_copy(update={"calibration": "none"}))


def test_run_times_are_learned_where_a_policy_expects_them() -> None:
    learned = {"policy_options": {"estimates": "learned"}}
    assert not any("estimates" in label for label, _ in assumptions_of(BASE, ["fifo", "las"]))
    (_, one) = next(x for x in assumptions_of(BASE, ["las", "easy"]) if "estimates" in x[0])
    assert one.policy_options == learned["policy_options"]
    given = BASE.model_copy(update=learned)
    labels = [label for label, _ in assumptions_of(given, ["las", "easy"])]
    assert "estimates=exact" in labels


def test_the_load_goes_up_and_down_by_a_fifth() -> None:
    worlds = changed(BASE.model_copy(update={"arrivals": "poisson:100"}))
    assert worlds["load +20%"] == {"arrivals": "poisson:120"}
    assert worlds["load -20%"] == {"arrivals": "poisson:80"}


def made(factor: float) -> Comparison:
    """Variant b has `factor` times as much as a, with little noise."""
    baseline = 100 + np.arange(8.0)
    noise = np.array([1.0, 1.01] * 4)
    values = {"a": {"m": tuple(baseline)}, "b": {"m": tuple(baseline * factor * noise)}}
    replicates = tuple((0, order) for order in range(8))
    return compared("policy", values, replicates, 0.02, None)


def drawn(rng: np.random.Generator, shared: np.ndarray, effect: float = 0.0) -> Comparison:
    """A world whose noise is nearly that of the others: b has exp(effect) times as much as a."""
    base, other = shared * rng.lognormal(0, 0.05, shared.shape)
    values = {"a": {"m": tuple(base)}, "b": {"m": tuple(other * np.exp(effect))}}
    replicates = tuple((0, order) for order in range(shared.shape[1]))
    return compared("policy", values, replicates, 0.02, None)


def test_where_nothing_differs_hardly_any_assumption_decides_or_verdict_holds() -> None:
    """A/A: equal variants in all worlds. Each of the two claims may be wrong in 5 %."""
    rng = np.random.default_rng(2)
    deciding = everywhere = 0
    for _ in range(400):
        shared = rng.lognormal(0, 0.3, (2, 8))
        labels = [AS_GIVEN, *(f"assumption {n}" for n in range(6))]
        worlds = {label: drawn(rng, shared) for label in labels}
        found = effects(worlds)
        deciding += any(one.decides for one in found)
        everywhere += found[0].domain.holds_everywhere
    assert deciding <= 0.05 * 400
    assert everywhere <= 0.05 * 400


def test_an_assumption_that_moves_nothing_is_called_noise_where_the_verdict_changes() -> None:
    """The verdict is barely `less` as given and barely undecided there, at an equal difference."""
    rng = np.random.default_rng(8)
    changed = deciding = 0
    for _ in range(400):
        shared = rng.lognormal(0, 0.1, (2, 8))
        worlds = {AS_GIVEN: drawn(rng, shared, -0.12), "same": drawn(rng, shared, -0.12)}
        (one,) = effects(worlds)
        changed += one.given != one.there
        deciding += one.decides
    assert changed > 40
    assert deciding <= 0.05 * 400


def test_the_assumption_that_moves_a_ratio_most_comes_first_and_flips_are_named() -> None:
    worlds = {AS_GIVEN: made(1.2), "little": made(1.25), "much": made(0.6)}
    first, second = effects(worlds)
    assert (first.assumption, first.flips, first.there) == ("much", True, Verdict.LESS)
    assert first.shift == pytest.approx(np.log(2))
    assert (second.assumption, second.flips, second.there) == ("little", False, Verdict.MORE)
