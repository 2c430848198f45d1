"""How every benchmark is measured: in CPU seconds, with a calibration loop beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from timing import cpu_s, unit_s


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give every benchmark the same clock: CPU seconds."""
    item.add_marker(pytest.mark.benchmark(timer=cpu_s))


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of generated traces."""
    return tmp_path_factory.mktemp("traces")


@pytest.fixture
def measure(benchmark: Any) -> Callable[..., Any]:
    """`measure(function, prepare=..., rounds=..., items=...)` times a function.

    `prepare` makes a new `function` for each round; this time does not count. `items` is the number
    of jobs, queries or rows that one round handles. The result is the least time of a round, or
    their `median` where rounds do different things. The least time of the calibration loop before
    and after goes into the results, because the machine may be busy for part of the time.
    """

    def measured(
        function: Callable[[], Any] | None = None,
        *,
        prepare: Callable[[], Callable[[], Any]] | None = None,
        rounds: int,
        items: int = 1,
        statistic: str = "min",
    ) -> Any:
        def setup() -> tuple[tuple[Callable[[], Any]], dict[str, Any]]:
            timed = prepare() if prepare is not None else function
            assert timed is not None
            return (timed,), {}

        before = unit_s()
        result = benchmark.pedantic(lambda run: run(), setup=setup, rounds=rounds, warmup_rounds=0)
        benchmark.extra_info["unit_s"] = min(before, unit_s())
        benchmark.extra_info["items"] = items
        benchmark.extra_info["statistic"] = statistic
        return result

    return measured
