"""Gains of a bid, and gains per GPU, compared without rounding.

    gain  = log V(k) - log V(0) = log(ratio)
    slope = gain / GPUs

A ratio is one of whole numbers. Floats decide a comparison unless they are nearly equal. Then
whole numbers decide:  log(r) / k < log(s) / l  if and only if  r^l < s^k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

# Numbers whose floats differ by more differ in truth. A ratio is rounded once, its logarithm and
# the division by GPUs once more: together less than 10 units of 2**-53.
_CLOSE = 1e-14


class Gain:
    """log(num / den); `num` and `den` are whole numbers above 0."""

    __slots__ = ("den", "log", "num")

    def __init__(self, num: int, den: int) -> None:
        self.num = num
        self.den = den
        self.log = math.log(num / den)

    def __gt__(self, other: Gain) -> bool:
        if _far(self.log, other.log):
            return self.log > other.log
        return self.num * other.den > other.num * self.den

    def exceeds(self, gains: Sequence[Gain]) -> bool:
        """Whether it is above the sum of some gains."""
        total = math.fsum(gain.log for gain in gains)
        if _far(self.log, total, len(gains)):
            return self.log > total
        num, den = _product(gains)
        return self.num * den > num * self.den

    def __sub__(self, other: Gain) -> Gain:
        return Gain(self.num * other.den, self.den * other.num)

    @property
    def positive(self) -> bool:
        """Whether it is above 0."""
        return self.num > self.den

    def __repr__(self) -> str:
        return f"log({self.num}/{self.den})"


NOTHING = Gain(1, 1)
"""The gain of no GPUs."""


class Slope:
    """Gain per GPU; `gpus` is above 0."""

    __slots__ = ("gain", "gpus", "value")

    def __init__(self, gain: Gain, gpus: int) -> None:
        self.gain = gain
        self.gpus = gpus
        self.value = gain.log / gpus

    def __lt__(self, other: Slope) -> bool:
        if _far(self.value, other.value):
            return self.value < other.value
        one, two, shared = self.gain, other.gain, math.gcd(self.gpus, other.gpus)
        mine, theirs = other.gpus // shared, self.gpus // shared
        here: int = one.num**mine * two.den**theirs
        there: int = two.num**theirs * one.den**mine
        return here < there

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slope) and not (self < other or other < self)

    def __neg__(self) -> Slope:
        return Slope(Gain(self.gain.den, self.gain.num), self.gpus)

    __hash__ = None  # type: ignore[assignment]


def kept_fraction(with_it: Sequence[Gain], without: Sequence[Gain]) -> tuple[int, int]:
    """prod V(with a bid) / prod V(without it), over the other bids: numerator and denominator.

    At most 1: the search is approximate, so without the bid the others may even get less.
    """
    num, den = _product(with_it)
    other_num, other_den = _product(without)
    num, den = num * other_den, den * other_num
    return min(num, den), den


def _product(gains: Sequence[Gain]) -> tuple[int, int]:
    return math.prod(gain.num for gain in gains), math.prod(gain.den for gain in gains)


def _far(one: float, two: float, terms: int = 1) -> bool:
    """Whether two floats, one of them a sum of so many, surely stand in their true order."""
    return abs(one - two) > _CLOSE * (1 + terms) * (1 + abs(one) + abs(two))
