"""The numbers that are not ours: the paper's tables and the original program's runs."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

HERE = Path(__file__).resolve().parent.parent

SCHEMES = {
    "Dally-auto": "dally",
    "Dally-manual": "dally-manual",
    "Dally-noWait": "dally-no-wait",
    "Dally-fullyCons": "dally-fully-consolidated",
    "Tiresias": "tiresias",
    "Gandiva": "gandiva",
}

Original: TypeAlias = Mapping[tuple[str, str, str, int], Mapping[str, float]]
"""(variant, trace, policy, racks) -> metric -> value."""

STATISTICS = ("jct_mean_s", "jct_p50_s", "jct_p95_s", "jct_p99_s")

# Dally, Tables II and III: average, median, P95, P99 in seconds on 8 racks.
PAPER_TABLES: Mapping[str, Mapping[str, tuple[int, int, int, int]]] = {
    "batch": {
        "gandiva": (5_828_719, 183_717, 17_485_823, 39_214_710),
        "tiresias": (4_461_998, 2_547_080, 17_841_606, 25_696_135),
        "dally-manual": (3_128_566, 2_552_189, 7_097_646, 8_868_401),
        "dally": (2_828_955, 2_401_390, 5_983_042, 8_395_214),
    },
    "poisson": {
        "gandiva": (17_371_514, 22_722_917, 71_362_014, 208_939_883),
        "tiresias": (4_329_941, 4_212_795, 15_059_080, 15_390_860),
        "dally-manual": (4_960_727, 2_787_855, 39_298_828, 39_817_762),
        "dally": (2_831_880, 2_595_529, 16_469_069, 16_681_241),
    },
}

OWN = {"batch": "sensetime_500_batch", "poisson": "sensetime_411_poisson_week"}
"""The paper's own jobs. artist does not ship them."""
DRAWN = {"batch": "sensetime-batch-500", "poisson": "sensetime-poisson-week"}
"""Built-in traces of the same shape, drawn by seed."""
EFFECTIVE = {"batch": "trace_batch_effective", "poisson": "trace_poisson_week_effective"}
"""The paper's own jobs as the original program executed them."""


def original() -> Original:
    """The runs of the original program: `asis` as published, `fix` with its leak closed.

    Raises:
        OSError: `original.csv` cannot be read.
    """
    with (HERE / "original.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["scheme"] in SCHEMES]
    return {
        (row["variant"], row["trace"], SCHEMES[row["scheme"]], int(row["racks"])): {
            name: float(value) for name, value in row.items() if _is_number(name)
        }
        for row in rows
    }


def latency_origins() -> Mapping[str, int]:
    """How many latencies were recorded from the original program, and how many were computed."""
    with (HERE / "recorded.csv").open(encoding="utf-8", newline="") as stream:
        return Counter(row["origin"] for row in csv.DictReader(stream))


def _is_number(column: str) -> bool:
    return column not in ("variant", "scheme", "trace")
