"""Does MAST keep its books right where its decisions fall, and do victims stay away?"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from support import cluster, job

from artist.cluster.tree import nested
from artist.contract import ClusterView, Decision, Start, Wake, WrapperPolicy
from artist.contract.gates import without
from artist.engine.simulator import Simulator
from artist.policies.mast.policy import Mast
from artist.rng import FIRST_DRAWS
from artist.run import open_policy
from artist.testing import LevelRates
from artist.units import TICKS_PER_S, seconds
from artist.workload.job import Job
from artist.workload.tenants import Tenant

TREE = nested(
    ("machine", "rack", "cluster", "region", "network"), [[[[4, 4]], [[4]]], [[[2, 2], [4]]]]
)
TENANTS = {"ads": Tenant(quota=6), "web": Tenant(quota=8)}


class Refuses(WrapperPolicy):
    """Drops some starts, with the preemptions that only served these."""

    host: Mast

    def __init__(self, host: Mast, seed: int) -> None:
        super().__init__(host)
        self._draw = Random(seed)
        self._put_off: list[int] = []
        self.spared = 0

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        again = [view.waiting[handle] for handle in self._put_off]
        answer = self.host.decide(view._replace(entered=[*again, *view.entered]))
        starts = [x.handle for x in answer if isinstance(x, Start)]
        refused = {x for x in starts if self._draw.random() < 0.4}
        kept, self._put_off = without(answer, refused, view, "")
        self.spared += len(answer) - len(kept) - len(refused)
        return [*kept, Wake(view.now + TICKS_PER_S)] if refused else kept


def random_jobs(seed: int) -> list[Job]:
    draw = Random(seed)
    return [
        job(
            str(index),
            draw.choice([1, 2, 4, 8, 12]),
            draw.randint(1, 600),
            arrival_s=float(arrival_s),
            tenant=draw.choice(["ads", "web", None]),
            priority=draw.choice([1, 3, 6, None]),
        )
        for index, arrival_s in enumerate(sorted(draw.choices(range(900), k=25)))
    ]


@pytest.mark.parametrize("cell", [1, 5, 6, 9])
def test_books_are_true_where_starts_fall_with_their_preemptions(cell: int) -> None:
    spared = 0
    for seed in range(10):
        mast = open_policy("mast", {"cell": cell}, FIRST_DRAWS, TENANTS)
        assert isinstance(mast, Mast)
        policy = Refuses(mast, seed)
        made = random_jobs(seed)
        engine = Simulator(TREE, made, LevelRates(TREE), check=True)
        while (view := engine.next_question(policy)) is not None:
            engine.answer(policy.decide(view))
            true = set(engine.view().running)
            believed = set(mast._books.running) if mast._books else set()
            believed = (believed - set(policy._put_off)) | set(mast._preempted) & true
            assert believed == true
            books = mast._ledger
            assert set(books.running) == set(mast._books.running if mast._books else ())
            charged = [*books.running.values(), *(x for x in books.waiting.values() if x.within)]
            assert sum(books._charged.values()) == sum(x.gpus for x in charged)
        assert len(engine.rows.jobs) == len(made)
        spared += policy.spared
    assert spared  # otherwise nothing was tested


def begun(made: list[Job], tenants: dict[str, Tenant]) -> dict[str, list[float]]:
    """When each job got GPUs, on one machine of 8, in seconds."""
    tree = cluster([8])
    policy = open_policy("mast", {}, FIRST_DRAWS, tenants)
    rows = Simulator(tree, made, LevelRates(tree), check=True).run(policy)
    starts: dict[str, list[float]] = {one.id: [] for one in made}
    for row in sorted(rows.placements, key=lambda x: x.start):
        starts[made[row.handle].id].append(seconds(row.start))
    return starts


ABOVE = [
    job("first", 4, 50, tenant="ads", priority=2),
    job("above", 4, 2000, tenant="ads", priority=2),
]
QUOTA = {"ads": Tenant(quota=4), "web": Tenant(quota=8)}


def test_a_victim_above_quota_does_not_take_its_gpus_back_before_the_next_pass() -> None:
    """Without its own GPUs the tenant has quota left: it was urgent, and back, 2 ns later."""
    made = [
        *ABOVE,
        job("low", 4, 20, arrival_s=10.0, tenant="web"),
        job("rest", 4, 2000, arrival_s=50.0, tenant="web"),
        job("next", 4, 100, arrival_s=60.0, tenant="web"),
    ]
    starts = begun(made, QUOTA)
    assert starts["low"] == pytest.approx([10.0], abs=1e-8)
    assert starts["above"][:2] == pytest.approx([0.0, 30.0], abs=1e-8)
    assert starts["next"] == pytest.approx([60.0], abs=1e-8)
    assert 160.0 <= starts["above"][2] <= 300.0


def test_a_pass_gives_a_running_job_its_own_class_once_its_quota_covers_it() -> None:
    made = [
        *ABOVE,
        job("rest", 4, 5000, arrival_s=60.0, tenant="web", priority=1),
        job("waits", 8, 10, arrival_s=61.0),
        job("late", 4, 100, arrival_s=700.0, tenant="web"),
    ]
    starts = begun(made, QUOTA)
    assert starts["above"] == [0.0]
    assert starts["late"] == [2000.0]
