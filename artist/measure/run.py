"""Measuring on the machine at hand: processes, devices, and the files that come out.

Started alone it spawns the processes of one machine, one per GPU; under `torchrun` (several
machines) it is one of many. The first process writes

    measured.csv     what `artist calibrate --measured` reads
    layers.csv       forward and backward times and gradient sizes by layer
    all_reduce.log   what `artist calibrate --nccl-tests` reads
"""

from __future__ import annotations

import csv
import io
import os
import platform
import socket
import tempfile
from collections import Counter
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from artist.errors import BackendError, ConfigError
from artist.measure.layers import build
from artist.measure.step import LayerTimes, StepTimes, measure_step
from artist.measure.sweep import SweepPoint, log_text, sweep
from artist.workload.gpus import Precision
from artist.workload.layers import Parallelism
from artist.workload.models import canonical, operators, settings, workload


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure. `processes` are spawned here unless torchrun started this one."""

    model: str
    out: Path
    processes: int
    backend: str
    device: str
    steps: int
    largest_bytes: int


@dataclass(frozen=True, slots=True)
class Measured:
    """What the first process found."""

    step: StepTimes
    points: list[SweepPoint]
    hosts: list[str]
    hardware: str


def plan(
    model: str,
    out: Path,
    *,
    processes: int | None,
    device: str,
    steps: int,
    largest_bytes: int,
) -> Plan:
    """Check the request against this machine.

    Raises:
        ConfigError: torch is missing, or the devices are.
    """
    try:
        import torch
        import torch.distributed as dist
    except ImportError as cause:
        raise ConfigError(
            "artist measure needs torch; install it with: pip install 'artist-sim[torch]'"
        ) from cause
    spec = canonical(model)
    if workload(spec).parallelism is not Parallelism.DATA:
        raise ConfigError(
            f"model {spec!r} is not data-parallel: only such steps are measured; add "
            "parallel=data to its name or measure another"
        )
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    chosen = ("cuda" if gpus else "cpu") if device == "auto" else device
    if chosen == "cuda" and not gpus:
        raise ConfigError("--device cuda: torch finds no GPU; use --device cpu")
    count = processes or (gpus if chosen == "cuda" else 2)
    if chosen == "cuda" and count > gpus:
        raise ConfigError(f"--processes {count}: this machine has {gpus} GPUs")
    if count < 2 and "RANK" not in os.environ:
        raise ConfigError("one process has nobody to communicate with; use --processes 2 or more")
    backend = "nccl" if chosen == "cuda" and dist.is_nccl_available() else "gloo"
    return Plan(spec, out, count, backend, chosen, steps, largest_bytes)


def measure(chosen: Plan) -> Measured | None:
    """Run it; None on a process of torchrun that is not the first.

    Raises:
        BackendError: a process failed.
    """
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        return _worker(int(os.environ.get("LOCAL_RANK", "0")), chosen, None)
    import torch.multiprocessing as mp

    found: Measured | None = None
    with tempfile.TemporaryDirectory(prefix="artist-measure-") as folder:
        answers = mp.get_context("spawn").SimpleQueue()
        arguments = (chosen, f"file://{folder}/store", answers)
        try:
            running = mp.spawn(_spawned, arguments, nprocs=chosen.processes, join=False)
            while not running.join(timeout=0.2):
                # Read meanwhile: a full pipe would keep the process from ending.
                found = answers.get() if not answers.empty() else found
        except Exception as cause:  # torch reports a child's failure as any of several
            raise BackendError(
                f"measuring {chosen.model} failed in a process: {str(cause).strip()[-300:]}; "
                "try fewer processes or a smaller batch (MODEL@batch=N)"
            ) from cause
        return answers.get() if found is None else found


def write(chosen: Plan, found: Measured) -> list[Path]:
    """Write the three files.

    Raises:
        ConfigError: the folder cannot be written.
    """
    placement = ",".join(str(n) for n in Counter(found.hosts).values())
    texts = {
        "measured.csv": _measured_csv(chosen, found, placement),
        "layers.csv": _layers_csv(found.step.layers),
        "all_reduce.log": log_text(found.points, found.hosts, chosen.backend, found.hardware),
    }
    try:
        chosen.out.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (chosen.out / name).write_text(text, encoding="utf-8")
    except OSError as cause:
        raise ConfigError(f"--out {chosen.out}: cannot be written ({cause})") from cause
    return [chosen.out / name for name in texts]


def _spawned(rank: int, chosen: Plan, store: str, answers: Any) -> None:
    found = _worker(rank, chosen, (store, rank))
    if found is not None:
        answers.put(found)


def _worker(local_rank: int, chosen: Plan, store: tuple[str, int] | None) -> Measured | None:
    import torch
    import torch.distributed as dist

    if chosen.device == "cuda":
        torch.cuda.set_device(local_rank)
    else:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // chosen.processes))
    if store is None:
        dist.init_process_group(chosen.backend)
    else:
        address, rank = store
        dist.init_process_group(
            chosen.backend, init_method=address, rank=rank, world_size=chosen.processes
        )
    try:
        hosts: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(hosts, socket.gethostname())
        points = sweep(chosen.largest_bytes, chosen.device)
        setting = settings(chosen.model)
        layers = build(
            operators(chosen.model), setting.batch, chosen.device, Precision(setting.precision)
        )
        step = measure_step(layers, chosen.steps, chosen.device)
        if dist.get_rank() > 0:
            return None
        return Measured(step, points, hosts, _hardware(chosen.device))
    finally:
        dist.destroy_process_group()


def _hardware(device: str) -> str:
    import torch

    if device == "cuda":
        return str(torch.cuda.get_device_name())
    return platform.processor() or platform.machine()


def _measured_csv(chosen: Plan, found: Measured, placement: str) -> str:
    import torch

    text = io.StringIO()
    text.write(
        f"# source: artist measure {chosen.model}, {chosen.steps} steps, "
        f"torch {torch.__version__}, {chosen.backend}\n"
        f"# hardware: {len(found.hosts)} x {found.hardware}\n"
        f"# when: {datetime.now(UTC):%Y-%m-%d}\n"
    )
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("model", "placement", "compute_ms", "exposed_comm_ms"))
    step = found.step
    times = (f"{step.compute_ms:.6g}", f"{step.exposed_comm_ms:.6g}")
    rows.writerow((chosen.model, placement, *times))
    return text.getvalue()


def _layers_csv(layers: tuple[LayerTimes, ...]) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("layer", "forward_ms", "backward_ms", "gradient_bytes"))
    rows.writerows(astuple(layer) for layer in layers)
    return text.getvalue()
