"""`learned`: a trained network decides. It needs numpy only; training is `artist train`.

The network sees and does what the manifest of its weights says (`options.py`). Each action is the
allowed one with the largest logit, so a run has no chance in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from artist.cluster.tree import ClusterTree
from artist.contract import BasePolicy, ClusterView, Decision, Options
from artist.errors import ConfigError
from artist.policies.learned.network import best, network_of
from artist.policies.learned.observe import Observation, open_observation, open_task
from artist.policies.learned.task import Task
from artist.policies.learned.weights import read_weights


class LearnedOptions(Options):
    """Options of the policy."""

    # None: a network is trained for a purpose, so none is everybody's.
    weights: str | None = Field(
        default=None, description="file of weights (policy.npz of `artist train`)"
    )


class Learned(BasePolicy):
    """The policy."""

    Options = LearnedOptions

    def __init__(self, options: LearnedOptions) -> None:
        if options.weights is None:
            raise ConfigError(
                "policy learned: which network? give --set policy.weights=FILE, a policy.npz of "
                "`artist train`"
            )
        self._file = options.weights
        arrays, self.manifest = read_weights(Path(options.weights))
        self._network = network_of(
            arrays, self.manifest.network, self.manifest.task, f"weights {self._file}"
        )
        self._task: Task | None = None
        self._observation: Observation | None = None

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Answer a question action by action."""
        if self._task is None:
            self._task, self._observation = self._opened(view.cluster)
        task, observation = self._task, self._observation
        assert observation is not None  # opened together
        goes_on = task.begin(view)
        while goes_on:
            logits = self._network(observation.update(task).ravel())
            goes_on = task.act(best(logits, task.mask()))
        return task.decisions()

    def _opened(self, tree: ClusterTree) -> tuple[Task, Observation]:
        """The task and the observation on a cluster.

        Raises:
            ConfigError: the network was trained for clusters of another size.
        """
        options = self.manifest.task
        task, observation = open_task(options, tree), open_observation(options, tree)
        sees, does = observation.values.size, task.actions
        if sees != self._network.sees or does != self._network.actions:
            raise ConfigError(
                f"weights {self._file}: its network sees {self._network.sees} numbers and has "
                f"{self._network.actions} actions, but observation {options.observation} and task "
                f"{options.task} have {sees} and {does} on this cluster; take the cluster of "
                "the training, or train with observation sensitivity and task schedule, which do "
                "not depend on it"
            )
        return task, observation
