"""Splits the iteration of an answer into its parts (`../iteration_split.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from artist.errors import BackendError
from artist.estimates.divided.layer_wise import LayerIteration
from artist.estimates.divided.staged_backend import StagedQuery
from artist.estimates.iteration_split import SENDERS, IterationSplit, TimePart
from artist.estimates.query import Estimate, LatencyBackend, LatencyQuery
from artist.workload.layers import Parallelism
from artist.workload.stage_steps import stage_compute_ns

EndedNs = Callable[[frozenset[TimePart]], int]
"""When an iteration ends if all but these kinds of communication take no time."""


def iteration_split(
    backend: LatencyBackend, query: LatencyQuery, answer: Estimate
) -> IterationSplit:
    """Where the time of a backend's answer to a query goes, including its constant share.

    The backend may be asked again: about the collectives of a divided model, or about the
    collectives of a data-parallel model alone.

    Raises:
        BackendError: a query has no answer.
    """
    passes = query.passes
    parts, sent = _parts_of_pass(backend, query, answer)
    constant_ns = round(getattr(answer, "constant_share", 0.0) * answer.compute_ns)
    parts_ns = {part: passes * ns for part, ns in parts.items()} | {TimePart.CONSTANT: constant_ns}
    sent_ns = None if sent is None else {part: passes * ns for part, ns in sent.items()}
    return IterationSplit({part: ns for part, ns in parts_ns.items() if ns}, sent_ns)


def with_split(backend: LatencyBackend, query: LatencyQuery, answer: Estimate) -> Estimate:
    """A backend's answer with its split; raises as `iteration_split`."""
    return replace(answer, split=iteration_split(backend, query, answer))


_Parts = tuple[dict[TimePart, int], dict[TimePart, int] | None]


def _parts_of_pass(backend: LatencyBackend, query: LatencyQuery, answer: Estimate) -> _Parts:
    """The parts of one pass, and for how long each kind is sent (None if not known)."""
    compute_ns, finish_ns = answer.compute_ns // query.passes, answer.finish_ns // query.passes
    workload = query.workload
    if not query.dimensions:
        return {TimePart.COMPUTE: compute_ns}, {}
    if workload.staged is not None:
        staged = StagedQuery(backend, query)
        sent, ended_ns = staged.sent_ns(), staged.ended_ns
        own_ns = stage_compute_ns(workload)
        mean_ns, longest_ns = sum(own_ns) // len(own_ns), max(own_ns)
    elif workload.parallelism in (Parallelism.FSDP, Parallelism.LAYERWISE):
        iteration = LayerIteration(backend, query)
        sent, ended_ns = iteration.sent_ns(), iteration.ended_ns
        mean_ns = longest_ns = compute_ns - iteration.idle_ns
    else:
        return _whole(backend, query, answer, compute_ns)
    parts = {
        TimePart.COMPUTE: mean_ns,
        TimePart.IMBALANCE: longest_ns - mean_ns,
        TimePart.BUBBLE: compute_ns - longest_ns,
    }
    if query.flat_groups:  # priced as a whole
        return parts | {TimePart.COMMUNICATION: finish_ns - compute_ns}, None
    senders = [part for part in SENDERS if part in sent] or [TimePart.COMMUNICATION]
    return parts | _added(compute_ns, finish_ns, senders, ended_ns), sent


def _added(
    compute_ns: int, finish_ns: int, senders: Sequence[TimePart], ended_ns: EndedNs
) -> dict[TimePart, int]:
    """Nanoseconds that each kind of communication adds to the kinds before it.

    More communication may shorten an iteration by a little, since it changes the order of work on a
    GPU (Graham, SIAM J. Appl. Math. 17, 1969). Such a kind adds nothing, and the next one less.
    """
    before_ns, exposed_ns = compute_ns, {}
    for number, part in enumerate(senders, 1):
        if number < len(senders):
            after_ns = min(max(ended_ns(frozenset(senders[:number])), before_ns), finish_ns)
        else:
            after_ns = finish_ns
        exposed_ns[part] = after_ns - before_ns
        before_ns = after_ns
    return exposed_ns


def _whole(
    backend: LatencyBackend, query: LatencyQuery, answer: Estimate, compute_ns: int
) -> _Parts:
    """The parts of an iteration about which the backend answers as a whole.

    A data-parallel iteration waits for gradients only. Kinds of a trace's collectives are unknown.
    """
    workload = query.workload
    data = workload.parallelism is Parallelism.DATA
    part = TimePart.DATA if data else TimePart.COMMUNICATION
    parts = {TimePart.COMPUTE: compute_ns, part: answer.exposed_comm_ns // query.passes}
    if workload.parallelism is Parallelism.MICRO:  # nothing is computed, and nothing hidden
        return parts, {part: parts[part]}
    if not data:
        return parts, None
    # Under another name, since a recorded table finds whole iterations by name.
    gradients = replace(workload, name=f"{workload.name} sends", parallelism=Parallelism.MICRO)
    try:
        sent = backend.estimate(replace(query, workload=gradients, passes=1))
    except BackendError:
        return parts, None
    # An answer of a table's fallback does not fit: it comes from another model.
    return parts, {part: sent.finish_ns} if sent.source == answer.source else None
