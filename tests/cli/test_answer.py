"""Does `artist compare` answer first: what is best, by how much, how sure, in which world?"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from artist.cli import comparison_notes
from artist.cli.comparison_text import MOST_ROWS, print_comparison
from artist.cli.remarks import same_with_turns
from artist.config import Scenario
from artist.experiments.comparison.comparison_result import Comparison, Failed, compared
from artist.experiments.comparison.shown import shown_rows
from artist.policies.table import POLICIES
from artist.report.answer import answer
from artist.report.failure_costs import within_failures
from artist.report.metric_text import interval_text
from artist.report.verdict_sentences import best_sentence
from artist.results.statistics.holm import undecided_together
from artist.results.terms.number_text import level_text

NOISE = np.exp(np.random.default_rng(1).normal(0, 0.02, (20, 8)))
ORDERS = tuple((0, order) for order in range(8))


def made(setting: str = "policy", **means: float) -> Comparison:
    """Variants with these mean JCTs in hours, each with its own noise of 2 %."""
    values = {
        name.replace("_", "-"): {"jct_mean_s": tuple(3600 * hours * NOISE[place])}
        for place, (name, hours) in enumerate(means.items())
    }
    return compared(setting, values, ORDERS, 0.02, None)


def notes(comparison: Comparison, scenario: Scenario | None = None) -> list[str]:
    """The notes on variants of a scenario, else of the default one."""
    return [*comparison_notes.notes(comparison, scenario or Scenario())]


def table(shown: str) -> list[list[str]]:
    """The rows of the table, with its heading."""
    return [line.split("\t") for line in shown.splitlines() if "\t" in line]


# -- the sentences -------------------------------------------------------------------------


def test_the_best_is_named_with_how_far_it_is_below_the_next() -> None:
    best, sure = answer(made(fifo=20, las=10, srtf=12))
    assert best.startswith(
        "las has the lowest JCT mean, 10 h, 17 % below the next, srtf [15 .. 18 %]."
    )
    assert sure == "Surely lower than all others."


def test_an_undecided_answer_says_what_may_decide_it() -> None:
    _, sure = answer(made(fifo=20, las=10, srtf=10.1))
    assert sure.startswith("Surely lower than fifo; undecided against srtf (about ")
    assert sure.endswith(" more permutations would probably settle it).")


@pytest.mark.parametrize("baseline_is_best", [True, False])
def test_an_undecided_answer_beside_a_sure_table_says_why(baseline_is_best: bool) -> None:
    """The table judges each variant against the baseline alone; the answer judges all pairs."""
    given = made(best=10, near=10.3, **{f"p{i}": 20.0 for i in range(6)}).values
    first, second = ("best", "near") if baseline_is_best else ("near", "best")
    values = {first: given[first], second: given[second], **given}
    comparison = compared("policy", values, ORDERS, 0.02, None)
    verdict = comparison.differences[second]["jct_mean_s"].verdict
    assert verdict == ("more" if baseline_is_best else "less")
    _, sure = answer(comparison)
    assert "undecided against near (about " in sure
    assert sure.endswith(
        "the table, which judges 7 differences and not 28 pairs, is sure of near."
    ), sure
    assert "the table" not in answer(made(fifo=20, las=10, srtf=10.1))[1]


def test_many_names_are_counted() -> None:
    _, sure = answer(made(best=1, open=1.001, **{f"p{i}": 2.0 for i in range(9)}))
    assert sure.startswith("Surely lower than p0, p1, p2, p3 and 5 more; ")


def test_a_setting_is_compared_with_the_baseline() -> None:
    """A setting is not compared with the next one, which may be nearly the same."""
    best, sure = answer(made("settings", as_given=20, racks=10.01, both=10))
    assert best.startswith("both has the lowest JCT mean, 10 h, 50 % below as-given [")
    assert "no difference beyond 2 % from racks" in sure or "undecided against racks" in sure


def catastrophic() -> Comparison:
    """Two policies, one of which is ten times as slow on one replicate."""
    values = {
        "dally": {"jct_mean_s": tuple(36_000 * NOISE[0])},
        "las": {"jct_mean_s": (*(39_600 * NOISE[1][:7]), 360_000.0)},
    }
    return compared("policy", values, ORDERS, 0.02, None)


def test_the_change_in_percent_is_that_of_the_means_beside_it(capsys) -> None:
    """The values are skewed: their arithmetic means would be 57 % apart, not 44 %."""
    comparison = catastrophic()
    one, means = comparison.differences["las"]["jct_mean_s"], comparison.means("jct_mean_s")
    assert means["las"] / means["dally"] == pytest.approx(one.ratio, rel=1e-12)
    print_comparison(comparison, (), Scenario())
    shown = capsys.readouterr().out
    assert "geometric means of 8 permutations, paired" in shown
    _, baseline, las = table(shown)
    printed = float(las[1].split()[0]) / float(baseline[1].split()[0])
    assert printed == pytest.approx(one.ratio, rel=0.01)  # three digits are printed
    assert las[2].startswith(f"{100 * (one.ratio - 1):+.1f} % [")
    (best,) = comparison.best_variants()
    below = 1 - 1 / one.ratio
    assert best.below("las") == pytest.approx(below)
    gap = f"{100 * below:.0f} % below the next, las"
    assert gap in answer(comparison)[0]
    assert gap in best_sentence(best, "10 h")
    assert [row.mean for row in shown_rows(comparison)] == [*means.values()]


def tied(hours: float, per_hour: dict[str, float], gpus: dict[str, int]) -> list[str]:
    """The answer where both changes together are no better than the racks alone."""
    narrow = np.exp(np.random.default_rng(2).normal(0, 0.002, (3, 8)))
    names = ("as given", "racks=+2", "racks=+2, bandwidth=x2")
    values = {
        name: {"jct_mean_s": tuple(3600 * mean * noise)}
        for name, mean, noise in zip(names, (20, hours, 10), narrow, strict=True)
    }
    points = {name: dict.fromkeys(name.split(", "), "") for name in names}
    made = compared("settings", values, ORDERS, 0.02, None)
    return answer(replace(made, points=points, per_hour=per_hour, gpus=gpus))


@pytest.mark.parametrize(
    ("per_hour", "gpus", "more"),
    [
        ({}, {}, "changes more settings"),
        ({"racks=+2, bandwidth=x2": 1.0}, {}, "costs more"),
        ({}, {"racks=+2, bandwidth=x2": 1}, "needs more GPUs"),
    ],
)
def test_in_a_tie_the_setting_that_needs_less_is_named(
    per_hour: dict[str, float], gpus: dict[str, int], more: str
) -> None:
    told = "racks=+2 has the lowest JCT mean within 2 %, 10 h, 50 % below as given ["
    passed_over = f"; racks=+2, bandwidth=x2 (10 h) is no better beyond 2 %, and {more}."
    for hours, near in (
        (10.01, "no difference beyond 2 % from racks=+2, bandwidth=x2"),
        (10.05, "only racks=+2, bandwidth=x2 is surely lower, by less than 2 %"),
    ):
        first, sure = tied(hours, per_hour, gpus)
        assert first.startswith(told), first
        assert first.endswith(passed_over)
        assert sure == f"Surely lower than as given; {near}."


def test_equivalent_settings_are_reported_with_both_values() -> None:
    """The answer must not say `lowest` beside a table that has a lower value."""
    narrow = np.exp(np.random.default_rng(2).normal(0, 0.002, (2, 8)))
    values = {
        name: {"jct_mean_s": tuple(3600 * mean * noise)}
        for name, mean, noise in zip(
            ("as given", "bandwidth=x2"), (38.8, 38.7), narrow, strict=True
        )
    }
    points = {"as given": {}, "bandwidth=x2": {"bandwidth": "x2"}}
    made = compared("bandwidth", values, ORDERS, 0.02, None)
    low, *_ = answer(replace(made, points=points))
    means = [f"{made.means('jct_mean_s')[name] / 3600:.1f} h" for name in values]
    assert means[1] < means[0]
    assert low == (
        f"as given and bandwidth=x2 are alike within 2 %: JCT mean {means[0]} and {means[1]}; "
        "prefer as given, since bandwidth=x2 changes more settings."
    )


def test_variants_equal_in_every_compared_metric_are_named() -> None:
    comparison = made(fifo=20, las=10)
    values = {**comparison.values, "srtf": comparison.values["las"]}
    same = compared("policy", values, ORDERS, 0.02, None)
    told = "las and srtf are equal in all that was compared."
    assert told in notes(same)
    other = {"srtf": {"waiting": (1.0,)}, "las": {"waiting": (2.0,)}}
    assert told not in notes(replace(same, parts=other))
    assert not [one for one in notes(comparison) if "are equal in all" in one]


def test_a_level_for_several_looks_refers_to_its_explanation(capsys) -> None:
    hint = "are right in 97.5 % of cases (several looks share the 5 %: artist explain confidence)"
    print_comparison(replace(made(fifo=20, las=10), level=0.975), (), Scenario())
    assert hint in " ".join(capsys.readouterr().out.split())
    print_comparison(made(fifo=20, las=10), (), Scenario())
    assert "explain confidence" not in capsys.readouterr().out


def test_a_level_has_one_decimal_and_is_never_100() -> None:
    levels = (0.95, 0.975, 1 - 0.05 / 3, 1 - 0.05 / 200)
    assert [level_text(one) for one in levels] == ["95", "97.5", "98.3", "99.9"]


def test_the_table_marks_arithmetic_means(capsys) -> None:
    metrics = {"jct_mean_s": (3600.0, 7200.0), "preemptions": (0.0, 4.0)}
    rare = {"jct_mean_s": (3600.0, 7200.0), "preemptions": (1.0, 4.0)}
    print_comparison(
        compared("policy", {"fifo": metrics, "las": rare}, ORDERS[:2], 0.02, None), (), Scenario()
    )
    told = capsys.readouterr().out
    assert "geometric means of 2 permutations, paired" in told
    assert "preemptions, arithmetic" in told
    assert told.count("arithmetic") == 1
    zero = {name: {"jct_mean_s": (0.0, 7200.0)} for name in ("fifo", "las")}
    print_comparison(compared("policy", zero, ORDERS[:2], 0.02, None), (), Scenario())
    told = capsys.readouterr().out
    assert "means of 2 permutations, paired" in told
    assert "geometric" not in told
    assert "arithmetic" not in told


def test_too_few_replicates_say_how_many_a_verdict_needs() -> None:
    values = {"a": {"jct_mean_s": (1.0, 1.1)}, "b": {"jct_mean_s": (2.0, 2.1)}}
    _, sure = answer(compared("policy", values, ORDERS[:2], 0.02, None))
    assert sure == "Untested: a verdict needs 5 independent replicates, there are 2."


def test_a_result_that_no_order_changes_is_called_exact() -> None:
    values = {"a": {"jct_mean_s": (1.0,) * 5}, "b": {"jct_mean_s": (2.0,) * 5}}
    _, sure = answer(compared("policy", values, ORDERS[:5], 0.02, None))
    assert sure == "Exact on this trace: no order of machines changes it."


def test_nothing_differs() -> None:
    values = {name: {"jct_mean_s": (1.0, 2.0)} for name in "ab"}
    first, sure = answer(compared("policy", values, ORDERS[:2], 0.02, None))
    assert first == "Nothing differs: the JCT mean is 1.41 s under both."
    assert sure == "Equal on 2 replicates."


def test_nothing_differs_where_no_job_waited(artist) -> None:
    asked = ("--trace", "tiny-poisson", "--racks", "16", "--policies", "fifo,las")
    told = artist("compare", *asked, "--permutations", "2", "--format", "json").stdout
    assert json.loads(told)["answer"][1] == (
        "Equal on 2 replicates; no job waited for GPUs, so fewer GPUs or more jobs would tell more."
    )


def test_an_undecided_answer_says_so_first_and_names_the_sure_metric() -> None:
    comparison = two_metrics(dally=(10, 5), las=(10.1, 4), srtf=(10.1, 6))
    first, sure = answer(comparison)
    assert first.startswith("No policy is surely best: dally has the lowest JCT mean, 10 h, ")
    assert sure.startswith("Undecided against las and srtf (")
    assert "; but las has the lowest makespan, 4.01 h, 19 % below the next, dally [" in sure
    first, _ = answer(replace(comparison, setting="racks"))
    assert first.startswith("No setting is surely best: ")


def test_a_second_undecided_metric_is_not_mentioned() -> None:
    _, sure = answer(two_metrics(dally=(10, 5), las=(10.1, 5.02), srtf=(10.1, 6)))
    assert "makespan" not in sure


def test_the_differing_metric_is_named_where_the_first_is_equal() -> None:
    same, more = (1.0,) * 6, tuple(NOISE[3][:6])
    values = {name: {"jct_mean_s": same, "makespan_s": more} for name in "ab"}
    values["b"]["makespan_s"] = tuple(2 * NOISE[4][:6])
    first, sure = answer(compared("policy", values, ORDERS[:6], 0.02, None))
    assert first == "Only another metric differs: the JCT mean is 1 s under both."
    assert sure.startswith("Equal on 6 replicates; but a has the lowest makespan, ")


def test_equivalent_policies_are_no_result() -> None:
    narrow = np.exp(np.random.default_rng(2).normal(0, 0.002, (2, 8)))
    values = {name: {"jct_mean_s": tuple(row)} for name, row in zip("ab", narrow, strict=True)}
    (only,) = answer(compared("policy", values, ORDERS, 0.02, None))
    first, other = sorted("ab", key=lambda name: sum(values[name]["jct_mean_s"]))
    assert only.startswith(f"{first} and {other} are alike within 2 %: JCT mean ")
    assert ";" not in only


def test_the_answer_and_the_table_call_an_interval_joint_alike() -> None:
    """Answer and table judge different families, but agree on the best and the baseline."""
    rng, both = np.random.default_rng(5), 0
    for _ in range(60):
        noise = np.exp(rng.normal(0, 0.02, (6, 8)))
        means = (10.3, 10.0, *(10.5,) * 4)
        values = {
            name: {"jct_mean_s": tuple(mean * row)}
            for name, mean, row in zip("abcdef", means, noise, strict=True)
        }
        comparison = compared("policy", values, ORDERS, 0.02, None)
        (best, *_) = comparison.best_variants()
        first = answer(comparison)[0]
        if best.policies != ("b",) or "the next, a [" not in first:
            continue
        joint = undecided_together(best.others["a"])
        both += joint
        assert ("jointly" in first) == joint
    assert both > 3


def two_metrics(**means: tuple[float, float]) -> Comparison:
    """Variants with these mean JCTs and makespans in hours, each with noise of 2 %."""
    values = {
        name: {
            "jct_mean_s": tuple(3600 * jct * NOISE[place]),
            "makespan_s": tuple(3600 * makespan * NOISE[place + 3]),
        }
        for place, (name, (jct, makespan)) in enumerate(means.items())
    }
    return compared("policy", values, ORDERS, 0.02, None)


def test_without_a_headline_metric_there_is_no_best() -> None:
    values = {name: {"preemptions": (1.0, 2.0)} for name in "ab"}
    assert answer(compared("policy", values, ORDERS[:2], 0.02, None)) == []


HOURS = {"fifo": (2.0, 4.0), "las": (2.0, 4.0), "srtf": (3.0, 4.0)}


@pytest.mark.parametrize(
    ("hours", "words"),
    [
        (
            HOURS,
            "every 2 to 4 h of work with fifo and las; every 3 to 4 h of work with srtf",
        ),
        (dict.fromkeys(HOURS, (4.0, 4.0)), "every 4 h of work"),
        ({"las": (4.0, 4.0)}, "every 4 h of work with las"),
        ({"las": (0.0, 0.0)}, None),
        ({}, None),
    ],
)
def test_the_chosen_checkpoint_intervals_are_stated_once(
    hours: dict[str, tuple[float, float]], words: str | None
) -> None:
    intervals = {name: (3600 * low, 3600 * high) for name, (low, high) in hours.items()}
    told = [x for x in notes(replace(made(fifo=20, las=10, srtf=12), intervals_s=intervals))
            if x.startswith("Checkpoints")]  # fmt: skip
    expected = f"Checkpoints, by the failures of a job's GPUs: {words}."
    assert told == ([] if words is None else [expected])


# -- the table -----------------------------------------------------------------------------


def test_gpu_time_has_its_unit_and_its_name(capsys) -> None:
    hours = {"fifo": (0.0, *range(10, 80, 10)), "las": tuple(range(5, 13))}
    values = {name: {"lost_gpu_s": tuple(3600.0 * x for x in each)} for name, each in hours.items()}
    print_comparison(compared("policy", values, ORDERS, 0.02, None), (), Scenario())
    heading, las, fifo = table(capsys.readouterr().out)
    assert heading[1] == "lost GPU time"
    assert fifo[1] == "35.0 GPU-h"
    assert las[1].endswith(" GPU-h")
    assert las[2].startswith("-26.5 GPU-h [")


def test_the_table_has_a_dozen_rows_and_says_what_it_leaves_out(capsys) -> None:
    print_comparison(
        made("racks", baseline=99, **{f"p{i}": 10.0 + i for i in range(15)}), (), Scenario()
    )
    shown = capsys.readouterr().out
    heading, *rows = table(shown)
    assert heading[:3] == ["racks", "JCT mean", "against baseline, 95 %"]
    assert len(rows) == MOST_ROWS
    assert "; 12 of 16 variants\n" in shown


def test_policies_are_sorted_by_mean_and_the_baseline_is_kept(capsys) -> None:
    names = [entry.id for entry in POLICIES if not entry.wraps]
    values = {
        name: {"jct_mean_s": tuple((99.0 if name == names[0] else 10.0 + place) * NOISE[0])}
        for place, name in enumerate(names)
    }
    print_comparison(compared("policy", values, ORDERS, 0.02, None), (), Scenario())
    _, *rows = table(capsys.readouterr().out)
    assert [row[0] for row in rows] == [*names[1:MOST_ROWS], names[0]]


def test_settings_keep_their_order(capsys) -> None:
    print_comparison(made("racks", two=3, four=2, eight=1), (), Scenario())
    assert [row[0] for row in table(capsys.readouterr().out)] == ["racks", "two", "four", "eight"]


def test_a_column_has_one_unit(capsys) -> None:
    print_comparison(made("racks", short=5, long=500), (), Scenario())
    assert [row[1] for row in table(capsys.readouterr().out)[1:]] == ["5.02 h", "501 h"]


def test_a_difference_from_zero_has_the_unit_of_its_column(capsys) -> None:
    """A zero has no ratio to other values, and must not decide the unit of the column."""
    values = {
        "one": {"queue_delay_mean_s": (36_000.0, 43_200.0) * 3},
        "two": {"queue_delay_mean_s": (0.0,) * 6},
    }
    print_comparison(compared("racks", values, ORDERS[:6], 0.02, None), (), Scenario())
    one, two = table(capsys.readouterr().out)[1:]
    assert (one[1], two[1], two[2].partition(" [")[0]) == ("11 h", "0 h", "-11 h")


def test_table_and_sentences_have_one_unit_for_one_metric(capsys) -> None:
    """Times of ten days are written in hours where the shortest time is one of hours."""
    print_comparison(made("policy", srtf=20, fifo=250, las=260), (), Scenario())
    out = capsys.readouterr().out
    assert " d," not in out.partition("\n# ")[0]
    assert "of the others fifo has the lowest average JCT, 250 h." in out


def test_jointly_is_explained_only_where_an_interval_has_it(capsys) -> None:
    rng, seen = np.random.default_rng(3), set()
    for count in (2, 8):
        for _ in range(10):
            values = {
                name: {"jct_mean_s": tuple(np.exp(rng.normal(0.08 * place, 0.1, 6)))}
                for place, name in enumerate("abcdefgh"[:count])
            }
            print_comparison(compared("racks", values, ORDERS[:6], 0.02, None), (), Scenario())
            out = capsys.readouterr().out
            assert ("An interval marked jointly" in out) == (" jointly]" in out)
            seen.add(" jointly]" in out)
    assert seen == {True, False}


def test_an_interval_beside_undecided_never_excludes_no_difference() -> None:
    """A difference that is sure alone may not be among many; then the joint interval is shown."""
    rng, joint = np.random.default_rng(3), 0
    for _ in range(40):
        values = {
            name: {"jct_mean_s": tuple(np.exp(rng.normal(effect, 0.1, 6)))}
            for name, effect in zip(
                "abcdefgh", (0, 0, 0.05, 0.1, 0.12, 0.15, 0.2, 0.3), strict=True
            )
        }
        comparison = compared("policy", values, ORDERS[:6], 0.02, None)
        for metrics in comparison.differences.values():
            one = metrics["jct_mean_s"]
            text = interval_text("jct_mean_s", one)
            low, high = (
                float(x) for x in text.split("[")[1].split(" jointly")[0].strip("]").split(" .. ")
            )
            joint += "jointly" in text
            if one.verdict == "undecided":
                assert low <= 0 <= high, text
            else:
                assert "jointly" not in text
    assert joint > 10


def test_next_to_nothing_has_no_sign_and_no_interval(capsys) -> None:
    times = tuple(36000 * one for one in NOISE[0])
    nearly = tuple(one * (1 + 1e-6 * (-1) ** place) for place, one in enumerate(times))
    half = tuple(2 * one for one in times)
    each = {"as given": nearly, "x2": times, "x0.5": half}
    values = {name: {"jct_mean_s": times} for name, times in each.items()}
    print_comparison(compared("setting", values, ORDERS, 0.02, None), (), Scenario())
    shown = capsys.readouterr().out
    assert "next to nothing below the next, x2." in shown
    assert "\t0.0 % [0.0 .. 0.0] no difference" in shown
    assert "-0.0" not in shown and "+0.0" not in shown


def test_one_line_says_what_is_judged_together_and_what_may_not_show(capsys) -> None:
    print_comparison(made(fifo=20, las=10, srtf=12), (), Scenario())
    shown = capsys.readouterr().out
    assert (
        "Less, more and surely are right in 95 % of cases: 2 differences of the table and 3 pairs "
        "are judged together (Holm). 8 runs of each may all have been lucky: what goes wrong in up "
        "to 31 % of runs may not be among them.\n"
    ) in shown


PARTS = ("waiting", "communication", "preemption and restarts", "computing")


def failing(
    outages: float, lost_gpu_h: float, *, saved: float = 0.0, setting: str = "settings"
) -> Comparison:
    """A comparison without and with failures, which save these hours of communication a job."""
    whole = made(setting, **{"none": 10, "f.yaml": 10 - saved})
    return replace(
        whole,
        failed={"f.yaml": Failed(outages, 3 * outages, lost_gpu_h)},
        parts={
            variant: {part: (3600 * hours,) * 8 for part, hours in zip(PARTS, each, strict=True)}
            for variant, each in (("none", (1, 5, 0, 4)), ("f.yaml", (1, 5 - saved, 0, 4)))
        },
    )


@pytest.mark.parametrize(
    ("contention", "idle", "why"),
    [
        ("none", False, "contention none has no links on which jobs could take turns"),
        ("phase", True, "jobs lost nothing to each other on links"),
        ("mean", False, "contention mean knows no turns"),
        ("phase", False, "only on a link where that gains policy.least_gain"),
    ],
)
def test_cassini_that_changes_nothing_says_why(contention: str, idle: bool, why: str) -> None:
    host = made(fifo=20, las=10).values
    values = {**host, "cassini(las)": host["las"], "cassini(fifo)": host["las"]}
    comparison = replace(compared("policy", values, ORDERS, 0.02, None), contention_idle=idle)
    (told,) = same_with_turns(comparison, Scenario(contention=contention))
    assert told.startswith("cassini(las) equals las to the last digit: ")
    assert why in told
    assert same_with_turns(made(fifo=20, las=10), Scenario()) == []


def test_failures_beside_another_setting_are_not_recommended() -> None:
    hours = {"none": (20, 30), "f.yaml": (18, 12)}
    points = {
        f"failures={x}, racks={y}": {"failures": x, "racks": y} for x in hours for y in ("2", "4")
    }
    lengths = dict(zip(points, [h for each in hours.values() for h in each], strict=True))
    comparison = replace(made("settings", **lengths), points=points)
    first, second = answer(comparison)
    assert first.startswith("With failures=none: racks=2 has the lowest JCT mean, ")
    assert second.startswith("With failures=f.yaml: racks=4 has the lowest JCT mean, ")
    assert "failures" not in second.removeprefix("With failures=f.yaml")
    assert not within_failures(made(fifo=20, las=10))


def test_lost_gpu_hours_are_reported_where_something_fails() -> None:
    assert notes(failing(2, 31.5))[0] == (
        "Lost to failures in a run, on average: 31.5 GPU-hours of work with f.yaml (6 stops of "
        "jobs)."
    )
    assert not any("failures" in one for one in notes(made("failures", none=10, other=11)))


def test_labels_with_commas_are_separated_by_semicolons() -> None:
    near = {"las": 10, "las, racks=2": 10.02, "fifo": 20, "fifo, racks=2": 21}
    first, *others = answer(made("settings", **near))
    assert first.startswith("las, racks=2 has the lowest JCT mean, 10 h, ")
    assert "Surely lower than fifo; and fifo, racks=2." in others


def test_checkpoints_are_reported_beside_the_work_that_they_save() -> None:
    often, seldom = Failed(2, 6, 145.0, 0.0, 978.0), Failed(2, 6, 514.0, 0.0, 246.0)
    asked = replace(failing(2, 1), failed={"900": often, "3600": seldom})
    assert notes(replace(asked, parts={}))[0] == (
        "Lost to failures and checkpoints in a run, on average: 514 GPU-hours of work and 246 of "
        "checkpoints with 3600 (6 stops of jobs); 145 GPU-hours of work and 978 of checkpoints "
        "with 900 (6 stops of jobs)."
    )


def test_where_failures_vary_the_answer_is_what_they_cost(capsys) -> None:
    """The answer is not which failure model has the lowest JCT."""
    asked = failing(2, 31.5, setting="failures")
    some = Failed(2, 6, 31.5, 0.0, 7.25, 5.0, 12.0)
    asked = replace(asked, failed={"none": Failed(0, 0, 0.0, 0.0, 7.0), "f.yaml": some})
    costs, change = answer(asked)
    assert costs == (
        "f.yaml costs, in a run on average: 31.5 GPU-hours of lost work (6 stops of jobs), 7.25 of "
        "checkpoints (7 without failures), 5 of restarts, 12 out of service."
    )
    rare = some._replace(stopped=0.4, checkpoint_gpu_h=0.0, restart_gpu_h=0.0)
    rarely, _ = answer(replace(asked, failed={**asked.failed, "f.yaml": rare}))
    unrounded = some._replace(restart_gpu_h=4.5e-13)
    assert "restarts" not in answer(replace(asked, failed={**asked.failed, "f.yaml": unrounded}))[0]
    assert rarely.endswith("31.5 GPU-hours of lost work (0.4 stops of jobs) and 12 out of service.")
    assert change.startswith("JCT mean against none, 10 h: with f.yaml it ")
    assert not any("Lost to failures" in one for one in notes(asked))
    print_comparison(asked, (), Scenario())
    assert capsys.readouterr().out.startswith(costs)
    assert answer(replace(asked, failed={}))[0].startswith("f.yaml and none are alike")


@pytest.mark.parametrize(
    ("hours", "words"),
    [
        (10.0, "it does not surely change, "),
        (12.0, "it surely rises, +"),
        (8.0, "it surely falls, -"),
    ],
)
def test_the_change_of_the_jct_by_failures_is_reported_with_its_verdict(
    hours: float, words: str
) -> None:
    noise = np.exp(np.random.default_rng(7).normal(0, 0.05, (2, 8)))
    values = {
        name: {"jct_mean_s": tuple(3600 * mean * row)}
        for name, mean, row in zip(("none", "f.yaml"), (10.0, hours), noise, strict=True)
    }
    comparison = compared("failures", values, ORDERS, 0.02, None)
    *_, change = answer(replace(comparison, failed={"f.yaml": Failed(1, 1, 1)}))
    assert f"with f.yaml {words}" in change
    assert change.endswith("].")


def test_with_many_failure_models_costs_and_changes_cover_the_same_variants() -> None:
    lost = {"none": 0.0, "a": 5.0, "b": 2.0, "c": 7.0, "d": 6.0, "e": 9.0}
    noise = np.exp(np.random.default_rng(7).normal(0, 0.05, (len(lost), 8)))
    values = {
        name: {"jct_mean_s": tuple(36_000 * row)} for name, row in zip(lost, noise, strict=True)
    }
    comparison = compared("failures", values, ORDERS, 0.02, None)
    failed = {name: Failed(1, 1, hours) for name, hours in lost.items() if hours}
    least, most, more, change = answer(replace(comparison, failed=failed))
    assert (least[:7], most[:7]) == ("b costs", "e costs")
    assert more == "And 3 more, whose lost work and checkpoints lie between these."
    assert re.search(r": with b \(.*\] *\) and e \(.*\) it does not surely change\.$", change)


def test_failures_that_change_nothing_say_so() -> None:
    same = dict.fromkeys(("none", "f.yaml"), made(none=10, other=11).values["none"])
    comparison = compared("failures", same, ORDERS, 0.02, None)
    *_, change = answer(replace(comparison, failed={"f.yaml": Failed(1, 1, 1)}))
    assert change.endswith("with f.yaml it stays the same.")


def test_a_variant_that_is_faster_with_failures_is_reported_with_its_cause() -> None:
    told = notes(failing(2, 31.5, saved=2))[1]
    assert told.startswith("Failures cost work, but with f.yaml jobs communicate less, since")
    assert "closer together: 120 min per job against none." in told
    assert not any("but with f.yaml" in one for one in notes(failing(2, 31.5, saved=-2)))
    some = failing(2, 31.5, saved=2, setting="failures")
    writes = replace(some, failed={**some.failed, "none": Failed(0, 0, 0.0, 0.0, 7.0)})
    assert told in notes(writes)


def test_savings_of_a_setting_are_reported_with_their_largest_part() -> None:
    some = replace(failing(2, 31.5, saved=2, setting="racks"), failed={})
    told = "Against none, f.yaml saves 120 min per job; the largest part is communication, 120 min."
    assert told in notes(some)
    longer = replace(failing(2, 31.5, saved=-2, setting="racks"), failed={})
    for other in (longer, replace(some, parts={})):
        assert not any("largest part" in one for one in notes(other))
    with_failures = failing(2, 31.5, saved=2, setting="failures")
    assert not any("largest part" in one for one in notes(with_failures))


def test_runs_in_which_nothing_failed_are_reported_as_such() -> None:
    told = notes(failing(0, 0))
    assert told[0].startswith("No unit failed in these runs; units that fail more often")
    assert not any("Lost to failures" in one for one in told)


def test_where_nothing_failed_the_cost_of_slow_units_is_reported() -> None:
    some = failing(0, 0)
    slow = replace(some, failed={"f.yaml": Failed(0, 0, 0, 12.34)})
    told = notes(slow)
    assert told[0] == "Slow units cost 12.3 GPU-hours of computing in a run with f.yaml."
    assert not any("No unit failed" in one for one in told)
    both = replace(some, failed={"a": Failed(1, 1, 2, 3.0), "b": Failed(1, 1, 2, 4.0)})
    told = notes(replace(both, parts={}))
    assert told[0].endswith("4 GPU-hours of computing in a run or less, most with b.")
    assert told[1].startswith("Lost to failures in a run")


def test_of_many_variants_those_that_lose_least_and_most_are_listed() -> None:
    some = failing(2, 1.0)
    failed = {f"v{lost}": Failed(1, 1, lost) for lost in (5.0, 9.0, 2.0, 7.0, 6.0)}
    told = notes(replace(some, failed=failed, parts={}))[0]
    assert told.endswith(
        "2 GPU-hours of work with v2.0 (1 stop of jobs) to 9 GPU-hours of work with v9.0 (1 stop "
        "of jobs)."
    )


@pytest.mark.slow
def test_the_command_knows_what_failed(artist, tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_text(
        "machine: {distribution: exponential, mtbf_s: 5.0e4, repair_s: 1800}\n"
    )
    asked = (*ASKED[:-2], "--policies", "fifo", "--permutations", "2", "--vary")
    told = artist(*asked, "failures=none,f.yaml").stdout
    assert "# fabric a100" in told.splitlines()[0]
    other = artist(*asked, "failures=none,f.yaml", "--metrics", "preemptions").stdout.splitlines()
    assert other[1].startswith("failures=f.yaml costs, in a run on average: ")
    assert other[2].startswith("# ")
    assert told.splitlines()[1].startswith("failures=f.yaml costs, in a run on average: ")
    assert "one draw of failures; --seeds 8 tests other draws" in told
    (tmp_path / "planned.yaml").write_text(
        "outages:\n- {kind: machine, unit: 0, at_s: 9, duration_s: 9}\n"
    )
    assert "one draw" not in artist(*asked, "failures=none,planned.yaml").stdout
    others = artist(*asked[:-3], "--vary", "failures=none,f.yaml", "--seeds", "2").stdout
    assert "one draw" not in others
    calm = ("compare", "--trace", "tiny-poisson", "--racks", "1", "--machines-per-rack", "2")
    never = artist(*calm, "--policies", "fifo,las", "--failures", "meta-rsc", "--seeds", "6").stdout
    assert "5 independent replicates, all replicates here are copies of one run" in never
    of_policies = (*ASKED, "--permutations", "2", "--failures", "f.yaml")
    assert "GPU-hours of work with fifo" in artist(*of_policies).stdout
    one = artist("sim", *ASKED[1:5], "--policy", "fifo", "--failures", "f.yaml").stdout
    assert (
        "What failures do to JCT: artist compare with the same settings, --policies fifo --vary "
        "failures=none,f.yaml." in one
    )
    assert "No unit failed in these runs" in artist(*asked, "failures=none,meta-rsc").stdout


# -- the command ---------------------------------------------------------------------------

ASKED = ("compare", "--trace", "tiny-batch", "--racks", "1", "--policies", "fifo,las")


def test_three_lines_stand_alone_and_all_prints_the_rest(artist) -> None:
    ran = artist(*ASKED)
    world, best, *_ = ran.stdout.splitlines()
    assert world.startswith("# fabric a100, measured: ")
    assert world.endswith("; 20 jobs of tiny-batch, 64 GPUs, 8 permutations")
    assert best.startswith("las and fifo are alike within 2 %: JCT mean ")
    assert ran.stdout.count("alike within 2 %") == 1
    assert len(ran.stdout.splitlines()) < 14
    assert "More: --all" in ran.stdout
    more = artist(*ASKED, "--all").stdout
    assert more.startswith(ran.stdout.partition("More: --all")[0])
    assert "what the difference to las is made of" in more or "made of" in more
    assert json.loads(artist(*ASKED, "--format", "json").stdout)["answer"] == [best]


@pytest.mark.slow
def test_where_eight_orders_leave_something_undecided_there_are_sixteen(artist) -> None:
    """The intervals are wider, too, since the data were looked at twice."""
    told = json.loads(artist(*ASKED[:3], *ASKED[3:], "--format", "json").stdout)
    assert (len(told["replicates"]), told["level"]) == (8, 0.975)
    noisy = ("compare", "--racks", "1", "--jobs", "60", "--policies", "dally,las,fifo-backfill")
    ran = artist(*noisy, "--format", "json")
    assert ran.stderr.startswith("24 to 48 runs\n")
    assert len(json.loads(ran.stdout)["replicates"]) == 16


@pytest.mark.parametrize(
    ("arguments", "count"), [(("--seeds", "5"), 5), (("--permutations", "6"), 6)]
)
def test_a_number_that_is_asked_for_is_run(artist, arguments: tuple[str, ...], count: int) -> None:
    asked = ("compare", "--racks", "1", "--jobs", "20", "--policies", "fifo,las", *arguments)
    told = json.loads(artist(*asked, "--format", "json").stdout)
    assert (len(told["replicates"]), told["level"]) == (count, 0.95)


def test_two_questions_at_once(artist) -> None:
    vary = ("--vary", "racks=+1", "--vary", "fabric.network.latency=x2")
    ran = artist("compare", "--jobs", "20", "--racks", "1", "--policies", "las", *vary, code=0)
    rows = table(ran.stdout)
    assert [row[0] for row in rows] == [
        "settings", "as given", "latency=x2", "racks=+1", "racks=+1, latency=x2",
    ]  # fmt: skip
    assert "64 to 128 GPUs" in ran.stdout.splitlines()[0]
    assert "Every run has policy las." in ran.stdout
    twice = artist("compare", "--racks", "1", "--vary", "racks=1,2", "--vary", "racks=3,4")
    assert "--vary racks is given twice; give all values at once" in twice.stderr


def test_two_more_racks_or_twice_the_bandwidth_is_one_command_with_one_answer(
    artist, tmp_path: Path
) -> None:
    (tmp_path / "prices.yaml").write_text(
        "currency: EUR\ngpu_hour: 2.00\n"
        "settings:\n  fabric.network.bandwidth=x2: {gpu_hour: 0.15}\n"
    )
    asked = ("compare", "--racks", "2", "--jobs", "40", "--policies", "dally", "--costs")
    vary = ("--vary", "racks=+2", "--vary", "fabric.network.bandwidth=x2")
    ran = artist(*asked, "prices.yaml", *vary, "--permutations", "5", code=0)
    _, best, _, cheapest, *_ = ran.stdout.splitlines()
    assert "are alike within 2 %: JCT mean " in best
    assert cheapest.startswith("Cheapest GPU time: racks=+2, ")
    assert "; a GPU-hour costs 2 EUR. Each hour by which a job finishes sooner costs " in cheapest
    # Jobs hold half the share of twice the GPUs.
    assert "gained, used or not (jobs hold 13 % of the time of its GPUs, 26 % with as" in cheapest
    assert (
        "comes on top: with bandwidth=x2 a GPU-hour costs 2 + 0.15 = 2.15 EUR, for each of all 128 "
        "GPUs." in ran.stdout
    )
    told = json.loads(
        artist(*asked, "prices.yaml", *vary, "--permutations", "5", "--format", "json").stdout
    )
    assert [one["variant"] for one in told["costs"]] == list(told["variants"])
    wrong = artist(*asked, "prices.yaml", "--vary", "fabric.network.bandwidth=x3")
    assert (wrong.returncode, "no price of fabric.network.bandwidth=x3" in wrong.stderr) == (
        2,
        True,
    )
    assert "runs" not in wrong.stderr
