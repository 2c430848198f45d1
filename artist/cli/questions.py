"""The questions of `artist latency` and `artist render`, and caveats of the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artist.astra.files.chakra_folder import chakra_workload
from artist.calibrate.asked_otherwise import asked_otherwise, lacking_sentence
from artist.cli.options import load_scenario
from artist.cluster.fabric import Fabric
from artist.cluster.fabric_options import changes_text
from artist.cluster.placement_shape import gpus_of, parse_signature
from artist.errors import ConfigError, DivisionError
from artist.estimates.calibration import (
    AUTO,
    NONE,
    CalibratedModels,
    Calibration,
    choose_calibration,
    load_calibration,
)
from artist.estimates.query import LatencyBackend
from artist.estimates.query_from_text import (
    Question,
    asked_as,
    on_dimensions,
    on_placement,
    parse_system,
)
from artist.estimates.shape_queries import CountedAnswer
from artist.run import build_fabric, machine_gpus, open_backend
from artist.run.training_memory import does_not_fit
from artist.run.waiting_stages import waiting_stages
from artist.trace.native.divided_models import is_as_published, published_model
from artist.units import counted
from artist.workload.astra_text import read_text
from artist.workload.divide import axes_of
from artist.workload.division.spread import spread_text
from artist.workload.gpus import assumed_in_words
from artist.workload.layers import Workload
from artist.workload.models import canonical, canonical_if_known, is_graph, settings


@dataclass(frozen=True, slots=True)
class PlacedQuestion:
    """A question about placements on a fabric: options of `artist latency`."""

    model: str | None
    workload: Path | None
    placements: Sequence[str]
    fabric: Fabric
    gpus_per_machine: int
    changes: str
    """The fabric's changes by `--set`, in words."""
    models: CalibratedModels
    system: Sequence[str]
    backend: str


def fabric_of(name: str, sets: Sequence[str] | None, *, placed: bool) -> tuple[Fabric | None, str]:
    """The fabric of a placement with the changes of `--set`, and these changes in words.

    The fabric is None unless `placed`: bare dimensions have none.

    Raises:
        ConfigError: unknown fabric, level or key, or a change of anything else.
    """
    for text in sets or ():
        if not placed:
            raise ConfigError(f"--set {text}: bare dimensions have no fabric; give --placement")
        if not text.startswith("fabric."):
            raise ConfigError(
                f"--set {text}: here it changes a level of the fabric, "
                "fabric.LEVEL.KEY=VALUE; --system KEY=VALUE changes ASTRA-sim's settings"
            )
    if not placed:
        return None, ""
    scenario = load_scenario(None, {"fabric": name}, sets or ())
    return build_fabric(scenario), changes_text(scenario.fabric_options)


def uncalibrated(model: str | None, calibration: str, fabric: Fabric | None) -> str:
    """A sentence if runs on the fabric are calibrated but this answer is not; else empty."""
    if model is None or calibration != "none" or fabric is None or fabric.calibration is None:
        return ""
    return (
        f"This is without a calibration. Runs on {fabric.name} take {fabric.calibration}; "
        "--calibration auto answers as they do."
    )


def about_models(
    model: str | None, models: CalibratedModels, fabric: Fabric | None, system: Sequence[str]
) -> tuple[str, ...]:
    """Sentences on how far to trust the compute times of an answer."""
    told = (
        uncalibrated(model, models.name, fabric),
        assumed_gpu(model, models, fabric),
        *_beyond_its_fit(model, models.calibration, fabric, system),
    )
    return tuple(filter(None, told))


def beyond_memory(model: str | None, gpus: int, models: CalibratedModels) -> str:
    """A sentence if the model does not fit into the memory of the GPUs; else empty."""
    if model is None or is_graph(model):
        return ""
    told = does_not_fit(model, gpus, (models.gpu,))
    return told and f"{told[0].upper()}{told[1:]}."


def too_few_microbatches(model: str | None) -> str:
    """A sentence if the stages of a model's pipeline wait for most of the time; else empty."""
    told = "" if model is None else waiting_stages(model)
    return told and f"The {told}."


def spread_of_experts(workload: Workload, gpus: int) -> str:
    """A sentence on how the experts of a layer share GPUs, if the model's name does not say."""
    told = spread_text(axes_of(workload), gpus)
    return told and f"On {counted(gpus, 'GPU')}, {told}."


def run_as(model: str | None, gpus: int) -> str | None:
    """The name of this model with published axes, if runs add them; None if it stays as it is."""
    if model is None or is_graph(model):
        return None
    name = published_model(model, gpus)
    if name is None or canonical_if_known(name) == canonical_if_known(model):
        return None
    return name


