"""`fluid` and `phase`: how long iterations take for jobs that share links, by event simulation.

    fluid   exact max-min sharing. The offset of two equal jobs never changes
    phase   the same with two corrections that packets need: a weight drawn for each flow and
            iteration, and a smaller one for a flow held back by two full links. Equal jobs drift
            into step, and an exact interleaving breaks up

Defaults of `phase` stand for DCTCP at 1 Gbit/s on links with one queue, where 113 cases were run
packet by packet (docs/contention.md). Links that serve connections in turn get no random weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice, pairwise

from artist.io.digests import sha256
from artist.network.models.canonical import by_component, canonical
from artist.network.models.mean import mean
from artist.network.models.patterns import Contention, Member, Slowed
from artist.network.models.sending_flows import TWO_BOTTLENECK_WEIGHT
from artist.network.models.simulation import Noise, SendingProgress, Simulation, alone_s
from artist.network.models.turns import JITTER, in_turn, iterations_in_turn, with_jitter
from artist.rng import stream

# Two flows that shared a link got .50 +- .05 to .07 of it per iteration, independently (ns-3,
# DCTCP). With weights exp(N(0, sigma)) a share varies by sigma x sqrt(2) / 4: sigma is .14 to .20.
SIGMA = 0.15

# A run uses a rate until something changes, so the state in which jobs settle counts. Equal jobs
# drift into step within 10 to 30 iterations (ns-3, DCTCP).
ITERATIONS = 64

# A job that is much slower than the others meets all their phases within one iteration, so it needs
# only 1 / FEWER of the iterations. On 60 contentions of a run (racks 4:1), answers then differ by
# .14 % (root mean square) from the means of eight runs in which every job ends 64 iterations. One
# such run differs by .10 %, and has 2.7 times as many events.
MUCH_SLOWER = 2
FEWER = 4

# Answers of `phase` are means of samples, with a deviation of .14 % (root mean square, as above).
# Rounds with a much finer criterion would not end.
SAMPLED = 3e-3

PHASES = 64
MOST_EVENTS = 20_000

# With up to this many jobs a simulation takes about a second at most; `mean` answers about more.
MOST_JOBS = 32

# Answers that a model keeps. One of two jobs takes .4 KB, one of 32 jobs 3.5 KB: 57 MB at most.
MOST_KEPT = 16_384

# Random numbers are drawn in blocks of this many iterations.
BLOCK = 64

# Blocks that are kept, of 2 KB each.
MOST_BLOCKS = 4_096


@dataclass(frozen=True, slots=True)
class PhaseSettings:
    """How `phase` simulates. With `sigma` 0 and `two_bottleneck_weight` 1 it is `fluid`."""

    sigma: float = SIGMA
    """Standard deviation of the logarithm of a flow's weight in an iteration."""
    two_bottleneck_weight: float = TWO_BOTTLENECK_WEIGHT
    iterations: int = ITERATIONS
    """Iterations that every job must end, unless the jobs become periodic earlier. A quarter is
    enough for a job that takes at least twice as long as the next faster one."""
    most_events: int = MOST_EVENTS
    jitter: float = JITTER
    """Standard deviation of iterations of jobs that take turns, as a share of the iteration."""
    phases: int = PHASES
    """Offsets are rounded to 1 / `phases` of an isolated iteration, so that answers can be reused.
    Offsets of jobs that take turns recur anyway, and are not rounded."""
    seed: int = 0


FLUID = PhaseSettings(sigma=0.0, two_bottleneck_weight=1.0)


