"""Do jobs with goodput parameters lose as much on links as jobs with equal compute times?"""

from __future__ import annotations

from dataclasses import replace

import pytest
from runs import BACKEND, fabric, job, network, run
from support import Script, intervals, make_policy, on, simulator

from artist.contract import SetBatch, Start, Wake
from artist.estimates.latency_service import LatencyService
from artist.estimates.speeds import ScaledModels, scaled_name
from artist.network.rates.network_of_run import NetworkOfRun
from artist.network.rates.rate_functions import open_contention
from artist.units import TICKS_PER_S
from artist.workload.goodput import Batch, Goodput
from artist.workload.job import Job
from artist.workload.models import workload

LEFT, RIGHT = {0: 8, 2: 8}, {1: 8, 3: 8}
# On 16 GPUs, 64 samples: 4 on each, which compute for 50 ms.
GOODPUT = Goodput(64, 4096, 1, 64, 0.01, 0.01, 0.05, 0.0, 0.3, 0.0, 2.0, ((0.0, 100.0), (0.5, 9e3)))
STEP_S = GOODPUT.step_s(16, Batch(4, 0), one_machine=False)


def elastic(name: str, iterations: int = 1000) -> Job:
    return replace(job(name, iterations=iterations), goodput=GOODPUT, gpus_min=1, gpus_max=32)


def scaled_network(uplinks: int = 8) -> NetworkOfRun:
    """Estimates know models at other compute times, as in runs with goodput."""
    asked = fabric(uplinks)
    tree = asked.cluster(racks=4, machines_per_rack=2, gpus_per_machine=8)
    models = ScaledModels(workload, lambda _: 0.0)
    return NetworkOfRun(tree, asked, LatencyService(asked, BACKEND, models.workload), 0)


@pytest.mark.parametrize("model", ["mean", "phase"])
def test_a_step_is_stretched_as_that_of_a_job_that_computes_as_long(model: str) -> None:
    rigid = run([job("a"), job("b")], [LEFT, RIGHT], model)
    rows = run([elastic("a"), elastic("b")], [LEFT, RIGHT], model, scaled_network())
    for handle in (0, 1):
        slowed, row = intervals(rigid, handle)[0], intervals(rows, handle)[0]
        stretch = slowed.iteration_s / slowed.alone_iteration_s
        assert stretch > 1.05
        assert row.alone_iteration_s == pytest.approx(STEP_S)
        assert row.iteration_s == pytest.approx(STEP_S * stretch)
        assert row.source == f"goodput+{model}"


def test_its_own_full_uplinks_stretch_a_step_as_much_as_an_iteration() -> None:
    (rigid,) = intervals(run([job("a")], [LEFT], "mean", network(rack_uplinks=1)), 0)
    row = intervals(run([elastic("a")], [LEFT], "mean", scaled_network(1)), 0)[0]
    longer = rigid.own_longer_s / rigid.alone_iteration_s
    assert longer > 0.5
    assert row.own_longer_s == pytest.approx(row.alone_iteration_s * longer)
    assert row.iteration_s == pytest.approx(row.alone_iteration_s + row.own_longer_s)


def test_a_larger_batch_computes_longer_and_sends_as_much() -> None:
    larger = Batch(19, 0)  # computes 4 times as long
    here = scaled_network()
    rates = open_contention("mean", {}, here)
    script = {0: [Start(0, on(LEFT)), Start(1, on(RIGHT)), Wake(9 * TICKS_PER_S)],
              9: [SetBatch(0, larger)]}  # fmt: skip
    rows = simulator(here.tree, [elastic("a"), elastic("b")], rates).run(Script(script))
    name = scaled_name("vgg11", 4.0)
    rigid = run([job("a", name, compute_s=0.2), job("b")], [LEFT, RIGHT], "mean", here)
    for handle in (0, 1):
        slowed = intervals(rigid, handle)[0]
        _, after = intervals(rows, handle)[:2]
        stretch = slowed.iteration_s / slowed.alone_iteration_s
        assert after.iteration_s == pytest.approx(after.alone_iteration_s * stretch, rel=2e-3)


def test_worth_follows_the_noise_also_beside_others() -> None:
    rows = run([elastic("a", 200), elastic("b", 900)], [LEFT, RIGHT], "mean", scaled_network())
    assert {row.handle for row in rows.placements} == {0, 1}
    # As submitted, a step is worth one iteration whatever the noise.
    for handle, iterations in ((0, 200), (1, 900)):
        done = sum(
            (row.end - row.start) / TICKS_PER_S / row.iteration_s for row in intervals(rows, handle)
        )
        assert done == pytest.approx(iterations, rel=1e-3)


def test_jobs_that_share_no_link_are_as_fast_as_alone() -> None:
    rows = run([elastic("a"), elastic("b")], [{0: 8, 1: 8}, {2: 8, 3: 8}], "mean", network())
    assert {row.iteration_s for row in rows.placements} == {STEP_S}
    assert {row.source for row in rows.placements} == {"goodput"}


@pytest.mark.parametrize("neighbours", [False, True])
def test_pollux_keeps_all_laws_on_shared_links(neighbours: bool) -> None:
    """`simulator` checks every invariant after every event."""
    ran = []
    for _ in range(2):
        here = scaled_network()
        jobs = [replace(elastic(f"j{x}", 4000), arrival_s=20.0 * x, gpus=4) for x in range(5)]
        policy = make_policy("pollux", neighbours=neighbours)
        rows = simulator(here.tree, jobs, open_contention("mean", {}, here)).run(policy)
        assert len(rows.jobs) == 5
        ran.append(rows.placements)
    assert ran[0] == ran[1]
    assert any(row.source == "goodput+mean" for row in ran[0])
