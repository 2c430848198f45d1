"""Are empty data files reported as what they are?"""

import os
from pathlib import Path

import pytest

from artist.errors import TraceError
from artist.io.reading import read_bytes


def test_a_pipe_without_a_writer_is_refused_as_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(TraceError, match="a pipe without a writer"):
        read_bytes(pipe)


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    with pytest.raises(TraceError, match="the file is empty"):
        read_bytes(tmp_path / "empty.csv")
