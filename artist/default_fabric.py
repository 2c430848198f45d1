"""Which fabric is meant where none is named: one default for scenarios, single queries and Python.

A run whose trace imitates a paper's workload has that paper's fabric. Everything else has a fabric
whose figures were measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

AUTO = "auto"
MEASURED_FABRIC = "a100"
"""The measured fabric whose machines have as many GPUs as those of a scenario."""
FABRIC_OF_TRACE = {"sensetime-batch-500": "dally2025", "sensetime-poisson-week": "dally2025"}
"""Built-in traces shaped like a paper's workload, and the fabric that imitates the paper."""


def default_fabric(settings: Mapping[str, Any]) -> str:
    """The fabric of scenario settings that name none."""
    return FABRIC_OF_TRACE.get(settings.get("trace", ""), MEASURED_FABRIC)
