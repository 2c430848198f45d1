"""Are files of arrays read whole, or refused before they cost time or memory?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from artist.errors import ConfigError
from artist.io import array_files
from artist.io.array_files import MOST_ARRAYS, read_arrays, write_arrays


def test_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    file, arrays = tmp_path / "a.npz", {"x": np.arange(3), "text": np.array("words")}
    write_arrays(file, arrays)
    read = read_arrays(file, "")
    assert {name: one.tolist() for name, one in read.items()} == {"x": [0, 1, 2], "text": "words"}


def test_too_many_arrays_are_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "many.npz"
    write_arrays(file, {f"a{place}": np.zeros(1) for place in range(MOST_ARRAYS + 1)})
    monkeypatch.setattr(array_files.np, "load", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(ConfigError, match=r"many\.npz: 1,001 arrays, at most 1,000; train again"):
        read_arrays(file, "train again")
