"""Do the pages about the Dally paper say what its runs say, and do the runs still say it?"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from artist.results.statistics.compare_values import compare_values

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "studies" / "dally-paper"
SCRIPT = STUDY / "reproduction"
FINDINGS = STUDY / "README.md"
TABLES = STUDY / "tables.md"


def reproduction(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What `python studies/dally-paper/reproduction ARGUMENTS...` prints."""
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], cwd=ROOT, capture_output=True, text=True
    )


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The scripts by name. They are no package, so they are forgotten after the test."""
    monkeypatch.syspath_prepend(str(SCRIPT))
    before = set(sys.modules)
    names = ("records", "evidence", "formatting", "claims", "sources", "verdicts")
    yield {name: importlib.import_module(name) for name in names}
    for path in SCRIPT.glob("*.py"):
        if path.stem not in before:
            sys.modules.pop(path.stem, None)


@pytest.mark.slow
def test_the_pages_say_what_the_runs_say() -> None:
    ran = reproduction("page", "--check")
    assert ran.returncode == 0, ran.stderr


@pytest.mark.slow
def test_the_runs_still_give_their_rows() -> None:
    ran = reproduction("run", "--check", "--every", "150", "--workers", "2")
    assert ran.returncode == 0, ran.stderr


def test_the_findings_are_short_enough_to_be_read() -> None:
    assert len(FINDINGS.read_text(encoding="utf-8").split()) <= 1200


def test_no_number_of_a_run_is_written_by_hand() -> None:
    for template in sorted((STUDY / "templates").iterdir()):
        words = re.sub(r"\{\{.*?\}\}", "", template.read_text(encoding="utf-8"))
        numbers = re.findall(r"[\d.,]*\d(?: %| k\b| times| \[)", words)
        # The level of all intervals, the margin of "no difference", and the original program's
        # caps: 0.8 and 1 times the history.
        assert set(numbers) <= {"95 %", "2 %", "1 times"}, template.name


def test_the_findings_link_to_tables_that_exist() -> None:
    headings = re.findall(r"^#+ (.*)$", TABLES.read_text(encoding="utf-8"), re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in headings}
    links = re.findall(r"tables\.md#([\w-]+)", FINDINGS.read_text(encoding="utf-8"))
    assert links
    assert set(links) <= anchors


BASE = (100.0, 110.0, 95.0, 103.0, 99.0)


def test_differences_are_those_of_compare_values(modules: dict[str, ModuleType]) -> None:
    mine = (50.0, 300.0, 95.0, 100.0, 90.0)
    evidence = evidence_of(modules, {"dally": mine, "tiresias": BASE})
    cell = modules["evidence"].Cell("recorded", "sensetime-batch-500", 8, "dally")
    difference = evidence.difference(cell, cell.of(policy="tiresias"), "makespan_s")
    assert difference == compare_values(BASE, mine)
    assert evidence.difference(cell, cell, "makespan_s").verdict == "identical"


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        ((0.3, 0.32, 0.28, 0.3, 0.31), "holds 8"),  # the paper has -68 %
        ((0.5, 0.52, 0.48, 0.5, 0.51), "holds, smaller 8"),
        ((0.99, 0.991, 0.99, 0.989, 0.99), "no difference 8"),
        ((2.0, 2.2, 1.9, 2.1, 2.0), "**opposite** 8"),
        ((1.3, 0.8, 1.1, 1.0, 1.2), "undecided 8"),
        ((1.001, 0.999, 1.0, 1.001, 0.999), "no difference 8"),
        ((1.0, 1.0, 1.0, 1.0, 1.0), "identical 8"),
        ((0.5, 0.52, 0.48, 0.5), "too few replicates 8"),
    ],
)
def test_a_claim_holds_only_where_the_difference_is_sure(
    modules: dict[str, ModuleType], factors: tuple[float, ...], expected: str
) -> None:
    dally = tuple(base * factor for base, factor in zip(BASE, factors, strict=False))
    evidence = evidence_of(modules, {"dally": dally, "tiresias": BASE})
    claim = next(claim for claim in modules["claims"].CLAIMS if claim.id == "M1")
    assert modules["verdicts"].verdict(evidence, claim, "recorded") == expected


def test_the_claims_about_a_cluster_are_judged_together(modules: dict[str, ModuleType]) -> None:
    # Alone 5 % more is `more` (p = 0.04). M1 is one of five claims about these makespans.
    slower = tuple(base * by for base, by in zip(BASE, (1.0, 1.04, 1.05, 1.08, 1.1), strict=True))
    policies = {"dally": slower, "tiresias": BASE, "gandiva": slower}
    alone = evidence_of(modules, dict(list(policies.items())[:2]))
    manual = {"dally-manual": BASE, "dally-no-wait": BASE[::-1]}
    all_ = evidence_of(modules, {**policies, **manual})
    elsewhere = evidence_of(modules, dict(list(policies.items())[:2]), policies, manual)
    claim = next(claim for claim in modules["claims"].CLAIMS if claim.id == "M1")
    verdict = modules["verdicts"].verdict
    assert verdict(alone, claim, "recorded") == "**opposite** 8"
    assert verdict(all_, claim, "recorded") == "undecided 8"
    # What happens on 16 racks is another family.
    assert verdict(elsewhere, claim, "recorded").startswith("**opposite** 8")


def test_cells_of_a_page(modules: dict[str, ModuleType]) -> None:
    interval = modules["formatting"].interval
    assert interval(compare_values(BASE, BASE)) == "identical"
    twice = [2 * base for base in BASE[:4]] + [2 * BASE[4] * 1.6487213]
    assert interval(compare_values(BASE, twice)) == "**+121 % [+67 .. +192]**"
    assert interval(compare_values([0.0] * 5, [3.0, 4.0, 5.0, 4.0, 4.0])) == "**+4 s [+3 .. +5]**"
    assert interval(compare_values(BASE[:1], [150.0])) == "+50 %"


@pytest.mark.parametrize(("values", "shown"), [((1.0, 4.0, 2.0, 3.0), 2.5), ((1.0, 5.0, 2.0), 2.0)])
def test_medians_of_even_and_odd_counts(
    modules: dict[str, ModuleType], values: tuple[float, ...], shown: float
) -> None:
    evidence = evidence_of(modules, {"dally": tuple(1000 * value for value in values)})
    cell = modules["evidence"].Cell("recorded", "sensetime-batch-500", 8, "dally")
    assert evidence.middle(cell, "makespan_s") == 1000 * shown
    low, high = min(values), max(values)
    expected = f"{1000 * shown:,.0f} [{1000 * low:,.0f} .. {1000 * high:,.0f}]"
    assert modules["formatting"].spread(evidence.values(cell, "makespan_s")) == expected


def test_rows_of_other_columns_are_made_anew(
    modules: dict[str, ModuleType], tmp_path: Path
) -> None:
    records, results = modules["records"], tmp_path / "results.csv"
    values = dict.fromkeys(records.COLUMNS[len(records.PLACE) :], "1")
    row = records.Record("recorded", "t", 8, "dally", "", 0, 0, values)
    records.write(results, [row])
    assert records.read(results) == [row]
    results.write_text(results.read_text().replace("gpu_computing_share", "gpu_utilization"))
    assert records.read(results) == []


def evidence_of(
    modules: dict[str, ModuleType],
    makespans: dict[str, tuple[float, ...]],
    *on_16_racks: dict[str, tuple[float, ...]],
) -> object:
    """Runs on 8 racks, one per seed. They are equal in all metrics but the makespan."""
    record = modules["records"].Record
    others = dict.fromkeys(modules["claims"].METRICS, "1.0")
    return modules["evidence"].Evidence(
        record(
            "recorded", "sensetime-batch-500", racks, policy, "", seed, 0,
            others | {"makespan_s": str(value)},
        )
        for racks, runs in [(8, makespans), *((16, more) for more in on_16_racks)]
        for policy, values in runs.items()
        for seed, value in enumerate(values)
    )  # fmt: skip
