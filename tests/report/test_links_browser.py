"""Does a browser draw the section about links, and can everybody read it?"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from page_checks import MARKS, TEXTS
from run_making import make_competing

from artist.report.grouping import group
from artist.report.page import page
from artist.report.reader import read_runs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not shutil.which("chromium") or not shutil.which("chromedriver"),
        reason="needs a browser: apt-get install chromium chromium-driver",
    ),
]

HEAT = "document.querySelector('[id^=fig-links-over-time]')"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs of two policies that meet on the uplinks of a rack."""
    folder = tmp_path_factory.mktemp("links")
    for policy in ("fifo", "las"):
        make_competing(folder, policy, policy=policy)
    target = folder / "report.html"
    target.write_bytes(page(group(read_runs([folder]))))
    return target


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [(1280, 900), (390, 844)], ids=["desktop", "phone"])
def test_the_map_is_drawn_without_complaint(browser, report: Path, size, dark: bool) -> None:
    browser.open(report, *size, dark=dark, phone=size[0] < 700)
    assert browser.errors() == []
    assert browser.run("return document.documentElement.scrollWidth") == size[0]
    assert browser.run(f"return {HEAT}.querySelectorAll('path.cells').length") > 2
    for check in (TEXTS, MARKS):
        checked, weak = browser.run(check)
        assert checked > 10
        assert weak == []


def test_a_cell_and_the_table_tell_values(browser, report: Path) -> None:
    browser.open(report, 1280, 900, dark=False)
    browser.run(
        f"const c = {HEAT}.querySelector('svg.chart'); c.focus();"
        "c.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}))"
    )
    said = browser.run("return document.querySelector('.tooltip').textContent")
    assert "utilisation" in said
    assert "most jobs at once" in said
    browser.run(f"{HEAT}.querySelector('details').open = true")
    head = "return [...HEAT.querySelectorAll('thead th')].map(x => x.textContent).join()"
    time.sleep(0.3)  # the page fills a table when it is opened
    assert "mean utilisation (%)" in browser.run(head.replace("HEAT", HEAT))


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
