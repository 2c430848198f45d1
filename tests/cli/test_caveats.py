"""Do caveats below a table say what decides its result, and only where they hold?"""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from artist.cli.comparison_details import print_details
from artist.cli.comparison_json import as_json
from artist.cli.comparison_text import print_comparison
from artist.config import Scenario
from artist.experiments.comparison.compare import compare
from artist.experiments.comparison.comparison_result import compared
from artist.experiments.comparison.variants import of_policies
from artist.results.caveats import (
    FREE_PREEMPTIONS,
    communication_warning,
    last_job_sentence,
    more_is_worse,
    preempts_freely,
    run_to_recorded,
    slowest_job_sentence,
    spreads_jobs,
)

TINY = {"trace": "tiny-batch", "racks": 1, "machines_per_rack": 2, "backend": "none"}


def shown(capsys: pytest.CaptureFixture[str], policies: list[str], permutations: int = 1, **more):
    scenario = Scenario(**{**TINY, **more})
    made = compare(scenario, policies, seeds=1, permutations=permutations)
    print_comparison(made, (), Scenario())
    print_details(made)
    return capsys.readouterr().out


def test_free_preemptions_are_mentioned_once_per_comparison(capsys) -> None:
    assert shown(capsys, ["fifo", "las", "srtf"]).count(FREE_PREEMPTIONS) == 1


@pytest.mark.parametrize("policies", [["fifo", "sjf"], ["las", "srtf"]])
def test_preemptions_that_cost_or_do_not_occur_are_not_called_free(capsys, policies) -> None:
    assert FREE_PREEMPTIONS not in shown(capsys, policies, restart_s=30.0)
    assert (FREE_PREEMPTIONS in shown(capsys, policies)) == ("las" in policies)


@pytest.mark.parametrize(("restart", "told"), [((), 1), (("--set", "restart_s=30"), 0)])
def test_a_run_says_that_its_preemptions_are_free(artist, restart, told: int) -> None:
    sizes = ("--racks", "1", "--machines-per-rack", "2", "--backend", "none")
    ran = artist("sim", "--trace", "tiny-batch", *sizes, "--policy", "las", *restart)
    assert (ran.returncode, ran.stdout.count(FREE_PREEMPTIONS)) == (0, told)


def test_one_run_with_a_cost_is_enough() -> None:
    free = {"preemptions": 3, "migrations": 0, "preemption_cost_gpu_s": 0.0}
    moved = {"preemptions": 0, "migrations": 1, "preemption_cost_gpu_s": 0.0}
    calm = {**free, "preemptions": 0}
    assert [preempts_freely([one]) for one in (free, moved, calm)] == [True, True, False]
    assert not preempts_freely([free, {**moved, "preemption_cost_gpu_s": 1.0}])
    # Lost parts of iterations are not restarts.
    assert preempts_freely([{**free, "preemption_cost_gpu_s": 2.9}])


@pytest.mark.parametrize(
    ("setting", "by_value", "told"),
    [
        ("racks", {"2": 1.0, "4": 5.0}, "With racks=4 the makespan is 5 times that with racks=2"),
        ("racks", {"4": 500.0, "2": 100.0}, "With racks=4 the makespan is 5 times"),
        ("racks", {"2": 100.0, "4": 150.0}, ""),  # the order of machines moves it as much
        ("racks", {"2": 500.0, "4": 100.0}, ""),
        ("jobs", {"100": 100.0, "50": 200.0}, "With jobs=50 the makespan is 2 times"),
        ("jobs", {"100": 200.0, "50": 100.0}, ""),
        (
            "fabric.network.bandwidth", {"10Gbit/s": 1.0, "100Gbit/s": 2.0},
            "With bandwidth=100Gbit/s the makespan is 2 times that with bandwidth=10Gbit/s",
        ),
        ("fabric.network.bandwidth", {"10Gbit/s": 1.0, "10GiB/s": 2.0}, ""),  # other units
        ("policy", {"fifo": 1.0, "las": 2.0}, ""),
        (
            "racks", {"": 1.0, "+2": 3.0, "+4": 4.0},
            "With racks=+4 the makespan is 4 times that as given",
        ),
        ("racks", {"": 4.0, "x2": 1.0}, ""),
        ("racks", {"": 1.0, "x0.5": 4.0}, ""),
        ("racks", {"": 1.0, "x2": 4.0}, "With racks=x2 the makespan is 4 times that as given"),
    ],
)  # fmt: skip
def test_more_of_a_setting_that_makes_things_much_worse_is_reported(
    setting, by_value, told
) -> None:
    means = [({setting: value} if value else {}, mean) for value, mean in by_value.items()]
    said = more_is_worse("makespan", means)
    assert said.startswith(told) and bool(said) == bool(told)


