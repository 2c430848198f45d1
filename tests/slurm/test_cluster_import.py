"""Does what Slurm prints become a cluster file, and is what has no place in it listed?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recordings import SLURM, needs_slurm
from support import job

from artist.cluster.cluster_file import Cluster, cluster_from
from artist.cluster.tree import ClusterTree
from artist.engine.job_state import JobState
from artist.errors import ConfigError
from artist.experiments.recorded.cluster_changes import with_change
from artist.io.digests import pseudonym
from artist.policies.slurm.machines import Machines
from artist.policies.slurm.priority import Priorities
from artist.policies.slurm.request import RequestReader
from artist.policies.slurm.settings import Weights, settings_of
from artist.slurm.cluster_import import cluster_document
from artist.slurm.facts import SlurmFacts
from artist.slurm.texts import host_list, hosts, records

TEXTS = {
    "nodes": """\
NodeName=g1 Arch=x86_64 CoresPerSocket=64
   Gres=gpu:a100:8(S:0-1) OS=Linux 6.1 #1 SMP
   State=IDLE Weight=1 Owner=N/A

NodeName=g2 Arch=x86_64 CoresPerSocket=64
   Gres=gpu:h100:4 OS=Linux 6.1 #1 SMP
   State=DOWN*+DRAIN Weight=5 Owner=N/A

NodeName=cpu1 Gres=(null) State=IDLE
""",
    "topology": """\
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=g[1,3]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=g2,cpu1
SwitchName=spine Level=1 LinkSpeed=1 Nodes=g[1-3],cpu1 Switches=leaf[1-2]
""",
    "partitions": """\
PartitionName=long
   AllowGroups=ALL AllowAccounts=vision QoS=N/A Default=YES
   MaxTime=2-00:00:00 Nodes=g[1-2] PriorityJobFactor=10 PriorityTier=3 PreemptMode=REQUEUE
PartitionName=any MaxTime=UNLIMITED Nodes=g1 Default=NO PowerDownOnIdle=YES QoS=low
""",
    "qos": "Name|Priority|Preempt|GrpTRES|GrpSubmit\nhigh|100|low|gres/gpu=16|9\nlow|10|||\n",
    "assoc": """\
Cluster|Account|User|Share|ParentName|MaxJobs
mine|root||1||
mine|vision||50|root|
mine|vision|ann|2||5
mine|vision|ben|parent||
other|vision|eve|7||
""",
    "config": "Configuration data as of now\nClusterName = mine\nPriorityWeightAge = 1000\n",
    "reservations": """\
ReservationName=night StartTime=2026-01-02T03:04:05 EndTime=2026-01-02T05:04:05
   Nodes=g[1-2] Users=root Licenses=matlab:2
