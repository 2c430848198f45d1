"""Command lines that nobody should type: options of every command with absurd values."""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import click
from breaking import VALUES, WORDS
from campaign import soon
from folder_kinds import SLURM, warehouse_folder
from kinds import OWN_TRACE, POLICY, nccl_log, run_folder
from typer.main import get_command

from artist.cli.interruption import ReaderGone
from artist.cli.main import application
from artist.errors import ArtistError

SMALL = ("--trace", "tiny-batch", "--racks", "1", "--jobs", "4")
PLACED = ("--model", "resnet18", "--placement", "4,4")
BASES: dict[str, tuple[str, ...]] = {
    "sim": SMALL,
    "compare": (*SMALL, "--policies", "fifo,las", "--permutations", "1", "--workers", "1"),
    "sweep": ("sweep.yaml", "--out", "swept", "--workers", "1", "--overwrite"),
    "place-data": ("warehouse", "--out", "plan", "--overwrite"),
    "fill": ("pods.csv", "--machines", "few.yaml", "--out", "filled", "--overwrite"),
    "reproduce": ("dally", "--table", "1", "--out", "reproduced", "--overwrite"),
    "why": ("run",),
    "report": ("run", "--overwrite"),
    "export": ("run", "--overwrite"),
    "list": ("policies",),
    "explain": ("jct_mean_s",),
    "schema": ("scenario",),
    "latency": PLACED,
    "circle": ("--pattern", "100:40:50", "--pattern", "100:40:50"),
    "render": (*PLACED, "--out", "rendered", "--overwrite"),
    "calibrate models": ("--model", "resnet18", "--name", "mine", "--overwrite"),
    "calibrate fabric": (
        "mine",
        "--nccl-tests",
        "log.txt",
        "--level",
        "machine",
        "--base",
        "a100",
        "--overwrite",
    ),
    "trace validate": ("jobs.csv",),
    "trace stats": ("jobs.csv",),
    "trace columns": ("own.csv",),
    "trace convert": ("jobs.csv", "--out", "converted.csv", "--overwrite"),
    "trace synth": ("--jobs", "9", "--load", "1", "--gpus", "8", "--out", "s.csv", "--overwrite"),
    "policy new": ("other",),
    "cluster show": ("--racks", "1"),
    "cluster import": ("--slurm", "slurm", "--out", "c.yaml", "--overwrite"),
    "cache info": (),
}
"""Command -> arguments with which it ends well and soon, in the folder that `prepare` makes."""

NAMES = (
    "run", "own.csv", "sweep.yaml", "slurm", "foreign", "foreign/thesis.txt", "link", "pipe",
    "no/where", "x" * 300, "swept", "mine.py", "mine.py:Mine", ".", "", "-", "/dev/full",
)  # fmt: skip
"""Paths: of every kind that lies there, and of none. Outside the folder only a device."""

TEXTS = [
    *VALUES, *(word.decode("utf-8", "surrogateescape") for word in WORDS), "poisson:1e-6",
    "010", "1:30", "\u0663", "10" * 10, "x2", "+2", "x1e308", "1us..1s", "1s..1us", "a=b", "=", ",",
    "a,a", "4+4/8", "9+9", "0,0", "-1/-1", "100:40:50", "1e308:1:1", "resnet50:4,4", "auto", "2%",
    "1e99%", "10min", "-5min", "1e99h", "decided", "racks=1,2", "restart_s=nan", "policy=las",
    "system.preferred_dataset_splits=1000", "fabric.network.bandwidth=x2", "fabric.x.y=1",
    "checkpoint.interval_s=1", "table:pipe", "mean", "meta-rsc", "synth:9:8:1", "none=1e9",
]  # fmt: skip
ABSENT = {"--debug", "--help", "-h", "--version", "--workers"}
"""Options that are left alone: a number of workers is a number of processes."""


@cache
def commands() -> dict[str, click.Command]:
    """The commands by name, `trace stats` one of them."""

    def inner(command: click.Command, name: str) -> dict[str, click.Command]:
        if not hasattr(command, "list_commands"):
            return {name: command}
        found: dict[str, click.Command] = {}
        for one in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), one)
            assert below is not None
            found |= inner(below, f"{name} {one}".strip())
        return found

    return inner(get_command(application()), "")


