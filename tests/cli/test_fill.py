"""Does `artist fill` print and write what it should, and refuse bad files in one sentence?"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from artist.cli.fill_modes import least_waiting, most_allocated
from artist.errors import ConfigError, TraceError
from artist.pods.machine_file import load_machines
from artist.pods.pod_list import read_pods

PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec
a,4000,1000,1,500,
b,4000,1000,1,300,T4|V100
c,8000,1000,2,1000,V100
d,2000,1000,0,0,
"""
FEW = """name: few
summary: forty machines
source: made up
machines:
  - {count: 20, cpu_milli: 16000, memory_mib: 64000, gpus: 4, kind: V100}
  - {count: 20, cpu_milli: 16000, memory_mib: 64000, gpus: 4, kind: T4}
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "pods.csv").write_text(PODS)
    (tmp_path / "few.yaml").write_text(FEW)
    return tmp_path


def test_the_table_the_json_and_the_files_agree(artist, here: Path) -> None:
    line = ("fill", "pods.csv", "--machines", "few.yaml", "--seeds", "2", "--seed", "5")
    done = artist(*line, "--out", "out", code=0)
    assert done.stdout.startswith(
        "# pods.csv on few, 160 GPUs, 2 runs each\nplacer\tdemand_percent"
    )
    told = json.loads(artist(*line, "--format", "json").stdout)
    assert told == json.loads((here / "out" / "fill.json").read_text())
    assert told["seeds"] == [5, 6]
    assert list(told["placers"]) == [
        "fgd", "best-fit", "dot-product", "gpu-packing", "gpu-clustering", "random",
    ]  # fmt: skip
    rows = [*csv.DictReader((here / "out" / "curves.csv").read_text().splitlines())]
    for name, facts in told["placers"].items():
        at_100 = [
            float(row["allocated_percent"])
            for row in rows
            if row["placer"] == name and row["demand_percent"] == "100"
        ]
        assert sum(at_100) / 2 == pytest.approx(facts["allocated_percent"], abs=1e-4)
    content = (here / "out" / "curves.csv").read_bytes()
    assert artist(*line, "--out", "out", "--overwrite").returncode == 0
    assert (here / "out" / "curves.csv").read_bytes() == content


def test_the_curves_have_every_percent_and_the_printed_mean(artist, here: Path) -> None:
    # Few large pods: no arrival hits most percents.
    (here / "pods.csv").write_text(
        "cpu_milli,memory_mib,num_gpu,gpu_milli\n1000,1000,4,1000\n1000,1000,1,300\n"
    )
    (here / "few.yaml").write_text(FEW.replace("20", "4"))
    line = ("fill", "pods.csv", "--machines", "few.yaml", "--seeds", "5", "--placers", "fgd,random")
    done = artist(*line, "--out", "out", "--format", "json")
    rows = [*csv.DictReader((here / "out" / "curves.csv").read_text().splitlines())]
    for name, facts in json.loads(done.stdout)["placers"].items():
        of_placer = [row for row in rows if row["placer"] == name]
        for seed in map(str, range(5)):
            at = [int(row["demand_percent"]) for row in of_placer if row["seed"] == seed]
            assert at == [*range(at[0], at[-1] + 1)]
        at_100 = [
            float(row["allocated_percent"]) for row in of_placer if row["demand_percent"] == "100"
        ]
        assert len(at_100) == 5
        assert sum(at_100) / 5 == pytest.approx(facts["allocated_percent"], abs=1e-4)


def test_the_answer_says_which_placer_allocates_most_and_how_sure_that_is() -> None:
    runs = {
        "random": [80.0, 81.0, 80.5, 79.5, 80.2],
        "fgd": [95.0, 95.2, 95.1, 94.9, 95.0],
        "best-fit": [94.9, 95.1, 95.2, 95.0, 94.9],
    }
    assert most_allocated(runs) == (
        "fgd allocates most, 95.0 % of the GPUs: within 2 % of best-fit; surely more than random."
    )
    few = {name: values[:4] for name, values in runs.items()}
    assert most_allocated(few).endswith(": untested: a verdict needs --seeds 5.")
    assert most_allocated({"fgd": [95.0]}) == ""
    same = {"fgd": [100.0] * 5, "random": [100.0] * 5}
    assert most_allocated(same) == "All placers allocate 100.0 % of the GPUs."


def test_pods_of_a_kind_that_no_machine_has_are_counted(artist, here: Path) -> None:
    path = here / "pods.csv"
    path.write_text(PODS.replace("2,1000,V100", "2,1000,H100"))
    done = artist("fill", "pods.csv", "--machines", "few.yaml", "--placers", "fgd", "--quiet")
    assert done.stdout.endswith(
        "1 pod of 4 can only use H100 (gpu_spec), which no machine of few has.\n"
    )


def test_one_placer_one_seed(artist, here: Path) -> None:
    del here
    done = artist("fill", "pods.csv", "--machines", "few.yaml", "--placers", "random,fgd,fgd")
    assert [line.split("\t")[0] for line in done.stdout.splitlines()[2:4]] == ["random", "fgd"]
    refused = artist("fill", "pods.csv", "--placers", "fgdd", code=2)
    assert "unknown placer 'fgdd': did you mean 'fgd'? (artist list placers)" in refused.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("b,4000", "b,-1", "pods.csv:3: cpu_milli is '-1', expected 0 to 1000000000"),
        ("1,500,", "1,0,", "pods.csv:2: gpu_milli is '0', expected 1 to 1000"),
        ("1,300,", "2,300,", "pods.csv:3: gpu_milli is '300', expected 1000"),
        ("2,1000,V", "99,1000,V", "pods.csv:4: num_gpu is '99', expected 0 to 16"),
        ("num_gpu", "gpus", "pods.csv:1: no column 'num_gpu'; expected cpu_milli, "),
        ("d,2000", "2000", "pods.csv:5: 5 cells, expected 6"),
    ],
)
def test_bad_pods_are_named_by_their_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "pods.csv"
    path.write_text(PODS.replace(old, new))
    with pytest.raises(TraceError) as error:
        read_pods(path)
    assert message in str(error.value)


def test_pods_without_gpus_fill_nothing(tmp_path: Path) -> None:
    path = tmp_path / "pods.csv"
    path.write_text("cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,0,0\n")
    with pytest.raises(TraceError, match="no pod asks for a GPU"):
        read_pods(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("gpus: 4, kind: V100", "gpus: 17, kind: V100", ":5: 'machines.0.gpus' is 17"),
        ("gpus: 4", "gpus: 0", ":1: no machine has a GPU"),
        ("count: 20", "count: 999999", ":1: has 1,999,998 machines, expected at most 1,000,000"),
        ("summary", "sumary", ":2: unknown setting 'sumary': did you mean 'summary'?"),
    ],
)
def test_bad_machines_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "few.yaml"
    path.write_text(FEW.replace(old, new))
    with pytest.raises(ConfigError) as error:
        load_machines(str(path))
    assert message in str(error.value)


def test_too_many_pods_are_refused_before_they_are_drawn(artist, tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text("cpu_milli,memory_mib,num_gpu,gpu_milli\n1,1,1,1\n")
    done = artist("fill", "pods.csv", "--until", "9", code=2)
    assert "needs about 55,908,000 pods, expected at most 10,000,000" in done.stderr


TIMED = """cpu_milli,memory_mib,num_gpu,gpu_milli,submit_s,duration_s
1000,1000,4,1000,0,100
1000,1000,1,500,0,40
1000,1000,1,300,10,60
1000,1000,2,1000,20,90
"""


def test_pods_come_and_leave(artist, here: Path) -> None:
    (here / "pods.csv").write_text(TIMED)
    line = ("fill", "pods.csv", "--machines", "few.yaml", "--over-time", "--placers", "fgd,random")
    recorded = artist(*line, "--quiet")
    assert recorded.stdout.startswith("# pods.csv on few, 160 GPUs, 4 pods in 20 s, load 0.193, 1 ")
    said = "No pod that was placed had to wait; --load sets how busy the machines are.\n"
    assert recorded.stdout.endswith(said)
    line += ("--load", "1.1", "--pods", "300", "--seeds", "5")
    done = artist(*line, "--out", "out", code=0)
    assert "160 GPUs, 300 pods drawn at load 1.1, 5 runs each" in done.stdout
    assert "Pods wait least under " in done.stdout
    told = json.loads(artist(*line, "--format", "json").stdout)
    assert told == json.loads((here / "out" / "fill.json").read_text())
    content = (here / "out" / "timeline.csv").read_text()
    rows = [*csv.DictReader(content.splitlines())]
    assert len(rows) == 2 * 5 * 200
    for name, facts in told["placers"].items():
        assert facts["wait_mean_s"] > 0
        for column in ("allocated_percent", "fragmented_percent"):
            mean = [float(row[column]) for row in rows if row["placer"] == name]
            assert sum(mean) / 1000 == pytest.approx(facts[column], abs=1e-4)
    assert artist(*line, "--out", "out", "--overwrite").returncode == 0
    assert (here / "out" / "timeline.csv").read_text() == content


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--over-time", "--until", "1"), "--until is for pods that stay"),
        (("--load", "1"), "--load is for pods that come and leave"),
        (("--over-time", "--pods", "9"), "--pods says how many come at a --load"),
        (("--over-time",), "pods.csv:1: no times; expected columns submit_s and duration_s, or"),
    ],
)
def test_options_of_the_other_way_are_refused(artist, here: Path, options, message: str) -> None:
    del here
    done = artist("fill", "pods.csv", "--machines", "few.yaml", *options)
    assert done.returncode in (2, 3)
    assert message in done.stderr


def test_the_answer_says_under_which_placer_pods_wait_least_and_how_sure_that_is() -> None:
    waits = {
        "random": [80.0, 81.0, 80.5, 79.5, 80.2],
        "fgd": [15.0, 15.2, 15.1, 14.9, 15.0],
        "best-fit": [15.1, 14.9, 15.2, 15.0, 14.9],
    }
    assert least_waiting(waits) == (
        "Pods wait least under best-fit, 15 s on average: within 2 % of fgd (15 s); "
        "surely less than random (80.2 s)."
    )
    same = {"fgd": [3.0] * 5, "random": [3.0] * 5}
    assert least_waiting(same) == "Under all placers a pod waits 3 s on average."
    assert least_waiting({"fgd": [3.0]}) == ""
    assert least_waiting({"fgd": [0.0], "random": [0.0]}).startswith("No pod that was placed")
