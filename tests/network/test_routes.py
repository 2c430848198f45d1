"""Are connections put on parallel links as ECMP and static routes would, and do collisions cost?"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from contentions import LINE, curve
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import job, network, rates, renamed, run
from support import Script, intervals, make_policy, on, simulator

from artist.cluster.fabric import Fabric, load_fabric
from artist.cluster.links import Link
from artist.contract import ClusterView, Decision, SharedLinks, Start
from artist.engine.rows import Rows
from artist.network.co_located import CurvedJob, shared
from artist.network.demand.routes import Routes, Taken, outside, routed
from artist.network.demand.ways import Way, bytes_on_links
from artist.network.models.canonical import Model
from artist.network.models.mean import mean
from artist.network.models.phase import fluid
from artist.network.rates.contended_rates import ContendedRates
from artist.network.rates.network_of_run import NetworkOfRun
from artist.policies.cassini.candidates import choose
from artist.policies.cassini.jobs_on_links import JobsOnLinks
from artist.policies.cassini.solver import LinkSolver
from artist.policies.cassini.wrapper import CassiniOptions
from artist.results.links import link_tables
from artist.units import GIB

# Each over two racks, with one machine of either: eight connections each way.
LEFT, RIGHT = {0: 8, 2: 8}, {1: 8, 3: 8}
RACK_PAIR = (Link("rack", 0, "up", 4 * LINE / GIB), Link("rack", 1, "down", 4 * LINE / GIB))


def four_links(routing: str, queue_pairs: int | None = None) -> Fabric:
    """Racks with four links of `LINE`."""
    loaded = load_fabric("leaf-spine")
    machine, rack, outermost = loaded.levels
    assert rack.uplink is not None
    stated = {"rate_gib_per_s": LINE / GIB, "count": 4, "routing": routing}
    stated["queue_pairs"] = queue_pairs
    uplink = rack.uplink.model_copy(update={"oversubscription": None, **stated})
    levels = (machine, rack.model_copy(update={"uplink": uplink}), outermost)
    return loaded.model_copy(update={"levels": levels})


def way(connections: float = 1.0, links: tuple[Link, ...] = RACK_PAIR) -> Way:
    """Each connection sends a second at the line rate of one link."""
    return Way(links, connections * LINE, connections)


def links_of(taken: Taken) -> Counter[int]:
    """How many connections, or which part of them, are on each link."""
    used: Counter[int] = Counter()
    for of_way in taken.values():
        for links, part in of_way:
            assert len({link.index for link in links}) == 1
            used[links[0].index or 0] += part  # type: ignore[assignment]
    return used


# -- ECMP: closed forms ------------------------------------------------------------------


@pytest.mark.slow
def test_two_connections_collide_on_one_of_four_links_in_a_quarter_of_all_seeds() -> None:
    seeds = 4000
    collisions = 0
    for seed in range(seeds):
        routes = Routes(four_links("ecmp"), seed)
        first, second = (links_of(routes.enter(one, [way()], 1.0)) for one in (0, 1))
        collisions += first.keys() == second.keys()
    # Three standard deviations of a binomial variable.
    assert collisions / seeds == pytest.approx(1 / 4, abs=3 * math.sqrt(3 / 16 / seeds))


def expected_maximum(balls: int, bins: int) -> float:
    """Of the fullest bin, from all ways in which balls fall into bins."""
    fullest = [max(Counter(fall).values()) for fall in product(range(bins), repeat=balls)]
    return sum(fullest) / len(fullest)


@pytest.mark.parametrize("model", [fluid, mean])
@pytest.mark.parametrize("connections", [2, 4, 6])
def test_the_fullest_link_is_that_of_balls_in_bins(model: Model, connections: int) -> None:
    # A job computes for a second and sends for one. Nothing overlaps and bytes are all there is, so
    # with n connections on its fullest link it sends for n seconds.
    seeds, total, of_bins = 400, 0.0, 0.0
    flat = curve((1.0, 0.0625), (1.0, 16.0), (1.0, 16.0))
    for seed in range(seeds):
        every = [way(connections)]
        taken = Routes(four_links("ecmp"), seed).enter(0, every, 1.0)
        most = round(max(links_of(taken).values()) * connections)
        (answer,) = shared([CurvedJob(routed(every, taken), flat, 1.0)], model)
        assert answer.iteration_s == pytest.approx(1.0 + most, rel=1e-6)
        assert answer.alone_s == pytest.approx(answer.iteration_s)  # nobody else is there
        total, of_bins = total + answer.iteration_s - 1.0, of_bins + most
    # The maximum of six balls deviates by .77.
    exact = expected_maximum(connections, 4)
    assert total / seeds == pytest.approx(exact, abs=3 * 0.8 / math.sqrt(seeds))


@pytest.mark.slow
@pytest.mark.parametrize("queue_pairs", [2, 3])
def test_queue_pairs_are_balls_of_their_own(queue_pairs: int) -> None:
    # Two connections, so two lines' worth on the fullest link at worst.
    seeds, total = 2000, 0.0
    for seed in range(seeds):
        taken = Routes(four_links("ecmp", queue_pairs), seed).enter(0, [way(2)], 1.0)
        total += 2 * max(links_of(taken).values())
    exact = expected_maximum(2 * queue_pairs, 4) / queue_pairs
    assert total / seeds == pytest.approx(exact, abs=3 * 0.8 / queue_pairs / math.sqrt(seeds))
    assert exact < expected_maximum(2, 4)


def test_a_lone_connection_is_as_fast_as_on_pooled_links() -> None:
    flat = curve((1.0, 0.0625), (1.0, 16.0), (1.0, 16.0))
    taken = Routes(four_links("ecmp"), 0).enter(0, [way()], 1.0)
    (answer,) = shared([CurvedJob(routed([way()], taken), flat, 1.0)], fluid)
    assert (answer.share, answer.iteration_s) == (1.0, 2.0)


def test_a_hash_depends_on_the_job_the_pair_and_the_seed_and_on_nothing_else() -> None:
    routes = Routes(four_links("ecmp"), 7)
    other_pair = (replace(RACK_PAIR[0], unit=2), RACK_PAIR[1])
    ways = [way(8), way(8, other_pair)]
    taken = routes.enter(3, ways, 1.0)
    routes.enter(4, ways, 1.0)
    assert routes.enter(3, ways[::-1], 2.0) == taken
    assert taken[RACK_PAIR] != [
        (tuple(replace(x, unit=y.unit) for x, y in zip(links, RACK_PAIR, strict=True)), part)
        for links, part in taken[other_pair]
    ]
    assert Routes(four_links("ecmp"), 8).enter(3, ways, 1.0) != taken


def test_connections_of_uneven_placements_are_counted_up() -> None:
    taken = Routes(four_links("static"), 0).enter(0, [way(2.5)], 1.0)
    assert links_of(taken) == {0: 1 / 3, 1: 1 / 3, 2: 1 / 3}
    sent = routed([way(2.5)], taken)
    assert sum(one.volume_bytes for one in sent) == pytest.approx(2.5 * LINE)
    assert sum(one.connections for one in sent) == pytest.approx(2.5)


def test_a_connection_takes_one_link_at_each_level_that_it_leaves() -> None:
    inner = (Link("machine", 0, "up", 8.0), *RACK_PAIR, Link("machine", 9, "down", 8.0))
    taken = Routes(four_links("ecmp"), 0).enter(0, [way(4, inner)], 1.0)
    seen = routed([way(4, inner)], taken)
    assert {link.index for one in seen for link in one.links if link.level == "machine"} == {None}
    from_racks = outside(seen, frozenset({"rack", "network"}))
    assert bytes_on_links(from_racks) == {
        link: sent for link, sent in bytes_on_links(seen).items() if link.level == "rack"
    }


# -- static ------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=4).flatmap(st.just))
def test_as_many_connections_as_links_never_collide(jobs: list[tuple[int, int]]) -> None:
    routes, left, used = Routes(four_links("static"), 0), 4, Counter[tuple[str, int, int]]()
    for handle, (rack, wanted) in enumerate(jobs):
        count = min(wanted, left)
        if not count:
            continue
        left -= count
        ends = (replace(RACK_PAIR[0], unit=rack), replace(RACK_PAIR[1], unit=(rack + 1) % 4))
        for links, part in routes.enter(handle, [way(count, ends)], 1.0)[ends]:
            for link in links:
                used[link.direction, link.unit, link.index or 0] += round(part * count)
    assert max(used.values(), default=0) <= 1


def test_a_link_that_a_job_has_left_is_free_again() -> None:
    routes = Routes(four_links("static"), 0)
    every = [links_of(routes.enter(handle, [way()], 1.0)) for handle in range(4)]
    assert every == [{0: 1}, {1: 1}, {2: 1}, {3: 1}]
    tried = routes.without([2])
    assert links_of(tried.enter(9, [way()], 1.0)) == {2: 1}
    # Trying has changed nothing: all four are full, so the first is as good as any.
    assert links_of(routes.enter(9, [way()], 1.0)) == {0: 1}


def test_the_link_with_the_least_traffic_is_taken() -> None:
    routes = Routes(four_links("static"), 0)
    for handle, busy_s in enumerate((1.0, 2.0, 0.5, 1.5)):
        routes.enter(handle, [way()], busy_s)
    assert links_of(routes.enter(4, [way()], 1.0)) == {1: 1}  # half a line rate until now
    assert links_of(routes.enter(5, [way()], 1.0)) == {3: 1}  # two thirds


# -- spraying ----------------------------------------------------------------------------


def sprayed(every: Sequence[Way], links: int) -> tuple[Way, ...]:
    """The same traffic, with the packets of each connection evenly over all links."""

    def one(link: Link, index: int) -> Link:
        return replace(link, capacity_gib_per_s=link.capacity_gib_per_s / links, index=index)

    return routed(
        every,
        {
            way.links: [
                (tuple(one(link, index) for link in way.links), 1 / links) for index in range(links)
            ]
            for way in every
        },
    )


@pytest.mark.parametrize("model", [fluid, mean])
@given(
    jobs=st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(0, 2), st.integers(1, 2)), min_size=1, max_size=3),
            st.integers(1, 6),
            st.sampled_from([0.3, 0.7, 1.1]),
        ),
        min_size=2,
        max_size=3,
    )
)
@settings(max_examples=25)
def test_pooled_links_are_ideal_packet_spraying(
    model: Model, jobs: list[tuple[list[tuple[int, int]], int, float]]
) -> None:
    # Between three racks; who communicates meets the others on links up, down, or not at all.
    flat = curve((1.0, 0.0625), (1.0, 16.0), (1.0, 16.0))
    pooled = [
        [
            way(
                connections * busy_s,
                (
                    replace(RACK_PAIR[0], unit=rack),
                    replace(RACK_PAIR[1], unit=(rack + hop) % 3),
                ),
            )
            for rack, hop in dict.fromkeys(pairs)
        ]
        for pairs, connections, busy_s in jobs
    ]
    (one, several) = (
        shared(
            [
                CurvedJob(tuple(spread(every)), flat, busy_s)
                for every, (_, _, busy_s) in zip(pooled, jobs, strict=True)
            ],
            model,
        )
        for spread in (tuple, lambda every: sprayed(every, 4))
    )
    assert [x.iteration_s for x in several] == pytest.approx([x.iteration_s for x in one], rel=1e-6)


# -- runs --------------------------------------------------------------------------------


def on_eight_links(routing: str, seed: int = 0, links: int = 8) -> NetworkOfRun:
    """Eight links, or more, of 1 GiB/s, each of which carries one connection."""
    here = network(rack_uplinks=links, seed=seed)
    machine, rack, outermost = here.fabric.levels
    assert rack.uplink is not None
    uplink = rack.uplink.model_copy(update={"routing": routing})
    levels = (machine, rack.model_copy(update={"uplink": uplink}), outermost)
    return replace(here, fabric=here.fabric.model_copy(update={"levels": levels}))


def slowdowns(rows: Rows, jobs: int) -> list[float]:
    return [
        first.iteration_s / first.alone_iteration_s
        for first in (intervals(rows, handle)[0] for handle in range(jobs))
    ]


@pytest.mark.parametrize("model", ["mean", "phase", "fluid"])
def test_balanced_connections_are_as_fast_as_on_pooled_links(model: str) -> None:
    jobs = [job("a"), job("b", iterations=500)]
    pooled = slowdowns(run(jobs, [LEFT, RIGHT], model, network(rack_uplinks=8)), 2)
    static = slowdowns(run(jobs, [LEFT, RIGHT], model, on_eight_links("static")), 2)
    assert min(static) > 1.1
    assert static == pytest.approx(pooled, rel=0.02)


@pytest.mark.parametrize("model", ["mean", "phase", "fluid"])
def test_a_lone_job_is_slowed_by_its_own_collisions(model: str) -> None:
    # Eight connections on eight links of which each carries one: with a hash some links get more.
    row = intervals(run([job("a")], [LEFT], model, on_eight_links("ecmp")), 0)[0]
    assert row.iteration_s > 1.5 * row.alone_iteration_s
    assert row.source == f"analytical+{model}"
    assert run([job("a")], [LEFT], model, on_eight_links("static")) == run(
        [job("a")], [LEFT], model
    )


@pytest.mark.parametrize("model", ["mean", "phase"])
@pytest.mark.parametrize("routing", ["ecmp", "static"])
def test_names_change_nothing_on_routed_links(model: str, routing: str) -> None:
    jobs = [job("a"), job("b", "bert-large", arrival_s=1.0), job("c", arrival_s=2.0)]
    places = [LEFT, RIGHT, {4: 8, 6: 8}]
    one = run(jobs, places, model, on_eight_links(routing))
    assert run(renamed(jobs), places, model, on_eight_links(routing)).placements == one.placements


def test_another_seed_is_another_hash() -> None:
    by_seed = {
        intervals(run([job("a")], [LEFT], "mean", on_eight_links("ecmp", seed)), 0)[0].iteration_s
        for seed in range(6)
    }
    assert len(by_seed) > 1


@pytest.mark.parametrize("routing", ["ecmp", "static"])
def test_links_carry_together_what_the_uplink_does(routing: str) -> None:
    jobs, places = [job("a"), job("b", arrival_s=1.0)], [LEFT, RIGHT]

    def carried(here: NetworkOfRun) -> dict[str, float]:
        links = link_tables(run(jobs, places, "mean", here), jobs, here)["links"]
        sums: Counter[str] = Counter()
        for name, sent in zip(links["link"], links["bytes"], strict=True):
            level, unit, direction = name.split()
            sums[f"{level} {unit.partition('.')[0]} {direction}"] += sent
        return dict(sums)

    pooled, parts = carried(network(rack_uplinks=8)), carried(on_eight_links(routing))
    assert parts == pytest.approx(pooled, rel=1e-9)


def test_a_link_is_named_by_its_place_in_the_uplink() -> None:
    here, jobs = on_eight_links("static"), [job("a")]
    tables = link_tables(run(jobs, [LEFT], "mean", here), jobs, here)
    names = set(tables["links"]["link"])
    assert {name for name in names if name.startswith("rack")} == {
        f"rack {rack}.{index} {direction}"
        for rack in (0, 1)
        for index in range(8)
        for direction in ("up", "down")
    }


def test_a_question_about_a_job_moves_no_connection_of_a_run() -> None:
    here, of_run = on_eight_links("static"), rates("mean", on_eight_links("static"))
    # Four connections each: the second job takes the four links that the first one leaves idle.
    jobs = [job("a", gpus=8), job("b", gpus=8, arrival_s=1.0)]
    places = [{0: 4, 2: 4}, {1: 4, 3: 4}]

    class Curious(Script):
        def decide(self, view: ClusterView) -> Sequence[Decision]:
            of_run.links.slowdowns(job("x", gpus=8), on(places[1]), {})
            return super().decide(view)

    answers = {one.arrival_s: [Start(i, on(places[i]))] for i, one in enumerate(jobs)}
    asked = simulator(here.tree, jobs, of_run).run(Curious(answers))
    assert asked == run(jobs, places, "mean", here)
    assert {x.iteration_s / x.alone_iteration_s for x in asked.placements} == {1.0}


def test_the_threshold_holds_on_the_links_that_a_job_gets() -> None:
    # Both cross the uplink of the second rack; some hashes put them on the same links of it.
    jobs = [job("a", gpus=24, iterations=20_000), job("b", gpus=24, arrival_s=1.0)]
    together = 0
    for seed in range(20):
        here = on_eight_links("ecmp", seed, links=64)
        policy = make_policy("fifo", most_slowdown=0.1)
        rows = simulator(here.tree, jobs, rates("mean", here)).run(policy)
        together += rows.jobs[1].start == rows.jobs[1].job.arrival_s
        for handle in range(2):
            took = [x.iteration_s for x in intervals(rows, handle)]
            assert max(took) <= 1.1 * min(took)
    assert 0 < together < 20


def test_a_copy_of_a_run_goes_its_own_way() -> None:
    of_run = rates("mean", on_eight_links("static"))
    assert isinstance(of_run, ContendedRates)
    twin = copy.deepcopy(of_run)
    twin._taken.note(0, 1, {RACK_PAIR: []})
    assert of_run._taken.at(0, 5) is None
    assert copy.deepcopy(twin)._taken.at(0, 5) is None
    routes = Routes(four_links("static"), 0)
    routes.enter(0, [way()], 1.0)
    copy.deepcopy(routes).leave(0)
    assert links_of(routes.enter(1, [way()], 1.0)) == {1: 1}


@pytest.mark.parametrize("routing", ["ecmp", "static"])
def test_policies_see_whole_uplinks_before_they_know_links(routing: str) -> None:
    here = on_eight_links(routing)
    of_run, pooled = rates("mean", here), rates("mean", network(rack_uplinks=8))
    move = {0: (job("a"), on(LEFT))}
    assert of_run.links.busy(move) == pytest.approx(pooled.links.busy(move))
    pattern = of_run.links.pattern(job("a"), on(LEFT), handle=0 if routing == "static" else None)
    assert pattern == pooled.links.pattern(job("a"), on(LEFT))
    for uplink in pattern.up:
        assert of_run.links.capacity(uplink) == pooled.links.capacity(uplink)


def test_a_hash_names_the_links_on_which_a_job_sends() -> None:
    links = rates("mean", on_eight_links("ecmp")).links
    whole, by_hash = (links.pattern(job("a"), on(LEFT), handle=x) for x in (None, 3))
    for rack in (0, 1):
        mine = {on_link: x for on_link, x in by_hash.up.items() if on_link[:2] == (1, rack)}
        assert all(len(on_link) == 3 for on_link in mine)
        sent = sum(x.up_s * x.out_bytes_per_s for x in mine.values())
        assert sent == pytest.approx(whole.up[1, rack].up_s * whole.up[1, rack].out_bytes_per_s)
    assert by_hash != links.pattern(job("a"), on(LEFT), handle=4)
    # Its own collisions are in its iteration.
    assert by_hash.iteration_s > whole.iteration_s
    taken = rates("mean", on_eight_links("ecmp")).links.pattern(job("x"), on(LEFT), handle=3)
    assert taken == by_hash


def test_cassini_loses_less_if_it_sees_the_links_of_a_hash() -> None:
    # One of three placements beside `a`. On whole uplinks the first two-rack one looks best.
    a, b, solver = job("a"), job("b", "vgg16"), LinkSolver(CassiniOptions().solver(0))
    places = [on({1: 8, 3: 8}), on({1: 8, 4: 8}), on({3: 8, 4: 8})]

    def chosen(links: SharedLinks, handles: Sequence[int | None]) -> int:
        candidates = []
        for place in places:
            there = JobsOnLinks()
            there.put(0, on(LEFT), links.pattern(a, on(LEFT), handle=handles[0]))
            pattern = links.pattern(b, place, handle=handles[1])
            there.put(1, place, pattern)
            joined = there.joined(pattern.up, links.capacity)
            candidates.append([there.use(uplink, links) for uplink in joined])
        return choose(candidates, solver).index

    seen = whole = 0.0
    for seed in range(20):
        links = rates("phase", on_eight_links("ecmp", seed, links=16)).links
        lost = [links.slowdowns(b, place, {0: (a, on(LEFT))}, 1).most for place in places]
        seen += lost[chosen(links, (0, 1))]
        whole += lost[chosen(links, (None, None))]
    assert seen < 0.9 * whole
