"""The table of policies, one row each. `artist list policies` prints it.

A row names the class and the options that it starts from, and says whether the policy reads how
long jobs will run (`run_times.py`). Adding a policy: docs/write-a-policy.md.
A policy in a file of the user needs no row (`own_file.py`).
"""

from artist.registry import Entry, Registry

DALLY = "Sharma et al., Dally, IEEE Big Data 2025"
BACKFILL = "Mu'alem and Feitelson, Utilization and predictability with backfilling, TPDS 2001"
SLURM = "slurm.conf(5) of Slurm 22.05; Yoo, Jette and Grondona, SLURM, JSSPP 2003"
TIRESIAS = "Gu et al., Tiresias, NSDI 2019"
CASSINI = "Rajasekaran et al., CASSINI, NSDI 2024"
GAVEL = "Narayanan et al., Gavel, OSDI 2020"
MAST = "Choudhury et al., MAST, OSDI 2024"
LUCID = "Hu et al., Lucid, ASPLOS 2023"
POLLUX = "Qiao et al., Pollux, OSDI 2021"
SIA = "Jayaram Subramanya et al., Sia, SOSP 2023"
RL = "Ryu and Eo, Network contention-aware cluster scheduling with reinforcement learning, 2023"

APART = {"placement": "least-contended", "most_slowdown": 2 / 3}
"""What the baselines to learned policies add: idle links first, and no start where a job would keep
less than .6 of its speed. That is the knob of Ryu and Eo's code (the paper leaves it open)."""

