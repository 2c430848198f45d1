"""Settings that are known to make runs 100 times as long: said before they start.

Measured on 5,000 drawn jobs at load .9 on 512 GPUs of `leaf-spine`, beside `fifo` without
contention (.4 s): `lookahead(fifo)` 109 times as long, `phase` with `placement=any` more than 235.
`phase`, `fluid` and `mean` alone take 20 to 70 times as long; on the 500 jobs of the default trace
on four racks 2.5 times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from artist.config import Scenario

LONG_S = 10.0
"""Shorter runs end before their warning is read."""


class _Slow(NamedTuple):
    sentence: str
    per_job_s: float


def slow_settings(scenarios: Iterable[Scenario], times: float = 1) -> list[str]:
    """A sentence for each setting that makes these scenarios, each run so many times, very long."""
    from artist.config import ABOUT_THE_TRACE

    jobs: dict[str, int] = {}
    took_s: dict[str, float] = {}
    for scenario in scenarios:
        for slow in _of_one(scenario):
            key = repr([getattr(scenario, name) for name in ("trace", "jobs", *ABOUT_THE_TRACE)])
            if key not in jobs:
                jobs[key] = _jobs(scenario)
            seconds = times * slow.per_job_s * jobs[key]
            took_s[slow.sentence] = took_s.get(slow.sentence, 0.0) + seconds
    return [sentence for sentence, seconds in took_s.items() if seconds > LONG_S]


def _jobs(scenario: Scenario) -> int:
    """How many jobs a scenario has; none if its trace cannot be read, which the run will say."""
    from artist.errors import ArtistError
    from artist.run.traces import read_trace_of

    try:
        count = len(read_trace_of(scenario).jobs)
    except ArtistError:
        return 0
    return count if scenario.jobs is None else min(count, scenario.jobs)


def _of_one(scenario: Scenario) -> Iterator[_Slow]:
    if scenario.backend.startswith("astra-"):
        yield _Slow(
            f"slow: backend {scenario.backend.partition(':')[0]} runs ASTRA-sim for every new model"
            " and placement, up to 85 s each on 1,024 GPUs; analytical gives the same answers in "
            "2 ms",
            85.0,
        )
    if "lookahead(" in scenario.policy:
        yield _Slow(
            "slow: lookahead tries every decision in a copy of the run, which takes about 100 "
            "times as long as the policy inside",
            0.009,
        )
    if scenario.contention in ("phase", "fluid") and _scatters(scenario):
        yield _Slow(
            f"slow: contention {scenario.contention} with scattered jobs takes hundreds of times "
            "as long as none; mean takes a tenth of that",
            0.019,
        )
    elif scenario.contention != "none":
        yield _Slow(
            f"slow: contention {scenario.contention} takes 20 to 70 times as long as none on "
            "thousands of jobs, 3 times on hundreds",
            0.005,
        )


def _scatters(scenario: Scenario) -> bool:
    """Whether jobs take any free GPUs, so that nearly all of them share links."""
    options = scenario.policy_options
    host = options.get("host") or {}
    any_gpus = "any" in (options.get("placement"), host.get("placement"))
    return any_gpus or "random-placement" in scenario.policy
