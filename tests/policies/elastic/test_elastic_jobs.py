"""Do elastic jobs run as worked out by hand, under `pollux` and the baselines?"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
from support import (
    Outage,
    S,
    Script,
    cluster,
    finishes,
    intervals,
    job,
    make_policy,
    on,
    run,
    simulator,
)

from artist.cli.commands.why import _stay_line
from artist.cluster.placement import Placement
from artist.contract import (
    ClusterView,
    Decision,
    Migrate,
    Policy,
    Restore,
    SetBatch,
    Start,
    Wake,
    Withdraw,
    WrapperPolicy,
    policy_name,
)
from artist.contract.gates import without
from artist.engine.rows import MIGRATED, Rows
from artist.errors import PolicyError
from artist.policies.elastic.history import History
from artist.policies.pollux.search import Player, Search, SearchRules, Spread, objective
from artist.results.tables import placement_table
from artist.workload.goodput import Batch, Goodput
from artist.workload.job import Job

FREE = Goodput(64, 1024, 8, 128, 0.1, 0.01, 1e-8, 0.0, 1e-8, 0.0, 1.0, ((0.0, 1e12),))
"""Nothing but compute times, and large batches are worth their samples."""
NOISY = Goodput(64, 1024, 8, 128, 0.1, 0.01, 0.1, 0.01, 0.5, 0.05, 2.0, ((0.0, 50.0), (0.5, 900.0)))
ELASTIC = ("pollux", "equal-share", "max-throughput", "optimus")


def with_params(name: str, goodput: Goodput, gpus: int = 1, **fields) -> Job:
    compute_s = goodput.compute_s(goodput.submitted(gpus))
    fields = {"gpus_min": 1, "gpus_max": 8, **fields}
    return job(name, gpus=gpus, compute_s=compute_s, goodput=goodput, **fields)


# -- the engine ---------------------------------------------------------------------------


def test_a_step_is_worth_its_batch_and_efficiency() -> None:
    noisy = with_params("a", NOISY, gpus=2, iterations=100)
    policy = Script({0: [Start(0, on({0: 2})), SetBatch(0, Batch(64, 0))]})
    rows = run(cluster([2]), [noisy], policy)
    step_s = NOISY.step_s(2, Batch(64, 0), one_machine=True)
    # Worth 2 x (50 + 64) / (50 + 128) at first, and 2 x 964 / 1028 in the second half.
    before = 40  # steps until half of the iterations are done: 40 x 1.2809 = 51.2
    after = np.ceil((100 - before * 2 * 114 / 178) / (2 * 964 / 1028))
    assert before == np.ceil(50 / (2 * 114 / 178))
    assert finishes(rows)["a"] == pytest.approx((before + after) * step_s)


def test_a_stay_begins_with_the_submitted_batch() -> None:
    elastic = with_params("a", FREE, gpus=2, iterations=1000)
    one, two = on({0: 2}), on({1: 2})
    script = {0: [Start(0, one), SetBatch(0, Batch(64, 0)), Wake(7 * S)], 7: [Migrate(0, two)]}
    rows = run(cluster([2, 2]), [elastic], Script(script))
    assert [row.iteration_s for row in intervals(rows, 0)] == pytest.approx([0.74, 0.42])
    assert [row.batch for row in intervals(rows, 0)] == [128, 64]


def test_a_run_of_jobs_with_goodput_says_their_batches() -> None:
    tree, jobs = cluster([2]), [with_params("a", FREE, gpus=2, iterations=1000), job("b", 2)]
    script = {0: [Start(0, on({0: 2})), Wake(7 * S)], 7: [SetBatch(0, Batch(64, 0)), Wake(500 * S)],
              500: [Start(1, on({0: 2}))]}  # fmt: skip
    rows = run(tree, jobs, Script(script))
    told = placement_table(rows, tree, ["a", "b"], {})
    assert list(told["batch"]) == [64, 128, 0]
    assert "batch" not in placement_table(run(tree, jobs[1:], make_policy("fifo")), tree, "b", {})
    stay = {"slowdown": None, "gpus": 2, "signature": "2", "level": "machine", "ended": "finished"}
    with_batch = {**stay, "batch": 128}
    assert _stay_line(with_batch, 2)[1].startswith("2 with a batch of 128, tier machine")
    assert _stay_line({**stay, "batch": 0}, 2)[1].startswith("2, tier machine")
    stay |= {"slowdown": 0.5, "batch": 0}
    told = [_stay_line(stay, gpus)[1] for gpus in (2, 4)]
    submitted = [", 0.500 x its isolated time as submitted;" in text for text in told]
    assert submitted == [False, True]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ([SetBatch(0, Batch(64, 0))], "job 'a' is not running"),
        ([Start(0, on({0: 2})), SetBatch(0, Batch(4, 0))], "job 'a' is given 4 samples per GPU"),
        ([Start(0, on({0: 2})), SetBatch(0, (64, 0))], "expected a Batch of whole numbers"),
        ([Start(0, on({0: 2})), *[SetBatch(0, Batch(64, 0))] * 2], "job 'a' is given two batches"),
        ([Start(1, on({0: 1})), SetBatch(1, Batch(64, 0))], "job 'b' has no goodput parameters"),
    ],
)
def test_an_unlawful_batch_is_named(answer: Sequence[Decision], words: str) -> None:
    jobs = [with_params("a", FREE, gpus=2), job("b")]
    with pytest.raises(PolicyError, match=words):
        run(cluster([4]), jobs, Script({0: answer}))


# -- baselines ----------------------------------------------------------------------------


@pytest.mark.parametrize(("restart_s", "last"), [(0, 160), (30, 190)])
def test_two_elastic_jobs_share_a_cluster_equally(restart_s: float, last: float) -> None:
    """At half speed each; the second ends at 100 s, and at 120 s the first gets its GPUs."""
    fields = {"gpus": 4, "gpus_min": 1, "gpus_max": 4, "restart_s": restart_s}
    jobs = [job("a", iterations=100, **fields), job("b", iterations=50, **fields)]
    rows = run(cluster([4]), jobs, make_policy("equal-share"))
    assert finishes(rows) == {"a": last, "b": 100}


def test_throughput_goes_where_it_rises_and_optimus_where_most_is_left() -> None:
    fields = {"gpus": 2, "gpus_min": 1, "gpus_max": 3}
    jobs = [job("short", iterations=10, **fields), job("long", iterations=500, **fields)]
    placed = {
        name: [row.placement.gpus for row in run(cluster([4]), jobs, make_policy(name)).placements]
        for name in ("max-throughput", "optimus")
    }
    # Every GPU is worth as much: the first job takes what it can. Optimus serves the long one.
    assert placed["max-throughput"][0] == 3
    assert placed["optimus"][0] == 1


@pytest.mark.parametrize("compute_s", [0.1, 0.3, 0.7, 1 / 3, 1.1, 2.3])
def test_equal_gains_go_to_the_first_job_whatever_the_length_of_a_step(compute_s: float) -> None:
    fields = {"gpus": 3, "gpus_min": 1, "gpus_max": 6}
    jobs = [
        job("a", iterations=1000, compute_s=compute_s, **fields),
        job("b", iterations=1000, compute_s=1.0, **fields),
    ]
    for some in (jobs, jobs[::-1]):
        rows = run(cluster([7]), some, make_policy("max-throughput"))
        assert [intervals(rows, handle)[0].placement.gpus for handle in (0, 1)] == [6, 1]


# -- Pollux -------------------------------------------------------------------------------


def test_two_equal_jobs_share_a_machine_equally_once_they_have_explored() -> None:
    jobs = [with_params(name, FREE, iterations=4000) for name in "ab"]
    rows = run(cluster([4]), jobs, make_policy("pollux"))
    for handle in (0, 1):
        first, second = intervals(rows, handle)[:2]
        assert (first.placement.gpus, second.placement.gpus) == (1, 2)
        assert (first.end, second.start) == (60 * S, 60 * S)


def test_a_job_on_one_gpu_takes_the_batch_of_the_largest_goodput() -> None:
    alone = with_params("a", FREE, iterations=1590, gpus_max=1)
    rows = run(cluster([1]), [alone], make_policy("pollux"))
    # The largest total, 1024 as 8 passes of 128, is worth 16 iterations.
    assert finishes(rows)["a"] == pytest.approx(100 * 8 * (0.1 + 1.28))
    kept = run(cluster([1]), [alone], make_policy("pollux", adapt_batch=False))
    assert finishes(kept)["a"] == pytest.approx(1590 * 0.74)


def test_rigid_jobs_under_pollux_behave_as_rigid() -> None:
    sizes = [4, 2, 1, 8]
    jobs = [
        job(f"j{n}", gpus=x, iterations=100 * x, arrival_s=30.0 * n) for n, x in enumerate(sizes)
    ]
    rows = run(cluster([4, 4], [4, 4]), jobs, make_policy("pollux"))
    for row in rows.placements:
        assert row.placement.gpus == jobs[row.handle].gpus
    # Each starts at the next round, on as many GPUs as it wants, and nothing moves it.
    assert finishes(rows) == {"j0": 400, "j1": 260, "j2": 160, "j3": 920}
    lone = run(cluster([4]), [job("a", gpus=4)], make_policy("pollux"))
    assert finishes(lone) == {"a": 10}


def test_at_most_one_distributed_job_is_on_a_machine() -> None:
    jobs = [with_params(f"j{x}", NOISY, gpus=3, iterations=900, gpus_min=3) for x in range(3)]
    for rule, most in ((True, 1), (False, 2)):
        rows = run(cluster([2, 2, 2]), jobs, make_policy("pollux", one_distributed=rule))
        shared = 0
        for row in rows.placements:
            for machine in row.placement.leaves:
                others = [
                    x
                    for x in rows.placements
                    if machine in x.placement.leaves and x.start < row.end and row.start < x.end
                ]
                shared = max(shared, sum(len(x.placement.leaves) > 1 for x in others))
        assert shared == most


def _players(random: Random, machines: int) -> list[Player]:
    players = []
    for index in range(3):
        most = random.randint(1, 4)
        one = np.array([0.0, *sorted(random.uniform(0.1, 2) for _ in range(most))])
        several = one * random.uniform(0.5, 1)
        several[:2] = 0
        present: Spread = {index % machines: 1} if random.random() < 0.5 else {}
        stays = float(one[1]) if present else 0.0
        players.append(Player(one * 0.7, several * 0.7, present, stays))
    return players


def _with_kinds(random: Random, player: Player) -> Player:
    """A job that accepts the kind of its machine, if it has one, or any, or both."""
    kinds = ["xy"[machine] for machine in player.present] or [random.choice(["x", "y"])]
    return replace(player, kinds=frozenset(random.choice(["", "xy", *kinds])))


@pytest.mark.parametrize("kinds", [{}, {0: "x", 1: "y"}])
@pytest.mark.parametrize("power", [-2.0, -1.0, 0.0, 1.0])
def test_the_search_finds_the_optimum_of_small_rounds(power: float, kinds: dict[int, str]) -> None:
    random, rules = (
        Random(5),
        SearchRules(power, one_distributed=True, most_machines=16, budget=100),
    )
    rules = replace(rules, kinds=kinds)
    for _ in range(6):
        players = _players(random, 2)
        if kinds:
            players = [_with_kinds(random, player) for player in players]
        search = Search({0: 2, 1: 2}, players, rules)
        options = []
        for player in players:
            mine: list[Spread] = [
                {m: n for m, n in enumerate(counts) if n}
                for counts in product(range(3), repeat=2)
                if sum(counts) <= player.most
                and not any(
                    n and player.kinds and kinds[m] not in player.kinds
                    for m, n in enumerate(counts)
                )
            ]
            options.append(mine)
        optimum = max(
            objective(np.array([search.value(i, x) for i, x in enumerate(state)]), power)
            for state in product(*options)
            if all(sum(x.get(m, 0) for x in state) <= 2 for m in (0, 1))
            and sum(len(x) > 1 for x in state) <= 1
        )
        found = search.best(np.random.default_rng(0))
        values = np.array([search.value(index, x) for index, x in enumerate(found)])
        assert objective(values, power) == pytest.approx(optimum)


def test_jobs_that_share_a_scarce_kind_leave_the_rest_to_one_that_accepts_all() -> None:
    """Each round doubles a job's GPUs, until two share the new ones, and all old ones are left."""
    tree = replace(cluster([4], [4]), kinds=("old", "new"))
    fields = {"iterations": 8000, "gpus_max": 8}
    new = [with_params(name, FREE, gpu_kinds=("new",), **fields) for name in "ab"]
    jobs = [with_params("any", FREE, **fields), *new]
    rows = run(tree, jobs, make_policy("pollux"))
    gpus = {x: [row.placement.gpus for row in intervals(rows, x)] for x in range(3)}
    assert [gpus[0][:3], gpus[1][:2], gpus[2][:2]] == [[1, 2, 4], [1, 2], [1, 2]]


