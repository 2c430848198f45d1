"""What a job bids in an auction of Themis."""

from __future__ import annotations

from dataclasses import dataclass

Step = tuple[int, float]
"""GPUs and gain."""

SAME = 1e-9
"""Sums of gains that differ by less count as equal. Rounding of logarithms is far smaller: a
thousand sums of gains below 100 are off by less than 1e-10."""


@dataclass(frozen=True, slots=True)
class Bid:
    """What a job bids for each number of GPUs that it can run on. `job` is its handle."""

    job: int
    options: tuple[Step, ...]
    """(GPUs, gain): GPUs rise, gains are above 0."""


def useful(bid: Bid) -> Bid:
    """The bid without options that gain no more than fewer GPUs do, or than none."""
    options: list[Step] = []
    most = 0.0
    for count, gain in bid.options:
        if gain > most + SAME:
            options.append((count, gain))
            most = gain
    return Bid(bid.job, tuple(options))
