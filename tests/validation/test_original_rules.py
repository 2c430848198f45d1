"""Do timers, levels, priority, batches and placements follow the original's rules?"""

from __future__ import annotations

import math

import pytest
from support import with_free

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import regular
from validation.original.accounts import Account, after, lease_batches, summed
from validation.original.bids import fits, place
from validation.original.hash_order import HashOrder
from validation.original.policies import (
    MACHINE,
    RACK,
    DallyRule,
    OriginalTuner,
    TiresiasRule,
    skewed,
)

TREE = regular(racks=2, machines_per_rack=2, gpus_per_machine=8, gpus_per_socket=4)
SOCKET_LEVEL, MACHINE_LEVEL, RACK_LEVEL, NETWORK_LEVEL = range(4)
LEASE_S = 3600.0


def tuner(history: float = 48.0) -> OriginalTuner:
    return OriginalTuner(history, 2.0, floors=(6, 12), caps=(math.ceil(0.8 * history), history))


def test_without_waits_the_timers_stand_at_their_floors() -> None:
    assert tuner().timers(4) == (6, 12)


def test_timer_is_mean_plus_two_population_deviations_rounded_up() -> None:
    tuned = tuner()
    for waited in (10.0, 20.0):  # mean 15, population deviation 5
        tuned.record(MACHINE, 4, waited, 100.0)
    assert tuned.timers(4) == (25, 12)
    tuned.record(RACK, 4, 20.5, 100.0)
    assert tuned.timers(4) == (25, 21)


def test_timers_are_capped_by_the_history() -> None:
    tuned = tuner(history=20.0)
    tuned.record(MACHINE, 4, 100.0, 1.0)
    tuned.record(RACK, 4, 100.0, 1.0)
    assert tuned.timers(4) == (16, 20)


def test_waits_of_less_than_a_lease_are_not_recorded() -> None:
    tuned = tuner()
    tuned.record(MACHINE, 4, 30.0, 0.0)
    tuned.record(MACHINE, 4, 0.999, 0.0)
    assert tuned.timers(4)[0] == 30


def test_lists_are_per_demand() -> None:
    tuned = tuner()
    tuned.record(MACHINE, 4, 30.0, 0.0)
    assert tuned.timers(2) == (6, 12)


def test_forgetting_skips_the_entry_behind_each_that_it_removes() -> None:
    tuned = tuner(history=48.0)
    for at, waited in ((0.0, 40.0), (1.0, 20.0), (2.0, 40.0)):
        tuned.record(MACHINE, 4, waited, at)
    tuned.record(MACHINE, 4, 20.0, 100.0)  # the first and third are forgotten, the second is not
    assert tuned.rows[-1]["samples"] == 2
    assert tuned.timers(4)[0] == 20


def levels(waited: float, gpus: int, timers: tuple[float, float] | None) -> list[int]:
    rule = DallyRule(LEASE_S, timers, tuner())
    return list(rule.levels(FreeGpus(TREE), gpus, False, waited * LEASE_S))


@pytest.mark.parametrize(
    ("waited", "gpus", "timers", "open_to"),
    [
        (0, 8, (12, 24), [0, 1]),
        (12, 8, (12, 24), [0, 1, 2]),
        (24, 8, (12, 24), [0, 1, 2, 3]),
        (0, 9, (12, 24), [0, 1, 2]),  # larger than a machine
        (0, 17, (12, 24), [0, 1, 2, 3]),  # larger than a rack
        (0, 1, (0, 0), [0, 1, 2, 3]),
        (1e6, 8, (math.inf, math.inf), [0, 1]),
        (12, 8, (24, 12), [0, 1, 3]),  # both timers count from one instant
        (6, 8, None, [0, 1, 2]),
        (12, 8, None, [0, 1, 2, 3]),
    ],
)
def test_levels_open_by_timers_and_sizes(waited, gpus, timers, open_to) -> None:
    assert levels(waited, gpus, timers) == open_to


def test_network_placements_record_nothing() -> None:
    tuned = tuner()
    rule = DallyRule(LEASE_S, None, tuned)
    rule.granted(TREE, NETWORK_LEVEL, 4, 40 * LEASE_S, 0.0)
    assert tuned.timers(4) == (6, 12)
    rule.granted(TREE, RACK_LEVEL, 4, 40 * LEASE_S, 0.0)
    assert tuned.timers(4) == (6, 40)
    rule.granted(TREE, MACHINE_LEVEL, 4, 30 * LEASE_S, 0.0)
    assert tuned.timers(4) == (30, 40)
    assert [row["level"] for row in rule.tables()["autotuner"]] == ["rack", "machine"]


def test_priority_is_ideal_over_actual_run_time() -> None:
    account = Account(total=8000, compute_s=1e-3, gpus=4, since_s=0.0)
    rule = DallyRule(LEASE_S, None, tuner())
    assert rule.measure(account) == 0.0
    account.ran(1, 2e-3, 1000)  # a batch of 1 s of compute took 2 s
    assert rule.measure(account) == 0.5
    assert account.remaining == 4000
    assert TiresiasRule().measure(account) == 8.0


