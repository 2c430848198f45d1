"""Which core runs: the Python sources, or their compilation by mypyc (decision 29)."""

from __future__ import annotations

from types import FunctionType
from typing import Literal

from artist.engine.simulator import Simulator


def core() -> Literal["pure", "compiled"]:
    """`pure` if Python runs the sources of the core, else `compiled`. Both write the same rows."""
    return "pure" if isinstance(Simulator.run, FunctionType) else "compiled"
