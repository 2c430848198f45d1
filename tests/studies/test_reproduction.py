"""Is the page about the Dally paper what its runs say, and do the runs still say it?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "studies" / "dally-paper" / "reproduction"


def reproduction(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], cwd=ROOT, capture_output=True, text=True
    )


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The scripts by name; they are no package, and leave no trace behind."""
    import importlib

    monkeypatch.syspath_prepend(str(SCRIPT))
    names = ("records", "evidence", "tabular", "claims", "sources", "verdicts")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    found = {name: importlib.import_module(name) for name in names}
    for name in names:
        monkeypatch.setitem(sys.modules, name, found[name])
        monkeypatch.delitem(sys.modules, name)
    return found


def test_the_page_says_what_the_runs_say() -> None:
    found = reproduction("page", "--check")
    assert found.returncode == 0, found.stderr


@pytest.mark.slow
def test_the_runs_still_say_it() -> None:
    found = reproduction("run", "--check", "--every", "60", "--workers", "2")
    assert found.returncode == 0, found.stderr


def test_differences_are_paired_by_replicate(modules: dict[str, ModuleType]) -> None:
    evidence = evidence_of(modules, {"dally": (50.0, 300.0), "tiresias": (100.0, 200.0)})
    cell = modules["evidence"].Cell("recorded", "sensetime-batch-500", 8, "dally")
    found = evidence.difference(cell, cell.of(policy="tiresias"), "makespan_s")
    assert found.mean == pytest.approx(0.0)
    assert (found.low, found.high) == (-0.5, 0.5)
    assert found.verdict == "within noise"


@pytest.mark.parametrize(
    ("dally", "expected"),
    [((50.0, 100.0), "holds 8"), ((300.0, 600.0), "**opposite** 8"), ((50.0, 600.0), "noise 8")],
)
def test_a_claim_holds_only_outside_noise(
    modules: dict[str, ModuleType], dally: tuple[float, float], expected: str
) -> None:
    evidence = evidence_of(modules, {"dally": dally, "tiresias": (100.0, 200.0)})
    claim = next(found for found in modules["claims"].CLAIMS if found.id == "M1")
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
