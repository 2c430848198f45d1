"""Does a network do what its weights say? These tests need no extra."""

from __future__ import annotations

import copy
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from learned import SMALL, constant, drawn, first_come, tree_of, untrained

from artist.config import Scenario
from artist.engine.rows import Rows
from artist.errors import ConfigError
from artist.policies.learned.network import LOWER, best, start_of, taken_off
from artist.policies.learned.observation_sensitivity import DEMAND, OF_A_CANDIDATE, SPREAD
from artist.policies.learned.policy import SHIPPED, Learned, LearnedOptions, Shipped, ShippedOptions
from artist.policies.learned.task_options import TaskOptions
from artist.policies.learned.weights import read_weights
from artist.policies.table import POLICIES
from artist.run import drive, prepare, simulate
from artist.testing import check_policy


def rows_under(policy: str, scenario: Scenario = SMALL, **options: object) -> Rows:
    changes = {"policy": policy, "policy_options": options}
    prepared = prepare(scenario.model_copy(update=changes), check=True)
    drive(prepared)
    return prepared.simulator.rows


@pytest.mark.parametrize(("seed", "contention"), [(4, "mean"), (9, "none"), (3, "mean")])
@pytest.mark.parametrize(
    ("preemption", "classic", "its_options"),
    [("at-once", "srsf", {}), ("never", "sjf", {"order": "area"})],
)
def test_a_network_that_always_picks_the_first_candidate_is_the_classic_policy(
    tmp_path: Path,
    seed: int,
    contention: str,
    preemption: str,
    classic: str,
    its_options: dict[str, str],
) -> None:
    scenario = SMALL.model_copy(update={"contention": contention, "seed": seed})
    options = TaskOptions.model_validate({"preemption": preemption, "candidates": 3})
    file = first_come(tmp_path / "p.npz", options, tree_of(scenario))
    ours = rows_under("learned", scenario, weights=str(file))
    theirs = rows_under(classic, scenario, **its_options)
    assert ours.jobs == theirs.jobs
    assert ours.placements == theirs.placements


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("may_wait", [True, False])
def test_a_network_that_starts_from_the_first_candidate_is_srsf(
    tmp_path: Path, seed: int, may_wait: bool
) -> None:
    """All layers give 0, as they do before training."""
    options = TaskOptions(
        preemption="at-once", placement="consolidate-or-wait", may_wait=may_wait, candidates=3
    )
    file = untrained(tmp_path / "p.npz", start_of("first", 3), options)
    scenario = SMALL.model_copy(update={"seed": seed})
    ours = rows_under("learned", scenario, weights=str(file))
    assert ours.jobs == rows_under("srsf", scenario, placement="consolidate-or-wait").jobs


@pytest.mark.parametrize(("caution", "action"), [(1.0, 0), (0.5, 3), (0.0, 3)])
def test_less_caution_leaves_the_start_sooner(tmp_path: Path, caution: float, action: int) -> None:
    """The layers give the action none a logit of 5; the start takes off 9."""
    options = TaskOptions(candidates=3)
    file = untrained(tmp_path / "p.npz", start_of("first", 3), options, none=5.0)
    network = Learned(LearnedOptions(weights=str(file), caution=caution))._network
    assert best(network(np.zeros(network.sees, np.float32)), np.ones(4, bool)) == action


def test_what_a_start_takes_off_the_logits() -> None:
    """Three candidates: together on one machine, scattered over two, and as large as two."""
    rows = np.zeros((3, len(OF_A_CANDIDATE)), dtype=np.float32)
    rows[:, DEMAND] = [0.25, 0.25, 0.5]
    rows[:, SPREAD] = [1.0, 0.5, 0.75]
    start = start_of("first-together", 3)
    assert start is not None
    assert taken_off(start, rows).tolist() == [0.0, LOWER + 4 * LOWER, 2 * LOWER]
    assert start.none == 3 * LOWER


def test_none_is_answered_only_while_a_job_runs(tmp_path: Path) -> None:
    """A network that always wants none runs one job after the other, and leaves none waiting."""
    options = TaskOptions()
    logits = np.zeros(options.candidates + 1, dtype=np.float32)
    logits[-1] = 1.0
    file = constant(tmp_path / "p.npz", logits, options, tree_of(SMALL))
    rows = rows_under("learned", SMALL.model_copy(update={"jobs": 12}), weights=str(file))
    stays = sorted((row.start, row.end) for row in rows.placements)
    assert len(rows.jobs) == 12
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(stays))


@pytest.mark.parametrize("observation", ["sensitivity", "grid"])
@pytest.mark.parametrize("task", ["schedule", "place"])
def test_a_copy_of_the_policy_goes_on_as_the_original(
    tmp_path: Path, task: str, observation: str
) -> None:
    options = TaskOptions.model_validate({"task": task, "observation": observation})
    scenario = SMALL.model_copy(update={"jobs": 30})
    file = drawn(tmp_path / "p.npz", options, tree_of(scenario))
    changes = {"policy": "learned", "policy_options": {"weights": str(file)}}
    prepared = prepare(scenario.model_copy(update=changes))
    simulator, policy = prepared.simulator, prepared.policy
    for _ in range(40):
        view = simulator.next_question(policy)
        assert view is not None
        simulator.answer(policy.decide(view))
    twin, its_policy = copy.deepcopy((simulator, policy))
    assert simulator.run(policy).placements == twin.run(its_policy).placements


