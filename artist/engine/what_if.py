"""Trying an answer: a copy of the run goes on from the question until its jobs have finished.

No policy sees the future, so the copy forgets it: no other job arrives, and nothing leaves or
enters service. What is left is what the policy is shown, so a trial tells nothing new to a policy
that knows run times. To others it would tell when jobs finish.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from artist.cluster.tree import ClusterTree
from artist.contract import Decision, Policy
from artist.units import Tick

if TYPE_CHECKING:
    from artist.engine.simulator import Simulator


class WhatIf:
    """`ClusterView.what_if` of a run at a question."""

    __slots__ = ("_simulator",)

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator

    def __call__(self, answer: Sequence[Decision], policy: Policy) -> Mapping[int, Tick]:
        """When each job in the system would finish, by handle."""
        trial, policy = copied(self._simulator.without_future(), policy)
        trial.forget_notices()
        trial.answer(answer, type(policy).__name__)
        return {row.handle: row.finish for row in trial.run(policy).jobs}


def copied(simulator: Simulator, policy: Policy) -> tuple[Simulator, Policy]:
    """Copies of both, in one piece: a policy may hold states of jobs. They share the tree."""
    text = io.BytesIO()
    _Pickler(text, simulator.tree).dump((simulator, policy))
    text.seek(0)
    both: tuple[Simulator, Policy] = _Unpickler(text, simulator.tree).load()
    return both


class _Pickler(pickle.Pickler):
    """Leaves out the tree, which never changes."""

    def __init__(self, text: io.BytesIO, tree: ClusterTree) -> None:
        super().__init__(text, pickle.HIGHEST_PROTOCOL)
        self._tree = tree

    def persistent_id(self, obj: Any) -> str | None:
        """The tree's name; everything else is written."""
        return "tree" if obj is self._tree else None


class _Unpickler(pickle.Unpickler):
    """Puts the tree back. What it reads was written just now, in memory."""

    def __init__(self, text: io.BytesIO, tree: ClusterTree) -> None:
        super().__init__(text)
        self._tree = tree

    def persistent_load(self, pid: Any) -> ClusterTree:
        """The tree."""
        return self._tree
