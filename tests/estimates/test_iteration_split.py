"""Does the split of an iteration add up to it, and does every part keep its closed form?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rendered_queries import tiny

from artist.astra.model.analytical import AnalyticalBackend
from artist.errors import DivisionError
from artist.estimates.calibration import with_constant_share
from artist.estimates.divided.layer_wise import LayerwiseBackend
from artist.estimates.divided.staged_backend import StagedQuery
from artist.estimates.divided.with_split import iteration_split
from artist.estimates.iteration_split import IterationSplit, TimePart
from artist.estimates.query import Dimension, LatencyQuery, SystemSettings, Topology
from artist.estimates.recorded import RecordedBackend
from artist.workload.division.staged import Axes, Schedule, Staged
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Scope, Workload, quantised
from artist.workload.models import workload
from artist.workload.stage_steps import alone_ns

BACKEND = LayerwiseBackend(AnalyticalBackend())
EXPOSED = {*TimePart} - {TimePart.COMPUTE, TimePart.IMBALANCE, TimePart.BUBBLE, TimePart.CONSTANT}


def asked(
    made: Workload, *npus: int, gib_per_s: float = 50.0, latency_ns: float = 500.0
) -> LatencyQuery:
    """Rings over switches; a dimension is four times as fast as the one outside it."""
    dims = tuple(
        Dimension(Topology.SWITCH, n, gib_per_s * 4 ** (len(npus) - place), latency_ns)
        for place, n in enumerate(npus, 1)
    )
    ring = ("ring",) * len(npus)
    return LatencyQuery(made, dims, SystemSettings(ring, ring, ring, ring))


def split_of(query: LatencyQuery) -> IterationSplit:
    return iteration_split(BACKEND, query, BACKEND.estimate(query))


divisions = st.builds(
    "gpt2@batch=8,microbatches={},tensor={},pipeline={},context={},{},sharded={},"
    "sequence_parallel={},gradients={}".format,
    st.sampled_from([2, 4, 8]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([1, 2]),
    st.sampled_from(["schedule=1f1b", "schedule=gpipe"]),
    st.sampled_from(["no", "zero1", "zero2", "zero3"]),
    st.sampled_from(["true", "false"]),
    st.sampled_from(["deferred", "eager"]),
)
others = st.sampled_from(
    [
        "resnet50", "gpt2", "bert-large@batch=1", "gpt2@parallel=fsdp", "gpt2@tensor=2",
        "gpt2@tensor=2,stages=3,microbatches=4", "gpt2-moe@batch=2", "gpt2-moe@expert=4,batch=4",
        "gpt2@pipeline=2,schedule=interleaved,interleave=3,batch=16,microbatches=16",
    ]
)  # fmt: skip
shapes = st.sampled_from([(8,), (8, 6), (8, 6, 2), (4, 3, 4), (2, 12), (24, 2)])


@settings(deadline=None, max_examples=40)
@given(divisions | others, shapes, st.sampled_from([0.5, 5.0, 500.0]), st.integers(1, 3))
def test_the_parts_add_up_to_the_iteration(
    spec: str, npus: tuple[int, ...], gib_per_s: float, passes: int
) -> None:
    query = replace(asked(quantised(workload(spec)), *npus, gib_per_s=gib_per_s), passes=passes)
    try:
        answer = BACKEND.estimate(query)
    except DivisionError:
        return  # the axes do not fit this shape
    split = iteration_split(BACKEND, query, answer)
    parts = split.parts_ns
    assert split.iteration_ns == answer.finish_ns
    assert min(parts.values()) > 0
    assert sum(ns for part, ns in parts.items() if part in EXPOSED) == answer.exposed_comm_ns
    assert {*parts} & EXPOSED <= {*(split.sent_ns or ())}


@settings(deadline=None, max_examples=20)
@given(divisions, shapes)
def test_if_everything_arrives_at_once_an_iteration_computes(
    spec: str, npus: tuple[int, ...]
) -> None:
    query = asked(quantised(workload(spec)), *npus)
    if query.workload.staged is None:
        return  # one GPU per replica
    try:
        ended_ns = StagedQuery(BACKEND, query).ended_ns(frozenset())
    except DivisionError:
        return
    assert ended_ns == alone_ns(query.workload)


def equal_stages(
    axes: Axes, microbatches: int, schedule: Schedule, held: int = 1, size: int = 0
) -> Workload:
    """A chunk of two layers computes 10 us forward and 20 us backward.

    Between the layers, activations are all-reduced in both directions.
    """
    sent = (Collective.ALL_REDUCE, size, Scope.TENSOR) if size else (Collective.NONE, 0)
    first = Layer("h0.x", Phase(5.0, *sent), Phase(10.0), Phase())
    second = Layer("h0.y", Phase(5.0), Phase(10.0, *sent), Phase())
    chunks = axes.pipeline * held
    staged = Staged(axes, ((2,),) * chunks, microbatches, 0, schedule)
    return Workload("equal", Parallelism.STAGED, (first, second) * chunks, staged=staged)


@pytest.mark.parametrize("schedule", [Schedule.ONE_F_ONE_B, Schedule.GPIPE])
@pytest.mark.parametrize(("stages", "microbatches"), [(2, 1), (4, 8), (3, 4), (4, 64)])
def test_the_share_of_the_bubble(schedule: Schedule, stages: int, microbatches: int) -> None:
    """(p - 1)/(m + p - 1) (arXiv:1811.06965, section 2.3; arXiv:2104.04473, section 2.2.1)."""
    made = equal_stages(Axes(pipeline=stages), microbatches, schedule)
    parts = split_of(asked(made, 2 * stages)).parts_ns
    assert parts[TimePart.COMPUTE] == 30_000 * microbatches
    assert parts[TimePart.BUBBLE] == 30_000 * (stages - 1)
    assert TimePart.IMBALANCE not in parts


def test_the_share_of_the_bubble_of_interleaved_stages() -> None:
    """Shorter by the number of chunks of a stage (arXiv:2104.04473, section 2.2.2)."""
    made = equal_stages(Axes(pipeline=4), 8, Schedule.INTERLEAVED, held=3)
    parts = split_of(asked(made, 8)).parts_ns
    assert parts[TimePart.COMPUTE] == 30_000 * 8 * 3
    assert parts[TimePart.BUBBLE] == 30_000 * 3


def test_a_stage_that_computes_longer_is_no_bubble() -> None:
    made = equal_stages(Axes(pipeline=2), 4, Schedule.GPIPE)
    *before, last = made.layers
    slow = replace(last, forward=Phase(25.0))
    parts = split_of(asked(replace(made, layers=(*before, slow)), 2)).parts_ns
    # The stages compute 4 x 30 and 4 x 50 us; the second waits for 10 before and 20 after.
    assert parts[TimePart.COMPUTE] == 160_000
    assert parts[TimePart.IMBALANCE] == 40_000
    assert parts[TimePart.BUBBLE] == 30_000


@pytest.mark.parametrize(("stages", "microbatches"), [(1, 3), (2, 4), (4, 8)])
def test_tensor_communication_is_paid_by_every_pass_and_by_the_fill(
    stages: int, microbatches: int
) -> None:
    """An all-reduce in a ring sends 2 (n - 1)/n of its bytes; (m + p - 1) passes in all."""
    size, gib_per_s = 64 * 2**20, 100.0
    made = equal_stages(Axes(tensor=4, pipeline=stages), microbatches, Schedule.GPIPE, size=size)
    query = asked(made, 4, 4, gib_per_s=gib_per_s / 4, latency_ns=0.0)
    quick = replace(query.system, endpoint_delay_ns=1, local_mem_bandwidth_gb_per_s=1e9)
    split = split_of(replace(query, system=quick))
    ring_ns = 2 * 3 / 4 * size / (gib_per_s * 2**30) * 1e9
    passes = 2 * (microbatches + stages - 1)
    assert split.parts_ns[TimePart.TENSOR] == pytest.approx(passes * ring_ns, rel=1e-4)
    assert split.sent_ns is not None
    own = 2 * microbatches * ring_ns
    assert split.sent_ns[TimePart.TENSOR] == pytest.approx(own, rel=1e-4)


def test_messages_between_stages() -> None:
    """Each of p - 1 borders is crossed there and back once before the pipeline drains."""
    made = equal_stages(Axes(pipeline=4), 1, Schedule.GPIPE)
    assert made.staged is not None
    sending = replace(made, staged=replace(made.staged, border_bytes=50 * 2**20))
    query = asked(sending, 4, latency_ns=0.0)
    message_ns = 50 * 2**20 / (50 * 2**30) * 1e9
    parts = split_of(query).parts_ns
    assert parts[TimePart.PIPELINE] == pytest.approx(6 * message_ns, abs=6)


def test_gradients_hide_behind_the_backward_pass() -> None:
    """Two layers: the gradient of the last one hides behind 20 us of computing, the first waits."""
    sent = Phase(10.0, Collective.ALL_REDUCE, 50 * 2**20)
    layers = (Layer("a", Phase(5.0), Phase(20.0), sent), Layer("b", Phase(5.0), Phase(10.0), sent))
    query = asked(Workload("two", Parallelism.DATA, layers), 2, gib_per_s=12.5)
    split = split_of(query)
    assert split.sent_ns is not None and split.hidden_ns is not None
    alone_ns_ = split.sent_ns[TimePart.DATA] // 2
    assert split.parts_ns == {TimePart.COMPUTE: 40_000, TimePart.DATA: 2 * alone_ns_ - 20_000}
    assert split.hidden_ns == 20_000


@settings(deadline=None, max_examples=20)
@given(others, shapes, st.sampled_from([0.5, 5.0, 500.0]))
def test_what_is_hidden_and_what_is_not_is_all_that_is_sent(
    spec: str, npus: tuple[int, ...], gib_per_s: float
) -> None:
    query = asked(quantised(workload(spec)), *npus, gib_per_s=gib_per_s)
    if query.workload.staged is not None or "stages" in spec:
        return
    try:
        split = split_of(query)
    except DivisionError:
        return
    assert split.sent_ns is not None and split.hidden_ns is not None
    exposed = sum(ns for part, ns in split.parts_ns.items() if part in EXPOSED)
    assert exposed + split.hidden_ns == sum(split.sent_ns.values())


def test_experts_and_the_idle_time_of_average_stages() -> None:
    moe = split_of(asked(quantised(workload("gpt2-moe")), 8)).parts_ns
    assert {TimePart.COMPUTE, TimePart.EXPERT, TimePart.DATA} == {*moe}
    stages = split_of(asked(quantised(workload("gpt2@stages=4,microbatches=8")), 8)).parts_ns
    share = stages[TimePart.BUBBLE] / stages[TimePart.COMPUTE]
    assert share == pytest.approx(3 / 8, rel=1e-3)


def test_a_single_gpu_computes() -> None:
    query = replace(asked(quantised(workload("resnet18"))), dimensions=())
    from artist.estimates.latency_service import answer

    estimate = answer(BACKEND, query)
    assert iteration_split(BACKEND, query, estimate) == IterationSplit(
        {TimePart.COMPUTE: estimate.finish_ns}, {}
    )


def test_a_recorded_table_does_not_state_hidden_communication(tmp_path: Path) -> None:
    header = "model,topologies,dim_types,units,bw_GBps,latency_ns,total_comp_us,finished_at_us"
    row = "VGG,FullyConnected Ring,N P,2 3,600 300.0,0 500,52,65"
    (tmp_path / "table.csv").write_text(f"{header}\n{row}\n")
    query = replace(tiny(2, 3), workload=replace(tiny().workload, name="vgg11"))
    for fallback in (None, AnalyticalBackend()):
        backend = RecordedBackend(tmp_path / "table.csv", fallback)
        split = iteration_split(backend, query, backend.estimate(query))
        assert split.parts_ns == {TimePart.COMPUTE: 52_000, TimePart.DATA: 13_000}
        assert split.sent_ns is None and split.hidden_ns is None


def test_flat_groups_are_priced_as_a_whole() -> None:
    query = replace(
        asked(workload("gpt2@tensor=2,pipeline=2,batch=2,microbatches=2"), 4), flat_groups=True
    )
    answer = BACKEND.estimate(query)
    split = iteration_split(BACKEND, query, answer)
    assert split.parts_ns[TimePart.COMMUNICATION] == answer.exposed_comm_ns
    assert split.iteration_ns == answer.finish_ns and split.sent_ns is None


def test_the_constant_of_a_calibration_is_a_part() -> None:
    query = asked(quantised(workload("resnet50")), 8)
    answer = with_constant_share(BACKEND.estimate(query), 0.1)
    split = iteration_split(BACKEND, query, answer)
    assert split.parts_ns[TimePart.CONSTANT] == round(0.1 * answer.compute_ns)
    whole_ns = answer.compute_ns * (1 + answer.comm_ratio)
    assert split.iteration_ns == pytest.approx(whole_ns, abs=1)
