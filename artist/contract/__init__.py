"""What the engine, policies and rate functions agree on.

    engine --ClusterView--> policy        --Decision-->     engine    at a question
    engine --JobView-->     rate function --Rate-->         engine    when jobs change
                            event source  --OutsideEvent--> engine    what is not in the trace

The engine owns time and GPUs. A policy never moves a GPU and never sees the future. The engine asks
the policy at most once per instant, after everything of that instant has happened. The engine
applies the decisions of one answer together: first it releases GPUs, then it claims GPUs.

A job is addressed by its **handle**: its position in the order of arrival. Policies and rate
functions get no other name of a job, so a name cannot influence a result.

Each part has a module. All names can be imported from this package.
"""

from artist.contract.decisions import (
    LONGEST_REASON,
    MOST_JOBS_PER_GPU,
    WAIT_CAUSES,
    Decision,
    Fetch,
    Hold,
    Migrate,
    Preempt,
    SetBatch,
    Start,
    Turn,
    Wait,
    WaitCause,
    Wake,
)
from artist.contract.links import (
    NO_SHARED_LINKS,
    LinkPattern,
    LinksNow,
    Moves,
    NoSharedLinks,
    PatternsUnknown,
    SharedLinks,
    Slowdowns,
    Uplink,
    UpPhase,
)
from artist.contract.outside_events import (
    EventSource,
    Notice,
    Outage,
    OutsideEvent,
    Restore,
    Withdraw,
)
from artist.contract.policy import (
    CORE_TABLES,
    BasePolicy,
    Options,
    Policy,
    WrapperPolicy,
    policy_name,
)
from artist.contract.rates import (
    NO_CHECKPOINT,
    Checkpoint,
    CheckpointRule,
    Rate,
    RateFunction,
    RatesAround,
)
from artist.contract.views import (
    NOBODY_ON_NOTICE,
    ClusterView,
    DataView,
    JobView,
    WhatIf,
    as_if_alone,
    nothing_to_try,
)

__all__ = [
    "CORE_TABLES", "LONGEST_REASON", "MOST_JOBS_PER_GPU", "NOBODY_ON_NOTICE", "NO_CHECKPOINT",
    "NO_SHARED_LINKS", "WAIT_CAUSES", "BasePolicy", "Checkpoint", "CheckpointRule", "ClusterView",
    "DataView", "Decision", "EventSource", "Fetch", "Hold", "JobView", "LinkPattern", "LinksNow",
    "Migrate", "Moves", "NoSharedLinks", "Notice", "Options", "Outage", "OutsideEvent",
    "PatternsUnknown", "Policy", "Preempt", "Rate", "RateFunction", "RatesAround", "Restore",
    "SetBatch", "SharedLinks", "Slowdowns", "Start", "Turn", "UpPhase", "Uplink", "Wait",
    "WaitCause", "Wake", "WhatIf", "Withdraw", "WrapperPolicy", "as_if_alone", "nothing_to_try",
    "policy_name",
]  # fmt: skip
