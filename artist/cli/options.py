"""Options that several commands share, and the scenario that they describe.

The options of `artist latency` and `artist render` are in `query_options.py`, those of the commands
that read what Slurm recorded in `slurm_options.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli.output import Format, note
from artist.errors import ConfigError, shortened
from artist.units import TIME_UNITS, counted, seconds_of

if TYPE_CHECKING:
    from artist.config import Scenario
    from artist.trace.native.trace import Trace


def _time(option: str) -> Callable[[str], float]:
    """Reads the time that an option gives, `7200` or `2h`, in seconds."""

    def seconds(text: str) -> float:
        from artist.io.reading import as_float

        value = seconds_of(text)
        if value is None:
            value = as_float(text)
        if value != value:  # NaN
            raise ConfigError(
                f"{option} {shortened(text)}: expected seconds, or a time such as 2h "
                f"({', '.join(TIME_UNITS)})"
            )
        return value

    return seconds


FormatOption = Annotated[Format, typer.Option("--format", help="Format of stdout.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", help="Print no progress and no notes; stdout is unchanged.")
]
NoHints = Annotated[bool, typer.Option("--quiet", help="Print no notes; stdout is unchanged.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what --out wrote before.")]
OverwriteFiles = Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")]

# A scenario. Parameters of these types are named as settings of `Scenario`.
ScenarioFile = Annotated[
    Path | None, typer.Argument(metavar="[SCENARIO.yaml]", help="A scenario file.")
]
Racks = Annotated[int | None, typer.Option(help="Racks of the cluster (default 16).")]
MachinesPerRack = Annotated[int | None, typer.Option(help="Machines per rack (default 8).")]
GpusPerMachine = Annotated[int | None, typer.Option(help="GPUs per machine (default 8).")]
ClusterName = Annotated[
    str | None,
    typer.Option(metavar="NAME|FILE", help="Cluster, instead of sizes; see: artist list clusters."),
]
TraceName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="Jobs to run; see: artist list traces (default sensetime-batch-500).",
    ),
]
Arrivals = Annotated[
    str | None, typer.Option(help="When jobs arrive: trace, batch or poisson:JOBS_PER_HOUR.")
]
Jobs = Annotated[int | None, typer.Option(help="Run only the first N jobs.")]
FabricName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="Network and GPU links; see: artist list fabrics (default: dally2025 for "
        "sensetime traces, else a100).",
    ),
]
Backend = Annotated[
    str | None, typer.Option(help="Source of iteration times; see: artist list backends.")
]
CalibrationName = Annotated[
    str | None,
    typer.Option(metavar="auto|none|NAME|FILE", help="Calibrated models (default: the fabric's)."),
]
Contention = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="How jobs share links; see: artist list contention (default none)."
    ),
]
FailuresName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE|none",
        help="What fails; see: artist list failures (default none). FILE.csv is a log: unit, "
        "from, until.",
    ),
]
MeasureFrom = Annotated[
    float | None,
    typer.Option(
        "--measure-from",
        metavar="TIME",
        parser=_time("--measure-from"),
        help="Measure only jobs that arrive, and GPU time, from then on: seconds, or e.g. 2h.",
    ),
]
MeasureUntil = Annotated[
    float | None,
    typer.Option(
        "--measure-until",
        metavar="TIME",
        parser=_time("--measure-until"),
        help="Measure only jobs that arrive, and GPU time, before then.",
    ),
]
DataName = Annotated[
    str | None,
    typer.Option("--data", metavar="FILE", help="The tables that jobs read, and their regions."),
]
Estimates = Annotated[
    str | None,
    typer.Option(
        metavar="exact|limit|factor:F|learned",
        help="Run times that the policies easy and conservative expect.",
    ),
]
Seed = Annotated[int | None, typer.Option(help="Seed of all random draws (default 0).")]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set policy.KEY, system.KEY, fabric.LEVEL.KEY, contention.KEY, checkpoint.KEY, "
        "data.KEY or any setting of a scenario.",
    ),
]

# How the file of a trace is read. The settings of a scenario have the same names.
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="gpus=n_gpus,...|FILE.yaml", help="artist's name of a column=the file's name."
    ),
]
Units = Annotated[
    list[str] | None,
    typer.Option(
        metavar="duration=h,...", help="Units of columns: us, ms, s, min, h, d; arrivals also date."
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        metavar="'ResNet-50*=resnet50',...",
        help="The file's name of a model (* matches any text)=artist's name.",
    ),
]
ModelRule = Annotated[
    str | None,
    typer.Option(metavar="RULE", help="For jobs without a model: uniform, mix, keep or a model."),
]


def scenario_of(parameters: Mapping[str, Any]) -> Scenario:
    """The scenario that the parameters of a command describe.

    `parameters` are all of the command's, by name (`typer.Context.params`). `scenario` is the file
    and `sets` are the assignments of `--set`. A parameter that is named as a setting of `Scenario`
    (`racks`, `trace`, ...) is that setting. Other parameters are ignored.

    Raises:
        ConfigError: unreadable file, unknown key or bad value.
    """
    from artist.config import Scenario

    flags = {name: value for name, value in parameters.items() if name in Scenario.model_fields}
    for name in _ONE_NAME:
        _check_one(name, flags.get(name))
    flags |= dict.fromkeys(("columns", "units", "models", "model_rule")) | given_of(parameters)
    sets = list(parameters["sets"] or [])
    if (estimates := parameters.get("estimates")) is not None:
        sets.append(f"policy.estimates={estimates}")
    return load_scenario(parameters["scenario"], flags, sets)


def check_names(scenario: Scenario, path: Path) -> None:
    """Refuse unknown names and options that a scenario file states.

    Raises:
        ConfigError: names file and line.
    """
    from artist.experiments.experiment import faults
    from artist.io.documents import line_in
    from artist.io.reading import read_text
    from artist.io.safe_yaml import parse_yaml

    _, stated = parse_yaml(read_text(path), str(path))
    for setting, cause in faults(scenario, set()):
        group = f"{setting}_options"
        places: list[tuple[str, ...]] = [
            (group, key) for key in stated.get(group) or () if f"'{key}'" in str(cause)
        ]
        if setting in stated and stated[setting] == getattr(scenario, setting):
            places.append((setting,))
        if places:
            raise ConfigError(f"{path}:{line_in(path, places[0])}: {cause}") from cause


_ONE_NAME = ("policy", "fabric", "cluster", "calibration", "contention", "failures")
"""Options that take one name or file, without a comma."""


def _check_one(name: str, value: object) -> None:
    """Refuse several values where one is meant, and say how they are compared."""
    from artist.io.reading import exists

    if isinstance(value, str) and "," in value and not exists(Path(value)):
        raise ConfigError(
            f"--{name} {shortened(value)}: expected one value{compare_several(name, value)}"
        )


def compare_several(name: str, value: str) -> str:
    """The end of a message about several values of a setting: how to compare them."""
    if name == "policy":
        return f"; artist compare --policies {value} compares several"
    return f"; artist compare --vary {name}={value} compares several"


def load_scenario(path: Path | None, flags: Mapping[str, Any], sets: Sequence[str]) -> Scenario:
    """A scenario of a command line.

    Relative values (`x2`, `+1`) need more imports, which are only loaded if there are any.

    Raises:
        ConfigError: unreadable file, unknown key or bad value; names the flag at fault.
    """
    from artist import settings

    values = (text.partition("=")[2].strip() for text in sets)
    try:
        if not any(value.startswith(("x", "+")) for value in values):
            return settings.load_scenario(path, flags, sets)
        from artist.experiments import relative_values

        return relative_values.load_scenario(path, flags, sets)
    except ConfigError as cause:
        _check_levels(path, flags, sets)
        for name, value in flags.items():
            start = f"scenario: '{name}'"
            if value is not None and str(cause).startswith(start):
                flag = f"--{name.removesuffix('_s').replace('_', '-')}"
                raise ConfigError(str(cause).replace(start, flag, 1)) from cause
        raise


def _check_levels(path: Path | None, flags: Mapping[str, Any], sets: Sequence[str]) -> None:
    """Refuse levels that the fabric lacks; that says more than an error about their value."""
    from artist import settings
    from artist.cluster.fabric_options import level_of
    from artist.run import build_fabric, cluster_of

    rest = [text for text in sets if not text.startswith("fabric.")]
    if len(rest) == len(sets):
        return
    scenario = settings.load_scenario(path, flags, rest)
    fabric, cluster = build_fabric(scenario), cluster_of(scenario)
    for text in sets:
        if text.startswith("fabric."):
            level = text.partition("=")[0].split(".")[1]
            level_of(fabric, level, None if cluster is None else cluster.file.name)


def share_of(name: str, text: str) -> float:
    """The share that an option gives: `2%` or `0.02`.

    Raises:
        ConfigError: not a number.
    """
    from artist.io.reading import as_float

    percent = text.strip().endswith("%")
    value = as_float(text.strip().removesuffix("%"))
    if value != value:  # NaN
        raise ConfigError(f"{name} {shortened(text)}: expected a share, such as 2%")
    return value / 100 if percent else value


def given_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a scenario that these options of a command give.

    Raises:
        ConfigError: a value is not a list of pairs.
    """
    given: dict[str, Any] = {}
    for name in ("columns", "units", "models"):
        texts = parameters.get(name)
        if texts:
            given[name] = _file_or_pairs(texts) if name == "columns" else pairs_of(name, texts)
    if parameters.get("model_rule") is not None:
        given["model_rule"] = parameters["model_rule"]
    return given


