"""The numbers that Go's `math/rand` draws from a seed, as far as the published runs draw them.

An additive lagged Fibonacci generator (lags 607 and 273), started by a Lehmer generator whose
numbers are combined with a table of 607. Source: Go 1.19, src/math/rand. The table is read from
there: `rng.go` of any Go installation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from artist.errors import ConfigError

LONG, SHORT = 607, 273
_WORD = (1 << 64) - 1
_LEHMER = (1 << 31) - 1


def read_table(path: Path) -> list[int]:
    """The 607 numbers in `rng.go`.

    Raises:
        ConfigError: they are not there.
    """
    found = re.search(r"rngCooked\b[^{]*\{(.*?)\}", path.read_text(encoding="utf-8"), re.DOTALL)
    table = [int(number) for number in re.findall(r"-?\d+", found[1])] if found else []
    if len(table) != LONG:
        raise ConfigError(f"{path}: expected a table of {LONG} numbers, rngCooked of Go's rng.go")
    return table


class GoRandom:
    """A generator after `rand.Seed(seed)`, a seed above 0."""

    def __init__(self, seed: int, table: Sequence[int]) -> None:
        number = seed % _LEHMER

        def lehmer() -> int:
            nonlocal number
            number = 48271 * number % _LEHMER
            return number

        for _ in range(20):
            lehmer()
        self._state = [
            lehmer() << 40 ^ lehmer() << 20 ^ lehmer() ^ cooked & _WORD for cooked in table
        ]
        self._short, self._long = 0, LONG - SHORT

    def int63(self) -> int:
        """63 random bits."""
        self._short, self._long = (self._short - 1) % LONG, (self._long - 1) % LONG
        total = self._state[self._long] + self._state[self._short] & _WORD
        self._state[self._long] = total
        return total & (1 << 63) - 1

    def below(self, bound: int) -> int:
        """A number from 0 to bound - 1 (`Intn`)."""
        most = (1 << 31) - (1 << 31) % bound
        while (drawn := self.int63() >> 32) >= most:
            pass
        return drawn % bound

    def shuffle(self, items: list[Any]) -> None:
        """Shuffle in place (`Shuffle`), by multiplication instead of a remainder."""
        for last in range(len(items) - 1, 0, -1):
            bound = last + 1
            product = (self.int63() >> 31) * bound
            while product & 0xFFFFFFFF < (1 << 32) % bound:
                product = (self.int63() >> 31) * bound
            other = product >> 32
            items[last], items[other] = items[other], items[last]

    def permutation(self, count: int) -> list[int]:
        """The numbers from 0 to count - 1 in random order (`Perm`)."""
        made = [0] * count
        for index in range(count):
            other = self.below(index + 1)
            made[index] = made[other]
            made[other] = index
        return made
