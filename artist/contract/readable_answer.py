"""Checks of an answer that need neither the jobs nor the cluster: does it hold decisions?

An answer may hold anything, so decisions stay `Any` here. `issubclass` tells their kind: after
`isinstance`, mypyc would trust that their fields have the types that the class declares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from artist.cluster.placement import placement_flaw
from artist.contract import (
    LONGEST_REASON,
    WAIT_CAUSES,
    Decision,
    Fetch,
    Hold,
    Migrate,
    Preempt,
    SetBatch,
    Start,
    Turn,
    Wait,
    Wake,
)
from artist.errors import PolicyError, shortened
from artist.workload.goodput import Batch

_DECISIONS = (Start, Preempt, Migrate, Hold, SetBatch, Wait, Wake, Fetch)
_ON_GPUS = (Start, Migrate)
_HANDLE_OR_NONE = (int, type(None))


def readable(answer: Any, name: Callable[[int], str]) -> Sequence[Decision]:
    """The decisions of an answer, which may be any iterable.

    `name` gives the name of a job in messages, by its handle.

    Raises:
        PolicyError: the answer holds something other than decisions, or a decision has a field of
            the wrong type.
    """
    decisions = answer if type(answer) is list else _listed(answer)
    for decision in decisions:
        kind = type(decision)
        if not issubclass(kind, _DECISIONS):
            raise PolicyError(f"{decision!r} is not a decision")
        if issubclass(kind, Wake):
            if type(decision.at) is not int:
                raise PolicyError(f"wake-up at tick {decision.at}, expected a whole number")
            continue
        if type(decision.handle) is not int:
            # Not `==`: 0.0 and False would pass for job 0.
            raise PolicyError(f"{shortened(decision)} names no job, expected a handle")
        if issubclass(kind, _ON_GPUS) and (wrong := placement_flaw(decision.placement)):
            raise PolicyError(f"{name(decision.handle)}: {decision.placement} {wrong}")
        if issubclass(kind, _ON_GPUS) and type(decision.beside) not in _HANDLE_OR_NONE:
            raise PolicyError(
                f"{name(decision.handle)} beside {shortened(decision.beside)}, expected the handle "
                "of a job"
            )
        if issubclass(kind, Fetch):
            _check_regions(decision, name)
        elif issubclass(kind, SetBatch):
            _check_batch(decision, name)
        elif not issubclass(kind, Start):
            _check_words(decision, kind, name)
    return decisions


def _listed(answer: Any) -> list[Any]:
    try:
        decisions = iter(answer)
    except TypeError:
        raise PolicyError(f"{shortened(answer)} is not a list of decisions") from None
    return list(decisions)


def _check_regions(fetch: Any, name: Callable[[int], str]) -> None:
    if type(fetch.regions) is not tuple or any(type(x) is not int for x in fetch.regions):
        raise PolicyError(
            f"{name(fetch.handle)}: tables fetched to {shortened(fetch.regions)}, expected a tuple "
            "of regions"
        )


def _check_batch(decision: Any, name: Callable[[int], str]) -> None:
    batch = decision.batch
    if type(batch) is not Batch or any(type(part) is not int for part in batch):
        raise PolicyError(
            f"{name(decision.handle)}: batch {shortened(batch)}, expected a Batch of whole numbers"
        )


def _check_words(decision: Any, kind: type, name: Callable[[int], str]) -> None:
    """Check reasons, and the ticks of a hold."""
    reason = decision.reason
    if issubclass(kind, Wait):
        if type(reason) is not str or len(reason) > LONGEST_REASON:
            raise PolicyError(
                f"{name(decision.handle)} waits because of {shortened(reason)}, expected at most "
                f"{LONGEST_REASON} characters"
            )
        if type(decision.cause) is not str or decision.cause not in WAIT_CAUSES:
            raise PolicyError(
                f"{name(decision.handle)} waits with cause {shortened(decision.cause)}, expected "
                f"one of {', '.join(WAIT_CAUSES)}"
            )
        if decision.until is not None and type(decision.until) is not int:
            raise PolicyError(
                f"{name(decision.handle)} waits until {shortened(decision.until)}, expected a "
                "whole number of ticks, or None"
            )
    elif not isinstance(reason, str):
        raise PolicyError(f"{name(decision.handle)}: reason {shortened(reason)}, expected text")
    elif issubclass(kind, Hold):
        _check_hold(decision, name)
    elif issubclass(kind, Preempt) and type(decision.for_good) is not bool:
        raise PolicyError(
            f"{name(decision.handle)} preempted for good: {shortened(decision.for_good)}, expected "
            "True or False"
        )


def _check_hold(hold: Any, name: Callable[[int], str]) -> None:
    if type(hold.until) is not int:
        raise PolicyError(f"{name(hold.handle)} held until {hold.until}, expected a whole number")
    if hold.turn is not None and not _lawful_turn(hold.turn):
        raise PolicyError(
            f"{name(hold.handle)} held for {shortened(hold.turn)}, expected whole ticks, a period "
            "above 0 and a slack from 0"
        )


def _lawful_turn(turn: Any) -> bool:
    if not issubclass(type(turn), Turn):
        return False
    slack = 0 if turn.slack is None else turn.slack
    for part in (turn.group, turn.start, turn.period, slack):
        if type(part) is not int:
            return False
    return bool(turn.period > 0 and slack >= 0)
