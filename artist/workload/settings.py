"""The settings in the name of a model: `ID@SETTING=VALUE,...`, e.g. `gpt2-xl@batch=8,gpu=h100`.

Such a name is called a spec. Settings that it does not give have the values of the catalogue.
Settings equal to those of the catalogue are dropped from the canonical name, so that equal
workloads have one name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NoReturn

from artist.errors import ConfigError, did_you_mean, shortened
from artist.registry import UnknownNameError
from artist.workload.division.staged import (
    BEST_ORDER,
    DISPATCH,
    GRADIENTS,
    INNERMOST_FIRST,
    OVERLAP,
    PREFETCH_ALL,
    RECOMPUTE,
    Schedule,
    Sharded,
    axes_of_order,
)
from artist.workload.gpus import GPU_NAMES, Precision

TIMINGS = ("arithmetic", "roofline", "fitted")
PARALLEL = ("data", "fsdp")

_LARGEST = 10**6


@dataclass(frozen=True, slots=True)
class Settings:
    """How a model is trained. `sequence` and `experts` are None if the model has none.

    `batch` is the number of samples that a replica of the model processes in one iteration. A
    replica is one GPU, or `tensor` x `stages` GPUs.
    """

    batch: int
    sequence: int | None = None
    gpu: str = ""
    """Empty: the GPU of the fabric, or an A100 if the fabric names none that is known."""
    precision: str = Precision.TF32
    timing: str = "roofline"
    parallel: str = "data"
    tensor: int = 1
    stages: int = 1
    microbatches: int = 1
    experts: int | None = None
    pipeline: int = 1
    context: int = 1
    expert: int = 0
    """GPUs over which experts are spread; 0: one GPU for each expert, or all GPUs of a smaller
    stage, but a single GPU if the model is divided by tensor, pipeline or FSDP."""
    data: int = 0
    """Replicas; 0: as many as there are GPUs for."""
    schedule: str = "1f1b"
    interleave: int = 1
    sharded: str = ""
    """Empty: zero3, as in FSDP, if `parallel` is fsdp and no axis divides the model, else no."""
    prefetch: int = 1
    recompute: str = "no"
    sequence_parallel: bool = False
    gradients: str = GRADIENTS[0]
    dispatch: str = DISPATCH[0]
    overlap: str = OVERLAP[0]
    order: str = BEST_ORDER

    @property
    def staged(self) -> bool:
        """Whether the job is divided along axes, stage by stage (`divide.py`)."""
        axes = self.pipeline * self.context > 1 or self.data > 0
        said = self.expert > (0 if self.experts is not None else 1)
        how = (self.schedule, self.recompute, self.order, self.dispatch, self.overlap)
        return (
            axes
            or said
            or how != ("1f1b", "no", BEST_ORDER, DISPATCH[0], OVERLAP[0])
            or (self.sharded, self.prefetch) != ("", 1)
            or self.interleave > 1
            or self.sequence_parallel
            or (self.tensor > 1 and self.parallel == "fsdp")
        )

    @property
    def sharding(self) -> Sharded:
        """What replicas share: as stated, or as `parallel` and the axes imply."""
        cut = self.tensor * self.pipeline * self.spread > 1
        implied = Sharded.ZERO3 if self.parallel == "fsdp" and not cut else Sharded.NO
        return Sharded(self.sharded or implied)

    @property
    def spread(self) -> int:
        """Over how many GPUs a staged job spreads its experts: as stated, or as implied."""
        one = self.tensor * self.pipeline > 1 or self.parallel == "fsdp"
        return self.expert or (1 if one else self.experts or 1)


SETTING_NAMES = tuple(field.name for field in fields(Settings))
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "gpu": GPU_NAMES,
    "precision": tuple(Precision),
    "timing": TIMINGS,
    "parallel": PARALLEL,
    "schedule": tuple(Schedule),
    "sharded": tuple(Sharded),
    "recompute": RECOMPUTE,
    "gradients": GRADIENTS,
    "dispatch": DISPATCH,
    "overlap": OVERLAP,
    "sequence_parallel": ("true", "false"),
}


def parse(spec: str, text: str, default: Settings) -> Settings:
    """The settings in `text`, the part of `spec` after the `@`; the others are as in `default`.

    Raises:
        SettingsError: an unknown setting or a bad value.
    """
    changes: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = (x.strip() for x in part.partition("="))
        if key and key not in SETTING_NAMES:
            refuse(spec, f"unknown setting {key!r}; {did_you_mean(key, SETTING_NAMES)}")
        if not (key and equals):
            refuse(spec, f"{part.strip()!r} is not SETTING=VALUE, such as batch=8")
        if key in changes:
            refuse(spec, f"{key} is given twice")
        if getattr(default, key) is None:
            refuse(spec, f"this model has no {key}")
        changes[key] = _value(spec, key, value.casefold())
    chosen = replace(default, **changes)
    # A setting that states what is implied anyway is dropped, so that one workload has one name.
    plain = replace(chosen, sharded="")
    chosen = plain if chosen.sharding is plain.sharding is Sharded.NO else chosen
    plain = replace(chosen, expert=0)
    # A stated spread over several GPUs stays: unlike an implied one, it does not shrink with the
    # gang, so the workload is another one.
    same = chosen.spread == plain.spread == 1 and chosen.staged == plain.staged
    return plain if same else chosen


def text_of(settings: Settings, default: Settings) -> str:
    """The part of a canonical name after the id: `@batch=64,gpu=h100`, or an empty text."""
    given = [
        f"{name}={_text(name, getattr(settings, name))}"
        for name in SETTING_NAMES
        if getattr(settings, name) != getattr(default, name)
    ]
    return "@" + ",".join(given) if given else ""


def _text(name: str, value: object) -> object:
    if name == "prefetch" and value == PREFETCH_ALL:
        return "all"
    return str(value).lower() if isinstance(value, bool) else value


class SettingsError(UnknownNameError):
    """A known model has no such setting, or its settings do not go together."""

    def __init__(self, spec: str, reason: str) -> None:
        ConfigError.__init__(self, f"model {shortened(spec)}: {reason}")
        self.name = spec


def refuse(spec: str, reason: str) -> NoReturn:
    """Refuse a spec.

    Raises:
        SettingsError: always.
    """
    raise SettingsError(spec, reason)


def _value(spec: str, key: str, text: str) -> int | str | bool:
    """The value of a setting.

    Raises:
        ConfigError: not a value of this setting.
    """
    if key in _CHOICES:
        if text not in _CHOICES[key]:
            refuse(spec, f"{key} is {text!r}, expected one of {', '.join(_CHOICES[key])}")
        return text == "true" if key == "sequence_parallel" else text
    if key == "order":
        try:
            axes_of_order(text)
        except ValueError:
            refuse(
                spec,
                f"order is {text!r}, expected {BEST_ORDER} or axes, innermost first, such as "
                f"{'-'.join(INNERMOST_FIRST)}",
            )
        return text
    if key == "prefetch" and text in ("0", "all"):
        return 0 if text == "0" else PREFETCH_ALL
    if not re.fullmatch(r"[0-9]{1,7}", text) or not 1 <= int(text) <= _LARGEST:
        meant = "; or sequence_parallel=true?" if (key, text) == ("sequence", "true") else ""
        refuse(spec, f"{key} is {text!r}, expected a whole number from 1 to {_LARGEST}{meant}")
    return int(text)
