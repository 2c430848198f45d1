"""Does the fast reader of plain CSV files give the traces and errors of the careful one?"""

from pathlib import Path

import pytest

from artist.errors import TraceError
from artist.trace.native import plain_csv as plain
from artist.trace.native.read_table import MAX_LINE_BYTES
from artist.trace.native.writer import write_csv
from artist.trace.read import read_trace
from artist.trace.synthetic.generate import synth

HEADER = "job_id,arrival_s,gpus,model,iterations,compute_s,user,gpus_min,restart_s"
OK = "a,0,1,VGG,10,0.5,ann,,"

FILES = [
    f"{HEADER}\n{OK}\n b ,3.5,4e0,BERT large, 7 ,1e-3,,1,30\n",
    f"{HEADER}\r\n{OK}\r\nb,1,2,VGG,3,0.25,ben,2,0\r\n",
    f"{HEADER}\n{OK}\n\nb,0,1,VGG,3,0.25,ben,,\n",
    f'{HEADER}\n{OK}\n"b,c",0,1,VGG,3,0.25,ben,,\n',
    f"{HEADER}\n{OK}\nb,0,1,VGG,3,0.25,ben,,",
    f"{HEADER},hint_x\n{OK},1\nb,0,1,VGG,3,0.25,ben,1,2,\n",
    f"{HEADER}\n{OK}\nb,0,1,VGG,3,,ben,,\n",
    f"{HEADER.replace(',compute_s', '')}\na,0,1,VGG,10,ann,,\nb,0,1,VGG,9,ann,,\n",
    f"{HEADER},tenant,priority\n{OK},ads,1\nb,0,1,VGG,3,0.25,ben,,,,\n",
]

BAD = [
    "b,0,0x10,VGG,3,0.25,ben,,",
    "b,0,0,VGG,3,0.25,ben,,",
    "b,0,1,VGG,3,0.25,ben,nan,",
    "b,nan,1,VGG,3,0.25,ben,,",
    "b,,1,VGG,3,0.25,ben,,",
    "b,0,1,,3,0.25,ben,,",
    "a,0,1,VGG,3,0.25,ben,,",
    "b,0,1_0,VGG,3,0.25,ben,,",
    "b,0,1,VGG,3",
    "b,0,1,VGG,3,0.25,ben,,,",
    "b,0,1000000000,VGG,3,0.25,ben,,",
    "b,1e300,1,VGG,3,0.25,ben,,",
    "\xff,0,1,VGG,3,0.25,ben,,",
]


def both(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What the careful and the fast reader make of a file."""
    answers: list[object] = []
    for size in (2**62, 0):
        monkeypatch.setattr(plain, "FROM_BYTES", size)
        try:
            answers.append(read_trace(path))
        except TraceError as error:
            answers.append(str(error))
    return answers


@pytest.mark.parametrize("text", FILES)
def test_both_readers_agree_on_good_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    careful, fast = both(path, monkeypatch)
    assert careful == fast
    assert careful.place(1) == fast.place(1)


@pytest.mark.parametrize("row", BAD)
def test_both_readers_agree_on_bad_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(f"{HEADER}\n{OK}\n{row}\n".encode("latin-1"))
    careful, fast = both(path, monkeypatch)
    assert careful == fast
    assert str(careful).startswith(f"{path}:3: ")


def test_a_large_file_is_read_fast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    write_csv(synth(20_000, 0.9, 64, seed=1).jobs, path)
    assert path.stat().st_size > plain.FROM_BYTES
    assert plain.plain_table(path, path.read_bytes()) is not None
    careful, fast = both(path, monkeypatch)
    assert careful == fast


def test_a_long_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{HEADER}\n{OK}\n" + "x" * (3 * MAX_LINE_BYTES))
    with pytest.raises(TraceError, match=r"t\.csv:3: a line of more than 1 MiB"):
        read_trace(path)


def test_a_json_too_large_to_parse_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("artist.trace.native.read_table.MAX_JSON_BYTES", 2**20)
    path = tmp_path / "t.json"
    path.write_text("[" + " " * 2**20 + "]")
    with pytest.raises(TraceError, match=r"t\.json: more than 1 MiB; split the trace"):
        read_trace(path)