def test_only_more_gpus_spread_jobs_and_only_where_nothing_keeps_them_together() -> None:
    def said(setting: str, *values: str, spreads: bool = True) -> str:
        means = [({setting: value}, mean) for value, mean in zip(values, (1.0, 2.0), strict=True)]
        return more_is_worse("makespan", means, spreads=spreads)

    assert "spread over more links. Policies that wait" in said("racks", "2", "4")
    assert said("racks", "2", "4", spreads=False).endswith("with racks=2.")
    assert said("jobs", "100", "50").endswith("with jobs=100.")
    assert said("fabric.rack.bandwidth", "1Gbit/s", "2Gbit/s").endswith("bandwidth=1Gbit/s.")


def test_no_advice_to_wait_for_close_gpus_where_the_policy_does() -> None:
    together = {"placement": "consolidate-or-wait"}
    assert spreads_jobs("analytical", "las", {"placement": "any"})
    assert not spreads_jobs("none", "las", {})
    assert not spreads_jobs("analytical", "las", together)
    assert not spreads_jobs("analytical", "cassini(las)", {"host": together})
    assert not spreads_jobs("analytical", "dally", {})


def test_with_two_settings_the_worst_pair_is_named_with_what_differs() -> None:
    racks, twice = {"racks": "+2"}, {"fabric.rack.bandwidth": "x2"}
    both = [({}, 1.0), (twice, 1.1), (racks, 3.0), ({**racks, **twice}, 4.0)]
    told = "With racks=+2, bandwidth=x2 the makespan is 4 times that as given: where more GPUs"
    assert more_is_worse("makespan", both).startswith(told)
    slower = [({}, 1.0), ({"racks": "+2", "fabric.rack.bandwidth": "x0.5"}, 4.0)]
    assert not more_is_worse("makespan", slower)
    of_a_policy = [({"policy": one, **racks}, mean) for one, mean in (("las", 1.0), ("fifo", 4.0))]
    assert not more_is_worse("makespan", of_a_policy)


def test_sweeps_and_comparisons_warn_where_more_is_worse(artist, tmp_path) -> None:
    """Two jobs of two GPUs and a rack of one machine of three: a second rack splits a job."""
    (tmp_path / "t.csv").write_text(
        "job_id,arrival_s,gpus,model,iterations,compute_s\n"
        "j,0,2,mobilenetv3,100,0.01\nk,0,2,mobilenetv3,100,0.01\n"
    )
    base = {"trace": "t.csv", "machines_per_rack": 1, "gpus_per_machine": 3, "fabric": "dally2025"}
    grid = {"racks": [1, 2]}
    document = {"name": "e", "version": 1, "base": base, "grid": grid}
    base |= {"policy": "tiresias", "policy_options": {"placement": "any"}}
    (tmp_path / "e.yaml").write_text(json.dumps(document))
    told = r"With racks=2 the makespan is .* times that with racks=1"
    once = artist("sweep", "e.yaml", "--out", "once").stdout
    assert re.search(rf"{told}, in one run each\.", once)
    assert "One run each: a difference may be noise. For intervals add permutation: [0, 1" in once
    grid["permutation"] = [0, 1]
    (tmp_path / "e.yaml").write_text(json.dumps(document))
    told += ": where more GPUs are free"
    assert re.search(told, artist("sweep", "e.yaml", "--out", "out").stdout)
    ran = artist(
        "compare", "--trace", "t.csv", "--policies", "tiresias", "--vary", "racks=+1",
        "--racks", "1", "--machines-per-rack", "1", "--gpus-per-machine", "3",
        "--fabric", "dally2025",
        "--set", "policy.placement=any", "--permutations", "2",
    )  # fmt: skip
    told = r"With racks=\+1 the makespan is .* times that as given: where more GPUs are free"
    assert re.search(told, ran.stdout), ran.stderr


