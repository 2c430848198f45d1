"""What becomes of an answer of which a gate between policy and engine turns a part down.

Gates keep policies, which need not know of them, to rules about where jobs may be: beside their
data (`data/gate.py`), and not on units that will leave service (`failures/notice_gate.py`).

- A job that would start waits. To the policy it has started and lost its GPUs at once.
- A job that would move stays where it is. If other decisions of the same answer need the GPUs that
  it would have left, it loses them, as in an outage.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from artist.contract import ClusterView, Decision, Hold, Migrate, Preempt, Start


def without(
    decisions: Sequence[Decision], refused: Collection[int], view: ClusterView, reason: str
) -> tuple[list[Decision], list[int]]:
    """The decisions without starts and moves of some jobs; and the jobs that do not start.

    `reason` is that of preemptions which this makes necessary.
    """
    kept = [
        decision
        for decision in decisions
        if not (isinstance(decision, Start | Migrate | Hold) and decision.handle in refused)
    ]
    stay = [x.handle for x in decisions if isinstance(x, Migrate) and x.handle in refused]
    if stay:
        left = _left(kept, view)
        for handle in stay:
            state = view.running.get(handle)
            if state is None or state.placement is None:
                continue  # the engine says what is wrong with it
            held = dict(zip(state.placement.leaves, state.placement.counts, strict=True))
            if any(left.get(leaf, 0) < 0 for leaf in held):
                kept.append(Preempt(handle, reason))
                for leaf, count in held.items():
                    left[leaf] = left.get(leaf, 0) + count
    put_off = [x.handle for x in decisions if isinstance(x, Start) and x.handle in refused]
    return kept, put_off


def _left(decisions: Sequence[Decision], view: ClusterView) -> dict[int, int]:
    """By leaf: free GPUs once decisions are applied; below 0 where they claim too many."""
    left: dict[int, int] = {}
    free = view.free.leaves
    for decision in decisions:
        if isinstance(decision, Preempt | Migrate) and decision.handle in view.running:
            held = view.running[decision.handle].placement
            if held is not None:
                for leaf, count in zip(held.leaves, held.counts, strict=True):
                    left[leaf] = left.get(leaf, free[leaf]) + count
        if isinstance(decision, Start | Migrate):
            for leaf, count in zip(
                decision.placement.leaves, decision.placement.counts, strict=True
            ):
                left[leaf] = left.get(leaf, free[leaf] if leaf < len(free) else 0) - count
    return left
