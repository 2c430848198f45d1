"""Do figures and tables show the numbers of the run's files?"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_reading import unpack
from run_making import edit_json, make_run, study_of

from artist import Scenario, simulate
from artist.report.comparison_table import compare_setting, family, relative
from artist.report.curves import thinned
from artist.report.figures_across_settings import overview
from artist.report.figures_over_time import binned
from artist.report.grouping import Setting, group
from artist.report.packing import STEPS, pack_timeline, step_s
from artist.report.perfetto import perfetto_trace
from artist.report.reader import read_run, read_runs
from artist.report.timeline_lanes import machines, parse_placement, strips_of
from artist.results.statistics.compare_values import compare_values
from artist.results.terms.number_text import FEW_DAYS, time_unit
from artist.results.waiting.job_story import ended_words


@pytest.fixture
def study(runs: Path):
    return group(read_runs([runs]))


def test_settings_policies_and_replicates(study) -> None:
    assert study.policies == ("dally", "gandiva")
    assert [setting.label for setting in study.settings] == ["1 rack", "2 racks"]
    for setting in study.settings:
        assert {p: list(replicates) for p, replicates in setting.runs.items()} == {
            "dally": [(0, 0), (1, 0)], "gandiva": [(0, 0), (1, 0)],
        }  # fmt: skip


def test_the_baseline_comes_first(runs: Path) -> None:
    assert group(read_runs([runs]), "gandiva").policies == ("gandiva", "dally")


def test_options_distinguish_runs_of_one_policy_and_order_them(tmp_path: Path) -> None:
    for lease in (3600, 600):
        make_run(tmp_path / str(lease), policy="las", policy_options={"lease_s": lease})
    assert group(read_runs([tmp_path])).policies == ("las lease_s=600", "las lease_s=3600")


def test_equal_scenarios_are_both_shown(one: Path, tmp_path: Path) -> None:
    shutil.copytree(one, tmp_path / "again")
    edit_json(tmp_path / "again" / "summary.json", artist_version="0.0.1")
    study = group(read_runs([one, tmp_path / "again"]))
    assert study.policies == ("dally", f"dally ({tmp_path / 'again'})")


def test_binned_means_keep_the_integral() -> None:
    time, value = np.array([0.0, 1.0, 4.0]), np.array([2.0, 4.0, 0.0])
    assert binned(time, value, np.array([0.0, 2.0, 4.0, 8.0])).tolist() == [3.0, 4.0, 0.0]


def test_comparison_is_paired(study) -> None:
    rows = dict(compare_setting(study.settings[0], "dally")[0])
    term = next(term for term in rows if term.name == "jct_mean_s")
    ours, theirs = (
        [run.metric("jct_mean_s") for run in study.settings[0].runs[p].values()]
        for p in ("gandiva", "dally")
    )
    cell = rows[term]["gandiva"]
    assert cell.mean == pytest.approx(np.exp(np.mean(np.log(ours))))
    assert cell.mean / rows[term]["dally"].mean == pytest.approx(cell.difference.ratio)
    assert cell.difference == compare_values(theirs, ours, [0, 1])
    assert cell.against.endswith(" too few replicates")
    assert not cell.sure
    assert len(study.settings[0].shared_by(study.policies)) == 2
    assert rows[term]["dally"].against == ""


class Summary:
    """A run of which only the summary is read."""

    def __init__(self, **summary: float) -> None:
        self.summary = summary

    def metric(self, key: str) -> float:
        return self.summary[key]


def setting_of(**policies: list[dict[str, float]]) -> Setting:
    """A setting with one seed, and a permutation per summary."""
    runs = {
        policy: {(0, order): Summary(**summary) for order, summary in enumerate(summaries)}
        for policy, summaries in policies.items()
    }
    return study_of(runs).settings[0]


def test_verdicts_of_a_table_hold_together() -> None:
    # Alone 4 % more jobs in queue would be `more` (p = 0.03). Among twelve metrics it is not.
    base = [100.0, 110.0, 95.0, 103.0, 99.0]
    factors = {"makespan_s": (2.0, 2.1, 1.9, 2.0, 2.05), "jct_mean_s": (1.0, 1.04, 1.05, 1.08, 1.1)}
    mine = [{name: value * by[i] for name, by in factors.items()} for i, value in enumerate(base)]
    other = [dict.fromkeys(factors, value) for value in base]
    setting = setting_of(fifo=other, las=mine)
    assert compare_values(base, [one["jct_mean_s"] for one in mine]).p_value < 0.05
    one, two = (
        {term.name: cells["las"] for term, cells in compare_setting(given, "fifo")[0]}
        for given in (setting, setting_of(fifo=other, las=mine, srtf=other, sjf=mine))
    )
    assert (one["jct_mean_s"].difference.verdict, one["jct_mean_s"].sure) == ("more", True)
    assert two["makespan_s"].sure
    assert two["jct_mean_s"].difference.verdict == "undecided"


def test_both_tables_of_a_setting_are_one_family() -> None:
    # Alone p = 0.03. The other metric is in the table that opens after a click.
    base = [100.0, 110.0, 95.0, 103.0, 99.0]
    by = (1.0, 1.04, 1.05, 1.08, 1.1)
    names = ("makespan_s", "compute_time_mean_s")
    mine = [dict.fromkeys(names, v * b) for v, b in zip(base, by, strict=True)]
    other = [dict.fromkeys(names, value) for value in base]
    main, others = compare_setting(setting_of(fifo=other, las=mine), "fifo")
    assert [term.name for term, _ in (*main, *others)] == list(names)
    assert family(main, others) == 2
    for cells in (main[0][1], others[0][1]):
        assert cells["las"].difference.verdict == "undecided"
        assert cells["las"].against.endswith(" more")


def test_where_the_baseline_is_zero_a_difference_has_its_unit() -> None:
    zero = [{"comm_time_mean_s": 0.0}] * 5
    some = [{"comm_time_mean_s": value} for value in (3.0, 4.0, 5.0, 4.0, 4.0)]
    table = compare_setting(setting_of(fifo=zero, las=some, sjf=zero), "fifo")[0]
    cells = table[0][1]
    assert cells["las"].against == "+4 s [+3.122 s .. +4.878 s] more"
    assert cells["sjf"].against == "identical"
    once = compare_setting(setting_of(fifo=zero[:1], las=some[:1]), "fifo")[0]
    assert once[0][1]["las"].against == "+3 s"


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([3.0, 4.0, 5.0, 4.0], 3.0, 5.0),  # too few for an interval: the range
        # exp(1.37338 -+ 2.77645 x 0.18148 / sqrt 5)
        ([3.0, 4.0, 5.0, 4.0, 4.0], 3.15205, 4.94661),
    ],
)
def test_whiskers_are_an_interval_from_five_replicates_on(
    values: list[float], low: float, high: float
) -> None:
    names = ("makespan_s", "jct_mean_s", "queue_delay_p95_s", "queue_delay_p99_s")
    summaries = [dict.fromkeys((*names, "comm_time_mean_s"), value) for value in values]
    bars = next(overview(study_of(setting_of(fifo=summaries).runs))).series[0]
    assert (bars.low[0], bars.high[0]) == pytest.approx((low, high), rel=1e-4)


def test_facets_of_a_metric_share_its_axis() -> None:
    names = ("makespan_s", "jct_mean_s", "queue_delay_p95_s", "queue_delay_p99_s")
    study = study_of(
        *(
            setting_of(fifo=[dict.fromkeys((*names, "comm_time_mean_s"), value)]).runs
            for value in (1.0, 2.0, 3.0, 4.0)
        )
    )
    settings = [
        replace(setting, differs={"racks": str(number % 2), "trace": str(number // 2)})
        for number, setting in enumerate(study.settings)
    ]
    shared = [*overview(replace(study, settings=tuple(settings)))]
    assert [figure.y.top for figure in shared] == [pytest.approx(4.16)] * 10
    alone = [replace(one, differs={"racks": "2"}) for one in study.settings[:1]]
    assert {one.y.top for one in overview(replace(study, settings=tuple(alone)))} <= {None}


def test_packed_rows_are_the_rows(one: Path) -> None:
    run = read_run(one)
    data = unpack(pack_timeline(run))
    rows = run.placements
    ends = np.cumsum(data["end"]) * data["step"]
    assert np.abs(ends - rows["end_s"]).max() <= data["step"] / 2 + 1e-9
    starts = ends - np.array(data["length"]) * data["step"]
    assert np.abs(starts - rows["start_s"]).max() <= data["step"] / 2 + 1e-6
    assert [data["jobs"][job] for job in data["job"]] == rows.text["job_id"]
    levels, shapes, speeds = ([column[kind] for kind in data["kind"]] for column in data["kinds"])
    assert [data["levels"][level] for level in levels] == rows.text["level"]
    assert [data["shapes"][shape] for shape in shapes] == rows.text["signature"]
    assert speeds == pytest.approx(rows["iteration_s"].tolist(), rel=6e-4)
    endings = [data["endings"][ended] for ended in data["ended"]]
    assert endings == [ended_words(code) for code in rows.text["ended"]]
    assert "it finished" in endings  # words, no codes
    for place, text in zip(data["place"], rows.text["placement"], strict=True):
        strips = data["places"][place]
        held: dict[int, int] = {}
        for machine, _, gpus in zip(strips[::3], strips[1::3], strips[2::3], strict=True):
            held[machine] = held.get(machine, 0) + gpus
        assert held == parse_placement(text, "here")


def test_lanes_never_overlap_and_fit_the_machines(runs: Path) -> None:
    for run in read_runs([runs]):
        lanes = machines(run)
        taken: dict[tuple[int, int], list[tuple[float, float]]] = {}
        for index, strips in enumerate(strips_of(run)):
            span = (run.placements["start_s"][index], run.placements["end_s"][index])
            for machine, first, count in strips:
                assert machine < lanes.count
                assert first + count <= lanes.gpus
                for lane in range(first, first + count):
                    taken.setdefault((machine, lane), []).append(span)
        for spans in taken.values():
            spans.sort()
            assert all(a[1] <= b[0] for a, b in pairwise(spans))


def test_an_irregular_cluster_has_its_machines(tmp_path: Path) -> None:
    run = make_run(tmp_path / "r", tree=[[8, 8, 4], [8]], fabric="h100-quantum2-spectrum4")
    cluster = machines(read_run(run))
    assert (cluster.count, cluster.gpus, cluster.racks) == (4, 8, (0, 3))
    # As earlier versions wrote it.
    scenario = {"tree": [[8, 8, 4], [8]], "racks": 16, "machines_per_rack": 8}
    former = {**read_run(run).scenario, **scenario, "gpus_per_machine": 8}
    edit_json(run / "manifest.json", scenario=former)
    assert machines(read_run(run)) == cluster
    edit_json(run / "manifest.json", scenario={"policy": "dally", "tree": [8], "fabric": "gone"})
    assert machines(read_run(run)).count >= 1


def test_perfetto_slices_cover_what_was_held(one: Path) -> None:
    run = read_run(one)
    events = json.loads(perfetto_trace(run))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    rows = run.placements
    held = float(np.sum(rows["gpus"] * (rows["end_s"] - rows["start_s"])))
    shown = sum(s["dur"] * s["args"]["gpus_on_machine"] for s in slices) / 1e6
    assert shown == pytest.approx(held, abs=1e-5 * len(slices))
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for s in slices:
        tracks.setdefault((s["pid"], s["tid"]), []).append((s["ts"], s["ts"] + s["dur"]))
    for spans in tracks.values():
        spans.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
    named = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert set(named) == {1, 2, 3}
    assert named[2] == "machine 0 (rack 0)"
    counters = {event["name"] for event in events if event["ph"] == "C"}
    assert counters == {"GPUs held", "jobs waiting"}


def test_perfetto_counts_shares_of_gpus(tmp_path: Path) -> None:
    trace = tmp_path / "half.csv"
    trace.write_text(
        "job_id,arrival_s,gpus,gpu_share,model,iterations,compute_s\na,0,1,0.5,any,9,1\n"
    )
    scenario = Scenario(trace=str(trace), racks=1, policy="fifo", backend="none")
    simulate(scenario).save(tmp_path / "run")
    events = json.loads(perfetto_trace(read_run(tmp_path / "run")))["traceEvents"]
    counted = [event["args"]["value"] for event in events if event["name"] == "GPUs held"]
    assert counted == [0.5, 0.0]


@given(st.floats(1e-3, 4e9))
def test_steps_cover_a_run(length_s: float) -> None:
    assert length_s <= step_s(length_s) * STEPS < 2.6 * length_s or length_s < 1e-6 * STEPS


@given(st.integers(1, 5000), st.integers(2, 300))
def test_thinned_keeps_the_ends(count: int, most: int) -> None:
    kept = thinned(count, most)
    assert len(kept) <= max(most, 1)
    assert (kept[0], kept[-1]) == (0, count - 1)


def test_units_suit_the_size() -> None:
    assert [time_unit(s)[1] for s in (1, 200, 20_000, 900_000)] == ["s", "min", "h", "d"]
    # The largest of many times: 9 days are 216 hours, and a mean of 0.7 days is 17 hours.
    assert [time_unit(d * 86_400.0, days=FEW_DAYS).name for d in (9, 10)] == ["h", "d"]


def test_differences_are_written_as_everywhere_with_a_hyphen_and_a_space() -> None:
    assert (relative(-0.1331), relative(0.05), relative(208.0)) == ("-13.3 %", "+5.0 %", "x 209")
