"""Reads the data that a page carries for its script."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any


def embedded(content: bytes) -> dict[str, Any]:
    """The JSON inside a page."""
    script = re.search(rb'<script type="application/json" id="data">(.*?)</script>', content, re.S)
    assert script
    data: dict[str, Any] = json.loads(script[1])
    return data


def unpack(packed: str) -> dict[str, Any]:
    """The data of a cluster timeline; the reverse of `timeline_data.pack`."""
    data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed)))
    return data
