"""Does the check of the tests notice a mutation that survives, or that no longer applies?"""

from __future__ import annotations

from pathlib import Path

import pytest
from mutate import Mutation, check
from rules import RULES, mutants

TESTED = "from artist.rule import first\n\n\ndef test_tie():\n    assert first(1, 1)\n"
SOURCE = "def first(a, b):\n    return a <= b\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "artist").mkdir()
    (tmp_path / "artist" / "__init__.py").write_text("")
    (tmp_path / "artist" / "rule.py").write_text(SOURCE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_rule.py").write_text(TESTED)
    return tmp_path


def mutation(rule: str, name: str = "first", site: int = 0) -> Mutation:
    return Mutation(
        mistake="ties",
        place=f"artist/rule.py:{name}",
        rule=rule,
        site=site,
        test="tests/test_rule.py::test_tie",
    )


@pytest.mark.slow  # each mutation starts a pytest of its own
def test_each_kind_of_failure_is_distinguished_from_a_noticed_mutation(root: Path) -> None:
    mutations = [
        mutation("bound"),
        mutation("direction"),
        mutation("bound", name="second"),
        mutation("bound", site=1),
    ]
    survived, missing, few = check(root, mutations)
    assert "survived tests/test_rule.py::test_tie" in survived
    assert "nothing is called second" in missing
    assert "bound has no site 1" in few
    assert (root / "artist" / "rule.py").read_text() == SOURCE


@pytest.mark.slow
def test_tests_that_fail_anyway_show_nothing(root: Path) -> None:
    (root / "artist" / "rule.py").write_text("def first(a, b):\n    return a < b\n")
    (complaint,) = check(root, [mutation("bound")])
    assert complaint.startswith("the tests fail without any mutation")


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        ("bound", "a < b <= c", ["a <= b <= c", "a < b < c"]),
        ("equality", "a == b", ["a != b"]),
        ("direction", "a < b", ["a > b"]),
        ("arithmetic", "a + b", ["a - b"]),
        ("sign", "-a", ["a"]),
        ("minus", "(a, b)", ["(-a, b)", "(a, -b)"]),
        ("side", "a and b", ["a", "b"]),
        ("condition", "a if b else c", ["a if True else c", "a if False else c"]),
        ("chosen", "[x for x in a if x]", ["[x for x in a]"]),
        ("opposite", "min(a)", ["max(a)"]),
        ("empty", "f(a, b)", ["f((), b)", "f(a, ())"]),
        ("argument", "f(a, b)", ["a", "b"]),
        ("forgotten", "f(a, b=c)", ["f(a)"]),
        ("element", "[a, b]", ["[b]", "[a]"]),
        ("number", "a[2]", ["a[3]", "a[4]"]),
        ("statement", "a", ["pass"]),
    ],
)
def test_what_each_rule_does(rule: str, before: str, after: list[str]) -> None:
    text = "def first(a, b, c):\n    {}"
    statement = "{}" if rule == "statement" else "return {}"
    made = list(mutants(text.format(statement.format(before)), "first", rule))
    expected = [change if change == "pass" else statement.format(change) for change in after]
    assert made == [text.format(line) for line in expected]


def test_every_rule_has_a_case() -> None:
    marks = test_what_each_rule_does.pytestmark
    assert {case[0] for case in marks[0].args[1]} == set(RULES)
