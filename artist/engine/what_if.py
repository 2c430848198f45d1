"""Trials of answers: a copy of the run goes on from the question until its jobs have finished.

No policy may see the future, so the copy has none: no other job arrives, and nothing leaves or
enters service. A trial then depends only on what the question shows and on run times. So it reveals
nothing new to a policy that knows run times; to others it would reveal when jobs finish.
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
    """When each job in the system would finish after an answer, by handle.

    `simulator` has no future (`Simulator.without_future`). `hidden` jobs wait but are not shown to
    the policy, so the copy is without them.

    Raises:
        PolicyError: the answer is invalid, or jobs are left waiting at the end.
    """
    trial, policy = copied(simulator, policy)
    trial.forget_notices()
    trial.forget_waiting(hidden)
    # A trial has no gate, and so no data to fetch.
    trial.answer([x for x in answer if not isinstance(x, Fetch)], type(policy).__name__)
    return {row.handle: row.finish for row in trial.run(policy).jobs}


def copied(simulator: Simulator, policy: Policy) -> tuple[Simulator, Policy]:
    """Copies of both, made together since a policy may hold states of jobs. They share facts."""
    shared = simulator.facts()
    text = io.BytesIO()
    _Pickler(text, shared).dump((simulator, policy))
    text.seek(0)
    both: tuple[Simulator, Policy] = _Unpickler(text, shared).load()
    return both


class _Pickler(pickle.Pickler):
    """Pickles everything but facts (`Simulator.facts`), which it replaces by numbers."""

    def __init__(self, text: io.BytesIO, shared: Sequence[object]) -> None:
        super().__init__(text, pickle.HIGHEST_PROTOCOL)
        self._numbers = {id(fact): number for number, fact in enumerate(shared)}

    def persistent_id(self, obj: Any) -> int | None:
        """The number of a fact; None for everything else, which is pickled."""
        return self._numbers.get(id(obj))


class _Unpickler(pickle.Unpickler):
    """Puts the facts back. It only reads what `_Pickler` has just written in memory."""

    def __init__(self, text: io.BytesIO, shared: Sequence[object]) -> None:
        super().__init__(text)
        self._shared = shared

    def persistent_load(self, pid: Any) -> object:
        """The fact of a number, or what stands for it in a trial."""
        return for_trials(self._shared[pid])


def for_trials(fact: Any) -> object:
    """A fact for use in trials: itself, or the twin of a fact that counts questions."""
    twin = getattr(fact, "for_trials", None)
    return fact if twin is None else twin()
