"""Does a browser draw the section about links, and can everybody read it?"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from browser import NEEDS_BROWSER
from page_checks import MARKS, TEXTS
from run_making import make_competing, make_taking_turns

from artist.report.grouping import group
from artist.report.page import page
from artist.report.reader import read_runs

pytestmark = NEEDS_BROWSER

HEAT = "document.querySelector('[id^=fig-links-over-time]')"
CIRCLE = "document.querySelector('[id^=fig-circle]')"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs of two policies that meet on the uplinks of a rack."""
    folder = tmp_path_factory.mktemp("links")
    for policy in ("fifo", "las"):
        make_competing(folder, policy, policy=policy)
    target = folder / "report.html"
    target.write_bytes(page(group(read_runs([folder]))))
    return target


def screens(test):
    """Of a test on a wide and a narrow screen, in light and dark colours."""
    sizes = pytest.mark.parametrize("size", [(1280, 900), (390, 844)], ids=["desktop", "phone"])
    return pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])(sizes(test))


def assert_readable(browser, width: int) -> None:
    """The open page is as wide as the screen, and everybody can read it."""
    assert browser.errors() == []
    assert browser.run("return document.documentElement.scrollWidth") == width
    for check in (TEXTS, MARKS):
        checked, weak = browser.run(check)
        assert checked > 10
        assert weak == []


@screens
def test_the_map_is_drawn_without_complaint(browser, report: Path, size, dark: bool) -> None:
    browser.open(report, *size, dark=dark, phone=size[0] < 700)
    assert_readable(browser, size[0])
    assert browser.run(f"return {HEAT}.querySelectorAll('path.cells').length") > 2


def tooltip(browser, figure: str) -> str:
    """What a figure says of the first place to which an arrow key leads."""
    browser.run(
        f"const c = {figure}.querySelector('svg.chart'); c.focus();"
        "c.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}))"
    )
    said: str = browser.run("return document.querySelector('.tooltip').textContent")
    return said


def test_a_cell_and_the_table_show_values(browser, report: Path) -> None:
    browser.open(report, 1280, 900, dark=False)
    said = tooltip(browser, HEAT)
    assert "utilization" in said
    assert "most jobs at once" in said
    browser.run(f"{HEAT}.querySelector('details').open = true")
    time.sleep(0.3)  # the page fills a table when it is opened
    head = f"return {HEAT}.querySelector('thead').textContent"
    assert "mean utilization (%)" in browser.run(head)


def test_the_map_follows_the_policy(browser, report: Path) -> None:
    browser.open(report, 1280, 900, dark=False)
    shown = f"return {HEAT}.id"
    before = browser.run(shown)
    browser.run(
        "const s = document.getElementById('policy'); s.value = 1;"
        "s.dispatchEvent(new Event('change'))"
    )
    time.sleep(0.3)  # the page inflates its figures
    assert browser.run(shown) != before


@pytest.fixture(scope="module")
def turns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two jobs that take turns."""
    folder = tmp_path_factory.mktemp("turns")
    make_taking_turns(folder, "run", "cassini(fifo)")
    target = folder / "report.html"
    target.write_bytes(page(group(read_runs([folder]))))
    return target


@screens
def test_circles_are_drawn_without_complaint(browser, turns: Path, size, dark: bool) -> None:
    browser.open(turns, *size, dark=dark, phone=size[0] < 700)
    assert_readable(browser, size[0])
    # Two rings and the red one, before and after; after, nothing is red.
    assert browser.run(f"return {CIRCLE}.querySelectorAll('.ring').length") == 6
    assert browser.run(f"return {CIRCLE}.querySelectorAll('.arc').length") == 5


def test_a_place_on_a_circle_and_the_table_show_values(browser, turns: Path) -> None:
    browser.open(turns, 1280, 900, dark=False)
    said = tooltip(browser, CIRCLE)
    assert "in step, at 0 ms" in said
    assert "together0 Gbit/s of 50" in said
    browser.run(f"{CIRCLE}.querySelector('details').open = true")
    time.sleep(0.3)  # the page fills a table when it is opened
    row = f"return [...{CIRCLE}.querySelectorAll('tbody tr')].at(-1).textContent"
    assert browser.run(row) == "job b200.492.349.794.6"