class PhaseModel:
    """`phase` with a memory: contentions of one canonical form are simulated once.

    Jobs with random numbers of their own (`Member.stream`) have different forms.

    The model keeps the `most_kept` answers that were used last. Forgotten contentions are simulated
    again with the same random numbers, so answers do not depend on what is kept.
    """

    def __init__(self, settings: PhaseSettings | None = None, most_kept: int = MOST_KEPT) -> None:
        self._settings = settings or PhaseSettings()
        self._most_kept = most_kept
        self._kept: dict[str, tuple[Slowed, ...]] = {}
        """By the digest of a contention's canonical form, in the order of their last use."""
        self.simulated = 0
        """Simulations so far."""

    def __call__(self, contention: Contention) -> tuple[Slowed, ...]:
        """Iterations of the jobs, settled, from their offsets on."""
        return by_component(quantised(contention, self._settings.phases), self._of_component)

    def _of_component(self, contention: Contention) -> tuple[Slowed, ...]:
        if len(contention.members) > MOST_JOBS:
            return mean(contention, self._settings.two_bottleneck_weight)
        form = canonical(contention)
        key = sha256(repr(form.contention))
        # Putting an answer back at the end makes it the last to be forgotten.
        answers = self._kept.pop(key, None)
        if answers is None:
            answers = settled(form.contention, self._settings)
            self.simulated += 1
            if len(self._kept) >= self._most_kept:
                del self._kept[next(iter(self._kept))]
        self._kept[key] = answers
        return form.in_place(answers)


def phase(contention: Contention, settings: PhaseSettings | None = None) -> tuple[Slowed, ...]:
    """Iterations of the jobs of a contention with its offsets, as packets share links."""
    return PhaseModel(settings)(contention)


def fluid(contention: Contention) -> tuple[Slowed, ...]:
    """Iterations of the jobs of a contention with its exact offsets, as a fluid shares links."""
    return by_component(contention, lambda part: settled(part, FLUID))


def quantised(contention: Contention, phases: int) -> Contention:
    """The contention with each offset rounded to `1 / phases` of the job's isolated iteration."""

    def rounded(index: int, member: Member) -> Member:
        if member.turn is not None:
            return member
        part_s = alone_s(contention, index) / phases
        return replace(member, offset_s=round(member.offset_s / part_s) * part_s)

    members = tuple(rounded(index, member) for index, member in enumerate(contention.members))
    return Contention(contention.links, members)


def settled(contention: Contention, settings: PhaseSettings) -> tuple[Slowed, ...]:
    """Mean iterations of the jobs: over one period if they become periodic, else over a long time.

    A job that ends no iteration within `most_events` gets the answer of `mean`, since it meets the
    others at all phases.
    """
    alone = [alone_s(contention, index) for index in range(len(contention.members))]
    if len(alone) == 1:
        return (Slowed(alone[0], alone[0]),)
    if in_turn(contention):
        return _in_turn(contention, alone, settings)
    noise = lognormal(contention, settings) if settings.sigma else None
    simulation = Simulation(contention, noise, settings.two_bottleneck_weight)
    iterations_s = _periodic(simulation, settings) if noise is None else None
    if iterations_s is None:
        _run(simulation, settings)
        iterations_s = [_later_half_s(job) for job in simulation.jobs]
    if None in iterations_s:
        expected = mean(contention, settings.two_bottleneck_weight)
        iterations_s = [
            other.iteration_s if mine is None else mine
            for mine, other in zip(iterations_s, expected, strict=True)
        ]
    return tuple(Slowed(x or y, y) for x, y in zip(iterations_s, alone, strict=True))


def _in_turn(
    contention: Contention, alone: list[float], settings: PhaseSettings
) -> tuple[Slowed, ...]:
    """Mean iterations, over the later half of a long time, of jobs of which some take turns.

    They are at least as long as in isolation: jitter has a mean of 0, but a sample of it does not.
    """
    iterations = iterations_in_turn(len(alone), settings.iterations)
    longer = replace(settings, iterations=iterations)
    jittered = with_jitter(contention, alone, settings.jitter, iterations, settings.seed)
    noise = lognormal(contention, settings) if settings.sigma else None
    simulation = Simulation(jittered, noise, settings.two_bottleneck_weight)
    # Turns drift slowly, so every job needs all of its iterations.
    while not _long_enough(simulation, longer):
        simulation.next_event()
    turns, minutes = simulation.turns, simulation.now_s / 60
    assert turns is not None

    def slowed(job: SendingProgress, alone_s: float) -> Slowed:
        iteration_s = max(_later_half_s(job) or alone_s, alone_s)
        held_s = min(turns.held_s(job.index, job.iterations), iteration_s - alone_s)
        return Slowed(iteration_s, alone_s, turns.corrections[job.index] / minutes, held_s)

    return tuple(slowed(job, alone_s) for job, alone_s in zip(simulation.jobs, alone, strict=True))