""",
}


def put(folder: Path, **texts: str) -> Path:
    for name, text in {**TEXTS, **texts}.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def imported(folder: Path, **texts: str) -> dict[str, Any]:
    document = cluster_document(put(folder, **texts), keep_names=True)
    cluster_from(document, "here")
    return document


def tree_of(cluster: Cluster) -> ClusterTree:
    return cluster.tree(("machine", "rack", "network"), None)


def test_a_text_of_six_thousand_machines_is_read(tmp_path: Path) -> None:
    # `scontrol show nodes` prints some 700 bytes of each.
    of_one = f"   CPUTot=64 Gres=gpu:4 State=IDLE Comment={'x' * 700}\n\n"
    (tmp_path / "nodes.txt").write_text("".join(f"NodeName=n{x}\n{of_one}" for x in range(6000)))
    cluster = cluster_from(cluster_document(tmp_path, keep_names=True), "texts")
    assert len(cluster.names["machine"]) == 6000


def test_leaf_switches_become_racks_of_machines(tmp_path: Path) -> None:
    document = imported(tmp_path)
    assert (document["name"], document["levels"]) == ("mine", ["rack", "machine"])
    assert document["tree"] == [
        {"name": "leaf1", "machine": [{"name": "g1", "gpus": 8, "kind": "a100"}]},
        {"name": "leaf2", "machine": [{"name": "g2", "gpus": 4, "kind": "h100"}]},
    ]


def test_partitions_qos_accounts_and_settings_are_kept(tmp_path: Path) -> None:
    slurm = imported(tmp_path)["slurm"]
    long, any_ = slurm["partitions"]
    assert ("qos" not in long, any_["qos"]) == (True, "low")
    assert (long["max_time_s"], any_["max_time_s"]) == (172800.0, None)
    assert (long["priority_tier"], long["priority_job_factor"], long["default"]) == (3, 10, True)
    assert (long["preempt_mode"], any_["preempt_mode"]) == ("REQUEUE", "OFF")
    assert [(x["name"], x["priority"], x["preempts"]) for x in slurm["qos"]] == [
        ("high", 100, ["low"]), ("low", 10, []),
    ]  # fmt: skip
    assert slurm["accounts"] == [
        {"name": "root", "shares": 1, "users": {}},
        {
            "name": "vision",
            "shares": 50,
            "parent": "root",
            "users": {"ann": 2, "ben": "parent"},
            "user_limits": {"ann": {"MaxJobs": "5"}},
        },
    ]
    assert slurm["qos"][0]["limits"] == {"GrpTRES": "gres/gpu=16"}
    assert slurm["settings"] == {"PriorityWeightAge": "1000"}


def test_what_has_no_place_is_listed(tmp_path: Path) -> None:
    assert sorted(imported(tmp_path)["slurm"]["not_understood"]) == [
        "QOS high: GrpSubmit=9",
        "a machine without GPUs is left out",
        "machine g2 is DOWN*+DRAIN, and counts as in service",
        "partition any: PowerDownOnIdle=YES",
        "partition long: AllowAccounts=vision",
        "reservation night: Licenses=matlab:2",
    ]


def test_machines_and_reservations_are_kept(tmp_path: Path) -> None:
    nodes = TEXTS["nodes"].replace("Gres=gpu:a100", "CPUTot=64 Gres=gpu:a100")
    slurm = imported(tmp_path, nodes=nodes)["slurm"]
    assert slurm["machines"] == [
        {"nodes": "g1", "cpus": 64, "weight": 1}, {"nodes": "g2", "cpus": 0, "weight": 5},
    ]  # fmt: skip
    assert slurm["reservations"] == [
        {
            "name": "night",
            "nodes": "g[1-2]",
            "starts_at": "2026-01-02T03:04:05",
            "ends_at": "2026-01-02T05:04:05",
        }
    ]


def test_what_has_no_gpus_is_left_out(tmp_path: Path) -> None:
    """Partitions without any keep their factor: the largest one scales those of all."""
    slices = "gpu:a100:8(S:0-1),gpu:a100_1g.5gb:14,gpu:a100_3g.20gb:4"
    nodes = TEXTS["nodes"].replace("gpu:a100:8(S:0-1)", slices)
    assert nodes != TEXTS["nodes"]
    partitions = TEXTS["partitions"] + "PartitionName=cpu Nodes=cpu1 PriorityJobFactor=40\n"
    partitions += "PartitionName=empty Nodes=(null)\n"
    reservations = TEXTS["reservations"].replace("g[1-2]", "cpu1")
    reservations += "ReservationName=lic StartTime=now EndTime=then Nodes=(null) Licenses=x\n"
    document = imported(
        tmp_path,
        nodes=nodes,
        partitions=partitions,
        reservations=reservations,
        topology="SwitchName=leaf1 Level=0 Nodes=g[1-2],cpu1\n",
    )
    slurm = document["slurm"]
    assert document["tree"][0]["machine"][0] == {"name": "g1", "gpus": 8, "kind": "a100"}
    assert {
        "machine g1: Gres=gpu:a100_1g.5gb:14, slices of GPUs, are left out",
        "machine g1: Gres=gpu:a100_3g.20gb:4, slices of GPUs, are left out",
    } <= {*slurm["not_understood"]}
    nodes_of = {x["name"]: x["nodes"] for x in slurm["partitions"]}
    assert nodes_of == {"long": "g[1-2]", "any": "g1", "cpu": "", "empty": ""}
    assert slurm["reservations"] == []
    cluster = cluster_from(document, "here")
    facts = cluster.file.slurm
    assert facts is not None
    machines = Machines(tree_of(cluster), cluster.names["machine"], facts)
    assert (list(machines.partitions), machines.default) == (["long", "any"], "long")
    settings = replace(settings_of(facts), weights=Weights(partition=1000))
    view = JobState(job("a", 8, hints={"hint_partition": "long"}), 0, 0)
    request = RequestReader(machines, {}).request(view)
    assert Priorities(settings, machines, facts).factors(request, 0)["partition"] == 250
    fewer = with_change(document, "partition.long.machines", "1", "here")
    assert [x["nodes"] for x in fewer["slurm"]["partitions"]] == ["g1", "g1", "", ""]
    with pytest.raises(ConfigError, match="it has no machines with GPUs"):
        with_change(document, "partition.cpu.machines", "+1", "here")


def test_what_later_versions_of_slurm_print_as_usual_is_not_listed(tmp_path: Path) -> None:
    nodes = TEXTS["nodes"].replace("DOWN*+DRAIN", "MIXED+PLANNED").replace("IDLE", "IDLE+CLOUD")
    usual = (
        "PartitionName=long ExclusiveTopo=NO NodeSets=ALL Nodes=g[1-2] ResumeTimeout=GLOBAL "
        "SuspendTimeout=GLOBAL SuspendTime=INFINITE PowerDownOnIdle=NO\n"
    )
    config = "ClusterName = mine\nTopologyPlugin = topology/flat\n"
    slurm = imported(tmp_path, nodes=nodes, partitions=usual, qos="Name|Priority\n", config=config,
                     reservations="")["slurm"]  # fmt: skip
    assert slurm["not_understood"] == ["a machine without GPUs is left out"]
    assert not settings_of(SlurmFacts(settings=slurm["settings"])).not_modelled


def test_cpus_that_are_kept_for_the_system_do_not_count(tmp_path: Path) -> None:
    nodes = TEXTS["nodes"].replace("Gres=gpu:a100", "CPUEfctv=62 CPUTot=64 Gres=gpu:a100")
    assert imported(tmp_path, nodes=nodes)["slurm"]["machines"][0]["cpus"] == 62


def test_memory_is_billed_by_its_unit(tmp_path: Path) -> None:
    weights = "CPU=1.0,Mem=0.25G,GRES/gpu=2.0,GRES/gpu:a100=3,License/x=0"
    partitions = f"PartitionName=long Nodes=g1 TRESBillingWeights={weights}\n"
    slurm = imported(tmp_path, partitions=partitions)["slurm"]
    (billing,) = (x["billing"] for x in slurm["partitions"])
    assert billing == {"cpu": 1, "mem": 0.25 / 1024, "gres/gpu": 2}
    named = [x for x in slurm["not_understood"] if "Billing" in x]
    assert named == ["partition long: TRESBillingWeights of gres/gpu:a100"]
    cluster = cluster_from({**imported(tmp_path, partitions=partitions)}, "here")
    facts = cluster.file.slurm
    assert facts is not None
    machines = Machines(tree_of(cluster), cluster.names["machine"], facts)
    hints = {"hint_partition": "long", "hint_cpus": 16}
    view = JobState(job("a", 8, memory_mib=64 * 1024, hints=hints), 0, 0)
    request = RequestReader(machines, {}).request(view)
    assert Priorities(settings_of(facts), machines, facts).billed(request) == 16 + 16 + 16
    with pytest.raises(ConfigError, match="TRESBillingWeights is 'Mem=G', expected weights"):
        imported(tmp_path, partitions="PartitionName=p Nodes=g1 TRESBillingWeights=Mem=G\n")


def test_a_slurm_without_reservations_says_so(tmp_path: Path) -> None:
    nothing = "No reservations in the system\n"
    assert not imported(tmp_path, reservations=nothing)["slurm"].get("reservations")


def test_host_lists_are_written_as_they_are_read() -> None:
    for text in ("n[08-10,12],login1", "a1", "gpu", "n[1-3],m[1-3],n9"):
        assert host_list(hosts(text, "here")) == text


def test_people_get_the_pseudonyms_that_traces_give_them(tmp_path: Path) -> None:
    (_, vision) = cluster_document(put(tmp_path))["slurm"]["accounts"]
    assert list(vision["users"]) == [pseudonym("ann"), pseudonym("ben")]


def test_nodes_alone_suffice(tmp_path: Path) -> None:
    (tmp_path / "nodes.txt").write_text(TEXTS["nodes"])
    document = cluster_document(tmp_path)
    assert (document["levels"], len(document["tree"])) == (["machine"], 2)
    assert cluster_from(document, "here").gpus == 12


def test_more_levels_of_switches(tmp_path: Path) -> None:
    topology = (
        "SwitchName=a Nodes=g1\nSwitchName=b Nodes=g2\nSwitchName=p Switches=a\n"
        "SwitchName=q Switches=b\nSwitchName=top Switches=p,q\n"
    )
    document = imported(tmp_path, topology=topology)
    assert document["levels"] == ["pod", "rack", "machine"]
    assert [unit["name"] for unit in document["tree"]] == ["p", "q"]


def test_machines_that_no_switch_joins(tmp_path: Path) -> None:
    document = imported(tmp_path, topology="SwitchName=a Nodes=g1\n")
    assert [unit["name"] for unit in document["tree"]] == ["a", "no-switch"]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({"nodes": "Something else\n"}, "nodes.txt:1: begins with 'Something', expected NodeName"),
        ({"nodes": "NodeName=a State=IDLE\n"}, "no node has GPUs"),
        ({"topology": "SwitchName=a Nodes=g[1-\n"}, "topology.txt:1: 'g[1-' is not a list of "
        "hosts"),
        ({"topology": "SwitchName=a Nodes=g[9-1]\n"}, "not a list of hosts"),
        ({"topology": "SwitchName=a Switches=b\nSwitchName=b Switches=a\n"}, "every switch is"),
        ({"topology": "SwitchName=t Switches=a\nSwitchName=a Switches=a\n"}, "inside itself"),
        ({"topology": "SwitchName=a Nodes=g1\nSwitchName=b Switches=c\nSwitchName=c Nodes=g2\n"},
         "levels deep"),
        ({"partitions": "PartitionName=p MaxTime=1:60:00\n"}, "minutes and seconds up to 59"),
        ({"partitions": "PartitionName=p MaxTime=soon\n"}, "partitions.txt:1: MaxTime is 'soon'"),
        ({"partitions": "PartitionName=p PriorityTier=-1\n"}, "PriorityTier is '-1'"),
        ({"qos": "Name|Preempt\nhigh|\n"}, "qos.txt:1: no column Priority"),
        ({"qos": "Name|Priority\nhigh\n"}, "qos.txt:2: 1 cells, expected 2"),
        ({"qos": ""}, "qos.txt:1: no column Name"),
        ({"assoc": "Account|User|Share\n|ann|1\n"}, "assoc.txt:2: no Account"),
        ({"assoc": "Account|User|Share\nvision|ann|many\n"}, "Share is 'many', expected a whole"),
    ],
)  # fmt: skip
def test_a_broken_text_is_named_with_its_line(tmp_path: Path, texts, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        imported(tmp_path, **texts)
    assert words in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_without_nodes_says_how_to_write_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"scontrol show nodes > nodes\.txt"):
        cluster_document(tmp_path)


def test_host_lists() -> None:
    assert hosts("n[08-10,12],login1", "here") == ["n08", "n09", "n10", "n12", "login1"]
    assert hosts("r[1-2]n[1-2]", "here") == ["r1n1", "r1n2", "r2n1", "r2n2"]
    assert hosts("", "here") == []


def test_values_may_have_spaces_and_records_one_line(tmp_path: Path) -> None:
    path = tmp_path / "nodes.txt"
    path.write_text("# a comment\nNodeName=a OS=Linux 6.1 #1 Reason=Not responding [root@now]\n")
    (record,) = records(path, "NodeName")
    assert record.values["OS"] == "Linux 6.1 #1"
    assert record.values["Reason"] == "Not responding [root@now]"
    assert record.place == f"{path}:2"


@needs_slurm
@pytest.mark.parametrize("session", ["fifo-backfill", "preemption", "shares", "topology"])
def test_recorded_clusters(session: str) -> None:
    document = cluster_document(SLURM / session, keep_names=True)
    cluster = cluster_from(document, session)
    assert (cluster.gpus, len(cluster.kinds), set(cluster.kinds)) == (128, 16, {"a100"})
    shares = {x["name"]: (x["shares"], x["users"]) for x in document["slurm"]["accounts"]}
    assert shares["language"] == (30, {"u3": 2, "u4": 1})
    assert len(document["levels"]) == (2 if session == "topology" else 1)
    slurm = document["slurm"]
    assert [x["name"] for x in slurm["reservations"]] == ["maint"] * (session == "preemption")
    billing = {"gres/gpu": 1.0, "cpu": 0.0} if session == "shares" else {}
    assert all(partition["billing"] == billing for partition in slurm["partitions"])
    assert slurm["machines"] == [{"nodes": "n[001-016]", "cpus": 64, "weight": 1}]
    assert slurm["not_understood"] == []
