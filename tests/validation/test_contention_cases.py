"""Does `make contention` compare what it says, and are its aims met on recorded cases?"""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from artist.errors import ArtistError
from artist.network.models.mean import mean
from artist.network.models.phase import PhaseSettings, iterations_s, lognormal
from artist.network.models.simulation import Simulation, alone_s
from validation.contention.__main__ import compared, main
from validation.contention.answers import fluid, phase, random_phases
from validation.contention.cases import Case, Truth, read_cases, read_truth
from validation.contention.report import Errors, Row, by_family, errors_table

GBPS = 1e9
OVER_RACKS = Path(__file__).parents[2] / "validation" / "contention"
PAGE = Path(__file__).parents[2] / "docs" / "contention.md"
RECORDED = Path(__file__).parents[3] / "shared" / "groundwork" / "contention"


def case(racks: list[int], jobs: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "id": "X1",
        "family": "A",
        "racks": racks,
        "nic_bps": [GBPS] * len(racks),
        "uplink_bps": [GBPS] * (max(racks) + 1),
        "warmup": 5,
        "min_iterations": 45,
        "jobs": [
            {"id": index, "rate_cap_bps": GBPS, "offset_s": 0.0, **job}
            for index, job in enumerate(jobs)
        ],
        **more,
    }


def job(machines: list[int], down_s: float, volume_bytes: float, **more: Any) -> dict[str, Any]:
    return {"machines": machines, "down_s": down_s, "volume_bytes": volume_bytes, **more}


# Two equal jobs on one uplink, a quarter of an iteration apart (recorded as A07).
QUARTER = case([0, 0, 1, 1], [
    job([0, 2], 0.03, 3_750_000), job([1, 3], 0.03, 3_750_000, offset_s=0.015)
])  # fmt: skip

# The middle job shares one uplink with each of the others (recorded as D05).
CHAIN = case([0, 0, 1, 1, 2, 3], [
    job([0, 4], 0.018, 5_250_000), job([1, 2], 0.018, 5_250_000), job([3, 5], 0.018, 5_250_000)
])  # fmt: skip


def slowdowns(answers: list[Truth]) -> list[float]:
    return [answer.slowdown for answer in answers]


def test_the_fluid_gives_what_simgrid_recorded() -> None:
    assert slowdowns(fluid(Case(**QUARTER))) == pytest.approx([1.25, 1.25], abs=1e-6)
    assert slowdowns(fluid(Case(**CHAIN))) == pytest.approx([1.7, 1.7, 1.7], abs=1e-6)


def test_phase_comes_close_to_packets() -> None:
    # ns-3 recorded 1.480 and 1.480 (fluid 1.25); 1.230, 2.336 and 1.230 (fluid 1.70 each).
    assert slowdowns(phase(Case(**QUARTER))) == pytest.approx([1.48, 1.48], abs=0.05)
    assert slowdowns(phase(Case(**CHAIN))) == pytest.approx([1.23, 2.336, 1.23], abs=0.15)


def test_mean_knows_no_offsets() -> None:
    moved = json.loads(json.dumps(QUARTER))
    moved["jobs"][1]["offset_s"] = 0.0
    assert random_phases(Case(**QUARTER)) == random_phases(Case(**moved))
    assert 1.2 < random_phases(Case(**QUARTER))[0].slowdown < 1.3


def test_the_p99_of_a_stretched_iteration_is_longer_than_its_mean() -> None:
    noisy = case([0, 0, 1, 1], [
        job([0, 2], 0.03, 3_750_000, noise=[1.0, 1.1, 0.9, 1.0]), job([1, 3], 0.03, 3_750_000)
    ])  # fmt: skip
    answer = fluid(Case(**noisy))[0]
    assert answer.p99 is not None
    assert answer.p99 > answer.slowdown + 0.01


def test_links_are_shared_as_machines_lie() -> None:
    contention = Case(**CHAIN).contention(0.9)
    # Six NICs out, six in, four uplinks up, four down.
    assert [link.fair_queued for link in contention.links] == [True] * 12 + [False] * 8
    assert {link.eta for link in contention.links[12:]} == {0.9}
    there, back = contention.members[1].pattern.flows
    assert there.links == (1, 12, 17, 8)  # machine 1 in rack 0 to machine 2 in rack 1
    assert back.links == (2, 13, 16, 7)
    inside = Case(**case([0, 0], [job([0, 1], 0.1, 1000)])).contention()
    assert inside.members[0].pattern.flows[0].links == (0, 3)
    assert inside.members[0].pattern.flows[0].cap_bytes_per_s == GBPS / 8


