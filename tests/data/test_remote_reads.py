"""How much slower is a job that reads its tables from another region?"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from regions_and_tables import DATA, times

from artist.results.result import Result

Run = Callable[..., Result]
SLOW = {"data_options": {"remote": "slow"}}
FULL = "full,0,4,any,1000,1.0,"
BIG = DATA + "big,,40GB,east\nlarge,,40GB,east\nhalf,,20GB,east\n"


@pytest.mark.parametrize(
    ("rows", "finish_s"),
    [
        # 10 GB in 20 iterations of a second: half of the gigabyte per second.
        ([FULL, "late,1,4,any,20,1.0,ads"], {"late": 21}),
        # 40 GB in 20 iterations: 2 s for each instead of 1 s.
        ([FULL, "late,1,4,any,20,1.0,big"], {"late": 41}),
        ([FULL, "b,1,4,any,20,1.0,big", "c,1,4,any,20,1.0,large"], {"b": 81, "c": 81}),
        # Both at 4 s per iteration until b has done 10 (41 s). Then c does its last 10 at 2 s.
        ([FULL, "b,1,4,any,10,1.0,half", "c,1,4,any,20,1.0,large"], {"b": 41, "c": 61}),
        (["a,1,4,any,20,1.0,big"], {"a": 21}),
    ],
    ids=[
        "less than its share",
        "its bytes on the link",
        "two readers halve each other",
        "one that ends gives its share back",
        "in the region of its table",
    ],
)
def test_an_iteration_takes_at_least_as_long_as_its_bytes_on_the_link(
    run: Run, rows: list[str], finish_s: dict[str, float]
) -> None:
    result = run(*rows, data=BIG, **SLOW)
    assert times(result, "finish_s") == finish_s | ({"full": 1000} if FULL in rows else {})
    assert result.summary["data_copies"] == 0
    sources = result.tables["placements"]["source"]
    reads = max(finish_s.values()) > 21
    assert any(source.endswith("+remote-data") for source in sources) == reads


def test_gpus_in_the_region_of_the_tables_read_nothing_from_elsewhere(run: Run) -> None:
    """10 of 14 GPUs lie elsewhere: 10/14 of 2 GB leave east in an iteration, at a GB per second."""
    result = run("a,0,14,any,20,1.0,big", data=BIG, **SLOW)
    assert times(result, "finish_s")["a"] == pytest.approx(20 * 2 * 10 / 14)


@pytest.mark.parametrize("policy", ["mast", "federated"])
def test_mast_waits_for_no_copy_where_jobs_read_from_elsewhere(run: Run, policy: str) -> None:
    """No region holds both tables. In east 10 GB are missing, in north 40."""
    result = run("a,0,2,any,20,1.0,big logs", data=BIG, policy=policy, **SLOW)
    assert times(result, "finish_s")["a"] == pytest.approx(20)
    assert result.tables["placements"]["placement"] == ["0:2"]
