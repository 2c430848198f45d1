"""Are panels, waterfalls and ranges drawn right in a real browser, and can they be read?"""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import NEEDS_BROWSER
from page_checks import OUTSIDE
from run_making import make_run

from artist.report.grouping import group
from artist.report.page import page
from artist.report.reader import read_runs

pytestmark = NEEDS_BROWSER

POLICIES = ("dally", "fifo", "gandiva", "las", "tiresias")
WIDTHS = {"desktop": 1280, "tablet": 768, "phone": 390}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five policies: one more than share a chart."""
    folder = tmp_path_factory.mktemp("runs")
    for policy in POLICIES:
        make_run(folder / policy, policy=policy, trace="tiny-batch", restart_s=30.0)
    target = tmp_path_factory.mktemp("page") / "report.html"
    target.write_bytes(page(group(read_runs([folder]))))
    return target


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_texts_stay_inside_and_apart(browser, report: Path, width: int) -> None:
    browser.open(report, width, 900, dark=width == 768, phone=width == 390)
    assert browser.errors() == []
    assert browser.run("return document.documentElement.scrollWidth") == width
    assert browser.run(OUTSIDE) == []
    overlapping = browser.run(
        "return ['jct-cdf', 'jct-difference', 'gpus-held', 'jct-by-size'].flatMap(name => {"
        "const all = [...document.querySelectorAll(`[id^=fig-${name}] svg.chart text`)]"
        ".map(t => [t.textContent, t.getBoundingClientRect()]);"
        "return all.flatMap(([a, p], i) => all.slice(i + 1).filter(([, q]) =>"
        "Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1"
        "&& Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 4)"
        ".map(([b]) => `${name}: ${a} / ${b}`))})"
    )
    assert overlapping == []


def test_each_line_has_a_panel_with_the_others_behind_it(browser, report: Path) -> None:
    browser.open(report, 1280, 900, dark=False)
    lines = browser.run(
        "return [...document.querySelectorAll('[id^=fig-jct-cdf] path.line')]"
        ".map(p => p.dataset.series || 'behind')"
    )
    assert [name for name in lines if name != "behind"] == list(POLICIES)
    assert lines.count("behind") == 5 * 4
    wide = browser.run("return document.querySelector('[id^=fig-jct-cdf]').className")
    assert wide == "card wide"


def test_panels_are_read_together(browser, report: Path) -> None:
    browser.open(report, 1280, 900, dark=False)
    browser.run(
        "const c = document.querySelector('[id^=fig-jobs-remaining] svg'); c.focus();"
        "for (let i = 0; i < 9; i++) c.dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))"
    )
    spoken = browser.run("return document.querySelector('[aria-live]').textContent")
    assert spoken.startswith("Time: ")
    assert all(policy in spoken for policy in POLICIES)
    # A pointer in the last panel reads the same place in all of them.
    marks = browser.run(
        "const c = document.querySelector('[id^=fig-jobs-remaining] svg');"
        "c.scrollIntoView({block: 'center'});"
        "const r = c.querySelector('[data-series=tiresias]').getBoundingClientRect();"
        "c.dispatchEvent(new PointerEvent('pointermove', {bubbles: true,"
        "clientX: r.left + 9, clientY: r.top + r.height / 2}));"
        "return [c.querySelector('.probe').getAttribute('d').split('M').length - 1,"
        "document.querySelector('.tooltip').textContent]"
    )
    assert marks[0] == 5
    assert all(policy in marks[1] for policy in POLICIES)


def test_steps_of_a_waterfall_lead_to_its_sum(browser, report: Path) -> None:
    browser.open(report, 1280, 900, dark=False)
    bars = browser.run(
        "return [...document.querySelectorAll('[id^=fig-jct-difference] rect.bar')].map(b =>"
        "[+b.getAttribute('x'), +b.getAttribute('x') + +b.getAttribute('width')])"
    )
    # In each panel a line at 0, then one from each step to the next.
    lines = browser.run(
        "return [...document.querySelectorAll('[id^=fig-jct-difference] line.axis')].map("
        "line => +line.getAttribute('x1'))"
    )
    assert len(bars) == len(lines) == 4 * 5
    for first in range(0, len(bars), 5):
        zero, *ends = lines[first : first + 5]
        starts = [zero, *ends[:-1], zero]
        for bar, *step in zip(bars[first : first + 5], starts, [*ends, ends[-1]], strict=True):
            # One pixel is the least width of a bar.
            assert bar == pytest.approx([min(step), max(*step, min(step) + 1)], abs=0.01)
    browser.run(
        "const c = document.querySelector('[id^=fig-jct-difference] svg'); c.focus();"
        "c.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true}))"
    )
    spoken = browser.run("return document.querySelector('[aria-live]').textContent")
    assert spoken.startswith("fifo; waiting ")


def test_quantiles_have_a_dot_and_a_line_each(browser, report: Path) -> None:
    browser.open(report, 390, 900, dark=True, phone=True)
    shown = browser.run(
        "const f = document.querySelector('[id^=fig-jct-by-size]');"
        "const count = (what) => f.querySelectorAll(`svg ${what}[data-series]`).length;"
        "return [count('circle'), count('line'), f.querySelectorAll('svg .name').length]"
    )
    assert shown[0] == shown[1] == shown[2] * len(POLICIES) > 0