def test_errors_are_those_of_rows_with_a_truth() -> None:
    rows = [
        Row("a", "A", 0, Truth(1.1, 1.5), Truth(1.0, 1.2)),
        Row("a", "A", 1, Truth(1.001, None), Truth(1.0, 1.2)),
        Row("b", "B", 0, Truth(1.0, None), Truth(1.3, None)),
        Row("c", "C", 0, Truth(9.0, None), None),
    ]
    errors = by_family(rows)
    assert set(errors) == {"A", "B", "all"}
    assert errors["A"] == Errors(
        2, pytest.approx(1.0505), 1.0, pytest.approx(0.0505), pytest.approx(0.0505),
        pytest.approx(0.0707, abs=1e-4), pytest.approx(0.1), 0.5, pytest.approx(0.3),
    )  # fmt: skip
    assert errors["B"].mean == pytest.approx(-0.3)
    assert errors["B"].p99 is None
    assert "| all | 3 |" in errors_table(rows)


def test_the_command_writes_slowdowns_beside_the_truth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cases.jsonl").write_text(json.dumps(QUARTER) + "\n")
    (tmp_path / "truth.csv").write_text("case,job,slowdown,extra\nX1,0,1.25,?\n")
    out = tmp_path / "out.csv"
    arguments = ["--cases", str(tmp_path / "cases.jsonl"), "--truth", str(tmp_path / "truth.csv")]
    assert main([*arguments, "--model", "fluid", "--out", str(out)]) == 0
    with out.open() as file:
        assert list(csv.reader(file)) == [
            ["case", "job", "ours", "truth"],
            ["X1", "0", "1.250000", "1.250000"],
            ["X1", "1", "1.250000", ""],
        ]
    assert "2 rows, 1 without a truth" in capsys.readouterr().out


def test_without_files_the_command_says_so_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    cases = tmp_path / "cases.jsonl"
    assert main(["--cases", str(cases), "--truth", "", "--model", "phase", "--out", str(out)]) == 0
    assert f"skipped: {cases} is not here" in capsys.readouterr().out
    assert not out.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"cases.jsonl:1: not a JSON object"),
        ("[]", r"cases.jsonl:1: not a JSON object"),
        (json.dumps({**QUARTER, "rack": 1}), "unknown setting 'rack'"),
        (json.dumps({**QUARTER, "nic_bps": [GBPS]}), "1 NICs for 4 machines"),
        (json.dumps({**QUARTER, "uplink_bps": [GBPS]}), "expected 0 to 0"),
        (json.dumps({**QUARTER, "warmup": 45}), "no iteration counts"),
        (json.dumps({**QUARTER, "links": 2}), "job 0: 0 links, expected 2"),
        (
            json.dumps(case([0, 1], [job([0, 1], 0.1, 10, links=[0, 2])], links=2)),
            r"links \(0, 2\) of 2",
        ),
        (json.dumps(case([0, 1], [job([0, 2], 0.1, 10)])), r"machines \(0, 2\) of 2"),
    ],
)
def test_a_case_that_cannot_be_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(text + "\n")
    with pytest.raises(ArtistError, match=message):
        read_cases(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [("case,job\n", "no column slowdown"), ("case,job,slowdown\nA,0,x\n", "truth.csv:2: job '0'")],
)
def test_a_bad_truth_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "truth.csv"
    path.write_text(text)
    with pytest.raises(ArtistError, match=message):
        read_truth(path)


def test_mean_meets_packets_where_jobs_spread_over_racks() -> None:
    # Up to 10 jobs over up to 8 racks. The weights of flows were fitted on none of these cases.
    cases = read_cases(OVER_RACKS / "over_racks.jsonl")
    rows = compared(cases, read_truth(OVER_RACKS / "over_racks_ns3.csv"), "mean")
    errors = [row.ours.slowdown / row.truth.slowdown - 1 for row in rows if row.truth]
    assert len(errors) == len(rows) == 92
    assert abs(np.mean(errors)) < 0.03
    assert np.mean(np.abs(errors) < 0.1) >= 0.9


# -- jobs on parallel links ----------------------------------------------------------

# Packets of ns-3 3.37 (Debian): 1 Gbit/s, DCTCP with K = 20 packets and at least two segments in
# flight, 35 iterations from the sixth on. Each flow of a ring is one connection, and a hash put it
# on one of 2 to 4 links of its rack. Nothing was fitted on these cases. `alone` is an iteration of
# the lone job over its computing and sending at the line rate.


@pytest.fixture(scope="module")
def over_links() -> list[Case]:
    return read_cases(OVER_RACKS / "over_links.jsonl")


