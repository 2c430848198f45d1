"""Machines that are kept for maintenance or for other users: `scontrol create reservation`.

A job whose limit reaches into a reservation does not start on the reserved machines. No job uses a
reservation, because traces do not say who may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from artist.errors import ConfigError, shortened
from artist.policies.slurm.machines import Machines
from artist.slurm.facts import SlurmReservation


@dataclass(frozen=True)
class Kept:
    """Machines that are kept from a start to an end."""

    machines: int
    start_s: int
    end_s: int


class Reservations:
    """All reservations of a run."""

    def __init__(self, reservations: Sequence[SlurmReservation], machines: Machines) -> None:
        self._kept = [
            Kept(
                machines.named(x.nodes, f"reservation {x.name}"),
                _moment_s(x.starts_at, x.name),
                _moment_s(x.ends_at, x.name),
            )
            for x in reservations
        ]

    def closed(self, start_s: int, end_s: int) -> int:
        """The bit set of the machines that a job from start to end may not use, in Unix seconds."""
        closed = 0
        for kept in self._kept:
            if kept.start_s < end_s and kept.end_s > start_s:
                closed |= kept.machines
        return closed

    def next_end_s(self, now_s: int) -> int | None:
        """When the next reservation ends, in Unix seconds; None if none is left."""
        return min((x.end_s for x in self._kept if x.end_s > now_s), default=None)


def _moment_s(text: str, name: str) -> int:
    """Unix seconds of a time as Slurm prints it. Without a zone it is local to the trace."""
    if text.isdecimal():  # SLURM_TIME_FORMAT=%s
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as cause:
        raise ConfigError(
            f"reservation {name}: {shortened(text)} is not a time such as 2026-11-23T16:13:34"
        ) from cause
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
