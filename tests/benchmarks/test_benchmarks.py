"""Do the tools of `benchmarks/` compute, repeat and name their results correctly?"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def tools(monkeypatch) -> None:
    """The files of `benchmarks/` import each other by bare name."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def _result(name: str, cpu_s: float, unit_s: float, items: int) -> dict[str, object]:
    return {
        "name": name,
        "stats": {"min": cpu_s},
        "extra_info": {"unit_s": unit_s, "items": items},
    }


def test_a_result_is_compared_by_work_not_by_seconds(tools, tmp_path, monkeypatch, capsys) -> None:
    import compare

    monkeypatch.setattr(compare, "BASELINE", tmp_path / "baseline.json")
    (tmp_path / "baseline.json").write_text('{"loop[fifo]": 4.0, "gone": 1.5}')
    results = [_result("loop[fifo]", 3.0, 0.5, 1200), _result("start", 0.2, 0.1, 1)]
    (tmp_path / "results.json").write_text(json.dumps({"benchmarks": results}))
    monkeypatch.setattr(sys, "argv", ["compare", str(tmp_path / "results.json"), "--write"])
    compare.main()

    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line.split() for line in lines if line.split()}
    assert rows["loop[fifo]"] == ["loop[fifo]", "3.0000", "400", "6.000", "4.000", "1.50", "slower"]
    assert rows["start"][-1] == "new"
    written = json.loads((tmp_path / "baseline.json").read_text())
    assert written == {"gone": 1.5, "loop[fifo]": 6.0, "start": 2.0}


def test_where_rounds_differ_the_median_counts(tools) -> None:
    import compare

    bench = _result("question", 0.001, 0.1, 1)
    bench["stats"]["median"] = 0.004
    assert compare._row(bench, {})[1] == "0.0010"
    bench["extra_info"]["statistic"] = "median"
    assert compare._row(bench, {})[1] == "0.0040"
    assert compare._work(bench) == pytest.approx(0.04)


@pytest.mark.slow
def test_the_scaling_study_runs_each_point_once(tmp_path: Path) -> None:
    command = [sys.executable, BENCHMARKS / "scaling.py", "--out", tmp_path, "--jobs", "40"]
    for _ in range(2):
        ran = subprocess.run(
            [*map(str, command), "--racks", "1", "--policies", "fifo"],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert ran.returncode == 0, ran.stderr
    with (tmp_path / "scaling.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["policy"], row["jobs"], row["gpus"]) == ("fifo", "40", "64")
    assert float(row["loop_cpu_s"]) < float(row["whole_cpu_s"])
    assert int(row["peak_mib"]) > 10


def test_a_case_without_its_file_is_generated_and_its_name_says_so(
    tools, tmp_path, monkeypatch
) -> None:
    import cases

    monkeypatch.setattr(cases, "TRACES", tmp_path)
    assert str(cases.COMMON480) == "common480-like"
    trace = cases.COMMON480.trace(tmp_path)
    assert len(trace.read_text().splitlines()) == 481
    assert len(cases.loop(trace, 1, "fifo")().jobs) == 480
