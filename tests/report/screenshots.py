"""Takes the pictures of docs/report.md from a page of the Dally paper's sweep.

artist sweep studies/dally-paper/experiment.yaml --out runs/paper
artist report runs/paper --out paper.html --title "The Dally paper's experiments"
python tests/report/screenshots.py paper.html
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from browser import Browser

DOCS = Path(__file__).parents[2] / "docs"
DESKTOP = (1280, 1380)
# 256 GPUs, where all levels are used, coloured by level.
FOUR_RACKS = """
const s = document.getElementById("setting");
s.value = [...s.options].find((o) => o.text.startsWith("4 racks")).value;
s.dispatchEvent(new Event("change"));
document.querySelector("[value=level]").click();
"""
WORST_JOB = "document.querySelector('.opener').click()"
HEADING_ABOVE = """
const top = (element) => element.getBoundingClientRect().top + scrollY;
const below = top(document.querySelector("PART"));
return Math.max(...[...document.querySelectorAll("h2")].map(top).filter((y) => y < below)) - 24;
"""


def take(browser: Browser, page: Path) -> None:
    """The overview, the cluster timeline and the job table, light and dark."""
    for name, dark, part in (
        ("report-desktop-light", False, ""),
        ("report-desktop-dark", True, "#timeline"),
        ("report-jobs-light", False, "#jobs-table"),
    ):
        browser.open(page, *DESKTOP, dark=dark)
        browser.run(FOUR_RACKS)
        time.sleep(1)  # the page inflates its data
        browser.run(WORST_JOB)
        time.sleep(1)
        top = browser.run(HEADING_ABOVE.replace("PART", part)) if part else 0
        browser.screenshot(DOCS / f"{name}.png", int(top), *DESKTOP)
        assert browser.errors() == []


if __name__ == "__main__":
    with TemporaryDirectory() as profile:
        browser = Browser(str(shutil.which("chromedriver")), Path(profile))
        try:
            take(browser, Path(sys.argv[1]).resolve())
        finally:
            browser.close()
