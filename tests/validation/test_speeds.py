"""Does the mapping from placements to networks give the speeds that the original recorded?"""

from __future__ import annotations

from pathlib import Path

import pytest

from artist.errors import BackendError
from validation.original.files import read_run, read_trace, trace_of
from validation.original.replay import leaves
from validation.original.runs import cluster
from validation.original.speeds import RecordedSpeeds, as_speed, network, network_of


@pytest.mark.parametrize(
    ("racks", "machines", "sockets", "gpus", "expected"),
    [
        (1, 1, 1, 1, []),
        (1, 1, 1, 4, ["FullyConnected 4"]),
        (1, 1, 2, 8, ["FullyConnected 4", "Ring 2"]),
        (1, 1, 2, 2, ["Ring 2"]),  # one GPU per socket: flattened
        (1, 1, 2, 3, ["Ring 3"]),  # uneven: flattened
        (1, 2, 4, 16, ["FullyConnected 2", "Ring 4", "Ring 2"]),  # sockets are counted globally
        (1, 2, 2, 8, ["FullyConnected 2", "Ring 2", "Ring 2"]),
        (1, 2, 3, 8, ["Ring 4", "Ring 2"]),
        (1, 3, 3, 8, ["Ring 8"]),
        (1, 4, 4, 4, ["Ring 4"]),
        (2, 2, 2, 2, ["Ring 1", "Switch 2"]),
        (2, 2, 2, 8, ["Ring 2", "Ring 2", "Switch 2"]),
        (2, 3, 3, 8, ["Ring 4", "Switch 2"]),
        (3, 3, 3, 8, ["Switch 8"]),
    ],
)
def test_mapping_by_hand(racks, machines, sockets, gpus, expected) -> None:
    dims = network(racks, machines, sockets, gpus)
    assert [f"{dim.topology} {dim.units}" for dim in dims] == expected


def test_speed_is_a_ratio_of_single_precision_numbers() -> None:
    assert as_speed(52.884, 18.846) == 0.7372647317488167


def write_recording(folder: Path) -> Path:
    path = folder / "recorded.csv"
    path.write_text(
        "source,model,compute_scale,topologies,dim_types,units,bw_GBps,latency_ns,"
        "total_comp_us,exposed_comm_us\n"
        "java-run,BERT,0.5,FullyConnected Ring,N N,4 2,600 600,0 500,3.0,1.0\n"
        "altered,BERT,0.5,FullyConnected,N,4,600,0,1.0,1.0\n"
    )
    return path


def test_recorded_network_is_looked_up_and_another_is_computed(tmp_path: Path) -> None:
    asked = []

    def missing(model, scale, dims):
        asked.append((model, scale, [dim.units for dim in dims]))
        return 1.0, 3.0

    speeds = RecordedSpeeds(write_recording(tmp_path), missing)
    assert speeds.speed("bert-large", network(1, 1, 2, 8)) == 0.75
    assert speeds.speed("bert-large", network(1, 1, 1, 1)) == 1.0
    assert not speeds.computed
    for _ in range(2):
        assert speeds.speed("bert-large", network(1, 1, 1, 4)) == 0.25
    assert asked == [("bert-large", 0.5, [4])]
    with pytest.raises(BackendError, match="vgg11"):
        speeds.speed("vgg11", network(1, 1, 1, 4))


def test_every_recorded_placement_has_its_recorded_speed(recorded: Path) -> None:
    def missing(*asked):
        raise AssertionError(f"not recorded: {asked}")

    traces = [read_trace(path, path.stem) for path in sorted(recorded.glob("trace_*.csv"))]
    speeds = RecordedSpeeds(recorded / "golden_astra1.csv", missing)
    for path in sorted((recorded / "allocations").glob("fix_*")):
        run = read_run(path)
        tree = cluster(run.racks)
        models = {job.id: job.model for job in trace_of(run, traces).jobs}
        speed_pairs = {
            (row.speed, speeds.speed(models[row.job], network_of(tree, leaves(tree, row.sockets))))
            for row in run.rows
            if row.event == "ALLOC"
        }
        assert all(theirs == ours for theirs, ours in speed_pairs)
