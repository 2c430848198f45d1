"""Ratios that are compared without rounding.

    1/3 of the work in 1/3 of the time  =  2/6 of the work in 2/6 of the time

With floats, two ways to compute one number may differ in the last place. Rounding, and not the tie
rule, would then decide between equal jobs.
"""

from __future__ import annotations

from operator import truediv
from typing import TypeAlias


class Ratio:
    """The exact value of `num / den`, two whole numbers; `den` is above 0."""

    __slots__ = ("den", "num")

    def __init__(self, num: int, den: int) -> None:
        self.num = num
        self.den = den

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ratio) and self.num * other.den == other.num * self.den

    def __lt__(self, other: Ratio) -> bool:
        return self.num * other.den < other.num * self.den

    def __le__(self, other: Ratio) -> bool:
        return self.num * other.den <= other.num * self.den

    def __neg__(self) -> Ratio:
        return Ratio(-self.num, self.den)

    def __hash__(self) -> int:
        return hash(truediv(self.num, self.den))

    def __repr__(self) -> str:
        return f"{self.num}/{self.den}"


ExactKey: TypeAlias = "tuple[float, Ratio]"

ZERO: ExactKey = (0.0, Ratio(0, 1))
ONE: ExactKey = (1.0, Ratio(1, 1))


def exact_key(num: int, den: int) -> ExactKey:
    """Sorting key of the exact value of `num / den`; `den` is above 0.

    Python divides whole numbers with one rounding, so a larger ratio never has a smaller float.
    Nearly every comparison ends with the floats, and the ratios decide only between equal floats.
    """
    # Not `/`, which a compiled module may round twice (decision 29).
    return truediv(num, den), Ratio(num, den)
