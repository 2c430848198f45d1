"""Does the page tell what a plan of tables changed, and what a run copied?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from artist.config import Scenario
from artist.report.grouping import group
from artist.report.page import page
from artist.report.reader import read_runs
from artist.run import simulate
from artist.warehouse.files import write_plan
from artist.warehouse.measured import measured, pieces_of
from artist.warehouse.plan import place
from artist.warehouse.read import read_warehouse
from artist.warehouse.warehouse_schema import PlanOptions, Solver

DATA = "table,size,regions\nads,1TB,east\nuser,2TB,east\nnews,3TB,west\n"
TRACE = (
    "job_id,arrival_s,gpus,model,iterations,compute_s,tables,priority\n"
    "a,0,8,bert-large,3600,1.0,ads,1\n"
    "b,1800,8,bert-large,7200,1.0,user,1\n"
    "c,3600,8,bert-large,3600,1.0,user news,1\n"
)


def simulated(folder: Path, data: Path) -> Path:
    scenario = Scenario(
        cluster="three-regions",
        data=str(data),
        trace=str(folder / "trace.csv"),
        policy="mast",
        backend="none",
    )
    out = folder / f"run-{data.parent.name}"
    simulate(scenario).save(out)
    return out


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The page of a run without a plan, and of one with the plan that this run gave."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "trace.csv").write_text(TRACE)
    (folder / "data.csv").write_text(DATA)
    first = simulated(folder, folder / "data.csv")
    plan = place(read_warehouse(first, measured(first, None)), PlanOptions())
    write_plan(plan, Solver.CLIMB, folder / "plan", overwrite=False, pieces=pieces_of(first))
    second = simulated(folder, folder / "plan" / "tables.csv")
    made = [page(group(read_runs([run]))).decode() for run in (first, second)]
    return made[0], made[1]


def test_no_two_elements_of_a_page_have_one_id(pages: tuple[str, str]) -> None:
    for text in pages:
        ids = [*re.findall(r' id="([^"]+)"', text.partition("<script")[0]), "page-data"]
        assert len(ids) == len(set(ids)) > 20


def cells(text: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", text[text.index('id="data"') :], re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", row) for row in rows]


def test_copies_of_tables_are_reported(pages: tuple[str, str]) -> None:
    assert "1 table copied on demand, 2 TB; 1 job waited for data." in pages[0]
    assert ["1", "2 TB"] in cells(pages[0])
    assert "does not belong to a plan" in pages[0]


def test_regions_show_what_they_held(pages: tuple[str, str]) -> None:
    rows = {row[0]: row[1:3] for row in cells(pages[0]) if row}
    assert rows["east"] == ["96", "24"]
    assert rows["west"] == ["64", "8"]
    assert rows["north"] == ["32", "0"]


def test_the_plan_is_shown_before_and_after(pages: tuple[str, str]) -> None:
    rows = {row[0]: row[1:] for row in cells(pages[1]) if row}
    # Before, 24 GPU hours of 96 x 1 h in east; c had no region, for its tables lay apart.
    assert rows["east, gpu"][:2] == ["96", "0.25"]
    assert rows["collocated"] == ["0.75", "1"]
    assert "term: overload" in rows
    assert "by gain. All are in data_moves.parquet" in pages[1]
