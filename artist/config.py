"""What a run is made of: the scenario, checked once at the border."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, ValidationError, field_validator

from artist.errors import ConfigError, did_you_mean, shortened
from artist.io.documents import Document, explain, load_yaml, validate
from artist.io.yaml_text import parse_yaml

ARRIVALS = re.compile(r"trace|batch|poisson:(\d+(\.\d+)?([eE][+-]?\d+)?)")

_GROUPS = {"policy": "policy_options", "system": "system"}

Size = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _ExplainedErrors(type(Document)):  # type: ignore[misc]  # pydantic does not export it
    """Makes `Scenario(racks=0)` in Python fail as `--racks 0` does: with a `ConfigError`."""

    def __call__(cls, *args: Any, **settings: Any) -> Any:
        try:
            return super().__call__(*args, **settings)
        except ValidationError as cause:
            raise ConfigError(f"scenario: {explain(cause, Scenario)}") from cause


if TYPE_CHECKING:  # checkers take fields as arguments only where they can follow the metaclass
    _Explained = Document
else:

    class _Explained(Document, metaclass=_ExplainedErrors):
        pass


class Scenario(_Explained):
    """Everything that decides a run's result. Same scenario and version, same bytes."""

    # Dally, section V-B: machines of 8 GPUs, 8 machines per rack, up to 16 racks.
    racks: Size = Field(default=16, description="racks of the cluster")
    machines_per_rack: Size = Field(default=8, description="machines in a rack")
    gpus_per_machine: Size = Field(default=8, description="GPUs in a machine")
    tree: list[Any] | None = Field(
        default=None,
        description="an irregular cluster instead: nested lists of GPU counts, outermost first",
    )
    policy: str = Field(default="dally", description="a policy of `artist list policies`")
    policy_options: dict[str, Any] = Field(
        default_factory=dict, description="options of the policy (--set policy.KEY=VALUE)"
    )
    trace: str = Field(default="sensetime-batch-500", description="a built-in trace or a file")
    arrivals: str = Field(default="trace", description="trace, batch or poisson:JOBS_PER_HOUR")
    jobs: Size | None = Field(default=None, description="only the first N jobs")
    fabric: str = Field(default="dally2025", description="a fabric of `artist list fabrics`")
    backend: str = Field(default="analytical", description="who answers communication times")
    fallback: str | None = Field(
        default=None, description="who answers what a recorded table lacks, e.g. analytical"
    )
    system: dict[str, Any] = Field(
        default_factory=dict,
        description="ASTRA-sim system settings instead of the fabric's (--set system.KEY=VALUE)",
    )
    calibration: str = Field(default="none", description="a calibration by name or file, or none")
    restart_s: Seconds | None = Field(
        default=None, description="cost of a restart for every job, instead of the trace's"
    )
    permutation: int = Field(
        default=0,
        ge=0,
        lt=2**63,
        description="another order of visiting machines and simultaneous arrivals; 0 is natural",
    )
    seed: int = Field(default=0, ge=0, lt=2**63, description="seed of everything that is drawn")

    @field_validator("arrivals")
    @classmethod
    def _arrivals(cls, value: str) -> str:
        match = ARRIVALS.fullmatch(value)
        if not match or (match[1] and float(match[1]) <= 0):
            raise ValueError("expected trace, batch or poisson:JOBS_PER_HOUR (above 0)")
        return value


def load_scenario(path: Path | None, flags: Mapping[str, Any], sets: Sequence[str]) -> Scenario:
    """A scenario file (or the defaults), overridden by flags and `--set`.

    Raises:
        ConfigError: unreadable file, unknown key or bad value.
    """
    base: dict[str, Any] = {}
    if path is not None:
        base = load_yaml(path, Scenario).model_dump(exclude_unset=True)
    base |= {key: value for key, value in flags.items() if value is not None}
    for assignment in sets:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise ConfigError(
                f"--set {shortened(assignment)}: expected KEY=VALUE, e.g. policy.lease_s=1800"
            )
        _, value = parse_yaml(text, f"--set {shortened(assignment)}")
        base = assign(base, key, value)
    return validate(base, Scenario, "scenario")


def assign(base: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Scenario settings with one changed; `policy.KEY` and `system.KEY` reach into options.

    Raises:
        ConfigError: no such setting.
    """
    group, _, option = key.partition(".")
    if group in _GROUPS and option:
        field = _GROUPS[group]
        return {**base, field: {**base.get(field, {}), option: value}}
    known = [name for name in Scenario.model_fields if name not in _GROUPS.values()]
    if key in known:
        return {**base, key: value}
    hint = did_you_mean(key, ["policy.*", "system.*", *known])
    raise ConfigError(f"unknown setting {shortened(key)} ({hint})")
