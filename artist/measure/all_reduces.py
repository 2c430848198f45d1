"""Measures all-reduces of growing size and writes their times as a log of nccl-tests.

`artist calibrate fabric` can read the log.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

WARMUP, REPEATS = 5, 20
"""The defaults of nccl-tests (-w 5 -n 20)."""


@dataclass(frozen=True, slots=True)
class AllReduceTimes:
    """Microseconds of an all-reduce of `size_bytes`: the medians of two rounds."""

    size_bytes: int
    times_us: tuple[float, float]


def time_all_reduces(largest_bytes: int, device: str) -> list[AllReduceTimes]:
    """Times of all-reduces of 1 KiB, 2 KiB, ... up to `largest_bytes`.

    All processes of the group must call it together.
    """
    points = []
    size = 1024
    while size <= largest_bytes:
        points.append(AllReduceTimes(size, (_round_us(size, device), _round_us(size, device))))
        size *= 2
    return points


def _round_us(size_bytes: int, device: str) -> float:
    """The median time of one round, in microseconds."""
    import torch
    import torch.distributed as dist

    data = torch.ones(size_bytes // 4, device=device)
    times = []
    for number in range(WARMUP + REPEATS):
        dist.barrier()
        begun = time.perf_counter()
        dist.all_reduce(data)
        if device == "cuda":
            torch.cuda.synchronize()
        if number >= WARMUP:
            times.append(1e6 * (time.perf_counter() - begun))
        data.fill_(1.0)  # sums would grow from repeat to repeat until they overflow
    return median(times)


def log_text(points: list[AllReduceTimes], hosts: list[str], backend: str, hardware: str) -> str:
    """The text of a log. `hosts` has the host of each rank."""
    ranks = len(hosts)
    lines = [
        f"# Collective test starting: all_reduce_perf (torch.distributed, {backend})",
        f"# warmup iters: {WARMUP} iters: {REPEATS}, medians, two rounds",
        "#",
        "# Using devices",
        *(
            f"#  Rank {rank:2} Group  0 Pid      0 on {host} device {rank:2} {hardware}"
            for rank, host in enumerate(hosts)
        ),
        "#",
        "#" + " " * 61 + "first round                        second round",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong"
        "     time   algbw   busbw #wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)       "
        "     (us)  (GB/s)  (GB/s)",
    ]
    for point in points:
        size = point.size_bytes
        row = f"{size:12} {size // 4:12}     float     sum      -1"
        for time_us in point.times_us:
            algbw = size / time_us / 1e3
            row += f" {time_us:9.2f} {algbw:7.3f} {algbw * 2 * (ranks - 1) / ranks:7.3f}    N/A"
        lines.append(row)
    mean = sum(p.size_bytes / p.times_us[0] / 1e3 for p in points) / len(points)
    lines += [
        "# Out of bounds values : 0 OK",
        f"# Avg bus bandwidth    : {mean * 2 * (ranks - 1) / ranks:.4f}",
    ]
    return "\n".join(lines) + "\n"
