"""Would the check of the tests notice a mutation that survives, or that no longer applies?"""

from __future__ import annotations

from pathlib import Path

import pytest
from mutate import Mutation, check

pytestmark = pytest.mark.slow  # each case starts a pytest of its own

TESTED = "from artist.rule import first\n\n\ndef test_tie():\n    assert first(1, 1)\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "artist").mkdir()
    (tmp_path / "artist" / "__init__.py").write_text("")
    (tmp_path / "artist" / "rule.py").write_text("def first(a, b):\n    return a <= b\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_rule.py").write_text(TESTED)
    return tmp_path


def mutation(old: str, new: str) -> Mutation:
    return Mutation(
        rule="ties",
        file="artist/rule.py",
        edits=((old, new),),
        test="tests/test_rule.py::test_tie",
    )


def test_each_kind_of_failure_is_told_from_a_mutation_that_is_noticed(root: Path) -> None:
    mutations = [
        mutation("a <= b", "a < b"),
        mutation("a <= b", "b >= a"),
        mutation("a >= b", "a < b"),
        mutation("a", "b"),
        mutation("return", "retrun"),
    ]
    survived, moved, twice, broken = check(root, mutations)
    assert "survived tests/test_rule.py::test_tie" in survived
    assert "'a >= b' stands there 0 times" in moved
    assert "'a' stands there 2 times" in twice
    assert "broke the run" in broken
    assert (root / "artist" / "rule.py").read_text() == "def first(a, b):\n    return a <= b\n"


def test_tests_that_fail_anyway_show_nothing(root: Path) -> None:
    (root / "artist" / "rule.py").write_text("def first(a, b):\n    return a < b\n")
    (complaint,) = check(root, [mutation("a < b", "a > b")])
    assert complaint.startswith("the tests fail without any mutation")
