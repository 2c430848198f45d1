"""Named, independent random streams from one seed.

Two components that draw from different names never disturb each other, and a
stream does not depend on how many others exist or on the hash seed.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np


def stream(seed: int, name: str, permutation: int = 0) -> np.random.Generator:
    """A generator for `name`, the same for the same seed and permutation on every machine."""
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode()), permutation]))


def uniform(seed: int, name: str, path: Sequence[int], index: int) -> float:
    """The number `index` of the stream of one thing among millions, above 0 and below 1.

    A stream needs no memory and no order: each number is a digest of what it is for. `path` says
    which thing it is.
    """
    text = f"{seed}/{name}/{'.'.join(map(str, path))}/{index}"
    bits = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
    return ((bits >> 11) + 0.5) / (1 << 53)


@dataclass(frozen=True, slots=True)
class Draws:
    """The random numbers of one run's policy: they follow from scenario's seed and permutation.

    A policy whose constructor has a parameter `draws` gets one (`artist.run.open_policy`).
    """

    seed: int = 0
    permutation: int = 0

    def stream(self, name: str) -> np.random.Generator:
        """A generator for `name`. Each call restarts it, so keep the generator."""
        return stream(self.seed, name, self.permutation)

    def phase(self, period: int) -> int:
        """How long after the first arrival a clock of this period starts: 0 up to period - 1.

        Permutation 0 is the natural order: there clocks start with the first arrival. Clocks of
        one period have one phase, whatever policy keeps them.
        """
        if not self.permutation:
            return 0
        return int(self.stream("clock-phase").integers(period))


FIRST_DRAWS = Draws()
"""Those of seed 0 and permutation 0, for a policy that is made by hand."""
