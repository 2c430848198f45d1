"""`artist trace synth`: generates traces."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artist.cli.output import note
from artist.errors import ConfigError
from artist.trace.native.choices import ArrivalKind, Shape
from artist.units import counted

if TYPE_CHECKING:
    from artist.workload.job import Job

Seed = Annotated[int, typer.Option(min=0, help="Seed of all random draws.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file of --out.")]


def synth(
    jobs: Annotated[int, typer.Option(help="Number of jobs.")],
    gpus: Annotated[int, typer.Option(help="GPUs of the cluster, to which the load refers.")],
    out: Annotated[Path, typer.Option(help="File to write, native CSV (or .parquet).")],
    load: Annotated[
        float | None, typer.Option(help="For poisson: GPU-seconds demanded per GPU-second.")
    ] = None,
    shape: Annotated[
        Shape,
        typer.Option(
            help="Kind of jobs. sensetime: as in the default trace; cassini, mast-synth, "
            "warehouse: as in those papers; llm: mostly large language models."
        ),
    ] = Shape.SENSETIME,
    arrivals: Annotated[
        ArrivalKind, typer.Option(help="dynamic and snapshot only with --shape cassini.")
    ] = ArrivalKind.POISSON,
    divided: Annotated[
        bool, typer.Option("--divided", help="For --shape cassini: divide GPT models among GPUs.")
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="With --gpu-kinds: no job requires more GPUs of a kind than it has. For "
            "mast-synth: its regions hold the tables.",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="For mast-synth: also write the tables, for --data of runs.")
    ] = None,
    tables: Annotated[
        int | None,
        typer.Option(help="For warehouse: number of tables (default: a quarter of the jobs)."),
    ] = None,
    regions: Annotated[
        int | None, typer.Option(help="For warehouse: number of regions (default 12).")
    ] = None,
    elastic: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Share of jobs that may run on 1 GPU up to twice the drawn number."
        ),
    ] = None,
    gpu_kinds: Annotated[
        str | None,
        typer.Option(metavar="KIND=SHARE,...", help="Shares of jobs that require a kind of GPU."),
    ] = None,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Generate a trace of random jobs, with Poisson arrivals or all at once."""
    from artist.io.writing import check_new_file
    from artist.trace.native.writer import write_native
    from artist.trace.synthetic.cassini import cassini
    from artist.trace.synthetic.generate import synth_jobs

    if shape in (Shape.WAREHOUSE, Shape.MAST) and (elastic, gpu_kinds) != (None, None):
        raise ConfigError(
            f"--shape {shape} takes neither --elastic nor --gpu-kinds; leave them out"
        )
    add = partial(
        _with_traits, elastic=elastic, kinds=gpu_kinds, cluster=cluster, gpus=gpus, seed=seed
    )
    of_cassini = arrivals is not ArrivalKind.POISSON or divided
    if shape is Shape.WAREHOUSE:
        if of_cassini or (load, cluster, data) != (None, None, None):
            raise ConfigError(
                "--shape warehouse takes --jobs, --gpus, --tables, --regions and --seed; "
                "leave out other options"
            )
        _write_warehouse(jobs, gpus, seed, out, tables, regions, overwrite=overwrite)
        return
    if tables is not None or regions is not None:
        raise ConfigError("--tables and --regions belong to --shape warehouse; leave them out")
    check_new_file(out, "--out", overwrite=overwrite)
    for_kinds = data is None and gpu_kinds is not None
    for_mast = shape is Shape.MAST and data is not None and cluster is not None
    if (data is not None or cluster is not None) and not (for_kinds or for_mast):
        raise ConfigError(
            "--data and --cluster go together, with --shape mast-synth; otherwise --cluster "
            "needs --gpu-kinds"
        )
    if shape is Shape.CASSINI:
        made = cassini(arrivals, jobs, gpus, seed, load, divided=divided)
        write_native(add(iter(made.jobs)), out)
    elif of_cassini:
        raise ConfigError(f"--arrivals and --divided belong to --shape cassini, not {shape}")
    elif load is None:
        raise ConfigError(f"--shape {shape} has Poisson arrivals at a load; give --load")
    elif shape is Shape.LLM:
        from artist.trace.synthetic.llm import llm_jobs

        write_native(add(llm_jobs(jobs, load, gpus, seed).jobs), out)
    elif shape is Shape.MAST:
        _write_mast(jobs, load, gpus, seed, out, data, cluster, overwrite=overwrite)
    else:
        write_native(add(synth_jobs(jobs, load, gpus, seed)), out)
    note(f"wrote {counted(jobs, 'job')} to {out}")


def _with_traits(
    jobs: Iterable[Job],
    *,
    elastic: float | None,
    kinds: str | None,
    cluster: str | None,
    gpus: int,
    seed: int,
) -> Iterable[Job]:
    """The jobs as drawn, or with what `--elastic` and `--gpu-kinds` add."""
    if elastic is None and kinds is None:
        return jobs
    from artist.trace.synthetic.generate import shares_of_kinds, with_traits

    shares, there = {} if kinds is None else shares_of_kinds(kinds), None
    if cluster is not None:
        from artist.cluster.cluster_file import load_cluster
        from artist.cluster.tree import gpus_by_kind

        loaded = load_cluster(cluster)
        levels = (*reversed(loaded.file.levels), "network")
        there = gpus_by_kind(loaded.tree(levels, None))
    made = with_traits(
        jobs, elastic=elastic or 0.0, kinds=shares, gpus=gpus, seed=seed, there=there
    )
    return tuple(made)


def _write_warehouse(
    jobs: int,
    gpus: int,
    seed: int,
    out: Path,
    tables: int | None,
    regions: int | None,
    *,
    overwrite: bool,
) -> None:
    """Write a warehouse, a folder."""
    from artist.io.writing import check_folder
    from artist.warehouse.files import WAREHOUSE, write_warehouse
    from artist.warehouse.synthetic import synth_warehouse

    check_folder(out, WAREHOUSE.what, WAREHOUSE.foreign, overwrite=overwrite)
    made = synth_warehouse(jobs, gpus, seed, 12 if regions is None else regions, tables)
    write_warehouse(made, out, overwrite=overwrite)
    written = counted(len(made["tables"]["table"]), "table")
    note(f"wrote {written} and {counted(jobs, 'job')} to {out}")


def _write_mast(
    jobs: int,
    load: float,
    gpus: int,
    seed: int,
    out: Path,
    data: Path | None,
    cluster: str | None,
    *,
    overwrite: bool,
) -> None:
    """Write a workload like MAST's, and its tables if they are asked for."""
    from artist.cluster.cluster_file import load_cluster
    from artist.io.writing import check_new_file, write_whole
    from artist.trace.native.writer import write_native
    from artist.trace.synthetic.mast import data_file, mast_synth

    if data is not None:
        check_new_file(data, "--data", overwrite=overwrite)
    workload = mast_synth(jobs, load, gpus, seed)
    if data is not None and cluster is not None:
        write_whole(data, data_file(workload, load_cluster(cluster)))
        note(f"wrote {counted(len(workload.partitions), 'partition')} to {data}")
    write_native(workload.trace.jobs, out)
