"""Random placement around any policy: a baseline that knows neither locality nor links.

The host decides which jobs get how many GPUs. The GPUs are drawn, each free one with the same
probability (CASSINI, section 5.1, Random: "a random placement scheduler that places workers for
each job randomly").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.contract import (
    ClusterView,
    Decision,
    Migrate,
    Options,
    Policy,
    Preempt,
    Start,
    WrapperPolicy,
)
from artist.errors import ConfigError
from artist.rng import FIRST_DRAWS, Draws


class RandomPlacementOptions(Options):
    """Random placement has no options. Its draws follow from the scenario's seed."""


class RandomPlacement(WrapperPolicy):
    """A host policy whose jobs get random GPUs."""

    Options = RandomPlacementOptions

    def __init__(
        self, options: RandomPlacementOptions, host: Policy, draws: Draws = FIRST_DRAWS
    ) -> None:
        super().__init__(host)
        self.obeys_gpu_kinds = self.obeys_gpu_kinds or self.reads_gpu_kinds
        self.reads_gpu_kinds = False
        if self.remembers_placements:
            raise ConfigError(
                "policy random-placement: the policy inside keeps its own record of which job has "
                "which GPUs; take another one"
            )
        self._rng = draws.stream("random-placement")

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """The host's decisions with other GPUs, as many."""
        decisions = self.host.decide(view)
        if not any(isinstance(x, Start | Migrate) for x in decisions):
            return decisions
        pool = view.free.copy()
        for decision in decisions:
            if isinstance(decision, Preempt | Migrate):
                held = view.running[decision.handle].placement
                assert held is not None  # running jobs have GPUs
                pool.release(held)
        return [
            replace(decision, placement=self._drawn(pool, decision.placement))
            if isinstance(decision, Start | Migrate)
            else decision
            for decision in decisions
        ]

    def _drawn(self, pool: FreeGpus, decided: Placement) -> Placement:
        """As many free GPUs, which the pool then lacks; where jobs require kinds, as many of each.

        Else a job that accepts every kind could take those that another one needs.
        """
        free = np.repeat(np.arange(len(pool.leaves)), pool.leaves)
        if pool.hosts is None:
            drawn = self._rng.choice(free, decided.gpus, False)
        else:
            kinds = np.array(pool.tree.kinds)[np.array(pool.tree.machine_of)]
            wanted = Counter(np.repeat(kinds[[*decided.leaves]], decided.counts).tolist())
            drawn = np.concatenate(
                [
                    self._rng.choice(free[kinds[free] == kind], gpus, False)
                    for kind, gpus in wanted.items()
                ]
            )
        leaves, counts = np.unique(drawn, return_counts=True)
        placement = Placement.of(dict(zip(leaves.tolist(), counts.tolist(), strict=True)))
        pool.claim(placement)
        return placement