@pytest.mark.parametrize("preemption", ["never", "at-once"])
def test_the_policy_keeps_the_contract(tmp_path: Path, preemption: str) -> None:
    options = TaskOptions.model_validate({"preemption": preemption})
    file = drawn(tmp_path / "p.npz", options, tree_of(SMALL))
    check_policy(lambda: Learned(LearnedOptions(weights=str(file))))


def test_weights_for_another_cluster_are_refused_in_a_sentence(tmp_path: Path) -> None:
    options = TaskOptions(observation="grid")
    file = first_come(tmp_path / "p.npz", options, tree_of(SMALL))
    larger = SMALL.model_copy(update={"racks": 3})
    with pytest.raises(ConfigError, match=r"its network sees 64 numbers .* have 96 and 9 on this"):
        rows_under("learned", larger, weights=str(file))


def test_weights_with_sensitivity_run_on_a_larger_cluster(tmp_path: Path) -> None:
    file = first_come(tmp_path / "p.npz", TaskOptions(), tree_of(SMALL))
    larger = SMALL.model_copy(update={"racks": 8})
    assert len(rows_under("learned", larger, weights=str(file)).jobs) == 60


def test_without_a_file_the_policy_says_which_option_is_missing() -> None:
    with pytest.raises(ConfigError, match=r"which network\? give --set policy\.weights=FILE"):
        simulate(SMALL.model_copy(update={"policy": "learned"}))


def test_the_digest_of_the_weights_stands_in_the_result(tmp_path: Path) -> None:
    file = first_come(tmp_path / "p.npz", TaskOptions(), tree_of(SMALL))
    changes = {"policy": "learned", "policy_options": {"weights": str(file)}, "jobs": 5}
    result = simulate(SMALL.model_copy(update=changes))
    assert result.inputs["policy.weights"].startswith("sha256:")


def test_evaluation_imports_neither_torch_nor_gymnasium(tmp_path: Path) -> None:
    file = first_come(tmp_path / "p.npz", TaskOptions(), tree_of(SMALL))
    code = (
        "import sys; from artist import Scenario, simulate; "
        "simulate(Scenario(trace='tiny-batch', policy='learned', "
        f"policy_options={{'weights': {str(file)!r}}})); "
        "import artist.cli.main; artist.cli.main.application(); "
        "print([m for m in ('torch', 'gymnasium', 'artist.rl') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.parametrize(
    ("missing", "what", "sentence"),
    [
        (["gymnasium"], "artist.cli.main", "artist train needs gymnasium, which is"),
        (["torch"], "artist.cli.main", "artist train needs torch, which is"),
        (["gymnasium"], "artist.rl", "artist.rl needs gymnasium, which is"),
    ],
)
def test_without_the_extra_a_sentence_says_who_needs_what(missing, what, sentence) -> None:
    """`importlib.util.find_spec` answers None for these libraries, and all others are there."""
    code = (
        "import sys, importlib.util as u; found = u.find_spec; from types import SimpleNamespace; "
        f"u.find_spec = lambda name: None if name in {missing} else SimpleNamespace(); "
        "sys.argv = ['artist', 'train', 's.yaml', '--out', 'x']\n"
        f"import {what} as it\n"
        "it.main()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = f"{sentence} not installed: pip install 'artist-sim[rl]'\n"
    if what == "artist.rl":
        assert ran.stderr.endswith(f"ConfigError: {said}")
    else:
        assert (ran.returncode, ran.stderr) == (2, f"artist: error: {said}")


# -- the network that ships ----------------------------------------------------------


def test_hybrid_follows_the_greedy_rule_where_the_network_answers_none(tmp_path: Path) -> None:
    """A network that always wants none: `wait` runs one job at a time, `greedy` is SRSF."""
    options = TaskOptions.model_validate({"preemption": "at-once"})
    logits = np.zeros(options.candidates + 1, dtype=np.float32)
    logits[-1] = 1.0
    file = str(constant(tmp_path / "p.npz", logits, options, tree_of(SMALL)))
    few = SMALL.model_copy(update={"jobs": 20})
    greedy = rows_under("learned", few, weights=file, on_none="greedy")
    assert greedy.jobs == rows_under("srsf", few).jobs
    assert greedy.jobs != rows_under("learned", few, weights=file).jobs


@pytest.mark.parametrize("name", ["rl-base", "rl-hybrid"])
def test_the_network_that_ships_keeps_the_contract(name: str) -> None:
    entry = POLICIES[name]
    check_policy(lambda: Shipped(ShippedOptions.model_validate(dict(entry.preset))))


@pytest.mark.parametrize("name", ["rl-base", "rl-hybrid"])
def test_a_network_that_ships_is_that_of_its_file(name: str) -> None:
    file, on_none = str(SHIPPED / f"{name}.npz"), "wait" if name == "rl-base" else "greedy"
    theirs = rows_under("learned", weights=file, on_none=on_none, caution=0.2)
    assert rows_under(name).jobs == theirs.jobs


@pytest.mark.parametrize("name", ["rl-base", "rl-hybrid"])
def test_the_model_card_describes_the_shipped_weights(name: str) -> None:
    card = (SHIPPED / f"{name}.md").read_text(encoding="utf-8")
    _, manifest = read_weights(SHIPPED / f"{name}.npz")
    assert manifest.digest in card
    assert f"{manifest.steps:,} steps" in card
    # The paper's hybrid has the same network: a greedy rule decides where it answers none.
    assert manifest.task.may_wait
    for word in ("Data", "Seeds", "Results", "Limits"):
        assert f"**{word}" in card
