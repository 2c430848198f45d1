"""Do jobs that share GPUs put on links what they really send, and do their flows add up there?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from contentions import LINE, curve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runs import job, network, rates
from support import Script, finishes, intervals, make_policy, on

from artist.cluster.links import Link
from artist.contract import BasePolicy, Start
from artist.engine.rows import PlacementRow, Rows
from artist.engine.simulator import Simulator
from artist.errors import ConfigError
from artist.network.co_located import CurvedJob, shared
from artist.network.demand.ways import Way
from artist.network.models.mean import mean
from artist.network.rates.interference import InterferedRates, open_pairs
from artist.network.rates.network_of_run import NetworkOfRun
from artist.results.links import link_tables
from artist.results.tables import job_table
from artist.units import GIB
from artist.workload.job import Job

LEFT, RIGHT = {0: 8, 2: 8}, {1: 8, 3: 8}
ALL = {0: 8, 1: 8, 2: 8, 3: 8}


def sharing(uplinks: int, interference: str = "time-slicing") -> NetworkOfRun:
    """A rack sends at most what this many of its 16 GPUs can; two jobs may share a GPU."""
    here = network(rack_uplinks=uplinks)
    return replace(here, sharing=open_pairs(interference, here.tree, 2))


def checked(
    jobs: Sequence[Job], policy: BasePolicy, model: str, here: NetworkOfRun, **options: Any
) -> Rows:
    assert here.sharing is not None
    of_run = InterferedRates(rates(model, here, **options), here.sharing)
    return Simulator(here.tree, jobs, of_run, jobs_per_gpu=2, check=True).run(policy)


def placed(
    jobs: Sequence[Job],
    machines: Sequence[Mapping[int, int]],
    model: str,
    here: NetworkOfRun,
    **options: Any,
) -> Rows:
    """All start at 0; one with the machines of an earlier one comes beside it."""
    starts = []
    for handle, mine in enumerate(machines):
        first = list(machines).index(mine)
        starts.append(Start(handle, on(mine), beside=first if first < handle else None))
    return checked(jobs, Script({0: starts}), model, here, **options)


def first(rows: Rows, handle: int) -> PlacementRow:
    return intervals(rows, handle)[0]


@pytest.mark.parametrize("stretch", [1.0, 2.0, 3.0])
def test_two_equal_jobs_on_one_link_are_the_closed_queueing_network(stretch: float) -> None:
    # D seconds Down, then B Up at the line rate, on own GPUs. Beside each other both take `stretch`
    # times as long, and want LINE / stretch of a link of that capacity: a processor-sharing server
    # with two customers, whose utilisation is 1 - 1 / (1 + 2 B / D + 2 (B / D)^2).
    down_s, up_s = 2.0, 1.0
    link = Link("rack", 0, "up", LINE / GIB / stretch)
    flat = curve(
        (1.0, 0.25), (0.5, 2.0), (0.5, 2.0)
    )  # nothing overlaps, and bytes are all there is
    way = (Way((link,), LINE * up_s / 2, 1.0),)  # of a second of computation
    one = CurvedJob(way, flat, down_s * stretch, stretch=stretch)
    ratio = up_s / down_s
    busy = 1 - 1 / (1 + 2 * ratio + 2 * ratio**2)
    for answer in shared([one, one], mean):
        assert answer.iteration_s == pytest.approx(2 * up_s * stretch / busy, rel=2e-3)
        assert answer.alone_s == pytest.approx(stretch * (down_s + up_s))


@pytest.mark.parametrize("model", ["mean", "phase", "fluid"])
def test_two_packed_jobs_fill_a_link_that_carries_one(model: str) -> None:
    # Eight GPUs of a rack send at most what eight uplinks carry. Each job sends half of that.
    rows = placed([job("a"), job("b")], [LEFT, LEFT], model, sharing(8), eta=1.0)
    for handle in (0, 1):
        (row,) = intervals(rows, handle)
        assert row.source == "analytical+shared"
        assert row.iteration_s == 2 * row.alone_iteration_s
    assert list(job_table(rows, contended=True)["contention_lost_s"]) == [0.0, 0.0]


@pytest.mark.parametrize(("model", "error"), [("mean", 1e-3), ("fluid", 1e-3), ("phase", 0.03)])
def test_packed_jobs_are_two_others_on_twice_the_link_in_slow_motion(
    model: str, error: float
) -> None:
    # At half the speed, half the capacity does as much. `phase` draws other weights.
    jobs = [job("a"), job("b", "bert-large", iterations=2000)]
    packed = placed(jobs, [LEFT, LEFT], model, sharing(4), eta=1.0)
    apart = placed(jobs, [LEFT, RIGHT], model, sharing(8), eta=1.0)
    for handle in (0, 1):
        slow, fast = first(packed, handle), first(apart, handle)
        assert slow.source == f"{fast.source}+shared" == f"analytical+{model}+shared"
        assert slow.iteration_s == pytest.approx(2 * fast.iteration_s, rel=error)
    lost, of_apart = (job_table(x, contended=True) for x in (packed, apart))
    assert lost["contention_slowdown"][0] == pytest.approx(
        of_apart["contention_slowdown"][0], rel=20 * error
    )


def test_packed_jobs_lose_as_much_to_their_own_uplinks_on_half_of_them() -> None:
    jobs = [job("a"), job("b", iterations=2000)]
    packed = placed(jobs, [LEFT, LEFT], "mean", sharing(1), eta=1.0)
    apart = placed(jobs, [LEFT, RIGHT], "mean", sharing(2), eta=1.0)
    slow, fast = first(packed, 0), first(apart, 0)
    assert slow.own_longer_s == pytest.approx(fast.own_longer_s, rel=1e-3)
    assert 0 < 2 * slow.own_longer_s < slow.iteration_s - 2 * slow.alone_iteration_s
    lost, of_apart = (job_table(x, contended=True) for x in (packed, apart))
    part, expected = (
        x["contention_own_s"][0] / x["contention_lost_s"][0] for x in (lost, of_apart)
    )
    assert part == pytest.approx(expected, rel=1e-3)


def test_a_third_job_meets_the_sum_of_what_the_two_send() -> None:
    # Two at half speed send what one sends alone: to a third the pair is no more than one job.
    jobs = [job("a"), job("b"), job("c", iterations=100)]
    fits = placed(jobs, [LEFT, LEFT, RIGHT], "mean", sharing(16), eta=1.0)
    assert first(fits, 2).source == "analytical"
    tight = placed(jobs, [LEFT, LEFT, RIGHT], "mean", sharing(8), eta=1.0)
    # Charged as if both ran alone, it would lose more.
    alone = replace(sharing(8), sharing=None)
    of_run = InterferedRates(
        rates("mean", alone, eta=1.0), open_pairs("time-slicing", alone.tree, 2)
    )
    starts = [Start(0, on(LEFT)), Start(1, on(LEFT), beside=0), Start(2, on(RIGHT))]
    full = Simulator(alone.tree, jobs, of_run, jobs_per_gpu=2).run(Script({0: starts}))
    iterations_s = [first(rows, 2).iteration_s for rows in (fits, tight, full)]
    assert iterations_s == sorted(set(iterations_s))


def test_a_job_sends_at_its_own_speed_once_the_other_has_left() -> None:
    jobs = [job("a"), job("b", iterations=100), job("c")]
    rows = placed(jobs, [LEFT, LEFT, RIGHT], "mean", sharing(8), eta=1.0)
    apart = placed([jobs[0], jobs[2]], [LEFT, RIGHT], "mean", sharing(8), eta=1.0)
    assert finishes(rows)["b"] < min(finishes(rows)[name] for name in "ac")
    for handle, alike in ((0, 0), (2, 1)):
        after = intervals(rows, handle)[1]
        assert after.start == intervals(rows, 1)[-1].end
        assert after.iteration_s == pytest.approx(first(apart, alike).iteration_s, rel=1e-3)
        assert after.source == "analytical+mean"


def test_a_measured_pair_sends_at_its_measured_speeds(tmp_path: Path) -> None:
    # At speeds of .75 and .5 the two send 10 of the 8 that eight uplinks carry; ten carry them.
    table = tmp_path / "pairs.csv"
    table.write_text("model_a,model_b,speed_a,speed_b\nvgg11,vgg16,0.75,0.5\n")
    jobs = [job("a", "vgg11"), job("b", "vgg16")]
    for uplinks, source in ((8, "analytical+mean+shared"), (10, "analytical+shared")):
        rows = placed(jobs, [LEFT, LEFT], "mean", sharing(uplinks, str(table)), eta=1.0)
        assert first(rows, 0).source == source


def test_links_say_what_packed_jobs_want_of_them() -> None:
    jobs, here = [job("a"), job("b")], sharing(8)
    tables = [
        link_tables(placed(jobs[:n], [LEFT, LEFT][:n], "mean", here, eta=1.0), jobs, here)
        for n in (2, 1)
    ]
    pair, one = (table["links"] for table in tables)
    assert "above_rate" not in tables[0]  # what they cost each other, they lose on their GPUs
    assert pair["job_ids"][0] == ["a", "b"]
    assert pair["demand"][0] == pytest.approx(one["demand"][0])
    assert pair["utilisation"][0] == pytest.approx(one["utilisation"][0])


def test_a_table_of_slowdowns_tells_no_sum(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("model,beside,slowdown\nvgg11,vgg11,1.2\n")
    with pytest.raises(ConfigError, match="contention table: the policy lets jobs share"):
        rates(f"table:{table}", sharing(8))


@st.composite
def traces(draw: st.DrawFn) -> list[Job]:
    """More jobs of one or two machines than a cluster of eight machines holds."""
    arrivals = sorted(draw(st.lists(st.sampled_from([0.0, 1.0, 7.5]), min_size=4, max_size=9)))
    return [
        job(
            f"job-{index}",
            draw(st.sampled_from(["vgg11", "bert-large", "resnet50"])),
            arrival_s,
            gpus=draw(st.sampled_from([12, 16, 32])),
            iterations=draw(st.integers(100, 600)),
            compute_s=draw(st.sampled_from([0.02, 0.05])),
        )
        for index, arrival_s in enumerate(arrivals)
    ]


def lawful(model: str, jobs: Sequence[Job]) -> Rows:
    """A run of Gandiva that packs, in which links made no job faster."""
    policy = make_policy("gandiva", packing=True, quantum_s=5.0)
    rows = checked(jobs, policy, model, sharing(4))
    for row in rows.placements:
        stretched_s = row.alone_iteration_s * row.stretch
        assert row.iteration_s >= stretched_s
        assert row.stretch == 1.0 + len(row.beside)
        assert (f"+{model}" in row.source) == (row.iteration_s > stretched_s)
    return rows


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(jobs=traces())
def test_links_never_make_a_packed_job_faster(jobs: list[Job]) -> None:
    assert lawful("mean", jobs) == lawful("mean", jobs)


def test_phases_of_packed_jobs_follow_them_through_a_run() -> None:
    jobs = [job(name, gpus=32, iterations=400) for name in "abcd"]
    rows = lawful("phase", jobs)
    assert any(row.beside for row in rows.placements)
    assert rows == lawful("phase", jobs)
