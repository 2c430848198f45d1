"""Do runs slow jobs down that share links: which jobs, by how much, and from when to when?"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping, Sequence

import pytest
from contentions import curve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runs import job, network, rates, renamed, run
from support import Script, intervals, make_policy, on, simulator

from artist.cluster.placement_shape import shape
from artist.contract import Hold, JobView, Start
from artist.engine.rows import Rows
from artist.errors import ConfigError
from artist.network.co_located import CurvedJob, Shared, shared
from artist.network.demand.ways import together, ways
from artist.network.models.mean import MOST_TOGETHER, mean
from artist.network.models.phase import FLUID, MOST_JOBS, PhaseModel
from artist.network.rates.contended_rates import MOVED, ContendedRates
from artist.network.rates.isolated import AloneRates
from artist.network.rates.job_traffic import JobTraffic
from artist.network.rates.placed_job import PlacedJob
from artist.network.rates.solvers import Mean, Phases, alone_s
from artist.units import Tick, ticks
from artist.workload.job import Job

MODELS = ("mean", "phase", "fluid")
every_model = pytest.mark.parametrize("model", MODELS)

# Each over two racks, with one machine of either.
LEFT, RIGHT = {0: 8, 2: 8}, {1: 8, 3: 8}
examples = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def on_rack_uplinks(
    jobs: Sequence[Job], placed: Sequence[Mapping[int, int]], uplinks: int = 8
) -> list[CurvedJob]:
    """The jobs as a model of contention sees them, looked at from the racks."""
    on_network = network(rack_uplinks=uplinks)
    curves = on_network.curves("test")
    tree, fabric = on_network.tree, on_network.fabric
    curved = []
    for one, machines in zip(jobs, placed, strict=True):
        placement = on(machines)
        asked = curves.curve(one.model, shape(tree, placement), frozenset({"network"}))
        of_job = together(ways(tree, fabric, placement, asked.traffic, 1))
        curved.append(CurvedJob(of_job, asked, one.compute_s))
    return curved


def test_two_jobs_slow_each_other_down_while_both_run() -> None:
    # The short one ends first; from then on the long one is as fast as alone.
    jobs = [job("short", iterations=100), job("long", iterations=1000)]
    rows = run(jobs, [LEFT, RIGHT], "mean")
    expected = shared(on_rack_uplinks(jobs, [LEFT, RIGHT]), mean, eta=0.976)
    (short,), (slowed, after) = intervals(rows, 0), intervals(rows, 1)
    for row, answer in ((short, expected[0]), (slowed, expected[1])):
        assert row.iteration_s == pytest.approx(answer.iteration_s, rel=1e-3)
        assert row.iteration_s > 1.05 * row.alone_iteration_s
        assert row.alone_iteration_s == answer.alone_s
        assert row.source == "analytical+mean"
    assert slowed.end == short.end
    assert after.iteration_s == after.alone_iteration_s
    assert after.source == "analytical"


def test_phases_count_from_where_a_job_is_in_its_iteration() -> None:
    # The second job comes when the first is a third into its iteration.
    first = job("first", iterations=1000)
    on_network = network()
    alone = on_network.alone.alone(first, on(LEFT)).iteration_s
    late = job("late", arrival_s=round(7 * alone + alone / 3, 9), iterations=1000)
    rows = run([first, late], [LEFT, RIGHT], "phase", on_network)
    one, two = on_rack_uplinks([first, late], [LEFT, RIGHT])
    into = CurvedJob(one.ways, one.curve, one.compute_s, offset_s=-alone / 3)
    expected = shared([into, two], PhaseModel(), eta=0.976)
    assert intervals(rows, 0)[1].iteration_s == pytest.approx(expected[0].iteration_s, rel=1e-6)
    assert intervals(rows, 1)[0].iteration_s == pytest.approx(expected[1].iteration_s, rel=1e-6)


def test_a_fluid_keeps_an_offset_at_which_jobs_do_not_meet() -> None:
    # A job that communicates for a tenth of its iteration, and one that comes half of one later.
    first = job("first", compute_s=2.0, model="resnet50")
    on_network = network()
    alone = on_network.alone.alone(first, on(LEFT)).iteration_s
    late = job("late", arrival_s=round(3.5 * alone, 9), compute_s=2.0, model="resnet50")
    rows = run([first, late], [LEFT, RIGHT], "fluid", on_network)
    assert {row.source for row in rows.placements} == {"analytical"}
    together_at_once = [first, job("other", compute_s=2.0, model="resnet50")]
    rows = run(together_at_once, [LEFT, RIGHT], "fluid", on_network)
    assert {row.source for row in rows.placements} == {"analytical+fluid"}


def test_time_of_a_slowed_job_is_mapped_to_isolated_time() -> None:
    # A second Down and a second Up alone; at half the bandwidth two seconds Up.
    curved = CurvedJob((), curve((1.0, 0.5), (1.0, 2.0), (1.0, 2.0)), 1.0)
    assert alone_s(curved, 1.0, 0.25) == 0.5
    assert alone_s(curved, 0.5, 0.0) == 0.0
    # Half a second into three: still Down. A second and a half: a quarter of the bytes are sent.
    assert alone_s(curved, 0.5, 1 / 6) == pytest.approx(0.5)
    assert alone_s(curved, 0.5, 1 / 2) == pytest.approx(1.25)


@every_model
def test_a_job_that_shares_no_link_is_unchanged_to_the_byte(model: str) -> None:
    # Two machines of one rack each, and a job in one machine; no jobs meet on an uplink.
    jobs = [job("a"), job("b"), job("c", gpus=4, arrival_s=3.0)]
    placed = [{0: 8, 1: 8}, {2: 8, 3: 8}, {4: 4}]
    rows = run(jobs, placed, model)
    assert rows == run(jobs, placed, "none")


@every_model
def test_an_uplink_that_carries_everything_slows_no_job(model: str) -> None:
    on_network = network(rack_uplinks=32)
    jobs = [job("a"), job("b")]
    rows = run(jobs, [LEFT, RIGHT], model, on_network)
    assert rows == run(jobs, [LEFT, RIGHT], "none", on_network)


def test_none_is_the_rate_function_of_isolated_jobs() -> None:
    on_network = network()
    assert type(rates("none", on_network)) is AloneRates


@pytest.mark.parametrize("model", ["vgg11", "bert-large", "resnet50"])
@pytest.mark.parametrize(
    "machines", [{0: 8, 2: 8}, {0: 8, 1: 8, 2: 8, 3: 8}, {0: 3, 2: 1}, {0: 2, 1: 1, 2: 1}]
)
def test_no_job_sends_more_than_the_bound_by_which_links_are_left_out(model, machines) -> None:
    on_network = network()
    traffic = JobTraffic(on_network, on_network.curves("test"), {})
    placement = on(machines)
    one = job("any", model, gpus=placement.gpus)
    alone = on_network.alone.alone(one, placement)
    placed = PlacedJob(0, one, placement, 0, alone, traffic.crossed(placement))
    for uplink in placed.gpus_in_a_part:
        sent = traffic.at(placed, uplink[0]).offered.get(uplink, (0.0, 0.0))
        assert max(sent) <= traffic.most(placed, uplink)


class Counting:
    """A solver that keeps the jobs that it was asked about."""

    def __init__(self, inner: object) -> None:
        self.inner = inner
        self.name, self.most_jobs = inner.name, inner.most_jobs
        self.asked: list[list[int]] = []

    def shares(
        self, jobs: Sequence[PlacedJob], running: Mapping[int, JobView], now: Tick
    ) -> Mapping[int, float]:
        self.asked.append([placed.handle for placed in jobs])
        return self.inner.shares(jobs, running, now)


def test_only_jobs_joined_to_a_change_are_solved_again() -> None:
    # Two pairs on two pairs of racks. When the third job comes, the first pair is left alone.
    on_network = network()
    jobs = [job("a"), job("b"), job("c", arrival_s=1.0), job("d", arrival_s=2.0)]
    placed = [LEFT, RIGHT, {4: 8, 6: 8}, {5: 8, 7: 8}]
    contended = rates("mean", on_network)
    assert isinstance(contended, ContendedRates)
    counting = Counting(contended._solver)
    contended._solver = counting
    run(jobs, placed, contended, on_network)
    assert counting.asked[:2] == [[0, 1], [2, 3]]
    assert all(asked in ([0, 1], [2, 3]) for asked in counting.asked)


def test_a_small_move_is_not_passed_on() -> None:
    on_network = network()
    jobs = [job("a"), job("b"), job("c", arrival_s=1.0)]
    contended = rates("mean", on_network)

    class Fixed(Counting):
        def shares(self, jobs, running, now):
            self.asked.append([placed.handle for placed in jobs])
            # From the second question on every job would move by far less than MOVED.
            less = 1e-6 * MOVED * (len(self.asked) > 1)
            return {placed.handle: 0.7 - less for placed in jobs}

    contended._solver = Fixed(contended._solver)
    placed = [{0: 8, 2: 8}, {1: 4, 3: 4}, {1: 4, 3: 4}]
    jobs[1:] = [job(x.id, gpus=8, arrival_s=x.arrival_s) for x in jobs[1:]]
    rows = run(jobs, placed, contended, on_network)
    assert [row.start for row in intervals(rows, 1)].count(ticks(1.0)) == 0


def crowd(count: int) -> tuple[list[Job], list[dict[int, int]]]:
    """Jobs of two GPUs, one in each of two neighbouring racks: a chain of all."""
    jobs = [job(f"job-{index}", gpus=4, iterations=400 + index) for index in range(count)]
    placed = []
    for index in range(count):
        here = 2 * (index % 4) + index // 4 % 2
        there = 2 * ((index + 1) % 4) + index // 4 % 2
        placed.append({min(here, there): 2, max(here, there): 2})
    return jobs, placed


@pytest.mark.slow
def test_too_many_joined_jobs_are_left_to_mean_and_the_source_says_so() -> None:
    racks = 2 * MOST_JOBS
    on_network = network(racks)
    count = MOST_JOBS + 1
    # A chain: each job shares a rack with the next one.
    jobs = [job(f"job-{index}") for index in range(count)]
    placed = [{2 * index: 8, 2 * index + 3: 8} for index in range(count)]
    rows = run(jobs, placed, "phase", on_network)
    sources = {row.source for row in rows.placements}
    assert "analytical+mean" in sources
    few = run(jobs[:4], placed[:4], "phase", on_network)
    assert {row.source for row in few.placements} <= {"analytical", "analytical+phase"}


def test_crowds_of_a_run_answer_as_mean_does() -> None:
    count = MOST_TOGETHER + 2
    jobs, placed = crowd(count)
    on_network = network(rack_uplinks=4)
    rows = run(jobs, placed, "mean", on_network)
    expected: Sequence[Shared] = shared(on_rack_uplinks(jobs, placed, 4), mean, eta=0.976)
    for handle, answer in enumerate(expected):
        first = intervals(rows, handle)[0]
        # Who of several equal neighbours is in a crowd may differ: 4 %, as for `mean` itself.
        assert first.iteration_s == pytest.approx(answer.iteration_s, rel=0.04)
        assert first.iteration_s > 1.2 * answer.alone_s


@every_model
def test_a_copied_run_goes_on_with_the_same_rows(model: str) -> None:
    jobs = [job(f"job-{i}", arrival_s=2.0 * i, iterations=50 + 60 * i) for i in range(6)]
    on_network = network()

    def finished(steps: int) -> Rows:
        policy = make_policy("las", lease_s=30.0)
        going = simulator(on_network.tree, jobs, rates(model, on_network), lease_s=30.0)
        asked = 0
        while going.next_question(policy) is not None:
            asked += 1
            if steps and asked % steps == 0:
                going, policy = copy.deepcopy((going, policy))
            if steps and asked % steps == 1:
                going, policy = pickle.loads(pickle.dumps((going, policy)))  # noqa: S301
            going.answer(policy.decide(going.view()))
        return going.rows

    assert finished(2) == finished(0)


@every_model
def test_a_job_that_is_held_keeps_its_links(model: str) -> None:
    on_network = network()
    jobs = [job("a"), job("b")]
    answers = {0.0: [Start(0, on(LEFT)), Start(1, on(RIGHT))], 2.0: [Hold(0, ticks(5.0))]}

    class Woken(Script):
        def decide(self, view):
            from artist.contract import Wake

            extra = [Wake(ticks(2.0))] if view.now == 0 else []
            return [*super().decide(view), *extra]

    rows = simulator(on_network.tree, jobs, rates(model, on_network)).run(Woken(answers))
    held = [row for row in intervals(rows, 0) if row.start == ticks(2.0)]
    assert held and held[0].iteration_s > held[0].alone_iteration_s


@st.composite
def traces(draw: st.DrawFn) -> list[Job]:
    """Up to eight jobs of one or two machines, in a cluster of eight."""
    arrivals = sorted(draw(st.lists(st.sampled_from([0.0, 1.0, 7.5]), min_size=2, max_size=8)))
    return [
        job(
            f"job-{index}",
            draw(st.sampled_from(["vgg11", "bert-large", "resnet50"])),
            arrival_s,
            gpus=draw(st.sampled_from([2, 4, 12, 16, 24])),
            iterations=draw(st.integers(1, 300)),
            compute_s=draw(st.sampled_from([0.02, 0.05, 1 / 3])),
        )
        for index, arrival_s in enumerate(arrivals)
    ]


def test_every_job_has_random_numbers_of_its_own() -> None:
    # Two equal pairs, each on two racks of its own, and the second pair in a run without the first.
    pair, apart = (job("a"), job("b")), [{4: 8, 6: 8}, {5: 8, 7: 8}]
    four = run([*pair, job("c"), job("d")], [LEFT, RIGHT, *apart], "phase")
    ran_s = [row.iteration_s for row in four.placements if row.handle >= 2]
    assert ran_s != [row.iteration_s for row in four.placements if row.handle < 2]
    absent = [job("a", iterations=1, gpus=8), job("b", iterations=1, gpus=8)]
    alone = run([*absent, job("c"), job("d")], [{0: 8}, {1: 8}, *apart], "phase")
    assert ran_s == [row.iteration_s for row in alone.placements if row.handle >= 2]


def whole(model: str, jobs: Sequence[Job], policy: str) -> Rows:
    on_network = network(rack_uplinks=4)
    chosen = make_policy(policy)
    lease_s = None if chosen.lease is None else chosen.lease / 1e9
    going = simulator(on_network.tree, jobs, rates(model, on_network), lease_s=lease_s)
    return going.run(chosen)


every_policy = pytest.mark.parametrize("policy", ["fifo", "las", "gandiva"])


@every_policy
@pytest.mark.parametrize("model", ["mean", "phase"])
@examples
@given(jobs=traces())
def test_contention_never_makes_an_iteration_faster(model, policy, jobs) -> None:
    for row in whole(model, jobs, policy).placements:
        assert row.iteration_s >= row.alone_iteration_s
        assert ("+" in row.source) == (row.iteration_s != row.alone_iteration_s)


@every_policy
@pytest.mark.parametrize("model", ["mean", "phase"])
@examples
@given(jobs=traces())
def test_names_of_jobs_change_nothing(model, policy, jobs) -> None:
    assert whole(model, jobs, policy).placements == whole(model, renamed(jobs), policy).placements


def test_an_unknown_option_or_argument_is_refused() -> None:
    for name, options, said in (
        ("mean", {"beta": 1}, "contention mean: unknown setting 'beta'"),
        ("mean", {"eta": 0}, "contention mean: 'eta'"),
        ("phase", {"eta": 1.1}, "contention phase: 'eta'"),
        ("phase:3", {}, "contention phase:3: phase takes no argument"),
        (
            "none",
            {"eta": 0.9},
            "contention none takes no settings, got 'eta'; contention.* goes",
        ),
        ("maen", {}, "unknown model of contention 'maen': did you mean 'mean'?"),
    ):
        with pytest.raises(ConfigError) as caught:
            rates(name, network(), **options)
        assert said in str(caught.value)


@every_model
def test_a_job_that_overfills_its_own_uplinks_is_slowed_by_nothing_else(model: str) -> None:
    one, on_network = job("one"), network(rack_uplinks=1)
    (row,) = intervals(run([one], [LEFT], model, on_network), 0)
    asked = {"mean": mean, "phase": PhaseModel(), "fluid": PhaseModel(FLUID)}[model]
    (expected,) = shared(on_rack_uplinks([one], [LEFT], uplinks=1), asked, eta=0.976)
    assert expected.own_share < 0.5
    assert row.iteration_s == pytest.approx(expected.iteration_s, rel=1e-3)
    assert row.iteration_s > 1.5 * row.alone_iteration_s
    assert row.own_longer_s == pytest.approx(row.iteration_s - row.alone_iteration_s, rel=1e-9)


@every_model
def test_others_cost_a_job_more_than_its_own_uplinks(model: str) -> None:
    jobs, on_network = [job("one"), job("two")], network(rack_uplinks=1)
    rows = run(jobs, [LEFT, RIGHT], model, on_network)
    alone = run(jobs[:1], [LEFT], model, on_network)
    (own,) = intervals(alone, 0)
    assert intervals(rows, 0)[0].iteration_s > 1.3 * own.iteration_s
    # Its own part is what it loses alone, whoever is beside it.
    for row in (own, *intervals(rows, 0)):
        longer_s = own.iteration_s - own.alone_iteration_s
        assert row.own_longer_s == pytest.approx(longer_s, rel=1e-9)


@every_model
@pytest.mark.parametrize("others", [1, 8])
def test_a_job_loses_no_less_than_it_would_alone(
    model: str, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even where the lone job's answer has converged less than that of all jobs."""
    solver = Mean if model == "mean" else Phases
    monkeypatch.setattr(solver, "own_share", lambda _, placed: 0.9 * placed.share)
    jobs = [job("one", gpus=8), *(job(f"{n}", gpus=2, iterations=100) for n in range(others))]
    placed = [{0: 4, 2: 4}, *[{1: 1, 3: 1}] * others]
    rows = run(jobs, placed, model, network(rack_uplinks=1))
    (*_, last) = told = intervals(rows, 0)
    assert last.own_longer_s > 0
    for row in told:
        whole_s = row.iteration_s - row.alone_iteration_s
        assert row.own_longer_s <= whole_s * (1 + 1e-9)


@every_model
def test_a_job_whose_uplinks_carry_all_that_it_sends_has_no_own_part(model: str) -> None:
    rows = run([job("one"), job("two")], [LEFT, RIGHT], model)
    slowed = intervals(rows, 0)[0]
    assert slowed.iteration_s > slowed.alone_iteration_s
    assert slowed.own_longer_s == 0.0
