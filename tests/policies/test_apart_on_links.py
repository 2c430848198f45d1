"""Does a job take idle links, and does it wait where it or a neighbour would lose too much?

The network is that of the tests of runs: racks of two machines with eight GPUs, and uplinks of
racks that carry half of what sixteen GPUs send.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from network.runs import job, network, rates
from support import Script, finishes, intervals, make_policy, on, simulator, with_free

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.config import Scenario
from artist.contract import (
    NO_SHARED_LINKS,
    ClusterView,
    Decision,
    JobView,
    Policy,
    Start,
    Uplink,
    WrapperPolicy,
)
from artist.engine.rows import Rows
from artist.errors import PolicyError
from artist.policies.shared.packing import pack_in_level
from artist.policies.shared.placers import placer
from artist.policies.shared.sharing import pack_least_contended
from artist.results.links import link_tables
from artist.run import simulate
from artist.testing import LevelRates, check_policy, situations
from artist.units import Tick
from artist.workload.job import Job

LEAST = {"placement": "least-contended"}
HOSTS = ["fifo", "fifo-backfill", "sjf", "las", "srtf", "srsf", "tiresias", "gandiva", "themis"]


def free_gpus(*free: int) -> FreeGpus:
    """Two racks of two machines, four GPUs each."""
    return with_free([[4, 4], [4, 4]], *free)


# -- the placer --------------------------------------------------------------------


# Two jobs have two GPUs of machines 0 and 1 each, and one of machines 2 and 3 each.
@pytest.mark.parametrize(
    ("gpus", "busy", "expected"),
    [
        (4, {}, {0: 2, 1: 2}),  # nothing is busy: the fuller rack
        (4, {(0, 0): 0.5, (0, 1): 0.5}, {2: 3, 3: 1}),  # its machines' uplinks are: the other one
        (4, {(0, 0): 0.5, (0, 2): 0.1}, {2: 3, 3: 1}),  # the less busy one
        (6, {(0, 2): 0.5}, {2: 3, 3: 3}),  # no other rack has six, and no level is given up
        (2, {(0, 0): 0.5}, {0: 2}),  # inside a machine no uplink is crossed
        (7, {(0, 0): 0.5}, {2: 3, 3: 3, 1: 1}),  # across racks, past machine 0
        (7, {(0, 0): 0.1, (1, 1): 0.5}, {2: 3, 3: 3, 0: 1}),  # rack 0 has only four
    ],
)
def test_idle_links_are_taken_at_the_same_level(gpus, busy, expected) -> None:
    placement = placer("least-contended").place(free_gpus(2, 2, 3, 3), gpus, lambda: busy)
    assert placement == on(expected)


def test_of_two_busy_racks_the_less_busy_one_is_taken() -> None:
    state = free_gpus(3, 3, 4, 4)
    busy = {(0, 0): 0.3, (0, 1): 0.3, (0, 2): 0.2, (0, 3): 0.4}
    assert pack_least_contended(state, 1, 6, lambda: busy) == on({0: 3, 1: 3})
    assert pack_least_contended(state, 1, 6, lambda: {**busy, (0, 3): 0.1}) == on({2: 4, 3: 2})


def left_out(state: FreeGpus, busy: dict[Uplink, float], mark: float) -> FreeGpus:
    """The free GPUs without those of units that are busier than a mark, unit by unit."""
    rest = state.copy()
    for uplink, x in busy.items():
        if x > mark and rest.of(*uplink):
            rest.claim(Placement.of(rest.everything(*uplink)))
    return rest


@given(
    st.tuples(*[st.integers(0, 4)] * 4),
    st.dictionaries(
        st.sampled_from([*((0, x) for x in range(4)), (1, 0), (1, 1)]),
        st.sampled_from([0.0, 0.1, 0.2, 0.5]),
    ),
    st.integers(1, 2),
    st.integers(1, 12),
)
def test_as_many_busy_units_as_can_be_are_left_out(
    free: tuple[int, ...], busy: dict[Uplink, float], level: int, gpus: int
) -> None:
    state = free_gpus(*free)
    inside = {uplink: x for uplink, x in busy.items() if uplink[0] < level}
    fitting = [
        rest
        for mark in sorted({0.0, *inside.values()})
        if (rest := left_out(state, inside, mark)).fits_one(level, gpus)
    ]
    expected = pack_in_level(fitting[0], level, gpus) if fitting else None
    assert pack_least_contended(state, level, gpus, lambda: busy) == expected
    assert state.total == sum(free)


@pytest.mark.parametrize("name", [*HOSTS, "dally"])
def test_under_none_a_run_is_that_of_pack_to_the_byte(name: str) -> None:
    def run(**options: object) -> object:
        scenario = Scenario(trace="tiny-batch", racks=1, policy=name, policy_options=options)
        return simulate(scenario).table("placements")

    packed = run(placement="pack")
    assert run(**LEAST).equals(packed)
    assert run(placement="pack", most_slowdown=0.0).equals(packed)


# -- runs on links -----------------------------------------------------------------


def run(
    policy: Policy, jobs: Sequence[Job], contention: str = "mean", rack_uplinks: int = 8
) -> Rows:
    on_network = network(racks=6, rack_uplinks=rack_uplinks)
    return simulator(on_network.tree, jobs, rates(contention, on_network)).run(policy)


def machines(rows: Rows) -> list[tuple[int, ...]]:
    return [intervals(rows, handle)[0].placement.leaves for handle in range(len(rows.jobs))]


@pytest.mark.parametrize("together", [True, False])
def test_the_next_jobs_go_where_links_are_idle(together: bool) -> None:
    # Racks have machines 2r and 2r + 1. Each job needs a rack and a machine of another one. `pack`
    # gives the second job the rest of rack 1, which the first one sends out of.
    jobs = [job(name, gpus=24, arrival_s=0.0 if together else x) for x, name in enumerate("abc")]
    packed = run(make_policy("fifo"), jobs)
    assert machines(packed) == [(0, 1, 2), (3, 4, 5), (6, 7, 8)]
    apart = run(make_policy("fifo", **LEAST), jobs)
    assert machines(apart) == [(0, 1, 2), (4, 5, 6), (8, 9, 10)]
    assert all(a < b for a, b in zip(finish(apart)[:2], finish(packed)[:2], strict=True))


def finish(rows: Rows) -> list[float]:
    return [finishes(rows)[name] for name in sorted(finishes(rows))]


# `b` shares the uplinks of rack 1 with `a`. Beside VGG-11, BERT loses .03 and VGG-11 .28.
@pytest.mark.parametrize("models", [("vgg11", "bert-large"), ("bert-large", "vgg11")])
@pytest.mark.parametrize(
    ("most", "waits"), [(None, False), (0.3, False), (0.27, True), (0.0, True)]
)
def test_a_job_waits_while_it_or_a_neighbour_would_lose_too_much(models, most, waits) -> None:
    jobs = [job(name, model, gpus=24) for name, model in zip("ab", models, strict=True)]
    rows = run(make_policy("fifo", most_slowdown=most), jobs)
    assert machines(rows)[0] == (0, 1, 2)  # an empty cluster: it starts, though it fills its links
    start = {row.job.id: row.start for row in rows.jobs}
    end = {row.job.id: row.finish for row in rows.jobs}
    assert start["a"] == 0
    assert start["b"] == (end["a"] if waits else 0)


def test_a_job_that_shares_nothing_passes_one_that_waits() -> None:
    jobs = [job("a", gpus=24), job("b", gpus=24), job("c", gpus=16)]
    rows = run(make_policy("fifo-backfill", most_slowdown=0.1), jobs)
    start = {row.job.id: row.start for row in rows.jobs}
    assert start["c"] == 0 < start["b"]


# With one uplink, jobs overfill their own. That is nobody's fault.
@pytest.mark.parametrize(("contention", "uplinks"), [("mean", 8), ("phase", 8), ("mean", 1)])
def test_what_is_expected_is_what_happens(contention: str, uplinks: int) -> None:
    a, b = job("a", gpus=24), job("b", "bert-large", gpus=24)
    at = on({0: 8, 1: 8, 2: 8}), on({3: 8, 4: 8, 5: 8})
    of_run = rates("mean", network(rack_uplinks=uplinks))
    expected = of_run.links.slowdowns(b, at[1], {0: (a, at[0])})
    rows = run(make_policy("fifo"), [a, b], contention, uplinks)
    within = 1e-9 if contention == "mean" else 0.1
    for handle, (one, slowdown) in enumerate([(a, expected.co_located[0]), (b, expected.own)]):
        alone = run(make_policy("fifo"), [one], contention, uplinks).placements[0].iteration_s
        beside = intervals(rows, handle)[0].iteration_s
        assert slowdown == pytest.approx(beside / alone - 1, abs=within)


def test_busy_is_what_the_table_of_links_says_of_a_lone_job() -> None:
    on_network, one = network(), job("a", gpus=24)
    rows = simulator(on_network.tree, [one], on_network.alone).run(make_policy("fifo"))
    table = link_tables(rows, [one], on_network)["links"]
    carried = dict(zip(table["link"], table["utilisation"], strict=True))
    busy = rates("mean", on_network).links.busy({0: (one, on({0: 8, 1: 8, 2: 8}))})
    expected = {
        (1, rack): max(carried[f"rack {rack} up"], carried[f"rack {rack} down"]) for rack in (0, 1)
    }
    assert {uplink: x for uplink, x in busy.items() if x} == pytest.approx(expected)


def test_uplinks_that_carry_everything_are_never_busy() -> None:
    links = rates("mean", network(rack_uplinks=16)).links
    busy = links.busy({0: (job("a", gpus=24), on({0: 8, 1: 8, 2: 8}))})
    assert not any(busy.values())


class Curious(WrapperPolicy):
    """Asks about links at every question, and decides as its host."""

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        for waiting in view.waiting.values():
            moves = dict.fromkeys(view.running)
            view.links.slowdowns(waiting.job, on({1: 8, 2: 8, 4: 8}), {})
            view.links.slowdowns(waiting.job, on({1: 8, 2: 8, 4: 8}), moves)
        view.links.busy({})
        return super().decide(view)


@pytest.mark.parametrize("contention", ["mean", "phase", "table"])
def test_asking_changes_nothing(contention: str, tmp_path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("model,beside,slowdown\nvgg11,vgg11,1.5\n")
    name = f"table:{table}" if contention == "table" else contention
    jobs = [job(f"{x}", gpus=24, arrival_s=7.0 * x) for x in range(6)]
    assert run(Curious(make_policy("fifo")), jobs, name) == run(make_policy("fifo"), jobs, name)


def test_a_job_that_has_just_ended_is_on_no_link() -> None:
    seen = []

    class Last(Script):
        def decide(self, view: ClusterView) -> Sequence[Decision]:
            seen.append(dict(view.links.busy({})))
            return super().decide(view)

    on_network = network()
    script = Last({0.0: [Start(0, on({0: 8, 2: 8}))]})
    simulator(on_network.tree, [job("a")], rates("mean", on_network)).run(script)
    assert seen == [{}, {}]


def test_a_table_of_pairs_counts_jobs_and_takes_the_largest_slowdown(tmp_path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text(
        "model,beside,slowdown\nvgg11,vgg11,1.5\nvgg11,resnet50,1.1\nresnet50,vgg11,1.25\n"
    )
    links = rates(f"table:{table}", network()).links
    moves = {0: (job("a"), on({0: 8, 2: 8})), 1: (job("b", "resnet50"), on({2: 4, 4: 4}))}
    assert links.busy(moves)[0, 2] == 2.0
    assert links.busy(moves)[1, 0] == 1.0
    # The job crosses the uplink of rack 0 only, where `a` is.
    answer = links.slowdowns(job("c"), on({1: 4, 6: 4}), moves)
    assert answer == (pytest.approx(0.5), {0: pytest.approx(0.5)})
    # Beside `b` alone, on rack 2: `b` has `a` beside it already.
    answer = links.slowdowns(job("c"), on({5: 4, 6: 4}), moves)
    assert answer == (pytest.approx(0.1), {1: pytest.approx(0.25)})


# -- the contract ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "most"),
    [*((name, 0.3) for name in [*HOSTS, "dally-fully-consolidated"]), ("las", 0.0), ("dally", 0.0)],
)
def test_policies_that_keep_jobs_apart_keep_the_contract(name: str, most: float) -> None:
    check_policy(lambda: make_policy(name, **LEAST, most_slowdown=most))


class ForgetsLinks(WrapperPolicy):
    """Says that leases are contested only where they would be without contention."""

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        options = self.host.options
        self.host.options = options.model_copy(update={"most_slowdown": None})
        contested = super().contests(ended, free, now)
        self.host.options = options
        return contested


@pytest.mark.slow
# Short leases end between the changes of what jobs would lose.
@pytest.mark.parametrize(
    ("name", "placement", "most", "lease_s"),
    [
        ("las", "any", 0.2, 600.0),
        ("las", "pack", 0.4, 600.0),
        ("tiresias", "any", 0.4, 300.0),
    ],
)
def test_a_job_that_waits_because_of_links_contests_leases(name, placement, most, lease_s) -> None:
    options = {"placement": placement, "most_slowdown": most, "lease_s": lease_s}
    check_policy(lambda: make_policy(name, **options))
    with pytest.raises(PolicyError, match="right about leases that no job contests"):
        check_policy(lambda: ForgetsLinks(make_policy(name, **options)))


def test_only_restless_speeds_have_links() -> None:
    tree = situations()[0].tree
    assert LevelRates(tree).links is NO_SHARED_LINKS
    assert LevelRates(tree, restless=True).links is not NO_SHARED_LINKS
