"""Which machines a job gets: `select/cons_tres`, with or without `topology/tree`.

Both take machines of a lower weight first. Without switches, neighbouring machines with room, in
Slurm's order, form sets. The job gets the smallest set that suffices, else the largest one and then
further sets. With switches it takes machines of one leaf switch after the other: a switch is better
if it is nearer to those that the job has and fits the rest of the job no worse.

GPUs of `--gpus` that no single machine has free come from those with most free GPUs. In Slurm's
order, each gives all that are free until the job has enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from artist.policies.slurm.machines import UNKNOWN_CPUS, Free, Machines, bits
from artist.policies.slurm.request import Request


class Selection:
    """Chooses machines for jobs."""

    def __init__(self, machines: Machines, *, topology: bool) -> None:
        self._machines = machines
        # Sets of machines of one weight, the lowest weight first.
        self._by_weight = [
            sum(1 << index for index, own in enumerate(machines.weights) if own == weight)
            for weight in sorted(set(machines.weights))
        ]
        self._switches = machines.switches if topology else []
        self._distances = _distances(machines) if topology else []

    def choose(self, request: Request, free: Free, among: int) -> int | None:
        """The machines that a job gets among those of a bit set, or None if too few have room."""
        room = among & free.room(request.gpus, request.cpus)
        if request.spread and not (whole := among & free.room(request.job.gpus, request.cpus)):
            return _any_machines(request, free, room, self._machines.weights)
        if request.spread:
            room = whole
        if room.bit_count() < request.nodes:
            return None
        taken, left = 0, request.nodes
        for alike in self._by_weight:
            group = room & alike
            wanted = min(left, group.bit_count())
            if wanted == group.bit_count():
                taken |= group
            elif self._switches:
                taken |= self._by_switch(group, wanted, taken)
            else:
                taken |= self._by_neighbours(request, free, group, wanted)
            left -= wanted
            if not left:
                return taken
        return None

    # -- without switches -------------------------------------------------------------

    def _by_neighbours(self, request: Request, free: Free, group: int, wanted: int) -> int:
        """Choose `wanted` machines of a group, from sets of neighbours."""
        most = request.most_cpus
        cpus = free.cpus if most >= UNKNOWN_CPUS else [min(x, most) for x in free.cpus]
        sets = [(members, sum(cpus[members.start : members.stop])) for members in _runs(group)]
        taken, left, left_cpus = 0, wanted, wanted * request.cpus
        while left:
            chosen, _ = sets.pop(_tightest(sets, left, left_cpus))
            if left == 1:
                return taken | 1 << min(chosen, key=cpus.__getitem__)
            for index in chosen[:left]:
                taken |= 1 << index
                left_cpus -= request.cpus
            left -= min(left, len(chosen))
        return taken

    # -- with switches ----------------------------------------------------------------

    def _by_switch(self, group: int, wanted: int, taken: int) -> int:
        """Choose `wanted` machines of a group, from one leaf switch after the other."""
        switches = self._switches
        leaves = [index for index, switch in enumerate(switches) if not switch.level]
        counts = [(switch.machines & group).bit_count() for switch in switches]
        far = [0] * len(switches)
        chosen, left = 0, wanted
        for leaf in leaves:  # first the switches where the job has machines of a lower weight
            if switches[leaf].machines & taken:
                part = _first(switches[leaf].machines & group, left)
                chosen |= part
                left -= part.bit_count()
                self._add_distances(far, leaf)
                counts[leaf] = 0
        while left:
            best = -1
            for leaf in leaves:
                if counts[leaf] and (best < 0 or self._is_better(leaf, best, left, counts, far)):
                    best = leaf
            part = _first(switches[best].machines & group, left)
            chosen |= part
            left -= part.bit_count()
            self._add_distances(far, best)
            counts[best] = 0
        return chosen

    def _add_distances(self, far: list[int], leaf: int) -> None:
        for index, distance in enumerate(self._distances[leaf]):
            far[index] += distance

    def _is_better(
        self, one: int, other: int, left: int, counts: Sequence[int], far: Sequence[int]
    ) -> bool:
        fits = self._compare(one, other, left, counts)
        return (far[one] < far[other] and fits >= 0) or (far[one] == far[other] and fits > 0)

    def _compare(self, one: int, other: int, left: int, counts: Sequence[int]) -> int:
        """1 if a switch suits better than another, -1 if worse, 0 if they are equal.

        Enough machines are better than too few, then fewer machines are better. If both have too
        few, the switches above them decide, and at last more machines are better.
        """
        switches = self._switches
        while True:
            fits, other_fits = counts[one] >= left, counts[other] >= left
            if fits and other_fits:
                if counts[one] != counts[other]:
                    return 1 if counts[one] < counts[other] else -1
                break
            if fits or other_fits:
                return 1 if fits else -1
            above, other_above = switches[one].parent, switches[other].parent
            if above is None or other_above is None or above == other_above:
                break
            one, other = above, other_above
        return (counts[one] > counts[other]) - (counts[one] < counts[other])


def fits(request: Request, free: Free, among: int) -> bool:
    """Whether enough machines of a bit set have room for a job."""
    room = among & free.room(request.gpus, request.cpus)
    if room.bit_count() < request.nodes:
        return False
    return not request.spread or holds_together(request, free, room)


def holds_together(request: Request, free: Free, among: int) -> bool:
    """Whether machines together have as many free GPUs as a job wants."""
    room = among & free.room(request.gpus, request.cpus)
    counts = [free.gpus[index] for index in bits(room)]
    if request.most_nodes is not None:
        counts = sorted(counts, reverse=True)[: request.most_nodes]
    return sum(counts) >= request.job.gpus


def shares(request: Request, free: Free, chosen: int) -> list[tuple[int, int]]:
    """The (machine, GPUs) that a job gets of the machines chosen for it."""
    if not request.spread:
        return [(index, request.gpus) for index in bits(chosen)]
    taken, left = [], request.job.gpus
    for index in bits(chosen):
        if count := min(left, free.gpus[index]):
            taken.append((index, count))
        left -= count
    return taken


def _any_machines(request: Request, free: Free, room: int, weights: Sequence[int]) -> int | None:
    """Machines that hold a job's `--gpus` together; None if those that it may have do not.

    If those of low weights do not, MaxNodes makes it take those with most free GPUs.
    """
    for weighs in (1, 0):
        chosen, left = 0, request.job.gpus
        order = sorted(bits(room), key=lambda x: (weighs * weights[x], -free.gpus[x]))
        for index in order[: request.most_nodes]:
            chosen |= 1 << index
            left -= free.gpus[index]
            if left <= 0:
                return chosen
    return None


def _runs(group: int) -> Iterator[range]:
    """The sets of machines of a group that are next to each other."""
    at = 0
    while group:
        skipped = (group & -group).bit_length() - 1
        group >>= skipped
        length = (~group & (group + 1)).bit_length() - 1
        yield range(at + skipped, at + skipped + length)
        group >>= length
        at += skipped + length


def _tightest(sets: Sequence[tuple[range, int]], nodes: int, needed: int) -> int:
    """The index of the set with the fewest CPUs that suffices, else of the set with the most CPUs.

    As in Slurm, a set that does not suffice but has more CPUs displaces a smaller one that does.
    """
    best, best_cpus, best_suffices = -1, 0, False
    for index, (members, total) in enumerate(sets):
        suffices = len(members) >= nodes and total >= needed
        if (
            best < 0
            or (suffices and not best_suffices)
            or (suffices and total < best_cpus)
            or (not suffices and total > best_cpus)
        ):
            best, best_cpus, best_suffices = index, total, suffices
    return best


def _first(group: int, count: int) -> int:
    """The first `count` machines of a bit set."""
    taken = 0
    for index in bits(group):
        if not count:
            break
        taken |= 1 << index
        count -= 1
    return taken


def _distances(machines: Machines) -> list[list[int]]:
    """How many links apart any two switches are."""
    switches = machines.switches
    above = []
    for index in range(len(switches)):
        chain, at = [index], switches[index].parent
        while at is not None:
            chain.append(at)
            at = switches[at].parent
        above.append(chain)
    return [
        [min(i + chain.index(x) for i, x in enumerate(other) if x in chain) for other in above]
        for chain in above
    ]
