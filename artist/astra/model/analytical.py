"""ASTRA-sim's congestion-unaware analytical answers, computed in process.

Exact to the nanosecond for every query that ASTRA-sim 2.x answers; one that it
crashes or hangs on is refused. Where all NPUs do the same, the queues of one
NPU tell the duration C of each collective, and an iteration is

    comm_end_i = max(comm_end_(i-1), compute_end_i) + C(bytes_i)
    finish     = max(compute_end, last comm_end)

whatever the number of NPUs. Where NPUs differ (double binary trees), all of them
are played through, message by message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from artist.astra.model.collectives import Request, Stage, traffic
from artist.astra.model.messages import Kind
from artist.astra.model.npus import Machine
from artist.astra.model.pipeline import Interval, Pipeline
from artist.astra.model.refusals import Setup, prepare
from artist.astra.model.stage_times import AmbiguousOrderError, Stopwatch
from artist.astra.model.streams import StreamMaker
from artist.errors import BackendSettingError, ConfigError
from artist.estimates.query import Burst, Estimate, LatencyBackend, LatencyQuery


class AnalyticalBackend:
    """The in-process backend. Remembers nothing between queries."""

    source = "analytical"

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        """Answer one query; with `profile` also the traffic of its first pass.

        Raises:
            BackendSettingError: ASTRA-sim crashes, hangs or deadlocks on it.
        """
        setup = prepare(query)
        outcome = _outcome(setup, profile)
        return Estimate(
            finish_ns=outcome.finish_ns,
            compute_ns=setup.work.compute_ns * setup.passes,
            source=self.source,
            bytes_per_dimension=_bytes_per_dimension(setup),
            profile=_bursts(setup, outcome.log) if outcome.log is not None else None,
        )


@dataclass(frozen=True, slots=True)
class Finishes:
    """When each NPU has finished all passes, and for how long each of them computed."""

    finish_ns: tuple[int, ...]
    compute_ns: int


def finishes(query: LatencyQuery) -> Finishes:
    """The answer NPU by NPU, as ASTRA-sim prints it.

    Raises:
        BackendSettingError: ASTRA-sim crashes, hangs or deadlocks on it.
    """
    setup = prepare(query)
    found = _outcome(setup, profile=False)
    per_npu = found.per_npu or (found.finish_ns,) * setup.network.total_npus
    return Finishes(per_npu, setup.work.compute_ns * setup.passes)


@dataclass(frozen=True, slots=True)
class _Outcome:
    finish_ns: int
    log: list[Interval] | None
    per_npu: tuple[int, ...] = ()
    """Finish times where NPUs may differ; otherwise all are alike."""


def _outcome(setup: Setup, profile: bool) -> _Outcome:
    kinds = {stage.group.algorithm.kind for cut in setup.cuts.values() for stage in cut.stages}
    if Kind.TREE in kinds:
        return _play_all(setup, profile)
    try:
        return _play_one(setup, profile)
    except AmbiguousOrderError:
        return _play_all(setup, profile)


def _play_one(setup: Setup, profile: bool) -> _Outcome:
    """All NPUs alike: passes are alike too, as each begins when the one before has ended."""
    durations, logs = _durations(setup, profile)
    compute_end_ns = comm_end_ns = issued = 0
    log: list[Interval] | None = [] if profile else None

    def collect() -> None:
        nonlocal comm_end_ns, issued
        request = setup.work.collectives[issued]
        start_ns = max(comm_end_ns, compute_end_ns)
        if log is not None:
            log.extend(_shifted(logs[request], start_ns))
        comm_end_ns = start_ns + durations[request]
        issued += 1

    for compute in setup.work.computes:
        compute_end_ns += compute.duration_ns
        if compute.frees:
            collect()
    while issued < len(setup.work.collectives):
        collect()
    return _Outcome(max(compute_end_ns, comm_end_ns) * setup.passes, log)


def _durations(
    setup: Setup, profile: bool
) -> tuple[dict[Request, int], dict[Request, list[Interval]]]:
    """Duration of each distinct collective, and its intervals if they are asked for."""
    stopwatch = Stopwatch(setup.network, setup.delays)
    durations: dict[Request, int] = {}
    logs: dict[Request, list[Interval]] = {}
    for request in setup.cuts:
        # Whose turn it is among the queues is another labelling, not another duration.
        streams = StreamMaker(setup.cuts, setup.queues, (request,)).streams(0)
        timings = tuple(stopwatch.time(leg.stage) for leg in streams[0])
        pipeline = Pipeline(streams, timings, setup.slots)
        if profile:
            pipeline.log = logs[request] = []
        durations[request] = pipeline.run()
    return durations, logs


def _shifted(intervals: list[Interval], by_ns: int) -> Iterator[Interval]:
    for interval in intervals:
        yield Interval(interval.stage, interval.start_ns + by_ns, interval.end_ns + by_ns)


def _play_all(setup: Setup, profile: bool) -> _Outcome:
    work = setup.work.repeated(setup.passes)
    maker = StreamMaker(setup.cuts, setup.queues, work.collectives)
    machine = Machine(setup.network, setup.delays, setup.slots, maker, work)
    ended = [x for x in machine.run(log=profile) if x is not None]
    if len(ended) < setup.network.total_npus:
        raise BackendSettingError(
            f"active_chunks_per_dimension is {setup.active_chunks}, with which the NPUs serve "
            "chunks in different orders and wait for each other for ever (ASTRA-sim ends without "
            "a result): raise it (1000 lets all chunks run) or use other algorithms",
            "deadlock",
        )
    log = machine.log
    if log is not None:
        legs = (len(setup.cuts[x].stages) * setup.cuts[x].chunks for x in setup.work.collectives)
        log = log[: sum(legs)]
    return _Outcome(max(ended), log, tuple(ended))


def _bytes_per_dimension(setup: Setup) -> tuple[int, ...]:
    """What one NPU sends per dimension in one pass."""
    sent = [0] * len(setup.network.npus)
    for request, times in Counter(setup.work.collectives).items():
        cut = setup.cuts[request]
        for stage in cut.stages:
            for dimension, size in enumerate(traffic(stage, setup.network)):
                sent[dimension] += times * cut.chunks * size
    return tuple(sent)


def _bursts(setup: Setup, log: list[Interval]) -> tuple[Burst, ...]:
    """Busy intervals per dimension, those that touch joined into one."""
    shares: dict[Stage, tuple[int, ...]] = {}
    spans: list[list[Burst]] = [[] for _ in setup.network.npus]
    for interval in sorted(log, key=lambda x: x.start_ns):
        stage = interval.stage
        if stage not in shares:
            shares[stage] = traffic(stage, setup.network)
        for dimension, size in enumerate(shares[stage]):
            if size:
                burst = Burst(
                    dimension, interval.start_ns, interval.end_ns - interval.start_ns, size
                )
                _append(spans[dimension], burst)
    return tuple(sorted((x for bursts in spans for x in bursts), key=lambda x: x.offset_ns))


def _append(bursts: list[Burst], burst: Burst) -> None:
    if bursts and burst.offset_ns <= (end_ns := bursts[-1].offset_ns + bursts[-1].duration_ns):
        last = bursts.pop()
        until_ns = max(end_ns, burst.offset_ns + burst.duration_ns)
        size = last.size_bytes + burst.size_bytes
        burst = Burst(last.dimension, last.offset_ns, until_ns - last.offset_ns, size)
    bursts.append(burst)


def analytical_backend(argument: str, fallback: LatencyBackend | None) -> AnalyticalBackend:
    """The backend that `--backend analytical` names.

    Raises:
        ConfigError: there is an argument.
    """
    if argument:
        raise ConfigError(f"backend analytical:{argument}: takes no argument")
    return AnalyticalBackend()