def errors_over_links(cases: list[Case], model: str) -> np.ndarray[Any, Any]:
    rows = compared(cases, read_truth(OVER_RACKS / "over_links_ns3.csv"), model)
    assert len(rows) == sum(len(case.jobs) for case in cases)
    return np.array([row.ours.slowdown / row.truth.slowdown - 1 for row in rows if row.truth])


@pytest.mark.parametrize(("model", "near"), [("mean", 0.8), ("fluid", 0.75)])
def test_models_meet_packets_on_parallel_links(
    over_links: list[Case], model: str, near: float
) -> None:
    errors = errors_over_links(over_links, model)
    assert abs(np.mean(errors)) < 0.03
    assert np.mean(np.abs(errors) < 0.1) >= near


@pytest.mark.slow
def test_phase_meets_packets_on_parallel_links(over_links: list[Case]) -> None:
    errors = errors_over_links(over_links, "phase")
    assert abs(np.mean(errors)) < 0.03
    assert np.mean(np.abs(errors) < 0.1) >= 0.85


def test_own_collisions_cost_what_they_cost_packets(over_links: list[Case]) -> None:
    with (OVER_RACKS / "over_links_ns3.csv").open() as file:
        packets = [float(row["alone"]) for row in csv.DictReader(file)]
    ours = [
        alone_s(case.contention(), job.id) / (job.down_s + 8 * job.volume_bytes / GBPS)
        for case in over_links
        for job in case.jobs
    ]
    assert ours == pytest.approx(packets, rel=0.015)
    assert max(ours) > 1.3


@pytest.mark.slow
def test_what_mean_misses_on_parallel_links_is_that_jobs_keep_their_phases(
    over_links: list[Case],
) -> None:
    # With Down times that vary, phases are random, as `mean` takes them to be.
    random = np.random.default_rng(5)
    errors = []
    for case in over_links:
        contention = case.contention(0.976)
        members = [
            replace(member, down_factors=tuple(random.exponential(size=997)))
            for member in contention.members
        ]
        varied = replace(contention, members=tuple(members))
        settings = PhaseSettings(seed=1)
        noise = lognormal(varied, settings)
        simulation = Simulation(varied, noise, settings.two_bottleneck_weight)
        simulation.run(lambda now: all(job.iterations >= 250 for job in now.jobs))
        for job, slowed in zip(simulation.jobs, mean(contention), strict=True):
            times_s = iterations_s(job, case.warmup)
            member = members[job.index]
            factors = np.resize(member.down_factors, case.warmup + len(times_s))[case.warmup :]
            longer_s = member.pattern.down_s * (factors.mean() - 1)
            errors.append(slowed.iteration_s / (np.mean(times_s) - longer_s) - 1)
    assert np.mean(np.abs(errors) < 0.1) >= 0.95


# -- all recorded cases --------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded() -> Path:
    if not RECORDED.is_dir():
        pytest.skip("the recorded cases are not here (../shared/groundwork/contention)")
    return RECORDED


def test_the_page_has_the_errors_of_fluid_and_mean(recorded: Path) -> None:
    for model, truth in (("fluid", "simgrid_results.csv"), ("mean", "ns3_results.csv")):
        assert overall(rows_of(recorded, truth, model)) in PAGE.read_text()


def overall(rows: list[Row]) -> str:
    """The line of all families, without its name."""
    return errors_table(rows).splitlines()[-1].removeprefix("| all ")


def rows_of(folder: Path, truth: str, model: str) -> list[Row]:
    return compared(read_cases(folder / "cases.jsonl"), read_truth(folder / truth), model)


def errors_of(folder: Path, truth: str, model: str) -> dict[str, Errors]:
    return by_family(rows_of(folder, truth, model))


def test_the_fluid_is_simgrid(recorded: Path) -> None:
    errors = errors_of(recorded, "simgrid_results.csv", "fluid")["all"]
    # A case prints six digits after the point.
    assert errors.largest <= 1e-6
    assert errors.p99 is not None
    assert errors.p99 <= 1e-6


@pytest.mark.slow
def test_phase_meets_its_aims_against_packets(recorded: Path) -> None:
    rows = rows_of(recorded, "ns3_results.csv", "phase")
    errors = by_family(rows)
    assert errors["all"].absolute <= 0.055
    assert errors["all"].rms <= 0.085
    assert errors["all"].p99 is not None
    assert errors["all"].p99 <= 0.075
    assert max(errors[family].absolute for family in errors) <= 0.09
    assert overall(rows) in PAGE.read_text()


def test_mean_meets_its_aim_against_packets(recorded: Path) -> None:
    assert errors_of(recorded, "ns3_results.csv", "mean")["all"].absolute <= 0.10