def pairs_of(name: str, texts: Sequence[str]) -> dict[str, str]:
    """The pairs `a=b,c=d` of an option that may be repeated.

    A comma separates pairs only if a `=` follows before the next comma. After an `@`, commas belong
    to the settings of a model, as in `VGG=vgg11@gpu=A100,batch=64`.

    Raises:
        ConfigError: not a list of pairs, or a name is given twice.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        for pair in [text] if "@" in text else _pieces(text):
            key, equals, value = (part.strip() for part in pair.partition("="))
            if not key or not equals or not value:
                raise ConfigError(f"--{name} {shortened(text)}: expected pairs, a=b or a=b,c=d")
            if pairs.setdefault(key, value) != value:
                raise ConfigError(f"--{name}: {shortened(key)} is given twice; give it once")
    return pairs


def say_what_was_read(
    trace: Trace,
    scenario: Scenario | None = None,
    *,
    quiet: bool = False,
    said: set[str] | None = None,
) -> None:
    """Report on stderr how the reader changed a trace and what looks wrong in it.

    `scenario` is that of the run, if there is one. Models drawn at random and shifted arrivals are
    reported even if `quiet`: the user did not give these data. Texts in `said` are not repeated.
    """
    said = set() if said is None else said

    def tell(text: str) -> None:
        if text not in said:
            said.add(text)
            note(text)

    if trace.mapped and not quiet:
        tell(f"trace {trace.name}: {'; '.join(trace.mapped)}")
    if trace.shifted:
        tell(f"trace {trace.name}: {trace.shifted}")
    filled = [text for text in trace.filled if text not in trace.drawn]
    if filled and not quiet:
        tell(f"trace {trace.name}: filled in {'; '.join(filled)}")
    if trace.drawn:
        tell(
            f"trace {trace.name}: models are drawn at random: {'; '.join(trace.drawn)}; say which "
            "they are with --models NAME=MODEL or --model-rule MODEL"
        )
    if trace.dropped and not quiet:
        reasons = "; ".join(f"{reason}: {rows}" for reason, rows in trace.dropped.items())
        tell(
            f"trace {trace.name}: dropped {counted(sum(trace.dropped.values()), 'row')} ({reasons})"
        )
    if not quiet:
        from artist.trace.named import is_trace_file
        from artist.trace.stats import warnings

        for sentence in warnings(trace):
            tell(f"warning: {sentence}")
        # Only for files: artist's own traces have the steps that they should have.
        if scenario is not None and is_trace_file(scenario.trace):
            from artist.run import trace_warnings

            for warning in (
                trace_warnings.scaled_communication_of,
                trace_warnings.too_large_for_gpus,
                trace_warnings.too_few_microbatches,
            ):
                if sentence := warning(scenario, trace):
                    tell(f"warning: {sentence}")


def _file_or_pairs(texts: Sequence[str]) -> dict[str, str] | str:
    """The name of a mapping file, or pairs."""
    if len(texts) == 1 and texts[0].endswith((".yaml", ".yml")):
        return texts[0]
    return pairs_of("columns", texts)


def _pieces(text: str) -> list[str]:
    """The text cut at the commas that begin a new pair."""
    pieces: list[str] = []
    begun = ""
    for piece in text.split(","):
        begun = f"{begun},{piece}" if begun else piece
        if "=" in begun:
            pieces.append(begun)
            begun = ""
    return [*pieces, begun] if begun else pieces
