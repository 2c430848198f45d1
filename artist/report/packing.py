"""Data inside the page in a compact form: JSON, deflated, in base64.

The page's script inflates it.

Columns of one table become one JSON object of lists. Repeated values are numbered (`coded`), so
that lists hold small integers, which deflate well.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from typing import Any

_LARGEST = 1e300


def packed(data: Any) -> str:
    """JSON data as deflated base64. Equal data gives equal text."""
    raw = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(raw.encode(), 9)).decode()


def coded(values: Iterable[Any]) -> tuple[list[Any], list[int]]:
    """The distinct values in order of appearance, and for each value its index among them."""
    index: dict[Any, int] = {}
    codes = [index.setdefault(value, len(index)) for value in values]
    return list(index), codes


def short(values: Iterable[float], digits: int = 5) -> list[float | int]:
    """The values with some significant digits, whole numbers as integers."""
    # Sums of damaged numbers may be infinite, which JSON cannot hold.
    finite = (min(max(value, -_LARGEST), _LARGEST) for value in values)
    return [int(v) if v == int(v) else v for v in (float(f"{v:.{digits}g}") for v in finite)]
