"""Broken files of every format end in a `TraceError` or `ConfigError`, and soon.

A small valid file is mutated: bytes are flipped, cut or doubled; cells, columns and lines are
swapped; numbers become absurd. No other error may occur. If a file is read all the same, its
jobs must be valid, and the trace must be writable and readable again.
"""

import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from breaking import BYTE_MUTATIONS
from foreign_samples import FILES
from hypothesis import given
from hypothesis import strategies as st

from artist.errors import ConfigError, TraceError
from artist.trace.native import plain_csv as plain
from artist.trace.native.choices import Fractional, Rules
from artist.trace.native.table import MAX_GPUS
from artist.trace.read import read_trace
from artist.units import MAX_TIME_S

RULES = Rules(fractional=Fractional.ROUND_UP)
LIMIT_S = 20
CASES = int(os.environ.get("FUZZ_CASES", "4000"))
SEED = int(os.environ.get("FUZZ_SEED", "3"))


def swap_columns(data: bytes, rng: random.Random) -> bytes:
    mark = b"\t" if b"\t" in data else b"," if data.count(b",") > 3 else b" "
    rows = [line.split(mark) for line in data.split(b"\n")]
    first, second = (rng.randrange(max(map(len, rows))) for _ in range(2))
    chosen = rows if rng.random() < 0.5 else [rng.choice(rows)]
    for row in chosen:
        if max(first, second) < len(row):
            row[first], row[second] = row[second], row[first]
    return b"\n".join(mark.join(row) for row in rows)


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [
    *BYTE_MUTATIONS, swap_columns,
]  # fmt: skip


@contextmanager
def soon() -> Iterator[None]:
    """A reader that takes too long fails."""

    def late(signum: int, frame: object) -> None:
        raise AssertionError(f"not read within {LIMIT_S} s")

    previous = signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def check(path: Path, data: bytes, format_: str | None) -> bool:
    """Read a file that may be broken. Returns whether it held a trace."""
    path.write_bytes(data)
    try:
        with soon():
            trace = read_trace(path, format_=format_, rules=RULES)
    except (TraceError, ConfigError) as error:
        assert str(path) in str(error)
        assert "\n" not in str(error)
        return False
    assert trace.jobs
    assert len({job.id for job in trace.jobs}) == len(trace.jobs)
    for index, job in enumerate(trace.jobs):
        assert 1 <= job.gpus <= MAX_GPUS
        assert 0 <= job.arrival_s <= MAX_TIME_S
        assert 0 < job.ideal_s <= MAX_TIME_S * (1 + 1e-12) or (trace.filled and not job.compute_s)
        assert trace.place(index).startswith(str(path))
    return True


def campaign(folder: Path, cases: int, seed: int) -> int:
    """Reads `cases` broken files, of each format in turn; returns how many could still be read."""
    rng = random.Random(seed)
    good = 0
    for case in range(cases):
        format_, (name, text) = list(FILES.items())[case % len(FILES)]
        data = text.encode()
        for _ in range(rng.choice((1, 1, 2, 4))):
            data = rng.choice(MUTATIONS)(data, rng) or b" "
            if len(data) < 3 or not any(mark in data for mark in (b",", b" ", b"\n")):
                break
            if sum(data.count(mark) for mark in (b"\t", b",", b" ", b"\n")) < 2:
                break
        forced = format_ if rng.random() < 0.2 else None
        try:
            good += check(folder / name, data, forced)
        except Exception as error:
            raise AssertionError(f"case {case}, seed {seed}: {format_} {data!r}") from error
    return good


def test_a_thousand_broken_files(tmp_path: Path) -> None:
    assert 0 < campaign(tmp_path, 1000, seed=1) < 1000


def test_broken_files_read_fast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain, "FROM_BYTES", 0)
    assert 0 < campaign(tmp_path, 500, seed=2) < 500


@pytest.mark.slow
@pytest.mark.parametrize("fast", [False, True])
def test_many_broken_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fast: bool) -> None:
    monkeypatch.setattr(plain, "FROM_BYTES", 0 if fast else 2**62)
    cases = CASES // 2
    assert 0 < campaign(tmp_path, cases, seed=SEED + fast) < cases


@given(data=st.data(), format_=st.sampled_from(sorted(FILES)))
def test_any_cell_may_hold_anything(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, format_: str
) -> None:
    name, text = FILES[format_]
    mark = next(mark for mark in (",", "\t", " ") if mark in text)
    words = text.split(mark)
    at = data.draw(st.integers(0, len(words) - 1))
    words[at] = data.draw(
        st.text(max_size=8) | st.floats().map(repr) | st.integers().map(str) | st.dates().map(str)
    )
    broken = mark.join(words).encode("utf-8", "surrogatepass")
    check(tmp_path_factory.mktemp("cell") / name, broken, format_)


@given(data=st.binary(max_size=200), format_=st.sampled_from(sorted(FILES)))
def test_any_bytes_under_any_name(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, format_: str
) -> None:
    check(tmp_path_factory.mktemp("bytes") / "t", data, format_)