def test_without_a_network_places_do_not_explain_why_an_oracle_is_beaten(artist) -> None:
    asked = ("compare", "--jobs", "60", "--racks", "1", "--policies", "las,srtf", "--quiet")
    ran = artist(*asked, "--backend", "none", "--permutations", "8", code=0)
    told = " ".join(ran.stdout.split())
    assert ("srtf knows the run times of all jobs and has a longer average JCT than las.") in told
    assert "where jobs run" not in told


def test_a_rare_catastrophe_is_named(capsys) -> None:
    values = {"fifo": {"makespan_s": (1.0, 1.1, 1.0, 1.1, 1.05)},
              "las": {"makespan_s": (1.0, 1.1, 4.0, 1.1, 1.05)}}  # fmt: skip
    replicates = tuple((0, permutation) for permutation in range(5))
    made = compared("policy", values, replicates, 0.02, None)
    assert made.catastrophes() == [("las", "makespan_s", 0, 2, pytest.approx(4.0 / 1.1))]
    print_comparison(made, (), Scenario())
    told = (
        "las with seed 0 and permutation 2 has a makespan 3.64 times the median of its replicates"
    )
    assert told in capsys.readouterr().out.replace("\n", " ")
    assert as_json(made)["catastrophes"][0]["variant"] == "las"


def test_surely_says_what_so_few_runs_may_not_show(capsys) -> None:
    times = (1.0, 1.01, 1.02, 1.01, 1.03)
    values = {"fifo": {"makespan_s": times}, "las": {"makespan_s": tuple(2 * x for x in times)}}
    replicates = tuple((0, permutation) for permutation in range(5))
    print_comparison(compared("policy", values, replicates, 0.02, None), (), Scenario())
    told = (
        "5 runs of each may all have been lucky: what goes wrong in up to 45 % of runs may not be "
        "among them."
    )
    assert told in capsys.readouterr().out.replace("\n", " ")


def test_an_oracle_that_loses_to_a_rule_is_reported(capsys) -> None:
    """Placement decides on `dally2025`: policies that pack into whatever is free lose to Dally."""
    scenario = Scenario(trace="sensetime-batch-500", fabric="dally2025", racks=2, jobs=120)
    made = compare(scenario, ["dally", "sjf"], seeds=1, permutations=6)
    print_comparison(made, (), Scenario())
    sure = made.differences["sjf"]["jct_mean_s"].verdict == "more"
    told = "sjf knows the run times of all jobs and has a longer average JCT than dally"
    printed = capsys.readouterr().out.replace("\n", " ")
    assert sure and told in printed
    hint = re.search(r"--set policy\.(\S+)=(\S+) makes it wait", printed)
    with_hint = scenario.model_copy(update={"policy_options": {hint[1]: hint[2]}})
    assert of_policies(with_hint, ["dally", "sjf"])  # what is printed works


DRAW = "All of this holds for one draw of the trace; --seeds 8 tests other draws."
POISSON = "--arrivals poisson:JOBS_PER_HOUR --seeds 8"


def test_a_result_from_a_single_draw_says_so(capsys) -> None:
    drawn = {"trace": "sensetime-batch-500", "racks": 2, "machines_per_rack": 8, "jobs": 8}
    assert DRAW in shown(capsys, ["fifo", "las"], **drawn)
    assert DRAW not in shown(capsys, ["fifo", "las"])  # a file
    print_comparison(
        compare(Scenario(**{**TINY, **drawn}), ["fifo", "las"], seeds=2, permutations=1),
        (),
        Scenario(),
    )
    assert DRAW not in capsys.readouterr().out


def test_where_no_permutation_changes_anything_the_difference_is_exact(capsys) -> None:
    """Jobs of this trace arrive one at a time, and there is one way to place each."""
    text = shown(capsys, ["las", "fifo"], permutations=5, trace="tiny-poisson")
    assert re.search(r"exact: on this trace fifo finishes jobs \d+ % later than las on av", text)
    assert "Average JCT: las has the lowest, " in text
    assert "; exact on this trace.\n" in text
    assert text.count(POISSON) == 1
    for contradiction in ("untested", "too few", "a verdict needs", "enough replicates"):
        assert contradiction not in text


def test_four_permutations_are_too_few_to_call_anything_exact(capsys) -> None:
    text = shown(capsys, ["las", "fifo"], permutations=4, trace="tiny-poisson")
    assert "untested" in text
    assert "exact" not in text.lower()


