"""Does every command that writes refuse to replace what is there, unless it is asked to?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from typer.main import get_command

from artist.cli.main import COMMANDS, application

SMALL = ("--trace", "tiny-batch", "--racks", "1", "--backend", "none", "--quiet")
JOBS = "job_id,arrival_s,cards,model,iterations,compute_s\na,0,4,resnet18,10,1\n"
PODS = "cpu_milli,memory_mib,num_gpu,gpu_milli\n1000,1,1,500\n"
FEW = (
    "{name: few, summary: few, source: made up, machines: "
    "[{count: 2, cpu_milli: 8000, memory_mib: 9, gpus: 4}]}\n"
)
CASES = (Path(__file__).parents[1] / "astra" / "golden_sample.csv").read_text().splitlines()[0]
NETWORK = ("latency", "--model", "resnet18", "--placement", "8/8")
RANGE = ("--sweep", "fabric.network.latency=1us..2us", "--points", "2")

# A command that writes, and the file that it writes; RUN is a run directory.
WRITES = {
    "sim --out": (("sim", *SMALL, "--out", "run"), "run/summary.json"),
    "compare --values": (
        ("compare", *SMALL, "--policies", "fifo,las", "--permutations", "1", "--values", "c.csv"),
        "c.csv",
    ),
    "sweep --out": (("sweep", "e.yaml", "--out", "swept", "--quiet"), "swept/results.csv"),
    "fill --out": (
        ("fill", "pods.csv", "--machines", "few.yaml", "--placers", "fgd", "--out", "filled"),
        "filled",
    ),
    "reproduce --out": (
        ("reproduce", "dally", "--table", "1", "--out", "made"), "made/table-1-paper.csv",
    ),
    "calibrate": (
        ("calibrate", "--model", "resnet18", "--name", "mine"),
        "astra_configs/calibrations/mine.yaml",
    ),
    "report": (("report", "RUN"), "report.html"),
    "report --out": (("report", "RUN", "--out", "page.html"), "page.html"),
    "report --figures": (("report", "RUN", "--figures", "figures"), "figures"),
    "export --out": (("export", "RUN", "--out", "t.json"), "t.json"),
    "latency --plot": ((*NETWORK, *RANGE, "--plot", "p.svg"), "p.svg"),
    "latency --plot without an ending": ((*NETWORK, *RANGE, "--plot", "p"), "p.png"),
    "cluster --plot": (("cluster", "show", "--racks", "1", "--plot", "p.svg"), "p.svg"),
    "circle --plot": (("circle", "--pattern", "100:40:50", "--plot", "p.svg"), "p.svg"),
    "latency --cases": (
        ("latency", "--cases", "cases.csv", "--workloads", ".", "--out", "answers.csv"),
        "answers.csv",
    ),
    "render --out": (
        ("render", "--model", "resnet18", "--placement", "4", "--out", "made"), "made",
    ),
    "trace convert": (
        ("trace", "convert", "plain.csv", "--out", "t.csv", "--from", "native"), "t.csv",
    ),
    "trace columns": (
        ("trace", "columns", "own.csv", "--columns", "gpus=cards"), "own.csv.columns.yaml",
    ),
    "trace synth": (
        ("trace", "synth", "--jobs", "2", "--load", "1", "--gpus", "8", "--out", "s.csv"), "s.csv",
    ),
}  # fmt: skip

LONG = {"reproduce --out", "report --figures"}
# These write nothing, or only the cache, which holds nothing of a user's.
READERS = frozenset({"why", "list", "doctor", "explain", "schema", "astra", "cache", "forecast"})
# Tested below, in test_policy.py, or with what they need (tests/rl, test_place_data.py): two need
# torch, one a warehouse, two a recorded Slurm, and one would replace a program of the user.
OTHERS = frozenset({"measure", "place-data", "policy", "replay", "train", "whatif"})


@pytest.fixture
def inputs(artist, tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text(
        "name: e\nversion: 1\nbase: {trace: tiny-batch, backend: none, racks: 1}\n"
    )
    (tmp_path / "pods.csv").write_text(PODS)
    (tmp_path / "few.yaml").write_text(FEW)
    (tmp_path / "cases.csv").write_text(f"{CASES}\n")
    (tmp_path / "own.csv").write_text(JOBS)
    (tmp_path / "plain.csv").write_text(JOBS.replace("cards", "gpus"))


@pytest.mark.usefixtures("inputs")
@pytest.mark.parametrize(
    "case", [pytest.param(x, marks=[pytest.mark.slow] * (x in LONG)) for x in WRITES]
)
def test_an_existing_output_is_replaced_only_if_asked(artist, tmp_path: Path, case: str) -> None:
    command, name = WRITES[case]
    if "--plot" in command or "--figures" in command:
        pytest.importorskip("matplotlib")
    if "RUN" in command:
        assert artist("sim", *SMALL, "--out", "RUN").returncode == 0
    target = tmp_path / name
    artist(*command, code=0)
    files = contents(target)
    again = artist(*command, code=2)
    assert "--overwrite" in again.stderr
    assert contents(target) == files
    artist(*command, "--overwrite", code=0)
    assert contents(target) != files


def contents(target: Path) -> dict[str, tuple[bytes, int]]:
    """The bytes of a file, or of all files below a folder, and which file it is."""
    files = [path for path in target.rglob("*") if path.is_file()] if target.is_dir() else [target]
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_a_measurement_does_not_replace_another(artist, tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "layers.csv").write_text("mine")
    done = artist("measure", "--model", "vgg11", "--out", "m", code=2)
    assert "m: holds layers.csv already" in done.stderr
    assert "--overwrite" in done.stderr
    assert (tmp_path / "m" / "layers.csv").read_text() == "mine"


def test_every_command_that_can_write_has_the_option() -> None:
    tested = {command[0] for command, _ in WRITES.values()}
    assert tested | READERS | OTHERS == set(COMMANDS)
    for name, command in _all(get_command(application()), ()):
        options = {one for parameter in command.params for one in parameter.opts}
        if options & {"--out", "--values", "--plot", "--figures"}:
            assert "--overwrite" in options, name


def _all(command: click.Command, name: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for one in command.list_commands(context):
            inner = command.get_command(context, one)
            assert inner is not None
            yield from _all(inner, (*name, one))
    else:
        yield " ".join(name), command
