"""How a job of a trace is divided: what its trace says, what a scenario says, or what is published.

A job's division is part of its model's name (`llama3-70b@tensor=4,pipeline=8`), so that everything
which knows models knows it. `trace/native/divided_models.py` makes such names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field

from artist.io.documents import Document

Size = Annotated[int, Field(ge=1)]


class JobParallelism(Document):
    """The axes of jobs, and how their stages run; what is not given is as in the model's name."""

    tensor: Size | None = Field(default=None, description="GPUs that share each matrix")
    pipeline: Size | None = Field(default=None, description="pipeline stages")
    data: Size | None = Field(default=None, description="replicas; the job must have as many")
    expert: Size | None = Field(default=None, description="GPUs over which experts are spread")
    context: Size | None = Field(default=None, description="GPUs that share each sequence")
    order: str | None = Field(default=None, description="ranks, innermost axis first, or best")
    batch: Size | None = Field(default=None, description="samples of a replica in an iteration")
    microbatches: Size | None = Field(
        default=None, description="parts of the batch; 1 if not given: only one stage works at once"
    )
    schedule: Literal["1f1b", "gpipe", "interleaved"] | None = Field(
        default=None, description="the order of passes"
    )
    interleave: Size | None = Field(default=None, description="chunks of the model per stage")
    sharded: Literal["no", "zero1", "zero2", "zero3"] | None = Field(
        default=None, description="what replicas share"
    )
    prefetch: Annotated[int, Field(ge=0)] | Literal["all"] | None = Field(
        default=None, description="blocks ahead of which weights are gathered"
    )
    recompute: bool | Literal["no", "selective", "full"] | None = Field(
        default=None, description="what the backward pass computes again; true: full"
    )
    sequence: bool | None = Field(default=None, description="sequence parallelism")
    dispatch: Literal["expert", "machine"] | None = Field(
        default=None, description="a token is sent to each of its experts, or to their machines"
    )
    overlap: Literal["no", "experts"] | None = Field(
        default=None, description="all-to-alls that another microbatch's computing hides"
    )

    def settings(self) -> dict[str, str]:
        """The settings of a model's name that say the same."""
        given = self.model_dump(exclude_none=True)
        if "sequence" in given:
            given["sequence_parallel"] = str(given.pop("sequence")).lower()
        if isinstance(given.get("recompute"), bool):
            given["recompute"] = "full" if given["recompute"] else "no"
        return {key: str(value) for key, value in given.items()}


def words(text: str) -> dict[str, str]:
    """The pairs of a text such as `tensor=8,pipeline=4`, with blanks or commas between them.

    Raises:
        ValueError: a word is not KEY=VALUE.
    """
    pairs = [word.partition("=") for word in text.replace(",", " ").split()]
    if any(not key or not value for key, _, value in pairs):
        raise ValueError(text)
    return {key: value for key, _, value in pairs}


@dataclass(frozen=True, slots=True)
class Published:
    """Axes that were published for a model, and the batch of a replica in microbatches of one."""

    tensor: int
    pipeline: int
    batch: int
    source: str
    expert: int = 1
    sequence: int | None = None


# Interleaved stages are left out: their chunks shorten the bubble, which is compute time here.
PUBLISHED: Mapping[str, Published] = MappingProxyType(
    {
        "llama2-70b": Published(4, 8, 128, "Megatron-Bridge, as Llama 3 70B"),
        "llama3-70b": Published(4, 8, 128, "Megatron-Bridge 26.04, 64 H100", sequence=8192),
        "llama3-405b": Published(8, 16, 16, "arXiv:2407.21783, table 4", sequence=8192),
        "gpt3-175b": Published(8, 12, 384, "arXiv:2104.04473, section 5.2"),
        "qwen3-30b-a3b": Published(1, 1, 64, "Megatron-Bridge 26.06, 16 H100", expert=16),
        "qwen3-235b-a22b": Published(2, 8, 128, "Megatron-Bridge, 256 H100", expert=32),
        "deepseek-v3": Published(1, 16, 120, "arXiv:2412.19437, sections 3.2 and 4.2", expert=64),
    }
)

_FAMILIES = ("llama", "gpt", "qwen", "deep", "mixtral")

_AXES = frozenset(
    {"tensor", "stages", "pipeline", "context", "expert", "data", "parallel", "sharded", "order"}
)


def may_be_divided(model: str, chosen: object) -> bool:
    """Whether a job whose model's name gives no axes may get axes or may have experts.

    The check is cheap, and true if in doubt: any spelling of such a model has the letters of its
    family.
    """
    return chosen != "published" or any(family in model.casefold() for family in _FAMILIES)


def says_axes(model: str) -> bool:
    """Whether a model's name says how the job is divided."""
    return any(
        part.partition("=")[0].strip() in _AXES for part in model.partition("@")[2].split(",")
    )
