"""Can a reader sort, filter, search and open the job table, with the keyboard alone?"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from browser import NEEDS_BROWSER, Browser

from artist.report.grouping import group
from artist.report.page import page
from artist.report.reader import FileColumns, RecordedRun, read_run, read_runs

pytestmark = NEEDS_BROWSER

DESKTOP, PHONE = (1280, 900), (390, 844)
CELLS = (
    "return [...document.querySelectorAll('#jobs-table tbody tr[data-job]')]"
    ".map(r => [...r.cells].map(c => c.textContent.replace(/^[^\\w]+/, '')))"
)
FOCUS = "document.querySelector('{}').focus()"


@pytest.fixture
def table(browser: Browser, busy: Path, tmp_path: Path) -> Browser:
    """A page about one run, opened."""
    target = tmp_path / "one.html"
    target.write_bytes(page(group(read_runs([busy]))))
    browser.open(target, *DESKTOP, dark=False)
    return browser


@pytest.fixture
def rows(busy: Path) -> pd.DataFrame:
    jobs = pd.read_parquet(busy / "jobs.parquet")
    return jobs.assign(slowdown=jobs["jct_s"] / jobs["alone_s"])


def ids(browser: Browser) -> list[str]:
    return [cells[0] for cells in browser.run(CELLS)]


def choose(browser: Browser, control: str, value: str) -> None:
    browser.run(
        f"const c = document.getElementById('jobs-{control}'); c.value = '{value}';"
        "c.dispatchEvent(new Event('change')); c.dispatchEvent(new Event('input'))"
    )


def offered(browser: Browser, control: str, what: str = "value") -> list[str]:
    """The choices of a control."""
    script = f"return [...document.getElementById('jobs-{control}').options].map(o => o.{what})"
    return list(browser.run(script))


def test_the_ten_worst_come_first(table: Browser, rows: pd.DataFrame) -> None:
    worst = rows.sort_values("slowdown", ascending=False, kind="stable")
    assert ids(table) == list(worst["job_id"][:10])
    assert table.run("return document.getElementById('jobs-count').textContent") == (
        f"1 to 10 of {len(rows)} jobs"
    )


@pytest.mark.parametrize(
    ("key", "column"),
    [
        ("gpus", "gpus"), ("arrival", "arrival_s"), ("wait", "queue_delay_s"), ("run", "run_s"),
        ("jct", "jct_s"), ("slowdown", "slowdown"), ("restarts", "restarts"),
    ],
)  # fmt: skip
def test_keys_sort_by_every_column_of_numbers(
    table: Browser, rows: pd.DataFrame, key: str, column: str
) -> None:
    rows = rows.assign(restarts=rows["preemptions"] + rows["migrations"])
    head = f"document.querySelector('[data-sort={key}]')"
    orders = []
    for _ in range(2):
        table.run(f"{head}.focus()")
        table.press("Enter")
        order = table.run(f"return {head}.closest('th').getAttribute('aria-sort')")
        orders.append(order)
        expected = rows.sort_values(column, ascending=order == "ascending", kind="stable")
        assert ids(table) == list(expected["job_id"][:10])
        assert table.run(f"return document.activeElement === {head}")
        sorted_by = table.run(
            "return [...document.querySelectorAll('#jobs-table [aria-sort]')]"
            ".filter(h => h.getAttribute('aria-sort') !== 'none').length"
        )
        assert sorted_by == 1
    assert set(orders) == {"ascending", "descending"}


@pytest.mark.parametrize("key", ["id", "model", "cause", "placements"])
def test_keys_sort_by_every_column_of_words(table: Browser, key: str) -> None:
    table.run(FOCUS.format(f"[data-sort={key}]"))
    table.press(" ")
    heads = table.run(
        "return [...document.querySelectorAll('#jobs-table [data-sort]')].map(b => b.dataset.sort)"
    )
    shown = [cells[heads.index(key)] for cells in table.run(CELLS)]
    assert shown == sorted(shown, key=natural)
    assert len(shown) == 10


def natural(text: str) -> list[tuple[str, int]]:
    """Digits sort as numbers."""
    return [(word, int(part or 0)) for word, part in re.findall(r"(\D*)(\d*)", text.lower())]


def test_search_and_filters_narrow_the_jobs(table: Browser, rows: pd.DataFrame) -> None:
    choose(table, "rows", "100")
    table.run(FOCUS.format("#jobs-search"))
    table.press("1")
    assert set(ids(table)) == {name for name in rows["job_id"] if "1" in name}
    choose(table, "search", "")
    model = rows["model"].mode()[0]
    choose(table, "model", model)
    assert set(ids(table)) == set(rows["job_id"][rows["model"] == model])
    again = rows["preemptions"] + rows["migrations"] > 0
    choose(table, "restarts", "yes")
    assert set(ids(table)) == set(rows["job_id"][(rows["model"] == model) & again])
    choose(table, "search", "no such job")
    assert ids(table) == []
    assert "No job fits" in table.run("return document.getElementById('jobs-count').textContent")


def test_tiers_and_causes_are_filters(table: Browser, busy: Path) -> None:
    choose(table, "rows", "100")
    stays = pd.read_parquet(busy / "placements.parquet")
    for tier in sorted(set(stays["level"])):
        choose(table, "tier", tier)
        assert set(ids(table)) == set(stays["job_id"][stays["level"] == tier])
    choose(table, "tier", "")
    causes = table.run(
        "return [...document.getElementById('jobs-cause').options].map(o => o.value)"
    )
    counts = []
    for cause in causes[1:]:
        choose(table, "cause", cause)
        counts.append(len(ids(table)))
    waits = pd.read_parquet(busy / "waits.parquet")
    assert sum(counts) == waits["job_id"].nunique() > 0


def test_keys_open_a_job_to_its_stays_and_waits(
    table: Browser, rows: pd.DataFrame, busy: Path
) -> None:
    worst = rows.sort_values("slowdown", ascending=False, kind="stable")["job_id"].iloc[0]
    table.run(FOCUS.format(".opener"))
    table.press("Enter")
    time.sleep(0.4)
    assert table.run("return document.activeElement.getAttribute('aria-expanded')") == "true"
    told = table.run("return [...document.querySelectorAll('.inside h4')].map(h => h.textContent)")
    stays = pd.read_parquet(busy / "placements.parquet").query(f"job_id == '{worst}'")
    waits = pd.read_parquet(busy / "waits.parquet").query(f"job_id == '{worst}'")
    assert told == [f"Stays ({len(stays)})", f"Waits ({len(waits)})"]
    text = table.run("return document.querySelector('.inside').textContent")
    for reason in waits["reason"]:
        assert reason in text
    for shape in stays["signature"]:
        assert shape in text
    target = table.run("return document.activeElement.getAttribute('aria-controls')")
    assert table.run(f"return Boolean(document.getElementById('{target}'))")
    table.press("Enter")
    assert table.run("return document.querySelectorAll('.inside').length") == 0
    assert table.errors() == []


def test_tab_reaches_every_control_and_the_focus_is_seen(table: Browser) -> None:
    table.run(FOCUS.format("#jobs-search"))
    seen = []
    for _ in range(36):
        name, width = table.run(
            "const e = document.activeElement; const s = getComputedStyle(e);"
            "return [e.id || e.dataset.sort || e.className, s.outlineStyle === 'none' ? 0"
            " : parseFloat(s.outlineWidth)]"
        )
        seen.append(name)
        assert width >= 2, name
        table.press("Tab")
    assert {"jobs-search", "jobs-model", "jobs-rows", "jobs-on", "slowdown", "opener"} <= {*seen}


def test_pages_of_jobs(table: Browser, rows: pd.DataFrame) -> None:
    worst = list(rows.sort_values("slowdown", ascending=False, kind="stable")["job_id"])
    table.run(FOCUS.format("#jobs-on"))
    table.press("Enter")
    assert ids(table) == worst[10:20]
    table.press("Enter")
    assert ids(table) == worst[20:]
    assert table.run("return document.getElementById('jobs-on').disabled")
    table.run("document.getElementById('jobs-back').click()")
    assert ids(table) == worst[10:20]


def test_all_runs_of_a_setting_stand_in_one_table(
    browser: Browser, runs: Path, tmp_path: Path
) -> None:
    target = tmp_path / "runs.html"
    target.write_bytes(page(group(read_runs([runs]))))
    browser.open(target, *DESKTOP, dark=False)
    options = browser.run(
        "return [...document.getElementById('jobs-run').options].map(o => o.text)"
    )
    assert options[0] == "all of this setting"
    assert options[1:] == [
        f"{policy}, seed {seed}, permutation 0"
        for policy in ("dally", "gandiva")
        for seed in (0, 1)
    ]
    jobs = len(read_run(runs / "dally-1-0").jobs.text["job_id"])
    browser.run("document.getElementById('jobs-run').value = 'all'")
    browser.run("document.getElementById('jobs-run').dispatchEvent(new Event('change'))")
    time.sleep(0.4)
    count = browser.run("return document.getElementById('jobs-count').textContent")
    assert count == f"1 to 10 of {4 * jobs} jobs"
    assert "stays of 4" in browser.run(
        "return document.getElementById('jobs-left-out').textContent"
    )


def tiled(run: RecordedRun, times: int) -> RecordedRun:
    """A run with the same jobs under many names."""
    jobs = run.jobs
    names = [f"{name}-{copy}" for copy in range(times) for name in jobs.text["job_id"]]
    columns: dict[str, Any] = {key: list(values) * times for key, values in jobs.text.items()}
    numbers = {key: pd.Series(list(v) * times).to_numpy() for key, v in jobs.numbers.items()}
    many = FileColumns({**columns, "job_id": names}, numbers, jobs.count * times)
    return replace(run, jobs=many)


def test_5000_jobs_stay_quick(browser: Browser, busy: Path, tmp_path: Path) -> None:
    run = tiled(read_run(busy), 210)
    target = tmp_path / "many.html"
    target.write_bytes(page(group([run])))
    assert len(target.read_bytes()) < 3_000_000
    browser.open(target, *DESKTOP, dark=False)
    assert browser.run("return jobs = document.getElementById('jobs-count').textContent") == (
        "1 to 10 of 5,040 jobs"
    )
    milliseconds = browser.run(
        "const from = performance.now();"
        "for (const key of ['jct', 'model', 'id', 'placements'])"
        "  document.querySelector(`[data-sort=${key}]`).click();"
        "const search = document.getElementById('jobs-search');"
        "search.value = '-17'; search.dispatchEvent(new Event('input'));"
        "document.body.getBoundingClientRect(); return performance.now() - from"
    )
    assert milliseconds < 2000  # five actions; 0.2 s each on an idle machine is a lot
    assert browser.run("return document.querySelectorAll('#jobs-table tr').length") <= 11


def test_the_table_fits_a_phone(browser: Browser, busy: Path, tmp_path: Path) -> None:
    target = tmp_path / "one.html"
    target.write_bytes(page(group(read_runs([busy]))))
    browser.open(target, *PHONE, dark=False, phone=True)
    browser.run("document.querySelector('.opener').click()")
    time.sleep(0.4)
    assert browser.run("return document.documentElement.scrollWidth") == PHONE[0]
    outside = browser.run(
        "const box = document.querySelector('#jobs-table').getBoundingClientRect();"
        "return [...document.querySelectorAll('.inside tbody td, .inside tbody th')].filter(c => {"
        "const r = c.getBoundingClientRect(); return r.left < box.left || r.right > box.right + 1;"
        "}).length"
    )
    assert outside == 0
