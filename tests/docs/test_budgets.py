"""Are the pages short? A fact has one home, and a first day's reading is short."""

from __future__ import annotations

import pytest
from pages import ROOT, pages

# What a new user reads on the first day.
FIRST_DAY = (
    "README.md",
    "docs/clusters.md",
    "docs/how-to/experiments.md",
    "docs/how-to/library.md",
    "docs/how-to/own-trace.md",
    "docs/index.md",
    "docs/limits.md",
    "docs/policy-reference.md",
    "docs/report.md",
    "docs/tour.md",
    "docs/traces.md",
    "docs/trust.md",
)


def words(page: str) -> int:
    """As `wc -w` counts them."""
    return len((ROOT / page).read_text(encoding="utf-8").split())


def test_the_documents_stay_within_their_budget() -> None:
    assert sum(words(page) for page in pages() if page.startswith("docs/")) <= 45_000


def test_the_changelog_stays_within_its_budget() -> None:
    assert words("CHANGELOG.md") <= 1_000


@pytest.mark.parametrize("page", FIRST_DAY)
def test_a_page_of_the_first_day_stays_within_its_budget(page: str) -> None:
    assert words(page) <= 1_200
