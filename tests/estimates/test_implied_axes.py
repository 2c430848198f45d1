"""Do jobs whose axes are implied take and send what those do that say them?"""

from __future__ import annotations

import pytest

from artist.astra.model.analytical import AnalyticalBackend
from artist.estimates.divided.layer_wise import LayerwiseBackend
from artist.estimates.query import Dimension, Estimate, LatencyQuery, SystemSettings, Topology
from artist.workload.layers import quantised
from artist.workload.models import workload

BACKEND = LayerwiseBackend(AnalyticalBackend())


def dimensions(machines: int) -> tuple[Dimension, ...]:
    """Machines of eight GPUs, with a slower network between them."""
    inside = Dimension(Topology.SWITCH, 8, 500.0, 500.0, "machine")
    return (inside, Dimension(Topology.SWITCH, machines, 5.0, 500.0, "rack"))


def answer(model: str, machines: int) -> Estimate:
    rings = ("ring",) * 2
    system = SystemSettings(rings, rings, rings, ("direct1",) * 2)
    query = LatencyQuery(quantised(workload(model)), dimensions(machines), system)
    return BACKEND.estimate(query, profile=True)


@pytest.mark.parametrize(
    ("implied", "said"),
    [
        ("mixtral-8x7b", "mixtral-8x7b@expert=8"),
        ("gpt2-moe", "gpt2-moe@expert=8"),
        ("gpt2@tensor=2", "gpt2@tensor=2,order=tensor-data"),
    ],
)
@pytest.mark.parametrize("machines", [1, 2, 4])
def test_axes_that_are_said_take_and_send_what_those_implied_do(
    implied: str, said: str, machines: int
) -> None:
    """Both forms of a workload have the same order, and the same peers in a dimension."""
    one, other = answer(implied, machines), answer(said, machines)
    assert one.finish_ns == other.finish_ns
    assert one.compute_ns == other.compute_ns
    assert one.bytes_per_dimension == other.bytes_per_dimension
    assert one.axes == other.axes
    starts = [burst.offset_ns for burst in one.profile or ()]
    assert starts == sorted(starts)


@pytest.mark.parametrize("stages", [2, 4])
def test_average_stages_send_on_links_what_stages_do(stages: int) -> None:
    """The embeddings lie on one stage, or a part of them on each; the mean GPU sends the same."""
    average = answer(f"gpt2@stages={stages},microbatches=4", 1).axes
    each = answer(f"gpt2@pipeline={stages},microbatches=4,order=data-pipeline", 1).axes
    assert average is not None
    assert each is not None
    sent = [[axis.size_bytes for axis in axes] for axes in (average, each)]
    assert sent[0] == pytest.approx(sent[1], rel=0.1)
    assert sent[0][1] == pytest.approx(sent[1][1], rel=1e-6)
