"""Does a comparison across worlds say where verdicts hold, and rarely that they hold everywhere?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from artist.cli.across_text import domain_words, print_across
from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.comparison.across import Across, Domain, compare_across, domains, worlds_of
from artist.experiments.comparison.comparison_result import Comparison, compared
from artist.results.statistics.compare_values import Verdict

BASE = Scenario(policy="las", racks=2, trace="tiny-batch")
LESS, MORE, OPEN = Verdict.LESS, Verdict.MORE, Verdict.UNDECIDED


# -- worlds --------------------------------------------------------------------------


def test_a_world_is_a_fabric_or_a_file_of_settings(tmp_path: Path) -> None:
    file = tmp_path / "restarts.yaml"
    file.write_text("restart_s: 30\nfabric: a100\n")
    t4, restarts = worlds_of(BASE, ["t4", str(file)])
    assert (t4.label, t4.scenario.fabric, t4.scenario.racks) == ("t4", "t4", 2)
    assert (restarts.label, restarts.scenario.restart_s) == ("restarts", 30)
    assert (restarts.scenario.fabric, restarts.scenario.trace) == ("a100", "tiny-batch")


def test_fabrics_means_all_of_them() -> None:
    labels = [world.label for world in worlds_of(BASE, ["fabrics"])]
    assert {"t4", "a100", "dally2025"} <= set(labels)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["t4"], "at least two different worlds"),
        (["t4", "t4"], "at least two different worlds"),
        (["fabrics", "t4"], "at least two different worlds"),
        (["t4", "t5"], r"--across 't5': neither a fabric \(.*t4.*\) nor a file"),
    ],
)
def test_a_text_that_is_not_a_list_of_worlds_is_refused(names: list[str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        worlds_of(BASE, names)


def test_progress_counts_the_runs_of_all_worlds() -> None:
    seen: list[tuple[int, int]] = []

    def compare(scenario: Scenario, on_done) -> Comparison:
        for done in range(1, 11):
            on_done(done, 10)
        return made(np.ones(5), np.ones(5))

    compare_across(worlds_of(BASE, ["t4", "a100"]), compare, lambda *now: seen.append(now))
    assert seen == [(done, 20) for done in range(1, 21)]


# -- domains -------------------------------------------------------------------------


def made(baseline: np.ndarray, other: np.ndarray) -> Comparison:
    replicates = tuple((0, order) for order in range(len(baseline)))
    values = {"a": {"makespan_s": tuple(baseline)}, "b": {"makespan_s": tuple(other)}}
    return compared("policy", values, replicates, 0.02, None)


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        ([LESS, LESS], "lower in both"),
        ([LESS, LESS, OPEN], "lower in 2 of 3; undecided in w2"),
        ([MORE, LESS, MORE], "higher in 2 of 3; lower in w1"),
    ],
)
def test_a_domain_names_the_worlds_that_disagree(verdicts: list[Verdict], words: str) -> None:
    domain = Domain("makespan_s", "b", {f"w{n}": one for n, one in enumerate(verdicts)})
    assert domain_words(domain) == words
    assert domain.holds_everywhere == (len(set(verdicts)) == 1)
    assert domain.flips == ({LESS, MORE} <= set(verdicts))


def test_a_sure_difference_within_the_margin_holds_nowhere() -> None:
    plain = 100 + np.arange(12.0)
    (domain,) = domains({"w": made(plain, plain * 0.99), "v": made(plain, plain * 0.5)})
    assert domain.verdicts == {"w": Verdict.NO_DIFFERENCE, "v": Verdict.LESS}


def test_equal_policies_rarely_differ_everywhere() -> None:
    """A/A: four policies, two metrics, three worlds of nearly the same noise. 5 % may be wrong."""
    draw = np.random.default_rng(1)
    false, trials = 0, 150
    for _ in range(trials):
        shared = draw.lognormal(0, 0.3, (4, 2, 8))
        worlds = {f"w{n}": equal(shared * draw.lognormal(0, 0.03, (4, 2, 8))) for n in range(3)}
        false += any(domain.holds_everywhere for domain in domains(worlds))
    assert false <= 0.05 * trials


def equal(values: np.ndarray) -> Comparison:
    """A comparison of policies by metric and replicate."""
    told = {
        f"policy {n}": {f"metric {k}": tuple(of_metric) for k, of_metric in enumerate(of_policy)}
        for n, of_policy in enumerate(values)
    }
    replicates = tuple((0, order) for order in range(values.shape[2]))
    return compared("policy", told, replicates, 0.02, None)


def test_a_difference_has_a_sign_or_a_direction_in_words(capsys) -> None:
    lower = made(np.array([10.0, 11, 12, 13, 14]), np.array([9.0, 9.8, 10.9, 11.6, 12.7]))
    higher = made(np.array([9.0, 9.8, 10.9, 11.6, 12.7]), np.array([10.0, 11, 12, 13, 14]))
    print_across(Across({"w0": lower, "w1": higher}))
    shown = capsys.readouterr().out
    assert shown.startswith("Lower than a in some worlds and higher in others: makespan_s of b.\n")
    below, above = (
        100 * abs(one.differences["b"]["makespan_s"].ratio - 1) for one in (lower, higher)
    )
    assert f"\tb\t{below:.1f} % lower\t{above:.1f} % higher\t" in shown
