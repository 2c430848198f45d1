"""The folder of a training and its checkpoint, from which it resumes as if it had never stopped.

A checkpoint is taken between two updates. It holds the weights of actor and critic, the state of
Adam, the random states of torch and numpy, and for each environment its seed and the actions of its
episode so far. Repeating the actions restores the environment. The file is an `.npz` of plain
arrays. The folder also has `policy.npz`, its manifest and the curves.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from artist.errors import ConfigError, shortened
from artist.io.array_files import read_arrays, write_arrays
from artist.io.own_folders import OwnFolder, json_with
from artist.io.writing import check_folder

_FACTS = "facts"
_REMEDY = "remove it, and train from the start"


class SavedState(NamedTuple):
    """The part of a checkpoint that is not arrays."""

    asked: dict[str, Any]
    """Scenario, settings and digests of files. Only a training with the same ones may resume."""
    steps: int
    episodes: int
    numpy_state: list[Any]


class EpisodeCounter(Protocol):
    """The object that counts episodes."""

    episodes: int


def save(path: Path, model: Any, asked: dict[str, Any], curves: EpisodeCounter) -> None:
    """Write a checkpoint, whole or not at all.

    Raises:
        ConfigError: the file cannot be written.
    """
    arrays: dict[str, Any] = {}
    for name, tensor in model.policy.state_dict().items():
        arrays[f"policy/{name}"] = tensor.cpu().numpy()
    for index, state in model.policy.optimizer.state_dict()["state"].items():
        for key, value in state.items():
            arrays[f"adam/{index}/{key}"] = value.cpu().numpy()
    arrays["torch"] = torch.get_rng_state().numpy()
    kind, keys, *rest = np.random.get_state()
    arrays["numpy"] = keys
    for index, (first, number, actions) in enumerate(model.env.env_method("state")):
        arrays[f"environment/{index}/at"] = np.array([first, number], dtype=np.int64)
        arrays[f"environment/{index}/actions"] = np.array(actions, dtype=np.int32)
    arrays["starts"] = np.array(model._last_episode_starts)
    facts = SavedState(asked, model.num_timesteps, curves.episodes, [kind, *rest])
    write_arrays(path, {_FACTS: np.array(json.dumps(facts)), **arrays})


def restore(path: Path, model: Any, asked: dict[str, Any]) -> SavedState:
    """Restore a model from a checkpoint.

    Raises:
        ConfigError: the file is not a complete checkpoint, or is that of another training.
    """
    arrays = read_arrays(path, _REMEDY)
    try:
        facts = SavedState(*json.loads(str(arrays[_FACTS])))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ConfigError(f"{path}: not a checkpoint of a training; {_REMEDY}") from None
    if facts.asked != json.loads(json.dumps(asked)):
        raise ConfigError(
            f"{path}: the checkpoint is of a training with other settings"
            f"{_which(facts.asked, asked)}; give the same settings, or another --out"
        )
    try:
        _restore(model, arrays, facts)
    except Exception as cause:  # broken arrays make torch and numpy raise anything
        raise ConfigError(
            f"{path}: not a complete checkpoint ({shortened(str(cause))}); {_REMEDY}"
        ) from cause
    return facts


def _restore(model: Any, arrays: dict[str, Any], facts: SavedState) -> None:
    """Restore weights, random states and environments.

    Raises:
        ValueError: the file does not fit the training.
    """
    if not all(type(count) is int and 0 <= count < 2**63 for count in facts[1:3]):
        raise ValueError(f"{facts.steps!r} steps in {facts.episodes!r} episodes")
    _restore_weights(model, arrays)
    torch.set_rng_state(torch.from_numpy(arrays["torch"]))
    kind, *rest = facts.numpy_state
    np.random.set_state((kind, arrays["numpy"], *rest))
    seen = []
    for index in range(model.n_envs):
        first, number = arrays[f"environment/{index}/at"].tolist()
        state = (first, number, arrays[f"environment/{index}/actions"].tolist())
        seen += model.env.env_method("restored", state, indices=[index])
        if seen[-1] is None:
            raise ValueError(f"environment {index} has no such state")
    starts = arrays["starts"]
    if starts.dtype != bool or starts.shape != (model.n_envs,):
        raise ValueError("starts are not one truth for each environment")
    model._last_obs = np.stack(seen)
    model._last_episode_starts = starts
    model.num_timesteps = facts.steps


def _restore_weights(model: Any, arrays: dict[str, Any]) -> None:
    """Load the weights of the network, and the moments of its optimizer (Adam)."""
    weights = {
        name.removeprefix("policy/"): torch.from_numpy(array)
        for name, array in arrays.items()
        if name.startswith("policy/")
    }
    model.policy.load_state_dict(weights)
    optimizer = model.policy.optimizer
    state: dict[int, dict[str, Any]] = {}
    for name, array in arrays.items():
        if name.startswith("adam/"):
            _, index, key = name.split("/")
            state.setdefault(int(index), {})[key] = torch.from_numpy(array)
    parameters = [*model.policy.parameters()]
    for place, moments in state.items():
        shapes = {key: moment.shape for key, moment in moments.items()}
        shape = parameters[place].shape
        if shapes != {"step": (), "exp_avg": shape, "exp_avg_sq": shape}:
            raise ValueError(f"adam/{place} is not of the network")
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def _which(theirs: Any, ours: dict[str, Any]) -> str:
    """In words, the first setting that differs; empty if `theirs` are not settings."""
    for group, settings in ours.items():
        former = theirs.get(group) if isinstance(theirs, dict) else None
        if not isinstance(former, dict):
            continue
        for key, here in settings.items():
            if (there := former.get(key)) != here:
                return f" ({key} was {repr(there)[:80]} and is {here!r})"
    return ""


WEIGHTS, CHECKPOINT, MANIFEST, CURVES = "policy.npz", "checkpoint.npz", "manifest.json", "curves"


def check_training_folder(out: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse a folder before a training begins. Nothing is changed.

    Raises:
        ConfigError: the folder holds something else, a training that may not be replaced, or
            nothing to resume.
    """
    if resume and not (out / CHECKPOINT).is_file():
        raise ConfigError(f"--resume: {out} has no {CHECKPOINT}; leave --resume out")
    check_folder(out, _TRAINING.what, _TRAINING.foreign, overwrite=overwrite or resume)


def make_training_folder(out: Path, *, resume: bool) -> None:
    """Make the folder, and empty it of an earlier training unless that is resumed."""
    if not resume and out.is_dir():
        for name in (WEIGHTS, CHECKPOINT, MANIFEST):
            (out / name).unlink(missing_ok=True)
        shutil.rmtree(out / CURVES, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)


def _is_manifest(path: Path) -> bool:
    """Whether a file is the manifest of weights; it may be missing if a training was stopped."""
    return json_with("task", "network", "digest")(path) if path.exists() else True


_TRAINING = OwnFolder(
    "training",
    re.compile(r"policy\.npz|checkpoint\.npz|manifest\.json"),
    MANIFEST,
    _is_manifest,
    {CURVES: re.compile(r"events\.out\.tfevents\..*")},
)