def test_sums_round_after_each_addition() -> None:
    assert summed(0.0, 0.1, 10) == 0.9999999999999999
    assert summed(3.0, 0.1, 0) == 3.0


@pytest.mark.parametrize(
    ("batch_s", "lease_s", "gpus", "expected"),
    [
        (10.0, 100.0, 1, (10, True)),  # ends with a batch: expired
        (30.0, 100.0, 1, (3, False)),  # 90 + 30 > 100: cut short
        (30.0, 100.0, 4, (4, True)),  # 90 + 30/4 < 100: one more
        (36.0, 100.0, 4, (3, True)),  # 72 + 9 < 100
        (33.0, 100.0, 4, (3, False)),  # 99 + 8.25 > 100
        (500.0, 100.0, 4, (1, True)),  # a batch longer than the lease is never cut
    ],
)
def test_lease_ends_with_a_batch(batch_s, lease_s, gpus, expected) -> None:
    assert lease_batches(batch_s, lease_s, gpus) == expected


def test_batch_ends_when_the_engine_has_done_its_iterations() -> None:
    assert after(5, 3, 1e-9) == 5 + 4  # 1e-9 as a float is a little more than a nanosecond
    assert after(0, 1000, 0.5) == 500_000_000_000


def test_gang_goes_to_a_socket_then_a_machine_then_the_first_free_gpus_of_a_rack() -> None:
    free, visits = FreeGpus(TREE), HashOrder(TREE)
    assert len(place(free, (0, 1, 2, 3), 4, visits)[1].leaves) == 1
    assert len(place(free, (0, 1, 2, 3), 5, visits)[1].leaves) == 2
    assert place(free, (0, 1, 2, 3), 9, visits) == (2, Placement((0, 1, 2), (4, 4, 1)))
    free.claim(Placement((0,), (3,)))
    assert place(free, (2,), 9, visits) == (2, Placement((0, 1, 2), (1, 4, 4)))
    assert place(free, (0, 1, 2), 17, visits) is None
    level, placement = place(free, (0, 1, 3), 9, visits)
    assert level == 3  # though all of it lies in one rack: such a wait is not recorded
    assert max(placement.leaves) < 8
    assert fits(free, (0, 1), 8)
    assert not fits(free, (0, 1), 9)
    assert not fits(free, (0, 1, 2, 3), 30)


RACKS = [[4, 4], [4, 4]]


def test_models_on_a_fixed_list_are_not_consolidated() -> None:
    models = {"alexnet", "VGG", "MobileNetV3", "whatever"}
    assert all(skewed(model) for model in models)
    assert not any(skewed(model) for model in ("ResNet50", "resnet18", "BERT"))


@pytest.mark.parametrize(
    ("free", "gpus", "kind", "open_to"),
    [
        ([0, 0, 0, 3], 2, True, [0]),
        ([0, 0, 1, 3], 2, True, [0, 1]),  # as many GPUs are free as a machine has
        ([0, 0, 0, 3], 9, True, [0, 2]),  # larger than a rack
        ([0, 0, 0, 3], 8, True, [0]),  # as large as a rack: the rack is closed all the same
        ([0, 0, 0, 3], 2, False, [0, 1, 2]),
    ],
)
def test_tiresias_opens_levels_by_the_number_of_free_gpus(free, gpus, kind, open_to) -> None:
    state = with_free(RACKS, *free)
    assert list(TiresiasRule().levels(state, gpus, kind, 1e9)) == open_to


@pytest.mark.parametrize(
    ("free", "gpus", "kind", "expected"),
    [
        ([0, 3, 0, 2], 2, True, {1: 2}),  # visited before the other, though it fits less well
        ([3, 3, 3, 3], 4, True, {0: 3, 1: 1}),
        ([1, 2, 0, 0], 3, True, None),
        ([1, 2, 0, 0], 3, False, {0: 1, 1: 2}),
        ([3, 0, 3, 0], 4, True, None),  # no rack has four; the network is not for skewed jobs
        ([3, 0, 3, 0], 4, False, {0: 3, 2: 1}),
        ([3, 2, 4, 0], 9, True, {0: 3, 1: 2, 2: 4}),
        ([1, 1, 1, 1], 5, False, None),
    ],
)
def test_tiresias_takes_the_first_fit_in_the_first_open_level_with_room(
    free, gpus, kind, expected
) -> None:
    state = with_free(RACKS, *free)
    levels = TiresiasRule().levels(state, gpus, kind, 0.0)
    placed = place(state, levels, gpus, HashOrder(state.tree))
    assert (placed and placed[1]) == (None if expected is None else Placement.of(expected))


def test_tiresias_does_not_prefer_sockets() -> None:
    state = FreeGpus(regular(racks=1, machines_per_rack=1, gpus_per_machine=8, gpus_per_socket=4))
    state.claim(Placement.of({0: 3}))
    levels = TiresiasRule().levels(state, 2, True, 0.0)
    placed = place(state, levels, 2, HashOrder(state.tree))
    assert placed == (state.tree.machine, Placement.of({0: 1, 1: 1}))
