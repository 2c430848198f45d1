"""Pipelines whose stages wait most of the time, because they have few microbatches."""

from __future__ import annotations

from artist.workload.models import is_graph, settings


def waiting_stages(model: str) -> str:
    """A clause if a model's pipeline has fewer microbatches than stages; else empty.

    With m microbatches, each of p equally long stages works for m / (m + p - 1) of the time
    (arXiv:2104.04473, section 2.2).

    Raises:
        ConfigError: the model is unknown.
    """
    if is_graph(model):
        return ""
    chosen = settings(model)
    stages, parts = max(chosen.pipeline, chosen.stages), chosen.microbatches
    if parts >= stages:
        return ""
    return (
        f"{stages} stages share {parts} microbatch{'' if parts == 1 else 'es'}, so each works "
        f"{100 * parts / (parts + stages - 1):.3g} % of the time if all take equally long; give "
        f"microbatches={stages} or more, and a batch of as many samples"
    )
