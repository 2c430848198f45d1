"""From the texts of a Slurm cluster to a cluster file.

| text | what prints it | |
| --- | --- | --- |
| `nodes.txt` | `scontrol show nodes` | must be there: machines with their GPUs and kinds |
| `topology.txt` or `topology.conf` | `scontrol show topology`, or the file | racks: leaf switches |
| `partitions.txt` | `scontrol show partitions` | partitions |
| `qos.txt`, `assoc.txt` | `sacctmgr -P show qos`, `... assoc` | QOS; accounts, users, shares |
| `config.txt` | `scontrol show config` | settings of scheduling |
| `reservations.txt` | `scontrol show reservations` | reservations |

Nothing is guessed: what has no place in a cluster file is listed. Memory of machines is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from artist.errors import ConfigError, shortened
from artist.io.digests import pseudonym
from artist.io.reading import as_float, is_file
from artist.slurm.facts import ASSOC_LIMITS, QOS_LIMITS
from artist.slurm.texts import Record, host_list, hosts, records, settings, table
from artist.units import LENGTH, length_s

_LACKED = {
    "config": "settings of scheduling", "partitions": "partitions", "qos": "QOS",
    "assoc": "accounts with their shares and limits",
}  # fmt: skip
LEVELS = ("rack", "pod", "zone", "hall")
"""The names of the levels of switches, from leaf switches outwards."""

_GPU = re.compile(r"gpu(?::([A-Za-z0-9._-]+))?:(\d+)(?:\(.*\))?")
_SLICE = re.compile(r"\d+g\.\d+gb", re.ASCII)
_IN_SERVICE = {
    "IDLE", "MIXED", "ALLOCATED", "COMPLETING", "PLANNED", "RESERVED", "MAINTENANCE", "CLOUD",
    "DYNAMIC_NORM",
}  # fmt: skip
_SETTINGS = re.compile(
    r"Priority|Preempt|Scheduler|Sched|Select|Topology|OverTimeLimit|KillWait|MessageTimeout|JobRequeue"
    r"|AccountingStorageEnforce"
)

# Known keys of partitions, and the value at which they change nothing; None: any value.
_PARTITION_DEFAULTS = {
    "AllowGroups": "ALL", "AllowAccounts": "ALL", "AllowQos": "ALL", "AllocNodes": "ALL",
    "QoS": None, "DefaultTime": "", "DisableRootJobs": None, "ExclusiveUser": "NO",
    "GraceTime": None, "Hidden": None, "MaxNodes": None, "MinNodes": None, "LLN": "NO",
    "MaxCPUsPerNode": None, "RootOnly": "NO", "ReqResv": "NO", "OverSubscribe": "NO",
    "OverTimeLimit": "", "State": "UP", "TotalCPUs": None, "TotalNodes": None,
    "SelectTypeParameters": "", "JobDefaults": "", "DefMemPerNode": None, "MaxMemPerNode": None,
    "DefMemPerCPU": None, "MaxMemPerCPU": None, "TRES": None, "PartitionName": None, "Nodes": None,
    "Default": None, "MaxTime": None, "PriorityTier": None, "PriorityJobFactor": None,
    "PreemptMode": None, "MaxCPUsPerSocket": None, "TRESBillingWeights": None,
    "ExclusiveTopo": "NO", "NodeSets": None, "PowerDownOnIdle": "NO", "ResumeTimeout": None,
    "SuspendTimeout": None, "SuspendTime": None,
}  # fmt: skip
_NODE_DEFAULTS = {"AvailableFeatures": "", "Owner": "", "MCS_label": ""}
_RESERVATION_KEYS = (
    "ReservationName", "StartTime", "EndTime", "Duration", "Nodes", "NodeCnt", "CoreCnt", "Flags",
    "Users", "State", "TRES", "Watts",
)  # fmt: skip
_QOS_KEYS = ("Name", "Priority", "Preempt", "PreemptMode", "GraceTime", "PreemptExemptTime")
_ASSOC_KEYS = ("Cluster", "Account", "User", "Share", "ParentName", "Par Name", "QOS", "Def QOS")
BILLED = ("cpu", "gres/gpu", "mem", "node")
_OF_MEMORY = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
"""MiB by unit of memory."""
_ZEROS = ("", "0", "00:00:00", "1.000000", "0.000000")


def cluster_document(folder: Path, *, keep_names: bool = False) -> dict[str, Any]:
    """The content of a cluster file, from the texts in a folder.

    Raises:
        ConfigError: no nodes, or a text that is broken; names file and line.
    """
    return _Import(folder, keep_names).document()


def lacked(folder: Path) -> tuple[str, ...]:
    """In words, what a cluster file lacks because texts are missing that every cluster has."""
    missing = [name for name in _LACKED if not is_file(folder / f"{name}.txt")]
    return tuple(f"{_LACKED[name]}, as {folder} has no {name}.txt" for name in missing)


class _Import:
    def __init__(self, folder: Path, keep_names: bool) -> None:
        self._folder = folder
        self._people: Callable[[str], str] = str if keep_names else pseudonym
        self._missing: Counter[str] = Counter()
        # CPUs and weight of each machine with GPUs.
        self._sizes: dict[str, tuple[int, int]] = {}

    def document(self) -> dict[str, Any]:
        """The content of the cluster file."""
        config = settings(path) if (path := self._text("config")) else {}
        machines = self._machines()
        levels, tree = self._tree(machines)
        name = re.sub(r"[^A-Za-z0-9._-]", "-", config.get("ClusterName", "")).lstrip("._-")
        slurm = {
            "machines": self._alike(machines),
            "partitions": [
                self._partition(x) for x in self._records("partitions", "PartitionName")
            ],
            "qos": [self._qos(record) for record in self._table("qos", ("Name", "Priority"))],
            "accounts": self._accounts(config.get("ClusterName")),
            "reservations": [
                self._reservation(x)
                for x in self._records("reservations", "ReservationName")
                if self._has_gpus(x)
            ],
            "settings": {x: config[x] for x in sorted(config) if _SETTINGS.match(x)},
        }
        missing = [f"{words} ({n} times)" if n > 1 else words for words, n in self._missing.items()]
        return {
            "name": name or "slurm",
            "summary": f"imported from Slurm ({self._folder.resolve().name})",
            "levels": levels,
            "tree": tree,
            "source": "scontrol and sacctmgr",
            "slurm": {**slurm, "not_understood": missing},
        }

    # -- texts -----------------------------------------------------------------------

    def _text(self, name: str) -> Path | None:
        path = self._folder / f"{name}.txt"
        return path if is_file(path) else None

    def _records(self, name: str, first: str) -> list[Record]:
        path = self._text(name)
        return records(path, first) if path else []

    def _table(self, name: str, needed: tuple[str, ...]) -> list[Record]:
        path = self._text(name)
        return table(path, needed) if path else []

    def _miss(self, words: str) -> None:
        self._missing[words] += 1

    def _others(self, thing: str, record: Record, usual: Mapping[str, str | None]) -> None:
        """List the keys of a record whose values differ from the usual ones."""
        for key, value in record.values.items():
            if key in usual and usual[key] is not None and record.text(key) != usual[key]:
                self._miss(f"{thing}: {key}={value}")

    # -- machines --------------------------------------------------------------------

    def _machines(self) -> dict[str, dict[str, Any]]:
        """The machines with GPUs, by name."""
        if self._text("nodes") is None:
            raise ConfigError(
                f"{self._folder}: no nodes.txt; write it with: scontrol show nodes > nodes.txt"
            )
        machines = {}
        for record in self._records("nodes", "NodeName"):
            name = record.needed("NodeName")
            gpus, kinds = self._gpus(name, record)
            self._others("machines", record, _NODE_DEFAULTS)
            states = set(re.split(r"[+*~#$@^!%-]+", record.text("State"))) - {""}
            if states - _IN_SERVICE:
                self._miss(f"machine {name} is {record.text('State')}, and counts as in service")
            if not gpus:
                self._miss("a machine without GPUs is left out")
                continue
            machines[name] = {"name": name, "gpus": gpus}
            # CPUEfctv leaves out CPUs that are kept for the system.
            cpus = record.count("CPUEfctv") or record.count("CPUTot")
            self._sizes[name] = cpus, record.count("Weight", 1)
            if len(kinds) == 1:
                machines[name]["kind"] = kinds[0]
            elif kinds:
                self._miss(f"machine {name} has GPUs of several kinds: {', '.join(kinds)}")
        if not machines:
            raise ConfigError(f"{self._folder / 'nodes.txt'}: no node has GPUs (Gres=gpu:...)")
        return machines

    def _alike(self, machines: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
        """The machines, grouped by CPUs and weight."""
        by_size: dict[tuple[int, int], list[str]] = {}
        for name in machines:
            by_size.setdefault(self._sizes[name], []).append(name)
        return [
            {"nodes": host_list(names), "cpus": cpus, "weight": weight}
            for (cpus, weight), names in by_size.items()
        ]

    def _gpus(self, name: str, record: Record) -> tuple[int, list[str]]:
        """The number of GPUs of a machine, and their kinds; slices of GPUs are left out."""
        total, kinds = 0, []
        for gres in re.split(r",(?![^(]*\))", record.text("Gres")):
            match = _GPU.fullmatch(gres)
            if match is not None and _SLICE.search(match[1] or ""):
                self._miss(f"machine {name}: Gres={gres}, slices of GPUs, are left out")
            elif match is not None:
                total += int(match[2])
                kinds += [match[1]] if match[1] else []
            elif gres:
                self._miss(f"machine {name}: Gres={gres}")
        return total, kinds

    def _tree(self, machines: Mapping[str, dict[str, Any]]) -> tuple[list[str], Any]:
        """The levels, the outermost first, and the units: switches become racks, pods and so on."""
        conf = self._folder / "topology.conf"
        path = self._text("topology") or (conf if is_file(conf) else None)
        found = records(path, "SwitchName") if path else []
        inside = {
            x.needed("SwitchName"): hosts(x.text("Switches"), x.place)
            for x in found
            if x.text("Switches")
        }
        leaves = {
            x.needed("SwitchName"): [
                machines[name] for name in hosts(x.text("Nodes"), x.place) if name in machines
            ]
            for x in found
            if not x.text("Switches")
        }
        switched = {machine["name"] for rack in leaves.values() for machine in rack}
        lonely = [machine for name, machine in machines.items() if name not in switched]
        if found and lonely:
            self._miss(f"{len(lonely)} machines that no switch joins get a rack of their own")
            leaves["no-switch"] = lonely
        if not found:
            return ["machine"], list(machines.values())
        tops = [name for name in (*inside, *leaves) if not any(name in x for x in inside.values())]
        depths = {self._depth(name, inside, ()) for name in tops if name != "no-switch"}
        if not depths:
            raise ConfigError(f"{path}: every switch is inside another one; print it again")
        depth = max(depths)
        if len(tops) == 1 and depth:  # the top switch is the network
            tops, depth = inside[tops[0]], depth - 1
            depths = {self._depth(name, inside, ()) for name in tops}
        if len(depths) > 1 or depth >= len(LEVELS):
            raise ConfigError(
                f"{path}: switches lie {sorted(depths)} levels deep, expected one depth of at most "
                f"{len(LEVELS)}; give a topology.txt without the others"
            )
        tree = [self._unit(name, depth, inside, leaves) for name in tops]
        return [*reversed(LEVELS[: depth + 1]), "machine"], [unit for unit in tree if unit]

    def _depth(self, name: str, inside: Mapping[str, list[str]], above: tuple[str, ...]) -> int:
        if name in above:
            raise ConfigError(f"{self._folder}: switch {shortened(name)} is inside itself")
        return max(
            (1 + self._depth(x, inside, (*above, name)) for x in inside.get(name, ())), default=0
        )

    def _unit(
        self,
        name: str,
        depth: int,
        inside: Mapping[str, list[str]],
        leaves: Mapping[str, list[dict[str, Any]]],
    ) -> dict[str, Any] | None:
        """A switch as a unit; None if no machine with GPUs is below it."""
        if not depth:
            machines = leaves.get(name)
            return {"name": name, "machine": machines} if machines else None
        units = [self._unit(x, depth - 1, inside, leaves) for x in inside.get(name, ())]
        full = [unit for unit in units if unit]
        return {"name": name, LEVELS[depth - 1]: full} if full else None

    # -- partitions, QOS, accounts -----------------------------------------------------

    def _has_gpus(self, record: Record) -> bool:
        """Whether a partition or a reservation has machines with GPUs."""
        text = record.text("Nodes")
        return text == "ALL" or any(name in self._sizes for name in hosts(text, record.place))

    def _partition(self, record: Record) -> dict[str, Any]:
        """A partition; one without GPUs is kept without machines, since its factor still counts."""
        name = record.needed("PartitionName")
        for key in record.values.keys() - _PARTITION_DEFAULTS.keys():
            self._miss(f"partition {name}: {key}={record.values[key]}")
        self._others(f"partition {name}", record, _PARTITION_DEFAULTS)
        return {
            "name": name,
            "nodes": record.text("Nodes") if self._has_gpus(record) else "",
            "default": record.text("Default") == "YES",
            "max_time_s": _seconds(record, "MaxTime"),
            "priority_tier": record.count("PriorityTier", 1),
            "priority_job_factor": record.count("PriorityJobFactor", 1),
            "preempt_mode": record.text("PreemptMode") or "OFF",
            "grace_s": record.count("GraceTime"),
            "billing": self._billing(name, record),
            **({"qos": record.text("QoS")} if record.text("QoS") else {}),
            **_most_nodes(record),
        }

    def _billing(self, partition: str, record: Record) -> dict[str, float]:
        """The weights of the resources that jobs are billed for; that of memory is per MiB."""
        weights = _weights(record, "TRESBillingWeights")
        for name in weights.keys() - {*BILLED}:
            if weights.pop(name):
                self._miss(f"partition {partition}: TRESBillingWeights of {name}")
        return weights

    def _reservation(self, record: Record) -> dict[str, Any]:
        """A reservation of machines."""
        name = record.needed("ReservationName")
        for key in record.values.keys() - {*_RESERVATION_KEYS}:
            if record.text(key):
                self._miss(f"reservation {name}: {key}={record.values[key]}")
        return {
            "name": name,
            "nodes": record.needed("Nodes"),
            "starts_at": record.needed("StartTime"),
            "ends_at": record.needed("EndTime"),
        }

    def _qos(self, record: Record) -> dict[str, Any]:
        """A QOS with its limits."""
        name = record.needed("Name")
        self._others_of(f"QOS {name}", record, (*_QOS_KEYS, *QOS_LIMITS))
        return {
            "name": name,
            "priority": record.count("Priority"),
            "preempts": [x for x in record.text("Preempt").split(",") if x],
            "preempt_mode": record.text("PreemptMode") or "cluster",
            "grace_s": int(_seconds(record, "GraceTime") or 0),
            "exempt_s": None
            if (exempt_s := _seconds(record, "PreemptExemptTime")) is None
            else int(exempt_s),
            **_limits(record, QOS_LIMITS),
        }

    def _accounts(self, cluster: str | None) -> list[dict[str, Any]]:
        """The accounts of this cluster, with their users, shares and limits."""
        accounts: dict[str, dict[str, Any]] = {}
        for record in self._table("assoc", ("Account", "User", "Share")):
            if cluster and record.text("Cluster") not in ("", cluster):
                continue
            name, user = record.needed("Account"), record.text("User")
            whose = f"account {name}" + (f", user {self._people(user)}" if user else "")
            self._others_of(whose, record, (*_ASSOC_KEYS, *ASSOC_LIMITS))
            limits = _limits(record, ASSOC_LIMITS)
            shares = "parent" if record.text("Share") == "parent" else record.count("Share", 1)
            account = accounts.setdefault(name, {"name": name, "shares": 1, "users": {}})
            if user:
                account["users"][self._people(user)] = shares
                if limits:
                    own = account.setdefault("user_limits", {})
                    own[self._people(user)] = limits["limits"]
            else:
                account["shares"] = shares
                account |= limits
                if parent := record.text("ParentName") or record.text("Par Name"):
                    account["parent"] = parent
        return list(accounts.values())

    def _others_of(self, whose: str, record: Record, known: Sequence[str]) -> None:
        for key, value in record.values.items():
            if key not in known and value not in _ZEROS:
                self._miss(f"{whose}: {key}={value}")


def _most_nodes(record: Record) -> dict[str, int]:
    text = record.text("MaxNodes")
    return {} if text in ("", "UNLIMITED") else {"max_nodes": record.count("MaxNodes")}


def _limits(record: Record, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """The limits that are set, under the key `limits`; empty if none is."""
    found = {name: record.text(name) for name in names if record.text(name)}
    return {"limits": found} if found else {}


def _weights(record: Record, key: str) -> dict[str, float]:
    """Weights as in `CPU=1.0,Mem=0.25G,GRES/gpu=2.0`, by resource in lower case."""
    weights = {}
    for part in filter(None, record.text(key).split(",")):
        name, _, text = part.partition("=")
        per = _OF_MEMORY.get(text[-1:].upper(), 1.0) if name.lower() == "mem" else 1.0
        weight = as_float(text.rstrip("KMGTPkmgtp") if name.lower() == "mem" else text)
        if not 0 <= weight < 1e9:
            raise record.error(key, "weights such as CPU=1.0,Mem=0.25G,GRES/gpu=2.0")
        weights[name.lower()] = weight / per
    return weights


def _seconds(record: Record, key: str) -> float | None:
    """A length of time in seconds; None if it is unlimited or missing."""
    text = record.text(key)
    if not text or text == "UNLIMITED":
        return None
    seconds = length_s(text)
    if seconds is None:
        raise record.error(key, f"{LENGTH}, or UNLIMITED")
    return float(seconds)
