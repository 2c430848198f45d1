"""How every benchmark is taken: CPU seconds, and the machine's unit measured beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from timing import cpu_s, unit_s


def pytest_itemcollected(item: pytest.Item) -> None:
    """Every benchmark has the same clock."""
    item.add_marker(pytest.mark.benchmark(timer=cpu_s))


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where generated traces lie."""
    return tmp_path_factory.mktemp("traces")


@pytest.fixture
def measure(benchmark: Any) -> Callable[..., Any]:
    """`measure(function, prepare=..., rounds=..., items=...)`: time it, keep the unit beside it.

    `prepare` makes a fresh `function` for each round, outside the clock; `items` is how many
    jobs (or queries, or rows) one round handles.
    """

    def measured(
        function: Callable[[], Any] | None = None,
        *,
        prepare: Callable[[], Callable[[], Any]] | None = None,
        rounds: int,
        items: int = 1,
    ) -> Any:
        def setup() -> tuple[tuple[Callable[[], Any]], dict[str, Any]]:
            chosen = prepare() if prepare is not None else function
            assert chosen is not None
            return (chosen,), {}

        before = unit_s()
        result = benchmark.pedantic(lambda run: run(), setup=setup, rounds=rounds, warmup_rounds=0)
        benchmark.extra_info["unit_s"] = min(before, unit_s())
        benchmark.extra_info["items"] = items
        return result

    return measured
