"""Does `artist sim` say first what people ask for, in their units, and nothing twice?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import artist as library
from artist.cli.commands.explain import explain
from artist.cli.summary_text import (
    chosen_intervals_sentence,
    communication_sentence,
    contention_sentence,
    intervals_words,
    print_summary,
    tenants_sentence,
)
from artist.config import Scenario
from artist.experiments.comparison.compare import compare
from artist.failures.checkpoints import daly_interval_s
from artist.results.terms.chief_metrics import FIRST_OF_A_RUN
from artist.results.terms.number_text import gpu_hours_text, percent, time_text
from artist.run import simulate

FAILING = {"failures": "meta-rsc", "checkpoint": {"cost_s": 30}, "restart_s": 60}


def shown(capsys: pytest.CaptureFixture[str], **settings: object) -> dict[str, dict[str, str]]:
    """Heading -> name -> figure, as printed."""
    base = {"racks": 1, "trace": "tiny-batch", "fabric": "dally2025", "policy": "las"}
    print_summary(simulate(Scenario.model_validate({**base, **settings})).summary)
    groups: dict[str, dict[str, str]] = {}
    for line in capsys.readouterr().out.splitlines():
        if line.startswith("# "):
            rows = groups.setdefault(line[2:], {})
        else:
            name, _, value = line.partition("\t")
            rows[name] = value
    return groups


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.0123, "1.2"),
        (0.3, "30"),
        (0.99588, "99.6"),
        (0.99999, "99.9"),
        (1.0, "100"),
        (2.5, "250"),
    ],
)
def test_only_a_whole_share_is_100_percent(share: float, said: str) -> None:
    assert percent(share) == said


def test_eight_figures_come_first_then_groups(capsys) -> None:
    first, *others = shown(capsys).items()
    assert first[0] == "las on tiny-batch, 64 GPUs"
    assert list(first[1]) == [name.removesuffix("_s") for name in FIRST_OF_A_RUN]
    assert len(first[1]) == 8
    assert [heading for heading, _ in others][:2] == ["a job's time", "the cluster's GPU time"]


def test_times_are_in_units_of_people_and_shares_in_percent(capsys) -> None:
    groups = shown(capsys)
    first = groups["las on tiny-batch, 64 GPUs"]
    assert (first["makespan"], first["jct_mean"]) == ("67.9 h", "14.3 h")
    assert first["communication"].endswith(" %")
    assert groups["iterations"]["iteration_time_mean"].endswith(" ms")
    assert groups["moves and placements"]["preemption_cost_gpu"].endswith(" GPU-h")


def test_a_figure_that_repeats_another_is_left_out(capsys) -> None:
    """Kept iterations differ from all iterations only where jobs lose some."""
    assert "comm_kept_mean" not in shown(capsys)["a job's time"]
    losing = shown(capsys, failures="meta-rsc", trace="tiny-poisson", racks=2, seed=1)
    assert "outages" in losing["failures"]
    names = [name for group in losing.values() for name in group]
    assert len(names) == len(set(names))
    assert "comm_time_share" not in names  # it weighs jobs differently from `communication`


def test_slowdowns_by_others_are_shown_only_under_contention(artist, tmp_path, capsys) -> None:
    sizes = ("--racks", "1", "--machines-per-rack", "2", "--backend", "none", "--policy", "fifo")
    ran = artist("sim", "--trace", "tiny-batch", *sizes, "--out", "run")
    assert "iteration_slowdown_mean" not in ran.stdout
    assert "finished last. It ran for 99 % of the makespan, as long as in isolation." in ran.stdout
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["iteration_slowdown_mean"]
    assert "iteration_slowdown_mean" in shown(capsys, contention="mean")["iterations"]


@pytest.mark.parametrize("settings", [{}, FAILING, {"contention": "mean"}])
def test_every_name_is_known_to_explain(capsys, settings: dict[str, object]) -> None:
    names = [name for group in shown(capsys, **settings).values() for name in group]
    assert len(names) > 30
    for name in names:
        explain([name])


def test_communication_is_one_figure_and_one_sentence() -> None:
    """Jobs hold 80 % of the cluster's GPU time and communicate in 20 %: a quarter of it."""
    summary = {"gpu_allocated_share": 0.8, "gpu_communicating_share": 0.2, "comm_time_share": 0.9}
    assert communication_sentence(summary) == (
        "Jobs held 80.0 % of the cluster's GPU time. Of that, 25.0 % went into communication that "
        "computing does not hide, inside machines and between them. Of the time in which jobs "
        "computed or communicated, not weighted by GPUs, it is 90.0 % (comm_time_share)."
    )
    told = communication_sentence(summary, remote=True)
    assert "machines and between them, and reading tables from other regions. Of" in told


