"""`artist latency`: the time of one iteration on one placement, and where it goes; many cases."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artist.cli import options
from artist.cli import query_options as query
from artist.cli.options import OverwriteFiles
from artist.cli.output import Format, note, print_facts, print_text
from artist.cli.query_options import ContentionModel, SweepFormat
from artist.default_fabric import MEASURED_FABRIC
from artist.errors import ConfigError

if TYPE_CHECKING:
    from artist.cluster.fabric import Fabric
    from artist.estimates.calibration import CalibratedModels
    from artist.estimates.query_from_text import Question
    from artist.estimates.shape_queries import CountedAnswer

MOST_LISTED = 4
"""A table names at most this many of the placements that stand for an uneven one."""


def latency(
    model: query.Model = None,
    workload: query.WorkloadFile = None,
    chakra: query.ChakraFolder = None,
    placement: query.Placements = None,
    fabric: query.FabricName = MEASURED_FABRIC,
    calibration: query.CalibrationName = "none",
    topology: query.Topologies = None,
    npus: query.Npus = None,
    bandwidth: query.Bandwidths = None,
    latency_: query.Latencies = None,
    sets: query.FabricSets = None,
    system: query.Systems = None,
    backend: Annotated[
        str, typer.Option(help="Source of iteration times; see: artist list backends.")
    ] = "analytical",
    sweep: Annotated[
        str | None,
        typer.Option(
            metavar="SETTING=A..B",
            help="Vary a setting over a range: fabric.network.latency=1us..100us.",
        ),
    ] = None,
    points: Annotated[int, typer.Option(help="Number of points in the range of --sweep.")] = 21,
    gpus: Annotated[
        str | None,
        typer.Option(
            metavar="A..B", help="Show scaling over 1..64 GPUs (powers of two), or on 1,6,12."
        ),
    ] = None,
    goodput: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="With --gpus: also show efficiency and goodput. On one GPU, batches above "
            "the submitted one take several passes.",
        ),
    ] = None,
    gpu_kind: Annotated[
        str | None, typer.Option(help="With --goodput: use its parameters for this kind of GPU.")
    ] = None,
    progress: Annotated[
        float, typer.Option(help="Share of iterations completed, for the noise scale of --goodput.")
    ] = 0.0,
    plot: Annotated[
        Path | None, typer.Option(help="Draw --sweep or --gpus: FILE.svg or FILE.png.")
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL:PLACEMENT[@LEAVES]",
            help="Co-located job: show how much the job loses to it.",
        ),
    ] = None,
    contention: Annotated[
        ContentionModel, typer.Option(help="How jobs of --beside share links.")
    ] = ContentionModel.PHASE,
    offset: Annotated[
        str | None, typer.Option(help="Delay of each --beside after the one before: 20ms.")
    ] = None,
    racks: options.Racks = None,
    machines_per_rack: options.MachinesPerRack = None,
    gpus_per_machine: options.GpusPerMachine = None,
    cases: Annotated[Path | None, typer.Option(help="CSV file with many cases.")] = None,
    workloads: Annotated[
        Path | None, typer.Option(help="Folder with the workloads of --cases.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="CSV file for the results of --cases.")] = None,
    format_: Annotated[SweepFormat, typer.Option("--format", help="Format of stdout.")] = (
        SweepFormat.TABLE
    ),
    overwrite: OverwriteFiles = False,
) -> None:
    """Time of one training iteration, and where it goes."""
    from artist.cli import questions
    from artist.cli.co_located_jobs import CoLocatedJobs, answer_beside
    from artist.cli.gpu_scaling import GpuScaling
    from artist.cli.latency_sweep import NetworkSweep
    from artist.cli.split_text import print_split, split_facts
    from artist.cluster.placement_shape import gpus_of, parse_signature
    from artist.estimates.divided.with_split import iteration_split
    from artist.run import machine_gpus, open_backend

    sizes = {
        "racks": racks,
        "machines_per_rack": machines_per_rack,
        "gpus_per_machine": gpus_per_machine,
    }
    neighbours = CoLocatedJobs(beside or [], contention, offset, sizes)
    neighbours.check(
        placed=bool(placement), elsewhere=bool(cases or sweep) or len(placement or []) != 1
    )
    if gpus is not None and (placement or sweep or cases or topology):
        raise ConfigError(
            f"--gpus {gpus} chooses placements itself; leave out other options that set them"
        )
    if goodput is not None and gpus is None:
        raise ConfigError("--goodput needs --gpus FROM..TO")
    if gpu_kind is not None and goodput is None:
        raise ConfigError("--gpu-kind needs --goodput FILE")
    if cases is not None:
        _answer_cases(cases, workloads, out, overwrite=overwrite)
        return
    if chakra is not None and workload is not None:
        raise ConfigError("give one of --model NAME, --workload FILE and --chakra DIR")
    if chakra is not None and not chakra.is_dir():
        raise ConfigError(f"--chakra {chakra}: no such folder; it holds one NAME.GPU.et per GPU")
    workload = workload if chakra is None else chakra
    placements = placement or []
    one = placements[0] if placements else None
    placed = one is not None or gpus is not None
    on_fabric, changes = questions.fabric_of(fabric, sets, placed=placed)
    models = questions.models_of(workload, on_fabric, calibration)
    chosen = NetworkSweep(sweep, points, plot, format_, overwrite)
    if gpus is None:
        chosen.check(len(placements))
    if on_fabric is not None and (sweep is not None or gpus is not None or neighbours.texts):
        machine = machine_gpus(on_fabric, gpus_per_machine)
        question = questions.PlacedQuestion(
            model, workload, placements, on_fabric, machine, changes, models, system or [], backend
        )
        if gpus is not None:
            GpuScaling(
                gpus, machines_per_rack, goodput, gpu_kind, progress, plot, format_, overwrite
            ).run(question)
        elif sweep is not None:
            chosen.run(question)
        else:
            answer_beside(question, neighbours, Format(format_))
            _say_calibration(format_, model, on_fabric, changes, models, system or [])
        return
    columns = {"topology": topology, "npus": npus, "bandwidth": bandwidth, "latency": latency_}
    asked = questions.query_of(
        model, workload, one, on_fabric, columns, system or [], models, gpus_per_machine
    )
    started = time.perf_counter()
    opened = open_backend(backend)
    answer = questions.answer_of(asked, opened, model, one, on_fabric)
    estimate, counted = answer.estimate, asked.asked[answer.index]
    if model is not None:
        estimate = models.complete(model, counted.query, estimate)
    split = iteration_split(opened, counted.query, estimate)
    facts = {
        "finish_cycles": estimate.finish_ns,
        "exposed_comm_cycles": estimate.exposed_comm_ns,
        "compute_cycles": estimate.compute_ns,
        "constant_share": getattr(estimate, "constant_share", 0.0),
        "comm_ratio": estimate.comm_ratio,
        "iteration_ms": split.iteration_ns / 1e6,
        **(split_facts(split) if format_ is SweepFormat.JSON else {}),
        "calibration": models.name,
        **({"fabric_changes": changes} if changes else {}),
        "source": estimate.source,
        "signature": _with_order(asked.signature, estimate.order),
        "asked": _asked_placements(asked, answer, Format(format_)),
        "fastest" if asked.fastest and len(asked.asked) > 1 else "slowest": counted.signature,
        "wall_s": time.perf_counter() - started,
    }
    title = f"{counted.query.workload.name}, one iteration (1 cycle = 1 ns)"
    print_facts(title, facts, Format(format_))
    if format_ is SweepFormat.TABLE:
        print_split(split, estimate.source)
        if on_fabric is not None and one is not None:
            shape = parse_signature(one.partition("@")[0], on_fabric.level_names)
            for told in (
                questions.spread_of_experts(counted.query.workload, gpus_of(shape)),
                questions.trained_as_published(model, gpus_of(shape)),
                questions.beyond_memory(model, gpus_of(shape), models),
                questions.too_few_microbatches(model),
            ):
                if told:
                    print_text(told)
    _say_calibration(format_, model, on_fabric, changes, models, system or [])


def _asked_placements(asked: Question, answer: CountedAnswer, format_: Format) -> list[str] | str:
    """The placements that ASTRA-sim answered; in a table only their number if there are many."""
    answered = [
        labelled.signature
        for index, labelled in enumerate(asked.asked)
        if index not in answer.refused
    ]
    if format_ is Format.JSON or len(answered) <= MOST_LISTED:
        return answered
    return f"{len(answered)} regular placements"


def _with_order(signature: str, order: str) -> str:
    """A signature with the order of ranks that was found, where none was given."""
    return f"{signature}@{order}" if order and "@" not in signature else signature


def _say_calibration(
    format_: SweepFormat,
    model: str | None,
    fabric: Fabric | None,
    changes: str,
    models: CalibratedModels,
    system: list[str],
) -> None:
    """Print below a table whether the answer is calibrated as runs are, and whether that fits."""
    from artist.cli import questions
    from artist.cli.remarks import fitted_before

    if format_ is SweepFormat.TABLE:
        for sentence in (
            fitted_before(models.calibration, fabric, changes),
            *questions.about_models(model, models, fabric, system),
        ):
            if sentence:
                print_text(sentence)


def _answer_cases(
    cases: Path, workloads: Path | None, out: Path | None, *, overwrite: bool
) -> None:
    """Answer a table of cases, and write the results."""

    from artist.astra.files.case_table import run_cases
    from artist.io.writing import check_new_file

    if workloads is None or out is None:
        raise ConfigError("--cases needs --workloads DIR and --out RESULTS.csv")
    check_new_file(out, "--out", overwrite=overwrite)
    run_cases(cases, workloads, out)
    note(f"wrote {out}")
