"""Named, independent random streams from one seed.

Two components that draw from different names never disturb each other, and a
stream does not depend on how many others exist or on the hash seed.
"""

from __future__ import annotations

import zlib

import numpy as np


def stream(seed: int, name: str) -> np.random.Generator:
    """A generator for `name`, the same for the same seed on every machine."""
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())]))
