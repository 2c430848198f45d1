"""One kept estimate as text, with a checksum.

The text says everything. Whoever reads it checks it, since it comes from a file that anybody may
have changed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from artist.estimates.query import Burst, Estimate

_MOST = 2**63  # a number that Arrow's int64 cannot hold is no time and no size


def encode(estimate: Estimate, key: str) -> str:
    """The text that is kept under a key."""
    body = {
        "finish_ns": estimate.finish_ns,
        "compute_ns": estimate.compute_ns,
        "source": estimate.source,
        "bytes_per_dimension": estimate.bytes_per_dimension,
        "profile": None if estimate.profile is None else [asdict(b) for b in estimate.profile],
    }
    return json.dumps({**body, "check": _checksum(body, key)})


def decode(text: Any, key: Any, source: str | None = None) -> Estimate:
    """The estimate in a text that was kept under a key.

    Raises:
        ValueError: this is no estimate of this key or, if one is given, of this source.
    """
    try:
        return _decode(text, key, source)
    except (AttributeError, KeyError, RecursionError, TypeError) as cause:
        raise ValueError("damaged entry") from cause


def _decode(text: str, key: str, source: str | None) -> Estimate:
    body = json.loads(text)
    if body.pop("check") != _checksum(body, key) or source not in (None, body["source"]):
        raise ValueError("damaged entry")
    sent, profile = body["bytes_per_dimension"], body["profile"]
    return Estimate(
        finish_ns=_whole(body["finish_ns"]),
        compute_ns=_whole(body["compute_ns"]),
        source=_text(body["source"]),
        bytes_per_dimension=None if sent is None else tuple(map(_whole, sent)),
        profile=None if profile is None else tuple(map(_burst, profile)),
        from_cache=True,
    )


def _burst(fields: dict[str, Any]) -> Burst:
    return Burst(**{name: _whole(value) for name, value in fields.items()})


def _whole(value: object) -> int:
    if type(value) is not int or not 0 <= value < _MOST:
        raise ValueError("no whole number")
    return value


def _text(value: object) -> str:
    if type(value) is not str:
        raise ValueError("no text")
    return value


def _checksum(body: dict[str, Any], key: str) -> str:
    text = key + json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
