"""How much slower is a job that reads its tables from another region?"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from regions_and_tables import DATA, times

from artist.results.result import Result

Run = Callable[..., Result]
SLOW = {"data_options": {"remote": "slow"}}
FULL = "full,0,4,any,1000,1.0,"
BIG = DATA + "big,,40GB,east\nlarge,,40GB,east\n"


def test_a_job_that_needs_less_than_its_share_is_not_slowed(run: Run) -> None:
    """10 GB in 20 iterations of a second: half of the gigabyte per second."""
    result = run(FULL, "late,1,4,any,20,1.0,ads", **SLOW)
    assert times(result, "finish_s")["late"] == 21
    assert result.summary["data_copies"] == 0


def test_an_iteration_takes_as_long_as_its_bytes_on_the_link(run: Run) -> None:
    """40 GB in 20 iterations: 2 s for each instead of 1 s."""
    result = run(FULL, "late,1,4,any,20,1.0,big", data=BIG, **SLOW)
    assert times(result, "finish_s")["late"] == 41
    sources = set(result.tables["placements"]["source"])
    assert any(source.endswith("+remote-data") for source in sources)


def test_two_readers_of_one_region_halve_each_other(run: Run) -> None:
    rows = [f"{name},1,4,any,20,1.0,{table}" for name, table in (("b", "big"), ("c", "large"))]
    result = run(FULL, *rows, data=BIG, **SLOW)
    assert times(result, "finish_s") == {"full": 1000, "b": 81, "c": 81}


def test_a_reader_that_ends_gives_its_share_back(run: Run) -> None:
    """Both at 4 s per iteration until b has done 10 (41 s); c does its last 10 at 2 s: 61 s."""
    data = BIG + "half,,20GB,east\n"
    rows = ("b,1,4,any,10,1.0,half", "c,1,4,any,20,1.0,large")
    result = run(FULL, *rows, data=data, **SLOW)
    assert times(result, "finish_s")["b"] == 41
    assert times(result, "finish_s")["c"] == 61


def test_a_job_beside_its_tables_reads_nothing_from_elsewhere(run: Run) -> None:
    result = run("a,1,4,any,20,1.0,big", data=BIG, **SLOW)
    assert times(result, "finish_s")["a"] == 21


def test_gpus_beside_the_tables_read_nothing_from_elsewhere(run: Run) -> None:
    """10 of 14 GPUs lie elsewhere: 10/14 of 2 GB leave east in an iteration, at a GB per second."""
    result = run("a,0,14,any,20,1.0,big", data=BIG, **SLOW)
    assert times(result, "finish_s")["a"] == pytest.approx(20 * 2 * 10 / 14)
