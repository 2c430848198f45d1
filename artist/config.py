"""The scenario: every setting that decides a run's result, checked once when it is read.

A setting has a default, which the scenario's file, flags and `--set` override (`settings.py`).
Experiments (grids of scenarios) are in `artist/experiments/experiment.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from artist.cluster.fabric_options import LevelOptions, normal_form
from artist.default_fabric import AUTO, default_fabric
from artist.errors import ConfigError, shortened
from artist.failures.checkpoints import CheckpointOptions
from artist.io.documents import Document, Duration, NonNegative, Positive, explain
from artist.trace.first_start import FirstStart
from artist.workload.division.job_parallelism import JobParallelism
from artist.workload.tenants import Tenant

ARRIVALS = re.compile(r"trace|batch|poisson:(\d+(\.\d+)?([eE][+-]?\d+)?)", re.ASCII)

SIZES = ("racks", "machines_per_rack", "gpus_per_machine")
"""The settings that describe a regular cluster. `tree` or `cluster` stands in their place."""

ABOUT_THE_TRACE = ("columns", "units", "models", "model_rule")
"""The settings that say how to read a trace's file (`artist.trace.native.mapping`)."""

UNUSED = (
    *(*ABOUT_THE_TRACE, "tenants", "checkpoint", "cluster", "data", "data_options", "speeds"),
    "prices",
    *("goodput", "measure_from_s", "measure_until_s", "fabric_options", "contention", "trained_as"),
    *("contention_options", "failures", "parallelism", "interference", "first_start_s"),
    "communication",
)
"""Settings that a dump leaves out where they have their default: then they say nothing."""

Size = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


class _ExplainedErrors(type(Document)):  # type: ignore[misc]  # pydantic does not export it
    """Makes `Scenario(racks=0)` in Python fail as `--racks 0` does: with a `ConfigError`."""

    def __call__(cls, *args: Any, **settings: Any) -> Any:
        try:
            return super().__call__(*args, **settings)
        except ValidationError as cause:
            raise ConfigError(f"scenario: {explain(cause, Scenario)}") from cause


# Type checkers derive the constructor's arguments from the fields, but not through this metaclass.
if TYPE_CHECKING:
    _Explained = Document
else:

    class _Explained(Document, metaclass=_ExplainedErrors):
        pass