@pytest.mark.parametrize(
    ("fabric", "why"),
    [
        ("a100", "every uplink carries all that its GPUs can send at once (machine 1:1); --set "),
        ("leaf-spine", "no uplink was ever full (machine 1:1, rack 2:1)."),
    ],
)
def test_contention_without_effect_says_why(artist, fabric: str, why: str) -> None:
    asked = ("sim", "--trace", "tiny-batch", "--racks", "2", "--contention", "mean")
    assert (
        f"Jobs lost nothing to each other on links: {why}"
        in artist(*asked, "--fabric", fabric).stdout
    )


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ((), "(machine); --set fabric.rack.oversubscription=1 states one."),
        (("--set", "fabric.rack.oversubscription=1"), "(machine, rack)."),
    ],
)
def test_a_table_of_pairs_without_effect_says_where_they_could_have_met(
    artist, tmp_path: Path, more: tuple[str, ...], told: str
) -> None:
    (tmp_path / "pairs.csv").write_text("model,beside,slowdown\nvgg11,vgg11,1\n")
    (tmp_path / "one.csv").write_text(
        "job_id,arrival_s,gpus,model,iterations,compute_s\na,0,4,vgg11,10,1\n"
    )
    asked = ("sim", "--trace", "one.csv", "--racks", "2", "--contention", "table:pairs.csv")
    words = "no two that the table slows met on an uplink that fabric a100 states"
    assert f"{words} {told}" in artist(*asked, "--fabric", "a100", *more).stdout


def test_mean_waits_of_tenants_are_listed_longest_first() -> None:
    waits_s = [3600.0, 7200.0, 0.0, 0.0]
    tenants = {"tenant": ["a", "b", "c", "cancelled"], "queue_delay_mean_s": waits_s}
    assert tenants_sentence(tenants, {"tenant": ["a", "b", "c", "c"]}) == (
        "Mean wait of a job by tenant: b 120 min, a 60 min, c 0 min."
    )
    many = {"tenant": [f"t{i}" for i in range(10)]}
    waits_s = [60.0 * (10 - i) for i in range(10)]
    told = tenants_sentence({**many, "queue_delay_mean_s": waits_s}, many)
    assert told.endswith(" and 2 other tenants less.")


def test_without_jobs_of_tenants_no_mean_wait_is_listed() -> None:
    idle = {"tenant": ["a"], "queue_delay_mean_s": [0.0]}
    assert tenants_sentence(idle, {"tenant": []}) == ""


@pytest.mark.parametrize(
    ("tenants", "words"),
    [
        (("", ""), "No job belongs to a tenant with a quota; --columns tenant=COLUMN names the "),
        (("a", ""), "1 of 2 jobs belongs to no tenant, which counts as above quota; fill in the "),
        (("a", "a"), ""),
    ],
)
@pytest.mark.parametrize("command", ["sim", "compare"])
def test_jobs_without_a_tenant_are_mentioned_where_quotas_are(
    artist, tmp_path, command: str, tenants: tuple[str, str], words: str
) -> None:
    (tmp_path / "t.csv").write_text(
        "job_id,num_gpus,submit_time,duration,model,tenant\n"
        f"x,8,0,60,resnet50,{tenants[0]}\ny,8,0,60,resnet50,{tenants[1]}\n"
    )
    policy = {"sim": ("--policy", "quota(fifo)"), "compare": ("--policies", "fifo,quota(fifo)")}
    asked = ("--trace", "t.csv", "--racks", "1", "--set", "tenants={a: 8}", *policy[command])
    ran = artist(
        command, *asked, *(("--permutations", "2") if command == "compare" else ()), code=0
    )
    told = [
        line for line in ran.stdout.splitlines() if "to a tenant" in line or "no tenant" in line
    ]
    plain = artist("sim", *asked[:-2], "--policy", "fifo").stdout
    assert "above quota" not in plain
    assert not words or words.partition(", which")[0] in plain
    assert len(told) == bool(words)
    assert not words or told[0].startswith(words)


