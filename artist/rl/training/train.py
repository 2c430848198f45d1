"""Trains a network by PPO with masks, and writes it as a file of weights.

One update is a rollout (each environment takes some steps) and the epochs of PPO on it. A
checkpoint is written about every 30 s, and at the end. Training runs on one thread of torch, and
all randomness comes from the seed. So the same settings give the same digest on the same kind of
machine, even if the training was killed and resumed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

from artist import __version__
from artist.config import Scenario
from artist.errors import ConfigError
from artist.io.writing import write_whole
from artist.policies.learned.weights import Manifest, digest_of, write_weights
from artist.results.named_files import file_digests
from artist.rl.environment import ClusterEnv, PlaceEnv, ScheduleEnv
from artist.rl.training import checkpoint
from artist.rl.training.checkpoint import (
    CHECKPOINT,
    CURVES,
    MANIFEST,
    WEIGHTS,
    make_training_folder,
)
from artist.rl.training.networks import arrays_of, policy_of
from artist.rl.training.settings import TrainingSettings

CHECKPOINT_EVERY_S = 30.0
"""Wall time between checkpoints. Writing one takes a few milliseconds."""

RECENT = 100
"""How many episodes curves are averaged over."""

OnUpdate = Callable[[int, int], None]


class Trained(NamedTuple):
    """The result of a training."""

    weights: Path
    digest: str
    steps: int
    episodes: int
    jct_mean_s: float | None
    """Mean over the last episodes of this process; None if none ended."""
    wall_s: float
    resumed_at: int


class _Curves(BaseCallback):
    """Collects the results of episodes for the curves."""

    def __init__(self, episodes: int) -> None:
        super().__init__()
        self.episodes = episodes
        self.recent: deque[float] = deque(maxlen=RECENT)

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "jct_mean_s" in info:
                self.episodes += 1
                self.recent.append(info["jct_mean_s"])
        return True

    def _on_rollout_end(self) -> None:
        self.logger.record("episodes", self.episodes)
        if self.recent:
            self.logger.record("rollout/jct_mean_s", sum(self.recent) / len(self.recent))
        self.logger.record("rollout/reward_mean", float(self.model.rollout_buffer.rewards.mean()))


def train(
    scenario: Scenario,
    settings: TrainingSettings,
    out: Path,
    *,
    resume: bool = False,
    processes: int = 1,
    checkpoint_every_s: float = CHECKPOINT_EVERY_S,
    on_update: OnUpdate = lambda done, total: None,
) -> Trained:
    """Train on a scenario and write weights, manifest, checkpoint and curves into `out`.

    `on_update(done, total)` is called with the steps after each update.

    Raises:
        ConfigError: a setting is bad, or there is nothing to resume.
    """
    begun = time.perf_counter()
    torch.set_num_threads(1)
    environments = environments_of(scenario, settings, processes)
    try:
        model = model_of(settings, environments)
        asked = _asked(scenario, settings)
        file = out / CHECKPOINT
        episodes = checkpoint.restore(file, model, asked).episodes if resume else 0
        resumed_at = model.num_timesteps
        make_training_folder(out, resume=resume)
        model.set_logger(configure(str(out / CURVES), ["tensorboard"]))
        curves = _Curves(episodes)
        save = partial(checkpoint.save, file, model, asked, curves)
        try:
            for done in _updates(model, settings, curves, save, checkpoint_every_s):
                on_update(done, settings.steps)
        except ValueError as cause:
            if all(torch.isfinite(one).all() for one in model.policy.parameters()):
                raise
            raise ConfigError(
                "the network's weights are no longer numbers; lower learning_rate, and train "
                "from the start"
            ) from cause
        model.logger.close()
        arrays = arrays_of(model.policy, settings.network)
        manifest = _manifest(scenario, settings, arrays, model.num_timesteps)
    finally:
        environments.close()
    write_weights(out / WEIGHTS, arrays, manifest)
    write_whole(out / MANIFEST, manifest.model_dump_json(indent=1) + "\n")
    recent = curves.recent
    return Trained(
        out / WEIGHTS,
        manifest.digest,
        manifest.steps,
        curves.episodes,
        sum(recent) / len(recent) if recent else None,
        time.perf_counter() - begun,
        resumed_at,
    )


def _updates(
    model: Any,
    settings: TrainingSettings,
    curves: _Curves,
    save: Callable[[], None],
    checkpoint_every_s: float,
) -> Iterator[int]:
    """Train update by update and yield the steps so far. Save checkpoints, the last at the end."""
    size = settings.hyperparameters.environments * settings.hyperparameters.rollout
    saved = time.monotonic()
    while model.num_timesteps < settings.steps:
        # One update: with `reset_num_timesteps=False`, `size` is the number of further steps.
        model.learn(size, callback=curves, reset_num_timesteps=False)
        model.logger.dump(step=model.num_timesteps)
        if time.monotonic() - saved >= checkpoint_every_s:
            save()
            saved = time.monotonic()
        yield model.num_timesteps
    save()


def environments_of(scenario: Scenario, settings: TrainingSettings, processes: int) -> Any:
    """A vector environment of stable-baselines3, in this process or in one process each.

    Raises:
        ConfigError: the scenario is bad, or the observation cannot be trained on.
    """
    kind = ScheduleEnv if settings.task.task == "schedule" else PlaceEnv
    if settings.task.observation == "graph":
        raise ConfigError(
            "observation graph: maskable-ppo takes arrays of one size only; use sensitivity or "
            "grid, or train with a loop of your own"
        )
    options = settings.task.model_dump(exclude={"task"})

    def make() -> ClusterEnv:
        return kind(scenario, reward=settings.reward, **options)

    count = settings.hyperparameters.environments
    if processes > 1:
        return SubprocVecEnv([make] * count, start_method="forkserver")
    return DummyVecEnv([make] * count)


def model_of(settings: TrainingSettings, environments: Any) -> Any:
    """An untrained model."""
    hyper = settings.hyperparameters
    policy, arguments = policy_of(
        settings.network, settings.task.candidates, hyper.layers, hyper.start
    )
    return MaskablePPO(
        policy,
        environments,
        learning_rate=hyper.learning_rate,
        n_steps=hyper.rollout,
        batch_size=hyper.batch,
        n_epochs=hyper.epochs,
        gamma=hyper.gamma,
        gae_lambda=hyper.gae_lambda,
        clip_range=hyper.clip_range,
        ent_coef=hyper.entropy,
        vf_coef=hyper.value,
        policy_kwargs=arguments,
        seed=settings.seed,
        device="cpu",
    )


def _asked(scenario: Scenario, settings: TrainingSettings) -> dict[str, Any]:
    """What determines the weights, except `steps`: a training may be resumed to go further."""
    return {
        "scenario": scenario.model_dump(mode="json"),
        "settings": settings.model_dump(mode="json", exclude={"steps"}),
        "files": dict(file_digests(scenario)),
        "versions": _versions(),
    }


def _versions() -> dict[str, str]:
    names = ("gymnasium", "numpy", "sb3-contrib", "stable-baselines3", "torch")
    return {"artist": __version__, **{name: version(name) for name in names}}


def _manifest(
    scenario: Scenario, settings: TrainingSettings, arrays: dict[str, Any], steps: int
) -> Manifest:
    """The manifest of a trained policy: what it is, and how it was made."""
    return Manifest(
        task=settings.task,
        network=settings.network,
        reward=settings.reward,
        algorithm=settings.algorithm,
        scenario=scenario.model_dump(mode="json", exclude_defaults=True),
        steps=steps,
        seed=settings.seed,
        settings=settings.hyperparameters.model_dump(mode="json"),
        versions=_versions(),
        shapes={name: array.shape for name, array in sorted(arrays.items())},
        digest=digest_of(arrays),
    )
