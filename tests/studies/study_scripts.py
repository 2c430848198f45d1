"""Runs and imports the scripts of a study, which are no package."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def run_study(scripts: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What `python SCRIPTS ARGUMENTS...` prints, from the root of the repository."""
    return subprocess.run(
        [sys.executable, str(scripts), *arguments], cwd=ROOT, capture_output=True, text=True
    )


def import_study(
    scripts: Path, names: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> dict[str, ModuleType]:
    """The modules by name. They leave no trace behind: two studies have modules of one name."""
    monkeypatch.syspath_prepend(str(scripts))
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    imported = {name: importlib.import_module(name) for name in names}
    for name in names:
        monkeypatch.setitem(sys.modules, name, imported[name])
        monkeypatch.delitem(sys.modules, name)
    return imported