def broken_line(name: str, rng: random.Random) -> list[str]:
    """A command line with one to three absurd options or arguments."""
    line = [*name.split(), *BASES[name]]
    start = len(name.split())
    options = [
        (one.opts[0], one)
        for one in commands()[name].params
        if one.param_type_name == "option" and not ABSENT & {*one.opts}
    ]
    for _ in range(rng.choice((1, 1, 2, 3))):
        action = rng.random()
        if action < 0.65 and options:
            flag, option = rng.choice(options)
            line += [flag] if option.is_flag else [flag, _value(rng)]
        elif action < 0.85 and len(line) > start:
            line[rng.randrange(start, len(line))] = _value(rng)
        elif action < 0.95 and len(line) > start:
            del line[rng.randrange(start, len(line))]
        else:
            line.insert(rng.randrange(start, len(line) + 1), _value(rng))
    return [word.replace("\0", "0") for word in line]  # no program can be given a zero byte


def _value(rng: random.Random) -> str:
    return rng.choice(NAMES) if rng.random() < 0.25 else rng.choice(TEXTS)


def ended_well(line: Sequence[str]) -> bool:
    """Run a command line in this process. Errors that have no sentence escape."""
    printed, told = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(told), soon():
        try:
            application([line[0]])(args=list(line), prog_name="artist")
        except SystemExit as end:
            code = int(end.code or 0)
        except ArtistError as error:
            code = error.exit_code
            assert str(error).isprintable(), repr(str(error))
            assert len(str(error)) <= 1600, str(error)
        except (OSError, ReaderGone) as error:
            assert not isinstance(error, OSError) or error.strerror, repr(error)
            code = 2
    shown = printed.getvalue() + told.getvalue()
    assert "Traceback" not in shown
    hidden = [mark for mark in shown if not mark.isprintable() and mark not in "\n\t"]
    assert not hidden, repr(hidden)
    return code == 0


def prepare(folder: Path) -> None:
    """Create what the bases name, and files of the user's."""
    for name, text in (
        ("own.csv", OWN_TRACE), ("jobs.csv", JOBS), ("sweep.yaml", SWEEP), ("mine.py", POLICY),
        ("log.txt", nccl_log()), ("pods.csv", PODS), ("few.yaml", FEW),
        ("foreign/thesis.txt", "years of work"), ("foreign/manifest.json", "{}"),
        ("foreign/run/jobs.parquet", "PAR1"),
        *((f"slurm/{name}.txt", text) for name, text in SLURM.items()),
    ):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "link").symlink_to("foreign")
    os.mkfifo(folder / "pipe")
    shutil.copytree(run_folder(), folder / "run")
    shutil.copytree(warehouse_folder(), folder / "warehouse")


def changed(folder: Path, before: Mapping[str, bytes]) -> list[str]:
    """Which of the user's files are no longer as they were. They are put back."""
    names = [name for name in before if _content(folder / name) != before[name]]
    for name in names:
        (folder / name).write_bytes(before[name])
    return names


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


MINE = ("foreign/thesis.txt", "foreign/manifest.json", "foreign/run/jobs.parquet", "own.csv",
        "sweep.yaml", "mine.py", "pods.csv", "few.yaml", "log.txt", "slurm/nodes.txt")  # fmt: skip
JOBS = "job_id,arrival_s,gpus,model,iterations,compute_s\na,0,4,resnet18,10,1\nb,1,2,vgg11,9,2\n"
SWEEP = """name: s
version: 1
base: {trace: tiny-batch, racks: 1, jobs: 4}
grid: {policy: [fifo, las]}
"""
PODS = "cpu_milli,memory_mib,num_gpu,gpu_milli\n1000,1,1,500\n1000,1,2,1000\n"
FEW = """name: few
summary: ""
source: made up
machines: [{count: 4, cpu_milli: 8000, memory_mib: 9, gpus: 4}]
"""
