"""Does the page work in a real browser: no errors, no overflow, tables, keys, colours?"""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from browser import FLAGS, NEEDS_BROWSER, Browser
from page_checks import MARKS, OUTSIDE, TEXTS
from run_making import EVIL

from artist.report.grouping import group
from artist.report.page import page
from artist.report.reader import read_runs

pytestmark = NEEDS_BROWSER

DESKTOP, TABLET, PHONE, NARROW = (1280, 900), (768, 1024), (390, 844), (320, 640)


@pytest.fixture(scope="module")
def report(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("page") / "report.html"
    target.write_bytes(page(group(read_runs([runs]))))
    return target


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(
    "size", [DESKTOP, TABLET, PHONE, NARROW], ids=["desktop", "tablet", "phone", "narrow"]
)
def test_the_page_is_drawn_without_complaint(browser, report: Path, size, dark: bool) -> None:
    browser.open(report, *size, dark=dark, phone=size[0] < 700)
    assert browser.errors() == []
    assert browser.run("return document.documentElement.scrollWidth") == size[0]
    cards = browser.run("return document.querySelectorAll('figure.card').length")
    drawn = browser.run("return document.querySelectorAll('figure.card svg.chart').length")
    assert cards == drawn > 10
    paper = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, paper[4:-1].split(","))) < 150) == dark
    assert _pixels(browser) > 3


def test_texts_stay_inside_their_charts(browser, report: Path) -> None:
    for size in (DESKTOP, TABLET, PHONE):
        browser.open(report, *size, dark=False, phone=size == PHONE)
        assert browser.run(OUTSIDE) == []


ALONE = """
return [...document.querySelectorAll(".tiles, .cards")].flatMap((grid) => {
  const tops = [...grid.children].filter((e) => !e.matches(".wide")).map((e) => e.offsetTop);
  return tops.filter((top) => tops.filter((other) => other === top).length === 1);
});
"""
"""Where a tile, or a card that is not as wide as the page, stands alone in its row."""


def test_no_tile_stands_alone(browser, report: Path, one: Path, tmp_path: Path) -> None:
    tiles = tmp_path / "one.html"
    tiles.write_bytes(page(group(read_runs([one]))))
    for size in (DESKTOP, TABLET, PHONE):
        browser.open(tiles, *size, dark=False)
        alone = "return document.querySelector('.tiles').children.length"
        assert browser.run(alone) == 8
        if size != PHONE:  # there all cards stand below each other
            assert browser.run(ALONE) == []
    browser.open(report, *DESKTOP, dark=False)
    assert browser.run(ALONE) == []


def test_the_text_is_as_wide_as_the_figures(browser, report: Path) -> None:
    browser.open(report, 1600, 900, dark=False)
    for part in (".short", ".lede", "#overview + p", ".cards"):
        width = f"return document.querySelector('{part}').getBoundingClientRect().width"
        assert browser.run(width) == 1132


def test_setting_policy_colours_and_zoom(browser, report: Path) -> None:
    browser.open(report, *DESKTOP, dark=False)
    shown = "return [...document.querySelectorAll('figure.card')].map(f => f.id).join()"
    before = browser.run(shown)
    for name, value in (("setting", 1), ("policy", 1)):
        browser.run(
            f"const s = document.getElementById('{name}'); s.value = {value};"
            "s.dispatchEvent(new Event('change'))"
        )
    assert browser.run(shown) != before
    assert "2-racks" in browser.run(shown)
    for value in ("level", "model", "job"):
        browser.run(f"document.querySelector('[value={value}]').click()")
        assert _pixels(browser) > 2
    for button in range(5):
        browser.run(f"document.querySelectorAll('[data-act]')[{button}].click()")
    for key in ("+", "ArrowRight", "ArrowLeft", "ArrowDown", "-", "0"):
        browser.run(
            "document.querySelector('#timeline canvas').dispatchEvent("
            f"new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}))"
        )
    assert browser.errors() == []


def test_tables_stand_for_the_figures(browser, report: Path) -> None:
    browser.open(report, *DESKTOP, dark=False)
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true })")
    empty = browser.run(
        "return [...document.querySelectorAll('details')]"
        ".filter(d => !d.querySelector('td, p, li'))"
        ".map(d => d.parentElement.parentElement.id)"
    )
    assert empty == []
    assert browser.errors() == []


def test_keys_read_a_chart_aloud(browser, report: Path) -> None:
    browser.open(report, *DESKTOP, dark=False)
    browser.run(
        "const c = document.querySelector('[id^=fig-jct-cdf] svg'); c.focus();"
        "for (let i = 0; i < 60; i++) c.dispatchEvent("
        "new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}))"
    )
    spoken = browser.run("return document.querySelector('[aria-live]').textContent")
    assert spoken.startswith("Job completion time: ")
    assert "dally" in spoken


