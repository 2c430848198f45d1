"""Do shares and curves fit together: linear curves, hidden communication, real placements?"""

from __future__ import annotations

import pytest
from contentions import curve
from support import on

from artist.cluster.fabric import Fabric, load_fabric
from artist.cluster.links import Link
from artist.cluster.placement_shape import shape
from artist.estimates.latency_service import Asker
from artist.network.co_located import CurvedJob, JobAtPlace, Shared, co_locate, shared
from artist.network.demand.curves import Curves
from artist.network.demand.ways import Way, ways
from artist.network.models.canonical import Model
from artist.network.models.mean import mean
from artist.network.models.phase import PhaseModel, fluid
from artist.run import open_backend
from artist.workload.models import workload

GIB = 2**30
LINK = Link("rack", 0, "up", 1.0)


def job(comm: tuple[float, ...], busy: tuple[float, ...], volume_gib: float) -> CurvedJob:
    """A second of computation per iteration; points at shares 1, 1/2 and 1/4."""
    of_job = curve((1.0, 0.5, 0.25), comm, busy)
    return CurvedJob((Way((LINK,), volume_gib * GIB, 1.0),), of_job, 1.0)


def test_without_overlap_the_first_round_is_the_answer() -> None:
    # One second of computation, then one second at the link's rate: d + 2u with an equal job.
    equal = job((1.0, 2.0, 4.0), (1.0, 2.0, 4.0), 1.0)
    for answer in shared([equal, equal], fluid):
        assert answer.iteration_s == pytest.approx(3.0)
        assert answer.alone_s == 2.0
        assert answer.share == pytest.approx(0.5)


def test_communication_that_hides_behind_computation_costs_nothing_until_it_shows() -> None:
    # Half a second of sending hides behind a second of computation, down to half the bandwidth.
    hidden = job((0.0, 0.0, 1.0), (0.5, 1.0, 2.0), 0.5)
    for answer in shared([hidden, hidden], fluid):
        assert answer.iteration_s == pytest.approx(1.0)
        assert answer.share == pytest.approx(0.5, abs=0.01)
    # Three of them need a second and a half of the link: it shows.
    for answer in shared([hidden, hidden, hidden], fluid):
        assert answer.iteration_s == pytest.approx(1.5, abs=0.02)


def test_sending_for_longer_leaves_less_time_without_sending() -> None:
    # In isolation each job sends for half of an iteration. Next to the other, it takes longer,
    # hidden, so it is silent for less time. Together they need all of the link, and get half each.
    hidden = job((0.0, 0.0, 1.0), (0.5, 1.0, 2.0), 0.5)
    for answer in shared([hidden, hidden], mean):
        assert answer.iteration_s == pytest.approx(1.0)
        assert 0.5 <= answer.share < 0.56


def test_a_job_that_computes_longer_sends_longer_at_the_same_rate() -> None:
    once = job((1.0, 2.0, 4.0), (1.0, 2.0, 4.0), 0.75)
    thrice = CurvedJob(once.ways, once.curve, 3.0)
    one, two = shared([once, once], fluid), shared([thrice, thrice], fluid)
    assert one[0].share == pytest.approx(1 / 1.5)
    assert two[0].share == pytest.approx(one[0].share)
    assert two[0].iteration_s == pytest.approx(3 * one[0].iteration_s)


def test_a_job_that_shares_no_link_is_unchanged_to_the_byte() -> None:
    alone = job((0.1, 0.7, 1.9), (0.3, 0.9, 2.1), 0.3)
    other = Link("rack", 1, "up", 4.0)  # it carries what the job sends
    apart = CurvedJob((Way((other,), 0.7 * GIB, 1.0),), alone.curve, 1.7)
    for model in (fluid, mean, PhaseModel()):
        one, two = shared([alone, apart], model)
        assert one.iteration_s == alone.iteration_s(1.0) == one.alone_s
        assert two.iteration_s == apart.iteration_s(1.0) == two.alone_s


@pytest.mark.parametrize("model", [fluid, mean, PhaseModel()])
def test_a_job_that_overfills_its_own_uplink_is_slower_even_in_isolation(model: Model) -> None:
    # A second of computation, then 2 GiB in a second, over a link of 1 GiB/s: two seconds.
    heavy = job((1.0, 2.0, 4.0), (1.0, 2.0, 4.0), 2.0)
    (alone,) = shared([heavy], model)
    assert alone.own_share == alone.share == pytest.approx(0.5)
    assert alone.iteration_s == alone.alone_s == pytest.approx(3.0)
    # A job elsewhere costs it nothing. Next to an equal one it needs as long again.
    apart = CurvedJob((Way((Link("rack", 1, "up", 1.0),), GIB, 1.0),), heavy.curve, 1.0)
    assert shared([heavy, apart], model) == (alone, shared([apart], model)[0])
    for answer in shared([heavy, heavy], model):
        assert answer.alone_s == pytest.approx(3.0)
        assert answer.iteration_s > 3.5
    assert shared([heavy, heavy], fluid)[0].iteration_s == pytest.approx(5.0)


