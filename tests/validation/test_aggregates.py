"""Do whole runs give the totals of the original simulator, and does `make reference` say so?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from validation.original.__main__ import NAMES, main
from validation.original.aggregates import Cell, cells, compare, outcome
from validation.original.files import RecordedTrace, read_results, read_run, read_trace, trace_of
from validation.original.pools import read_totals, with_pools
from validation.original.runs import Latencies, simulate, workers
from validation.original.schemes import GRANULARITY, SCHEMES


@pytest.fixture(scope="module")
def traces(recorded: Path, job_files: list[Path]) -> dict[str, RecordedTrace]:
    """The recorded traces, with the pools that job files and recorded runs tell."""
    traces = {
        NAMES[path.stem]: read_trace(path, NAMES[path.stem])
        for path in sorted(recorded.glob("trace_*_effective.csv"))
    }
    runs = [read_run(path) for path in sorted((recorded / "allocations").glob("fix_*"))]
    its = [(run, trace_of(run, list(traces.values()))) for run in runs]
    totals = read_totals(job_files)
    return {name: with_pools(trace, totals, its, GRANULARITY) for name, trace in traces.items()}


def ratios(cell: Cell, traces: dict[str, RecordedTrace], speeds) -> tuple[float, float]:
    ours = outcome(simulate(traces[cell.trace], cell.scheme, cell.racks, None, speeds))
    return ours.jct_mean_s / cell.jct_mean_s, ours.makespan_s / cell.makespan_s


def test_cells_are_leak_free_rows_of_known_traces_with_registered_policies() -> None:
    row = {"racks": "2", "trace": "t", "jct_mean_s": "1", "makespan_s": "2"}
    rows = [{**row, "scheme": name} for name in (*SCHEMES, "Dally-6-12", "Gandiva")]
    kept = cells([*rows, {**row, "scheme": "Tiresias", "trace": "other"}], ["t"])
    assert [cell.scheme for cell in kept] == list(SCHEMES)


def test_a_run_in_the_originals_machine_order_is_the_originals(
    recorded: Path, workloads: Path, traces
) -> None:
    speeds = Latencies(recorded / "golden_astra1.csv", workloads).speeds()
    chosen = [("Tiresias", 4, "sensetime_411_poisson_week")]
    for cell in cells(read_results(recorded / "results.csv"), traces):
        if (cell.scheme, cell.racks, cell.trace) in chosen:
            assert ratios(cell, traces, speeds) == pytest.approx((1, 1), abs=1e-5)


@pytest.mark.slow
def test_all_runs_in_the_originals_machine_order_are_the_originals(
    recorded: Path, workloads: Path, traces
) -> None:
    speeds = Latencies(recorded / "golden_astra1.csv", workloads).speeds()
    recorded_cells = cells(read_results(recorded / "results.csv"), traces)
    assert len(recorded_cells) == 35
    for cell in recorded_cells:
        assert ratios(cell, traces, speeds) == pytest.approx((1, 1), abs=1e-5), cell


@pytest.mark.slow
def test_medians_over_machine_orders(recorded: Path, workloads: Path, traces) -> None:
    wanted = [("Dally-auto", 8), ("Tiresias", 2)]
    name = "sensetime_411_poisson_week"
    chosen = [
        cell
        for cell in cells(read_results(recorded / "results.csv"), [name])
        if (cell.scheme, cell.racks) in wanted
    ]
    latencies = Latencies(recorded / "golden_astra1.csv", workloads)
    with workers(2, traces, latencies) as pool:
        rows = list(compare(pool, chosen, seeds=3))
    assert len(rows) == 2
    for row in rows:
        assert row["jct_mean_ratio_min"] <= row["jct_mean_ratio"] <= row["jct_mean_ratio_max"]
        assert row["jct_mean_ratio"] == pytest.approx(1, abs=0.2)


def write_small(folder: Path) -> list[str]:
    """One small trace, its results, a run of it, and the arguments that name them."""
    trace = ["job_id,arrival_s,gpus,model,iterations,compute_s,user"]
    trace += [f"{number},0.0,1,BERT,{1000 * number},0.001,u" for number in range(1, 5)]
    (folder / "small.csv").write_text("\n".join(trace) + "\n")
    # Jobs of 1 to 4 s on a GPU of their own: mean 2.5 s, makespan 4 s.
    (folder / "results.csv").write_text(
        "variant,scheme,racks,trace,makespan_s,jct_mean_s\n"
        "fix,Tiresias,1,small,8.0,2.5\nasis,Tiresias,1,small,1,1\nfix,Dally-6-12,1,small,1,1\n"
    )
    lines = ["event,time_s,job_id,model,gpus,priority,waited_s,speed,gpus_list"]
    lines += [f"ALLOC,0.0,{number},BERT,1,-0.0,0.0,1.0,0.0.0.{number - 1}" for number in (1, 2)]
    (folder / "fix_Tiresias_1r_small.csv").write_text("\n".join(lines) + "\n")
    (folder / "golden.csv").write_text(
        "source,model,compute_scale,topologies,dim_types,units,bw_GBps,latency_ns,"
        "total_comp_us,exposed_comm_us\n"
    )
    return [
        *("--reference", str(folder), "--workloads", str(folder), "--job-files", str(folder)),
        *("--allocations", str(folder / "fix_Tiresias_1r_small.csv")),
        *("--trace", str(folder / "small.csv"), "--trace-name", "small"),
        *("--latencies", str(folder / "golden.csv"), "--out", str(folder / "ref.json")),
        *("--seeds", "2", "--workers", "1"),
    ]


def test_command_writes_its_comparisons(tmp_path: Path, capsys) -> None:
    assert main(write_small(tmp_path)) == 0
    document = json.loads((tmp_path / "ref.json").read_text())
    (replay,) = document["replay"]
    assert (replay["file"], replay["decisions"]) == ("fix_Tiresias_1r_small.csv", 2)
    assert replay["agree"] == 2
    (cell,) = document["aggregates"]
    assert (cell["scheme"], cell["racks"], cell["trace"]) == ("Tiresias", 1, "small")
    assert cell["jct_mean_ratio"] == cell["jct_mean_ratio_own_order"] == 1.0
    assert cell["makespan_ratio_min"] == cell["makespan_ratio_max"] == 0.5
    assert (cell["jct_mean_ratio_smaller"], cell["makespan_ratio_smaller"]) == (0, 2)
    assert "small" in capsys.readouterr().out


def test_a_trace_can_be_chosen_by_its_name_alone(tmp_path: Path) -> None:
    arguments = write_small(tmp_path)
    for stem in ("trace_one_effective", "trace_two_effective"):
        (tmp_path / f"{stem}.csv").write_text((tmp_path / "small.csv").read_text())
    results = (tmp_path / "results.csv").read_text()
    (tmp_path / "results.csv").write_text(results.replace(",small,", ",trace_two_effective,"))
    arguments[arguments.index("--trace") + 1] = ""
    arguments[arguments.index("--trace-name") + 1] = "trace_two_effective"
    assert main(arguments) == 0
    document = json.loads((tmp_path / "ref.json").read_text())
    assert [row["trace"] for row in document["aggregates"]] == ["trace_two_effective"]
    assert document["replay"][0]["agree"] == 2


def test_an_experiment_leaves_jobs_out_and_compares_with_the_own_order(tmp_path: Path) -> None:
    arguments = write_small(tmp_path)
    assert main([*arguments, "--without", "bert:0"]) == 3  # nothing would be left
    assert main([*arguments, "--without", "vgg11:1"]) == 0
    (row,) = json.loads((tmp_path / "ref.json").read_text())["without"]
    assert row["makespan_ratio"] == row["jct_mean_ratio_own_order"] == 1.0


def test_command_names_what_is_wrong(tmp_path: Path, capsys) -> None:
    arguments = write_small(tmp_path)
    arguments[arguments.index("small")] = "one two"
    assert main([*arguments, "--seeds", "0"]) == 3
    assert main([*arguments, "--out", str(tmp_path / "nowhere" / "ref.json")]) == 3
    assert main(arguments) == 3
    assert "1 traces but 2 names" in capsys.readouterr().err
    (tmp_path / "fix_Tiresias_1r_small.csv").write_text("event,time_s\nALLOC,soon\n")
    arguments[arguments.index("one two")] = "small"
    assert main(arguments) == 3
    assert "fix_Tiresias_1r_small.csv:2" in capsys.readouterr().err
    arguments = write_small(tmp_path)
    (tmp_path / "results.csv").write_text("variant,scheme,racks\nfix,Tiresias,1\n")
    assert main(arguments) == 3
    assert "results.csv:2" in capsys.readouterr().err
    arguments[arguments.index("--trace") + 1] = ""
    assert main(arguments) == 3
    assert "--trace-name small" in capsys.readouterr().err
    for option, value in (("--without", "bert"), ("--without", "gpt9:8")):
        assert main([*write_small(tmp_path), option, value]) == 3
        assert value.removesuffix(":8") in capsys.readouterr().err
    assert main([*write_small(tmp_path), "--again", str(tmp_path / "small.csv")]) == 3
    assert "small.csv" in capsys.readouterr().err
