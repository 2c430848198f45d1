"""Do jobs on slow machines run as slow as their slowest machine, for as long as it is slow?"""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from failures.made import run_with_failures, units
from support import cluster, finishes, intervals, job, on

import artist
from artist.cli.commands.why import _stay_line
from artist.cli.summary_text import print_sentences
from artist.cluster.fabric import load_fabric
from artist.config import Scenario
from artist.errors import ConfigError
from artist.estimates.calibration import ModelCalibration
from artist.estimates.latency_service import LatencyService
from artist.failures.failing_units import SlowLeaves
from artist.failures.slowdowns import SlowPeriods
from artist.report.grouping import group
from artist.report.page import page
from artist.report.reader import read_run
from artist.results.caveats import last_job_sentence
from artist.results.failure_tables import slow_additions
from artist.results.waiting.job_story import job_story
from artist.run import open_backend
from artist.units import LAST_TICK, ticks
from artist.workload.goodput import Goodput
from artist.workload.models import workload

ROW = "a,0,16,vgg11,100,.05"
HEADER = "job_id,arrival_s,gpus,model,iterations,compute_s\n"


def slow(unit: int, speed: float, **more: Any) -> dict[str, Any]:
    return {"kind": "machine", "unit": unit, "speed": speed, **more}


def simulated(folder: Path, failures: str, *rows: str, **settings: Any) -> artist.Result:
    """A run on two machines of eight GPUs in one rack."""
    (folder / "jobs.csv").write_text(HEADER + "".join(f"{row}\n" for row in rows))
    (folder / "slow.yaml").write_text(failures)
    settings = {"racks": 1, "machines_per_rack": 2, "policy": "fifo", "fabric": "a100", **settings}
    scenario = Scenario(
        trace=str(folder / "jobs.csv"), failures=str(folder / "slow.yaml"), **settings
    )
    return artist.simulate(scenario, cache=False, check=True)


def test_a_job_computes_at_half_speed_while_its_machine_does() -> None:
    # 100 iterations of 1 s: 30 in 30 s, then 15 in 30 s, then the other 55.
    model = {"slow": [slow(0, 0.5, at_s=30, duration_s=30)]}
    rows, _ = run_with_failures(cluster([4]), [job("a", 4, 100)], model)
    assert finishes(rows) == {"a": 115.0}
    assert [row.iterations for row in intervals(rows, 0)] == [30, 15, 55]
    assert [row.iteration_s for row in intervals(rows, 0)] == [1.0, 2.0, 1.0]


def test_a_gang_goes_at_its_slowest_machine_and_others_do_not_notice() -> None:
    model = {"slow": [slow(0, 0.5), slow(1, 0.25), slow(1, 0.8)]}
    jobs = [job("a", 8), job("b", 4)]
    rows, _ = run_with_failures(cluster([4, 4, 4]), jobs, model)
    assert finishes(rows) == {"a": 40.0, "b": 10.0}


def test_a_unit_may_be_a_rack_and_slow_from_some_time_on() -> None:
    model = {"slow": [{"kind": "rack", "unit": 1, "speed": 0.5, "at_s": 4}]}
    jobs = [job("a", 4), job("b", 4)]
    rows, _ = run_with_failures(cluster([4], [4]), jobs, model)
    assert finishes(rows) == {"a": 10.0, "b": 16.0}


@pytest.mark.parametrize("name", ["a100", "t4"])
def test_longer_computing_hides_more_of_the_communication(tmp_path: Path, name: str) -> None:
    settings = {"fabric": name, "calibration": "none", "backend": "analytical"}
    run = simulated(tmp_path, "slow: [{kind: machine, unit: 1, speed: 0.5}]", ROW, **settings)
    usual = simulated(tmp_path, "slow: []", ROW, **settings)
    twice = LatencyService(
        load_fabric(name),
        open_backend("analytical"),
        lambda model: ModelCalibration(compute_scale=2.0).apply(workload(model, name)),
    )
    iteration_s = 0.05 * 2.0 * (1.0 + twice.estimate("vgg11", (8, 8)).comm_ratio)
    (row,) = run.placements.itertuples()
    assert row.iteration_s == row.alone_iteration_s == pytest.approx(iteration_s, rel=1e-9)
    # Estimates are whole nanoseconds.
    assert row.iteration_s <= 0.05 + usual.placements.iteration_s[0] + 1e-8
    assert run.summary["comm_time_mean_s"] == pytest.approx(100 * (iteration_s - 0.1))