def answer_of(
    asked: Question,
    backend: LatencyBackend,
    model: str | None,
    placement: str | None,
    fabric: Fabric | None,
) -> CountedAnswer:
    """The answer to a question.

    Raises:
        DivisionError: the GPUs do not divide; the message names the model that runs would ask for.
    """
    try:
        return asked.answer(backend)
    except DivisionError as cause:
        if placement is None or fabric is None:
            raise
        shape = parse_signature(placement.partition("@")[0], fabric.level_names)
        name = run_as(model, gpus_of(shape))
        if name is None:
            raise
        raise DivisionError(f"{cause}; runs give it --model {name}") from cause


def trained_as_published(model: str | None, gpus: int) -> str:
    """A sentence if runs give jobs of this model published axes that its name lacks."""
    name = run_as(model, gpus)
    if name is None:
        return ""
    return (
        f"In runs, jobs of {model} on {counted(gpus, 'GPU')} have "
        f"{'published axes' if is_as_published(name) else 'smaller axes than published'}; ask "
        f"about them with --model {name}"
    )


def _beyond_its_fit(
    model: str | None, calibration: Calibration | None, fabric: Fabric | None, system: Sequence[str]
) -> tuple[str, ...]:
    """Sentences if the calibration was fitted with other settings, or without this model."""
    if model is None or calibration is None or fabric is None:
        return ()
    asked, backend = asked_as(fabric, parse_system([*system])), open_backend("analytical")
    lacks = [*calibration.lacks([canonical(model)])]
    return (
        asked_otherwise(calibration, asked, backend),
        lacking_sentence(lacks, calibration, asked, backend) if lacks else "",
    )


def assumed_gpu(model: str | None, models: CalibratedModels, fabric: Fabric | None) -> str:
    """A sentence if the compute times are those of another GPU than the fabric's; else empty.

    Also empty if the name says `gpu=`, or if a calibration scales the compute times.
    """
    kind = fabric.machine.kind if fabric is not None and fabric.machine is not None else None
    if model is None or kind is None or settings(model).gpu:
        return ""
    if models.scales(model):
        return ""
    words = assumed_in_words({kind})
    return f"{words[0].upper()}{words[1:]}." if words else ""


def models_of(workload: Path | None, fabric: Fabric | None, calibration: str) -> CalibratedModels:
    """The models with the calibration of `--calibration`; `auto` takes that of the fabric.

    `fabric` is None if there is no placement.

    Raises:
        ConfigError: unknown name, bad file, or a calibration for a workload from a file.
    """
    if workload is not None and calibration not in (AUTO, NONE):
        raise ConfigError(
            f"--calibration {calibration}: scales models of the catalogue, but --workload FILE has "
            "its own compute times; give --model"
        )
    if workload is not None or (fabric is None and calibration == AUTO):
        return CalibratedModels(None)
    if fabric is None:
        return CalibratedModels(load_calibration(calibration))
    return CalibratedModels.on(fabric, choose_calibration(calibration, fabric))


def query_of(
    model: str | None,
    workload: Path | None,
    placement: str | None,
    fabric: Fabric | None,
    columns: dict[str, Any],
    system: list[str],
    models: CalibratedModels,
    gpus_per_machine: int | None,
) -> Question:
    """The question that the options ask: a workload on a placement or on bare dimensions.

    `columns` are the options of bare dimensions: `topology`, `npus`, `bandwidth`, `latency`.
    `models` comes from `models_of`, `fabric` from `fabric_of`.

    Raises:
        ConfigError: options that exclude each other, or a bad value.
    """
    if (placement is None) == all(value is None for value in columns.values()):
        raise ConfigError(
            "give either --placement, e.g. 8,8/2, or --topology, --npus, --bandwidth, --latency"
        )
    chosen = workload_of(model, workload, models)
    changes = parse_system(system)
    if placement is not None and fabric is not None:
        machine = machine_gpus(fabric, gpus_per_machine)
        return on_placement(chosen, placement, fabric, changes, machine)
    return on_dimensions(chosen, columns, changes)


def workload_of(model: str | None, workload: Path | None, models: CalibratedModels) -> Workload:
    """The workload of `--workload FILE`, of `--chakra DIR` or of `--model NAME`.

    Raises:
        ConfigError: both or none are given, or a bad value.
        TraceError: a bad file.
    """
    if (model is None) == (workload is None):
        raise ConfigError("give one of --model NAME, --workload FILE and --chakra DIR")
    if workload is None:
        return models.workload(model or "")
    if workload.is_dir():
        return chakra_workload(workload)
    return read_text(workload)
