"""Is Parquet read whole, without threads that outlive the command, and never beyond memory?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from artist.io import parquet
from artist.io.parquet import read_parquet
from artist.trace.native.plain_csv import FROM_BYTES

ELASTIC = Path(__file__).parents[2] / "traces" / "tiny-elastic.parquet"


def test_a_table_is_what_arrow_reads(tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": ["a", None, "b", "a", ""],
            "large": pa.array(["x", "y", "x", None, "z"], pa.large_string()),
            "number": [1.5, None, 2.5, 3.0, 4.0],
            "whole": [1, 2, 3, 4, 5],
            "list": [["a"], [], ["b", "c"], None, ["a"]],
        }
    )
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, row_group_size=2)
    assert read_parquet(path).to_pydict() == table.to_pydict()
    assert read_parquet(path).schema.types == table.schema.types
    assert read_parquet(path, ["whole", "text"]).column_names == ["whole", "text"]
    pq.write_table(table.slice(0, 0), path)
    assert read_parquet(path).num_rows == 0


def test_a_small_file_that_stands_for_too_many_values_is_refused(tmp_path: Path) -> None:
    """The counts are in the file's foot, so nothing is unpacked."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"arrival_s": np.zeros(3_000_000)}), path, compression="zstd")
    assert path.stat().st_size < 50_000
    with pytest.raises(
        ValueError, match=r"3,000,000 values would take 2\.8 GiB of memory, at most"
    ):
        read_parquet(path, value_bytes=1000)
    assert read_parquet(path, value_bytes=500).num_rows == 3_000_000


def test_a_long_text_that_repeats_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(parquet, "MAX_BYTES", 10_000_000)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"id": list(range(20)), "model": ["x" * 1_000_000] * 20}), path)
    with pytest.raises(ValueError, match="the text of column 'model' would take"):
        read_parquet(path)
    assert read_parquet(path, ["id"]).num_rows == 20


def test_long_lists_that_repeat_are_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(parquet, "MAX_BYTES", 1_000_000)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"list": [[0.0] * 10_000] * 100}), path, row_group_size=10)
    with pytest.raises(ValueError, match="the first rows would take"):
        read_parquet(path)


def test_no_damaged_byte_of_a_file_ends_the_process(tmp_path: Path) -> None:
    """Arrow aborts at some descriptions of columns."""
    table = pa.table({"id": ["a", "b", None], "gpus": [1, 2, 4], "list": [[1], [], [2, 3]]})
    pq.write_table(table, tmp_path / "t.parquet")
    script = f"""
import pyarrow as pa
from artist.io.parquet import read_parquet
from artist.trace.native.plain_csv import FROM_BYTES
data = open({str(tmp_path / "t.parquet")!r}, "rb").read()
for at in range(len(data)):
    for mask in (1, 2, 128, 255):
        damaged = data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]
        try:
            read_parquet(pa.BufferReader(damaged)).to_pylist()
        except (OSError, ValueError, pa.ArrowException):
            pass
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_command_that_read_with_arrow_ends_well_under_load(tmp_path: Path, kind: str) -> None:
    """Arrow's threads freed Python's memory, which aborted one command in three at its end."""
    trace = ELASTIC
    if kind == "csv":
        trace = tmp_path / "t.csv"
        rows = (f"job-{n},{n},4,resnet50,100,0.5\n" for n in range(FROM_BYTES // 24))
        trace.write_text("job_id,arrival_s,gpus,model,iterations,compute_s\n" + "".join(rows))
        assert trace.stat().st_size > FROM_BYTES
    command = [sys.executable, "-m", "artist", "trace", "validate", str(trace)]
    several = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(6)
    ]
    ended = [(one.communicate()[1], one.returncode) for one in several]
    assert {code for _, code in ended} == {0}, ended