class Scenario(_Explained):
    """Everything that decides a run's result. Same scenario and version, same bytes.

    Except `wall_s` in the summary, and `command` and `volatile` in the manifest.
    """

    # Dally, section V-B: machines of 8 GPUs, 8 machines per rack, up to 16 racks.
    racks: Size = Field(default=16, description="racks of the cluster")
    machines_per_rack: Size = Field(default=8, description="machines in a rack")
    gpus_per_machine: Size = Field(default=8, description="GPUs in a machine")
    tree: list[Any] | None = Field(
        default=None, description="GPU counts of another cluster: nested lists, outermost first"
    )
    cluster: str | None = Field(
        default=None,
        description="a cluster file instead: a name of `artist list clusters`, or a file",
    )
    policy: str = Field(
        default="dally", description="a policy of `artist list policies`, or FILE.py:CLASS"
    )
    policy_options: dict[str, Any] = Field(
        default_factory=dict, description="options of the policy (--set policy.KEY=VALUE)"
    )
    trace: str = Field(default="sensetime-batch-500", description="a built-in trace or a file")
    columns: dict[str, str] | str | None = Field(
        default=None,
        description="the trace file's names of columns (gpus: n_gpus), or a mapping file",
    )
    units: dict[str, str] | None = Field(
        default=None, description="units of the trace's times that are not seconds (duration: h)"
    )
    models: dict[str, str] | None = Field(
        default=None, description="artist's models for names in the trace (ResNet-18: resnet18)"
    )
    model_rule: str | None = Field(
        default=None,
        description="what to do with jobs of unknown models: uniform, mix, keep or a model",
    )
    trained_as: str | None = Field(
        default=None,
        description="settings that the names of models leave open: gpu=h100,precision=bf16",
    )
    arrivals: str = Field(default="trace", description="trace, batch or poisson:JOBS_PER_HOUR")
    jobs: Size | None = Field(default=None, description="only the first N jobs")
    fabric: str = Field(
        default_factory=default_fabric,
        description="a fabric of `artist list fabrics`; auto, the default, is dally2025 for the "
        "built-in sensetime traces and a100, which was measured, for all others",
    )
    fabric_options: Annotated[dict[str, LevelOptions], AfterValidator(normal_form)] = Field(
        default_factory=dict,
        description="level -> settings instead of the fabric's (--set fabric.LEVEL.KEY=VALUE)",
    )
    backend: str = Field(default="analytical", description="a backend of `artist list backends`")
    fallback: str | None = Field(
        default=None,
        description="a second backend, for queries that a recorded table lacks, e.g. analytical",
    )
    system: dict[str, Any] = Field(
        default_factory=dict,
        description="system settings instead of the fabric's (--set system.KEY=VALUE)",
    )
    uneven: Literal["wider", "bounded", "flat"] | None = Field(
        default=None,
        description="how uneven placements are estimated, instead of the fabric's rule",
    )
    collectives: Literal["per-layer", "bucketed"] | None = Field(
        default=None, description="how gradients are sent, instead of the fabric's setting"
    )
    speeds: str | None = Field(
        default=None,
        description="how fast models are on the cluster's kinds of GPUs: a table of `artist list "
        "speeds`, or a file; without one, all kinds are equally fast",
    )
    prices: Positive | dict[str, Positive] | None = Field(
        default=None,
        description="price of a GPU-hour, or kind -> price, in any currency; the result then has "
        "gpu_cost",
    )
    goodput: str | None = Field(
        default=None,
        description="file with goodput parameters of models, which makes their jobs elastic",
    )
    calibration: str = Field(
        default="auto",
        description="auto (the one that the fabric names), none, or a calibration by name or file",
    )
    communication: Literal["proportional", "absolute"] = Field(
        default="proportional",
        description="what jobs send if their compute_s differs from their model's: more or "
        "less in the same proportion (proportional), or what the model sends (absolute, "
        "except for models that a calibration scales)",
    )
    contention: str = Field(
        default="none",
        description="how jobs slow each other down: a model of `artist list contention`",
    )
    contention_options: dict[str, Any] = Field(
        default_factory=dict,
        description="options of the contention model (--set contention.KEY=VALUE)",
    )
    interference: str = Field(
        default="time-slicing",
        description="how fast jobs run that share GPUs: time-slicing (equal shares of time), "
        "h100 or h200 (pairs measured on one), or a CSV file of pairs (artist measure --beside)",
    )
    data: str | None = Field(
        default=None, description="a file with the tables that jobs read, and their regions"
    )
    data_options: dict[str, Any] = Field(
        default_factory=dict, description="how jobs read remote data (--set data.KEY=VALUE)"
    )
    restart_s: NonNegative | None = Field(
        default=None, description="cost of a restart for jobs whose trace says nothing, or 0"
    )
    first_start_s: FirstStart = Field(
        default=None, description="cost of a first start; restart: as much as the job's restart"
    )
    failures: str = Field(
        default="none",
        description="what fails: a model of `artist list failures`, a file (.csv: a log), or none",
    )
    checkpoint: CheckpointOptions | None = Field(
        default=None,
        description="when jobs save their state: {interval_s: 3600, cost_s: 30} "
        "(--set checkpoint.KEY=VALUE)",
    )
    tenants: dict[str, Tenant] | str | None = Field(
        default=None,
        description="tenant -> quota in GPUs, or {quota, weight}; or a file with that under "
        "`tenants` (docs/mast.md)",
    )
    measure_from_s: NonNegative | None = Field(
        default=None,
        description="leave out the warm-up: measure jobs that arrive, and GPU time, from "
        "then on, in seconds",
    )
    measure_until_s: Duration | None = Field(
        default=None,
        description="the same at the end: measure jobs that arrive, and GPU time, before then",
    )
    parallelism: JobParallelism | Literal["published", "none"] = Field(
        default="published",
        description="how jobs of large language models are divided if the trace does not say it: "
        "published (for the model, fitted to the job), none, or {tensor: 8, pipeline: 4, ...} "
        "(--set parallelism.KEY=VALUE)",
    )
    permutation: Seed = Field(
        default=0,
        description="another order of machines and simultaneous arrivals, another start of "
        "the policy's clocks and other draws; 0 is the natural order, and clocks start at "
        "the first arrival",
    )
    seed: Seed = Field(default=0, description="seed of all random draws")

    @model_validator(mode="before")
    @classmethod
    def _default_fabric(cls, settings: Any) -> Any:
        """`fabric: auto` says what saying nothing does."""
        if isinstance(settings, Mapping) and settings.get("fabric") == AUTO:
            return {key: value for key, value in settings.items() if key != "fabric"}
        return settings

    @field_validator("arrivals")
    @classmethod
    def _arrivals(cls, value: str) -> str:
        match = ARRIVALS.fullmatch(value)
        if not match or (match[1] and float(match[1]) <= 0):
            raise ValueError("expected trace, batch or poisson:JOBS_PER_HOUR (above 0)")
        return value

    @field_validator("tree")
    @classmethod
    def _gpus_in_all(cls, tree: list[Any] | None) -> list[Any] | None:
        """Refuse a count below 1 with its line. What the levels are, the fabric says later."""
        inside = list(tree or ())
        while inside:
            one = inside.pop()
            if isinstance(one, list):
                inside += one
            elif isinstance(one, int) and one < 1:
                raise ValueError(f"a machine must hold at least 1 GPU, and one holds {one}")
        return tree

    @model_validator(mode="after")
    def _one_cluster(self) -> Self:
        """Refuse two descriptions of the cluster, of which one would be ignored."""
        given = [f"{name}={getattr(self, name)}" for name in SIZES if name in self.model_fields_set]
        if self.cluster is not None and (given or self.tree is not None):
            other = ", ".join(given) or f"tree {shortened(self.tree)}"
            raise ValueError(
                f"cluster {shortened(self.cluster)} describes the whole cluster and contradicts "
                f"{other}; leave one of the two out, or give another size a file of its own"
            )
        if self.tree is not None and given:
            raise ValueError(
                f"tree {shortened(self.tree)} describes the whole cluster and contradicts "
                f"{', '.join(given)}; leave one of the two out"
            )
        return self

    @model_validator(mode="after")
    def _window_of_time(self) -> Self:
        start_s, end_s = self.measure_from_s or 0.0, self.measure_until_s
        if end_s is not None and end_s <= start_s:
            raise ValueError(
                f"measure_until_s={end_s:g} is not after measure_from_s={start_s:g}; raise it"
            )
        return self

    @model_serializer(mode="wrap")
    def _without_unused_settings(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out settings that say nothing, so that a new setting changes no run's id.

        Sizes are left out where `tree` or `cluster` stands in their place, since no reader shall
        take them for facts. A cluster file also stands in the place of tree and fabric.
        """
        fields = type(self).model_fields
        default = {name: fields[name].get_default(call_default_factory=True) for name in UNUSED}
        unused = [name for name in UNUSED if getattr(self, name) == default[name]]
        if self.tree is not None or self.cluster is not None:
            unused += SIZES
        if self.cluster is not None:
            unused += ["tree"] if self.own_fabric is not None else ["tree", "fabric"]
        return {key: value for key, value in serialise(self).items() if key not in unused}

    @property
    def own_fabric(self) -> str | None:
        """The fabric that the scenario names; None if it leaves that to its cluster file."""
        unsaid = self.cluster is not None and "fabric" not in self.model_fields_set
        return None if unsaid else self.fabric


def check_scenario(given: object) -> None:
    """Refuse what is not a scenario, where Python code hands one over.

    Raises:
        ConfigError: says how to make one.
    """
    if not isinstance(given, Scenario):
        raise ConfigError(
            f"scenario={shortened(given)}: expected artist.Scenario(...), or a file read with "
            "artist.load_scenario(FILE)"
        )