def test_drawn_arrivals_are_drawn_anew_by_more_seeds(capsys) -> None:
    """The remedy for a single draw is more seeds, not other arrivals."""
    text = shown(
        capsys, ["las", "fifo"], permutations=5, trace="tiny-poisson", arrivals="poisson:0.1"
    )
    assert DRAW in text
    assert POISSON not in text


def test_copies_beside_what_varies(capsys) -> None:
    """Under sjf and srtf no permutation changes the trace of a batch; under las it does."""
    text = shown(capsys, ["srtf", "sjf", "las"], permutations=5)
    assert "exact: on this trace sjf " in text
    assert "las finishes jobs " in text


def test_the_best_policy_is_said_to_know_run_times(capsys) -> None:
    text = shown(capsys, ["fifo", "las", "srtf"])
    assert "\nsrtf knows the run times of all jobs, as no real scheduler does; of the " in text
    assert "of the others las has the lowest average JCT, " in text
    assert "run times" not in shown(capsys, ["fifo", "las"])
    text = shown(capsys, ["fifo", "sjf", "srtf"])
    assert (
        "\nsjf and srtf know the run times of all jobs, as no real scheduler does; of the" in text
    )


def test_where_all_policies_know_run_times_none_is_singled_out(capsys) -> None:
    text = shown(capsys, ["sjf", "srtf"])
    assert "\nAll of these know the run times of all jobs, as no real scheduler does.\n" in text


def test_an_undecided_result_suggests_the_next_command(capsys) -> None:
    """Only the undecided policies are run again, with as many permutations as they need."""
    text = shown(capsys, ["las", "tiresias", "themis"], permutations=5)
    more = re.search(
        r"undecided against las \(about (\d+) more permutations? would probably settle it\)", text
    )
    assert more is not None
    count = 5 + int(more[1])
    assert (
        "To decide what is undecided among the best: --policies las,tiresias "
        f"--permutations {count}, or --until 2%.\n"
    ) in text
    assert "among the best" not in shown(capsys, ["srtf", "fifo"])


def test_a_job_that_makes_most_of_the_makespan_is_named() -> None:
    """Of two jobs the shorter one finishes last; it ran for 60 s of 100 s, on a bad placement."""
    jobs = {
        "job_id": ["a", "b"],
        "model": ["vgg16", "resnet50"],
        "gpus": np.array([8, 1]),
        "finish_s": np.array([90.0, 100.0]),
        "run_s": np.array([90.0, 60.0]),
        "alone_s": np.array([90.0, 20.0]),
    }
    stays = {"job_id": ["a", "b", "b"], "gpus": [8, 1, 1]}
    assert last_job_sentence(jobs, 100.0, stays) == (
        "Job b (resnet50, 1 GPU) finished last. It ran for 60 % of the makespan, 3 times as "
        "long as in isolation."
    )
    unnamed = last_job_sentence({**jobs, "model": ["unknown"] * 2}, 100.0, stays)
    assert unnamed.startswith("Job b (1 GPU) finished last.")
    assert not last_job_sentence(jobs, 120.0, stays)  # half is not most
    assert not last_job_sentence(jobs, 0.0, stays)  # as a broken summary may say
    elastic = last_job_sentence(jobs, 100.0, {**stays, "gpus": [8, 1, 2]})
    assert elastic.endswith(" as long as in isolation with the GPUs that it was submitted with.")
    assert last_job_sentence(jobs, 100.0, {**stays, "batch": [0, 64, 64]}).endswith(
        " as long as in isolation with the GPUs and the batch that it was submitted with."
    )
    assert last_job_sentence(jobs, 100.0, {**stays, "batch": [64, 0, 0]}).endswith("in isolation.")