def test_the_numbers_of_gpus_by_kind_are_those_of_the_best_shares() -> None:
    """Of 6 x, 2 y and 6 z: four jobs share x and y, of which one accepts no x; z is for one."""
    linear = np.arange(17) / 4
    accept = [("x",), ("x",), ("x", "y"), ("y",), ()]
    players = [Player(linear, linear, {}, 0.0, frozenset(kinds)) for kinds in accept]
    rules = SearchRules(-1.0, one_distributed=False, most_machines=16, budget=0)
    capacity = {0: 6, 1: 2, 2: 6}
    rules = replace(rules, kinds=dict(enumerate("xyz")))
    found = Search(capacity, players, rules).best(np.random.default_rng(0))
    assert [sum(spread.values()) for spread in found] == [2, 2, 2, 2, 6]
    on_kinds = [{"xyz"[machine] for machine in spread} for spread in found]
    assert all(on_kinds[index] <= set(kinds or "xyz") for index, kinds in enumerate(accept))


def test_a_fair_share_that_no_batch_fits_leaves_speedups_finite() -> None:
    """130 to 160 samples in passes of 50 to 60 go on one GPU or three, not on the fair two."""
    odd = Goodput(130, 160, 50, 60, 0.1, 0.01, 0.1, 0.0, 0.1, 0.0, 1.0, ((0.0, 1e12),))
    assert [odd.fits(gpus) for gpus in (1, 2, 3)] == [True, False, True]
    jobs = [with_params(name, odd, iterations=5000, gpus_max=3) for name in "abcd"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = run(cluster([8]), jobs, make_policy("pollux", explore=False))
    counts = {row.placement.gpus for index in range(4) for row in intervals(rows, index)}
    assert counts == {1, 3}


# -- what counts as a stay ---------------------------------------------------------------


class _LaterStarts(WrapperPolicy):
    """Turns all starts of the first minute down."""

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        starts = view.waiting if view.now < 60 * S else ()
        return without(self.host.decide(view), starts, view, "not yet")[0]


def _exploring(policy: str) -> Policy:
    if policy == "sia":
        pytest.importorskip("scipy")
    return make_policy(policy)


@pytest.mark.parametrize("policy", ["pollux", "sia"])
def test_a_start_that_is_turned_down_is_not_a_stay(policy: str) -> None:
    """A job gets its fewest GPUs first, and at most twice as many as it ever had."""
    alone = with_params("a", FREE, iterations=4000)
    rows = run(cluster([4]), [alone], _LaterStarts(_exploring(policy)))
    gpus = [(row.start // S, row.placement.gpus) for row in intervals(rows, 0)]
    assert gpus[:2] == [(60, 1), (120, 2)]


@pytest.mark.parametrize(
    ("placement", "former", "run", "counts"),
    [
        (on({0: 2}), None, 5, True),
        (on({0: 1}), None, 5, False),  # it was to move, and stayed
        (on({1: 2}), None, 5, True),  # a wrapper chose others
        (None, on({0: 2}), 6, True),  # it has lost them again
        (None, on({0: 2}), 5, False),  # it had lost them before
        (None, on({0: 1}), 6, False),
    ],
)
def test_only_gpus_that_a_job_held_are_a_stay(
    placement: Placement | None, former: Placement | None, run: int, counts: bool
) -> None:
    def seen(placement: Placement | None, run: int) -> SimpleNamespace:
        return SimpleNamespace(
            job=job("a"), handle=0, placement=placement, former_placement=former,
            run_ticks=lambda now: run,
        )  # fmt: skip

    def view(**jobs: Mapping[int, SimpleNamespace]) -> SimpleNamespace:
        return SimpleNamespace(**{"now": 0, "finished": (), "running": {}, "waiting": {}, **jobs})

    history = History()
    history.record(view(), {0: seen(None, 5)}, {0: on({0: 2})})
    history.note(view())  # a wrapper hides it
    history.note(view(running={0: seen(placement, run)}))
    assert history.explored(seen(None, 5)) == (4 if counts else 1)


def test_a_job_that_a_wrapper_keeps_where_it_is_has_no_new_stay() -> None:
    def seen(run: int) -> SimpleNamespace:
        return SimpleNamespace(
            job=job("a"), handle=0, placement=on({0: 2}), former_placement=None,
            run_ticks=lambda now: run,
        )  # fmt: skip

    history = History()
    view = SimpleNamespace(now=0, finished=(), running={0: seen(9)}, waiting={})
    history.record(view, {0: seen(5)}, {0: on({1: 2})})
    history.note(view)
    assert history.explored(seen(5)) == 1


@pytest.mark.parametrize("policy", ["pollux", "sia"])
def test_a_stay_that_an_outage_ends_counts(policy: str) -> None:
    alone = with_params("a", FREE, iterations=4000)
    gone = Outage(Withdraw(10 * S, on({0: 4})), Restore(20 * S, on({0: 4})))
    rows = simulator(cluster([4]), [alone], events=gone).run(_exploring(policy))
    gpus = [(row.start // S, row.placement.gpus) for row in intervals(rows, 0)]
    assert gpus[:2] == [(0, 1), (60, 2)]


# -- laws ---------------------------------------------------------------------------------


def _random_run(name: str, seed: int) -> Rows:
    random = Random(seed)
    jobs = []
    for index in range(8):
        arrival_s, iterations = index * random.uniform(0, 90), random.randint(1, 3000)
        fields = {"arrival_s": arrival_s, "iterations": iterations, "restart_s": 30}
        gpus = random.choice([1, 2, 4])
        if random.random() < 0.3:
            jobs.append(job(f"j{index}", gpus=gpus, **fields))
        else:
            jobs.append(with_params(f"j{index}", random.choice([FREE, NOISY]), gpus=gpus, **fields))
    jobs.sort(key=lambda one: one.arrival_s)
    return run(cluster([4, 2], [2, 4]), jobs, make_policy(name))


@pytest.mark.parametrize("name", ELASTIC)
def test_mixed_jobs_keep_all_laws_and_run_the_same_twice(name: str) -> None:
    """`run` checks every invariant after every event."""
    for seed in range(4):
        rows = _random_run(name, seed)
        assert len(rows.jobs) == 8
        assert rows.placements == _random_run(name, seed).placements
    assert policy_name(make_policy(name)) in ("Pollux", "Shares")


@pytest.mark.parametrize("policy", ["equal-share", "optimus", "tiresias-rounds", "pollux", "sia"])
def test_a_round_is_left_out_only_if_it_would_change_nothing(policy: str) -> None:
    """The jobs have no goodput parameters; there is one kind of GPUs, or two."""
    moves = 0
    for seed in range(12):
        rng = Random(seed)
        tree = cluster([4, 4])
        tree = replace(tree, kinds=("old", "new")) if seed % 2 else tree
        made = []
        for number in range(4):
            gpus, most = rng.randint(1, 3), rng.randint(3, 4)
            made.append(
                job(str(number), gpus, rng.randint(100, 3000), arrival_s=float(rng.randint(0, 300)),
                    gpus_min=1, gpus_max=most, restart_s=rng.choice([30.0, 300.0]))
            )  # fmt: skip
        made.sort(key=lambda one: one.arrival_s)
        runs = []
        for often in (False, True):
            asked = make_policy(policy)
            if often:
                asked.settled = lambda view: False  # type: ignore[attr-defined]
            runs.append(run(tree, made, asked).placements)
        assert runs[0] == runs[1]
        moves += sum(row.reason == MIGRATED for row in runs[0])
    assert moves or policy == "tiresias-rounds"  # otherwise the test could not fail


@pytest.mark.parametrize(("policy", "round_s"), [("equal-share", 60), ("pollux", 60)])
def test_a_job_whose_gpus_become_free_after_a_round_waits_for_the_next(
    policy: str, round_s: int
) -> None:
    made = [job("short", 4, 70), job("long", 4, 500), job("waits", 4, 10, arrival_s=30.0)]
    rows = run(cluster([8]), made, make_policy(policy))
    told = [(row.tick // S, row.cause) for row in rows.wait_reasons if row.handle == 2]
    assert told == [(70, "timer")]
    assert finishes(rows)["waits"] == 2 * round_s + 10
