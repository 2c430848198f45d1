"""Trying an answer: a copy of the run goes on from the question until its jobs have finished.

No policy sees the future, so the copy forgets it: no other job arrives, and nothing leaves or
enters service. What is left is what the policy sees anyway. So a trial reveals nothing new to a
policy that knows run times. To other policies it would reveal when jobs finish.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from artist.contract import Decision, Fetch, Policy
from artist.units import Tick

if TYPE_CHECKING:
    from artist.engine.simulator import Simulator


def finishes(
    simulator: Simulator,
    answer: Sequence[Decision],
    policy: Policy,
    hidden: Collection[int] = (),
) -> Mapping[int, Tick]:
    """When each job in the system of a copy would finish, by handle; `simulator` has no future.

    The copy has no `hidden` jobs, which wait and which the policy does not see.

    Raises:
        PolicyError: the answer is invalid, or jobs are left over.
    """
    trial, policy = copied(simulator, policy)
    trial.forget_notices()
    trial.forget_waiting(hidden)
    # A trial has no data, as it has no gate.
    trial.answer([x for x in answer if not isinstance(x, Fetch)], type(policy).__name__)
    return {row.handle: row.finish for row in trial.run(policy).jobs}


def copied(simulator: Simulator, policy: Policy) -> tuple[Simulator, Policy]:
    """Copies of both, in one piece: a policy may hold states of jobs. They share facts."""
    shared = simulator.facts()
    text = io.BytesIO()
    _Pickler(text, shared).dump((simulator, policy))
    text.seek(0)
    both: tuple[Simulator, Policy] = _Unpickler(text, shared).load()
    return both


class _Pickler(pickle.Pickler):
    """Leaves facts out: what never changes, and what is known of it."""

    def __init__(self, text: io.BytesIO, shared: Sequence[object]) -> None:
        super().__init__(text, pickle.HIGHEST_PROTOCOL)
        self._numbers = {id(fact): number for number, fact in enumerate(shared)}

    def persistent_id(self, obj: Any) -> int | None:
        """The number of a fact; everything else is written."""
        return self._numbers.get(id(obj))


class _Unpickler(pickle.Unpickler):
    """Puts the facts back. What it reads was written just now, in memory."""

    def __init__(self, text: io.BytesIO, shared: Sequence[object]) -> None:
        super().__init__(text)
        self._shared = shared

    def persistent_load(self, pid: Any) -> object:
        """The fact, or what stands for it in a trial."""
        return for_trials(self._shared[pid])


def for_trials(fact: Any) -> object:
    """A fact as trials have it: what counts questions has another form, for uncounted ones."""
    twin = getattr(fact, "for_trials", None)
    return fact if twin is None else twin()
