"""Options of the policies. The comment above an option gives the source of its default.

The manual shows these comments beside the options. All options are here and not beside their
policies, because most policies are compiled (decision 29), and compiled modules hold no pydantic
models.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from artist.contract import Options
from artist.errors import shortened
from artist.io.documents import Duration, GpuSeconds, Lease, NonNegative, Positive
from artist.io.reading import as_float
from artist.policies.shared.placers import PlacerName
from artist.policies.shared.ranking import OrderName
from artist.slurm.facts import SlurmFacts


class LeaseOptions(Options):
    """Options of a policy that gives GPUs for a lease."""

    # One hour: the lease of the original simulator's runs. Dally's delay timers of 12 and 24 h
    # were tuned for it. All policies with leases have the same default, so that a comparison of
    # policies does not compare lengths of leases.
    lease_s: Lease = Field(default=3600.0, description="lease, seconds")


class SharingOptions(Options):
    """Options of a policy that may keep jobs apart on links (`sharing.py`)."""

    # Off: the policies' papers know no such rule.
    most_slowdown: NonNegative | None = Field(
        default=None,
        description="a job waits where contention would make its iterations, or those of a "
        "co-located job, longer by more than this share; if not given, it never waits for that",
    )


class ClassicOptions(LeaseOptions, SharingOptions):
    """Options of every classic policy. A row of the table of policies presets the first three."""

    order: OrderName = Field(
        default="arrival", description="key by which jobs come forward, the smallest first"
    )
    preemption: Literal["never", "lease", "at-once"] = Field(
        default="never", description="when a running job may lose its GPUs"
    )
    strict: bool = Field(
        default=False, description="whether a job that does not fit blocks the jobs behind it"
    )
    placement: PlacerName = Field(default="pack", description="where GPUs are taken")


def estimate_factor(text: str) -> float:
    """By how much an option `estimates` multiplies exact run times; 1 for other rules.

    Raises:
        ValueError: it is no rule.
    """
    rule, colon, factor = text.partition(":")
    if text in ("exact", "limit", "learned"):
        return 1.0
    number = as_float(factor)
    if rule != "factor" or not colon or not 1e-3 <= number <= 1e6:
        raise ValueError(
            f"got {shortened(text)}, expected exact, limit, learned or factor:F with F from "
            "0.001 to 1e6"
        )
    return number


class BackfillOptions(Options):
    """Options of backfilling with reservations."""

    order: OrderName = Field(
        default="arrival", description="key by which jobs come forward, the smallest first"
    )
    estimates: str = Field(
        default="exact",
        description="expected run times: exact; limit (the column hint_time_limit_s); factor:F, F "
        "times exact; or learned, from the user's last two jobs",
    )
    placement: Literal["any", "pack", "consolidate-or-wait"] = Field(
        default="pack", description="where GPUs are taken"
    )

    @field_validator("estimates")
    @classmethod
    def _is_a_rule(cls, text: str) -> str:
        estimate_factor(text)
        return text


class SlurmOptions(Options):
    """Options of Slurm. What slurm.conf says is in the section `slurm` of the cluster file."""

    facts: SlurmFacts | None = Field(
        default=None, description="in place of the section slurm of the cluster file"
    )
    not_modelled: Literal["refuse", "ignore"] = Field(
        default="refuse", description="what becomes of settings that the policy does not model"
    )
    kill: bool = Field(default=True, description="cut jobs at their time limits, as Slurm does")
    # Traces begin at 0. Reservations of Slurm do not, and backfill rounds Unix times.
    epoch_s: int | None = Field(
        default=None, description="Unix time at which the trace begins, seconds; for reservations"
    )
    calc_phase_s: NonNegative = Field(
        default=0.0, description="when, after the first arrival, PriorityCalcPeriod first strikes"
    )


class DallyOptions(LeaseOptions, SharingOptions):
    """Options of Dally and its variants."""

    timers: Literal["auto", "manual", "none", "unbounded"] = Field(
        default="auto",
        description="auto: Algorithm 2; manual: fixed; none: never wait; unbounded: wait for ever",
    )
    # Section IV-B2: 12 hours for the machine, another 12 (24 in total) for the rack.
    machine_timer_s: NonNegative = Field(default=12 * 3600.0, description="wait for a machine")
    rack_timer_s: NonNegative = Field(default=24 * 3600.0, description="wait for a rack, in total")
    # The history limit of the original simulator. The Dally paper has a window by age (IV-B3).
    history_s: Positive = Field(default=48 * 3600.0, description="age limit of recorded waits")
    # Section IV-B3: "adding two sample standard deviations".
    deviations: NonNegative = Field(default=2.0, description="deviations added to the mean wait")
    # The Dally paper has neither floors nor caps. The original simulator has both
    # (validation/original/policies.py).
    floors_s: tuple[float, float] | None = Field(
        default=None,
        description="least tuned timers: machine, rack; if not given, those of the policy",
    )
    caps_s: tuple[float, float] | None = Field(
        default=None,
        description="largest tuned timers: machine, rack; if not given, those of the policy",
    )
    # Section IV-B3: the sample's. The original simulator takes the population's.
    deviation: Literal["sample", "population"] = Field(
        default="sample", description="which standard deviation a tuned timer adds"
    )
    # Section IV-B3 discards "values (utilized in average calculation) that exceed the specified
    # history time limit". Values of what, it leaves open. The original simulator means their age.
    forgets: Literal["age", "length"] = Field(
        default="age",
        description="which recorded waits tuning leaves out: those recorded longer than history_s "
        "ago, or those that are longer than it",
    )
    # Section IV-B1 leaves 0/0 open. As in the original simulator.
    never_ran: Literal["first", "last"] = Field(
        default="first",
        description="where jobs stand that never ran: before all others, as if slowed most, or "
        "after all that were slowed",
    )
    # The Dally paper knows levels only. Backends also tell shapes of one level apart (`4+4,4+4`
    # and `4+4,3+1,4`). studies/dally-paper/README.md shows that claims of the paper depend on it.
    moves_for: Literal["level", "shape"] = Field(
        default="level",
        description="what a job moves for when its lease ends: a better level, or also fewer "
        "machines or equal shares of them inside its level",
    )
    # Ours: the paper does not say which GPUs of a level a job gets, and knows no shared links.
    placement: Literal["pack", "least-contended"] = Field(
        default="pack", description="where GPUs are taken inside the level that a job accepts"
    )


class GandivaOptions(SharingOptions):
    """Options of Gandiva."""

    # The lease of the other policies. The paper's quantum is 60 s (section 4.1).
    quantum_s: Lease = Field(default=3600.0, description="length of a time slice, seconds")
    migrate: bool = Field(default=True, description="migrate running jobs to better places")
    # Our choice: 3 free GPUs of 4. We could not find a number in the paper's text.
    fragmented_share: float = Field(
        default=0.75, gt=0, le=1, description="free share at which a busy machine is emptied"
    )
    placement: Literal["affinity"] | PlacerName = Field(
        default="affinity", description="by affinity (the paper's), or one placer for all jobs"
    )
    # Off: the Dally paper, which compares with Gandiva, has no shared GPUs. The Gandiva paper has
    # them (sections 3.2 and 4.2).
    packing: bool = Field(
        default=False, description="while jobs wait, try two jobs on the same GPUs"
    )


class ThemisOptions(LeaseOptions, SharingOptions):
    """Options of Themis."""

    # Our choice. It is said to be the paper's, after its sensitivity study (unchecked).
    fairness_knob: float = Field(
        default=0.8, ge=0, lt=1, description="f: the share of jobs that does not bid"
    )
    # The lease, one hour as in the other policies. The paper's lease is 20 minutes (unchecked).
    # A shorter period puts fewer leases on offer together, too few for a large gang. With the ten
    # minutes of CASSINI (section 5.1), finish_time_fairness_max of `artist sim --racks 4 --policy
    # themis` is 610 instead of 329.
    period_s: Lease | None = Field(
        default=None, description="bidding period, seconds; as long as the lease if not given"
    )
    leftover: Literal["random", "worst-first"] = Field(
        default="random", description="order of the jobs that get the GPUs that no bidder won"
    )
    placement: PlacerName = Field(default="pack", description="where GPUs are taken")


class TiresiasOptions(LeaseOptions, SharingOptions):
    """Options of Tiresias."""

    index: Literal["las", "gittins"] = Field(
        default="las", description="order inside a queue: by start, or by 2D-Gittins index"
    )
    # In the simulator of the authors: three queues (`num_queue`) with these limits (`queue_limit`).
    thresholds_gpu_s: tuple[GpuSeconds, ...] = Field(
        default=(3250.0, 7200.0),
        description="service at which a job leaves each queue but the last",
    )
    # The simulator of the authors has no promotion unless the name of the schedule gives a knob.
    promote_knob: float | None = Field(
        default=None,
        gt=0,
        le=1e6,
        description="PROMOTEKNOB: promote a job when its wait is so many times its run time",
    )
    # A value between ResNet-18 (0.202, "low" in Dally's Table I) and MobileNetV3 (0.234, "high").
    # With it the layer tables give the classes of that table. Tiresias fits its PACKLIMIT to the
    # job history of a cluster and gives no number.
    skew_threshold: float = Field(
        default=0.22, ge=0, le=1, description="PACKLIMIT: jobs above it are consolidated"
    )
    placement: Literal["skew"] | PlacerName = Field(
        default="skew", description="by skew (the paper's), or one placer for all jobs"
    )
    past_service_gpu_s: tuple[GpuSeconds, ...] = Field(
        default=(), description="for gittins: total service of past jobs, GPU-seconds"
    )
    past_service_file: str | None = Field(
        default=None, description="for gittins: a CSV file with such services"
    )
    past_service_column: str = Field(
        default="service_gpu_s", description="for gittins: the column of that file"
    )

    @model_validator(mode="after")
    def _consistent(self) -> TiresiasOptions:
        thresholds = self.thresholds_gpu_s
        if list(thresholds) != sorted(set(thresholds)):
            raise ValueError(f"thresholds_gpu_s must rise, got {thresholds}")
        known = self.past_service_gpu_s or self.past_service_file
        if self.index == "gittins" and not known:
            raise ValueError(
                "index=gittins needs a distribution: past_service_gpu_s or past_service_file"
            )
        return self


class QueueOptions(Options):
    """The paper publishes neither weights nor cap nor window: those values are our choice."""

    # Ours: an hour of waiting is worth as much as having used nothing lately.
    age_weight: NonNegative = Field(1.0, description="credit of an hour of waiting (eq. 10)")
    age_cap_s: Positive = Field(86400.0, description="waiting beyond it earns nothing (eq. 10)")
    fair_weight: NonNegative = Field(1.0, description="credit of having used nothing (eq. 11)")
    window_s: Positive = Field(3600.0, description="length of the fair-share window (eq. 11)")
    # MAST, section 5.4: "running the GMS-scan pass once every 5 minutes".
    pass_s: Duration = Field(300.0, description="time between passes over all waiting jobs")
    # Ours: the paper gives no bound. The queue is ranked anew every 5 minutes.
    slo_s: Positive = Field(300.0, description="a job within its quota is late after this wait")


Cell = Literal[1, 3, 5, 6, 9]
"""Of Table 1: (queue, allocation) in cluster, cluster; global, cluster; region, region; global,
region (MAST); global, global."""


class MastOptions(QueueOptions):
    """What `--set policy.KEY=VALUE` can change."""

    # Section 4.1: "Solution (6) is our approach".
    cell: Cell = Field(6, description="cell of Table 1: where queues are, how far a plan looks")
    # Section 4.3: "MAST will start data replication, waiting for its completion".
    without_data: Literal["wait", "nearest"] = Field(
        "wait",
        description="a job whose tables no region holds together: waits for them, or runs where "
        "the fewest bytes are missing (for data.remote=slow)",
    )
    # Section 4.1: algorithms that schedule one job at a time.
    joint: int = Field(
        1,
        ge=1,
        le=6,
        description="jobs that are placed together where none must be preempted (cell 9)",
    )


class FederatedOptions(MastOptions):
    """A federation; by default the one that the paper simulates."""

    # Section 5.6: "dispatches a workload to the region with the lowest demand over supply".
    cell: Cell = Field(5, description="cell of Table 1: where queues are, how far a plan looks")


class GavelOptions(Options):
    """Options of Gavel. Defaults are those of its authors' program."""

    # The paper's policies: las is the one of most of its figures.
    objective: Literal["las", "ftf", "makespan", "fifo", "cost"] = Field(
        default="las", description="what shares of time are computed for"
    )
    # The paper compares each policy with the same one that takes all kinds for equally fast.
    aware: bool = Field(default=True, description="whether speeds on kinds of GPUs count")
    # OSDI 2020, section 7.1: rounds of six minutes.
    round_s: Lease = Field(default=360.0, description="length of a round, seconds")
    # scheduler.py of the program: minimum_time_between_allocation_resets.
    reset_s: NonNegative = Field(
        default=1920.0, description="least time between two computations of shares, seconds"
    )
    prices: dict[str, Positive] | None = Field(
        default=None, description="kind -> price of a GPU-hour, for objective cost"
    )
    # OSDI 2020, section 3.1: policies with and without space sharing.
    space_sharing: bool = Field(
        default=False, description="whether two jobs of as many GPUs may share them"
    )

    @model_validator(mode="after")
    def _shares_by_speed(self) -> Self:
        # The authors' program has no such policy: which pairs pay depends on the kind.
        if self.space_sharing and not self.aware:
            raise ValueError("space_sharing needs aware=true: pairs are chosen by their speeds")
        return self


