"""Does training repeat, resume, and give the policy that torch has? `make rl-test`."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learned import SMALL

from artist.errors import ConfigError
from artist.io.array_files import read_arrays, write_arrays
from artist.policies.learned.network import best, network_of
from artist.policies.learned.weights import read_weights

pytestmark = pytest.mark.rl
pytest.importorskip("sb3_contrib", exc_type=ImportError)

FEW = SMALL.model_copy(update={"jobs": 25})
TINY = {"environments": 2, "rollout": 32, "batch": 32, "epochs": 2, "layers": (8,)}


def settings(steps: int = 192, **changes: Any) -> Any:
    from artist.rl.training.settings import TrainingSettings

    return TrainingSettings.model_validate({"steps": steps, "hyperparameters": TINY, **changes})


def trained(out: Path, steps: int = 192, *, processes: int = 1, **changes: Any) -> Any:
    from artist.rl.training.checkpoint import check_training_folder
    from artist.rl.training.train import train

    resume = changes.pop("resume", False)
    check_training_folder(out, resume=resume, overwrite=False)
    return train(FEW, settings(steps, **changes), out, resume=resume, processes=processes)


CASES = [
    {},
    {"network": "shared"},
    {"task": {"observation": "grid"}},
    {"task": {"task": "place", "observation": "grid", "candidates": 3}},
    {"network": "shared", "task": {"preemption": "at-once"}},
    {"network": "shared", "hyperparameters": {**TINY, "start": "first-together"}},
]


@pytest.mark.parametrize("changes", CASES[:2])
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, changes: dict[str, Any]) -> None:
    one = trained(tmp_path / "one", **changes)
    two = trained(tmp_path / "two", **changes)
    assert one.weights.read_bytes() == two.weights.read_bytes()
    assert trained(tmp_path / "three", seed=1, **changes).digest != one.digest


def test_processes_do_not_change_the_weights(tmp_path: Path) -> None:
    one = trained(tmp_path / "one")
    assert trained(tmp_path / "two", processes=2).digest == one.digest


@pytest.mark.parametrize("changes", CASES[:2])
def test_a_resumed_training_gives_the_weights_of_an_undisturbed_one(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    whole = trained(tmp_path / "whole", steps=320, **changes)
    trained(tmp_path / "parts", steps=128, **changes)
    resumed = trained(tmp_path / "parts", steps=320, resume=True, **changes)
    assert resumed.resumed_at == 128
    assert resumed.digest == whole.digest


def test_a_killed_training_gives_the_weights_of_an_undisturbed_one(tmp_path: Path) -> None:
    """SIGKILL once there is a checkpoint, then --resume."""
    scenario = tmp_path / "s.yaml"
    scenario.write_text("racks: 1\nmachines_per_rack: 2\ntrace: synth:30:16:0.8\n")

    def command(out: str, *more: str) -> list[str]:
        steps = ["--steps", "6000", "--set", "ppo.environments=2", "--set", "ppo.rollout=64"]
        few = ["--set", "ppo.batch=64", "--set", "ppo.epochs=1"]
        asked = ["train", str(scenario), "--out", str(tmp_path / out), "--format", "json"]
        return [sys.executable, "-m", "artist", *asked, *steps, *few, *more]

    killed = subprocess.Popen(command("killed", "--checkpoint-every-s", "0"))
    while not (tmp_path / "killed" / "checkpoint.npz").exists():
        assert killed.poll() is None
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "killed" / "policy.npz").exists()
    told = []
    for out, more in (("killed", ["--resume"]), ("whole", [])):
        ran = subprocess.run(command(out, *more), capture_output=True, text=True, check=True)
        told.append(json.loads(ran.stdout))
    assert 0 < told[0]["resumed_at"] < 6000
    assert told[0]["digest"] == told[1]["digest"]


@pytest.mark.parametrize("changes", CASES)
def test_numpy_does_in_every_state_what_torch_would(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    from artist.rl.training.networks import arrays_of
    from artist.rl.training.train import environments_of, model_of

    chosen = settings(**changes)
    environments = environments_of(FEW, chosen, 1)
    model = model_of(chosen, environments)
    model.learn(128)
    network = network_of(arrays_of(model.policy, chosen.network), chosen.network, chosen.task, "x")
    env = environments.envs[0]
    seen, _ = env.reset(seed=11)
    steps, done = 0, False
    while not done:
        mask = env.action_masks()
        logits = network(seen.ravel())
        theirs, _ = model.predict(seen, deterministic=True, action_masks=mask)
        assert best(logits, mask) == int(theirs)
        seen, _, done, _, _ = env.step(int(theirs))
        steps += 1
    assert steps > 20


def test_the_policy_runs_in_artist_sim_and_its_manifest_says_how_it_was_made(
    tmp_path: Path,
) -> None:
    from artist.run import simulate

    result = trained(tmp_path / "out", network="shared", reward="jct")
    _, manifest = read_weights(result.weights)
    beside = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert beside == json.loads(manifest.model_dump_json())
    assert (manifest.reward, manifest.network, manifest.seed) == ("jct", "shared", 0)
    assert manifest.steps == 192
    assert {"artist", "torch", "numpy", "sb3-contrib"} <= set(manifest.versions)
    changes = {"policy": "learned", "policy_options": {"weights": str(result.weights)}}
    runs = [simulate(FEW.model_copy(update=changes)) for _ in range(2)]
    assert runs[0].summary["jct_mean_s"] == runs[1].summary["jct_mean_s"]


def test_curves_can_be_read_by_tensorboard(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    trained(tmp_path / "out", steps=512)
    events = EventAccumulator(str(tmp_path / "out" / "curves"))
    events.Reload()
    tags = events.Tags()["scalars"]
    assert {"train/value_loss", "rollout/reward_mean", "episodes"} <= set(tags)
    steps = [point.step for point in events.Scalars("rollout/reward_mean")]
    assert steps == [64 * n for n in range(1, 9)]


def test_another_training_cannot_be_resumed(tmp_path: Path) -> None:
    trained(tmp_path / "out", steps=64)
    with pytest.raises(ConfigError, match=r"other settings \(reward was 'jobs-in-system' and is"):
        trained(tmp_path / "out", reward="jct", resume=True)
    with pytest.raises(ConfigError, match=r"has no checkpoint\.npz; leave --resume out"):
        trained(tmp_path / "none", resume=True)


def test_a_training_is_replaced_only_if_asked(tmp_path: Path) -> None:
    from artist.rl.training.checkpoint import check_training_folder

    trained(tmp_path / "t")
    before = (tmp_path / "t" / "policy.npz").read_bytes()
    with pytest.raises(ConfigError, match="--overwrite"):
        trained(tmp_path / "t")
    assert (tmp_path / "t" / "policy.npz").read_bytes() == before
    check_training_folder(tmp_path / "t", resume=False, overwrite=True)
    (tmp_path / "t" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not a training"):
        check_training_folder(tmp_path / "t", resume=False, overwrite=True)


def test_a_truncated_checkpoint_is_refused(tmp_path: Path) -> None:
    trained(tmp_path / "out", steps=64)
    file = tmp_path / "out" / "checkpoint.npz"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(
        ConfigError, match=r"checkpoint\.npz: not a whole \.npz file .* train from the start"
    ):
        trained(tmp_path / "out", resume=True)


def test_a_crafted_checkpoint_is_refused(tmp_path: Path) -> None:
    """Whichever array is missing, of another shape or no array of numbers, and whatever facts."""
    trained(tmp_path / "out", steps=64)
    file = tmp_path / "out" / "checkpoint.npz"
    good = read_arrays(file, "")
    variants = [{name: array for name, array in good.items() if name != left} for left in good]
    variants += [{**good, name: np.zeros((3, 3, 3))} for name in good if name != "numpy"]
    variants += [{**good, name: np.array("x")} for name in good]
    facts = json.loads(str(good["facts"]))
    for place, fact in ((0, []), (1, -1), (1, 1e300), (2, True), (3, None), (3, ["x"])):
        crafted = [*facts[:place], fact, *facts[place + 1 :]]
        variants.append({**good, "facts": np.array(json.dumps(crafted))})
    variants.append({**good, "facts": np.array("[" * 100_000)})
    variants.append({**good, "environment/0/actions": np.full(999, 10**6)})
    variants.append({**good, "environment/0/at": np.array([-5, -5])})
    for arrays in variants:
        write_arrays(file, arrays)
        with pytest.raises(ConfigError, match=r"checkpoint\.npz: .*train from the start|settings"):
            trained(tmp_path / "out", steps=128, resume=True)


def test_a_network_without_numbers_ends_in_a_sentence(tmp_path: Path) -> None:
    trained(tmp_path / "out", steps=64)
    file = tmp_path / "out" / "checkpoint.npz"
    good = read_arrays(file, "")
    weights = {name: np.full_like(one, np.nan) for name, one in good.items() if "policy/" in name}
    write_arrays(file, {**good, **weights})
    with pytest.raises(ConfigError, match="weights are no longer numbers; lower learning_rate"):
        trained(tmp_path / "out", steps=128, resume=True)


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match="exists and is not a training"):
        trained(tmp_path / "mine")
    trained(tmp_path / "out", steps=64)
    with pytest.raises(ConfigError, match="holds a training already"):
        trained(tmp_path / "out")
    shutil.rmtree(tmp_path / "out")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--algorithm", "ppo"], "training: 'algorithm' is 'ppo', expected 'maskable-ppo'"),
        (["--set", "ppo.gama=1"], "unknown setting 'hyperparameters.gama': did you mean 'gamma'?"),
        (["--set", "task.candidates=0"], "'task.candidates' is 0, expected at least 1"),
        (["--set", "rakcs=1"], "unknown setting 'rakcs' (did you mean 'racks'?)"),
        (["--set", "racks=1", "--set", "machines_per_rack=1"], "demands 16 GPUs"),
        (["--reward", "jtc"], "did you mean 'jct'"),
    ],
)
def test_a_mistake_ends_in_a_sentence_and_leaves_no_folder(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    scenario = tmp_path / "s.yaml"
    scenario.write_text("trace: tiny-poisson\n")
    command = ["train", str(scenario), "--out", str(tmp_path / "out"), *arguments]
    ran = subprocess.run(
        [sys.executable, "-m", "artist", *command], capture_output=True, text=True, check=False
    )
    assert ran.returncode in (2, 3)
    assert ran.stderr.startswith("artist: error: ") and ran.stderr.count("\n") == 1
    assert words in ran.stderr
    assert not (tmp_path / "out").exists()


def test_graphs_are_refused_by_the_training(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="maskable-ppo takes arrays of one size"):
        trained(tmp_path / "out", task={"observation": "graph"})


def test_a_shared_network_needs_its_observation_and_task() -> None:
    for task in ({"task": "place"}, {"observation": "grid"}):
        with pytest.raises(ValueError, match="network shared"):
            settings(network="shared", task=task)


def test_a_start_needs_a_network_over_candidates() -> None:
    with pytest.raises(ValueError, match="start first needs network shared, got mlp; leave it out"):
        settings(hyperparameters={"start": "first"})


def test_a_network_learns_to_prefer_short_jobs(tmp_path: Path) -> None:
    """On one GPU the mean completion time is least if the shortest job runs first.

    The network sees jobs in order of arrival and starts without a preference. After training it
    does better than that order by a tenth at least.
    """
    from artist.config import Scenario
    from artist.rl.training.train import train
    from artist.run import simulate

    rng = np.random.default_rng(0)
    rows = [f"{i},0,1,resnet50,{int(n)},1" for i, n in enumerate(rng.integers(10, 1000, 24))]
    trace = tmp_path / "t.csv"
    trace.write_text("job_id,arrival_s,gpus,model,iterations,compute_s\n" + "\n".join(rows))
    one = Scenario(tree=[[1]], trace=str(trace), backend="none")
    hyper = {"environments": 4, "rollout": 64, "batch": 64, "learning_rate": 3e-3}
    chosen = settings(4096, network="shared", task={"order": "arrival"}, hyperparameters=hyper)
    weights = train(one, chosen, tmp_path / "out").weights
    options = {"policy": "learned", "policy_options": {"weights": str(weights)}}
    jct_s = {
        policy["policy"]: simulate(one.model_copy(update=policy)).summary["jct_mean_s"]
        for policy in (options, {"policy": "fifo"}, {"policy": "sjf"})
    }
    assert jct_s["learned"] < 0.9 * jct_s["fifo"]
    assert jct_s["learned"] >= jct_s["sjf"]
