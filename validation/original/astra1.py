"""What ASTRA-sim 1.0 answers for a data-parallel job, for networks that were not recorded.

One pass: first all layers forward. Then, from the last layer to the first: the weight gradient, its
all-reduce, and the input gradient (not for the first layer). Compute does not wait for the
all-reduces. The update of a layer follows its all-reduce.

An all-reduce passes all dimensions one after the other, each at full size (`baseline`). A dimension
serves one all-reduce at a time, the newest first (LIFO). A ring of n members takes 2 (n - 1) steps
of size / n. Exposed communication is everything that is not compute.

Times are nanoseconds, cut to whole numbers. Source: the fork of ASTRA-sim 1.0 that the original
simulator uses (section 10 of `SEMANTICS.md`, beside its recorded runs). Compared with the recording
in tests/validation/test_astra1.py.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from artist.errors import BackendError
from artist.units import bytes_per_ns

ENDPOINT_NS = 10
EVENT_NS = 1
"""Each compute phase ends one nanosecond late, as in the original."""

FILES = {
    "alexnet": "alexnet_B512",
    "bert-large": "BERT-large_B256",
    "mobilenetv3": "mobilenet_v3_B512",
    "resnet18": "resnet18_B512",
    "resnet50": "resnet50_B512",
    "vgg11": "vgg11_B256",
}
"""Model -> the original's workload file."""


class NetworkDim(Protocol):
    """A network dimension."""

    @property
    def topology(self) -> str:
        """Ring, FullyConnected or Switch."""

    @property
    def units(self) -> int:
        """How many members it connects."""

    @property
    def bandwidth(self) -> int:
        """GiB/s per link."""

    @property
    def latency_ns(self) -> int:
        """Per hop."""


class LayerTimes(NamedTuple):
    """One row of a workload; compute in microseconds."""

    forward_us: int
    input_grad_us: int
    weight_grad_us: int
    comm_bytes: int
    update_ns: int


class _Reduction(NamedTuple):
    size: int
    update_ns: int


def read_layers(path: Path) -> list[LayerTimes]:
    """Read a text workload of the original (type DATA).

    Raises:
        BackendError: the file cannot be read.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()[2:]
        columns = [line.split() for line in lines if line.strip()]
        return [
            LayerTimes(int(row[2]), int(row[5]), int(row[8]), int(row[10]), int(row[11]))
            for row in columns
        ]
    except (OSError, ValueError, IndexError) as cause:
        raise BackendError(f"{path}: not a workload of ASTRA-sim 1.0 ({cause})") from cause


class Astra1:
    """ASTRA-sim 1.0's answers, computed from a folder with the original's workload files."""

    def __init__(self, workloads: Path) -> None:
        self._workloads = workloads

    def __call__(self, model: str, scale: float, dims: Sequence[NetworkDim]) -> tuple[float, float]:
        """Compute and exposed communication in microseconds.

        Raises:
            BackendError: the folder has no file of the model.
        """
        if model not in FILES:
            raise BackendError(f"no workload of the original for model {model}")
        layers = read_layers(self._workloads / f"{FILES[model]}.txt")
        computed, finished = one_pass(layers, scale, dims)
        return computed / 1e3, (finished - computed) / 1e3


def one_pass(
    layers: Sequence[LayerTimes], scale: float, dims: Sequence[NetworkDim]
) -> tuple[int, int]:
    """Compute time and finish time of one pass, in nanoseconds."""
    issued = list(_backward(layers, float(np.float32(scale))))
    computed, clock, _ = issued[-1]
    reductions = [(at, reduction) for _, at, reduction in issued]
    return computed, max(clock, _last_end(reductions, dims) - EVENT_NS)


def _backward(layers: Sequence[LayerTimes], scale: float) -> Iterator[tuple[int, int, _Reduction]]:
    """Per layer, last first: compute time so far, the clock, and the all-reduce issued then."""
    computed = sum(_scaled(layer.forward_us, scale) for layer in layers)
    events = len(layers)
    for layer in reversed(layers):
        computed += _scaled(layer.weight_grad_us, scale)
        events += 1
        yield computed, computed + events * EVENT_NS, _Reduction(layer.comm_bytes, layer.update_ns)
        computed += _scaled(layer.input_grad_us, scale)
        events += 1


def _scaled(microseconds: int, scale: float) -> int:
    return int(microseconds * 1000 * scale)


def _last_end(issued: Iterable[tuple[int, _Reduction]], dims: Sequence[NetworkDim]) -> int:
    """When the last all-reduce and its update are over."""
    waiting: list[list[_Reduction]] = [[] for _ in dims]
    busy = [False] * len(dims)
    events: list[tuple[int, int, int, _Reduction]] = []  # time, serial, next dimension, all-reduce
    serial = end = 0
    for at, reduction in issued:
        events.append((at, serial, 0, reduction))
        serial += 1
    while events:
        now, _, target, reduction = heapq.heappop(events)
        if target:
            busy[target - 1] = False
        if target < len(dims):
            waiting[target].append(reduction)
        else:
            end = max(end, now + reduction.update_ns)
        for index in {target - 1, target} & set(range(len(dims))):
            if waiting[index] and not busy[index]:
                newest = waiting[index].pop()
                busy[index] = True
                done = now + _duration(newest.size, dims[index])
                heapq.heappush(events, (done, serial, index + 1, newest))
                serial += 1
    return end


def _duration(size: int, dim: NetworkDim) -> int:
    """The time of a ring all-reduce over one dimension, in nanoseconds."""
    members = dim.units
    if members == 1:
        return 0
    bandwidth = bytes_per_ns(dim.bandwidth) * _links(dim)
    hops = 2 if dim.topology == "Switch" else 1
    step = hops * dim.latency_ns + int(size // members / bandwidth) + ENDPOINT_NS
    return 2 * (members - 1) * step + ENDPOINT_NS


def _links(dim: NetworkDim) -> int:
    """How many links a member can use: the original gives a dimension one link per member.

    A ring gets an even number of links, at least four. Fully connected members share their links.
    """
    if dim.topology == "FullyConnected":
        return dim.units // (dim.units - 1)
    if dim.topology == "Ring":
        return max(4, dim.units + dim.units % 2)
    return dim.units
