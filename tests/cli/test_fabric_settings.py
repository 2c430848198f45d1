"""Do commands accept changes to a fabric, and say that it is changed?"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import artist as library
from artist.cluster.fabric import load_fabric
from artist.experiments.experiment import Experiment
from artist.experiments.resume import Inputs
from artist.experiments.sweep import sweep
from artist.report.grouping import group
from artist.report.page import page
from artist.report.reader import read_runs

HGX_H100 = Path(library.__file__).parents[1] / "astra_configs" / "fabrics" / "hgx-h100.yaml"
SLOW = "fabric.network.bandwidth=1Gbit/s"
STEPS = ("--calibration", "h100-eager")
ARRIVAL = "job_id,arrival_s,gpus,model,iterations,compute_s\n"
JOB = ARRIVAL + "a,0,16,bert-large,100,0.1\n"  # on racks of 8 GPUs it must cross the network
ON_TWO = ("latency", "--model", "vgg11", "--placement", "2")
DALLY = ("--fabric", "dally2025")
SMALL = ("--trace", "one.csv", "--racks", "2", "--machines-per-rack", "1", *DALLY)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "one.csv"
    path.write_text(JOB)
    return path


def test_sim_runs_on_the_changed_fabric_and_says_so(artist, trace: Path, tmp_path: Path) -> None:
    plain, slow = (
        artist("sim", *SMALL, *more, "--out", out).stdout
        for out, more in (("plain", ()), ("slow", ("--set", SLOW)))
    )
    assert "changed one" not in plain
    assert "fabric_changes" not in plain
    assert "network bandwidth 1 Gbit/s" in slow.replace("\n", " ")
    assert "Calibration dally2025-table1 was fitted on the fabric as it is in its file" in slow
    # Compute times alone were fitted on no fabric.
    assert "was fitted on" not in artist("sim", *SMALL, "--set", SLOW, *STEPS).stdout
    one, other = (
        json.loads((tmp_path / out / "manifest.json").read_text()) for out in ("plain", "slow")
    )
    assert "fabric_options" not in one["scenario"]
    assert other["scenario"]["fabric_options"] == {
        "network": {"bandwidth_gib_per_s": 125_000_000 / 2**30}
    }
    assert one["inputs"]["fabric"] == load_fabric("dally2025").digest != other["inputs"]["fabric"]
    assert one["inputs"]["calibration"] == other["inputs"]["calibration"]
    times = [
        json.loads((tmp_path / out / "summary.json").read_text())["makespan_s"]
        for out in ("plain", "slow")
    ]
    assert times[1] > 2 * times[0]
    assert library.Scenario.model_validate(other["scenario"]).model_dump() == other["scenario"]


def test_a_scenario_file_a_flag_and_python_say_the_same(
    artist, trace: Path, tmp_path: Path
) -> None:
    text = "trace: one.csv\nracks: 2\nmachines_per_rack: 1\nfabric: dally2025\n"
    (tmp_path / "s.yaml").write_text(f"{text}fabric_options: {{network: {{bandwidth: 1Gbit/s}}}}\n")
    options = ("--format", "json", "--quiet")
    by_file = json.loads(artist("sim", "s.yaml", *options).stdout)
    by_flag = json.loads(artist("sim", *SMALL, "--set", SLOW, *options).stdout)
    scenario = library.Scenario(
        trace=str(trace), racks=2, machines_per_rack=1, fabric="dally2025",
        fabric_options={"network": {"bandwidth": "1Gbit/s"}},
    )  # fmt: skip
    in_python = dict(library.simulate(scenario, cache=False).summary)
    for summary in (by_file, by_flag, in_python):
        summary["wall_s"] = 0
    assert by_file == by_flag == in_python


def test_latency_and_render_ask_about_the_changed_fabric(artist, tmp_path: Path) -> None:
    asked = ("--model", "resnet50", "--placement", "4/4", *DALLY)
    ratios = [
        json.loads(artist("latency", *asked, *more, "--format", "json").stdout)["comm_ratio"]
        for more in ((), ("--set", "fabric.network.latency=5us"))
    ]
    assert ratios[1] < ratios[0]
    options = {"network": {"latency": "5us"}}
    assert (
        library.latency("resnet50", "4/4", fabric="dally2025", fabric_options=options).comm_ratio
        == ratios[1]
    )
    shown = artist(
        "latency", *asked, "--set", "fabric.network.latency=5us", "--calibration", "auto"
    ).stdout
    assert "network latency 5 us" in shown
    assert "was fitted on the fabric as it is in its file" in shown
    artist("render", *asked, "--set", "fabric.network.latency=5us", "--out", "files")
    network = "".join(p.read_text() for p in (tmp_path / "files").rglob("network.y*ml"))
    assert "5000" in network
    assert "50000" not in network


ELSEWHERE = (
    "Calibration dally2025-table1 was fitted on fabric dally2025, not on hgx-h100; it is used as "
    "it is"
)


@pytest.mark.parametrize(
    "command",
    [
        ("sim", *SMALL),
        ("compare", *SMALL, "--policies", "fifo,las", "--permutations", "2"),
        ("latency", "--model", "resnet50", "--placement", "4,4", *DALLY),
        (
            *("latency", "--model", "resnet50", "--placement", "4,4", *DALLY),
            *("--sweep", "fabric.machine.latency=1us..2us", "--points", "2"),
        ),
    ],
)
def test_a_calibration_of_another_fabric_is_pointed_out(artist, trace: Path, command) -> None:
    asked = (*command, "--calibration", "dally2025-table1")
    other = ["hgx-h100" if word == "dally2025" else word for word in asked]
    assert ELSEWHERE in artist(*other).stdout.replace("\n", " ")
    assert "was fitted on fabric" not in artist(*asked).stdout


def test_runs_send_all_to_alls_as_asked(artist, tmp_path: Path) -> None:
    """Among 8 GPUs of a machine a ring sends 8/2 times as much as going straight."""
    (tmp_path / "moe.csv").write_text(f"{ARRIVAL}a,0,8,gpt2-moe,100,0.1\n")
    asked = {"trace": "moe.csv", "racks": 1, "fabric": "h100-quantum2-spectrum4"}
    settings = "".join(f"{key}: {value}\n" for key, value in asked.items())
    (tmp_path / "straight.yaml").write_text(settings)
    (tmp_path / "ring.yaml").write_text(f"{settings}system: {{all_to_all: ring}}\n")

    def summary(*arguments: str) -> dict[str, float]:
        ran = artist("sim", *arguments, "--format", "json", "--quiet", code=0)
        return {key: value for key, value in json.loads(ran.stdout).items() if key != "wall_s"}

    straight, ring = summary("straight.yaml"), summary("ring.yaml")
    assert summary("straight.yaml", "--set", "system.all_to_all=ring") == ring
    assert summary("ring.yaml", "--set", "system.all_to_all=direct1") == straight
    assert ring["comm_time_mean_s"] > 1.5 * straight["comm_time_mean_s"]


def test_compare_says_that_the_fabric_is_changed(artist, trace: Path) -> None:
    shown = artist(
        "compare", *SMALL, "--set", SLOW, "--policies", "fifo,las", "--permutations", "2", "--quiet"
    )
    assert "Fabric dally2025 is changed: network bandwidth 1 Gbit/s." in shown.stdout
    assert "Calibration dally2025-table1 was fitted" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("sim", "--set", "fabric.network.bandwidth=100"), "needs a unit (Gbit/s, Gbps"),
        (("sim", "--set", "fabric.network.bandwidth=twice"), "'fabric.network.bandwidth': expe"),
        (
            ("sim", "--set", "fabric.network.bandwith=9Gbit/s"),
            "unknown setting 'fabric.network.bandwith': did you mean 'bandwidth'?",
        ),
        (("sim", "--set", "fabric.netwrk.latency=1us"), "did you mean 'network'?"),
        (("sim", "--set", "system.all_to_all=rings"), "'all_to_all': expected ring, direct, "),
        (("sim", "--set", "fabric.rack.collective=x"), "rack.collective': expected ring, "),
        (("compare", "--set", "fabric.netwrk.latency=1us"), "did you mean 'network'?"),
        ((*ON_TWO, "--set", "racks=3"), "changes a level"),
        (
            ("latency", "--model", "vgg11", "--npus", "2", "--set", "fabric.rack.latency=1us"),
            "bare dimensions have no fabric",
        ),
        ((*ON_TWO, "--placement", "4"), "need --sweep"),
        ((*ON_TWO, "--plot", "p.svg"), "--plot needs"),
        ((*ON_TWO, "--format", "csv"), "needs --sweep"),
        (("latency", "--model", "vgg11", "--npus", "2", "--sweep", "x"), "needs --placement"),
        (
            (*ON_TWO, "--sweep", "fabric.rack.latency=1us..2us", "--plot", "/proc/p.svg"),
            "/proc/p.svg",
        ),
    ],
)  # fmt: skip
def test_each_mistake_ends_with_a_sentence(artist, arguments: tuple[str, ...], words: str) -> None:
    ran = artist(*arguments, code=2)
    assert words in ran.stderr
    assert "Traceback" not in ran.stderr


# -- sweeps ----------------------------------------------------------------------------


def test_a_sweep_distinguishes_its_fabrics(trace: Path, tmp_path: Path) -> None:
    base = {"trace": str(trace), "racks": 2, "machines_per_rack": 1, "policy": "fifo"}
    base["fabric"] = "dally2025"
    grid = {"fabric.network.bandwidth": ["1Gbit/s", "400Gbit/s"]}
    out = tmp_path / "out"
    sweep(Experiment(name="e", version=1, base=base, grid=grid), out, ["a test"], workers=1)
    rows = list(csv.DictReader(io.StringIO((out / "results.csv").read_text())))
    assert [row["fabric.network.bandwidth"] for row in rows] == ["1Gbit/s", "400Gbit/s"]
    assert [row["fabric_changes"] for row in rows] == [
        "network bandwidth 1 Gbit/s", "network bandwidth 400 Gbit/s",
    ]  # fmt: skip
    assert float(rows[0]["makespan_s"]) > float(rows[1]["makespan_s"])
    study = group(read_runs([out / "runs"]))
    assert {setting.label for setting in study.settings} == {
        "fabric: network bandwidth 1 Gbit/s", "fabric: network bandwidth 400 Gbit/s",
    }  # fmt: skip
    alone = group(read_runs([out / "runs" / rows[0]["run"]]))
    assert "Fabric dally2025, changed: network bandwidth 1 Gbit/s." in page(alone).decode()


def test_inputs_of_a_changed_fabric_are_its_own() -> None:
    """Otherwise a resumed sweep would compare a run with the digests of another fabric."""
    plain = library.Scenario(trace="tiny-batch", fabric="dally2025")
    slow = plain.model_copy(update={"fabric_options": library.Scenario(
        fabric_options={"network": {"bandwidth": "1Gbit/s"}}
    ).fabric_options})  # fmt: skip
    inputs = Inputs()
    digests = [inputs.of(scenario)["fabric"] for scenario in (plain, slow, plain)]  # type: ignore[index]
    assert digests[0] == digests[2] == load_fabric("dally2025").digest
    assert digests[1] != digests[0]


# -- latency --sweep -------------------------------------------------------------------

ASKED = ("latency", "--model", "resnet50", "--placement", "4/4", "--placement", "4,4", *DALLY)
RANGE = ("--sweep", "fabric.network.latency=1us..100us", "--points", "4")


def test_what_a_placement_inside_a_rack_sends_beyond_costs_nothing(artist) -> None:
    sweep = ("--sweep", "fabric.network.bandwidth=10Gbit/s..400Gbit/s", "--points", "3")
    told = artist("latency", "--model", "resnet50", "--placement", "4,4", *sweep, code=0).stdout
    told = told.rpartition("\n4,4: ")[2]
    assert told == "nothing that it sends on level network makes an iteration longer\n"


def test_a_sweep_over_a_network_as_table_csv_and_json(artist) -> None:
    table = artist(*ASKED, *RANGE, "--calibration", "auto").stdout
    assert "network latency, us" in table
    assert "present value" in table
    assert "4/4: at 50 us, the present value, " in table
    assert "4,4: at 50 us" in table
    assert "not on the changed one (another network latency)" in table.replace("\n", " ")
    data = json.loads(artist(*ASKED, *RANGE, "--format", "json").stdout)
    rows = list(csv.DictReader(io.StringIO(artist(*ASKED, *RANGE, "--format", "csv").stdout)))
    assert (data["fabric"], data["calibration"]) == ("dally2025", "none")
    assert len(rows) == len(data["points"]) == 2 * 5
    for row, point in zip(rows, data["points"], strict=True):
        assert float(row["iteration_s"]) == point["iteration_s"]
        assert row["present"] == str(point["present"]).lower()
        assert (row["setting"], row["unit"]) == ("network latency", "us")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "written", "begin"),
    [
        ("p.svg", "p.svg", b"<?xml"),
        ("p.SVG", "p.SVG", b"<?xml"),
        ("p.pdf", "p.pdf", b"%PDF"),
        ("p.png", "p.png", b"\x89PNG"),
        ("p", "p.png", b"\x89PNG"),
    ],
)
def test_a_sweep_is_drawn_and_twice_the_same(
    artist, tmp_path: Path, name: str, written: str, begin: bytes
) -> None:
    pytest.importorskip("matplotlib")
    drawn = []
    for again in ((), ("--overwrite",)):
        artist(*ASKED, *RANGE, "--plot", name, *again, code=0)
        drawn.append((tmp_path / written).read_bytes())
    assert drawn[0] == drawn[1]
    assert drawn[0].startswith(begin)


def test_the_plot_names_its_axes_and_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    from artist.estimates.sensitivity import Point, parse_sweep
    from artist.report import command_plots

    drawn = []
    monkeypatch.setattr(command_plots, "save_figure", lambda figure, path: drawn.append(figure))
    sweep = parse_sweep("fabric.network.latency=1us..100us", 2)
    points = [Point(p, v, v == 1, 1.0, 0.5, 1.0) for p in ("4/4", "4,4") for v in (1, 100)]
    command_plots.plot_sweep(sweep, points, "resnet50", tmp_path / "p.svg")
    (axes,) = drawn[0].axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("network latency, us", "iteration time, ms")
    assert axes.get_xscale() == "log"
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == ["4/4", "4,4", "present value"]


# -- what a fabric grants --------------------------------------------------------------


def test_a_fabric_is_explained_in_the_units_that_people_use(artist) -> None:
    shown = artist("explain", "h100-quantum2-spectrum4").stdout
    for text in ("400 Gbit/s", "50 GB/s", "46.57 GiB/s", "936.2 ns", "a GPU"):
        assert text in shown
    rows = json.loads(artist("list", "fabrics", "--format", "json").stdout)
    row = next(row for row in rows if row["id"] == "h100-quantum2-spectrum4")
    assert row["Gbit/s"] == "3600, 400, 400"
    assert row["GB/s"] == "450, 50, 50"
    assert row["GiB/s"] == "419.1, 46.57, 46.57"


def test_oversubscription_is_shown_wherever_fabrics_are(artist) -> None:
    rows = artist("explain", "leaf-spine").stdout.splitlines()
    # level, topology, three units, of, latency, oversubscription
    ratios = {row.split("\t")[0]: row.split("\t")[7:] for row in rows if row.count("\t") > 5}
    assert ratios == {
        "level": ["oversubscription"], "machine": ["1:1"], "rack": ["2:1"], "network": [],
    }  # fmt: skip
    listed = json.loads(artist("list", "fabrics", "--format", "json").stdout)
    of = {row["id"]: row["oversubscription"] for row in listed}
    assert of["leaf-spine"] == of["cassini-testbed"] == "machine 1:1, rack 2:1"
    assert of["dally2025"] == "machine 1:1, rack 1:1"
    checks = {row["check"]: row for row in json.loads(artist("doctor", "--format", "json").stdout)}
    assert checks["fabric leaf-spine"]["detail"] == "oversubscription machine 1:1, rack 2:1"
    assert checks["fabric leaf-spine"]["ok"]


def test_links_that_connections_are_put_on_are_explained(artist) -> None:
    sets = ("--set", "fabric.rack.links=4", "--set", "fabric.rack.routing=ecmp")
    text = artist("explain", "leaf-spine", *sets).stdout
    assert text.startswith("# fabric leaf-spine with rack links 4, rack routing ecmp: ")
    assert "takes one of 4 links: a hash puts each connection on one." in text
    four = artist("explain", "leaf-spine", *sets, "--set", "fabric.rack.queue_pairs=4").stdout
    assert "each of 4 queue pairs of a connection out of a rack takes one of 4 links" in four
    assert "takes one of" not in artist("explain", "leaf-spine").stdout


def test_doctor_reports_a_fabric_that_contradicts_itself(artist, tmp_path: Path) -> None:
    folder = tmp_path / "astra_configs" / "fabrics"
    folder.mkdir(parents=True)
    text = HGX_H100.read_text().replace("rate_gib_per_s: 50", "rate_gib_per_s: 5", 1)
    (folder / "mine.yaml").write_text(text)
    checks = {row["check"]: row for row in json.loads(artist("doctor", "--format", "json").stdout)}
    assert not checks["fabric mine"]["ok"]
    assert "carries 40 GiB/s, but level rack gives one flow 50" in checks["fabric mine"]["detail"]


SIZES = {"cassini-testbed": (6, 4, 1), "leaf-spine": (2, 8, 8)}


@pytest.mark.parametrize(
    ("fabric", "more"),
    [
        ("cassini-testbed", []),
        ("leaf-spine", ["--set", "fabric.rack.oversubscription=1"]),
        ("leaf-spine", []),
        ("leaf-spine", ["--set", "fabric.rack.oversubscription=4"]),
    ],
)
def test_a_run_on_an_oversubscribed_fabric(artist, fabric: str, more: list[str]) -> None:
    racks, machines, gpus = SIZES[fabric]
    done = artist(
        "sim", "--trace", "tiny-batch", "--fabric", fabric, "--policy", "fifo", "--racks", racks,
        "--machines-per-rack", machines, "--gpus-per-machine", gpus, *more, "--quiet", code=0,
    )  # fmt: skip
    assert "makespan" in done.stdout


def test_an_outer_level_with_more_bandwidth_is_reported_with_its_source(artist) -> None:
    shown = artist("explain", "dally2025").stdout
    assert (
        "Level network has more bandwidth than rack inside it, and a hop takes 50 us there" in shown
    )
    assert "network\toriginal simulator, racks; a Switch hop counts its latency twice" in shown
    assert "has more bandwidth" not in artist("explain", "h100-quantum2-spectrum4").stdout


def test_a_shared_card_is_explained(artist, tmp_path: Path) -> None:
    shared = HGX_H100.read_text().replace(
        "bandwidth_gib_per_s: 50", "bandwidth: 100Gbit/s\n    shared_by: machine", 1
    )
    (tmp_path / "mine.yaml").write_text(shared)
    shown = artist("explain", "mine.yaml").stdout
    assert "100 Gbit/s" in shown
    assert "a machine" in shown
