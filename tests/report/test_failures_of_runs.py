"""Does the section about failures say what the tables of the runs say?"""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from report.run_making import make_run

from artist.report.grouping import group
from artist.report.reader import read_runs
from artist.report.sections import failures_section

MODEL = """machine: {distribution: exponential, mtbf_s: 2.0e4, repair_s: 60}
maintenance:
  - {kind: rack, unit: 0, at_s: 3000, duration_s: 60}
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("failing")
    file = folder / "mine.yaml"
    file.write_text(MODEL)
    failing = {"failures": str(file), "checkpoint": {"interval_s": 600, "cost_s": 10}}
    make_run(folder / "fifo", policy="fifo", **failing)
    make_run(folder / "las", policy="las", **failing)
    make_run(folder / "none" / "fifo", policy="fifo")
    return folder


def cells(page: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    return [[unescape(re.sub("<[^>]+>", "", c)) for c in re.findall(r"<t[dh].*?</t[dh]>", row)]
            for row in rows]  # fmt: skip


def test_the_tables_say_what_the_files_say(runs: Path) -> None:
    rows = cells(failures_section(group(read_runs([runs / "fifo"]))))
    outages = pq.read_table(runs / "fifo" / "outages.parquet").to_pylist()
    failed = [one for one in outages if one["event"] == "failed"]
    shown = {row[0]: row for row in rows}
    assert shown["machine failed"][1] == str(len(failed))
    assert shown["machine failed"][3] == str(sum(one["jobs"] for one in failed))
    assert float(shown["machine failed"][4]) == pytest.approx(
        sum(one["lost_gpu_s"] for one in failed) / 3600, rel=1e-2
    )
    assert shown["rack maintenance"][1] == "1"
    for size in pq.read_table(runs / "fifo" / "failure_sizes.parquet").to_pylist():
        row = shown[str(size["gpus"])]
        assert row[3] == str(size["failures"])
        if size["failures"]:
            assert float(row[4].replace(",", "")) == pytest.approx(size["mttf_s"] / 3600, rel=1e-2)
        assert float(row[5]) == pytest.approx(size["mttf_expected_s"] / 3600, rel=1e-2)


def test_a_page_has_the_section_only_where_something_fails(runs: Path) -> None:
    from artist.report.page import page

    assert b'id="failures"' in page(group(read_runs([runs / "fifo", runs / "las"])))
    assert b'id="failures"' not in page(group(read_runs([runs / "none"])))
