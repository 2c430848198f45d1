"""Files of weights that are worked out by hand, for tests of both kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from artist.cluster.tree import ClusterTree
from artist.config import Scenario
from artist.policies.learned.network import Array, LogitStart
from artist.policies.learned.observation_sensitivity import OF_A_CANDIDATE, OF_THE_CLUSTER
from artist.policies.learned.observations import open_observation, open_task
from artist.policies.learned.task_options import TaskOptions
from artist.policies.learned.weights import Manifest, digest_of, write_weights
from artist.run import build_cluster, build_fabric

SMALL = Scenario(
    racks=2,
    machines_per_rack=2,
    gpus_per_machine=8,
    trace="synth:60:32:0.9",
    contention="mean",
    # Links that a few jobs fill.
    fabric_options={"rack": {"oversubscription": 16.0}},
    seed=4,
)
FEW = SMALL.model_copy(update={"jobs": 20})
IDS = ("artist/Schedule-v0", "artist/Place-v0")


def made(name: str = IDS[0], scenario: Any = FEW, **options: Any) -> Any:
    """An environment without gymnasium's wrappers."""
    import gymnasium

    import artist.rl  # noqa: F401 - it registers the names

    return gymnasium.make(name, scenario=scenario, **options).unwrapped


def tree_of(scenario: Scenario) -> ClusterTree:
    return build_cluster(scenario, build_fabric(scenario))


def manifest_of(arrays: dict[str, Array], options: TaskOptions, **changes: Any) -> Manifest:
    facts: dict[str, Any] = {
        "task": options,
        "network": "mlp",
        "reward": "jobs-in-system",
        "algorithm": "by hand",
        "scenario": {},
        "steps": 0,
        "seed": 0,
        "settings": {},
        "versions": {},
        "shapes": {name: array.shape for name, array in arrays.items()},
        "digest": digest_of(arrays),
    }
    return Manifest(**{**facts, **changes})


def constant(path: Path, logits: Array, options: TaskOptions, tree: ClusterTree) -> Path:
    """A network that sees nothing: the same logits always."""
    sees = open_observation(options, tree).values.size
    assert logits.size == open_task(options, tree).actions
    arrays = {
        "scores.0.weight": np.zeros((logits.size, sees), dtype=np.float32),
        "scores.0.bias": logits.astype(np.float32),
    }
    write_weights(path, arrays, manifest_of(arrays, options))
    return path


def drawn(path: Path, options: TaskOptions, tree: ClusterTree) -> Path:
    """Random weights: what it does depends on all that it sees."""
    rng = np.random.default_rng(1)
    sees, does = open_observation(options, tree).values.size, open_task(options, tree).actions
    shapes = {"0.weight": (16, sees), "0.bias": (16,), "1.weight": (does, 16), "1.bias": (does,)}
    arrays = {
        f"scores.{name}": rng.normal(size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }
    write_weights(path, arrays, manifest_of(arrays, options))
    return path


def first_come(path: Path, options: TaskOptions, tree: ClusterTree) -> Path:
    """Prefers the first action, then the second, ...; none last."""
    actions = open_task(options, tree).actions
    return constant(path, -np.arange(actions, dtype=np.float32), options, tree)


def untrained(
    path: Path, start: LogitStart | None, options: TaskOptions, none: float = 0.0
) -> Path:
    """A shared network whose layers give 0, and for none this, with what it starts from."""
    assert start is not None
    cluster, sees = len(OF_THE_CLUSTER), len(OF_A_CANDIDATE) + len(OF_THE_CLUSTER)
    arrays = {
        "candidate.0.weight": np.zeros((1, sees), dtype=np.float32),
        "candidate.0.bias": np.zeros(1, dtype=np.float32),
        "none.0.weight": np.zeros((1, cluster), dtype=np.float32),
        "none.0.bias": np.array([none], dtype=np.float32),
        "start": np.array(start, dtype=np.float32),
    }
    write_weights(path, arrays, manifest_of(arrays, options, network="shared"))
    return path