def test_the_switch_overrides_the_system(browser, report: Path) -> None:
    browser.open(report, *DESKTOP, dark=False)
    colour = "return getComputedStyle(document.body).backgroundColor"
    before = browser.run(colour)
    browser.run("document.getElementById('theme').click()")
    assert browser.run(colour) != before
    browser.run("document.getElementById('theme').click()")
    assert browser.run(colour) == before
    browser.run("localStorage.clear()")  # it outlives the page, and other tests follow the system


def test_markup_in_names_is_harmless(browser, evil: Path, tmp_path: Path) -> None:
    target = tmp_path / "evil.html"
    target.write_bytes(page(group(read_runs([evil]))))
    browser.open(target, *DESKTOP, dark=False)
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true })")
    browser.run("document.querySelectorAll('.opener').forEach(b => b.click())")
    browser.run("document.querySelector('.opener').click()")
    time.sleep(0.4)
    assert EVIL in browser.run("return document.querySelector('.inside').textContent")
    assert browser.errors() == []
    assert browser.run("return document.title").startswith(EVIL)
    assert browser.run("return document.scripts.length") == 2


READ = (
    "const c = document.querySelector('#timeline canvas');"
    "const p = new OffscreenCanvas(c.width, c.height).getContext('2d', "
    "{willReadFrequently: true}); p.drawImage(c, 0, 0);"
)
"""A copy of a timeline's canvas, which can be read."""


def test_paper_is_light_and_has_no_controls(browser, report: Path) -> None:
    browser.open(report, *DESKTOP, dark=True)
    colour = "return getComputedStyle(document.body).backgroundColor"
    idle = READ + "return Math.max(...p.getImageData(c.width - 8, 8, 1, 1).data.slice(0, 3))"
    dark, before = browser.run(colour), browser.run(idle)
    browser.devtools("Emulation.setEmulatedMedia", {"media": "print"})
    time.sleep(0.3)
    assert browser.run(colour) != dark
    assert browser.run(idle) > before  # the canvas is drawn again
    shown = "return [...document.querySelectorAll('.pickers')].some(e => e.checkVisibility())"
    assert not browser.run(shown)
    assert browser.run("return document.querySelector('.panel table').checkVisibility()")
    browser.devtools("Emulation.setEmulatedMedia", {"media": ""})


def test_a_page_printed_as_soon_as_it_is_loaded_has_all(browser, report: Path) -> None:
    """Chromium writes the elements, or a PDF, at the load event and does not wait for more."""
    asked = [str(shutil.which("chromium")), *FLAGS, "--dump-dom", report.as_uri()]
    loaded = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stdout
    assert loaded.count('<svg class="chart"') == loaded.count('class="plot"') > 10
    assert loaded.count('class="opener"') == 10
    assert "<iframe" not in loaded
    browser.open(report, 720, 900, dark=False)
    completion = "document.querySelectorAll('[data-section=completion] svg.chart')"
    heights = f"return [...{completion}].map(chart => chart.viewBox.baseVal.height)"
    on_screen = browser.run(heights)
    browser.devtools("Emulation.setEmulatedMedia", {"media": "print"})
    browser.run("dispatchEvent(new Event('beforeprint'))")
    widths = "return [...document.querySelectorAll('svg.chart')].map(c => [c.clientWidth, %s])"
    charts, page = (
        browser.run(widths % "c.viewBox.baseVal.width"),
        browser.run("return document.querySelector('.page').clientWidth"),
    )
    drawn = {width for width, _ in charts}
    assert len(drawn) == 2  # across the page, and two beside each other
    assert 2 * min(drawn) > 0.8 * page < max(drawn)
    assert all(width == pytest.approx(view, rel=0.02) for width, view in charts)
    on_paper = browser.run(heights)
    assert all(paper <= screen for paper, screen in zip(on_paper, on_screen, strict=True))
    assert sum(on_paper) < 0.95 * sum(on_screen)  # so that two rows of cards share a sheet
    unset = "[...document.querySelectorAll('#configuration ~ .scroll td')]"
    shown = f"return {unset}.filter(e => e.textContent === 'not set' && e.checkVisibility()).length"
    assert browser.run(shown) == 0
    browser.devtools("Emulation.setEmulatedMedia", {"media": ""})