def test_a_job_that_is_spread_too_far_is_named_with_what_avoids_it() -> None:
    """Job b needs 20 s in isolation; 190 of its 210 s it was spread over racks."""
    jobs = {
        "job_id": np.array(["a", "b"]),
        "model": np.array(["vgg16", "resnet50"]),
        "gpus": np.array([8, 4]),
        "run_s": np.array([90.0, 210.0]),
        "alone_s": np.array([90.0, 20.0]),
        "ideal_s": np.array([90.0, 16.0]),
        "comm_s": np.array([0.0, 194.0]),
        "lost_s": np.array([0.0, 0.0]),
        "stalled_s": np.array([0.0, 0.0]),
        "source": np.array(["analytical", "analytical"]),
    }
    placements = {
        "job_id": np.array(["b", "a", "b"]),
        "level": np.array(["machine", "rack", "network"]),
        "start_s": np.array([0.0, 0.0, 20.0]),
        "end_s": np.array([20.0, 90.0, 210.0]),
    }
    sentence = slowest_job_sentence(jobs, placements)
    assert sentence.startswith(
        "Job b (resnet50, 4 GPUs) ran 10.5 times as long as isolated, mostly spread over the level "
        "network."
    )
    assert "placement=consolidate-or-wait" in sentence
    assert not slowest_job_sentence({**jobs, "alone_s": np.array([90.0, 21.0])}, placements)

    def told(**more: float) -> str:
        columns = {name: np.array([0.0, value]) for name, value in more.items()}
        return slowest_job_sentence({**jobs, **columns}, placements)

    # Of its 190 s more than isolated, communication is no more than half.
    assert told(comm_s=99.1).endswith("over the level network. Policies that wait for GPUs close "
        "together avoid that: dally, or the option placement=consolidate-or-wait.")  # fmt: skip
    slow = "Job b (resnet50, 4 GPUs) ran 10.5 times as long as isolated"
    assert told(comm_s=98.9) == f"{slow}."
    assert told(comm_s=9.0, slowed_s=180.0) == f"{slow}; slow units cost it 3 min."
    assert told(comm_s=60.0, lost_s=80.0) == f"{slow}; work lost with its GPUs cost it 80 s."
    assert told(comm_s=0.0, stalled_s=100.0) == f"{slow}; starts, restarts and moves cost it 100 s."
    away = {**jobs, "source": np.array(["analytical", "none+remote-data"])}
    told_away = f"{slow}; it read tables over the network between regions."
    assert slowest_job_sentence(away, placements) == told_away
    assert slowest_job_sentence(jobs, placements, spreads=False).endswith("the level network.")
    links = "; other jobs on links or its own full uplinks cost it 150 s."
    assert told(contention_lost_s=150.0) == slow + links


def test_a_job_slowed_in_one_machine_is_not_said_to_be_spread(artist, tmp_path) -> None:
    (tmp_path / "t.csv").write_text(
        "job_id,arrival_s,gpus,model,iterations,compute_s\nx,0,1,resnet50,1000,1\n"
    )
    cluster = ("--racks", "1", "--machines-per-rack", "1", "--backend", "none")
    slow = ("--set", "first_start_s=20000", "--policy", "fifo")
    told = " ".join(artist("sim", "--trace", "t.csv", *cluster, *slow, code=0).stdout.split())
    assert "times as long as isolated; starts, restarts and moves cost it" in told
    assert "spread over" not in told


def test_more_communication_than_any_measured_machine_has_gets_a_warning() -> None:
    assert not communication_warning(0.82)
    assert communication_warning(0.95).startswith(
        "No measured machine communicates for 95 % of its time (T4: at most 82 %"
    )
    assert "for 82.12 % of its time (T4: at most 82.00 %)" in communication_warning(0.8212)


def test_the_warning_about_communication_proposes_nothing_that_the_run_has() -> None:
    assert "(--calibration none)" in communication_warning(0.95, "a100-resnet50", "dally2025")
    told = communication_warning(0.95, "none", "a100")
    assert "--calibration" not in told and "--fabric a100" not in told
    assert "(--fabric t4), and look at which models cause it" in told


JOBS = {
    "job_id": ["a", "b", "c"], "model": ["vgg11", "dlrm", "dlrm"],
    "run_s": [10.0, 30.0, 60.0], "ideal_s": [10.0, 15.0, 30.0], "jct_s": [90.0, 90.0, 90.0],
}  # fmt: skip


def test_the_median_and_the_first_of_the_largest() -> None:
    compared = run_to_recorded(JOBS)  # ratios 1, 2, 2
    assert compared == (2.0, 2.0, "b", "dlrm")
    assert compared.sentence() == (
        "Jobs run 2 x their recorded time (median), 2 x at most (job 'b', 'dlrm')."
    )


@pytest.mark.parametrize(("run_s", "much"), [(150.0, False), (150.1, True)])
def test_more_than_ten_times_is_much(run_s: float, much: bool) -> None:
    compared = run_to_recorded({**JOBS, "run_s": [10.0, run_s, 30.0]})
    assert compared.much is much
    assert ("counts as compute time" in compared.sentence()) is much
