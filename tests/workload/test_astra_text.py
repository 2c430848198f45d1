"""Is ASTRA-sim's text format of workloads read and written without loss?"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workload_strategies import workloads

from artist.errors import ConfigError, TraceError
from artist.workload.astra_text import read_text, to_text
from artist.workload.layers import Layer, Parallelism, Phase, Workload, quantised

REAL = Path(__file__).parents[3] / "shared" / "fidelity" / "workloads"


@given(workload=workloads)
def test_text_form_reads_back_to_the_same_workload(
    tmp_path_factory: pytest.TempPathFactory, workload: Workload
) -> None:
    path = tmp_path_factory.mktemp("text") / "w.txt"
    path.write_text(to_text(workload))
    assert read_text(path) == workload


@pytest.mark.skipif(not REAL.is_dir(), reason="ASTRA-sim's own workload files are not here")
def test_files_written_for_astra_sim_round_trip() -> None:
    files = sorted(REAL.glob("*.txt"))
    assert files
    for path in files:
        workload = read_text(path)
        assert to_text(workload).split() == path.read_text().split()
        assert quantised(workload) == workload


GOOD = "conv\t-1\t5\tNONE\t0\t5\tNONE\t0\t5\tALLREDUCE\t16\t0"


def swapped(field: int, value: str) -> str:
    tokens = GOOD.split("\t")
    tokens[field] = value
    return "DATA\n1\n" + "\t".join(tokens) + "\n"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["w.txt", "empty"]),
        (" \n\n", ["w.txt", "empty"]),
        ("\nDATA\n1\n" + GOOD, ["w.txt:1", "parallelism", "''", "DATA"]),
        ("MODEL\n1\n" + GOOD, ["w.txt:1", "parallelism", "'MODEL'", "DATA, MICRO"]),
        ("DATA", ["w.txt:2", "number of layers"]),
        ("DATA\nmany\n" + GOOD, ["w.txt:2", "number of layers", "'many'"]),
        ("DATA\n0\n", ["w.txt:2", "number of layers", "'0'", "1 or more"]),
        ("DATA\n2\n" + GOOD, ["w.txt:2", "is 2", "1 layer lines"]),
        ("DATA\n1\n" + GOOD + "\n" + GOOD, ["w.txt:2", "is 1", "2 layer lines"]),
        ("DATA\n1\nconv\t-1\t5\n", ["w.txt:3", "3 fields", "12"]),
        ("DATA\n2\n" + GOOD + "\n\n" + GOOD, ["w.txt:2", "is 2", "3 layer lines"]),
        (swapped(1, "0"), ["w.txt:3", "reserved", "'0'", "-1"]),
        (swapped(2, "-5"), ["w.txt:3", "forward compute", "'-5'"]),
        (swapped(5, "nan"), ["w.txt:3", "input gradient compute", "'nan'"]),
        (swapped(8, "inf"), ["w.txt:3", "weight gradient compute", "'inf'"]),
        (swapped(8, "soon"), ["w.txt:3", "weight gradient compute", "'soon'"]),
        (swapped(11, "-1"), ["w.txt:3", "update time", "'-1'"]),
        (swapped(9, "ALLREDUCES"), ["w.txt:3", "collective", "'ALLREDUCES'", "ALLREDUCE,"]),
        (swapped(10, "1.5"), ["w.txt:3", "weight gradient bytes", "'1.5'", "whole number"]),
        (swapped(10, "-16"), ["w.txt:3", "weight gradient bytes", "'-16'"]),
        (swapped(10, "9" * 30), ["w.txt:3", "weight gradient bytes", "9999"]),
    ],
)
def test_a_malformed_workload_names_the_line_and_the_field(
    tmp_path: Path, text: str, parts: list[str]
) -> None:
    path = tmp_path / "w.txt"
    path.write_text(text)
    with pytest.raises(TraceError) as caught:
        read_text(path)
    for part in parts:
        assert part in str(caught.value)


def test_a_missing_file_a_folder_and_bytes_end_in_one_sentence_each(tmp_path: Path) -> None:
    binary = tmp_path / "binary.txt"
    binary.write_bytes(b"DATA\n1\n\xff\xfe")
    zero = tmp_path / "zero.txt"
    zero.write_bytes(b"DATA\n\x00\n")
    for path in (tmp_path / "absent.txt", tmp_path, binary, zero):
        with pytest.raises(TraceError, match=path.name):
            read_text(path)


@given(data=st.binary(max_size=200))
def test_random_bytes_raise_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("bytes") / "w.txt"
    path.write_bytes(data)
    with pytest.raises(TraceError):
        read_text(path)


@pytest.mark.parametrize("parallelism", ["FSDP", "LAYERWISE", "HYBRID_DATA_MODEL"])
def test_the_text_format_holds_no_other_parallelism(tmp_path: Path, parallelism: str) -> None:
    path = tmp_path / "w.txt"
    path.write_text(f"{parallelism}\n1\na\t-1" + "\t1\tNONE\t0" * 3 + "\t1\n")
    with pytest.raises(TraceError, match=r"w.txt:1: parallelism is .*one of DATA, MICRO"):
        read_text(path)


def test_writing_another_parallelism_as_text_is_refused() -> None:
    layer = Layer("a", Phase(), Phase(), Phase())
    with pytest.raises(ConfigError, match=r"'w' is FSDP: ASTRA-sim's text format"):
        to_text(Workload("w", Parallelism.FSDP, (layer,)))
