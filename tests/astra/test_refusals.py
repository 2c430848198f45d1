"""Is everything that ASTRA-sim crashes or hangs on refused beforehand, by name?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from analytical_queries import A2A, AG, AR, FULL, RING, data, dims, micro, query

from artist.astra.model.analytical import AnalyticalBackend
from artist.errors import BackendSettingError
from artist.estimates.query import Dimension, LatencyQuery
from artist.workload.layers import Layer, Parallelism, Phase, Scope, Workload

FOUR = dims((RING, 4))
REDUCE = micro((AR, 4000))
TENSOR = Layer("l", Phase(), Phase(), Phase(1, AR, 100, Scope.TENSOR))


def refusal(asked: LatencyQuery) -> BackendSettingError:
    with pytest.raises(BackendSettingError) as caught:
        AnalyticalBackend().estimate(asked)
    return caught.value


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"preferred_dataset_splits": 0}, ["preferred_dataset_splits is 0", "1 or more"]),
        ({"active_chunks_per_dimension": 0}, ["active_chunks_per_dimension is 0"]),
        ({"queues_per_dimension": 0}, ["queues_per_dimension is 0"]),
        ({"queues_per_dimension": 1.5}, ["queues_per_dimension is 1.5", "whole"]),
        ({"endpoint_delay_ns": -1}, ["endpoint_delay_ns is -1"]),
        ({"local_mem_bandwidth_gb_per_s": 0.0}, ["local_mem_bandwidth_gb_per_s is 0.0"]),
        ({"scheduling_policy": "RANDOM"}, ["scheduling_policy is 'RANDOM'", "LIFO, FIFO"]),
        ({"collective_optimization": ""}, ["collective_optimization is ''", "baseline"]),
        ({"passes": 0}, ["passes is 0"]),
        ({"algorithms": "rign"}, ["'rign'", "use ring, direct"]),
        ({"algorithms": "direct0"}, ["'direct0'"]),
        ({"algorithms": "oneDoubleBinaryTree"}, ["'oneDoubleBinaryTree'"]),
        ({"algorithms": ("ring", "ring")}, ["all_reduce", "one algorithm per dimension (1)"]),
        ({"algorithms": ()}, ["all_reduce is 'empty'", "ALLREDUCE"]),
    ],
)
def test_system_settings(settings: dict[str, Any], words: list[str]) -> None:
    error = refusal(query(REDUCE, FOUR, **settings))
    assert error.reason == "bad-setting"
    assert all(word in str(error) for word in words), str(error)


@pytest.mark.parametrize(
    ("dimension", "words"),
    [
        (Dimension(RING, 1, 50.0, 0.0), ["npus of dimension 0 is 1"]),
        (Dimension(RING, 4, 0.0, 0.0), ["bandwidth_gib_per_s of dimension 0 is 0.0"]),
        (Dimension(RING, 4, float("nan"), 0.0), ["bandwidth_gib_per_s of dimension 0 is nan"]),
        (Dimension(RING, 4, 50.0, -1.0), ["latency_ns of dimension 0 is -1.0"]),
        (Dimension("Torus", 4, 50.0, 0.0), ["topology of dimension 0 is 'Torus'", "Ring"]),  # type: ignore[arg-type]
    ],
)
def test_dimensions(dimension: Dimension, words: list[str]) -> None:
    error = refusal(query(REDUCE, (dimension,)))
    assert error.reason == "bad-setting"
    assert all(word in str(error) for word in words), str(error)


def test_no_dimension() -> None:
    assert "no network dimension" in str(refusal(query(REDUCE, ())))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (query(REDUCE, dims((RING, 6)), "halvingDoubling"), ["over 6 NPUs", "power of two"]),
        (query(REDUCE, dims((RING, 6)), "doubleBinaryTree"), ["over 6 NPUs", "power of two"]),
        (
            query(REDUCE, dims((RING, 3), (RING, 4)), ("oneHalvingDoubling",)),
            ["over 12 NPUs", "power of two"],
        ),
        (query(micro((A2A, 4000)), FOUR, "halvingDoubling"), ["all_to_all", "no such all-to-all"]),
        (query(micro((AG, 3)), FOUR, preferred_dataset_splits=4), ["comm_bytes", "never ends"]),
        (query(micro((AG, 0)), FOUR), ["comm_bytes", "never ends"]),
        (query(micro((AR, -1)), FOUR), ["comm_bytes of layer 'l0' is -1"]),
        (query(micro((AR, 4)), FOUR, "halvingDoubling"), ["comm_bytes 4", "0 bytes"]),
        (
            query(REDUCE, dims((RING, 4), (RING, 4)), ("doubleBinaryTree",)),
            ["1 of 2 entries", "ASTRA-sim crashes"],
        ),
        (query(REDUCE, dims(*[(RING, 2)] * 5)), ["over 5 dimensions", "at most 4"]),
        (query(data((0.5, 1, 1, 100)), FOUR), ["compute_us of layer 'l0' is 0.5", "quantise"]),
        (
            query(Workload("w", Parallelism.FSDP, REDUCE.layers), FOUR),
            ["parallelism", "DATA, MICRO"],
        ),
        (
            query(Workload("w", Parallelism.MICRO, (TENSOR,)), FOUR),
            ["scope of layer 'l'", "one of all"],
        ),
        (query(data((-1, 1, 1, 100)), FOUR), ["compute_us of layer 'l0' is -1"]),
    ],
)
def test_bad_combinations_are_refused(asked: LatencyQuery, words: list[str]) -> None:
    error = refusal(asked)
    assert error.reason == "bad-setting"
    assert all(word in str(error) for word in words), str(error)


def test_no_endpoint_delay_when_a_collective_starts_at_time_zero() -> None:
    error = refusal(query(REDUCE, FOUR, endpoint_delay_ns=0))
    assert error.reason == "zero-endpoint-delay"
    assert "endpoint_delay_ns is 0" in str(error)
    assert AnalyticalBackend().estimate(query(data((1, 1, 1, 100)), FOUR, endpoint_delay_ns=0))


def test_a_deadlock_names_the_setting_that_helps() -> None:
    """NPUs leave a tree at different times, and outer stages come back to a queue of one slot."""
    three = dims((RING, 2), (RING, 4), (RING, 2), latency_ns=500.0)
    settings = {"preferred_dataset_splits": 4, "endpoint_delay_ns": 100}
    names = ("doubleBinaryTree", "doubleBinaryTree", "halvingDoubling")
    error = refusal(query(micro((AR, 1_000_000)), three, names, **settings))
    assert error.reason == "deadlock"
    assert "active_chunks_per_dimension is 1" in str(error)
    free = query(micro((AR, 1_000_000)), three, names, active_chunks_per_dimension=1000, **settings)
    assert AnalyticalBackend().estimate(free).finish_ns > 0


def test_unused_lists_may_be_short_but_not_misspelt() -> None:
    asked = query(REDUCE, FOUR)
    unused = replace(asked.system, all_gather=(), all_to_all=("halvingDoubling",))
    assert AnalyticalBackend().estimate(replace(asked, system=unused)).finish_ns > 0
    misspelt = replace(asked.system, all_gather=("halvingdoubling",))
    assert refusal(replace(asked, system=misspelt)).reason == "bad-setting"


def test_dimensions_beyond_the_list_take_no_part() -> None:
    one = AnalyticalBackend().estimate(query(REDUCE, FOUR))
    two = AnalyticalBackend().estimate(query(REDUCE, dims((RING, 4), (FULL, 4)), ("ring",)))
    assert one.finish_ns == two.finish_ns


def test_a_workload_without_layers_takes_no_time() -> None:
    for parallelism in (Parallelism.DATA, Parallelism.MICRO):
        empty = Workload("empty", parallelism, ())
        assert AnalyticalBackend().estimate(query(empty, FOUR)).finish_ns == 0


def test_only_the_columns_that_a_workload_uses_are_sized() -> None:
    layer = Layer("l", Phase(1, AG, 0), Phase(1, AG, 0), Phase(1, AR, 100))
    assert AnalyticalBackend().estimate(query(Workload("w", Parallelism.DATA, (layer,)), FOUR))
