"""Are logs of nccl-tests read, or refused with an error that names the line?"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from artist.calibrate.nccl_log import read_log
from artist.errors import TraceError

# An older format: no root, an error instead of a count.
OLD = """\
# nThread 1 nGpus 2 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
#   Rank  0 Pid  12979 on    Orlando device  0 [0x45] GeForce GTX 1080
#   Rank  1 Pid  12979 on    Orlando device  1 [0xc4] GeForce GTX 1080
#
#                                 out-of-place                  in-place
#       size   count  type redop  time algbw busbw error    time algbw busbw error
#        (B)    (elements)        (us)  (GB/s)  (GB/s)      (us)  (GB/s)  (GB/s)
           8         2 float sum  25.34  0.00  0.00 0e+00  25.23  0.00  0.00 0e+00
    33554432   8388608 float sum  39235  0.86  0.86 4e-07  39141  0.86  0.86 4e-07
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.43
"""


def test_a_whole_log(write_log: Callable[..., Path]) -> None:
    log = read_log(write_log(hosts=(8, 8)))
    assert (log.operation, log.ranks, log.hosts) == ("all_reduce", 16, (8, 8))
    assert len(log.rows) == 21
    first = log.rows[0]
    assert (first.size_bytes, first.count, first.type, first.reduction) == (
        1024,
        256,
        "float",
        "sum -1",
    )
    assert len(log.points()) == 42
    assert log.digest.startswith("sha256:")


def test_an_old_log(tmp_path: Path) -> None:
    path = tmp_path / "old.log"
    path.write_text(OLD)
    log = read_log(path)
    assert (log.operation, log.ranks) == ("all_reduce", 2)
    assert log.points()[-1] == (33554432.0, 39141.0)


def test_a_log_that_does_not_name_its_program(write_log: Callable[..., Path]) -> None:
    path = write_log(lambda text: text.replace("_perf", ""), operation="alltoall")
    with pytest.raises(TraceError, match=r":15: the log does not name its program.*--operation"):
        read_log(path)
    assert read_log(path, "alltoall").operation == "alltoall"


@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "reduce_scatter", "alltoall"])
def test_the_siblings(write_log: Callable[..., Path], operation: str) -> None:
    assert read_log(write_log(operation=operation)).operation == operation


def test_an_all_reduce_is_known_by_its_bandwidths(write_log: Callable[..., Path]) -> None:
    path = write_log(lambda text: text.replace("all_reduce_perf", "the test"))
    assert read_log(path).operation == "all_reduce"


def _drop(pattern: str) -> Callable[[str], str]:
    return lambda text: "\n".join(x for x in text.split("\n") if not re.search(pattern, x))


def _row(number: int, change: Callable[[list[str]], list[str]]) -> Callable[[str], str]:
    """Change the cells of the row in that line."""

    def changed(text: str) -> str:
        lines = text.split("\n")
        lines[number - 1] = " ".join(change(lines[number - 1].split()))
        return "\n".join(lines)

    return changed


def _cell(index: int, value: str) -> Callable[[list[str]], list[str]]:
    return lambda cells: [*cells[:index], value, *cells[index + 1 :]]


# The rows of a log on 8 GPUs are lines 17 to 37; line 14 is empty, 15 names the columns.
BAD: dict[str, tuple[Callable[[str], str], str]] = {
    "empty": (lambda text: "", r"run.log: the file is empty"),
    "not a log": (lambda text: "hello\n", r":1: no line '# size count type"),
    "cut off in a row": (lambda text: text[: text.index("  131072 ") + 60], r":24: \d columns"),
    "cut off after a row": (lambda text: text[: text.index("# Out of")], r":37: no '# Avg bus"),
    "cut off before the rows": (lambda text: text[: text.index("  1024 ")], r":17: no result rows"),
    "ranks cut off": (_drop(r"# +Rank"), r":7: 0 '# Rank' lines"),
    "a rank missing": (_drop(r"Rank +3 "), r":14: rank 3 is missing"),
    "a rank twice": (
        lambda text: text.replace("Rank  5", "Rank  4"),
        r":10: rank 4 is listed twice",
    ),
    "hosts differ": (
        lambda text: text.replace("Pid 4007 on node00", "Pid 4007 on node01"),
        r":15: hosts have 7, 1 ranks",
    ),
    "two runs": (lambda text: text + text, r":56: a second run begins here"),
    "two programs": (
        lambda text: text.replace("concluded: all_reduce", "concluded: all_gather"),
        r":41: names all_gather and all_reduce",
    ),
    "another program": (
        lambda text: text.replace("all_reduce", "sendrecv"),
        r":41: operation is 'sendrecv', expected all_reduce, all_gather",
    ),
    "two types": (_row(30, _cell(2, "half")), r":30: type and operation are half sum -1, before"),
    "sizes fall": (_row(30, _cell(0, "1024")), r":30: size 1024 after 4194304"),
    "unknown type": (_row(20, _cell(2, "floot")), r":20: type is 'floot'"),
    "no number": (_row(20, _cell(5, "fast")), r":20: time is 'fast'"),
    "no time at all": (_row(20, _cell(5, "0.00")), r":20: time is '0.00', expected .* above 0"),
    "negative": (_row(20, _cell(6, "-3")), r":20: algbw is '-3'"),
    "wrong results": (_row(22, _cell(8, "17")), r":22: 17 results are wrong"),
    "out of bounds": (
        lambda text: text.replace("values : 0 OK", "values : 3 FAILED"),
        r":38: 3 values out of bounds",
    ),
    "faster than its size": (_row(35, _cell(6, "9999.00")), r":35: .* impossible"),
    "another operation's bandwidth": (_row(35, lambda c: [*c[:7], c[6], *c[8:]]), r":35: busbw"),
    "count against size": (_row(25, _cell(1, "7")), r":25: 7 elements of float are not 262144"),
    "a failure": (
        lambda text: text.replace("# Out of", "node01: Test NCCL failure common.cu:5\n# Out of"),
        r":38: the run failed",
    ),
    "other columns": (
        lambda text: text.replace("busbw #wrong", "buswb #wrong"),
        r":15: columns are",
    ),
}


@pytest.mark.parametrize("damage", BAD)
def test_bad_logs_are_refused_with_line_and_reason(
    write_log: Callable[..., Path], damage: str
) -> None:
    change, message = BAD[damage]
    with pytest.raises(TraceError, match=message):
        read_log(write_log(change))


def test_the_operation_given_must_be_that_of_the_log(write_log: Callable[..., Path]) -> None:
    with pytest.raises(TraceError, match=r"operation is 'all_reduce', expected alltoall"):
        read_log(write_log(), "alltoall")
