"""Can one policy wrap another one (its host), each with its own options?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from artist.config import Scenario
from artist.contract import ClusterView, Decision, Options, Policy, WrapperPolicy
from artist.errors import ConfigError
from artist.experiments.experiment import load_experiment, runs
from artist.policies.option_places import takes_option
from artist.policies.table import POLICIES
from artist.registry import Entry
from artist.rng import Draws
from artist.run import build_policy, simulate
from artist.settings import load_scenario
from artist.testing import check_policy


class CountingOptions(Options):
    """An option of the wrapper's own."""

    lease_s: float = 1.0


class Counting(WrapperPolicy):
    """Counts the questions that its host answers; a table of its own beside the host's."""

    Options = CountingOptions

    def __init__(self, options: CountingOptions, host: Policy) -> None:
        super().__init__(host)
        self.options = options
        self.questions = 0

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        self.questions += 1
        return super().decide(view)

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        return {**super().tables(), "questions": [{"questions": self.questions}]}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    POLICIES.add(Entry("counting", f"{__name__}:Counting", "a test's wrapper", wraps=True))
    yield
    del POLICIES._entries["counting"]


def test_a_wrapper_and_its_host_have_options_of_their_own() -> None:
    sets = ["policy=counting(dally-manual)", "policy.lease_s=7", "policy.host.lease_s=1800"]
    policy = build_policy(load_scenario(None, {}, sets))
    assert policy.options.lease_s == 7
    assert (policy.host.options.lease_s, policy.host.options.timers) == (1800, "manual")


def test_wrappers_may_be_wrapped() -> None:
    sets = ["policy=counting(counting(fifo))", "policy.host.host.placement=any"]
    policy = build_policy(load_scenario(None, {}, sets))
    assert policy.host.host.options.placement == "any"


def test_an_option_that_only_the_host_has_reaches_it() -> None:
    """As in a comparison of a policy with the same one inside a wrapper."""
    sets = ["policy=cassini(counting(fifo))", "policy.placement=any", "policy.candidates=1"]
    outer = build_policy(load_scenario(None, {}, sets))
    assert outer.options.candidates == 1
    assert outer.host.host.options.placement == "any"
    both = ["policy=cassini(fifo)", "policy.placement=any", "policy.host.placement=pack"]
    assert build_policy(load_scenario(None, {}, both)).host.options.placement == "pack"
    for name in ("cassini(fifo)", "counting(cassini(fifo))"):
        with pytest.raises(ConfigError, match="policy fifo: 'placement' is 'tight'"):
            build_policy(Scenario(policy=name, policy_options={"placement": "tight"}))
    assert not takes_option("cassini(fifo)", "thresholds_gpu_s", [1])


def test_a_wrapper_that_changes_nothing_gives_the_rows_of_its_host() -> None:
    scenario = Scenario(trace="tiny-batch", racks=1, policy="las")
    wrapped = simulate(scenario.model_copy(update={"policy": "counting(las)"}))
    assert wrapped.table("placements").equals(simulate(scenario).table("placements"))
    assert wrapped.table("questions").questions[0] > 20


def test_a_wrapped_policy_keeps_the_contract() -> None:
    host = POLICIES["dally"].load()
    check_policy(lambda: Counting(CountingOptions(), host(host.Options())))


def test_a_sweep_reaches_the_options_of_a_host(tmp_path: Path) -> None:
    file = tmp_path / "experiment.yaml"
    file.write_text(
        "name: wrapped\nversion: 1\nsummary: s\nbase: {policy: counting(dally)}\n"
        "grid: {policy.host.lease_s: [600, 1200]}\n"
    )
    options = [run.scenario.policy_options for run in runs(load_experiment(file))]
    assert options == [{"host": {"lease_s": 600}}, {"host": {"lease_s": 1200}}]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("counting", r"write counting\(POLICY\)"),
        ("fifo(las)", "policy 'fifo\\(las\\)': write fifo"),
        ("counting(las", r"write counting\(POLICY\)"),
        ("counting(lass)", "did you mean 'las'"),
        ("countin(las)", "did you mean 'counting'"),
    ],
)
def test_policies_that_cannot_be_wrapped_are_refused(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build_policy(Scenario(policy=name))


def test_a_misspelt_option_of_a_host_is_named() -> None:
    scenario = Scenario(policy="counting(dally)", policy_options={"host": {"lease": 3}})
    with pytest.raises(ConfigError, match="policy dally: unknown setting 'lease'"):
        build_policy(scenario)


@pytest.mark.parametrize("host", [5, [1], None, "fifo"])
def test_options_of_a_host_that_are_none_are_refused(host: object) -> None:
    scenario = Scenario(policy="counting(fifo)", policy_options={"host": host})
    with pytest.raises(ConfigError, match="options of policy 'fifo'"):
        build_policy(scenario)


def test_wrappers_without_end_are_refused() -> None:
    with pytest.raises(ConfigError, match="more than 20 wrappers"):
        build_policy(Scenario(policy="counting(" * 3000 + "fifo" + ")" * 3000))


class Drawing(Counting):
    """A wrapper that asks for random numbers."""

    def __init__(self, options: CountingOptions, host: Policy, *, draws: Draws) -> None:
        super().__init__(options, host)
        self.draws = draws


def test_wrapper_and_host_get_the_draws_of_the_scenario() -> None:
    POLICIES.add(Entry("drawing", f"{__name__}:Drawing", "a test's wrapper", wraps=True))
    try:
        policy = build_policy(Scenario(policy="drawing(counting(themis))", seed=3, permutation=2))
    finally:
        del POLICIES._entries["drawing"]
    themis = build_policy(Scenario(policy="themis", seed=3, permutation=2))
    assert policy.draws == Draws(3, 2)
    assert policy.host.host._rng.random() == themis._rng.random()
