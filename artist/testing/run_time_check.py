"""Does a policy decide by the lengths of jobs, which no scheduler can know?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest

from artist.cluster.tree import nested
from artist.contract import Decision, Policy, Wait
from artist.engine.simulator import Simulator
from artist.errors import PolicyError
from artist.policies.table import POLICIES
from artist.testing.level_rates import LevelRates
from artist.units import Tick, seconds, ticks
from artist.workload.job import Job

_SHORT = (3000, 6000)
"""Iterations of 1 s of the first jobs: others can start when they finish."""

_LENGTHS = [2**17, 2**18, 2**19, 2**20, 2**21, 2**22]
"""Those of the long jobs; in the other trace their order is the opposite."""

_NOTHING_KNOWN_S = 100_000.0
"""No long job finishes before it, and several leases end."""


def check_run_times(make: Callable[[], Policy]) -> None:
    """Refuse a policy that decides by the lengths of jobs and does not say that it knows them.

    Raises:
        PolicyError: says when it first does.
    """
    policy = make()
    if _says_that_it_knows(policy):
        return
    seen = decides_by_run_times(make)
    if seen is not None:
        raise PolicyError(
            f"the policy knows run times: its decision at {seconds(seen):g} s depends on the "
            "iterations of jobs, though none has finished; rank by what a scheduler sees (service, "
            f"waits, GPUs), or say knows_run_times = True in class {type(policy).__name__}"
        )


def decides_by_run_times(make: Callable[[], Policy]) -> Tick | None:
    """When a policy first decides otherwise on traces that differ only in what nobody can know.

    Two traces have the same short jobs, and long ones that differ only in their iterations; all
    are rigid, then all are elastic. Until a long job finishes, no scheduler sees a difference.
    None: nor does this policy.
    """
    for elastic in (False, True):
        rising, falling = (
            _ignorant(make(), counts, elastic=elastic) for counts in (_LENGTHS, _LENGTHS[::-1])
        )
        for one, other in zip_longest(rising, falling):
            if one != other:
                return min(noted[0] for noted in (one, other) if noted is not None)
    return None


def _ignorant(
    policy: Policy, counts: Sequence[int], *, elastic: bool
) -> list[tuple[Tick, Sequence[Decision]]]:
    """What a policy decides before a long job finishes; the words of `Wait` are left out."""
    tree = nested(("machine", "rack", "network"), [[4, 4]])
    jobs = [
        Job(
            id=f"job-{index}",
            arrival_s=300.0 * index,
            gpus=gpus,
            gpus_min=1 if elastic else gpus,
            model="resnet50",
            iterations=iterations,
            compute_s=1.0,
        )
        for index, (gpus, iterations) in enumerate(
            zip((4, 4, 2, 8, 2, 4, 2, 4), (*_SHORT, *counts), strict=True)
        )
    ]
    simulator = Simulator(
        tree,
        jobs,
        LevelRates(tree),
        lease=policy.lease,
        jobs_per_gpu=getattr(policy, "jobs_per_gpu", 1),
    )
    decided: list[tuple[Tick, Sequence[Decision]]] = []
    while (view := simulator.next_question(policy)) is not None:
        if view.now >= ticks(_NOTHING_KNOWN_S):
            break
        answer = list(policy.decide(view))
        simulator.answer(answer)
        told: list[Decision] = [one for one in answer if not isinstance(one, Wait)]
        if told:
            decided.append((view.now, told))
    return decided


def _says_that_it_knows(policy: object) -> bool:
    """Whether its class says so, or the table of a class of artist, or the policy inside it."""
    kind = type(policy)
    target = f"{kind.__module__}:{kind.__qualname__}"
    of_table = any(row.knows_run_times and row.target == target for row in POLICIES)
    stated = getattr(policy, "knows_run_times", False) is True
    host = getattr(policy, "host", None)
    return stated or of_table or (host is not None and _says_that_it_knows(host))
