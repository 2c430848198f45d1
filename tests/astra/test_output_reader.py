"""Does what ASTRA-sim prints give a complete result, or an error that says what is wrong?"""

from __future__ import annotations

import pickle

import pytest

from artist.astra.programs.ended_run import (
    IncompleteError,
    PrintedResult,
    parse_astra1,
    parse_astra2,
)
from artist.errors import BackendError

HEAD = "[2026-01-01 00:00:00.000] "
NOISE = f"{HEAD}[statistics] [info] sys[0], Wall time: 22240\n{HEAD}[system] [warning] Exiting\n"


def finished(rank: int, cycles: int = 22240, exposed: int = 240) -> str:
    return (
        f"{HEAD}[workload] [info] sys[{rank}] finished, {cycles} cycles, "
        f"exposed communication {exposed} cycles.\n"
    )


def test_slowest_npu_counts() -> None:
    text = finished(0) + NOISE + finished(1, 22250, 250)
    assert parse_astra2(text, 2) == PrintedResult(22250, 22000)


@pytest.mark.parametrize("text", ["", NOISE, finished(0)])
def test_npus_that_did_not_finish(text: str) -> None:
    with pytest.raises(IncompleteError, match="of 2 NPUs") as caught:
        parse_astra2(text, 2)
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301  # our own bytes
    assert str(copy) == str(caught.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (finished(0) + finished(0), "one NPU too many"),
        (finished(0) + finished(2), "one NPU too many"),
        (finished(0) + finished(1, 22240, 300), "different times"),
        (finished(0) + finished(1, 200, 300), "inconsistent"),
        (finished(0) + finished(1).replace("22240", "22e3"), "line 2 of its output is garbled"),
        (finished(0) + finished(1).replace("cycles.", "cycl"), "garbled"),
        (finished(0) + finished(1).replace("sys[1]", "sys[-1]"), "garbled"),
    ],
)
def test_garbled_output(text: str, why: str) -> None:
    with pytest.raises(BackendError, match=why):
        parse_astra2(text, 2)


COLUMNS = ",,fwd compute,workload finished at,total comp,total exposed comm\n"


def test_end_to_end_csv() -> None:
    text = COLUMNS + "conv1,artist,1.5,65.328000,52.884000,12.444000\nfc,artist,1.5,65.328000,\n"
    assert parse_astra1(text) == PrintedResult(65328, 52884)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no result"),
        (COLUMNS, "no result"),
        (COLUMNS.replace("total comp,", ",") + "a,b,1,2,3,4\n", "no single column 'total comp'"),
        (COLUMNS + "a,b,1,65.3,,12.4\n", "'' for 'total comp'"),
        (COLUMNS + "a,b,1\n", "'' for 'workload finished at'"),
        (COLUMNS + "a,b,1,nan,52.8,12.4\n", "'nan'"),
        (COLUMNS + "a,b,1,65.3,52.8,-12.4\n", "'-12.4'"),
        (COLUMNS + "a,b,1,65.3,52.8,2.4\n", "inconsistent"),
    ],
)
def test_garbled_csv(text: str, why: str) -> None:
    with pytest.raises(BackendError, match=why):
        parse_astra1(text)
