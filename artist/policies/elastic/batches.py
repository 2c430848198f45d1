"""Decisions that give jobs the batch of the largest goodput."""

from __future__ import annotations

from collections.abc import Mapping

from artist.cluster.kinds import kinds_of
from artist.cluster.placement import Placement, tier
from artist.contract import ClusterView, Decision, SetBatch
from artist.workload.goodput import best


def best_batches(view: ClusterView, placed: Mapping[int, Placement]) -> list[Decision]:
    """Set the best batches of jobs on the GPUs that they have after the round."""
    decisions: list[Decision] = []
    for handle, placement in placed.items():
        state = view.waiting.get(handle) or view.running[handle]
        goodput = state.job.goodput
        if goodput is None:
            continue
        if goodput.kinds:
            goodput = goodput.on(kinds_of(view.cluster, placement))
        done = state.iterations_done(view.now)
        noise, _ = goodput.noise_at(done, state.job.iterations)
        one_machine = tier(view.cluster, placement) == view.cluster.machine
        _, batch = best(goodput, placement.gpus, noise, one_machine=one_machine)
        stays = placement == state.placement
        present = (state.batch if stays else None) or goodput.submitted(placement.gpus)
        if batch != present:
            decisions.append(SetBatch(handle, batch))
    return decisions
