"""Do jobs whose axes are implied send what those do that say them?"""

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
def test_axes_that_are_said_send_what_those_implied_do(
    implied: str, said: str, machines: int
) -> None:
    """Not always in the same order: a list is in ASTRA-sim's, in which gradients come first."""
    one, other = answer(implied, machines), answer(said, machines)
    assert one.bytes_per_dimension == other.bytes_per_dimension
    assert one.axes == other.axes


@pytest.mark.parametrize("model", ["gpt2-xl@parallel=fsdp", "mixtral-8x7b@expert=8"])
def test_bursts_come_in_the_order_of_their_start(model: str) -> None:
    """Weights may be gathered before the gradients of an earlier node are sent."""
    starts = [burst.offset_ns for burst in answer(model, 2).profile or ()]
    assert starts
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
