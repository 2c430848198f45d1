"""Do jobs divided along several axes agree with ASTRA-sim, closed forms and laws?"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from astra.hybrid_cases import FOLDER, network
from hypothesis import given, settings
from hypothesis import strategies as st

from artist.astra.model.analytical import AnalyticalBackend
from artist.cluster.fabric import load_fabric
from artist.errors import ConfigError, DivisionError
from artist.estimates.divided.layer_wise import LayerwiseBackend
from artist.estimates.divided.rank_groups import Ranks, fitting_orders, hops, orders
from artist.estimates.query import Dimension, Estimate, LatencyQuery, SystemSettings, Topology
from artist.estimates.query_from_text import on_placement
from artist.workload.division.staged import INNERMOST_FIRST, Axes, Axis, Schedule, Staged
from artist.workload.graph import play
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Scope, Workload
from artist.workload.models import workload
from artist.workload.stage_programs import stage_programs
from artist.workload.stage_steps import alone_ns

RECORDED = FOLDER / "jobs.jsonl.gz"
recorded = pytest.mark.skipif(not RECORDED.is_file(), reason="recorded runs are not beside")
BACKEND = LayerwiseBackend(AnalyticalBackend())
USUAL = "-".join(INNERMOST_FIRST)

# ASTRA-sim reads whole microseconds.
ROUNDING = 1e-4


def rows(letter: str) -> Iterator[dict[str, Any]]:
    with gzip.open(RECORDED, "rt") as lines:
        for line in lines:
            if line[:12].count(f'"{letter}'):
                yield json.loads(line)


def error(spec: str, row: dict[str, Any]) -> float:
    dims, system = network(row)
    answer = BACKEND.estimate(LatencyQuery(workload(spec), dims, system))
    return answer.finish_ns / max(row["answer"]["finish_ns"]) - 1


def groups_in_one_dimension(spec: str, row: dict[str, Any]) -> bool:
    """Whether ASTRA-sim prices the groups as artist does."""
    dims, _ = network(row)
    staged = workload(spec).staged
    assert staged is not None
    ranks = Ranks(dims, staged.axes, INNERMOST_FIRST)
    return all(len(ranks.group(scope)) < 2 for scope in (Scope.TENSOR, Scope.DATA))


def innermost_route(ranks: Ranks, sender: int, receiver: int) -> tuple[int, int]:
    """ASTRA-sim charges a message to the innermost dimension in which its ends differ."""
    for part in (part for part in ranks.parts if part.axis is Axis.PIPELINE):
        apart = receiver % part.size - sender % part.size
        sender, receiver = sender // part.size, receiver // part.size
        if apart:
            dimension = ranks.dimensions[part.dimension]
            return part.dimension, hops(dimension, apart * part.stride % dimension.npus)
    raise AssertionError


@recorded
@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
def test_pipelines_take_as_long_as_in_astra_sim(
    schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ranks, "route", innermost_route)
    compared = 0
    for row in rows("J"):
        if "uneven" not in row["tags"] or schedule not in row["tags"]:
            continue
        spec = f"{row['tags'][0].replace('stages', 'pipeline')},schedule={schedule},order={USUAL}"
        spec += ",gradients=eager"
        if groups_in_one_dimension(spec, row):
            compared += 1
            assert abs(error(spec, row)) < ROUNDING, row["id"]
    assert compared > 30


SHARDED = {
    "p0": "sharded=zero3,prefetch=0",
    "p1": "sharded=zero3",
    "p2": "sharded=zero3,prefetch=2",
    "all": "sharded=zero3,prefetch=all",
    "zero2": "sharded=zero2",
}


@recorded
def test_sharded_jobs_take_as_long_as_in_astra_sim() -> None:
    cases = [row for row in rows("F") if row["tags"][-1] in SHARDED]
    assert len(cases) > 100
    for row in cases[::5]:
        model = row["tags"][0].replace("@parallel=fsdp", "")
        spec = f"{model}{',' if '@' in model else '@'}{SHARDED[row['tags'][-1]]}"
        assert abs(error(spec, row)) < ROUNDING, row["id"]


def dims(*npus: int, factor: float = 1.0) -> tuple[Dimension, ...]:
    bandwidths = (400.0, 50.0, 25.0)
    return tuple(
        Dimension(Topology.SWITCH, n, factor * bandwidth, 500.0)
        for n, bandwidth in zip(npus, bandwidths, strict=False)
    )


def ask(spec: str, network_: tuple[Dimension, ...], *, profile: bool = False) -> Estimate:
    ring = ("ring",) * len(network_)
    system = SystemSettings(ring, ring, ring, ring)
    query = LatencyQuery(workload(spec), network_, system)
    return BACKEND.estimate(query, profile=profile)


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe"])
@pytest.mark.parametrize(("stages", "microbatches"), [(2, 1), (4, 8), (3, 4)])
def test_a_pipeline_of_equal_stages_idles_while_it_fills(
    schedule: str, stages: int, microbatches: int
) -> None:
    """(m + p - 1) passes there and back in all (arXiv:1811.06965)."""
    spec = f"gpt2@batch=24,microbatches={microbatches},pipeline={stages},schedule={schedule}"
    made = workload(spec)
    assert made.staged is not None
    blocks = [x for x in made.layers if x.name.startswith("h") and "." in x.name]
    rest = [x for x in made.layers if x not in blocks]
    blocks_ns = 1000 * sum(3 * x.forward.compute_us for x in blocks) / stages
    rest_ns = 1000 * sum(3 * x.forward.compute_us for x in rest)
    least = (microbatches + stages - 1) * blocks_ns
    assert least <= alone_ns(made) <= least + microbatches * rest_ns + 1000


def test_interleaved_stages_idle_less() -> None:
    """The time in which a pipeline fills is shorter by the number of chunks (arXiv:2104.04473)."""
    stages, held, microbatches = 4, 3, 8
    layers = (Layer("h0.x", Phase(10.0), Phase(20.0), Phase()),) * (stages * held)
    staged = Staged(
        Axes(pipeline=stages), ((1,),) * len(layers), microbatches, 0, Schedule.INTERLEAVED
    )
    made = Workload("equal", Parallelism.STAGED, layers, staged=staged)
    assert alone_ns(made) == 30_000 * (microbatches * held + stages - 1)


def test_the_embeddings_and_the_head_may_fill_a_chunk_each() -> None:
    spec = "gpt2@batch=7,microbatches=7,pipeline=7,schedule=interleaved,interleave=2"
    staged = workload(spec).staged
    assert staged is not None
    assert [len(chunk) for chunk in staged.chunks] == [1] * 14


def test_a_message_does_not_wait_for_the_gradients_of_its_pass() -> None:
    # A message to stage 1 (1 ns), which computes (10,000), sends a message back (1) and then its
    # gradient; stage 0 computes (10,000) and sends its gradient (100). Eager: gradient first.
    layer = Phase(0.0), Phase(10.0), Phase(0.0, Collective.ALL_REDUCE, 99 * 2**20, Scope.DATA)
    layers = (Layer("h0.x", *layer), Layer("h1.x", *layer))
    for eager, whole_ns in ((False, 20_102), (True, 20_202)):
        staged = Staged(Axes(pipeline=2), ((1,), (1,)), 1, 0, eager=eager)
        made = Workload("two", Parallelism.STAGED, layers, staged=staged)
        played = play(stage_programs(made, _Fixed(1)).programs)
        assert max(x for x in played.finish_ns if x is not None) == whole_ns


specs = st.builds(
    "{0}@batch=8,microbatches={1},tensor={2},pipeline={3},context={4},schedule={5},sharded={6}"
    ",recompute={7},sequence_parallel={8}".format,
    st.just("gpt2"),
    st.sampled_from([2, 4, 8]),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 3]),
    st.sampled_from([1, 2]),
    st.sampled_from(["1f1b", "gpipe"]),
    st.sampled_from(["no", "zero1", "zero2", "zero3"]),
    st.sampled_from(["no", "selective", "full"]),
    st.sampled_from(["true", "false"]),
)


class _Fixed:
    """Costs that depend on size alone."""

    def __init__(self, per_mb_ns: int) -> None:
        self.per_mb_ns = per_mb_ns

    def collective_ns(self, request: tuple[Any, int, Scope]) -> int:
        return 1 + request[1] * self.per_mb_ns // 2**20

    def message_ns(self, sender: int, receiver: int, size_bytes: int) -> int:
        return 1 + size_bytes * self.per_mb_ns // 2**20


@settings(deadline=None, max_examples=25)
@given(specs, st.sampled_from([10, 10_000, 1_000_000]))
def test_passes_in_few_nodes_take_as_long_as_node_by_node(spec: str, per_mb_ns: int) -> None:
    made = workload(spec)
    few, every = (
        play(stage_programs(made, _Fixed(per_mb_ns), fine=fine).programs).finish_ns
        for fine in (False, True)
    )
    assert few == every


@settings(deadline=None, max_examples=15)
@given(specs)
def test_more_bandwidth_is_never_slower(spec: str) -> None:
    assert ask(spec, dims(8, 6, 2, factor=2.0)).finish_ns <= ask(spec, dims(8, 6, 2)).finish_ns


@settings(deadline=None, max_examples=10)
@given(specs, st.integers(0, 3))
def test_dimensions_of_size_one_vanish(spec: str, place: int) -> None:
    network_ = dims(8, 6, 2)
    with_one = (*network_[:place], replace(network_[0], npus=1), *network_[place:])
    assert ask(spec, with_one).finish_ns == ask(spec, network_).finish_ns


@settings(deadline=None, max_examples=10)
@given(specs, st.permutations(INNERMOST_FIRST))
def test_relabelling_ranks_inside_a_switch_changes_nothing(spec: str, order: list[Axis]) -> None:
    relabelled = f"{spec},order={'-'.join(order)}"
    assert ask(relabelled, dims(96)).finish_ns == ask(spec, dims(96)).finish_ns


def test_axes_of_size_one_vanish() -> None:
    job, network_ = "gpt2@pipeline=2,tensor=4", dims(8, 4)
    assert ask(f"{job},context=1,expert=1,interleave=1", network_) == ask(job, network_)
    assert ask(job, (*network_, *dims(1))) == replace(
        ask(job, network_), bytes_per_dimension=(*(ask(job, network_).bytes_per_dimension or ()), 0)
    )


def test_orders_inside_a_symmetric_unit_are_one() -> None:
    found = orders(dims(32), Axes(tensor=4, pipeline=2))
    assert [ranks.order for ranks in found] == [INNERMOST_FIRST]
    job = "gpt2@tensor=4,pipeline=2,order="
    relabelled = (ask(f"{job}{name}", dims(32)) for name in ("tensor-data", "pipeline-tensor"))
    assert len({x.finish_ns for x in relabelled}) == 1


def test_the_best_order_is_found() -> None:
    """With slow links outside, a pipeline crosses them and replicas do not."""
    job, network_ = "gpt3-xl@tensor=2,pipeline=4,batch=8,microbatches=8", dims(8, 4)
    best = ask(job, network_)
    assert best.order == "tensor-data-pipeline"
    names = ("tensor-data-pipeline", "tensor-pipeline-data", "data-pipeline-tensor")
    times = [ask(f"{job},order={name}", network_).finish_ns for name in names]
    assert best.finish_ns == min(times) == times[0]
    assert times[0] < times[1] < times[2]


def test_traffic_of_each_axis() -> None:
    """Per microbatch, 4 all-reduces a block and a message there and back; then gradients."""
    job = "gpt2@tensor=8,pipeline=4,batch=8,microbatches=8,sequence=1024,order=tensor-pipeline-data"
    inner, middle, outer = ask(job, dims(8, 4, 2)).bytes_per_dimension or ()
    activation = 1024 * 768 * 4
    # 12 blocks over 4 stages; the first and the last have one all-reduce more.
    reduces = 8 * (4 * 3 + 2 / 4)
    assert inner == pytest.approx(2 * 7 / 8 * reduces * activation, rel=1e-3)
    assert middle == pytest.approx(2 * 8 * 3 / 4 * activation, rel=1e-3)
    held = sum(x.weight_grad.comm_bytes for x in workload(job).layers) / 4
    assert outer == pytest.approx(held, rel=1e-3)


def test_bursts_hold_what_is_sent() -> None:
    answer = ask("gpt2@tensor=4,pipeline=2,batch=4,microbatches=4", dims(8, 4), profile=True)
    assert answer.profile and answer.bytes_per_dimension
    for index, sent in enumerate(answer.bytes_per_dimension):
        bursts = sum(x.size_bytes for x in answer.profile if x.dimension == index)
        assert bursts == pytest.approx(sent, rel=0.3)


@pytest.mark.parametrize(
    ("npus", "axes", "joined"),
    [
        ((3, 8), Axes(tensor=4, pipeline=2), {(1, 24)}),
        # Two stages of nine: machines of three fit, but not racks of six.
        ((3, 2, 3), Axes(pipeline=2), {(3, 1, 6), (1, 6, 3)}),
        ((2, 2, 3), Axes(pipeline=2), {(2, 2, 3)}),
    ],
)
def test_dimensions_that_the_axes_do_not_fit_are_joined(
    npus: tuple[int, ...], axes: Axes, joined: set[tuple[int, ...]]
) -> None:
    found = fitting_orders(dims(*npus), axes)
    assert {tuple(dim.npus for dim in ranks.dimensions) for ranks in found} == joined


def test_route_crosses_the_outermost_dimension_that_differs() -> None:
    ranks = Ranks(dims(2, 4), Axes(pipeline=8), INNERMOST_FIRST)
    assert [ranks.route(stage, stage + 1)[0] for stage in range(7)] == [0, 1, 0, 1, 0, 1, 0]


@pytest.mark.parametrize(
    ("axes", "npus", "sizes"),
    [
        (Axes(tensor=8, pipeline=2), (8, 4), {Scope.TENSOR: 8, Scope.DATA: 2}),
        (Axes(tensor=2, context=2, pipeline=2), (8, 4), {Scope.CONTEXT: 2, Scope.DATA: 8}),
        (Axes(expert=8, pipeline=2), (8, 4), {Scope.EXPERT: 8, Scope.REPLICA: 2}),
        (Axes(tensor=2, expert=8), (8, 4), {Scope.EXPERT: 8, Scope.REPLICA: 4}),
    ],
)
def test_sizes_of_groups(axes: Axes, npus: tuple[int, ...], sizes: dict[Scope, int]) -> None:
    ranks = Ranks(dims(*npus), axes, INNERMOST_FIRST)
    for scope, size in sizes.items():
        assert math.prod(n for _, n in ranks.group(scope)) == size


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gpt2@tensor=4,pipeline=3", "tensor=4, pipeline=3 do not divide 32 GPUs"),
        ("gpt2@pipeline=2,data=8", "pipeline=2, data=8 do not multiply to 32 GPUs"),
        ("gpt2-moe@expert=8,pipeline=8", "spread over 8 GPUs, and a stage has 4; .* expert to 4"),
    ],
)
def test_axes_that_do_not_multiply_to_the_gang_are_refused(spec: str, message: str) -> None:
    with pytest.raises(DivisionError, match=message):
        ask(spec, dims(8, 4))


def test_the_embeddings_and_the_head_may_fill_a_stage_each() -> None:
    staged = workload("gpt2@pipeline=14").staged
    assert staged is not None
    assert len(staged.chunks) == 14


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gpt2@pipeline=15", "12 blocks, the embeddings and the head do not fill 15 pipeline stag"),
        ("gpt2@pipeline=15", "choose at most 14 stages"),
        ("gpt2@pipeline=2,microbatches=3", "a batch of 8 does not divide into 3 microbatches"),
        ("gpt2@pipeline=2,stages=2", "stages is for the average stage"),
        ("resnet50@pipeline=2", "only transformers divide"),
        ("gpt2@expert=4", "the model has no experts"),
        ("gpt2-moe@expert=3", "the model has 8 experts to spread evenly"),
        ("gpt2@pipeline=2,schedule=interleaved", "goes with interleave"),
        ("gpt2@pipeline=4,schedule=interleaved,interleave=2,microbatches=2", "multiple of as many"),
        ("gpt2@order=tensor-tensor", "expected best or axes, innermost first"),
        ("gpt2@sharded=zero4", "expected one of no, zero1, zero2, zero3"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(spec: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        workload(spec)


def test_ranks_lie_axis_by_axis() -> None:
    parts = Ranks(dims(8, 4), Axes(tensor=4, pipeline=2), INNERMOST_FIRST).parts
    assert [(x.dimension, x.stride, x.axis, x.size) for x in parts] == [
        (0, 1, Axis.TENSOR, 4),
        (0, 4, Axis.DATA, 2),
        (1, 1, Axis.DATA, 2),
        (1, 2, Axis.PIPELINE, 2),
    ]


def test_a_placement_holds_an_order_of_ranks() -> None:
    fabric = load_fabric("h100-quantum2-spectrum4")
    made = workload("gpt3-xl@tensor=2,pipeline=4,batch=8,microbatches=8")
    given_ = on_placement(made, "8,8@pipeline-tensor", fabric, {})
    assert given_.signature == "8,8@pipeline-tensor"
    slow = given_.answer(BACKEND).estimate
    assert slow.order == "pipeline-tensor-data"
    assert slow.finish_ns > on_placement(made, "8,8", fabric, {}).answer(BACKEND).estimate.finish_ns
    with pytest.raises(ConfigError, match="expected axes behind the @"):
        on_placement(made, "8,8@tensor-up", fabric, {})
    with pytest.raises(ConfigError, match="for a model with axes"):
        on_placement(workload("gpt2"), "8,8@tensor", fabric, {})