def test_each_region_says_what_it_ran(artist, tmp_path) -> None:
    (tmp_path / "two.yaml").write_text(
        "name: two\nsummary: two regions\nfabric: hgx-h100\nlevels: [region, rack, machine]\n"
        "wide_area: {bandwidth: 100Gbit/s, latency: 2ms, source: a guess}\ntree:\n"
        "  - {name: north, rack: {count: 1, machine: {count: 1, gpus: 8, kind: h100}}}\n"
        "  - {name: south, rack: {count: 1, machine: {count: 1, gpus: 8, kind: h100}}}\n"
    )
    (tmp_path / "t.csv").write_text(
        "job_id,num_gpus,submit_time,duration,model\n"
        "x,8,0,3600,resnet50\ny,8,0,7200,resnet50\nz,8,0,60,resnet50\n"
    )
    asked = ("sim", "--trace", "t.csv", "--policy", "fifo")
    told = artist(*asked, "--cluster", "two.yaml").stdout
    assert "Jobs by region: north ran 2 (mean wait 30" in told
    assert ", south ran 1 (mean wait 0 min)." in told
    assert "by region" not in artist(*asked, "--racks", "2").stdout


def test_what_jobs_lose_is_a_share_of_each_ones_time_not_of_all() -> None:
    summary = {"contention": "mean", "contention_lost_job_h": 1e-5}
    summary |= {"contention_slowdown_mean": 1e-6, "contention_slowdown_p95": 2e-6}
    assert contention_sentence(summary, Scenario()) == (
        "Jobs lost less than 1 s in all to other jobs on links or to their own full uplinks; each "
        "ran less than 0.005 % longer, on average and at the 95th percentile of jobs "
        "(contention mean)."
    )
    assert "lost 36 s in all" in contention_sentence(
        {**summary, "contention_lost_job_h": 0.01}, Scenario()
    )
    some = {**summary, "contention_lost_job_h": 0.001, "contention_slowdown_mean": 0.0005}
    assert contention_sentence(some, Scenario()).startswith("Jobs lost 3.6 s in all to other jobs")
    more = {**summary, "contention_lost_job_h": 2.5, "contention_slowdown_p95": 0.02}
    assert contention_sentence(more, Scenario()).startswith(
        "Jobs lost 2.500 job-hours to other jobs on links or to their own full uplinks; each ran "
        "0.00 % longer on average, 2.00"
    )


def test_the_interval_that_auto_chooses_is_shown() -> None:
    # Each machine of meta-rsc fails 6.5 times in 1,000 days, and jobs lie on one or two.
    settings = {"racks": 1, "trace": "tiny-batch", "jobs": 3, "failures": "meta-rsc"}
    scenario = Scenario.model_validate(
        {**settings, "checkpoint": {"interval_s": "auto", "cost_s": 300}}
    )
    told = chosen_intervals_sentence(scenario, simulate(scenario).summary)
    two, one = (time_text(daly_interval_s(300.0, 1000 * 86_400 / 6.5 / n)) for n in (2, 1))
    assert told == (
        f"Checkpoints (auto): every {two.removesuffix(' h')} to {one} of work, by the failures of "
        "a job's GPUs."
    )
    made = compare(scenario, ["fifo", "las"], seeds=1, permutations=1)
    least_s, most_s = made.intervals_s["las"]
    assert told.startswith(f"Checkpoints (auto): {intervals_words(least_s, most_s)}, ")
    hourly = Scenario.model_validate({**settings, "checkpoint": {"cost_s": 300}})
    assert chosen_intervals_sentence(hourly, {}) == ""


