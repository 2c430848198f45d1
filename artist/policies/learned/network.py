"""A trained network in numpy: from an observation to a logit for every action.

- `mlp`: dense layers with tanh between them, from the whole observation to all logits.
- `shared`: the same dense layers score every candidate, from its numbers and the cluster's. Other
  layers score the answer none, from the cluster's numbers. So the order of candidates does not
  matter, and what is learned about one of them serves all. It needs observation `sensitivity` and
  task `schedule`.

A shared network may start from a rule and learn when to leave it: `LogitStart` is subtracted from
the logits, whatever the weights are. A network whose layers give 0 everywhere follows the rule.

All numbers are 32-bit floats, as in training. The network is deterministic: it takes the allowed
action with the largest logit, the first among equals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from artist.errors import ConfigError
from artist.policies.learned.observation_sensitivity import (
    DEMAND,
    OF_A_CANDIDATE,
    OF_THE_CLUSTER,
    ONE_MACHINE,
    SPREAD,
)
from artist.policies.learned.task import Mask
from artist.policies.learned.task_options import TaskOptions

Array: TypeAlias = npt.NDArray[np.float32]
NetworkName: TypeAlias = Literal["mlp", "shared"]
StartName: TypeAlias = Literal["nothing", "first", "first-together"]

SCORES, CANDIDATE, NONE = "scores", "candidate", "none"
"""Names of the chains of layers in a file: of `mlp`, and the two of `shared`."""
START = "start"
"""Name of the array of a `LogitStart`; a network that starts from nothing has none."""

LOWER = 3.0
"""How far a candidate's logit starts below that of the one before it: e**3 times less likely. This
is our choice: in training, the network follows its rule except for one action in twenty. Started
from 1, networks became worse than their rule (docs/learning.md)."""


class LogitStart(NamedTuple):
    """What is subtracted from the logits of a shared network."""

    place: float
    """From a candidate's, for each candidate before it."""
    scattered: float
    """From a candidate's that would lie on several machines although one could hold it."""
    none: float
    """From the one of the answer none."""


def start_of(name: StartName, candidates: int) -> LogitStart | None:
    """The rule `first` picks the first candidate, `first-together` the first that is not scattered.

    With task order `area` and preemption at once, both are SRSF; `first-together` waits for one
    machine if one can hold the job.
    """
    last = LOWER * candidates
    if name == "first":
        return LogitStart(LOWER, 0.0, last)
    if name == "first-together":
        return LogitStart(LOWER, last + LOWER, last)
    return None


def taken_off(start: Sequence[float], rows: Any) -> Any:
    """What `LogitStart` subtracts from the candidates' logits; arrays of numpy or of torch.

    The last axis of `rows` is a candidate's numbers, the axis before it the candidates.
    """
    place, scattered, _ = start
    lies_apart = (rows[..., SPREAD] < 1) & (rows[..., DEMAND] <= ONE_MACHINE)
    first = rows[..., SPREAD] * 0 + place
    return first.cumsum(-1) - place + lies_apart * scattered


class PolicyNetwork(Protocol):
    """From an observation to logits."""

    sees: int
    """How many numbers an observation has."""
    actions: int

    def __call__(self, values: Array) -> Array:
        """The logits of all actions."""
        ...


class DenseNetwork:
    """A chain of dense layers with tanh between them: `layers` are pairs (weights, biases)."""

    def __init__(self, layers: Sequence[tuple[Array, Array]]) -> None:
        # Transposed once: numpy multiplies rows by them.
        self._hidden = [(weights.T, biases) for weights, biases in layers[:-1]]
        weights, self._biases = layers[-1]
        self._weights = weights.T
        self.sees = layers[0][0].shape[1]
        self.actions = weights.shape[0]

    def __call__(self, values: Array) -> Array:
        """The output for one input, or for one per row."""
        for weights, biases in self._hidden:
            values = np.tanh(values @ weights + biases)
        output: Array = values @ self._weights + self._biases
        return output


class SharedNetwork:
    """One chain of layers for every candidate, another for the answer none."""

    def __init__(
        self,
        candidate: DenseNetwork,
        none: DenseNetwork,
        candidates: int,
        start: LogitStart | None = None,
    ) -> None:
        self._candidate, self._none = candidate, none
        self._start = start
        self._count = candidates
        self._width = len(OF_A_CANDIDATE)
        self.sees = candidates * self._width + len(OF_THE_CLUSTER)
        self.actions = candidates + 1
        self._rows = np.zeros((candidates, candidate.sees), dtype=np.float32)

    def __call__(self, values: Array) -> Array:
        """The logits of all actions."""
        split = self._count * self._width
        self._rows[:, : self._width] = values[:split].reshape(self._count, self._width)
        self._rows[:, self._width :] = values[split:]
        scores = self._candidate(self._rows)[:, 0]
        none = self._none(values[split:])
        if self._start is not None:
            scores = scores - taken_off(self._start, self._rows)
            none = none - np.float32(self._start.none)
        return np.concatenate([scores, none])


def network_of(
    arrays: Mapping[str, Array],
    name: NetworkName,
    task: TaskOptions,
    where: str,
    caution: float = 1.0,
) -> PolicyNetwork:
    """The network in the arrays of a file. It keeps a share `caution` of its start.

    Raises:
        ConfigError: the arrays are not the layers of such a network; `where` names the file.
    """
    if name == "mlp":
        return dense_of(arrays, SCORES, where)
    candidate, none = dense_of(arrays, CANDIDATE, where), dense_of(arrays, NONE, where)
    widths = (candidate.sees, candidate.actions, none.sees, none.actions)
    cluster = len(OF_THE_CLUSTER)
    if widths != (len(OF_A_CANDIDATE) + cluster, 1, cluster, 1):
        raise ConfigError(f"{where}: no network over this artist's candidates; train again")
    start = arrays.get(START)
    if start is None:
        return SharedNetwork(candidate, none, task.candidates)
    if start.shape != (len(LogitStart._fields),):
        raise ConfigError(f"{where}: its array {START} has another length; train again")
    return SharedNetwork(
        candidate, none, task.candidates, LogitStart(*(caution * x for x in start.tolist()))
    )


def dense_of(arrays: Mapping[str, Array], chain: str, where: str) -> DenseNetwork:
    """The layers `CHAIN.0.weight`, `CHAIN.0.bias`, `CHAIN.1.weight` ... of a file.

    Raises:
        ConfigError: one is missing, or they do not fit each other.
    """
    layers: list[tuple[Array, Array]] = []
    while f"{chain}.{len(layers)}.weight" in arrays:
        number = len(layers)
        weights, biases = arrays[f"{chain}.{number}.weight"], arrays.get(f"{chain}.{number}.bias")
        fits = weights.ndim == 2 and biases is not None and biases.shape == weights.shape[:1]
        if not fits or (layers and layers[-1][0].shape[0] != weights.shape[1]):
            raise ConfigError(f"{where}: layer {number} of {chain} does not fit; train again")
        assert biases is not None  # it fits
        layers.append((weights, biases))
    if not layers:
        raise ConfigError(f"{where}: has no layers {chain}; train again")
    return DenseNetwork(layers)


def best(logits: Array, mask: Mask) -> int:
    """The allowed action with the largest logit, the first among equals."""
    return int(np.where(mask, logits, -np.inf).argmax())
