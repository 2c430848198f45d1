"""Settings that are known to make runs 100 times as long: said before they start.

Measured on 5,000 drawn jobs at load .9 on 512 GPUs of `leaf-spine`, beside `fifo` without
contention (.4 s): `lookahead(fifo)` 109 times as long, `phase` with `placement=any` more than 235.
`phase`, `fluid` and `mean` alone take 20 to 70 times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from artist.config import Scenario


def slow_settings(scenarios: Iterable[Scenario]) -> list[str]:
    """A sentence for each setting of these scenarios that makes runs very long."""
    return list(dict.fromkeys(one for scenario in scenarios for one in _of_one(scenario)))


def _of_one(scenario: Scenario) -> Iterator[str]:
    if scenario.backend.startswith("astra-"):
        yield (
            f"slow: backend {scenario.backend.partition(':')[0]} runs ASTRA-sim for every new model"
            " and placement, up to 85 s each on 1,024 GPUs; analytical gives the same answers in "
            "2 ms"
        )
    if "lookahead(" in scenario.policy:
        yield (
            "slow: lookahead tries every decision in a copy of the run, which takes about 100 "
            "times as long as the policy inside"
        )
    if scenario.contention in ("phase", "fluid") and _scatters(scenario):
        yield (
            f"slow: contention {scenario.contention} with scattered jobs takes hundreds of times "
            "as long as none; mean takes a tenth of that"
        )


def _scatters(scenario: Scenario) -> bool:
    """Whether jobs take any free GPUs, so that nearly all of them share links."""
    options = scenario.policy_options
    host = options.get("host") or {}
    any_gpus = "any" in (options.get("placement"), host.get("placement"))
    return any_gpus or "random-placement" in scenario.policy