def test_planned_outages_alone_call_for_no_checkpoints(tmp_path) -> None:
    # The machine stops its job, so it would be false that no failure hits one.
    (tmp_path / "planned.csv").write_text("unit,from,until\nmachine 0,100,200\n")
    scenario = Scenario.model_validate(
        {
            "racks": 1,
            "trace": "tiny-batch",
            "jobs": 3,
            "backend": "none",
            "policy": "fifo",
            "failures": str(tmp_path / "planned.csv"),
            "checkpoint": {"interval_s": "auto", "cost_s": 300},
        }
    )
    summary = simulate(scenario).summary
    assert summary["failures"] == 1
    told = chosen_intervals_sentence(scenario, summary)
    assert told == "Checkpoints (auto): none, since nothing fails at random."


def test_auto_is_not_mentioned_where_jobs_state_their_intervals(tmp_path) -> None:
    (tmp_path / "own.csv").write_text(
        "job_id,arrival_s,gpus,model,iterations,compute_s,checkpoint_interval_s,checkpoint_cost_s\n"
        "a,0,8,resnet50,1000,1,50,5\n"
    )
    scenario = Scenario.model_validate(
        {
            "racks": 1,
            "trace": str(tmp_path / "own.csv"),
            "backend": "none",
            "failures": "meta-rsc",
            "checkpoint": {"interval_s": "auto", "cost_s": 300},
        }
    )
    summary = simulate(scenario).summary
    assert summary["checkpoint_gpu_s"] == 8 * 20 * 5
    assert chosen_intervals_sentence(scenario, summary) == ""


def test_commands_say_where_interference_changes_nothing(artist) -> None:
    told = "interference=h200 changes nothing: under las no jobs share a GPU,"
    asked = ("sim", "--trace", "tiny-poisson", "--racks", "1", "--policy", "las")
    assert told in artist(*asked, "--set", "interference=h200").stdout
    assert "interference" not in artist(*asked).stdout


def test_commands_say_where_the_length_of_leases_changes_nothing(artist) -> None:
    asked = ("--trace", "tiny-poisson", "--racks", "1", "--set", "policy.lease_s=60")
    told = "policy.lease_s changes nothing under fifo, which has no leases."
    assert told in artist("sim", *asked, "--policy", "fifo").stdout
    assert "changes nothing" not in artist("sim", *asked, "--policy", "las").stdout
    both = ("compare", "--policies", "fifo,las,srtf", "--permutations", "1")
    assert "under fifo and srtf, which have no leases." in artist(*both, *asked).stdout


def test_commands_say_who_shared_gpus(artist, tmp_path: Path) -> None:
    packing = ("--set", "policy.packing=true", "--set", "policy.quantum_s=600")
    shown = artist(
        "sim", "--policy", "gandiva", "--jobs", "60", "--racks", "1", *packing,
        "--set", "interference=h200", "--out", "run", code=0,
    )  # fmt: skip
    assert "Several jobs shared a GPU in" in shown.stdout
    rows = library.load(tmp_path / "run").tables["placements"]
    job, other = next(
        (name, beside[0])
        for name, beside in zip(rows["job_id"], rows["beside"], strict=True)
        if len(beside)
    )
    assert f" beside job {other}, tier" in artist("why", "run", job).stdout
    assert artist("report", "run", "--out", "page.html").returncode == 0


def test_little_gpu_time_is_not_rounded_to_nothing() -> None:
    # A minute of lost work on one GPU; 1e-9 GPU-s are a sum's rounding error.
    given = (60.0, 1e-9, 0.0, 2700.0, 3599.9, 3600.0, 36e6)
    told = [gpu_hours_text(value).removesuffix(" GPU-h") for value in given]
    assert told == ["0.0167", "0", "0", "0.75", "1.0", "1.0", "10,000.0"]