def test_swatches_have_the_colours_of_the_areas(browser, report: Path) -> None:
    browser.open(report, *DESKTOP, dark=False)
    seen = browser.run("""
    const figure = document.querySelector("[id^=fig-utilization]");
    return ["part0", "part1", "part2"].map((part) => ["path.", ".swatch."].map((kind) => {
      const style = getComputedStyle(figure.querySelector(kind + part));
      return kind === "path." ? [style.fill, style.fillOpacity] : style.backgroundColor;
    }));
    """)
    opacities = [float(opacity) for (_, opacity), _ in seen]
    assert opacities == [1, 0.5, 0.2]
    for (fill, opacity), swatch in seen:
        red, *_ = (int(part) for part in fill[4:-1].split(","))
        if opacity == "1":
            assert swatch == fill
            continue
        assert float(swatch.split()[1]) == pytest.approx(red / 255, abs=1e-3), swatch
        assert f"/ {float(opacity):g})" in swatch


def _edge(browser: Browser, timeline: str) -> bool:
    """Whether something ran at the right end of a timeline."""
    colours = browser.run(
        f"{READ.replace('#timeline', timeline)}"
        "const d = p.getImageData(c.width - 8, 10, 1, c.height - 60).data;"
        "const s = new Set(); for (let i = 0; i < d.length; i += 4)"
        " s.add(d[i] * 65536 + d[i + 1] * 256 + d[i + 2]); return s.size"
    )
    return bool(colours > 1)


def test_two_policies_have_their_timelines_on_one_axis(browser, report: Path) -> None:
    browser.open(report, *DESKTOP, dark=False)
    both = ("#timeline", "#timeline-beside")
    names = "return [...document.querySelectorAll('p.policy')].map(p => p.textContent)"
    assert browser.run(names) == ["dally", "gandiva"]
    # The axis ends with the run that takes longer.
    assert sorted(_edge(browser, timeline) for timeline in both) == [False, True]
    before = [_pixels(browser, timeline) for timeline in both]
    assert min(before) > 2
    picture = "return document.querySelector('#timeline-beside canvas').toDataURL()"
    whole = browser.run(picture)
    browser.run("document.querySelector('[data-act=\"zoom 2\"]').click()")
    assert browser.run(picture) != whole  # one moves with the other
    browser.run("document.querySelector('[data-act=reset]').click()")
    assert browser.run(picture) == whole
    browser.run(
        "const s = document.getElementById('beside'); s.value = -1;"
        "s.dispatchEvent(new Event('change'))"
    )
    assert browser.run("return document.getElementById('timeline-beside').hidden")
    assert browser.run(names) == ["", ""]
    assert browser.errors() == []


def test_the_timeline_opens_coloured_by_level(browser, report: Path) -> None:
    browser.open(report, *DESKTOP, dark=False)
    shown = "return document.getElementById('timeline-legend').textContent"
    assert browser.run(shown).startswith("machinerack")


def _pixels(browser: Browser, timeline: str = "#timeline") -> int:
    """How many colours a cluster timeline shows."""
    return int(
        browser.run(
            f"{READ.replace('#timeline', timeline)}"
            "const d = p.getImageData(0, 0, c.width, c.height).data;"
            "const s = new Set(); for (let i = 0; i < d.length; i += 4)"
            " s.add(d[i] * 65536 + d[i + 1] * 256 + d[i + 2]); return s.size"
        )
    )


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_texts_and_marks_have_contrast(browser, report: Path, size, dark: bool) -> None:
    browser.open(report, *size, dark=dark, phone=size == PHONE)
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true })")
    browser.run("document.querySelector('.opener').click()")
    time.sleep(0.4)
    texts, weak = browser.run(TEXTS)
    assert texts > 500 and weak == []
    marks, weak = browser.run(MARKS)
    assert marks > 50 and weak == []


def test_weak_contrast_would_be_noticed(browser, report: Path) -> None:
    browser.open(report, *DESKTOP, dark=False)
    browser.run("document.documentElement.style.setProperty('--quiet', '#8c929c')")
    assert browser.run(TEXTS)[1]
    browser.run("document.documentElement.style.setProperty('--s0', '#b8c4f0')")
    assert browser.run(MARKS)[1]


def test_the_contents_lead_to_every_section(browser, report: Path) -> None:
    browser.open(report, *DESKTOP, dark=False)
    links, headings = browser.run(
        "return [[...document.querySelectorAll('.contents a')].map(a => a.hash.slice(1)),"
        "[...document.querySelectorAll('h2')].map(h => h.id)]"
    )
    assert ["verdict", *links] == headings
    browser.run("document.querySelector('.contents a[href=\"#jobs\"]').focus()")
    browser.press("Enter")
    top = browser.run("return document.getElementById('jobs').getBoundingClientRect().top")
    assert 0 <= top < 120  # below the picker that stays at the top