def test_contention_stays_and_a_slow_machine_is_none(tmp_path: Path) -> None:
    # Both jobs use the uplink of the second rack.
    rows = [f"{name},0,12,vgg11,100,.01" for name in "ab"]
    settings = {"racks": 3, "machines_per_rack": 1, "fabric": "leaf-spine", "contention": "mean"}
    usual, slowed = (
        simulated(tmp_path, text, *rows, **settings).placements
        for text in ("slow: []", "slow: [{kind: machine, unit: 0, speed: 0.5}]")
    )
    firsts = [table.sort_values(["start_s", "job_id"]).iloc[0] for table in (usual, slowed)]
    lost = [row.iteration_s - row.alone_iteration_s for row in firsts]
    assert lost[1] == pytest.approx(lost[0])
    assert lost[0] > 0
    assert firsts[1].alone_iteration_s > firsts[0].alone_iteration_s


def test_elastic_jobs_compute_longer_too() -> None:
    goodput = Goodput(64, 1024, 8, 128, 0.1, 0.01, 0.1, 0.01, 0.5, 0.05, 2.0, ((0.0, 50.0),))
    whole = goodput.step_s(4, goodput.submitted(4), one_machine=True)
    slowed = goodput.slowed(2.0).step_s(4, goodput.submitted(4), one_machine=True)
    assert whole < slowed < 2 * whole  # synchronising takes as long
    model = {"slow": [slow(0, 0.5)]}
    rows, _ = run_with_failures(cluster([4]), [job("a", 4, 10, goodput=goodput)], model)
    assert rows.placements[0].iteration_s == slowed


@pytest.mark.parametrize("seed", range(20))
def test_a_slower_machine_never_ends_a_job_earlier(seed: int) -> None:
    draw = Random(seed)
    tree = cluster([4, 2], [4])
    jobs = [job(str(index), draw.randint(1, 10), draw.randint(1, 50)) for index in range(4)]
    unit, at_s, speed = draw.randrange(3), draw.uniform(0, 50), draw.uniform(0.1, 0.9)
    one, two = (
        finishes(run_with_failures(tree, jobs[:1], {"slow": [slow(unit, x, at_s=at_s)]})[0])["0"]
        for x in (speed, speed * 0.9)
    )
    assert jobs[0].iterations <= one <= two
    rows, _ = run_with_failures(tree, jobs, {"slow": [slow(unit, speed, at_s=at_s)]})
    assert sum(row.iterations for row in rows.placements) == sum(x.iterations for x in jobs)


@pytest.mark.parametrize("seed", range(30))
def test_the_slowest_of_many_units_counts_and_every_change_is_reported(seed: int) -> None:
    """Compared with a search over all units: racks and machines overlap, some of them for ever."""
    draw = Random(seed)

    def one() -> SlowLeaves:
        first, start = draw.randrange(3), draw.randrange(20)
        end = LAST_TICK if draw.random() < 0.1 else start + draw.randrange(1, 9)
        leaves = range(first, draw.randint(first + 1, 3))
        return SlowLeaves(f"u{draw.random()}", leaves, start, end, float(draw.randint(2, 4)))

    slow = [one() for _ in range(draw.randint(1, 8))]
    known, placement = SlowPeriods(slow), on({0: 4, 2: 4})
    mine = [x for x in slow if {0, 2} & {*x.leaves}]
    for now in range(30):
        there = [x for x in mine if x.start <= now < x.end]
        edges = [y for x in mine for y in (x.start, x.end) if now < y < LAST_TICK]
        most = max((x.slowdown for x in there), default=1.0)
        assert known.at(placement, now) == (most, min(edges, default=None))
        assert known.for_trials().at(placement, now) == (most, None)
        slowest = known.slowest(placement, now)
        assert slowest in (there or [None])
        assert slowest is None or slowest.slowdown == most


def test_a_trial_knows_what_is_slow_but_not_until_when() -> None:
    file = {"slow": [slow(0, 0.5, at_s=10, duration_s=10), slow(1, 0.5, at_s=30)]}
    known = SlowPeriods(units(cluster([4, 4]), file).slow)
    both = on({0: 4, 1: 4})
    assert known.at(both, ticks(5)) == (1.0, ticks(10))
    assert known.at(both, ticks(15)) == (2.0, ticks(20))
    trial = known.for_trials()
    assert trial.at(both, ticks(25)) == trial.at(both, ticks(35)) == (2.0, None)
    assert known.at(both, ticks(25)) == (1.0, ticks(30))
    assert known.at(both, ticks(30)) == (2.0, None)


