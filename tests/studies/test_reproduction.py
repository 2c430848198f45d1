"""Do the pages about the Dally paper say what its runs say, and do the runs still say it?"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "studies" / "dally-paper"
SCRIPT = STUDY / "reproduction"
FINDINGS = ROOT / "docs" / "reproduction.md"
TABLES = STUDY / "tables.md"


def reproduction(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], cwd=ROOT, capture_output=True, text=True
    )


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The scripts by name; they are no package, and leave no trace behind."""
    import importlib

    monkeypatch.syspath_prepend(str(SCRIPT))
    names = ("records", "evidence", "formatting", "claims", "sources", "verdicts")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    imported = {name: importlib.import_module(name) for name in names}
    for name in names:
        monkeypatch.setitem(sys.modules, name, imported[name])
        monkeypatch.delitem(sys.modules, name)
    return imported


def test_the_pages_say_what_the_runs_say() -> None:
    ran = reproduction("page", "--check")
    assert ran.returncode == 0, ran.stderr


@pytest.mark.slow
def test_the_runs_still_say_it() -> None:
    ran = reproduction("run", "--check", "--every", "60", "--workers", "2")
    assert ran.returncode == 0, ran.stderr


def test_the_findings_are_short_enough_to_be_read() -> None:
    assert len(FINDINGS.read_text(encoding="utf-8").split()) <= 2500


def test_no_number_of_a_run_is_written_by_hand() -> None:
    for template in sorted((STUDY / "templates").iterdir()):
        words = re.sub(r"\{\{.*?\}\}", "", template.read_text(encoding="utf-8"))
        numbers = re.findall(r"[\d.,]*\d(?: %| k\b| times| \[)", words)
        # The level of all intervals, and the original program's caps: 0.8 and 1 times the history.
        assert set(numbers) <= {"95 %", "1 times"}, template.name


def test_the_findings_link_to_tables_that_exist() -> None:
    headings = re.findall(r"^#+ (.*)$", TABLES.read_text(encoding="utf-8"), re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in headings}
    links = re.findall(r"tables\.md#([\w-]+)", FINDINGS.read_text(encoding="utf-8"))
    assert links
    assert set(links) <= anchors


def test_differences_are_paired_by_replicate(modules: dict[str, ModuleType]) -> None:
    evidence = evidence_of(modules, {"dally": (50.0, 300.0), "tiresias": (100.0, 200.0)})
    cell = modules["evidence"].Cell("recorded", "sensetime-batch-500", 8, "dally")
    difference = evidence.difference(cell, cell.of(policy="tiresias"), "makespan_s")
    assert difference.mean == pytest.approx(0.0)
    assert (difference.low, difference.high) == (-0.5, 0.5)
    assert difference.verdict == "within noise"


@pytest.mark.parametrize(
    ("dally", "expected"),
    [((50.0, 100.0), "holds 8"), ((300.0, 600.0), "**opposite** 8"), ((50.0, 600.0), "noise 8")],
)
def test_a_claim_holds_only_outside_noise(
    modules: dict[str, ModuleType], dally: tuple[float, float], expected: str
) -> None:
    evidence = evidence_of(modules, {"dally": dally, "tiresias": (100.0, 200.0)})
    claim = next(claim for claim in modules["claims"].CLAIMS if claim.id == "M1")
    assert modules["verdicts"].verdict(evidence, claim, "recorded") == expected


def evidence_of(modules: dict[str, ModuleType], makespans: dict[str, tuple[float, ...]]) -> object:
    """Runs on 8 racks, one per seed."""
    record = modules["records"].Record
    return modules["evidence"].Evidence(
        record(
            "recorded", "sensetime-batch-500", 8, policy, "", seed, 0, {"makespan_s": str(value)}
        )
        for policy, values in makespans.items()
        for seed, value in enumerate(values)
    )
