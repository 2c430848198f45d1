"""Networks in torch, and their weights as the arrays of a file (`policies/learned/network.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn

from artist.policies.learned.network import (
    CANDIDATE,
    NONE,
    SCORES,
    START,
    Array,
    LogitStart,
    NetworkName,
    StartName,
    start_of,
    taken_off,
)
from artist.policies.learned.observation_sensitivity import OF_A_CANDIDATE, OF_THE_CLUSTER


def chain(sees: int, layers: Sequence[int], gives: int) -> nn.Sequential:
    """Dense layers with tanh between them."""
    parts: list[Any] = []
    for width in layers:
        parts += [nn.Linear(sees, width), nn.Tanh()]
        sees = width
    return nn.Sequential(*parts, nn.Linear(sees, gives))


class SharedActor(nn.Module):
    """One chain scores the candidates, another the answer none; the critic is a third over all."""

    def __init__(
        self, sees: int, candidates: int, layers: Sequence[int], start: LogitStart | None
    ) -> None:
        super().__init__()
        self.start = start
        self._count, self._width = candidates, len(OF_A_CANDIDATE)
        cluster = len(OF_THE_CLUSTER)
        self.candidate = chain(self._width + cluster, layers, 1)
        self.none = chain(cluster, layers, 1)
        self.critic = chain(sees, layers[:-1], layers[-1])
        self.latent_dim_pi, self.latent_dim_vf = candidates + 1, layers[-1]

    def forward(self, features: Any) -> Any:
        """The outputs of actor and critic; stable-baselines3 calls it."""
        return self.forward_actor(features), self.forward_critic(features)

    def forward_actor(self, features: Any) -> Any:
        """The logits of all actions."""
        split = self._count * self._width
        cluster = features[:, split:]
        rows = features[:, :split].reshape(-1, self._count, self._width)
        around = cluster[:, None, :].expand(-1, self._count, -1)
        scores = self.candidate(torch.cat([rows, around], dim=2))[:, :, 0]
        none = self.none(cluster)
        if self.start is not None:
            scores, none = scores - taken_off(self.start, rows), none - self.start.none
        return torch.cat([scores, none], dim=1)

    def forward_critic(self, features: Any) -> Any:
        """The features from which stable-baselines3 computes the value."""
        return torch.tanh(self.critic(features))


class SharedPolicy(MaskableActorCriticPolicy):
    """A policy of stable-baselines3 whose actor is `SharedActor`."""

    def __init__(
        self,
        *args: Any,
        candidates: int,
        layers: Sequence[int],
        start: LogitStart | None,
        **kwargs: Any,
    ) -> None:
        self._candidates, self._layers, self._start = candidates, layers, start
        super().__init__(*args, **kwargs)

    def _build_mlp_extractor(self) -> None:
        self.mlp_extractor = SharedActor(
            self.features_dim, self._candidates, self._layers, self._start
        )

    def _build(self, lr_schedule: Any) -> None:
        """Build the networks and the optimizer; stable-baselines3 calls it."""
        super()._build(lr_schedule)
        # The output of the actor already is the logits, so the layer after it is dropped, and Adam
        # is made again without it. As in stable-baselines3, logits start near 0, so that no action
        # is preferred.
        for last in (self.mlp_extractor.candidate[-1], self.mlp_extractor.none[-1]):
            nn.init.orthogonal_(last.weight, gain=0.01)
        self.action_net = nn.Identity()
        self.optimizer = self.optimizer_class(
            self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs
        )


def policy_of(
    name: NetworkName, candidates: int, layers: Sequence[int], start: StartName
) -> tuple[Any, Any]:
    """The class of the policy with this network, and its arguments."""
    if name == "shared":
        begins = start_of(start, candidates)
        return SharedPolicy, {"candidates": candidates, "layers": tuple(layers), "start": begins}
    return MaskableActorCriticPolicy, {"net_arch": {"pi": list(layers), "vf": list(layers)}}


def arrays_of(policy: Any, name: NetworkName) -> dict[str, Array]:
    """The weights that choose actions, without those of the critic."""
    arrays: dict[str, Array] = {}
    if name == "shared" and policy.mlp_extractor.start is not None:
        arrays[START] = np.array(policy.mlp_extractor.start, dtype=np.float32)
    if name == "shared":
        chains = {CANDIDATE: policy.mlp_extractor.candidate, NONE: policy.mlp_extractor.none}
    else:
        chains = {SCORES: [*policy.mlp_extractor.policy_net, policy.action_net]}
    for label, parts in chains.items():
        layers = [part for part in parts if isinstance(part, nn.Linear)]
        for number, layer in enumerate(layers):
            arrays[f"{label}.{number}.weight"] = _array(layer.weight)
            arrays[f"{label}.{number}.bias"] = _array(layer.bias)
    return arrays


def _array(tensor: Any) -> Array:
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float32)
