"""Does a result show itself briefly, with units, and safely?"""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

import artist


@pytest.fixture(scope="module")
def result() -> artist.Result:
    scenario = artist.Scenario(trace="tiny-batch", racks=1, policy="fifo", restart_s=30)
    return artist.simulate(scenario, cache=False)


class Cells(HTMLParser):
    """The texts of a table's cells, row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_data(self, data: str) -> None:
        if self.rows:
            self.rows[-1].append(data)


def test_a_shell_shows_one_line(result: artist.Result) -> None:
    line = repr(result)
    summary = result.summary
    assert line == (
        f"<Result: fifo on tiny-batch, 64 GPUs, {summary['jobs_total']} jobs: makespan "
        f"{summary['makespan_s']:,.0f} s, mean JCT {summary['jct_mean_s']:,.0f} s>"
    )
    assert len(line) < 120


def test_a_notebook_shows_the_summary_with_units_and_the_setting(result: artist.Result) -> None:
    html = result._repr_html_()
    cells = Cells()
    cells.feed(html)
    assert ["makespan_s", f"{result.summary['makespan_s']:,.0f}", "s"] in cells.rows
    assert ["preemptions", "0", "1"] in cells.rows
    assert cells.tags == {"table", "caption", "thead", "tbody", "tr", "th", "td"}
    for text in ("policy: fifo", "trace: tiny-batch", "cluster: 1x8x8", "fabric: a100"):
        assert text in html
    assert "restart_s: 30.0" in html
    assert len(html) < 4000


def test_a_changed_fabric_is_described_in_words() -> None:
    options = {"network": {"bandwidth": "100Gbit/s"}}
    changed = artist.Scenario(trace="tiny-batch", racks=1, policy="fifo", fabric_options=options)
    html = artist.simulate(changed, cache=False)._repr_html_()
    assert "fabric_changes: network bandwidth 100 Gbit/s" in html
    assert "gib_per_s" not in html


def test_a_name_is_text_and_not_markup(result: artist.Result) -> None:
    hostile = replace(result, summary={**result.summary, "trace": "<script>alert(1)</script>"})
    html = hostile._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