POLICIES = Registry(
    "policy",
    "artist list policies, or FILE.py:CLASS",
    [
        Entry(
            "dally",
            "artist.policies.dally.policy:Dally",
            "jobs wait for GPUs close together, for times tuned from past waits; those that the "
            "network slows most come first",
            f"{DALLY}, section IV-B",
        ),
        Entry(
            "dally-manual",
            "artist.policies.dally.policy:Dally",
            "Dally with fixed timers of 12 h and 24 h",
            f"{DALLY}, section V-C",
            {"timers": "manual"},
            everyday=False,
        ),
        Entry(
            "dally-no-wait",
            "artist.policies.dally.policy:Dally",
            "Dally that takes whatever level is free",
            f"{DALLY}, section V-C",
            {"timers": "none"},
            everyday=False,
        ),
        Entry(
            "dally-fully-consolidated",
            "artist.policies.dally.policy:Dally",
            "Dally that waits as long as needed for the best level",
            f"{DALLY}, section V-C",
            {"timers": "unbounded"},
            everyday=False,
        ),
        Entry(
            "dally-within-level",
            "artist.policies.dally.policy:Dally",
            "Dally whose jobs also move to a better shape inside their level",
            f"after {DALLY}; why: studies/dally-paper",
            {"moves_for": "shape"},
            everyday=False,
        ),
        Entry(
            "fifo",
            "artist.policies.classic:Classic",
            "first come, first served, strictly: no job passes the head of the queue",
            "",
            {"order": "arrival", "strict": True},
        ),
        Entry(
            "fifo-backfill",
            "artist.policies.classic:Classic",
            "first come, first served; a job that does not fit is passed, without reservation",
            "",
            {"order": "arrival"},
        ),
        Entry(
            "easy",
            "artist.policies.backfill.easy:Easy",
            "the first job that does not fit has a reservation, which no later job delays",
            f"{BACKFILL}, section 2",
            everyday=False,
            knows_run_times=True,
        ),
        Entry(
            "conservative",
            "artist.policies.backfill.conservative:Conservative",
            "every job has a reservation, which no later job delays",
            f"{BACKFILL}, section 2",
            everyday=False,
            knows_run_times=True,
        ),
        Entry(
            "slurm",
            "artist.policies.slurm.policy:Slurm",
            "Slurm 22.05 as a cluster file of `artist cluster import --slurm` configures it",
            SLURM,
            everyday=False,
        ),
        Entry(
            "sjf",
            "artist.policies.classic:Classic",
            "shortest ideal run time first, never preempting",
            "",
            {"order": "length"},
            knows_run_times=True,
        ),
        Entry(
            "las",
            "artist.policies.classic:Classic",
            "jobs with the least GPU time so far first, preempting at the end of leases",
            f"{TIRESIAS}, section 3",
            {"order": "service", "preemption": "lease"},
        ),
        Entry(
            "srtf",
            "artist.policies.classic:Classic",
            "shortest remaining ideal time first, preempting at once",
            f"{TIRESIAS}, section 3",
            {"order": "remaining", "preemption": "at-once"},
            knows_run_times=True,
        ),
        Entry(
            "srsf",
            "artist.policies.classic:Classic",
            "smallest remaining ideal time x GPUs first, preempting at once",
            f"{TIRESIAS}, section 3",
            {"order": "area", "preemption": "at-once"},
            knows_run_times=True,
        ),
        Entry(
            "srsf-threshold",
            "artist.policies.classic:Classic",
            "SRSF on idle links, and no start where a job would lose too much to others",
            f"baseline to {RL}",
            {"order": "area", "preemption": "at-once", **APART},
            everyday=False,
            knows_run_times=True,
        ),
        Entry(
            "las-threshold",
            "artist.policies.classic:Classic",
            "LAS on idle links, and no start where a job would lose too much to others",
            f"baseline to {RL}",
            {"order": "service", "preemption": "lease", **APART},
            everyday=False,
        ),
        Entry(
            "tiresias",
            "artist.policies.tiresias.policy:Tiresias",
            "jobs with little GPU time so far first, in a few queues; models with one large tensor "
            "wait for GPUs close together",
            TIRESIAS,
        ),
        Entry(
            "gandiva",
            "artist.policies.gandiva.policy:Gandiva",
            "machines by affinity, time slices when over-subscribed, migration to fewer machines",
            "Xiao et al., Gandiva, OSDI 2018",
        ),
        Entry(
            "themis",
            "artist.policies.themis.policy:Themis",
            "finish-time fairness by auctions of leased GPUs",
            "Mahajan et al., Themis, NSDI 2020",
            knows_run_times=True,
        ),
        Entry(
            "themis-cassini",
            "artist.policies.cassini.wrapper:Cassini",
            "Themis whose jobs take turns on links (contention phase); holds no job under mean; "
            "same as themis under none",
            CASSINI,
            host="themis",
            everyday=False,
            knows_run_times=True,
        ),
        Entry(
            "dally-cassini",
            "artist.policies.cassini.wrapper:Cassini",
            "Dally whose jobs take turns on links (contention phase); holds no job under mean; "
            "same as dally under none",
            CASSINI,
            host="dally",
            everyday=False,
        ),
        Entry(
            "cassini",
            "artist.policies.cassini.wrapper:Cassini",
            "any policy whose jobs take turns on links (contention phase); holds no job under "
            "mean; same as that policy under none",
            CASSINI,
            wraps=True,
            everyday=False,
        ),
        Entry(
            "mast",
            "artist.policies.mast.policy:Mast",
            "one queue for all regions, quotas and priorities, plans by region",
            MAST,
            everyday=False,
        ),
        Entry(
            "federated",
            "artist.policies.mast.policy:Federated",
            "another cell of MAST's Table 1 (policy.cell): queues or plans of a smaller scope",
            f"{MAST}, sections 4.1 and 5.6",
            everyday=False,
        ),
        Entry(
            "quota",
            "artist.policies.quota.wrapper:QuotaWrapper",
            "any policy whose jobs have priorities and whose tenants have quotas",
            f"{MAST}, sections 2 and 4.2",
            wraps=True,
            everyday=False,
        ),
        Entry(
            "random-placement",
            "artist.policies.random_placement:RandomPlacement",
            "any policy, but its jobs get random GPUs: a baseline",
            f"{CASSINI}, section 5.1, Random",
            wraps=True,
            everyday=False,
        ),
        Entry(
            "lookahead",
            "artist.policies.lookahead:Lookahead",
            "any policy, but doubtful starts are first tried on copies of the run",
            "Bertsekas, Tsitsiklis and Wu, Rollout algorithms, 1997",
            wraps=True,
            everyday=False,
            knows_run_times=True,
        ),
        Entry(
            "learned",
            "artist.policies.learned.policy:Learned",
            "a network that `artist train` has trained (policy.weights=FILE)",
            "after Ryu and Eo, contention-aware scheduling with reinforcement learning",
            everyday=False,
            knows_run_times=True,
        ),
        Entry(
            "rl-base",
            "artist.policies.learned.policy:Shipped",
            "a network that was trained under contention; it may let jobs wait",
            f"after {RL}, section IV",
            {"network": "rl-base", "caution": 0.2},
            everyday=False,
            knows_run_times=True,
        ),
        Entry(
            "rl-hybrid",
            "artist.policies.learned.policy:Shipped",
            "a network that was trained under contention; it starts every job that can start",
            f"after {RL}, section IV",
            {"network": "rl-hybrid", "on_none": "greedy", "caution": 0.2},
            everyday=False,
            knows_run_times=True,
        ),
        Entry(
            "gavel",
            "artist.policies.gavel.policy:Gavel",
            "max-min fair shares of time on kinds of GPUs, in rounds",
            f"{GAVEL}, sections 3 to 5",
            everyday=False,
        ),
        Entry(
            "gavel-ftf",
            "artist.policies.gavel.policy:Gavel",
            "Gavel that minimises the largest finish-time fairness",
            f"{GAVEL}, section 4.2",
            {"objective": "ftf"},
            everyday=False,
            knows_run_times=True,
        ),
        Entry(
            "gavel-makespan",
            "artist.policies.gavel.policy:Gavel",
            "Gavel that minimises the makespan",
            f"{GAVEL}, section 4.2",
            {"objective": "makespan"},
            everyday=False,
            knows_run_times=True,
        ),
        Entry(
            "lucid",
            "artist.policies.lucid:Lucid",
            "short jobs first by past run times; jobs that hardly disturb each other share GPUs",
            LUCID,
            everyday=False,
        ),
        Entry(
            "pollux",
            "artist.policies.pollux.policy:Pollux",
            "GPUs and batches by goodput, fairly, in rounds of a minute",
            POLLUX,
            everyday=False,
        ),
        Entry(
            "sia",
            "artist.policies.sia.policy:Sia",
            "GPUs and kinds of them by goodput, by an integer program every minute",
            SIA,
            everyday=False,
        ),
        Entry(
            "equal-share",
            "artist.policies.elastic.shares:Shares",
            "elastic jobs get equal numbers of GPUs",
            "baseline to Pollux",
            {"rule": "equal-share"},
            everyday=False,
        ),
        Entry(
            "max-throughput",
            "artist.policies.elastic.shares:Shares",
            "elastic jobs get GPUs where these speed them up most",
            "baseline to Pollux",
            {"rule": "max-throughput"},
            everyday=False,
        ),
        Entry(
            "optimus",
            "artist.policies.elastic.shares:Shares",
            "elastic jobs get GPUs where these finish them soonest",
            "Peng et al., Optimus, EuroSys 2018, section 4.1",
            {"rule": "optimus"},
            everyday=False,
            knows_run_times=True,
        ),
        Entry(
            "tiresias-rounds",
            "artist.policies.elastic.queues:Queues",
            "two queues by attained service, in rounds of a minute",
            f"{TIRESIAS}, as the authors of Pollux ran it",
            everyday=False,
        ),
    ],
)
