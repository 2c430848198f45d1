"""Does docs/limits.md state the limits that hold?"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
ROWS = re.findall(r"^\| .* \| ([\d,]+) \| `([\w.]+)\.(\w+)` \|$", PAGE.read_text(), re.M)


@pytest.mark.parametrize(("stated", "module", "name"), ROWS)
def test_each_limit_on_the_page_is_that_of_the_code(stated: str, module: str, name: str) -> None:
    assert getattr(importlib.import_module(module), name) == int(stated.replace(",", ""))


def test_the_page_lists_limits() -> None:
    assert len(ROWS) == PAGE.read_text().count("| `artist.") > 10
