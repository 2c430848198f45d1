"""Do missing and broken libraries end in a sentence that says what to install?"""

from __future__ import annotations

from pathlib import Path

import pytest

from artist.errors import ConfigError
from artist.io.optional_libraries import check_import


def test_a_missing_library_is_named_with_its_extra() -> None:
    with pytest.raises(ConfigError, match=r"a plot needs nothing_like_it, .* not installed: pip"):
        check_import("a plot", "nothing_like_it.figure", extra="plot")


def test_a_library_that_cannot_be_imported_is_named_with_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_there.py").write_text("raise ImportError('libcudart.so.12: not found')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"cannot be imported \(libcudart.*reinstall$"):
        check_import("a plot", "half_there", extra="plot")
