"""Pods and what they ask for, read from a CSV file in the format of Alibaba's openb pods.

Columns: `cpu_milli`, `memory_mib`, `num_gpu`, `gpu_milli` (thousandths of each GPU; below 1000 only
if `num_gpu` is 1) and optionally `gpu_spec` (kinds of GPUs, `V100M16|V100M32`; empty: any). Source:
cluster-trace-gpu-v2023/README.md of github.com/alibaba/clusterdata. A column of artist's own is
`mig`, a profile such as `3g.20gb`, which determines `gpu_milli`. Other columns are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from artist.cluster.mig import ALL, NAMES, SLICE_MILLI
from artist.errors import TraceError, shortened
from artist.io.csv_rows import Row, csv_rows
from artist.io.reading import decode, read_bytes
from artist.pods.machine_file import MOST_GPUS, MOST_MILLI

Ints: TypeAlias = npt.NDArray[np.int64]

WHOLE_MILLI = 1000
"""A whole GPU, in thousandths."""

COLUMNS = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
KINDS = "gpu_spec"
MIG = "mig"


class Demand(NamedTuple):
    """What a pod asks for, all of it on one machine.

    `gpu_milli` is the share of each of its `gpus`; only a pod on one GPU may share it. `kinds` are
    the kinds of GPUs that it can use; empty: all. `mig` is the profile of the instance that it asks
    for on a GPU in MIG mode; empty: it needs GPUs that are not in that mode.
    """

    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    kinds: tuple[str, ...] = ()
    mig: str = ""

    @property
    def milli(self) -> int:
        """Thousandths of GPUs, over all of its GPUs."""
        return self.gpus * self.gpu_milli

    @property
    def is_share(self) -> bool:
        """Whether it asks for less than one GPU."""
        return 0 < self.milli < WHOLE_MILLI


class PodList(NamedTuple):
    """A list of pods: pod `i` asks for `demands[which[i]]`."""

    demands: Sequence[Demand]
    which: Ints

    @property
    def milli(self) -> Ints:
        """Thousandths of GPUs that each pod asks for."""
        return np.array([one.milli for one in self.demands], np.int64)[self.which]


def read_pods(path: Path) -> PodList:
    """Read the pods of a file.

    Raises:
        TraceError: the file is not such a table, or a value is out of range; names file and line.
    """
    return pods_of(path, pod_rows(path)[1])


def pod_rows(path: Path) -> tuple[list[str], list[Row]]:
    """The columns and the rows of a file of pods.

    Raises:
        TraceError: the file is not such a table.
    """
    columns, rows = csv_rows(path, decode(path, read_bytes(path)))
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise TraceError(
            f"{path}:1: no column {missing[0]!r}; expected {', '.join(COLUMNS)} and "
            f"optionally {KINDS}"
        )
    return columns, rows


def pods_of(path: Path, rows: Sequence[Row]) -> PodList:
    """The pods in some rows of a file.

    Raises:
        TraceError: a value is out of range, or no pod asks for a GPU.
    """
    number: dict[Demand, int] = {}
    known: dict[tuple[str, ...], int] = {}
    which = []
    for where, row in rows:
        cells = (*(row[name] for name in COLUMNS), row.get(KINDS, ""), row.get(MIG, ""))
        if cells not in known:
            known[cells] = number.setdefault(_demand(where, row), len(number))
        which.append(known[cells])
    if not any(one.gpus for one in number):
        raise TraceError(f"{path}: no pod asks for a GPU; give a list in which some do")
    return PodList(tuple(number), np.array(which, np.int64))


def _demand(where: str, row: dict[str, str]) -> Demand:
    """What the pod in a row asks for."""
    mig = row.get(MIG, "")
    if mig:
        row = row | {"gpu_milli": _milli_of(where, mig, row["gpu_milli"])}
    gpus = _count(where, row, "num_gpu", int(bool(mig)), 1 if mig else MOST_GPUS)
    fewest = {0: 0, 1: 1}.get(gpus, WHOLE_MILLI)
    return Demand(
        cpu_milli=_count(where, row, "cpu_milli", 0, MOST_MILLI),
        memory_mib=_count(where, row, "memory_mib", 0, MOST_MILLI),
        gpus=gpus,
        gpu_milli=_count(where, row, "gpu_milli", fewest, WHOLE_MILLI) if gpus else 0,
        kinds=tuple(filter(None, row.get(KINDS, "").split("|"))) if gpus else (),
        mig=mig,
    )


def _milli_of(where: str, mig: str, text: str) -> str:
    """Thousandths of a GPU that a MIG profile holds; the cell `text` may be empty."""
    if mig not in ALL:
        raise TraceError(f"{where}: mig is {shortened(mig)}, expected one of {', '.join(NAMES)}")
    milli = str(SLICE_MILLI * ALL[mig].memory)
    if text not in ("", milli):
        raise TraceError(
            f"{where}: gpu_milli is {shortened(text)}, expected {milli} or nothing beside {mig}"
        )
    return milli


def _count(where: str, row: dict[str, str], column: str, least: int, most: int) -> int:
    text = row[column]
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and least <= int(text) <= most):
        wanted = f"{least} to {most}" if least < most else f"{least}"
        raise TraceError(f"{where}: {column} is {shortened(text)}, expected {wanted}")
    return int(text)
