"""Do pods that come and leave wait as the rule says, and are their times and loads right?"""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pods_made_up import clusters, demand, demands, group, lists, machine_file, pod_list

from artist.errors import ConfigError, TraceError
from artist.pods.machines import PodMachines
from artist.pods.over_time import REFUSED, WAITING, over_time, over_time_in_order
from artist.pods.placing import Placing
from artist.pods.pod_list import Demand, PodList
from artist.pods.pod_times import TimedPods, at_load, offered_load, read_timed_pods
from artist.pods.waits import mean_waits_s, summary, timeline, waits_s

S = 1_000_000_000


def timed(*pods: tuple[Demand, int, int], end: int | None = None) -> TimedPods:
    """Pods with arrival and duration in seconds."""
    some = pod_list(dict.fromkeys((one for one, _, _ in pods), 1))
    which = np.array([some.demands.index(one) for one, _, _ in pods])
    listed = PodList(some.demands, which)
    arrival, duration = (np.array([one[k] * S for one in pods], np.int64) for k in (1, 2))
    return TimedPods(listed, listed, arrival, duration, end=end)


def test_a_pod_that_does_not_fit_holds_up_nobody() -> None:
    # One GPU. Half of it is held for 10 s; a whole one must wait; a half that comes later need not.
    pods = timed((demand(500), 0, 10), (demand(1000), 1, 5), (demand(500), 2, 3), (demand(0), 4, 1))
    stay = over_time(machine_file(group(1)), pods, "best-fit", 0)
    assert stay.start.tolist() == [0, 10 * S, 2 * S, 4 * S]
    assert waits_s(pods, stay).tolist() == [0, 9, 0, 0]
    assert stay.lacking == {"gpus": 1}
    facts = summary([(pods, stay)])
    assert (facts["wait_mean_s"], facts["waited_percent"]) == (2.25, 25.0)
    # Until the last arrival at 4 s: half is held for 2 s, all for 2 s.
    assert facts["allocated_percent"] == 75.0
    assert timeline(pods, stay)["allocated_percent"].mean() == pytest.approx(75.0)
    assert timeline(pods, stay)["waiting"].mean() == pytest.approx(0.75)


def test_what_waits_starts_in_order_of_arrival_when_pods_leave() -> None:
    # Two wait for the whole GPU, a half behind them. Ticks at which all leave and come are one.
    pods = timed(
        (demand(1000), 0, 4), (demand(1000), 1, 2), (demand(500), 2, 1), (demand(1000), 3, 1),
        (demand(500), 4, 1),
    )  # fmt: skip
    stay = over_time(machine_file(group(1)), pods, "fgd", 0)
    assert (stay.start // S).tolist() == [0, 4, 6, 7, 6]


def test_a_pod_that_no_machine_has_room_for_is_refused_and_one_at_the_end_still_waits() -> None:
    pods = timed((demand(1000), 0, 9), (demand(2000), 1, 1), (demand(1000), 2, 1), end=5 * S)
    stay = over_time(machine_file(group(1)), pods._replace(end=2 * S), "fgd", 0)
    assert stay.start.tolist() == [0, REFUSED, WAITING]
    run = (pods._replace(end=5 * S), stay)
    assert waits_s(*run).tolist() == [0, 3]
    facts = summary([run])
    assert (facts["refused"], facts["still_waiting"]) == (1, 1)


def naive(file, pods: TimedPods, placer: str, order, draws) -> list[int]:
    """Each instant, all that wait are tried one after the other."""
    placing = Placing(file, pods.of, placer, order, draws)
    every = np.arange(file.count)
    asks = [pods.pods.demands[number] for number in pods.pods.which.tolist()]
    start = [
        WAITING if PodMachines(file.machines).fit(one, every).any() else REFUSED for one in asks
    ]
    running: dict[int, tuple[int, object]] = {}
    arrival, duration = pods.arrival.tolist(), pods.duration.tolist()
    now = 0
    while True:
        for pod, (end, place) in [*running.items()]:
            if end == now:
                placing.leave(place, asks[pod])
                del running[pod]
        for pod, one in enumerate(asks):
            if start[pod] == WAITING and arrival[pod] <= now:
                place = placing.place(one)
                if place is not None:
                    start[pod], running[pod] = now, (now + duration[pod], place)
        assert placing.held_milli == sum(asks[pod].milli for pod in running)
        left = [one for one in arrival if one > now] + [end for end, _ in running.values()]
        if not left:
            return start
        now = min(left)


@pytest.mark.parametrize("placer", ["fgd", "best-fit", "gpu-clustering"])
@settings(max_examples=25)
@given(groups=clusters, some=st.lists(st.tuples(demands, st.integers(0, 12), st.integers(1, 9)),
       min_size=1, max_size=25), seed=st.integers(0, 9))  # fmt: skip
def test_waiting_pods_start_as_if_all_were_tried_at_each_instant(
    placer: str, groups, some, seed: int
) -> None:
    some = sorted(some, key=lambda one: one[1])
    if not any(one.gpus for one, _, _ in some):
        return
    pods, file = timed(*some), machine_file(*groups)
    pods = pods._replace(arrival=pods.arrival - pods.arrival.min())
    order = np.random.default_rng(seed).permutation(file.count)
    stay = over_time_in_order(file, pods, placer, order, np.random.default_rng(0))
    assert stay.start.tolist() == naive(file, pods, placer, order, np.random.default_rng(0))
    idle = stay.capacity_milli - stay.held_milli
    assert (idle >= 0).all()
    assert (stay.fragmented <= stay.typical * idle).all()
    assert (stay.fragmented >= 0).all()
    assert stay.waiting[-1] == 0
    assert stay.held_milli[0] <= stay.capacity_milli
    assert timeline(pods, stay)["allocated_percent"].max() <= 100 * (1 + 1e-9)


@settings(max_examples=25)
@given(groups=clusters, some=st.lists(demands, min_size=1), held=lists)
def test_what_fits_on_a_machine_is_what_the_machine_fits(groups, some, held: PodList) -> None:
    machines = PodMachines(groups)
    for pod in held.demands:
        for machine in np.flatnonzero(machines.fit(pod, np.arange(len(machines))))[:1].tolist():
            gpus = machines.whole_gpus(machine, pod.gpus)
            if pod.is_share:
                gpus = [int(machines.gpu_milli[machine].argmax())]
            machines.claim(machine, pod, gpus)
    wishes = machines.wishes(some)
    for machine in range(len(machines)):
        fits = machines.fits_on(machine, wishes).tolist()
        assert fits == [bool(machines.fit(one, np.array([machine]))[0]) for one in some]


def test_drawn_pods_begin_in_balance() -> None:
    # Pods of 1 s and of 1,000 s: empty machines would take 1,000 s to fill.
    pods = timed((demand(500), 0, 1), (demand(1000), 0, 1000), (demand(0), 0, 50))
    file = machine_file(group(8, count=50, cpu_milli=10**6))
    drawn = [at_load(pods, file, 0.6, 200, seed) for seed in range(200)]
    held = [float(one.pods.milli[: one.there].sum()) / file.capacity_milli for one in drawn]
    assert statistics.fmean(held) == pytest.approx(0.6, abs=0.01)
    # What is left of a long one is anything from 0 to 1,000 s, on average half.
    left = np.concatenate([one.duration[: one.there] for one in drawn])
    assert left.mean() / S == pytest.approx((1 + 1000**2 + 50**2) / (1 + 1000 + 50) / 2, rel=0.01)
    gaps = np.concatenate([np.diff(one.arrival[one.there :]) for one in drawn])
    assert gaps.mean() / S == pytest.approx(1000.5 / 3 / (0.6 * 400), rel=0.02)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.02)
    again = at_load(pods, file, 0.6, 200, 3)
    assert all(np.array_equal(a, b) for a, b in zip(again[2:4], drawn[3][2:4], strict=True))


