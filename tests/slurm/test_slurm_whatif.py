"""Are changes of a recorded Slurm compared with a simulation of the unchanged one?"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recordings import SLURM, needs_slurm
from test_slurm_replay import SACCT, folder
from typer.testing import CliRunner

from artist.cli.main import application
from artist.cli.whatif_text import answer, as_json, page, table
from artist.errors import ConfigError
from artist.experiments.recorded.cluster_changes import resized, with_change
from artist.experiments.recorded.whatif import RecordedWhatIf, what_if
from artist.io.digests import pseudonym
from artist.results.statistics.compare_values import Verdict
from artist.slurm.cluster_import import cluster_document

ASSOC = """\
Cluster|Account|User|Share|GrpTRES|MaxJobs
mine|vision||3||
mine|vision|ann|1||
mine|vision|ben|1||
"""
PARTITIONS = "PartitionName=main Nodes=g[1-2] Default=YES PriorityTier=1\n"


def whole_folder(path: Path) -> Path:
    """Two machines; the second job waits for the first, which has both."""
    folder(path)
    (path / "assoc.txt").write_text(ASSOC)
    (path / "qos.txt").write_text("Name|Priority|Preempt\nhigh|100|\n")
    (path / "partitions.txt").write_text(PARTITIONS)
    enforced = "AccountingStorageEnforce = associations,qos,limits\n"
    config = path / "config.txt"
    config.write_text(config.read_text() + enforced)
    return path


def found(path: Path, *changes: str, **more: object) -> RecordedWhatIf:
    whole_folder(path)
    return what_if(path, path / "inputs", changes, keep_names=True, **more)  # type: ignore[arg-type]


def test_another_machine_ends_the_wait(tmp_path: Path) -> None:
    one = found(tmp_path, "machines=+1")
    assert one.present.waits_s.tolist() == [[0.5, 45.5]]
    # Backfill looks every 5 s, half a second after the first arrival.
    assert one.outcomes[0].waits_s.tolist() == [[0.5, 0.5]]
    first, second, third, fourth = answer(one)
    assert first == (
        "machines=+1: mean wait 0.5 s instead of 23 s, 98 % less; so in 1 of 1 phase of Slurm's "
        "cycles, but over 1 day only; 5 or more say how sure that is."
    )
    assert second.startswith(
        "No account or user waits longer, by more than chance, in every phase of Slurm's cycles;"
    )
    assert third == f"Trust: {one.replay.sentence()}."
    assert third.endswith(" lie in the envelope of 1 phase.")
    assert fourth == (
        "Chance: run times up to a millisecond shorter or longer, job by job, moved the mean wait "
        "by up to 0.5 s (2.2 %) in 5 simulations; a change of that size means nothing."
    )
    assert len(table(one)[2]) <= 12


def test_an_effect_of_chance_is_not_a_finding(tmp_path: Path) -> None:
    """The first job ends just as Slurm looks. Where it ends a millisecond later, Slurm is late.

    So does any change that lengthens runs a little.
    """
    one = found(tmp_path, "machines=+1")
    every = one.groups()[0]
    waits_s = [x.waits_s.tolist() for x in one.nudged]
    assert len(waits_s) == 5
    late = waits_s.index([[0.5, 46.5]])
    assert all(x in ([[0.5, 45.5]], [[0.5, 46.5]]) for x in waits_s)
    assert one.chance_s(every) == as_json(one)["moved_by_chance_s"] == 0.5
    moved = replace(one, outcomes=(one.nudged[late],))
    first, second, *_ = answer(moved)
    assert first.endswith("mean wait 23.5 s instead of 23 s, 2.2 % more; no more than chance.")
    assert second.startswith("No account or user waits longer, by more than chance,")
    assert moved.losses(moved.outcomes[0]) == []


def test_waits_of_all_groups_have_one_unit(tmp_path: Path) -> None:
    """One job waits for two hours, the other for half a second."""
    whole_folder(tmp_path)
    (tmp_path / "sacct.txt").write_text(SACCT.replace("T03:00:50", "T05:00:50"))
    one = what_if(tmp_path, tmp_path / "in", ["machines=+0"], keep_names=True)
    units = [str(row[2]).partition(" ")[2] for row in table(one)[2][:-1]]
    assert {*units} == {"s"}


def test_jobs_that_ask_for_a_kind_of_gpus_get_it_under_any_policy(tmp_path: Path) -> None:
    """The second job asks for the kind of the machine that the first does not hold."""
    whole_folder(tmp_path)
    nodes = (tmp_path / "nodes.txt").read_text().replace("gpu:8", "gpu:a100:8", 1)
    (tmp_path / "nodes.txt").write_text(nodes.replace("gpu:8", "gpu:h100:8"))
    head, first, step, second = SACCT.splitlines()
    first = first.replace("gres/gpu=16", "gres/gpu=8").replace("00:01:00|2", "00:01:00|1")
    second = second.replace("gres/gpu=8|", "gres/gpu:a100=8,gres/gpu=8|", 1)
    (tmp_path / "sacct.txt").write_text("\n".join([head, first, step, second, ""]))
    changes = ["machines=+1", "policy=fifo"]
    one = what_if(tmp_path, tmp_path / "in", changes, keep_names=True)
    waits_s = [x.waits_s.tolist() for x in (one.present, *one.outcomes)]
    assert waits_s == [[[0.5, 45.5]], [[0.5, 45.5]], [[0.0, 45.0]]]


def test_another_policy_is_said_to_have_no_limits_and_partitions(tmp_path: Path) -> None:
    first = answer(found(tmp_path, "policy=fifo"))[0]
    without = "without Slurm's cycles, partitions, limits and priorities"
    assert first.startswith(f"policy=fifo ({without}): ")


def test_machines_may_be_added_to_a_partition_and_are_named(tmp_path: Path) -> None:
    changes = (
        "machines=+1",
        "partition.main.machines=+1",
        "partition.main.machines=x2 policy=fifo",
    )
    one = found(tmp_path, *changes)
    names = [re.fullmatch(r"(.*) adds (.*) in (.*)", x) for x in one.assumed[:3]]
    assert [x and x[1] for x in names] == list(changes)
    assert one.outcomes[1].waits_s.tolist() == one.outcomes[0].waits_s.tolist()
    whole = {"name": "x", "nodes": "a[1-2]"}, {"name": "y", "nodes": "b1"}
    machines = [{"name": name, "gpus": 8} for name in ("a1", "a2", "b1")]
    document = {
        "levels": ["rack", "machine"],
        "tree": [{"name": "r1", "machine": machines[:1]}, {"name": "r2", "machine": machines[1:]}],
        "slurm": {"machines": [], "partitions": list(whole), "reservations": []},
    }
    more = with_change(document, "partition.x.machines", "+2", "here")
    assert [x["name"] for x in more["tree"][1]["machine"]] == ["a2", "a3", "a4", "b1"]
    assert [x["nodes"] for x in more["slurm"]["partitions"]] == ["a[1-4]", "b1"]
    assert resized(document, more) == "adds a[3-4] in x"
    assert resized(document, with_change(document, "machines", "+1", "here")) == "adds b2 in y"
    less = with_change(more, "partition.x.machines", "2", "here")
    assert less == document and resized(more, less) == "leaves out a[3-4]"
    assert resized(less, document) == ""
    with pytest.raises(ConfigError, match="at most 0 can be left out"):
        with_change(document, "partition.x.machines", "1", "here")


def test_what_would_have_machines_without_gpus_alone_is_left_out_too(tmp_path: Path) -> None:
    whole_folder(tmp_path)
    nodes = (tmp_path / "nodes.txt").read_text()
    (tmp_path / "nodes.txt").write_text(f"{nodes}\nNodeName=c1 CPUTot=9 Gres=(null) State=IDLE\n")
    (tmp_path / "reservations.txt").write_text("".join(
        f"ReservationName={name} StartTime=2026-01-02T03:00:00 EndTime=2026-01-02T04:00:00 "
        f"Nodes={names}\n" for name, names in (("one", "g2,c1"), ("all", "g[1-2],c1"))
    ))  # fmt: skip
    less = with_change(cluster_document(tmp_path), "machines", "1", "here")["slurm"]
    assert [(x["name"], x["nodes"]) for x in less["reservations"]] == [("all", "g1,c1")]
    (tmp_path / "partitions.txt").write_text(f"{PARTITIONS}PartitionName=last Nodes=g2,c1\n")
    with pytest.raises(ConfigError, match="partition last would have no machine"):
        with_change(cluster_document(tmp_path), "machines", "1", "here")


def test_gpu_hours_are_those_that_count_until_the_last_job_arrives(tmp_path: Path) -> None:
    one = found(tmp_path, "machines=+1")
    # Until second 5 the first job has run for 4.5 s on 16 GPUs, and nothing else.
    assert one.gpu_hours(one.present) == pytest.approx((16 * 4.5 / 3600, 0.0))
    assert one.gpu_hours(one.outcomes[0]) == one.gpu_hours(one.present)


@pytest.mark.parametrize(
    "change",
    [
        "machines=+0", "machines=2", "config.SchedulerParameters.bf_interval=5",
        "policy.kill=false", "account.vision.shares=x1", "qos.high.priority=100",
    ],
)  # fmt: skip
def test_a_change_that_changes_nothing_gives_no_difference_at_all(
    tmp_path: Path, change: str
) -> None:
    one = found(tmp_path, change, phases=2)
    assert np.array_equal(one.present.waits_s, one.outcomes[0].waits_s)
    compared = one.compared(one.outcomes[0], one.groups()[0])
    assert (compared.difference, compared.verdict) == (0.0, Verdict.IDENTICAL)
    assert "the same waits" in answer(one)[0]


def test_a_user_may_be_named_without_keep_names(tmp_path: Path) -> None:
    document = cluster_document(whole_folder(tmp_path))
    users = {user for one in document["slurm"]["accounts"] for user in one["users"]}
    assert "ann" not in users and pseudonym("ann") in users
    for name in ("ann", pseudonym("ann")):
        changed = with_change(document, f"user.{name}.shares", "7", "here")["slurm"]["accounts"]
        assert 7 in [one["users"].get(pseudonym("ann")) for one in changed]


def test_users_who_are_worse_off_are_named(tmp_path: Path) -> None:
    text = SACCT + (
        "3|eve|vision|2026-01-02T03:00:06|2026-01-02T03:01:20|2026-01-02T03:02:00|COMPLETED|"
        "gres/gpu=8|gres/gpu=8|g2|00:01:00|1|SchedBackfill|Priority\n"
    )
    whole_folder(tmp_path)
    (tmp_path / "sacct.txt").write_text(text)
    one = what_if(tmp_path, tmp_path / "in", ["account.vision.MaxJobs=1"], keep_names=True)
    assert one.losses(one.outcomes[0]) == []  # MaxJobs is one of users
    one = what_if(tmp_path, tmp_path / "in", ["account.vision.GrpJobs=1"], keep_names=True)
    losses = one.losses(one.outcomes[0])
    assert [(x.who, x.jobs) for x in losses] == [("account vision", 3), ("eve", 1)]
    # eve waits for ben, who runs for 40 s.
    assert losses[1].changed_s == pytest.approx(losses[1].present_s + 40, abs=5)
    assert "Worse off: account vision (+" in answer(one)[1]


def test_jobs_that_a_change_cancels_are_counted_and_in_no_mean(tmp_path: Path) -> None:
    """The first job runs on both machines when one of a higher QOS comes, and is requeued."""
    whole_folder(tmp_path)
    (tmp_path / "qos.txt").write_text("Name|Priority|Preempt\nlow|1|\nhigh|100|low\n")
    head, first, _, second = SACCT.splitlines()
    lines = [f"{head}|QOS", f"{first}|low", f"{second}|high"]
    (tmp_path / "sacct.txt").write_text("\n".join(lines) + "\n")
    with (tmp_path / "config.txt").open("a") as file:
        file.write("PreemptType = preempt/qos\nPreemptMode = REQUEUE\n")
    one = what_if(tmp_path, tmp_path / "in", ["config.PreemptMode=CANCEL"], keep_names=True)
    (cancelling,) = one.outcomes
    assert (one.present.cancelled.tolist(), cancelling.cancelled.tolist()) == (
        [[False, False]],
        [[True, False]],
    )
    assert [(x.name, int(x.jobs.sum())) for x in one.groups()] == [
        ("jobs that finish", 1), ("8 GPUs", 1), ("account vision", 1),
    ]  # fmt: skip
    compared = one.compared(cancelling, one.groups()[0])
    assert compared.baseline == compared.other  # that of ben, whom nobody hinders
    assert answer(one)[1].startswith(
        "No account or user waits longer, by more than chance, in every phase of Slurm's cycles "
        "(of jobs that finish);"
    )
    assert answer(one)[2] == (
        "Cancelled per phase: 0 at present and 1 under config.PreemptMode=CANCEL; waits are of the "
        "1 job that finishes in all cases."
    )
    # What ann's job did until ben's came is lost in both, and her second run only in the present.
    assert cancelling.gpu_hours(1e6)[0] == pytest.approx(8 * 40 / 3600)
    assert one.present.gpu_hours(1e6)[0] == pytest.approx((8 * 40 + 16 * 50) / 3600)
    assert cancelling.gpu_hours(1e6)[1] == one.present.gpu_hours(1e6)[1] > 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("racks=+2", "the cluster has no racks, since topology.txt names no switches"),
        (
            "machines=-1",
            "expected .2 or a number from 1 to 200; it has 2, so machines=1 leaves 1 out",
        ),
        ("machines=x1.3", "of 2, that is not a whole number"),
        ("rack=+2", "'rack' cannot be changed .did you mean 'racks'.*; expected racks, machines"),
        ("machnes=+1", r"'machnes' cannot be changed .did you mean 'machines'"),
        ("machines", "expected KEY=VALUE"),
        ("fabric=h100", "unknown on which links"),
        ("policy=daly", "did you mean 'dally'"),
        ("policy=fifo qos.high.priority=1", "only policy slurm reads qos.high.priority"),
        ("qos.hihg.priority=1", "did you mean 'high'"),
        ("qos.high.GrpTRES=gpu=8", "'gpu=8' is not a limit here.* or none to lift it"),
        ("qos.high.priority=high", "expected an integer"),
        ("qos.high.priority=-3", "expected 0 or more"),
        ("account.vision.shares=-1", "expected 0 or more"),
        ("user.ann.shares=-1", "expected 0 or more"),
        ("config.SchedulerParameters.bf_interval=-1", "does not model SchedulerP.*bf_interval=-1"),
        ("qos.high.colour=1", "'colour' cannot be changed"),
        ("user.eva.shares=2", "did you mean|known: "),
        ("partition.main.max_time_s=60", "'max_time_s' cannot be changed"),
        ("config.PreemptMode=WITHIN", "does not model PreemptMode=WITHIN"),
        ("config.SchedulerTimeSlice=5", "reads no such setting"),
        ("qos.high.GrpJobs=4 config.AccountingStorageEnforce=qos", "limits are not in force"),
        ("config.SchedulerParameters.bf_interval=0", "its default in place of 0; use 1 to 10,800"),
        ("config.SchedulerParameters.bf_interval=soon", "bf_interval is 'soon'"),
        ("account.vision.GrpTRES=gres/gpu=8", "job '1' could never start: it takes 16 gres/gpu"),
        ("machines=1", "job '1' had 16 GPUs, and the cluster would have 8; leave fewer machines"),
    ],
)
def test_what_cannot_be_changed_ends_in_one_sentence(
    tmp_path: Path, change: str, says: str
) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        found(tmp_path, change)
    assert str(caught.value).startswith(f"--change '{change.split()[0][:3]}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "then"),
    [
        ("gres/gpu=20", "cpu=100,mem=1T,gres/gpu=20"),
        ("GRES/GPU=x2,node=3", "cpu=100,mem=1T,gres/gpu=20,node=3"),
        ("cpu=-1", "mem=1T,gres/gpu=10"),
        ("none", None),
    ],
)
def test_of_the_resources_of_a_limit_those_named_change(value: str, then: str | None) -> None:
    """As sacctmgr did: GrpTRES=gres/gpu=20 left cpu=100 as it was, and -1 lifted one."""
    limits = {"GrpTRES": "cpu=100,mem=1T,gres/gpu=10"}
    document = {"slurm": {"qos": [{"name": "q", "limits": limits}]}}
    changed = with_change(document, "qos.q.GrpTRES", value, "here")
    assert changed["slurm"]["qos"][0]["limits"].get("GrpTRES") == then
    alone = {"slurm": {"qos": [{"name": "q", "limits": {"GrpTRES": "cpu=1"}}]}}
    assert with_change(alone, "qos.q.GrpTRES", "cpu=-1", "here")["slurm"]["qos"][0]["limits"] == {}


def test_users_inherit_the_number_of_jobs_of_their_account() -> None:
    """Unless they have their own; in accounts below too."""
    accounts = [
        {"name": "all", "users": {}, "limits": {"MaxJobs": "9"}},
        {"name": "v", "users": {"ann": 1, "ben": 1}, "parent": "all", "limits": {"MaxJobs": "9"},
         "user_limits": {"ann": {"MaxJobs": "9"}, "ben": {"MaxJobs": "2"}}},
        {"name": "w", "users": {"eve": 1}, "parent": "all", "limits": {"MaxJobs": "3"},
         "user_limits": {"eve": {"MaxJobs": "3"}}},
        {"name": "x", "users": {"ann": 1}},
    ]  # fmt: skip
    document = {"slurm": {"accounts": accounts}}

    def limits(key: str, value: str) -> dict[str, str | None]:
        changed = with_change(document, key, value, "here")["slurm"]["accounts"]
        return {
            f"{x['name']} {user}": x.get("user_limits", {}).get(user, {}).get("MaxJobs")
            for x in changed
            for user in x["users"]
        }

    assert limits("account.all.MaxJobs", "4") == {
        "v ann": "4", "v ben": "2", "w eve": "3", "x ann": None,
    }  # fmt: skip
    assert limits("account.v.MaxJobs", "x2")["v ann"] == "18"
    assert limits("account.all.MaxJobs", "none")["v ann"] is None
    assert limits("user.ann.MaxJobs", "none")["v ann"] == "none"
    assert limits("account.x.MaxJobs", "1")["x ann"] == "1"
    assert limits("account.all.MaxJobs", "9") == limits("account.all.GrpJobs", "7")


@pytest.mark.parametrize(
    ("key", "amount"), [("qos.high.GrpTRES", "gres/gpu=8"), ("account.vision.GrpJobs", "4")]
)
def test_none_lifts_a_limit(tmp_path: Path, key: str, amount: str) -> None:
    document = cluster_document(whole_folder(tmp_path), keep_names=True)
    limited = with_change(document, key, amount, "here")
    for lifted in ("none", "None", ""):
        changed = with_change(limited, key, lifted, "here")
        assert changed == with_change(document, key, "", "here") != limited


def test_racks_are_copied_with_their_machines_and_partitions(tmp_path: Path) -> None:
    whole_folder(tmp_path)
    (tmp_path / "topology.txt").write_text(
        "SwitchName=s1 Nodes=g1\nSwitchName=s2 Nodes=g2\nSwitchName=top Switches=s[1-2]\n"
    )
    one = what_if(tmp_path, tmp_path / "in", ["racks=+2"])
    assert one.outcomes[0].results[0].summary["gpus"] == 32
    assert "g[1-4]" in (tmp_path / "in" / "cluster-1.yaml").read_text()


def test_the_page_and_the_command(tmp_path: Path) -> None:
    slurm = tmp_path / "slurm"
    slurm.mkdir()
    whole_folder(slurm)
    arguments = ["whatif", str(slurm), "--change", "machines=+1", "--change", "policy=fifo",
                 "--phases", "1", "--out", str(tmp_path / "page.md")]  # fmt: skip
    runner, application_ = CliRunner(), application(["whatif", "doctor"])
    answered = runner.invoke(application_, [*arguments, "--format", "json"])
    assert answered.exit_code == 0, answered.output
    facts = json.loads(answered.stdout)
    assert [x["change"] for x in facts["changes"]] == ["machines=+1", "policy=fifo"]
    assert facts["changes"][0]["waits"][0]["low_s"] is None
    text = (tmp_path / "page.md").read_text()
    assert all(line in text for line in facts["answer"])
    again = runner.invoke(application_, arguments)
    assert "--overwrite" in str(again.exception)
    printed = runner.invoke(application_, [*arguments, "--overwrite"])
    assert printed.stdout.splitlines()[2].startswith("Trust: ")
    assert (tmp_path / "page.md").read_text() == text


def test_a_comparison_repeats_to_the_byte(tmp_path: Path) -> None:
    pages = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        pages.append(page(found(tmp_path / name, "machines=+1", phases=2), "slurm"))
    assert pages[0] == pages[1]


@needs_slurm
def test_more_machines_help_a_recorded_cluster(tmp_path: Path) -> None:
    one = what_if(SLURM / "shares", tmp_path, ["machines=+8"])
    compared = one.compared(one.outcomes[0], one.groups()[0])
    assert compared.other < 0.5 * compared.baseline


def test_five_days_and_more_are_replicates(tmp_path: Path) -> None:
    whole_folder(tmp_path)
    header, *jobs = SACCT.splitlines()
    days = [
        f"{day}{line}".replace("2026-01-02", f"2026-01-0{day}")
        for day in range(1, 7)
        for line in (jobs[0], jobs[2])
    ]
    (tmp_path / "sacct.txt").write_text("\n".join([header, *days]) + "\n")
    one = what_if(tmp_path, tmp_path / "in", ["machines=+1"])
    compared = one.compared(one.outcomes[0], one.groups()[0])
    assert (compared.blocks, compared.verdict) == (6, Verdict.LESS)
    assert compared.low <= compared.difference <= compared.high < 0
    assert 0 <= compared.ratio_low <= compared.other / compared.baseline <= compared.ratio_high < 1
    assert "surely less over 6 days" in answer(one)[0]
    assert "days are drawn with replacement" in table(one)[0]
