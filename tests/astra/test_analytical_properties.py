"""Do the shortcuts agree with playing all NPUs through, and does the traffic add up?"""

from __future__ import annotations

from itertools import pairwise
from math import prod

import pytest
from analytical_queries import A2A, AG, AR, FULL, RING, RS, SWITCH, data, dims, micro, query
from hypothesis import given, settings
from hypothesis import strategies as st

from artist.astra.model.all_npus import AllNpus
from artist.astra.model.analytical import AnalyticalBackend
from artist.astra.model.prepared_query import prepare
from artist.astra.model.tasks import tasks_of
from artist.errors import BackendSettingError
from artist.estimates.query import Dimension, Estimate, LatencyQuery, Topology
from artist.workload.layers import Workload

SIZES = st.sampled_from([100, 1024, 10_000, 1_000_003, 16_777_216])
TIMES_US = st.sampled_from([0, 1, 2, 5])


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    if draw(st.booleans()):
        kinds = st.sampled_from([AR, AR, RS, AG, A2A])
        return micro(*draw(st.lists(st.tuples(kinds, SIZES), min_size=1, max_size=3)))
    layer = st.tuples(TIMES_US, TIMES_US, TIMES_US, SIZES)
    return data(*draw(st.lists(layer, min_size=1, max_size=3)))


@st.composite
def queries(draw: st.DrawFn, trees: bool = False) -> LatencyQuery:
    """Up to 36 NPUs. Latencies, delays and bandwidths that coincide are likely."""
    npus = draw(st.lists(st.integers(2, 6), min_size=1, max_size=4).filter(lambda x: prod(x) <= 36))
    network = tuple(
        Dimension(
            draw(st.sampled_from(list(Topology))),
            nodes,
            draw(st.sampled_from([50.0, 300.0])),
            draw(st.sampled_from([0.0, 100.0, 500.0, 936.25])),
        )
        for nodes in npus
    )
    names = ["ring", "direct", "direct2", "oneRing", "oneDirect"] + ["doubleBinaryTree"] * trees
    algorithms = draw(st.lists(st.sampled_from(names), min_size=len(npus), max_size=len(npus)))
    return query(
        draw(workloads()),
        network,
        algorithms,
        passes=draw(st.integers(1, 2)),
        preferred_dataset_splits=draw(st.integers(1, 5)),
        active_chunks_per_dimension=draw(st.integers(1, 4)),
        queues_per_dimension=draw(st.integers(1, 4)),
        endpoint_delay_ns=draw(st.sampled_from([1, 10, 100, 500])),
        local_mem_bandwidth_gb_per_s=draw(st.sampled_from([50.0, 1600.0, 1e9])),
        collective_optimization=draw(st.sampled_from(["baseline", "localBWAware"])),
    )


def answer(asked: LatencyQuery, *, profile: bool = False) -> Estimate | None:
    """The estimate, or None where ASTRA-sim has none."""
    try:
        return AnalyticalBackend().estimate(asked, profile=profile)
    except BackendSettingError:
        return None


def play(asked: LatencyQuery) -> list[int | None]:
    setup = prepare(asked)
    program = tasks_of(setup.program, setup.passes)
    return AllNpus(setup.work, [program] * setup.work.network.total_npus).run()


@settings(max_examples=60)
@given(queries())
def test_simulating_one_npu_equals_simulating_all(asked: LatencyQuery) -> None:
    estimate = answer(asked)
    if estimate is not None:
        finishes = play(asked)
        assert estimate.finish_ns == max(x for x in finishes if x is not None)


@settings(max_examples=60)
@given(queries(trees=True))
def test_profile_adds_up_to_the_bytes_and_changes_nothing(asked: LatencyQuery) -> None:
    plain, profiled = answer(asked), answer(asked, profile=True)
    if plain is None or profiled is None:
        assert plain == profiled
        return
    assert (plain.profile, plain.finish_ns) == (None, profiled.finish_ns)
    assert plain.bytes_per_dimension == profiled.bytes_per_dimension
    assert profiled.profile is not None
    for dimension, size in enumerate(profiled.bytes_per_dimension or ()):
        bursts = [burst for burst in profiled.profile if burst.dimension == dimension]
        assert sum(burst.size_bytes for burst in bursts) == size
        assert all(a.offset_ns + a.duration_ns < b.offset_ns for a, b in pairwise(bursts))
        assert all(0 <= b.offset_ns + b.duration_ns <= profiled.finish_ns for b in bursts)


@settings(max_examples=30)
@given(queries(trees=True))
def test_the_same_query_gives_the_same_estimate_again(asked: LatencyQuery) -> None:
    assert answer(asked) == answer(asked)


@pytest.mark.parametrize(
    ("algorithm", "sent"),
    [
        ("ring", 6 * 1000),
        ("direct", 6 * 1000),
        ("halvingDoubling", 2 * (2000 + 1000)),
        ("doubleBinaryTree", 2 * 3 * 4000 // 4),  # the mean: three edges, both ways, four NPUs
    ],
)
def test_bytes_of_an_all_reduce(algorithm: str, sent: int) -> None:
    estimate = AnalyticalBackend().estimate(query(micro((AR, 4000)), dims((RING, 4)), algorithm))
    assert estimate.bytes_per_dimension == (sent,)


def test_flat_direct_sends_to_most_peers_through_the_first_dimension() -> None:
    """12 NPUs as 3 x 4: of 11 peers 8 differ in the first dimension, 3 in the second alone."""
    two = dims((FULL, 3), (SWITCH, 4))
    estimate = AnalyticalBackend().estimate(query(micro((AG, 1000)), two, ("oneDirect",)))
    assert estimate.bytes_per_dimension == (8000, 3000)


def test_a_profile_says_when_which_dimension_is_busy() -> None:
    """Reduce-scatter, all-reduce, all-gather of one chunk, after 1 + 2 us of computation."""
    asked = query(data((1, 0, 2, 4000)), dims((RING, 2), (RING, 2)), passes=2)
    estimate = AnalyticalBackend().estimate(asked, profile=True)
    scatter_ns, reduce_ns = 2010 + 2 * 5 + 6000, 2 * 1010 + 3 * 5 + 3000
    gather_ns = 2010 + 2 * 5
    bursts = [
        (b.dimension, b.offset_ns, b.duration_ns, b.size_bytes) for b in estimate.profile or ()
    ]
    assert bursts == [
        (0, 3000, scatter_ns, 2000),
        (1, 3000 + scatter_ns, reduce_ns, 2000),
        (0, 3000 + scatter_ns + reduce_ns, gather_ns, 2000),
    ]
