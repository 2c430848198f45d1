"""Does a policy in a file of the user run, and does each of its mistakes get one sentence?"""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from artist.config import Scenario
from artist.errors import ArtistError, ConfigError, PolicyError
from artist.policies.own_file import entry_in_file
from artist.policies.table import POLICIES
from artist.registry import Entry
from artist.results.result import Result
from artist.run import open_policy, simulate
from artist.testing import check_policy

HEAD = "from artist.contract import BasePolicy, Options, Start, WrapperPolicy\n"
STARTS_ALL = '''
class Mine(BasePolicy):
    """Whatever fits."""

    def decide(self, view):
        free, decisions = view.free.copy(), []
        for job in view.waiting.values():
            placement = PLACER.place(free, job.job.gpus)
            if placement is not None:
                free.claim(placement)
                decisions.append(Start(job.handle, placement))
        return decisions
'''
PLACER = "from artist.policies.shared.placers import placer\nPLACER = placer('pack')\n"
GOOD = HEAD + PLACER + STARTS_ALL


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def scenario(policy: str, **options: object) -> Scenario:
    return Scenario(
        policy=policy, trace="tiny-batch", racks=1, backend="none", policy_options=options
    )


def finishes(result: Result) -> list[float]:
    return list(result.tables["jobs"]["finish_s"])


def test_a_file_gives_the_rows_of_the_same_rule_in_the_table() -> None:
    Path("mine.py").write_text(GOOD)
    mine, shipped = simulate(scenario("mine.py:Mine")), simulate(scenario("fifo-backfill"))
    assert mine.summary["policy"] == "mine.py:Mine"
    assert finishes(mine) == finishes(shipped)


def test_the_digest_of_the_file_is_among_the_inputs() -> None:
    Path("mine.py").write_text(GOOD)
    first = simulate(scenario("mine.py:Mine")).inputs["policy"]
    Path("mine.py").write_text(GOOD + "\n# another remark\n")
    assert first.startswith("sha256:")
    assert simulate(scenario("mine.py:Mine")).inputs["policy"] != first


def test_a_file_that_has_changed_is_loaded_anew() -> None:
    Path("mine.py").write_text(GOOD + "    mark = 1\n")
    first = open_policy("mine.py:Mine", {})
    again = open_policy("mine.py:Mine", {})
    Path("mine.py").write_text(GOOD + "    mark = 2\n")
    other = open_policy("mine.py:Mine", {})
    assert type(first) is type(again)
    assert [one.mark for one in (first, other)] == [1, 2]  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(first)).mark == 1  # noqa: S301


def test_files_of_one_name_in_two_folders_are_two_policies() -> None:
    for number in (1, 2):
        Path(f"v{number}").mkdir()
        Path(f"v{number}/mine.py").write_text(GOOD + f"    mark = {number}\n")
    marks = [open_policy(f"v{number}/mine.py:Mine", {}).mark for number in (1, 2)]  # type: ignore[attr-defined]
    assert marks == [1, 2]


OPTIONS = (
    GOOD
    + """
class MineOptions(Options):
    share: float = 0.5

class Tuned(Mine):
    Options = MineOptions

    def __init__(self, options, draws):
        self.options, self.draws = options, draws
"""
)


def test_a_class_takes_options_and_draws() -> None:
    Path("mine.py").write_text(OPTIONS)
    policy = open_policy("mine.py:Tuned", {"share": 0.25})
    assert policy.options.share == 0.25  # type: ignore[attr-defined]
    assert policy.draws.seed == 0  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match=r"mine\.py:Tuned: unknown setting 'shar': did you mean"):
        open_policy("mine.py:Tuned", {"shar": 0.25})
    with pytest.raises(ConfigError, match=r"mine\.py:Mine: unknown setting 'share'"):
        open_policy("mine.py:Mine", {"share": 0.25})


def test_a_wrapper_in_a_file_takes_a_policy_of_the_table_or_of_a_file() -> None:
    Path("mine.py").write_text(GOOD)
    Path("wrap.py").write_text(HEAD + "class Around(WrapperPolicy):\n    pass\n")
    plain = simulate(scenario("las"))
    wrapped = simulate(scenario("wrap.py:Around(las)"))
    assert finishes(wrapped) == finishes(plain)
    both = simulate(scenario("wrap.py:Around(mine.py:Mine)"))
    assert both.inputs.keys() >= {"policy", "policy.1"}
    with pytest.raises(ConfigError, match=r"write wrap\.py:Around\(POLICY\)"):
        simulate(scenario("wrap.py:Around"))


