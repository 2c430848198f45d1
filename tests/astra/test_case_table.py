"""Does a table of cases come back whole, with the real ASTRA-sim's figures and clear refusals?

`golden_sample.csv` holds runs of the real binary: rows of the shared table (G...) and
tiny workloads of our own (T...) with what the table lacks: several queues, odd mixes
of algorithms, remainders, two kinds of deadlock.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from artist.astra.files.case_table import COLUMNS, RESULTS, run_cases
from artist.errors import ConfigError, TraceError

SAMPLE = Path(__file__).parent / "golden_sample.csv"

LAYER = "{name}\t-1\t{fwd}\tNONE\t0\t{ig}\tNONE\t0\t{wg}\t{collective}\t{size}\t9"
TINY = {
    "tiny_data": (
        "DATA",
        [
            ("first", 1, 1, 2, "ALLREDUCE", 100),
            ("second", 0, 3, 0, "ALLREDUCE", 1_000_003),
            ("third", 5, 2, 4, "NONE", 65_536),
        ],
    ),
    "tiny_micro": (
        "MICRO",
        [
            ("first", 1, 1, 1, "ALLREDUCE", 1_000_003),
            ("second", 1, 1, 1, "REDUCESCATTER", 40_001),
            ("third", 1, 1, 1, "ALLGATHER", 1023),
            ("fourth", 1, 1, 1, "ALLTOALL", 70_000),
        ],
    ),
    "tiny_equal": ("MICRO", [("only", 1, 1, 1, "ALLREDUCE", 1024)]),
}


def write_workload(folder: Path, name: str) -> None:
    """The workload of a name: a tiny one, or `micro_COLLECTIVE_BYTES`."""
    if name in TINY:
        parallelism, layers = TINY[name]
    else:
        _, collective, size = name.split("_")
        parallelism, layers = "MICRO", [("L0", 1, 1, 1, collective, int(size))]
    keys = ("name", "fwd", "ig", "wg", "collective", "size")
    lines = [LAYER.format(**dict(zip(keys, layer, strict=True))) for layer in layers]
    text = "\n".join([parallelism, str(len(lines)), *lines])
    (folder / f"{name}.txt").write_text(text + "\n")


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def workloads(tmp_path: Path) -> Path:
    folder = tmp_path / "workloads"
    folder.mkdir()
    for name in {row["workload"] for row in read(SAMPLE)}:
        write_workload(folder, name)
    return folder


def reason(row: dict[str, str]) -> str:
    """The refusal that a row of the sample deserves."""
    if row["backend"] == "aware":
        return "unsupported-backend"
    if row["failure"].startswith("endpoint"):
        return "zero-endpoint-delay"
    return "deadlock" if row["failure"] == "deadlock" else "bad-setting"


def test_the_sample_of_real_runs_comes_out_exactly(tmp_path: Path, workloads: Path) -> None:
    out = tmp_path / "out.csv"
    run_cases(SAMPLE, workloads, out)
    rows = read(out)
    assert [row["case_id"] for row in rows] == [row["case_id"] for row in read(SAMPLE)]
    for row in rows:
        if row["valid"] == "1" and row["backend"] == "unaware":
            finish = int(float(row["finish_cycles_max"]))
            assert row["artist_error"] == "", row["case_id"]
            assert row["artist_finish_cycles_max"] == str(finish), row["case_id"]
            exposed = finish - int(float(row["compute_cycles_sys0"]))
            assert row["artist_exposed_comm_cycles"] == str(exposed), row["case_id"]
        else:
            assert row["artist_error"] == reason(row), row["case_id"]
            assert row["artist_finish_cycles_max"] == row["artist_exposed_comm_cycles"] == ""
        assert float(row["artist_wall_s"]) >= 0


def test_results_of_an_earlier_run_are_replaced(tmp_path: Path, workloads: Path) -> None:
    once, twice = tmp_path / "once.csv", tmp_path / "twice.csv"
    run_cases(SAMPLE, workloads, once)
    run_cases(once, workloads, twice)
    assert list(read(once)[0]) == list(read(twice)[0])
    assert list(read(twice)[0])[-4:] == list(RESULTS)


def row_like(**changes: str) -> dict[str, str]:
    first = next(row for row in read(SAMPLE) if row["case_id"] == "G0002")
    return {**first, **changes}


def result(tmp_path: Path, workloads: Path, **changes: str) -> dict[str, str]:
    cases, out = tmp_path / "cases.csv", tmp_path / "out.csv"
    write(cases, [row_like(**changes)])
    run_cases(cases, workloads, out)
    return read(out)[0]


def test_injection_scale_stretches_the_endpoint_delay(tmp_path: Path, workloads: Path) -> None:
    scaled = result(tmp_path, workloads, endpoint_delay="7", injection_scale="2.55")
    plain = result(tmp_path, workloads, endpoint_delay="17")
    assert scaled["artist_finish_cycles_max"] == plain["artist_finish_cycles_max"]


def test_comm_scale_changes_nothing_as_in_astra_sim(tmp_path: Path, workloads: Path) -> None:
    scaled = result(tmp_path, workloads, comm_scale="3")
    assert scaled["artist_finish_cycles_max"] == row_like()["finish_cycles_max"].removesuffix(".0")


@pytest.mark.parametrize(
    "changes",
    [
        {"topology": "Torus"},
        {"npus_count": "2|4"},
        {"bandwidth": "0"},
        {"all_reduce_impl": ""},
        {"preferred_dataset_splits": "0"},
        {"endpoint_delay": "-1"},
        {"num_passes": "0"},
    ],
)
def test_settings_that_crash_astra_sim_are_refused(
    tmp_path: Path, workloads: Path, changes: dict[str, str]
) -> None:
    assert result(tmp_path, workloads, **changes)["artist_error"] == "bad-setting"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"backend": "real"}, "cases.csv:2: backend is 'real', expected one of unaware, aware"),
        ({"num_passes": "two"}, "cases.csv:2: num_passes is 'two', expected a whole number"),
        ({"endpoint_delay": "1.5"}, "cases.csv:2: endpoint_delay is '1.5'"),
        ({"npus_count": "4|"}, "cases.csv:2: npus_count is '4|'"),
        ({"latency": "1e3ns"}, "cases.csv:2: latency is '1e3ns', expected nanoseconds"),
        ({"comm_scale": ""}, "cases.csv:2: comm_scale is '', expected a number"),
        ({"workload": "absent"}, "absent.txt"),
    ],
)
def test_an_unreadable_value_is_refused(
    tmp_path: Path, workloads: Path, changes: dict[str, str], words: str
) -> None:
    with pytest.raises(TraceError) as caught:
        result(tmp_path, workloads, **changes)
    assert words in str(caught.value)
    assert not (tmp_path / "out.csv").exists()


def test_missing_columns_are_all_named(tmp_path: Path, workloads: Path) -> None:
    cases = tmp_path / "cases.csv"
    write(cases, [{"workload": "tiny_equal"}])
    with pytest.raises(TraceError) as caught:
        run_cases(cases, workloads, tmp_path / "out.csv")
    assert "cases.csv:1: no column backend, num_passes" in str(caught.value)
    assert all(column in str(caught.value) for column in COLUMNS)


def test_a_row_of_another_length_is_refused(tmp_path: Path, workloads: Path) -> None:
    cases = tmp_path / "cases.csv"
    write(cases, [row_like()])
    cases.write_text(cases.read_text() + "G1,1,short\n")
    with pytest.raises(TraceError, match=r"cases\.csv:3: the row lacks fields or has more"):
        run_cases(cases, workloads, tmp_path / "out.csv")


def test_an_output_that_cannot_be_written_leaves_nothing(tmp_path: Path, workloads: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        run_cases(SAMPLE, workloads, tmp_path / "absent" / "out.csv")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(ConfigError, match="cannot be written"):
        run_cases(SAMPLE, workloads, folder)
    assert sorted(x.name for x in tmp_path.iterdir()) == ["folder", "workloads"]
