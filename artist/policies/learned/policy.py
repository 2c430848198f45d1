"""`learned`, `rl-base`, `rl-hybrid`: a trained network decides. It needs numpy only.

The manifest of the weights says what the network sees and may do (`task_options.py`). Each action
is the allowed one with the largest logit, so runs are deterministic.

`rl-base` and `rl-hybrid` ship with artist (`shipped/`, each with a model card). They differ as in
Ryu and Eo, section IV. RL-base waits if its network answers none. RL-Hybrid then follows a greedy
rule: the first candidate is next, so it waits only if no job can start. Its network was trained
without the answer none. The networks of the paper see the grid of a cluster of 4 x 8 GPUs. Ours see
sensitivities, so they can be used on any cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field

from artist.cluster.tree import ClusterTree
from artist.contract import BasePolicy, ClusterView, Decision, Options
from artist.errors import ConfigError
from artist.policies.learned.network import best, network_of
from artist.policies.learned.observations import Observation, open_observation, open_task
from artist.policies.learned.task import AgentTask, Mask
from artist.policies.learned.weights import read_weights

SHIPPED = Path(__file__).parent / "shipped"
"""Networks, NAME.npz, and a model card beside each, NAME.md."""

OnNone: TypeAlias = Literal["wait", "greedy"]


class NetworkOptions(Options):
    """Options of every network."""

    # The paper's RL-base (section IV).
    on_none: OnNone = Field(
        default="wait",
        description="if the network answers none: wait, or greedy: the first candidate is next",
    )

    # As in training. Networks that ship have another default (policies/table.py, model cards).
    caution: float = Field(
        default=1.0,
        ge=0,
        le=100,
        description="how much of the rule that it started from a network keeps: less leaves it "
        "sooner, 0 forgets it; networks that started from none ignore it",
    )


class LearnedOptions(NetworkOptions):
    """Options of the policy."""

    # No default: a network is trained for one purpose.
    weights: str | None = Field(
        default=None, description="file of weights (policy.npz of `artist train`)"
    )


class ShippedOptions(NetworkOptions):
    """Options of the networks that ship."""

    # The rows of the table of policies set it.
    network: Literal["rl-base", "rl-hybrid"] = Field(
        default="rl-base", description="which of the networks that ship with artist"
    )


class Learned(BasePolicy):
    """A network from a file."""

    Options: type[NetworkOptions] = LearnedOptions

    def __init__(self, options: LearnedOptions) -> None:
        if options.weights is None:
            raise ConfigError(
                "policy learned: which network? give --set policy.weights=FILE, a policy.npz of "
                "`artist train`, or use rl-base or rl-hybrid, which include theirs"
            )
        self._open(options.weights, options)

    def _open(self, file: str, options: NetworkOptions) -> None:
        """Read the network; the task is opened at the first question, which has the cluster."""
        self._file, self._on_none = file, options.on_none
        arrays, self.manifest = read_weights(Path(file))
        self._network = network_of(
            arrays,
            self.manifest.network,
            self.manifest.task,
            f"weights {file}",
            options.caution,
        )
        self._task: AgentTask | None = None
        self._observation: Observation | None = None

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Answer a question, action by action."""
        if self._task is None:
            self._task, self._observation = self._opened(view.cluster)
        task, observation = self._task, self._observation
        assert observation is not None  # opened together
        goes_on = task.begin(view)
        while goes_on:
            mask = task.mask()
            action = best(self._network(observation.update(task).ravel()), mask)
            if action == task.actions - 1 and self._on_none == "greedy":
                action = greedy(mask)
            goes_on = task.act(action)
        return task.decisions()

    def _opened(self, tree: ClusterTree) -> tuple[AgentTask, Observation]:
        """The task and the observation on a cluster."""
        options = self.manifest.task
        task, observation = open_task(options, tree), open_observation(options, tree)
        sees, does = observation.values.size, task.actions
        if sees != self._network.sees or does != self._network.actions:
            raise ConfigError(
                f"weights {self._file}: its network sees {self._network.sees} numbers and has "
                f"{self._network.actions} actions, but observation {options.observation} and task "
                f"{options.task} have {sees} and {does} on this cluster; use the cluster of "
                "the training, or train with observation sensitivity and task schedule, which do "
                "not depend on it"
            )
        return task, observation


class Shipped(Learned):
    """A network that ships with artist."""

    Options = ShippedOptions

    def __init__(self, options: ShippedOptions) -> None:
        self._open(str(SHIPPED / f"{options.network}.npz"), options)


def greedy(mask: Mask) -> int:
    """The first candidate, on the first list of machines on which it fits."""
    return int(mask.argmax())
