"""The foreign formats: how each is recognised, read, and where it is described.

One row a format. A file is recognised by the columns of its header or, where it
has none, by the shape of its first line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from artist.trace.foreign import gavel, helios, openb, pai, philly, sia, swf, tiresias
from artist.trace.foreign.records import Reader


class Layout(NamedTuple):
    """Columns of a file without a header. `delimiter` None means any white space.

    `fits` looks at the cells of the first line, of which there are as many as columns.
    """

    columns: tuple[str, ...]
    delimiter: str | None
    fits: Callable[[list[str]], bool]


@dataclass(frozen=True, slots=True)
class External:
    """One foreign format.

    `required` columns recognise it, unless one of `unless` is there; `run_time` is
    the rule where the format has none; `dated` times count from the first arrival.
    """

    id: str
    title: str
    source: str
    required: tuple[str, ...]
    read: Reader
    unless: frozenset[str] = frozenset()
    layouts: tuple[Layout, ...] = ()
    dated: bool = False
    run_time: str = ""


EXTERNALS = (
    External(
        id="helios",
        title="SenseTime Helios, cluster_log.csv",
        source="https://github.com/S-Lab-System-Group/HeliosData",
        required=helios.COLUMNS,
        read=helios.read,
        unless=frozenset({"total_iterations"}),  # Dally's workloads kept Helios' columns
        dated=True,
    ),
    External(
        id="philly",
        title="Microsoft Philly, cluster_job_log (JSON)",
        source="https://github.com/msr-fiddle/philly-traces",
        required=philly.COLUMNS,
        read=philly.read,
        dated=True,
    ),
    External(
        id="pai",
        title="Alibaba PAI 2020, pai_task_table.csv",
        source="https://github.com/alibaba/clusterdata (cluster-trace-gpu-v2020)",
        required=pai.REQUIRED,
        read=pai.read,
        layouts=(Layout(pai.COLUMNS, ",", pai.fits),),
        dated=True,
    ),
    External(
        id="openb",
        title="Alibaba openb 2023, openb_pod_list_*.csv",
        source="https://github.com/alibaba/clusterdata (cluster-trace-gpu-v2023)",
        required=openb.COLUMNS,
        read=openb.read,
        dated=True,
    ),
    External(
        id="sia",
        title="Pollux and Sia, workload CSV",
        source="https://github.com/siasosp23/artifacts, https://github.com/petuum/adaptdl",
        required=sia.COLUMNS,
        read=sia.read,
        run_time="log-uniform in its application's range of GPU-hours, seed {seed}",
    ),
    External(
        id="gavel",
        title="Gavel, tab-separated .trace",
        source="https://github.com/stanford-futuredata/gavel",
        required=gavel.REQUIRED,
        read=gavel.read,
        layouts=tuple(Layout(columns, "\t", gavel.fits) for columns in gavel.LAYOUTS),
        run_time="its steps at Gavel's V100 speeds",
    ),
    External(
        id="shockwave",
        title="Shockwave, tab-separated .trace",
        source="https://github.com/uw-mad-dash/shockwave",
        required=gavel.SHOCKWAVE,
        read=gavel.read_shockwave,
        layouts=(Layout(gavel.SHOCKWAVE, "\t", gavel.fits),),
    ),
    External(
        id="tiresias",
        title="Tiresias simulator, job CSV",
        source="https://github.com/SymbioticLab/Tiresias",
        required=tiresias.COLUMNS,
        read=tiresias.read,
    ),
    External(
        id="swf",
        title="Standard Workload Format 2.2",
        source="https://www.cs.huji.ac.il/labs/parallel/workload/swf.html",
        required=swf.COLUMNS,
        read=swf.read,
        layouts=(Layout(swf.COLUMNS, None, swf.fits),),
    ),
)
