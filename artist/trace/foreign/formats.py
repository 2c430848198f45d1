"""The table of foreign formats: how each is recognised and read, and where it is described.

A format is one row of `FOREIGN_FORMATS` and one file with its columns and its reader. A file is
recognised by the columns in its header. If it has no header, it is recognised by its first line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from artist.trace.foreign import (
    gavel,
    helios,
    openb,
    pai,
    philly,
    sacct,
    sia,
    squeue,
    swf,
    tiresias,
)
from artist.trace.foreign.rows import Reader, by_row


class Layout(NamedTuple):
    """The columns of a file without a header. `delimiter` None means any white space.

    `fits` checks the cells of the first line. It is called only if their number is right.
    """

    columns: tuple[str, ...]
    delimiter: str | None
    fits: Callable[[list[str]], bool]


@dataclass(frozen=True, slots=True)
class ForeignFormat:
    """One foreign format.

    - `required`: the columns by which it is recognised, unless the file has one of `unless`.
    - `optional`: as in `OwnFormat`; no foreign format has any.
    - `layouts`: the columns of files without a header; empty if every file has one.
    - `dated`: times are dates or have an arbitrary zero, so arrivals count from the first job.
    - `run_time`: how run times are filled in; empty if the format states them.
    """

    id: str
    title: str
    source: str
    required: tuple[str, ...]
    read: Reader
    optional: tuple[str, ...] = ()
    unless: frozenset[str] = frozenset()
    layouts: tuple[Layout, ...] = ()
    dated: bool = False
    run_time: str = ""


FOREIGN_FORMATS = (
    ForeignFormat(
        id="helios",
        title="SenseTime Helios, cluster_log.csv",
        source="https://github.com/S-Lab-System-Group/HeliosData",
        required=helios.COLUMNS,
        read=by_row(helios.job),
        unless=frozenset({"total_iterations"}),  # Dally's workloads kept Helios' columns
        dated=True,
    ),
    ForeignFormat(
        id="philly",
        title="Microsoft Philly, cluster_job_log (JSON)",
        source="https://github.com/msr-fiddle/philly-traces",
        required=philly.COLUMNS,
        read=by_row(philly.job),
        dated=True,
    ),
    ForeignFormat(
        id="pai",
        title="Alibaba PAI 2020, pai_task_table.csv",
        source="https://github.com/alibaba/clusterdata (cluster-trace-gpu-v2020)",
        required=pai.REQUIRED,
        read=pai.read,
        layouts=(Layout(pai.COLUMNS, ",", pai.fits),),
        dated=True,
    ),
    ForeignFormat(
        id="openb",
        title="Alibaba openb 2023, openb_pod_list_*.csv",
        source="https://github.com/alibaba/clusterdata (cluster-trace-gpu-v2023)",
        required=openb.COLUMNS,
        read=by_row(openb.job),
        dated=True,
    ),
    ForeignFormat(
        id="sia",
        title="Pollux and Sia, workload CSV",
        source="https://github.com/siasosp23/artifacts, https://github.com/petuum/adaptdl",
        required=sia.COLUMNS,
        read=sia.read,
        run_time="log-uniform in its application's range of GPU-hours, seed {seed}",
    ),
    ForeignFormat(
        id="gavel",
        title="Gavel, tab-separated .trace",
        source="https://github.com/stanford-futuredata/gavel",
        required=gavel.REQUIRED,
        read=by_row(gavel.job),
        layouts=tuple(Layout(columns, "\t", gavel.fits) for columns in gavel.LAYOUTS),
        run_time="its steps at Gavel's V100 speeds",
    ),
    ForeignFormat(
        id="shockwave",
        title="Shockwave, tab-separated .trace",
        source="https://github.com/uw-mad-dash/shockwave",
        required=gavel.SHOCKWAVE_COLUMNS,
        read=by_row(gavel.shockwave_job),
        layouts=(Layout(gavel.SHOCKWAVE_COLUMNS, "\t", gavel.fits),),
    ),
    ForeignFormat(
        id="tiresias",
        title="Tiresias simulator, job CSV",
        source="https://github.com/SymbioticLab/Tiresias",
        required=tiresias.COLUMNS,
        read=by_row(tiresias.job),
    ),
    ForeignFormat(
        id="sacct",
        title="Slurm, sacct -a -P",
        source="https://slurm.schedmd.com/sacct.html",
        required=sacct.COLUMNS,
        read=sacct.read,
        dated=True,
    ),
    ForeignFormat(
        id="squeue",
        title="Slurm, squeue -a -r -o %all",
        source="https://slurm.schedmd.com/squeue.html",
        required=squeue.COLUMNS,
        read=squeue.read,
        run_time="what is left of its time limit: the most that it can take",
    ),
    ForeignFormat(
        id="swf",
        title="Standard Workload Format 2.2",
        source="https://www.cs.huji.ac.il/labs/parallel/workload/swf.html",
        required=swf.COLUMNS,
        read=by_row(swf.job),
        layouts=(Layout(swf.COLUMNS, None, swf.fits),),
    ),
)