def test_a_link_that_is_slower_by_rounding_slows_no_job() -> None:
    rounded = Way((Link("rack", 0, "up", 0.9995),), GIB, 1.0)
    exact = job((1.0, 2.0, 4.0), (1.0, 2.0, 4.0), 1.0)
    (alone,) = shared([CurvedJob((rounded,), exact.curve, 1.0)], fluid)
    assert (alone.share, alone.own_share, alone.iteration_s) == (1.0, 1.0, 2.0)


@pytest.mark.parametrize("model", [fluid, mean, PhaseModel()])
def test_two_real_jobs_on_one_uplink(model: Model) -> None:
    # Racks of 16 GPUs, each with a port of 46.57 GiB/s, and half as much out of a rack. Two jobs
    # of 8 GPUs in each of two racks: one of them fits the uplink.
    fabric = oversubscribed("h100-quantum2-spectrum4", uplinks=4)
    tree = fabric.cluster(racks=2, machines_per_rack=2, gpus_per_machine=8)
    curves = Curves(Asker(fabric, open_backend("analytical"), workload))
    jobs = []
    for first in (0, 1):
        placement = on({first: 8, first + 2: 8})
        asked = curves.curve("vgg11", shape(tree, placement), frozenset({"network"}))
        jobs.append(CurvedJob(ways(tree, fabric, placement, asked.traffic), asked, 0.05))
    answers = shared(jobs, model)
    for curved, answer in zip(jobs, answers, strict=True):
        assert answer.alone_s == curved.iteration_s(1.0)
        assert answer.iteration_s == curved.iteration_s(answer.share)
        assert 0.4 < answer.share < 1.0


LLAMA = "llama3-70b@tensor=8,pipeline=8,batch=16,microbatches=16"


@pytest.mark.parametrize("model", [LLAMA, "gpt3-175b@tensor=8,pipeline=8", "gpt2@pipeline=4"])
@pytest.mark.parametrize("racks", [1, 2])
def test_stages_never_overfill_uplinks_that_carry_all_that_their_gpus_send(
    model: str, racks: int
) -> None:
    """Stages send unevenly: the last one over one border, others over two."""
    fabric = load_fabric("h100-quantum2-spectrum4")
    machines = 8 if "=8" in model else 4
    answer = alone(fabric, model, machines, racks)
    assert answer.own_share == 1.0
    assert answer.iteration_s == answer.alone_s


@pytest.mark.parametrize(
    ("axes", "machines"),
    [
        ("pipeline=3,batch=60,microbatches=60,sequence=8192,recompute=full", 6),
        ("pipeline=3,batch=240,microbatches=240", 6),
        ("pipeline=4,batch=128,microbatches=128", 12),
    ],
)
def test_the_stage_that_sends_most_does_so_in_all_rounds(axes: str, machines: int) -> None:
    """In the first rounds alone the gradients of the embeddings are more than the messages."""
    fabric = load_fabric("cassini-testbed")
    tree = fabric.cluster(racks=1, machines_per_rack=machines, gpus_per_machine=1)
    curves = Curves(Asker(fabric, open_backend("analytical"), workload))
    job = JobAtPlace(f"llama3-8b@{axes}", on(dict.fromkeys(range(machines), 1)))
    assert co_locate(tree, fabric, [job], curves, fluid).jobs[0].own_share == 1.0


@pytest.mark.parametrize(("uplinks", "share"), [(4, 1.0), (2, 0.5), (1, 0.25)])
def test_two_stages_send_out_of_racks_with_the_rate_of_their_own_gpus(
    uplinks: int, share: float
) -> None:
    """Of 32 GPUs in a rack, the 8 of one stage send over its border. A port serves two."""
    fabric = oversubscribed("h100-quantum2-spectrum4", uplinks=uplinks)
    assert alone(fabric, LLAMA, 8, 2).own_share == pytest.approx(share, rel=0.01)


def alone(fabric: Fabric, model: str, machines: int, racks: int) -> Shared:
    """A job on whole machines of 8 GPUs, in this many racks, without neighbours."""
    tree = fabric.cluster(racks=racks, machines_per_rack=machines // racks, gpus_per_machine=8)
    curves = Curves(Asker(fabric, open_backend("analytical"), workload))
    placement = on(dict.fromkeys(range(machines), 8))
    return co_locate(tree, fabric, [JobAtPlace(model, placement)], curves, fluid).jobs[0]


def oversubscribed(name: str, uplinks: int) -> Fabric:
    fabric = load_fabric(name)
    levels = [
        level
        if level.name != "rack" or level.uplink is None
        else level.model_copy(update={"uplink": level.uplink.model_copy(update={"count": uplinks})})
        for level in fabric.levels
    ]
    return fabric.model_copy(update={"levels": tuple(levels)})
