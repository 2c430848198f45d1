"""Reads the data that a page carries for its script."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any


def embedded(content: bytes) -> dict[str, Any]:
    """The JSON inside a page, with the packed figures of all settings among `figures`."""
    script = re.search(rb' id="page-data">(.*?)</script>', content, re.S)
    assert script
    data: dict[str, Any] = json.loads(script[1])
    data["figures"] += [one for text in data["ofSetting"].values() for one in unpack(text)]
    return data


def unpack(packed: str) -> Any:
    """The reverse of `packing.packed`."""
    return json.loads(zlib.decompress(base64.b64decode(packed)))
