"""Measured Up phases of models: when in an iteration a job sends, and at which share of its rate.

An estimate says how many bytes an iteration sends, for how long at the line rate (`busy_s`), and
how long the iteration takes. A pattern changes none of these. A measured pattern (CASSINI, section
2.2: profiles of the NIC's counters) gives the proportions of Up phases and of the gaps between
them:

    Up time = busy_s / mean bandwidth of the phases, at most the iteration
    phase k = Up time x length_k / all lengths, at bandwidth_k of the line rate
    gap k   = (iteration - Up time) x gap_k / all gaps

So a pattern that was measured on other links or another number of GPUs still sends the bytes of the
estimate. If these do not fit into the iteration at the measured bandwidths, the job sends all the
time, and all bandwidths are multiplied by one factor, each up to the line rate. So a job alone is
as fast as without a pattern. A model without a pattern sends once, at the end of its iteration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, model_validator

from artist.errors import ConfigError, shortened
from artist.io.documents import Document, load_yaml
from artist.io.reading import exists, is_file

ROUNDING = 1e-6
"""By how much phases may overlap or pass the iteration's end, as figures are read off plots."""


class MeasuredPhase(Document):
    """An Up phase as its file has it, in shares of an iteration and of the line rate."""

    start: float = Field(ge=0, lt=1, description="share of an iteration before it starts")
    length: float = Field(gt=0, le=1, description="share of an iteration")
    bandwidth: float = Field(
        default=1.0, ge=1e-3, le=1, description="share of the rate at which the job can send"
    )


class MeasuredPatterns(Document):
    """A file of Up phases, by model."""

    name: str
    source: str = Field(description="how they were measured")
    models: dict[str, tuple[MeasuredPhase, ...]] = Field(min_length=1)

    @model_validator(mode="after")
    def _in_order(self) -> MeasuredPatterns:
        for model, phases in self.models.items():
            if not phases:
                raise ValueError(f"{shortened(model)}: no phase; give one, or leave the model out")
            ends = [phase.start + phase.length for phase in phases]
            for end, after in zip(ends, [x.start for x in phases[1:]] + [1.0], strict=True):
                if end > after + ROUNDING:
                    raise ValueError(
                        f"{shortened(model)}: a phase ends at {end:g} of the iteration, expected "
                        f"at most {after:g}, where the next one or the iteration starts"
                    )
        return self


class UpBurst(NamedTuple):
    """An Up phase of an iteration in seconds, and its share of the line rate."""

    start_s: float
    length_s: float
    rate_share: float


@dataclass(frozen=True, slots=True)
class UpPhases:
    """The proportions of Up phases (`lengths`), and of the `gaps` before, between and after."""

    gaps: tuple[float, ...]
    lengths: tuple[float, ...]
    bandwidths: tuple[float, ...]

    @classmethod
    def of(cls, phases: tuple[MeasuredPhase, ...]) -> UpPhases:
        """From measured phases in the order of their starts."""
        bounds = [x for phase in phases for x in (phase.start, phase.start + phase.length)]
        edges = [0.0, *bounds, 1.0]
        between = [after - before for before, after in list(pairwise(edges))[::2]]
        gaps = [gap if gap > ROUNDING else 0.0 for gap in between]
        down, up = math.fsum(gaps), math.fsum(phase.length for phase in phases)
        # A pattern without gaps gets equal ones, for jobs that compute longer than the measured.
        return cls(
            tuple(gap / down if down else 1.0 / len(gaps) for gap in gaps),
            tuple(phase.length / up for phase in phases),
            tuple(phase.bandwidth for phase in phases),
        )

    def parts(self, busy_s: float, iteration_s: float) -> tuple[float, ...]:
        """The part of an iteration's bytes that each phase sends."""
        shares = self.rate_shares(busy_s, iteration_s)
        volumes = [length * share for length, share in zip(self.lengths, shares, strict=True)]
        total = math.fsum(volumes)
        return tuple(volume / total for volume in volumes)

    def up_s(self, busy_s: float, iteration_s: float) -> float:
        """Seconds of all Up phases together, for bytes that take `busy_s` at the line rate."""
        return min(self._at_bandwidths_s(busy_s), iteration_s)

    def gaps_s(self, busy_s: float, iteration_s: float) -> tuple[float, ...]:
        """Seconds without sending before each phase, and after the last one."""
        down_s = iteration_s - self.up_s(busy_s, iteration_s)
        return tuple(down_s * gap for gap in self.gaps)

    def rate_shares(self, busy_s: float, iteration_s: float) -> tuple[float, ...]:
        """The share of the line rate in each phase: as measured, if the iteration is long enough.

        Otherwise the job sends all the time, faster than measured but at most at the line rate.
        """
        if self._at_bandwidths_s(busy_s) <= iteration_s:
            return self.bandwidths
        phases = [*zip(self.lengths, self.bandwidths, strict=True)]
        mean, faster = busy_s / iteration_s, 1.0
        # Phases faster than `most` send at the line rate; the other phases share the rest.
        for most in sorted(set(self.bandwidths), reverse=True):
            full = math.fsum(length for length, x in phases if x > most)
            below = math.fsum(length * x for length, x in phases if x <= most)
            faster = (mean - full) / below
            if faster * most <= 1.0:
                break
        return tuple(min(faster * x, 1.0) for x in self.bandwidths)

    def bursts(self, busy_s: float, iteration_s: float) -> tuple[UpBurst, ...]:
        """The Up phases of an iteration, in seconds from its start."""
        up_s, start_s, made = self.up_s(busy_s, iteration_s), 0.0, []
        gaps_s = self.gaps_s(busy_s, iteration_s)
        shares = self.rate_shares(busy_s, iteration_s)
        for gap_s, length, share in zip(gaps_s, self.lengths, shares, strict=False):
            start_s += gap_s
            made.append(UpBurst(start_s, up_s * length, share))
            start_s += up_s * length
        return tuple(made)

    def _at_bandwidths_s(self, busy_s: float) -> float:
        return busy_s / math.fsum(x * y for x, y in zip(self.lengths, self.bandwidths, strict=True))


def read_up_phases(file: str) -> dict[str, UpPhases]:
    """The Up phases of a file, by model.

    Raises:
        ConfigError: there is no such file, it is not a file of Up phases, or it names an unknown
            model or one model twice.
    """
    from artist.workload.models import canonical

    if not exists(Path(file)):
        raise ConfigError(f"up_phases_file={shortened(file)}: no such file")
    read = load_yaml(Path(file), MeasuredPatterns)
    by_model: dict[str, UpPhases] = {}
    spelled: dict[str, str] = {}
    for spelling, phases in read.models.items():
        model = spelling if is_file(Path(spelling)) else canonical(spelling)
        if model in by_model:
            raise ConfigError(
                f"up_phases_file={shortened(file)}: {shortened(spelled[model])} and "
                f"{shortened(spelling)} are one model; keep the phases of one"
            )
        by_model[model], spelled[model] = UpPhases.of(phases), spelling
    return by_model
