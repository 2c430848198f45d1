"""A plan for one job in one unit: where it goes and which jobs it preempts (RMS, section 4.3).

Plans are compared by their score; the smaller tuple is the better plan:

1. no job is preempted;
2. among plans that preempt: the most urgent victim is of a later class, then there are fewer
   victims, then the victim that started last has run longer;
3. our choice, as the paper gives no further criteria: the gang lies closer together, its unit has
   fewer free GPUs, the unit is visited earlier. Plans that preempt use only the last of these.

**Joint placement of several jobs** is what cell (9) of Table 1 can do and MAST cannot (section
4.1). MAST may place workload 1 in region X and find that no region can hold workload 2. Cell (9)
may place workload 1 in region Y and leave region X to workload 2. Only free GPUs are used. The
first job starts in any case. Of the jobs behind it as many as possible start; an earlier one counts
more than any number of later ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from artist.cluster.free_gpus import FreeGpus, Unit
from artist.cluster.placement import Placement
from artist.policies.mast.books import Books
from artist.policies.quota.ledger import fewest
from artist.policies.shared.packing import pack_in_level, pack_in_unit

Score: TypeAlias = "tuple[int, ...]"


class GangPlan(NamedTuple):
    """Where a gang goes. The unit has room once the victims have lost their GPUs."""

    score: Score
    level: int
    unit: int
    victims: tuple[int, ...] = ()


def free_plan(free: FreeGpus, books: Books, scope: Unit, gpus: int) -> GangPlan | None:
    """The best plan inside a unit that preempts no job; None if there is none.

    Racks come before clusters: the cluster manager keeps gangs in racks (section 2).
    """
    tree = free.tree
    cluster = books.scopes.cluster
    # A gang that no cluster could hold may span them.
    outermost = cluster if gpus <= tree.largest(cluster) else scope.level
    inside = None if scope.level == tree.root else scope
    if free.best_fit(outermost, gpus, inside) is None:
        return None
    for level in range(tree.machine, outermost + 1):
        unit = free.best_fit(level, gpus, inside)
        if unit is not None:
            return GangPlan((0, level, free.of(level, unit), free.turn(level, unit)), level, unit)
    return None


def preempting_plan(
    free: FreeGpus, books: Books, unit: Unit, gpus: int, rank: int
) -> GangPlan | None:
    """The plan in a cluster, or an outer unit, that preempts as few jobs as possible."""
    clusters = books.clusters_of(*unit)
    victims = fewest(books.of_later_classes(clusters, rank), gpus - free.of(*unit))
    if victims is None:
        return None
    running = books.running
    score = (
        1,
        -min(running[handle].rank for handle in victims),
        len(victims),
        max(running[handle].started for handle in victims),
        free.turn(*unit),
    )
    return GangPlan(score, unit.level, unit.unit, victims)


def best(plans: Iterable[GangPlan | None]) -> GangPlan | None:
    """The plan of the best score: the auction of regions, and the choice of a cluster."""
    return min((plan for plan in plans if plan is not None), default=None)


def placed(free: FreeGpus, plan: GangPlan, gpus: int) -> Placement:
    """The GPUs of a gang under a plan, once its victims have lost theirs.

    The gang lies as close together as it fits, on the machines with most free GPUs first.
    """
    tree = free.tree
    inside = Unit(plan.level, plan.unit)
    for level in range(tree.machine, plan.level):
        if plan.level == tree.root:
            placement = pack_in_level(free, level, gpus)
        else:
            placement = pack_in_level(free, level, gpus, inside)
        if placement is not None:
            return placement
    return Placement.of(pack_in_unit(free, plan.level, plan.unit, gpus))


Want: TypeAlias = "tuple[int, Sequence[int]]"
"""The GPUs of a job behind the first one, and the clusters that it may lie in."""


def most_started(free: dict[int, int], behind: Sequence[Want]) -> tuple[bool, ...]:
    """Which of the jobs can start together; an earlier job counts more than all later ones."""
    if not behind:
        return ()
    (gpus, clusters), rest = behind[0], behind[1:]
    best: tuple[bool, ...] = ()
    for cluster in clusters:
        if free[cluster] < gpus:
            continue
        free[cluster] -= gpus
        best = max(best, (True, *most_started(free, rest)))
        free[cluster] += gpus
        if best and all(best):
            return best
    return best or (False, *most_started(free, rest))
