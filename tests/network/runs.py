"""Runs on an oversubscribed network: racks of two machines with eight GPUs each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from support import Script, on, simulator

from artist.cluster.fabric import Fabric, load_fabric
from artist.contract import RateFunction, Start
from artist.engine.rows import Rows
from artist.estimates.latency_service import LatencyService
from artist.network.rates.network_of_run import NetworkOfRun
from artist.network.rates.rate_functions import open_contention
from artist.run import open_backend
from artist.workload.job import Job
from artist.workload.models import workload

BACKEND = open_backend("analytical")


def fabric(rack_uplinks: int = 8) -> Fabric:
    """A slow network: 1 GiB/s for each GPU, and as many uplinks of 1 GiB/s out of a rack as said.

    Sixteen of them carry what the GPUs of a rack can send.
    """
    loaded = load_fabric("h100-quantum2-spectrum4")
    machine, rack, outermost = loaded.levels
    assert rack.uplink is not None
    uplink = rack.uplink.model_copy(update={"rate_gib_per_s": 1.0, "count": rack_uplinks})
    slow = outermost.model_copy(update={"bandwidth_gib_per_s": 1.0})
    levels = (machine, rack.model_copy(update={"uplink": uplink}), slow)
    return loaded.model_copy(update={"levels": levels})


def network(racks: int = 4, *, rack_uplinks: int = 8, seed: int = 0) -> NetworkOfRun:
    """Machines are numbered from 0; rack r has machines 2r and 2r + 1."""
    asked = fabric(rack_uplinks)
    tree = asked.cluster(racks=racks, machines_per_rack=2, gpus_per_machine=8)
    return NetworkOfRun(tree, asked, LatencyService(asked, BACKEND, workload), seed)


def rates(name: str, on_network: NetworkOfRun, **options: Any) -> RateFunction:
    return open_contention(name, options, on_network)


def job(name: str, model: str = "vgg11", arrival_s: float = 0.0, **fields: Any) -> Job:
    """Sixteen GPUs, and iterations of 50 ms that mostly communicate."""
    defaults = {"gpus": 16, "iterations": 1000, "compute_s": 0.05}
    return Job(id=name, arrival_s=arrival_s, model=model, **{**defaults, **fields})


def run(
    jobs: Sequence[Job],
    placed: Sequence[Mapping[int, int]],
    contention: str | RateFunction,
    on_network: NetworkOfRun | None = None,
) -> Rows:
    """Each job starts on its machines when it arrives."""
    here = on_network or network()
    of_run = rates(contention, here) if isinstance(contention, str) else contention
    answers: dict[float, list[Start]] = {}
    for handle, (one, machines) in enumerate(zip(jobs, placed, strict=True)):
        answers.setdefault(one.arrival_s, []).append(Start(handle, on(machines)))
    return simulator(here.tree, jobs, of_run).run(Script(answers))


def renamed(jobs: Sequence[Job]) -> list[Job]:
    """The same jobs under other names, in reverse alphabetical order."""
    return [replace(one, id=f"{len(jobs) - index}-other") for index, one in enumerate(jobs)]
