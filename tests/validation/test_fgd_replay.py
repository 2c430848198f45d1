"""Does the replay of FGD's runs take the authors' orders apart as it should?

The runs themselves need the authors' lists of pods and a source file of Go: `make fgd`.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from artist.errors import ConfigError
from artist.pods.machine_file import MachineFile, MachineGroup, load_machines
from artist.pods.pod_list import Demand, PodList
from validation.fgd.__main__ import machine_numbers, read_runs
from validation.fgd.go_random import LONG, GoRandom, read_table
from validation.fgd.replay import orders, replay

TABLE = [hash((17, number)) for number in range(LONG)]
HALF, PAIR = Demand(1000, 0, 1, 500), Demand(1000, 0, 2, 1000)
PODS = PodList((HALF, PAIR), np.array([0, 1, 0, 0, 1, 0]))  # 6,000 thousandths
NAMES = ("d", "b", "f", "a", "e", "c")


def test_a_table_is_read_from_go(tmp_path: Path) -> None:
    path = tmp_path / "rng.go"
    path.write_text(f"var (\n\trngCooked [_LEN]int64 = [...]int64{{\n{str(TABLE)[1:-1]},\n}}\n)")
    assert read_table(path) == TABLE
    path.write_text("package rand")
    with pytest.raises(ConfigError, match=r"rng\.go: expected a table of 607 numbers"):
        read_table(path)


def test_numbers_are_drawn_from_all_of_their_range() -> None:
    random = GoRandom(42, TABLE)
    assert {random.below(7) for _ in range(200)} == {*range(7)}
    assert sorted(random.permutation(50)) == [*range(50)]
    items = [*range(50)]
    random.shuffle(items)
    assert items != sorted(items) == [*range(50)]
    bits = [random.int63() for _ in range(200)]
    assert max(bits) < 1 << 63
    assert max(bits) > 1 << 62
    assert GoRandom(42, TABLE).int63() == GoRandom(42, TABLE).int63() != GoRandom(43, TABLE).int63()


def test_pods_are_drawn_until_the_demand_is_met() -> None:
    pods, machines = orders(PODS, NAMES, 9, 20_000, GoRandom(1, TABLE))
    assert sorted(pods[:6]) == [*range(6)]
    assert 26_000 - 1000 < PODS.milli[pods].sum() <= 27_000
    assert sorted(machines) == [*range(9)]
    fewer, _ = orders(PODS, NAMES, 9, 2000, GoRandom(1, TABLE))
    assert len({*fewer}) == len(fewer) < 6
    assert PODS.milli[fewer].sum() <= 2600


def test_machines_are_found_in_the_file(tmp_path: Path) -> None:
    file = load_machines("openb")
    rows = [
        f"openb-{number:04},{group.cpu_milli},{group.memory_mib},{group.gpus},{group.kind}"
        for number, group in enumerate(one for g in file.machines for one in [g] * g.count)
    ]
    path = tmp_path / "nodes.csv"
    path.write_text("\n".join(("sn,cpu_milli,memory_mib,gpu,model", *rows)))
    numbers = machine_numbers(file, path)
    assert numbers == [*range(1213)]
    path.write_text("\n".join(("sn,cpu_milli,memory_mib,gpu,model", *rows[:-1], "x,1,1,1,A")))
    with pytest.raises(ConfigError, match="has machines that openb has not"):
        machine_numbers(file, path)


def test_a_replay_ends_at_the_demand_of_the_published_runs() -> None:
    group = MachineGroup(count=20, cpu_milli=64_000, memory_mib=1, gpus=8)
    file = MachineFile(name="few", summary="", source="made up", machines=(group,))
    columns = replay(file, range(20), PODS, NAMES, "fgd", GoRandom(3, TABLE))
    assert columns["demand_percent"][-1] == 130


def test_published_runs_are_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv.gz"
    path.write_bytes(
        gzip.compress(
            b"workload,sc_policy,tune,seed,0,1,2\nw,06-FGD,1.3,42,1.5,,3\nw,01-Random,1.3,42,1,2,3\n"
        )
    )
    runs = read_runs(path)
    assert list(runs) == [("w", "06-FGD", 42)]
    assert runs["w", "06-FGD", 42].tolist()[::2] == [1.5, 3.0]
    assert np.isnan(runs["w", "06-FGD", 42][1])