def test_waits_on_one_gpu_are_those_of_lindley() -> None:
    # A wait is the last one + the last run time - the gap, at least 0 (Lindley, 1952).
    pods, file = timed((demand(1000, 0), 0, 10), (demand(1000, 1), 0, 2)), machine_file(group(1))
    drawn = at_load(pods, file, 0.8, 300, 1)._replace(there=0, end=None)
    waits, free = [], 0
    for came, runs in zip(drawn.arrival.tolist(), drawn.duration.tolist(), strict=True):
        waits.append(max(0, free - came))
        free = max(free, came) + runs
    stay = over_time(file, drawn, "fgd", 0)
    assert (stay.start - drawn.arrival).tolist() == waits
    assert max(waits) > 10 * S
    assert mean_waits_s([(drawn, stay)])[0] == pytest.approx(statistics.fmean(waits) / S)


OWN = "cpu_milli,memory_mib,num_gpu,gpu_milli,submit_s,duration_s\n1,1,1,500,7.5,2\n1,1,1,500,5,1\n"
OPENB = (
    "cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"
    "1,1,1,500,10,90,30\n1,1,1,500,4,9,\n"
)


def test_times_are_read_in_order_of_arrival(tmp_path: Path) -> None:
    path = tmp_path / "pods.csv"
    path.write_text(OWN)
    pods = read_timed_pods(path)
    assert (pods.arrival.tolist(), pods.duration.tolist()) == ([0, 2.5 * S], [1 * S, 2 * S])
    assert offered_load(pods, machine_file(group(2))) == pytest.approx(1.5 / (2.5 * 2))
    path.write_text(OPENB)
    pods = read_timed_pods(path)
    assert (pods.duration.tolist(), pods.left_out) == ([60 * S], 1)
    assert offered_load(pods, machine_file(group(2))) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OWN.replace("7.5", "-1"), "pods.csv:2: submit_s is '-1', expected seconds from 0 up to"),
        (OWN.replace("5,1\n", "5,x\n"), "pods.csv:3: duration_s is 'x', expected seconds"),
        (OPENB.replace("90", "20"), "pods.csv:2: deletion_time is '20', expected a time not"),
        (OWN.replace("_s", ""), "pods.csv:1: no times; expected columns submit_s and duration_s"),
        (OPENB.replace("90,30", "90,"), "pods.csv: no pod asks for a GPU"),
    ],
)
def test_bad_times_are_named_by_their_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "pods.csv"
    path.write_text(text)
    with pytest.raises(TraceError) as error:
        read_timed_pods(path)
    assert message in str(error.value)


def test_pods_that_run_for_no_time_are_no_load() -> None:
    with pytest.raises(ConfigError, match="run for 0 s"):
        at_load(timed((demand(500), 0, 0)), machine_file(group(1)), 1, 9, 0)
    with pytest.raises(ConfigError, match="pods run at once"):
        at_load(timed((demand(1), 0, 1), (demand(0), 0, 10**9)), machine_file(group(8)), 9, 9, 0)


def test_pods_that_run_for_a_tick_come_after_the_beginning() -> None:
    drawn = at_load(timed((demand(500), 0, 1)), machine_file(group(1)), 100, 1, 0)
    assert drawn.arrival[drawn.there :].min() >= 1
    assert drawn.end == drawn.arrival[-1]