class LucidOptions(Options):
    """Options of Lucid. Defaults are those of its authors' program."""

    # ASPLOS 2023: GPU Sharing Capacity (GSS). At 4, any two jobs of as many GPUs are packed.
    sharing_capacity: int = Field(
        default=2, ge=0, le=4, description="largest sum of the scores of two jobs on a GPU"
    )
    # analyzer.py of the program.
    tiny_speed: float = Field(
        default=0.95, gt=0, le=1, description="mean speed beside others from which a model is tiny"
    )
    medium_speed: float = Field(
        default=0.85, gt=0, le=1, description="from which it is medium; below, it is jumbo"
    )
    # consolidate.py of the program.
    placement: PlacerName = Field(
        default="consolidate-or-wait", description="where jobs get GPUs of their own"
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.medium_speed > self.tiny_speed:
            raise ValueError("medium_speed is above tiny_speed: tiny models are the fastest")
        return self


class RoundOptions(Options):
    """Options of a policy that places all jobs at regular times."""

    # OSDI 2021 (Pollux), section 5.1: every 60 seconds.
    period_s: Lease = Field(default=60.0, description="length of a round, seconds")


class SharesOptions(RoundOptions):
    """Options of the elastic baselines. A row of the table of policies presets the rule."""

    rule: Literal["equal-share", "max-throughput", "optimus"] = Field(
        default="equal-share", description="which job gets the next GPU"
    )
    placement: Literal["pack", "emptiest"] = Field(
        default="pack",
        description="where GPUs are taken: close together, or on the machines with most free ones",
    )
    known: Literal["now", "stretch"] = Field(
        default="now",
        description="what optimus counts as left: all, or what follows the present stretch of one "
        "noise scale",
    )


class QueuesOptions(RoundOptions):
    """Options of Tiresias in rounds. The default is that of Pollux's authors (tiresias.py)."""

    threshold_gpu_s: GpuSeconds = Field(
        default=57_600.0, description="service that takes a job to the second queue, GPU-seconds"
    )


class PolluxOptions(RoundOptions):
    """Options of Pollux. Defaults are those of its authors' program (pollux.py, simulator.py)."""

    power: float = Field(
        default=-1.0, ge=-10, le=1, description="p of the power mean: the lower, the fairer"
    )
    delay_s: NonNegative = Field(
        default=30.0, description="what a restart is taken to cost, seconds"
    )
    one_distributed: bool = Field(
        default=True, description="at most one job of several machines on each machine"
    )
    most_machines: int = Field(default=16, ge=1, description="machines of one job, at most")
    explore: bool = Field(
        default=True, description="a job gets at most twice as many GPUs as it ever had"
    )
    adapt_batch: bool = Field(
        default=True, description="whether jobs train with the batch of the largest goodput"
    )
    # Ours: see docs/decisions/0034-elastic-jobs.md.
    neighbours: bool = Field(
        default=False,
        description="whether goodput on several machines counts what neighbours on links cost",
    )
    budget: int = Field(
        default=100, ge=0, le=100_000, description="steps of the search for better GPUs"
    )


class SiaOptions(RoundOptions):
    """Options of Sia. Defaults are those of its authors' program (simulator_config.py, sia.py)."""

    power: float = Field(
        default=-0.5, ge=-10, le=1, description="p of the values: the lower, the fairer; not 0"
    )
    unallocated: Positive = Field(
        default=1.1, description="lambda: what a job without GPUs adds to the objective"
    )
    delay_s: Positive = Field(
        default=30.0, description="what a restart is taken to cost where restart_s is 0, seconds"
    )
    explore: bool = Field(
        default=True, description="a job gets at most twice as many GPUs as it ever had"
    )
    # Ours, as in Pollux.
    neighbours: bool = Field(
        default=False,
        description="whether goodput on several machines counts what neighbours on links cost",
    )
    gap: float = Field(
        default=1e-4,
        ge=0,
        le=0.1,
        description="by which part of it the objective may miss the best",
    )

    @field_validator("power")
    @classmethod
    def _not_zero(cls, power: float) -> float:
        if not power:
            raise ValueError("expected a power below or above 0")
        return power
