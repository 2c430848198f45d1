"""Starts the processes that measure this machine, and collects their result.

There is one process per GPU; a single process measures only compute. `artist measure` spawns the
processes of one machine. Under `torchrun` (several machines) each call of `artist measure` is one
of the processes. Only the first process has a result; `output_files.py` writes it.
"""

from __future__ import annotations

import os
import platform
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artist.errors import BackendError, ConfigError
from artist.io.optional_libraries import check_import
from artist.measure.all_reduces import AllReduceTimes, time_all_reduces
from artist.measure.step import MeasuredStep, build, measure_step
from artist.workload.gpus import Precision
from artist.workload.layers import Parallelism
from artist.workload.models import canonical, operators, settings, workload


@dataclass(frozen=True, slots=True)
class MeasurementPlan:
    """What to measure and where to write it.

    `processes` is the number of processes to spawn here; under torchrun it is not used.
    """

    model: str
    out: Path
    processes: int
    backend: str
    device: str
    steps: int
    largest_bytes: int


@dataclass(frozen=True, slots=True)
class MeasuredMachine:
    """The result of the first process. `hosts` has the host of each process. `points` is empty if
    there is one process.
    """

    step: MeasuredStep
    points: list[AllReduceTimes]
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
) -> MeasurementPlan:
    """Check the request against this machine.

    Raises:
        ConfigError: torch is missing, the model is not data-parallel, or there are too few
            devices.
    """
    chosen, gpus = chosen_device(device)
    spec = measurable(model)
    count = processes or (gpus if chosen == "cuda" else 2)
    if chosen == "cuda" and count > gpus:
        raise ConfigError(f"--processes {count}: this machine has {gpus} GPUs")
    import torch.distributed as dist

    backend = "nccl" if chosen == "cuda" and dist.is_nccl_available() else "gloo"
    return MeasurementPlan(spec, out, count, backend, chosen, steps, largest_bytes)


def chosen_device(device: str) -> tuple[str, int]:
    """`cuda` or `cpu`, and the number of GPUs of this machine.

    Raises:
        ConfigError: torch is missing, or finds no GPU although one was requested.
    """
    check_import("artist measure", "torch", extra="torch")
    import torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    chosen = ("cuda" if gpus else "cpu") if device == "auto" else device
    if chosen == "cuda" and not gpus:
        raise ConfigError("--device cuda: torch finds no GPU; use --device cpu")
    return chosen, gpus


def measurable(model: str) -> str:
    """A model's full name.

    Raises:
        ConfigError: there is no such model, or it is not data-parallel.
    """
    spec = canonical(model)
    if workload(spec).parallelism is not Parallelism.DATA:
        raise ConfigError(
            f"model {spec!r} is not data-parallel: only such steps are measured; add "
            "parallel=data to its name or measure another"
        )
    return spec


def measure(chosen: MeasurementPlan) -> MeasuredMachine | None:
    """Measure as planned. The result is None on a process of torchrun that is not the first.

    Raises:
        BackendError: a process failed.
    """
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        return _worker(int(os.environ.get("LOCAL_RANK", "0")), chosen, None)
    import torch.multiprocessing as mp

    measured: MeasuredMachine | None = None
    with tempfile.TemporaryDirectory(prefix="artist-measure-") as folder:
        answers = mp.get_context("spawn").SimpleQueue()
        arguments = (chosen, f"file://{folder}/store", answers)
        try:
            running = mp.spawn(_spawned, arguments, nprocs=chosen.processes, join=False)
            while not running.join(timeout=0.2):
                # Read while the processes run: a process that writes to a full pipe could not end.
                measured = answers.get() if not answers.empty() else measured
        except Exception as cause:  # torch has several exceptions for a failed process
            raise BackendError(
                f"measuring {chosen.model} failed in a process: {str(cause).strip()[-300:]}; "
                "try fewer processes or a smaller batch (MODEL@batch=N)"
            ) from cause
        return answers.get() if measured is None else measured


def _spawned(rank: int, chosen: MeasurementPlan, store: str, answers: Any) -> None:
    """The main function of a spawned process."""
    measured = _worker(rank, chosen, (store, rank))
    if measured is not None:
        answers.put(measured)


def _worker(
    local_rank: int, chosen: MeasurementPlan, store: tuple[str, int] | None
) -> MeasuredMachine | None:
    """Measure together with the other processes; None except on the first one.

    `store` is the address at which spawned processes meet, and the rank of this one. torchrun gives
    both in the environment, so there it is None.
    """
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
        points = time_all_reduces(chosen.largest_bytes, chosen.device) if len(hosts) > 1 else []
        setting = settings(chosen.model)
        layers = build(
            operators(chosen.model), setting.batch, chosen.device, Precision(setting.precision)
        )
        step = measure_step(layers, chosen.steps, chosen.device)
        if dist.get_rank() > 0:
            return None
        return MeasuredMachine(step, points, hosts, hardware(chosen.device))
    finally:
        dist.destroy_process_group()


def hardware(device: str) -> str:
    """The name of the device."""
    import torch

    if device == "cuda":
        return str(torch.cuda.get_device_name())
    return platform.processor() or platform.machine()
