"""Does the stand-in for ASTRA-sim 1.0 answer what was recorded?"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from artist.errors import BackendError
from artist.workload.models import canonical
from validation.original.astra1 import Astra1, LayerTimes, one_pass
from validation.original.speeds import SOURCES, Dim, as_speed

RING = Dim("Ring", "P", 2, 200, 5000)


def test_one_layer_by_hand() -> None:
    # 3 us forward, 5 us weight gradient, no input gradient; then 2 steps of a latency of 5000 ns
    # and just under 100 ns for half the size on four links.
    size = int(2 * 200 * 2**30 / 1e9 * 4 * 100)
    computed, finished = one_pass([LayerTimes(3, 9, 5, size, 7)], 1.0, [RING])
    assert computed == 8000
    # Two events of 1 ns, less the one that the last all-reduce does not wait for.
    assert finished == 8000 + 1 + 2 * (5000 + 99 + 10) + 10 + 7


def test_newest_all_reduce_goes_first() -> None:
    # Three forward events, then all-reduces of 10,030 ns issued at 1004, 2006 and 3008 ns. The
    # first runs until 11,034; the newest, with an update of 100 us, until 21,064; the other last.
    layers = [LayerTimes(0, 0, 1, 0, update) for update in (100_000, 0, 0)]
    assert one_pass(layers, 1.0, [RING]) == (3000, 21_064 + 100_000 - 1)


def test_all_reduces_pass_dimensions_one_after_the_other() -> None:
    layers = [LayerTimes(0, 0, 1, 0, 0)]
    one, both = (one_pass(layers, 1.0, dims)[1] for dims in ([RING], [RING, RING]))
    assert both - one == 2 * (5000 + 10) + 10


def test_switch_counts_two_hops_and_a_dimension_of_one_costs_nothing() -> None:
    layers = [LayerTimes(0, 0, 1, 0, 0)]
    switch = Dim("Switch", "PP", 2, 400, 50000)
    single = Dim("Ring", "P", 1, 200, 5000)
    assert one_pass(layers, 1.0, [single, switch]) == one_pass(layers, 1.0, [switch])
    assert one_pass(layers, 1.0, [switch])[1] == 1001 + 2 * (100_000 + 10) + 10


def test_unknown_model_and_missing_file_are_errors(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="gpt"):
        Astra1(tmp_path)("gpt", 1.0, [RING])
    with pytest.raises(BackendError, match="alexnet"):
        Astra1(tmp_path)("alexnet", 1.0, [RING])


def test_speeds_agree_with_the_recording(recorded: Path, workloads: Path) -> None:
    answer = Astra1(workloads)
    off = []
    total = 0
    with (recorded / "golden_astra1.csv").open() as stream:
        for row in csv.DictReader(stream):
            if row["source"] not in SOURCES:
                continue
            total += 1
            names = ("topologies", "dim_types", "units", "bw_GBps", "latency_ns")
            dims = [
                Dim(topology, kind, int(units), int(bandwidth), int(latency))
                for topology, kind, units, bandwidth, latency in zip(
                    *(row[name].split() for name in names), strict=True
                )
            ]
            ours = as_speed(*answer(canonical(row["model"]), float(row["compute_scale"]), dims))
            theirs = as_speed(float(row["total_comp_us"]), float(row["exposed_comm_us"]))
            if abs(ours / theirs - 1) > 2e-3:
                off.append((row["model"], row["units"]))
    assert total > 400
    assert off == [("ResNet50", "16 2")]
