"""The settings of `slurm.conf` that concern scheduling, and which of them are not modelled.

Defaults are those of slurm.conf(5) of Slurm 22.05.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from artist.errors import ConfigError, shortened
from artist.io.reading import as_float
from artist.slurm.facts import ASSOC_LIMITS, QOS_LIMITS, SlurmFacts

# SchedulerParameters that bound the work of slurmctld or concern what artist does not have
# (licenses, het jobs, RPCs). They change no start while slurmctld keeps up.
_HARMLESS = {
    "bf_continue", "bf_max_time", "bf_yield_interval", "bf_yield_sleep", "bf_yield_rpc_cnt",
    "max_rpc_cnt", "max_sched_time", "sched_min_interval", "build_queue_timeout", "defer",
    "default_gbytes", "ignore_prefer_validation", "kill_invalid_depend", "max_depend_depth",
    "max_array_tasks", "max_script_size", "max_switch_wait", "nohold_on_prolog_fail",
    "no_backup_scheduling", "bf_hetjob_prio", "bf_hetjob_immediate", "bf_node_space_size",
    "permit_job_expansion", "requeue_setup_env_fail", "salloc_wait_nodes", "sbatch_wait_nodes",
    "step_retry_count", "step_retry_time", "time_min_as_soft_limit", "whole_hetjob",
    "disable_user_top", "enable_user_top", "disable_hetjob_steps", "enable_hetjob_steps",
    "delay_boot", "bf_job_part_count_reserve", "bb_array_stage_cnt", "bf_licenses",
    "enable_job_state_cache", "ignore_constraint_validation", "partition_job_depth",
}  # fmt: skip
_NUMBERS = {
    "bf_interval": 30, "bf_window": 1440, "bf_resolution": 60, "bf_max_job_test": 500,
    "bf_max_job_start": 0, "bf_max_job_user": 0, "bf_max_job_part": 0, "bf_max_job_assoc": 0,
    "bf_max_job_array_resv": 20, "bf_min_age_reserve": 0, "bf_min_prio_reserve": 0,
    "bf_window_linear": 0, "batch_sched_delay": 3, "default_queue_depth": 100,
    "sched_interval": 60, "sched_max_job_start": 0, "preempt_reorder_count": 1,
}  # fmt: skip
PARAMETER_BOUNDS = {
    "bf_interval": (1, 10_800), "bf_window": (1, 43_200), "bf_resolution": (1, 3600),
    "bf_max_job_test": (1, 1_000_000), "bf_max_job_array_resv": (0, 1000),
    "bf_max_job_start": (0, 10_000),
}  # fmt: skip
"""Bounds of SchedulerParameters. For a number outside them Slurm 22.05 takes the default."""

_SWITCHES = {"assoc_limit_stop", "preempt_youngest_first", "preempt_strict_order"}
# `bf_job_part_count_reserve` and `partition_job_depth` would change starts: refused unless 0.
_ONLY_ZERO = ("bf_job_part_count_reserve", "partition_job_depth")

RESOURCES = ("cpu", "gres/gpu", "node")
"""The resources that weights count; limits count kinds of GPUs and billing, too."""
OF_A_KIND = "gres/gpu:"
_MODES = ("OFF", "CANCEL", "REQUEUE", "SUSPEND")

_FLAGS = {
    "ACCRUE_ALWAYS", "CALCULATE_RUNNING", "MAX_TRES", "NO_NORMAL_ALL", "NO_NORMAL_PART",
    "NO_NORMAL_QOS", "NO_NORMAL_TRES", "SMALL_RELATIVE_TO_TIME",
}  # fmt: skip

# Settings by Slurm's name, and the values that are modelled; None: any value.
_ONLY = {
    "SelectType": ("select/cons_tres",),
    "SelectTypeParameters": ("CR_CORE", "CR_CPU", "CR_CORE_MEMORY", "CR_CPU_MEMORY"),
    "TopologyPlugin": ("topology/none", "topology/tree", "topology/default", "topology/flat"),
    "TopologyParam": (),
    "SchedulerType": ("sched/backfill", "sched/builtin"),
    "PriorityType": ("priority/basic", "priority/multifactor"),
    "PreemptType": ("preempt/none", "preempt/qos", "preempt/partition_prio"),
    "PriorityParameters": (),
    "PrioritySiteFactorPlugin": (),
    "PrioritySiteFactorParameters": (),
    "PriorityUsageResetPeriod": ("NONE",),
    "PriorityWeightAssoc": ("0",),
    "SchedulerTimeSlice": None,
}
_LENGTH = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(?:(\d+):)?(\d+)(?: *(?:sec|min)s?)?")


@dataclass(frozen=True)
class Weights:
    """The weight of each factor of a priority (PriorityWeight...)."""

    age: float = 0
    fair_share: float = 0
    job_size: float = 0
    partition: float = 0
    qos: float = 0
    tres: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class SlurmSettings:
    """What decides when jobs start. Times are whole seconds."""

    multifactor: bool
    weights: Weights
    flags: frozenset[str]
    favor_small: bool
    max_age_s: int
    half_life_s: int
    calc_period_s: int
    backfill: bool
    topology: bool
    preempt_type: str
    preempt_mode: str
    preempt_exempt_s: int
    preempt_again_s: int
    """How long a preemptor waits before it tries again: KillWait plus MessageTimeout."""
    requeues: bool
    """Whether jobs that do not say may be requeued (JobRequeue); else they are cancelled."""
    over_limit_s: int | None
    """For how long jobs may run beyond their limits; None: forever."""
    limits: bool
    """Whether limits of QOS and associations are enforced."""
    numbers: Mapping[str, int]
    """SchedulerParameters with a number, by name."""
    switches: frozenset[str]
    """SchedulerParameters without a number."""
    not_modelled: tuple[str, ...]
    """Settings that may change starts, but are not modelled."""


def settings_of(facts: SlurmFacts) -> SlurmSettings:
    """The settings in a cluster file.

    Raises:
        ConfigError: a value is not what Slurm prints.
    """
    given = {key.lower(): value for key, value in facts.settings.items()}
    missing = [
        f"{key}={given[key.lower()]}"
        for key, values in _ONLY.items()
        if values is not None
        and not set(given.get(key.lower(), "").upper().split(",")) <= {"", *map(str.upper, values)}
    ]
    numbers, switches, others = _scheduler_parameters(given.get("schedulerparameters", ""))
    flags = frozenset(filter(None, re.split(r"[,|]", given.get("priorityflags", "").upper())))
    missing += others
    preempt_mode = given.get("preemptmode", "OFF")
    if mode_of(preempt_mode) not in _MODES:
        missing.append(f"PreemptMode={preempt_mode}")
    missing += [
        f"QOS {qos.name}: PreemptMode={qos.preempt_mode}"
        for qos in facts.qos
        if mode_of(qos.preempt_mode) not in (*_MODES, "CLUSTER")
    ]
    missing += [
        f"partition {partition.name}: PreemptMode={partition.preempt_mode}"
        for partition in facts.partitions
        if mode_of(partition.preempt_mode) not in _MODES
    ]
    missing += [f"PriorityFlags={flag}" for flag in sorted(flags - _FLAGS)]
    weights = _weights(given)
    missing += [
        f"PriorityWeightTRES of {name}"
        for name, weight in weights.tres.items()
        if weight and name not in RESOURCES
    ]
    enforced = {*given.get("accountingstorageenforce", "").lower().split(",")}
    limits = not enforced.isdisjoint(("limits", "safe"))
    missing += _other_limits(facts) if limits else ()
    missing += facts.not_understood
    return SlurmSettings(
        multifactor=given.get("prioritytype", "priority/basic") == "priority/multifactor",
        weights=weights,
        flags=flags,
        favor_small=given.get("priorityfavorsmall", "no").lower() in ("yes", "1"),
        max_age_s=_length_s(given, "PriorityMaxAge", 7 * 86400),
        half_life_s=_length_s(given, "PriorityDecayHalfLife", 7 * 86400),
        calc_period_s=max(1, _length_s(given, "PriorityCalcPeriod", 300)),
        backfill=given.get("schedulertype", "sched/backfill") == "sched/backfill",
        topology=given.get("topologyplugin") == "topology/tree",
        preempt_type=given.get("preempttype", "preempt/none").removeprefix("preempt/"),
        preempt_mode=mode_of(preempt_mode),
        preempt_exempt_s=_length_s(given, "PreemptExemptTime", 0),
        preempt_again_s=_length_s(given, "KillWait", 30) + _length_s(given, "MessageTimeout", 10),
        requeues=given.get("jobrequeue", "1") != "0",
        over_limit_s=None
        if given.get("overtimelimit", "").upper() == "UNLIMITED"
        else _length_s(given, "OverTimeLimit", 0),
        limits=limits,
        numbers=numbers,
        switches=switches,
        not_modelled=tuple(missing),
    )


def _other_limits(facts: SlurmFacts) -> list[str]:
    """Limits that are not modelled, or limit resources that are not counted, such as memory."""
    limited = [(f"QOS {x.name}", QOS_LIMITS, x.limits) for x in facts.qos]
    limited += [(f"account {x.name}", ASSOC_LIMITS, x.limits) for x in facts.accounts]
    limited += [
        (f"account {x.name}, user {user}", ASSOC_LIMITS, limits)
        for x in facts.accounts
        for user, limits in x.user_limits.items()
    ]
    return [
        f"{whose}: {name}={part}"
        for whose, names, limits in limited
        for name, text in limits.items()
        for part in (filter(None, text.split(",")) if "TRES" in name else (text,))
        if name not in names or ("TRES" in name and not is_counted(part.partition("=")[0]))
    ]


def is_counted(resource: str) -> bool:
    """Whether limits of a resource are modelled; those of memory, for example, are not."""
    name = resource.lower()
    return name in (*RESOURCES, "billing") or name.startswith(OF_A_KIND)


def mode_of(text: str) -> str:
    """A PreemptMode without GANG, which only lets jobs take turns on what they share."""
    modes = [mode for mode in text.upper().split(",") if mode != "GANG"]
    return ",".join(modes) or "OFF"


def _scheduler_parameters(text: str) -> tuple[dict[str, int], frozenset[str], list[str]]:
    """The numbers, the switches, and the parameters that are not modelled."""
    numbers, switches, others = dict(_NUMBERS), set[str](), list[str]()
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if name in _NUMBERS:
            number = as_float(value)
            if not (number == int(number) if abs(number) < 1e9 else False):
                raise ConfigError(
                    f"SchedulerParameters: {name} is {shortened(value)}, expected a whole number"
                )
            least, most = PARAMETER_BOUNDS.get(name, (0, number))
            if number < 0:  # -1 may switch a scheduler off; else Slurm takes the default
                others.append(f"SchedulerParameters={part}")
            elif least <= number <= most:
                numbers[name] = int(number)
        elif name in _SWITCHES and not equals:
            switches.add(name)
        elif name not in _HARMLESS or (name in _ONLY_ZERO and value != "0"):
            others.append(f"SchedulerParameters={part}")
    return numbers, frozenset(switches), others


def _weights(given: Mapping[str, str]) -> Weights:
    """The weights in PriorityWeightAge, PriorityWeightTRES and so on."""
    tres = {}
    for part in filter(None, given.get("priorityweighttres", "").split(",")):
        name, _, text = part.partition("=")
        tres[name.lower()] = _as_number("PriorityWeightTRES", text)

    def weight(name: str) -> float:
        key = f"PriorityWeight{name}"
        return _as_number(key, given.get(key.lower(), "0"))

    return Weights(
        age=weight("Age"),
        fair_share=weight("FairShare"),
        job_size=weight("JobSize"),
        partition=weight("Partition"),
        qos=weight("QOS"),
        tres=tres,
    )


def _as_number(key: str, text: str) -> float:
    number = as_float(text)
    if not 0 <= number <= 2**32:
        raise ConfigError(f"slurm settings: {key} is {shortened(text)}, expected a weight")
    return number


def _length_s(given: Mapping[str, str], key: str, default_s: int) -> int:
    """Seconds of `7-00:00:00`, `00:05:00`, `30 sec` or `5 min`."""
    text = given.get(key.lower())
    if text is None:
        return default_s
    match = _LENGTH.fullmatch(text.strip())
    if match is None:
        raise ConfigError(
            f"slurm settings: {key} is {shortened(text)}, expected a time such as 1-02:03:04"
        )
    days, first, second, last = (int(part or 0) for part in match.groups())
    hours, minutes = (first, second) if match[3] else (0, first)
    seconds = ((days * 24 + hours) * 60 + minutes) * 60 + last
    return 60 * seconds if text.rstrip("s").endswith("min") else seconds
