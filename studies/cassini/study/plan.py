"""Which runs there are. A run is a place in this plan: nothing else decides its result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from studies.cassini.study.workloads import CATALOGUE, DIVIDED, ELASTIC, MATCHED, ODD, load_of

REPLICATES = 20
FEWER = 6
"""Of other hosts and other settings with CASSINI: they cost most of the time."""

RACKS_2, RACKS_4, PAIRS, SMALL_RACKS = "2:1", "4:1", "pairs", "racks of 2"
CLUSTERS: dict[str, dict[str, Any]] = {
    # Fig. 10: two links of 50 Gbit/s for four servers. The model shares them as one of 100.
    RACKS_2: {"racks": 6, "machines_per_rack": 4, "gpus_per_machine": 1},
    # One link of 50 Gbit/s: any two jobs that cross a rack's edge meet on it, as in Table 2.
    RACKS_4: {
        "racks": 6,
        "machines_per_rack": 4,
        "gpus_per_machine": 1,
        "fabric_options": {"rack": {"oversubscription": 4}},
    },
    # Fig. 16: six servers of two GPUs.
    PAIRS: {"racks": 3, "machines_per_rack": 2, "gpus_per_machine": 2},
    # One link of 50 Gbit/s for two servers: 2:1, and no job of three fits into a rack.
    SMALL_RACKS: {"racks": 12, "machines_per_rack": 2, "gpus_per_machine": 1},
}
GPUS = {RACKS_2: 24, RACKS_4: 24, PAIRS: 12, SMALL_RACKS: 24}
JOBS = {"poisson": 16, "dynamic": 10, "snapshot": 8}
PAIRS_JOBS = 8

HOST, CASSINI, IDEAL = "host", "cassini", "ideal"
RANDOM = "random"
HOSTS = (
    "fifo",
    "fifo-backfill",
    "sjf",
    "las",
    "srtf",
    "srsf",
    "tiresias",
    "gandiva",
    "dally",
    "dally-manual",
    "dally-no-wait",
    "dally-fully-consolidated",
    "dally-within-level",
)
"""Beside Themis: every policy that decides by itself. `learned` needs a file of weights."""

RANDOM_THEMIS = "random-placement(themis)"


@dataclass(frozen=True)
class Planned:
    """A run. `setting` names what differs from the defaults of CASSINI and of contention."""

    workload: str
    arrivals: str
    cluster: str
    host: str
    variant: str
    seed: int
    setting: str = ""
    options: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def place(self) -> tuple[str, ...]:
        """The columns that name the run."""
        return (
            self.workload, self.arrivals, self.cluster, self.host, self.variant, self.setting,
            str(self.seed),
        )  # fmt: skip

    @property
    def jobs(self) -> int:
        """How many jobs."""
        return PAIRS_JOBS if self.cluster == PAIRS else JOBS[self.arrivals]

    @property
    def load(self) -> float:
        """The load of Poisson arrivals."""
        return load_of(self.seed, REPLICATES)

    def scenario(self, trace: str) -> dict[str, Any]:
        """The scenario's settings."""
        host = RANDOM_THEMIS if self.host == RANDOM else self.host
        wrapped = f"cassini({host})" if self.variant == CASSINI else host
        return {
            "trace": trace,
            "fabric": "cassini-testbed",
            **CLUSTERS[self.cluster],
            "policy": wrapped,
            "contention": "none" if self.variant == IDEAL else "phase",
            "seed": self.seed,
            **self.options,
        }


LCM = "lcm"
NO_THRESHOLD = "no threshold"
"""As the paper: all jobs of a full link take turns."""
NO_CORRECTION = "no correction"
SETTINGS: dict[str, dict[str, Any]] = {
    "jitter 0": {"contention_options": {"jitter": 0.0}},
    "jitter 0.0025": {"contention_options": {"jitter": 0.0025}},
    "jitter 0.01": {"contention_options": {"jitter": 0.01}},
    "jitter 0.02": {"contention_options": {"jitter": 0.02}},
    "centre": {"policy_options": {"choose": "centre"}},
    LCM: {"policy_options": {"periods": "lcm"}},
    NO_THRESHOLD: {"policy_options": {"least_gain": -1.0}},
    NO_CORRECTION: {"policy_options": {"drift_correction": False}},
}
"""Robustness: of Themis with CASSINI, on matched jobs."""

THEMIS_CELLS = (
    (CATALOGUE, "poisson", RACKS_2),
    (CATALOGUE, "poisson", RACKS_4),
    (CATALOGUE, "dynamic", RACKS_2),
    (CATALOGUE, "dynamic", RACKS_4),
    (CATALOGUE, "dynamic", PAIRS),
    (CATALOGUE, "snapshot", RACKS_4),
    (MATCHED, "poisson", RACKS_2),
    (MATCHED, "poisson", RACKS_4),
    (MATCHED, "dynamic", RACKS_4),
    (MATCHED, "dynamic", PAIRS),
    (MATCHED, "snapshot", RACKS_4),
    (DIVIDED, "poisson", RACKS_2),
    (DIVIDED, "poisson", RACKS_4),
    (DIVIDED, "dynamic", RACKS_2),
    (DIVIDED, "dynamic", RACKS_4),
    (ODD, "dynamic", SMALL_RACKS),
    (ODD, "snapshot", SMALL_RACKS),
)
"""Workload, arrivals and cluster of the runs of Themis."""
POLLUX_CELLS = (
    (ELASTIC, "poisson", RACKS_2),
    (ELASTIC, "poisson", RACKS_4),
    (ELASTIC, "dynamic", RACKS_2),
    (ELASTIC, "dynamic", RACKS_4),
)
"""Those of Pollux (Figs. 11 to 13), whose jobs are elastic."""
HOSTS_CELL = (MATCHED, "dynamic", RACKS_4)
"""Where other hosts, Random and other settings are asked."""


def planned() -> list[Planned]:
    """All runs, replicate by replicate."""
    return [run for seed in range(REPLICATES) for run in _of_seed(seed)]


def _of_seed(seed: int) -> Iterator[Planned]:
    for cell in THEMIS_CELLS:
        for variant in (HOST, CASSINI, IDEAL):
            yield Planned(*cell, "themis", variant, seed)
    for cell in POLLUX_CELLS:
        for variant in (HOST, CASSINI):
            yield Planned(*cell, "pollux", variant, seed)
    if seed < FEWER:
        for setting, options in SETTINGS.items():
            yield Planned(*HOSTS_CELL, "themis", CASSINI, seed, setting, options)
    for host in (*HOSTS, RANDOM):
        for variant in (HOST, CASSINI) if seed < FEWER else (HOST,):
            yield Planned(*HOSTS_CELL, host, variant, seed)
