"""Synthetic logs of nccl-tests, printed as its versions 2.13 and later print them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

FACTORS = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "alltoall": 1.0}


def digits(value: float) -> str:
    """As nccl-tests prints times: fewer decimals for larger numbers."""
    if value >= 10000:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def log(
    *,
    alpha_us: float,
    beta_us_per_byte: float,
    operation: str = "all_reduce",
    hosts: Sequence[int] = (8,),
    noise: float = 0.03,
    seed: int = 0,
    smallest: int = 10,
    largest: int = 31,
) -> str:
    """A whole log with times (alpha + beta S) (1 + noise x normal)."""
    rng = np.random.default_rng(seed)
    ranks = sum(hosts)
    busbw = FACTORS[operation] * (ranks - 1) / ranks
    lines = [
        f"# Collective test starting: {operation}_perf",
        "# nThread 1 nGpus 1 minBytes 1024 maxBytes 1073741824 step: 2(factor) warmup iters: 5 "
        "iters: 20 agg iters: 1 validation: 1 graph: 0",
        "#",
        "# Using devices",
    ]
    rank = 0
    for host, count in enumerate(hosts):
        for device in range(count):
            lines.append(
                f"#  Rank {rank:2} Group  0 Pid {4000 + rank} on node{host:02} device  {device} "
                f"[0x{device:02x}] NVIDIA H100 80GB HBM3"
            )
            rank += 1
    lines += [
        "#",
        "#" + " " * 61 + "out-of-place                       in-place          ",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong"
        "     time   algbw   busbw #wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)       "
        "     (us)  (GB/s)  (GB/s)       ",
    ]
    reduction = "sum" if operation in ("all_reduce", "reduce_scatter") else "none"
    for power in range(smallest, largest):
        size = 2**power
        count = size // 4 if operation == "all_reduce" else size // 4 // ranks
        cells = f"{size:12} {count:12}     float {reduction:>7}      -1"
        for _ in range(2):
            time_us = (alpha_us + beta_us_per_byte * size) * (1 + noise * rng.standard_normal())
            algbw = size / time_us / 1e3
            cells += f"  {digits(time_us):>7} {algbw:6.2f} {algbw * busbw:7.2f}      0"
        lines.append(cells)
    lines += [
        "# Out of bounds values : 0 OK",
        "# Avg bus bandwidth    : 99.9",
        "#",
        f"# Collective test concluded: {operation}_perf",
    ]
    return "\n".join(lines) + "\n"
