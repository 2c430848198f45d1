"""Pairs of cells that differ in one thing, each with the words that its table shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TypeAlias

from evidence import Cell
from sources import DRAWN

RACKS = (2, 4, 8, 16)
BATCH = Cell("recorded", DRAWN["batch"], 8, "dally")
VARIANTS = ("dally", "dally-fully-consolidated")

BOUNDS = {
    "policy.floors_s=21600,43200 policy.caps_s=None": "the original's floors, 6 and 12 h",
    "policy.floors_s=0,0 policy.caps_s=140400,172800": "the original's caps, 39 and 48 h",
    "policy.floors_s=21600,43200 policy.caps_s=140400,172800": "both",
}
LEASES = {"policy.lease_s=600": "leases of 10 minutes", "policy.lease_s=1e+09": "no preemption"}
MIGRATION = {"policy.migrate=False": "no migration"}
ORIGINAL = {"": "the original's rules"}

READ = "policy.never_ran=first policy.forgets=age"
READINGS = {
    "policy.never_ran=last policy.forgets=age": "jobs that never ran go last",
    "policy.never_ran=first policy.forgets=length": "long waits are left out, not old ones",
    "policy.never_ran=last policy.forgets=length": "both",
}

_CONSOLIDATED = ("dally-fully-consolidated", "consolidate-or-wait")

Pair: TypeAlias = tuple[str, Cell, Cell]
"""The words of a row, the cell that is judged, and the cell that it is compared with."""


def switches(
    study: str,
    options: Mapping[str, str],
    policies: Sequence[str],
    clusters: Sequence[int] = (2, 8),
) -> list[Pair]:
    """Each option of a study, against the same policy without the option in `recorded`."""
    return [
        (
            f"{policy}, {racks} racks: {words}",
            BATCH.of(study=study, racks=racks, policy=policy, options=option),
            BATCH.of(racks=racks, policy=policy),
        )
        for policy, (option, words), racks in product(policies, options.items(), clusters)
    ]


def placement() -> Iterator[Pair]:
    """The same placement with another priority, then the same priority with another placement."""
    for policy, placer in (("dally-no-wait", "pack"), _CONSOLIDATED):
        options = f"policy.placement={placer}"
        las = BATCH.of(study="placement", policy="las", options=options)
        yield f"batch, 8 racks: {policy} for las with {placer}", BATCH.of(policy=policy), las
    skew = BATCH.of(policy="tiresias")
    for placer in ("pack", "consolidate-or-wait"):
        cell = skew.of(study="placement", options=f"policy.placement={placer}")
        yield f"batch, 8 racks: tiresias with {placer} for skew", cell, skew
    for racks in RACKS:
        skew = BATCH.of(trace=DRAWN["poisson"], racks=racks, policy="tiresias")
        packed = skew.of(study="placement-poisson", options="policy.placement=pack")
        yield f"poisson, {racks} racks: tiresias with pack for skew", packed, skew
        yield f"poisson, {racks} racks: dally for that", skew.of(policy="dally"), packed


def packed() -> Iterator[Pair]:
    """Dally against a Tiresias that packs all jobs, and that against Tiresias."""
    for study, arrivals, racks in product(("default", "bucketed", "one-ring"), DRAWN, RACKS):
        tiresias = Cell(study, DRAWN[arrivals], racks, "tiresias")
        packing = tiresias.of(study=f"packed-{study}", options="policy.placement=pack")
        where = f"{study}, {arrivals}, {racks} racks"
        yield f"{where}: dally for a packing tiresias", tiresias.of(policy="dally"), packing
        yield f"{where}: tiresias that packs", packing, tiresias


def queued() -> Iterator[Pair]:
    """Dally against its rivals where jobs queue on every cluster, all packing, with buckets."""
    for racks in RACKS:
        dally = BATCH.of(study=f"queued-{racks}", racks=racks, options="policy.placement=pack")
        for rival in ("tiresias", "gandiva"):
            yield f"{racks} racks: dally for {rival}", dally, dally.of(policy=rival)


def readings() -> Iterator[Pair]:
    """Two readings of the paper, one at a time, then both, against Dally as it is, with buckets."""
    for (option, name), racks in product(READINGS.items(), RACKS):
        dally = BATCH.of(study="readings", racks=racks, options=READ)
        yield f"{racks} racks: {name}", dally.of(options=option), dally


def within_level() -> Iterator[Pair]:
    """Dally that moves within a level: against Dally, and against a Tiresias that moves too."""
    for study, moves in (("default", "default-within-level"), ("recorded", "within-level")):
        for arrivals, racks in product(DRAWN, RACKS):
            dally = BATCH.of(study=study, trace=DRAWN[arrivals], racks=racks)
            moving = dally.of(study=moves, policy="dally-within-level")
            yield f"{study}, {arrivals}, {racks} racks: within-level for dally", moving, dally
    for racks in RACKS:
        moving = BATCH.of(study="within-level", policy="dally-within-level", racks=racks)
        rival = BATCH.of(study="original-tiresias", policy="tiresias", racks=racks)
        name = f"batch, {racks} racks: within-level dally for tiresias re-placed at every lease"
        yield name, moving, rival


def original_rules() -> Iterator[Pair]:
    """The original program's rules: against the paper's, then Dally against Tiresias by them."""
    yield from switches("original-rules", ORIGINAL, VARIANTS, RACKS)
    for racks in RACKS:
        tiresias = BATCH.of(study="original-tiresias", policy="tiresias", racks=racks)
        yield f"tiresias, {racks} racks: original rules", tiresias, tiresias.of(study="recorded")
    for racks in RACKS:
        tiresias = BATCH.of(study="original-tiresias", policy="tiresias", racks=racks)
        dally = BATCH.of(study="original-rules", racks=racks)
        yield f"{racks} racks, both by original rules: dally for tiresias", dally, tiresias


def all_pairs() -> Mapping[str, Sequence[Pair]]:
    """Every table of pairs by name."""
    return {
        "within-level": list(within_level()),
        "original-rules": list(original_rules()),
        "bounds": switches("bounds", BOUNDS, ("dally",), (8,)),
        "lease": switches("lease", LEASES, ("dally", "tiresias"), (8,)),
        "placement": list(placement()),
        "packed": list(packed()),
        "queued": list(queued()),
        "readings": list(readings()),
        "gandiva": switches("gandiva", MIGRATION, ("gandiva",)),
    }
