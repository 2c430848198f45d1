"""GPUs in MIG mode: which instances they can be divided into, and where these can begin.

A GPU has 8 memory slices and 7 compute slices. An instance takes consecutive memory slices, and
begins only where its profile allows. Instances that do not overlap never have more than 7 compute
slices together. A running instance never moves. Source: NVIDIA, *Multi-Instance GPU user guide*,
"Supported MIG profiles", and the placements that `nvidia-smi mig -lgipp` lists there for profiles
19, 15, 14, 9, 5 and 0. A job with an instance holds an eighth of the GPU for each memory slice.

`1g.10gb` of a GPU with 40 GB (two memory slices) is left out, because on a GPU with 80 GB the same
name means one slice.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Literal, NamedTuple

MEMORY_SLICES = 8
COMPUTE_SLICES = 7
SLICE_MILLI = 1000 // MEMORY_SLICES
"""Thousandths of a GPU that each memory slice stands for: exactly 125."""

Mode = Literal["a100-40gb", "a100-80gb", "h100-80gb"]
"""GPUs that can be in MIG mode, by name and memory."""


class MigProfile(NamedTuple):
    """A kind of instance: its compute and memory slices, and at which memory slices it begins."""

    compute: int
    memory: int
    starts: tuple[int, ...]


_SMALL = {
    "1g.5gb": MigProfile(1, 1, (0, 1, 2, 3, 4, 5, 6)),
    "2g.10gb": MigProfile(2, 2, (0, 2, 4)),
    "3g.20gb": MigProfile(3, 4, (0, 4)),
    "4g.20gb": MigProfile(4, 4, (0,)),
    "7g.40gb": MigProfile(7, 8, (0,)),
}
_LARGE = {
    "1g.10gb": MigProfile(1, 1, (0, 1, 2, 3, 4, 5, 6)),
    "1g.20gb": MigProfile(1, 2, (0, 2, 4, 6)),
    "2g.20gb": MigProfile(2, 2, (0, 2, 4)),
    "3g.40gb": MigProfile(3, 4, (0, 4)),
    "4g.40gb": MigProfile(4, 4, (0,)),
    "7g.80gb": MigProfile(7, 8, (0,)),
}
PROFILES: dict[Mode, dict[str, MigProfile]] = {
    "a100-40gb": _SMALL,
    "a100-80gb": _LARGE,
    "h100-80gb": _LARGE,
}
"""Mode -> name -> profile. A name means the same profile in every mode."""

ALL = _SMALL | _LARGE
NAMES = tuple(ALL)


def memory_gib(mode: Mode) -> int:
    """The memory of a GPU in GiB, from the end of its mode's name."""
    return int(mode.rpartition("-")[2].removesuffix("gb"))


def slices(profile: MigProfile, start: int) -> int:
    """The memory slices of an instance, one bit each."""
    return ((1 << profile.memory) - 1) << start


def compute_slices(names: Iterable[str]) -> int:
    """The compute slices of these instances together. An empty name stands for no instance."""
    return sum(ALL[name].compute for name in names if name)


def alike(one: str, other: str) -> bool:
    """Whether some mode has both profiles."""
    return any(one in profiles and other in profiles for profiles in PROFILES.values())


@cache
def free_starts(name: str, held: int) -> tuple[int, ...]:
    """The memory slices at which an instance can begin, if the slices `held` (bits) are taken."""
    profile = ALL[name]
    return tuple(start for start in profile.starts if not slices(profile, start) & held)


@cache
def best_start(name: str, held: int) -> int:
    """The memory slice at which an instance begins.

    It leaves the most starts of all profiles free; the lowest slice wins ties. `held` are the taken
    slices, as bits. There must be a start in `free_starts`.
    """
    family = _SMALL if name in _SMALL else _LARGE

    def left(start: int) -> int:
        after = held | slices(ALL[name], start)
        return sum(len(free_starts(other, after)) for other in family)

    return max(free_starts(name, held), key=lambda start: (left(start), -start))
