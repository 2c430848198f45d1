"""Do jobs with implied axes send the same as jobs that state these axes?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from artist.astra.model.analytical import AnalyticalBackend
from artist.cluster.fabric import load_fabric
from artist.errors import DivisionError
from artist.estimates.divided.layer_wise import LayerwiseBackend
from artist.estimates.query import Dimension, Estimate, LatencyQuery, SystemSettings, Topology
from artist.estimates.query_from_text import on_placement
from artist.workload.divide import axes_of
from artist.workload.division.spread import fitted_spread, spread_text
from artist.workload.division.staged import Axes, Axis
from artist.workload.layers import quantised
from artist.workload.models import workload

BACKEND = LayerwiseBackend(AnalyticalBackend())


def dimensions(machines: int, each: int) -> tuple[Dimension, ...]:
    """Machines of some GPUs, with a slower network between them."""
    inside = Dimension(Topology.SWITCH, each, 500.0, 500.0, "machine")
    return (inside, Dimension(Topology.SWITCH, machines, 5.0, 500.0, "rack"))


def answer(model: str, machines: int, each: int = 8) -> Estimate:
    rings = ("ring",) * 2
    system = SystemSettings(rings, rings, rings, ("direct1",) * 2)
    query = LatencyQuery(quantised(workload(model)), dimensions(machines, each), system)
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
def test_stated_axes_send_what_implied_axes_do(implied: str, said: str, machines: int) -> None:
    """The order may differ: a list has ASTRA-sim's order, in which gradients come first."""
    one, other = answer(implied, machines), answer(said, machines)
    assert one.bytes_per_dimension == other.bytes_per_dimension
    assert one.axes == other.axes


@pytest.mark.parametrize(
    ("model", "machines", "each", "spread"),
    [
        ("mixtral-8x7b", 1, 4, 4),
        ("mixtral-8x7b", 3, 4, 4),  # each expert has three replicas
        ("gpt2-moe", 2, 2, 4),
        ("qwen3-30b-a3b", 1, 8, 8),
        ("qwen3-30b-a3b", 4, 8, 32),
        ("qwen3-30b-a3b", 3, 4, None),
    ],
)
def test_experts_without_a_gpu_each_send_the_same_under_any_name(
    model: str, machines: int, each: int, spread: int | None
) -> None:
    """The plain name, one that says the number of replicas, and one that says the spread.

    128 experts do not divide among 12 GPUs, so no name can say that spread.
    """
    plain = answer(model, machines, each)
    names = [f"{model}@data={machines * each}"]
    if spread is not None:
        names += [f"{model}@expert={spread}", f"{names[0]},expert={spread}"]
    for name in names:
        other = answer(name, machines, each)
        assert other.bytes_per_dimension == plain.bytes_per_dimension, name
        assert other.axes == plain.axes, name


@pytest.mark.parametrize(
    ("setting", "machines", "each", "spread"),
    [
        ("context=2", 1, 4, 4),
        ("context=2", 3, 4, 4),
        ("recompute=full", 5, 6, 2),
        ("sharded=zero2", 3, 4, 4),
        ("context=6", 9, 8, 4),  # of a multiple of 8, but 8 are the innermost GPUs in no order
    ],
)
def test_an_implied_spread_that_fits_sends_what_the_same_stated_one_does(
    setting: str, machines: int, each: int, spread: int
) -> None:
    """More GPUs than experts, so that experts have replicas, which reduce their gradients."""
    implied, said = (
        answer(f"mixtral-8x7b@{setting}{more}", machines, each)
        for more in ("", f",expert={spread}")
    )
    assert implied.bytes_per_dimension == said.bytes_per_dimension
    assert (implied.axes, implied.finish_ns) == (said.axes, said.finish_ns)


@pytest.mark.parametrize(
    ("axes", "gpus", "spread"),
    [
        (Axes(expert=8), 1, 1),
        (Axes(expert=8), 6, 6),
        (Axes(expert=8), 24, 8),
        (Axes(expert=8), 12, 4),
        (Axes(expert=8), 9, 1),
        (Axes(expert=8, context=3), 24, 8),  # the replicas lie inside
        (Axes(expert=8, context=3, order=(Axis.CONTEXT,)), 24, 1),
        (Axes(expert=8, context=6), 72, 4),
        (Axes(expert=128, pipeline=2), 16, 8),
        (Axes(expert=4, pipeline=2), 12, 2),
    ],
)
def test_experts_are_spread_over_as_many_gpus_of_a_stage_as_fit(
    axes: Axes, gpus: int, spread: int
) -> None:
    assert fitted_spread(replace(axes, implied=True), gpus) == spread


def test_axes_that_do_not_multiply_to_the_gpus_are_refused_all_the_same() -> None:
    with pytest.raises(DivisionError, match="context=3 does not divide 8 GPUs"):
        answer("mixtral-8x7b@context=3", 1)


@pytest.mark.parametrize(
    ("model", "gpus", "text"),
    [
        ("mixtral-8x7b@data=8", 8, ""),
        ("mixtral-8x7b@recompute=full", 16, ""),
        ("mixtral-8x7b@expert=4", 4, ""),
        ("mixtral-8x7b@pipeline=2", 8, ""),
        ("gpt2@data=1", 1, ""),
        ("mixtral-8x7b@data=4", 4, "the 8 experts of a layer are spread over 4 GPUs, 2 on each"),
        (
            "mixtral-8x7b@data=6",
            6,
            "the 8 experts of a layer are spread over 6 GPUs, 1 or 2 on each",
        ),
        ("mixtral-8x7b@recompute=full", 1, "the GPU holds all 8 experts of a layer"),
        ("mixtral-8x7b", 8, ""),
        ("mixtral-8x7b", 12, "the 8 experts of a layer are spread over 4 GPUs, 2 on each"),
        ("mixtral-8x7b", 9, "each GPU holds all 8 experts of a layer"),
    ],
)
def test_the_spread_of_experts_is_described_in_a_sentence(model: str, gpus: int, text: str) -> None:
    assert spread_text(axes_of(workload(model)), gpus) == text


@pytest.mark.parametrize("model", ["gpt2-xl@parallel=fsdp", "mixtral-8x7b@expert=8"])
def test_bursts_come_in_the_order_of_their_start(model: str) -> None:
    """Weights may be gathered before the gradients of an earlier node are sent."""
    starts = [burst.offset_ns for burst in answer(model, 2).profile or ()]
    assert starts
    assert starts == sorted(starts)


def test_experts_that_every_gpu_holds_make_no_groups() -> None:
    """Nine GPUs have no spread of eight experts: they are one ring of `rings: one`."""
    fabric = load_fabric("a100")
    models = [workload(f"mixtral-8x7b@recompute=full{said}") for said in ("", ",expert=1")]
    asked = [on_placement(model, "3,3,3", fabric, {}) for model in models]
    answers = [question.answer(BACKEND).estimate.finish_ns for question in asked]
    assert answers[0] == answers[1]
    for machines, rings in (("3,3,3", [9]), ("4,4,4", [4, 3])):
        (listed,) = on_placement(workload("mixtral-8x7b"), machines, fabric, {}).asked
        assert [dimension.npus for dimension in listed.query.dimensions] == rings


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
