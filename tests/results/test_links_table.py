"""Do the links of a run carry what its jobs send, in the right intervals?"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "network"))

from runs import job, network, rates, run
from support import on

from artist.cluster.placement_shape import shape
from artist.network.demand.ways import bytes_on_links, ways
from artist.network.models.patterns import ETA
from artist.results.links import link_tables
from artist.results.metrics import summarise
from artist.results.tables import job_table, placement_table, timeline_table
from artist.units import GIB

LEFT, RIGHT = {0: 8, 2: 8}, {1: 8, 3: 8}


def a_run(name: str):
    on_network = network()
    jobs = [job("short", iterations=100), job("long", arrival_s=1.0, iterations=1000)]
    return run(jobs, [LEFT, RIGHT], rates(name, on_network), on_network), jobs, on_network


@pytest.mark.parametrize("name", ["none", "mean"])
def test_a_link_carries_the_bytes_of_every_iteration(name: str) -> None:
    rows, jobs, on_network = a_run(name)
    table = link_tables(rows, jobs, on_network)["links"]
    expected: dict[str, float] = {}
    for one, machines in zip(jobs, (LEFT, RIGHT), strict=True):
        sent = on_network.curves("test").sent(
            one.model, shape(on_network.tree, on(machines)), frozenset()
        )
        of_job = ways(on_network.tree, on_network.fabric, on(machines), sent.traffic)
        for link, volume in bytes_on_links(of_job).items():
            text = f"{link.level} {link.unit} {link.direction}"
            scaled = volume * one.compute_s / sent.compute_s
            expected[text] = expected.get(text, 0.0) + one.iterations * scaled
    carried = {
        link: sum(b for x, b in zip(table["link"], table["bytes"], strict=True) if x == link)
        for link in dict.fromkeys(table["link"])
    }
    assert carried == pytest.approx(expected, rel=1e-6)


def test_intervals_of_a_link_follow_its_jobs() -> None:
    rows, jobs, on_network = a_run("mean")
    table = link_tables(rows, jobs, on_network)["links"]
    here = [i for i, link in enumerate(table["link"]) if link == "rack 0 up"]
    assert [table["jobs"][i] for i in here] == [1, 2, 1]
    assert [table["start_s"][i] for i in here][1:] == [table["end_s"][i] for i in here][:-1]
    assert table["start_s"][here[1]] == 1.0
    length_s = table["end_s"][here[1]] - table["start_s"][here[1]]
    # Eight uplinks of 1 GiB/s each.
    assert table["utilisation"][here[1]] == pytest.approx(
        table["bytes"][here[1]] / (8 * GIB * length_s)
    )
    assert np.all(np.asarray(table["utilisation"]) <= 1.0)


def test_a_link_lists_its_jobs_and_their_demand() -> None:
    rows, jobs, on_network = a_run("mean")
    table = link_tables(rows, jobs, on_network)["links"]
    here = [i for i, link in enumerate(table["link"]) if link == "rack 0 up"]
    assert [table["job_ids"][i] for i in here] == [["short"], ["short", "long"], ["long"]]
    # Racks are left while the outermost level is busy. Jobs of two racks send half of a ring of
    # two machines of eight GPUs out of each.
    of_shape = shape(on_network.tree, on(LEFT))
    sent = on_network.curves("test").sent("vgg11", of_shape, frozenset({"network"}))
    of_job = bytes_on_links(ways(on_network.tree, on_network.fabric, on(LEFT), sent.traffic))
    on_names = {f"{link.level} {link.unit} {link.direction}": v for link, v in of_job.items()}
    one = on_names["rack 0 up"] / sent.busy_s / (8 * GIB * ETA)
    assert table["demand"][here] == pytest.approx([one, 2 * one, one])
    assert one <= 1.03 < 2 * one  # eight uplinks of the speed of eight GPUs, .976 of it in use


def test_machines_carry_what_their_jobs_demand() -> None:
    """Network cards serve connections in turn, so all of their capacity is in use."""
    rows, jobs, on_network = a_run("mean")
    table = link_tables(rows, jobs, on_network)["links"]
    demands = [
        demand
        for link, demand in zip(table["link"], table["demand"], strict=True)
        if link.startswith("machine")
    ]
    assert demands
    assert max(demands) <= 1.0


def test_jobs_report_what_they_lost_to_each_other() -> None:
    rows, jobs, on_network = a_run("mean")
    table = job_table(rows, contended=True)
    run_s = np.asarray(table["run_s"])
    # Nobody waits or restarts, so alone each had taken its iterations at the speed alone.
    alone_s = np.array([x.iterations * rows.placements[0].alone_iteration_s for x in jobs])
    assert table["contention_slowdown"] == pytest.approx((run_s - alone_s) / alone_s, rel=1e-6)
    assert table["contention_slowdown"][0] > 0.05
    summary = summarise(rows, on_network.tree, table, timeline_table(rows, on_network.tree), 2)
    assert summary["contention_lost_job_h"] == pytest.approx(np.sum(run_s - alone_s) / 3600)
    assert summary["contention_slowdown_mean"] == np.mean(table["contention_slowdown"])


def test_a_loss_separates_own_uplinks_from_neighbours() -> None:
    on_network, jobs = network(rack_uplinks=1), [job("one"), job("two", iterations=500)]
    alone = job_table(run(jobs[:1], [LEFT], "mean", on_network), contended=True)
    assert alone["contention_own_s"] == pytest.approx(alone["contention_lost_s"])
    rows = run(jobs, [LEFT, RIGHT], "mean", on_network)
    both = job_table(rows, contended=True)
    # The same iterations on the same links; what is beside them costs the rest.
    assert both["contention_own_s"][0] == pytest.approx(alone["contention_own_s"][0], rel=1e-6)
    assert both["contention_own_s"][0] < 0.8 * both["contention_lost_s"][0]
    names = [one.id for one in jobs]
    placements = placement_table(rows, on_network.tree, names, {})
    longer_s = placements["own_iteration_s"] - placements["alone_iteration_s"]
    iterations = (placements["end_s"] - placements["start_s"]) / placements["iteration_s"]
    for name, own_s in zip(names, both["contention_own_s"], strict=True):
        mine = [index for index, one in enumerate(placements["job_id"]) if one == name]
        assert own_s == pytest.approx(float((iterations * longer_s)[mine].sum()), rel=1e-6)


def test_without_an_own_part_its_columns_are_left_out() -> None:
    rows, jobs, on_network = a_run("mean")
    told = placement_table(rows, on_network.tree, [one.id for one in jobs], {})
    assert "own_iteration_s" not in told
    assert "contention_own_s" not in job_table(rows, contended=True)


def test_without_contention_there_are_no_columns_of_losses() -> None:
    rows, _, on_network = a_run("none")
    table = job_table(rows)
    summary = summarise(rows, on_network.tree, table, timeline_table(rows, on_network.tree), 2)
    assert not [name for name in (*table, *summary) if name.startswith("contention")]
    told = job_table(rows, contended=True)
    assert told["contention_slowdown"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("later_s", [0.0, 0.005, 0.01])
def test_bytes_above_the_rate_are_what_overlapping_phases_offer_twice(later_s: float) -> None:
    """Two jobs at the line rate C that send for u seconds, the second x seconds after the first.

    Meanwhile each gets C / 2. The first has C (u - x) left when the second begins, and takes
    u - x longer; so does the second, and each offers C (u - x) more than the link carries.
    """
    on_network = network()
    jobs = [job("a"), job("b", arrival_s=later_s, iterations=999)]
    rows = run(jobs, [LEFT, RIGHT], rates("fluid", on_network, eta=1.0), on_network)
    table = link_tables(rows, jobs, on_network)["above_rate"]
    sent = on_network.curves("test").sent(
        "vgg11", shape(on_network.tree, on(LEFT)), frozenset({"network"})
    )
    scale = jobs[0].compute_s / sent.compute_s
    volume = bytes_on_links(ways(on_network.tree, on_network.fabric, on(LEFT), sent.traffic))
    up_s = sent.busy_s * scale
    for link, id_, above in zip(
        table["link"], table["job_id"], table["bytes_above_rate"], strict=True
    ):
        (of_job,) = [
            v * scale for x, v in volume.items() if f"{x.level} {x.unit} {x.direction}" == link
        ]
        assert link.startswith("rack"), "NICs carry what one job offers"
        assert id_ in ("a", "b")
        expected = 1000 * of_job * (up_s - later_s) / up_s
        # The backend's latency does not grow with the time that bytes take.
        assert above == pytest.approx(expected, rel=0.02)
    assert len(table["link"]) == 8


def test_a_link_that_one_job_just_fills_has_nothing_above_its_rate() -> None:
    on_network = network(rack_uplinks=18)
    jobs = [job("a", gpus=24), job("b", gpus=24)]
    placed = [{0: 8, 1: 8, 2: 8}, {3: 8, 4: 8, 5: 8}]
    rows = run(jobs, placed, rates("mean", on_network), on_network)
    tables = link_tables(rows, jobs, on_network)
    # Of 18 uplinks a job wants 17.9, and two jobs could use 17.6.
    names, who = tables["links"]["link"], tables["links"]["job_ids"]
    assert {tuple(ids) for x, ids in zip(names, who, strict=True) if "rack 0" in x} == {("a",)}
    assert set(tables["above_rate"]["link"]) == {"rack 1 up", "rack 1 down"}


def test_without_contention_nothing_is_above_a_rate() -> None:
    rows, jobs, on_network = a_run("none")
    assert set(link_tables(rows, jobs, on_network)) == {"links"}