def lognormal(contention: Contention, settings: PhaseSettings) -> Noise:
    """Weights exp(N(0, sigma)) of each flow of a job and each iteration.

    A job's weights depend on its stream only, not on what any job sends. No two jobs share them.
    """
    sizes, streams = [len(x.pattern.flows) for x in contention.members], contention.streams
    drawn: list[list[tuple[float, ...]]] = [[] for _ in sizes]

    def factors(job: int, iteration: int) -> tuple[float, ...]:
        rows = drawn[job]
        while iteration >= len(rows):
            of_block = partial(_weights, settings, streams[job], len(rows) // BLOCK)
            rows += zip(*map(of_block, range(sizes[job])), strict=True)
        return rows[iteration]

    return factors


@lru_cache(MOST_BLOCKS)
def _weights(settings: PhaseSettings, job: int, block: int, flow: int) -> tuple[float, ...]:
    """Weights of a job's flow in the iterations of a block."""
    drawn = stream(settings.seed, f"contention {job} {flow} {block}")
    return tuple(map(math.exp, drawn.normal(0.0, settings.sigma, BLOCK).tolist()))


def _run(simulation: Simulation, settings: PhaseSettings) -> None:
    """Go on until every job has ended enough iterations, or until `most_events`."""
    while not _enough(simulation, settings):
        before = simulation.iterations
        while simulation.iterations == before and simulation.events < settings.most_events:
            simulation.next_event()


def _enough(simulation: Simulation, settings: PhaseSettings) -> bool:
    """Whether jobs have ended enough iterations. Jobs much slower than the next need fewer."""
    if _long_enough(simulation, settings):
        return True
    if simulation.least_iterations < settings.iterations // FEWER:
        return False
    ended = sorted([job.iterations for job in simulation.jobs])
    return ended[-1] >= settings.iterations and all(
        slower >= settings.iterations or faster >= MUCH_SLOWER * slower
        for slower, faster in pairwise(ended)
    )


def _long_enough(simulation: Simulation, settings: PhaseSettings) -> bool:
    return (
        simulation.events >= settings.most_events
        or simulation.least_iterations >= settings.iterations
    )


def _periodic(simulation: Simulation, settings: PhaseSettings) -> list[float | None] | None:
    """Seconds per iteration of each job over one period; None if no state comes back in time."""
    seen: dict[tuple[tuple[int, ...], ...], tuple[float, list[int]]] = {}
    ended = 0
    while not _long_enough(simulation, settings):
        simulation.next_event()
        now = [job.iterations for job in simulation.jobs]
        if now[0] == ended:
            continue
        ended = now[0]
        state = simulation.state()
        if state not in seen:
            seen[state] = simulation.now_s, now
            continue
        then_s, then = seen[state]
        if all(after > before for before, after in zip(then, now, strict=True)):
            span_s = simulation.now_s - then_s
            return [span_s / (after - before) for before, after in zip(then, now, strict=True)]
    return None


def _later_half_s(job: SendingProgress) -> float | None:
    """The mean iteration of the later half, at least one; None if the job has ended none."""
    if not job.iterations:
        return None
    ends_s = list(islice(job.ends_s, job.iterations // 2, None))
    return (ends_s[-1] - ends_s[0]) / (len(ends_s) - 1)


def iterations_s(job: SendingProgress, first: int = 0) -> list[float]:
    """How long each iteration took, from number `first` on."""
    return [end - start for start, end in pairwise(job.ends_s[first:])]