MISTAKES = {
    "no file": (None, r"'mine\.py:Mine': there is no file mine\.py"),
    "no class": (HEAD + "class Mien(BasePolicy):\n    def decide(self, view): return []\n",
                 r"mine\.py has no class 'Mine' \(did you mean 'Mien'\?\)"),
    "no class at all": ("x = 1\n", r"mine\.py has no class 'Mine' \(it has none\)"),
    "no class but a function": ("def Mine(): pass\n", r"mine\.py has no class 'Mine'"),
    "not Python": ("x = 1\ndef f(:\n", r"^mine\.py:2: not Python"),
    "raises": ("x = 1\n\ny = x / 0\n", r"^mine\.py:3: the file raised ZeroDivisionError"),
    "raises in a function": ("def f():\n    raise KeyError('a')\n\nf()\n",
                             r"^mine\.py:2: the file raised KeyError: 'a'"),
    "exits": ("import sys\nsys.exit(0)\n", r"^mine\.py:2: the file raised SystemExit: 0"),
    "imports what is not there": ("import not_there\n", r"^mine\.py:1: .*ModuleNotFoundError"),
    "no decide": (HEAD + "class Mine(BasePolicy): pass\n", r"has no method 'decide'"),
    "no contests": ("class Mine:\n    def decide(self, view): return []\n",
                    r"has no method 'contests'"),
    "no lease": ("class Mine:\n    decide = contests = tables = lambda *a: {}\n",
                 r"mine\.py:Mine has no lease"),
    "odd options": (HEAD + "class Mine(BasePolicy):\n    Options = 3\n    def decide(s, v): ...\n",
                    r"Options is 3"),
    "other arguments": (GOOD + "    def __init__(self, a, b): pass\n",
                        r"mine\.py:Mine cannot be made from its options \(TypeError"),
    "raises when made": (GOOD + "    def __init__(self):\n        raise KeyError('b')\n",
                         r"^mine\.py:17: policy mine\.py:Mine cannot be made .*KeyError: 'b'"),
    "zero bytes": ("x = '\0'\n", r"mine\.py:1: "),
    "too deep": ("(" * 5000 + ")" * 5000, r"mine\.py:1: "),
    "empty": ("", r"mine\.py"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_the_file_gets_a_sentence(name: str) -> None:
    text, words = MISTAKES[name]
    if text is not None:
        Path("mine.py").write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        open_policy("mine.py:Mine", {})
    assert str(caught.value).isprintable()


def test_the_error_for_a_file_without_a_class_lists_its_classes() -> None:
    Path("mine.py").write_text(OPTIONS)
    with pytest.raises(ConfigError, match=r"name the class too.* has Mine, Tuned$"):
        open_policy("mine.py", {})


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for() -> None:
    os.mkfifo("mine.py")
    with pytest.raises(ConfigError, match="there is no file"):
        open_policy("mine.py:Mine", {})


def test_an_error_while_deciding_names_the_line_of_the_file() -> None:
    Path("mine.py").write_text(HEAD + "class Mine(BasePolicy):\n    def decide(self, v): 1 / 0\n")
    with pytest.raises(PolicyError, match=r"^mine\.py:3: policy mine\.py:Mine raised ZeroDivision"):
        simulate(scenario("mine.py:Mine"))


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        ("SystemExit(3)", "SystemExit: 3"), ("BaseException('x')", "BaseException: x"),
        ("Mad('y')", "Mad: y"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["__init__", "decide", "tables"])
def test_whatever_a_policy_raises_ends_in_a_sentence(method: str, raised: str, words: str) -> None:
    Path("mine.py").write_text(
        f"class Mad(BaseException): pass\n{GOOD}\n    def {method}(self, *_): raise {raised}\n"
    )
    with pytest.raises(ArtistError, match=rf"^mine\.py:\d+: .*{words}"):
        simulate(scenario("mine.py:Mine"))


def test_an_answer_that_artist_refuses_names_the_line() -> None:
    Path("mine.py").write_text(GOOD.replace("job.job.gpus", "job.gpus"))
    claims = GOOD.splitlines().index("                free.claim(placement)") + 1
    with pytest.raises(PolicyError, match=rf"^mine.py:{claims}: a placement with 0 GPUs of"):
        simulate(scenario("mine.py:Mine"))
    Path("mine.py").write_text(GOOD.replace("free, job.job.gpus", "free, 1"))
    decides = GOOD.splitlines().index("    def decide(self, view):") + 1
    with pytest.raises(PolicyError, match=rf"^mine.py:{decides}: invalid decision of Mine: job"):
        simulate(scenario("mine.py:Mine"))


def test_a_signal_in_a_policy_is_not_its_error() -> None:
    Path("mine.py").write_text(
        f"{HEAD}class Mine(BasePolicy):\n    def decide(self, v): raise KeyboardInterrupt\n"
    )
    with pytest.raises(KeyboardInterrupt):
        simulate(scenario("mine.py:Mine"))


TABLES = {
    "a table of the run": ("{'jobs': [{'a': 1}]}", r"replace the run's own table 'jobs'"),
    "one that comes later": ("{'waits': []}", r"replace the run's own table 'waits'"),
    "one name in two spellings": ("{'mine': [], 'Mine': []}", r"replace its table 'mine'"),
    "no name of a file": ("{'../mine': []}", r"names a table '\.\./mine', expected up to 64"),
    "no text": ("{3: []}", r"names a table 3, expected"),
    "nothing": ("None", r"gave None, expected rows by the table's name"),
    "a list": ("[{'a': 1}]", r"expected rows by the table's name"),
    "no rows": ("{'mine': 3}", r"table 'mine' is 3, expected a list of rows"),
    "rows that are no dicts": ("{'mine': [(1, 2)]}", r"table 'mine' is \[\(1, 2\)\], expected"),
    "ragged rows": (
        "{'mine': [{'a': 1}, {'b': 1}]}",
        r"table 'mine': row 1 has the columns \['b'\]",
    ),
    "a row with more": ("{'mine': [{'a': 1}, {'a': 1, 'b': 1}]}", r"row 1 has the columns"),
    "columns without names": ("{'mine': [{1: 1}]}", r"has a column 1, expected text"),
    "an exception": ("1 / 0", r"mine\.py:18: policy \S+ raised ZeroDivisionError"),
}


@pytest.mark.parametrize("name", TABLES)
def test_bad_tables_get_a_sentence_from_a_run_and_from_the_check(name: str) -> None:
    given, words = TABLES[name]
    Path("mine.py").write_text(f"{GOOD}\n    def tables(self):\n        return {given}\n")
    with pytest.raises(PolicyError, match=words) as caught:
        simulate(scenario("mine.py:Mine"))
    assert str(caught.value).isprintable()
    with pytest.raises(PolicyError, match=words):
        check_policy(lambda: open_policy("mine.py:Mine", {}))


def test_tables_with_other_names_stand_beside_those_of_the_run() -> None:
    rows = "[{'a': 1, 'b': None}, {'b': 'x', 'a': 2}]"
    Path("mine.py").write_text(
        f"{GOOD}\n    def tables(self):\n        return {{'mine': {rows}, 'empty': []}}\n"
    )
    tables = simulate(scenario("mine.py:Mine")).tables
    assert set(tables) == {
        "jobs",
        "placements",
        "timeline",
        "waits",
        "wait_causes",
        "mine",
        "empty",
    }
    assert tables["mine"] == {"a": [1, 2], "b": [None, "x"]}


@pytest.mark.parametrize("lease", ["1h", 3.6e12, True, []])
def test_a_lease_that_is_not_a_whole_number_of_ticks_gets_a_sentence(lease: object) -> None:
    Path("mine.py").write_text(f"{GOOD}\n    lease = {lease!r}\n")
    with pytest.raises(PolicyError, match=r"^policy mine\.py:Mine: its lease is .*, expected None"):
        open_policy("mine.py:Mine", {})
    with pytest.raises(PolicyError, match=r"not valid .*policy Mine: its lease is"):
        check_policy(entry_in_file("mine.py:Mine").load())


@pytest.mark.parametrize("jobs", ["2", None, 2.5, True, 0, 5])
def test_jobs_per_gpu_that_is_not_a_whole_number_in_range_gets_a_sentence(jobs: object) -> None:
    Path("mine.py").write_text(f"{GOOD}\n    jobs_per_gpu = {jobs!r}\n")
    for name in ("mine.py:Mine", "quota(mine.py:Mine)"):
        with pytest.raises(
            PolicyError, match=r"^policy mine\.py:Mine: its jobs_per_gpu is .* 1 to"
        ):
            open_policy(name, {})
    with pytest.raises(PolicyError, match=r"not valid .*policy Mine: its jobs_per_gpu is"):
        check_policy(entry_in_file("mine.py:Mine").load())


def test_an_entry_that_is_added_again_is_replaced_with_a_warning() -> None:
    try:
        POLICIES.add(Entry("twice", "nowhere:One", "first"))
        with pytest.warns(UserWarning, match="policy 'twice' was added before: replaced"):
            POLICIES.add(Entry("twice", "nowhere:Two", "second"))
        assert POLICIES["twice"].summary == "second"
    finally:
        del POLICIES._entries["twice"]


def test_a_policy_that_artist_ships_is_not_replaced() -> None:
    with pytest.raises(ConfigError, match="policy 'las' is one of artist's own"):
        POLICIES.add(Entry("las", "nowhere:Las", "another"))
    assert POLICIES["las"].target.startswith("artist.")