def test_why_says_that_a_stay_was_slow(tmp_path: Path) -> None:
    run = simulated(tmp_path, "slow: [{kind: machine, unit: 0, speed: 0.5}]", "a,0,8,vgg11,10,1")
    run.save(tmp_path / "run")
    (stay,) = job_story(tmp_path / "run", "a")["stays"]
    assert "on machine 0 at 0.5 of its speed; it finished" in _stay_line(stay, stay["gpus"])[1]


@pytest.mark.parametrize(
    ("entry", "settings", "words"),
    [
        ("{kind: machine, unit: 2, speed: 0.5}", {}, ":1: a slow machine 2, but the cluster has 2"),
        ("{kind: gpu, unit: 1, speed: 0.5}", {}, ":1: a slow gpu; name the machine instead: a job"),
        ("{kind: link, unit: 1, speed: 0.5}", {}, ":1: a slow link; name the machine instead"),
        ("{kind: rak, unit: 1, speed: 0.5}", {}, ":1: no 'rak' in this cluster (did you mean 'rac"),
        ("{kind: rack, unit: 0, speed: 1}", {}, "'slow.0.speed' is 1, expected less than 1.0"),
        ("{kind: rack, unit: 0, speed: 0}", {}, "'slow.0.speed' is 0, expected at least 0.01"),
        (
            "{kind: rack, unit: 0, speed: 0.5}",
            {"backend": "recorded:x.csv"},
            "slow.yaml': a recorded table holds communication for",
        ),
    ],
)
def test_bad_slow_units_are_refused_in_one_sentence(
    tmp_path: Path, entry: str, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError) as error:
        simulated(tmp_path, f"slow: [{entry}]", ROW, **settings)
    assert words in str(error.value)


def test_what_slow_machines_cost_is_counted_and_named(tmp_path: Path, capsys) -> None:
    # 100 iterations of 1 s: 24 in 30 s, 15 in 30 s, 61 in 76.25 s; b is never slow.
    rows, failures = run_with_failures(
        cluster([4], [4]), [job("a", 4, 100), job("b", 4, 100)],
        {"slow": [slow(0, 0.5, at_s=30, duration_s=30), slow(0, 0.8)]},
    )  # fmt: skip
    told = slow_additions(rows, failures.slowdowns().slowest)
    a = 30 * 0.2 + 30 * 0.5 + 76.25 * 0.2
    assert finishes(rows) == {"a": pytest.approx(100 + a), "b": 100.0}
    assert list(told.job_columns["slowed_s"]) == pytest.approx([a, 0])
    assert told.summary["slowed_gpu_s"] == pytest.approx(4 * a)
    names = told.placement_columns["slow_unit"]
    assert names == [
        "machine 0 at 0.8 of its speed", "machine 0 at 0.5 of its speed", "",
        "machine 0 at 0.8 of its speed",
    ]  # fmt: skip

    run = simulated(tmp_path, "slow: [{kind: machine, unit: 1, speed: 0.25}]", ROW)
    print_sentences(run.summary, run.scenario)
    printed = capsys.readouterr().out.replace("\n", " ")
    assert "Slow units cost 0.0667 GPU-hours of computing; nothing failed." in printed
    vary = f"failures=none,{tmp_path}/slow.yaml"
    assert f"artist compare with the same settings, --policies fifo --vary {vary}." in printed
    tables = run.tables["jobs"], 20.0, run.tables["placements"]
    assert "; slow units cost it 15 s." in last_job_sentence(*tables)
    run.save(tmp_path / "run")
    text = re.sub("<[^>]+>", "", page(group([read_run(tmp_path / "run")])).decode())
    text = " ".join(text.split())
    assert "machine 1 at 0.25 of its speed cost it 15 s" in text
    assert f"failures: {tmp_path}/slow.yaml." in text
    assert "Slow units lengthened computing by" in text


def test_a_run_at_full_speed_has_no_figure_of_slow_units(tmp_path: Path) -> None:
    run = simulated(tmp_path, "outages: [{kind: machine, unit: 0, at_s: 1, duration_s: 1}]", ROW)
    assert "slowed_gpu_s" not in run.summary
    assert "slowed_s" not in run.tables["jobs"]
    assert "slow_unit" not in run.tables["placements"]
