"""What section VI of the Dally paper claims. Each claim compares one metric of two policies.

Source: Sharma et al., Dally, IEEE Big Data 2025. The numbers are the paper's, the words are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

BATCH, POISSON = "batch", "poisson"
ALL = (2, 4, 8, 16)


@dataclass(frozen=True, slots=True)
class Claim:
    """`policy` has less (or more) of `metric` than `rival` on these racks."""

    id: str
    source: str
    arrivals: str
    metric: str
    policy: str
    rival: str
    paper: str
    """The paper's numbers. Empty where the paper shows a figure without numbers."""
    less: bool = True
    racks: tuple[int, ...] = ALL
    rival_racks: int | None = None
    """Racks of the rival's cluster, if its size differs."""
    main: bool = False
    """Whether the summary shows it."""
    size: float | None = None
    """The published relative difference: the end of its range that is nearer to 0, or its mean
    where the range has no such end. None: the paper gives no number, or only a bound."""


DALLY, MANUAL, NO_WAIT = "dally", "dally-manual", "dally-no-wait"
CONSOLIDATED, TIRESIAS, GANDIVA = "dally-fully-consolidated", "tiresias", "gandiva"

CLAIMS = (
    Claim("M1", "VI-1, Fig. 7", BATCH, "makespan_s", DALLY, TIRESIAS,
          "up to -69 %, mean -68 %", main=True, size=-0.68),
    Claim("M2", "VI-1, Fig. 7", BATCH, "makespan_s", DALLY, GANDIVA,
          "up to -92 %, slight at 2 racks", main=True),
    Claim("M3", "VI-1, Fig. 7", BATCH, "makespan_s", DALLY, MANUAL, "", main=True),
    Claim("M4", "VI-1, Fig. 7", BATCH, "makespan_s", MANUAL, TIRESIAS, ""),
    Claim("M5", "VI-1, Fig. 7", BATCH, "makespan_s", MANUAL, GANDIVA, ""),
    Claim("M6", "VI-1, Fig. 7", BATCH, "makespan_s", DALLY, CONSOLIDATED, "", main=True),
    Claim("M7", "VI-1, Fig. 7", BATCH, "makespan_s", CONSOLIDATED, TIRESIAS, ""),
    Claim("M8", "VI-1, Fig. 7", BATCH, "makespan_s", NO_WAIT, TIRESIAS, "", less=False,
          racks=(4, 8, 16), main=True),
    Claim("M9", "VI-1, Fig. 7", BATCH, "makespan_s", NO_WAIT, TIRESIAS, "", racks=(2,)),
    Claim("Q1", "VI-2", BATCH, "queue_delay_mean_s", DALLY, TIRESIAS, "-18 to -31 %", main=True,
          size=-0.18),
    Claim("Q2", "VI-2, Fig. 8a", BATCH, "queue_delay_p95_s", DALLY, TIRESIAS, "-58 to -71 %",
          main=True, size=-0.58),
    Claim("Q3", "VI-2, Fig. 8a", BATCH, "queue_delay_p99_s", DALLY, TIRESIAS, "-67 to -78 %",
          size=-0.67),
    Claim("Q4", "VI-2, Fig. 8a", BATCH, "queue_delay_p99_s", DALLY, GANDIVA, "up to -81 %"),
    Claim("C1", "VI-3, Fig. 8b", BATCH, "comm_time_mean_s", DALLY, TIRESIAS,
          "-53 to -83 %, mean -66 %", main=True, size=-0.53),
    Claim("C2", "VI-3, Fig. 8b", BATCH, "comm_time_mean_s", DALLY, GANDIVA, "", main=True),
    # The paper does not define utilization. It says that communication diminishes it.
    Claim("U1", "VI-4, Fig. 11", BATCH, "gpu_computing_share", DALLY, GANDIVA, "", less=False,
          racks=(8,)),
    Claim("J1", "VI-5, Fig. 13a", BATCH, "jct_mean_s", DALLY, TIRESIAS,
          "-19 to -36 %, mean -26 %", main=True, size=-0.19),
    Claim("J2", "VI-5, Fig. 13a", BATCH, "jct_mean_s", DALLY, GANDIVA, "-23 to -51 %",
          racks=(4, 8, 16), main=True, size=-0.23),
    Claim("J3", "VI-5, Fig. 13a", BATCH, "jct_mean_s", DALLY, GANDIVA, "+39 %", less=False,
          racks=(2,), size=0.39),
    Claim("J4", "VI-5, Table II", BATCH, "jct_p95_s", DALLY, TIRESIAS, "-66 %", racks=(8,),
          size=-0.66),
    Claim("J5", "VI-5, Table II", BATCH, "jct_p99_s", DALLY, TIRESIAS, "-67 %", racks=(8,),
          size=-0.67),
    Claim("J6", "VI-5, Table II", BATCH, "jct_mean_s", DALLY, MANUAL, "-10 %", racks=(8,),
          size=-0.1),
    Claim("P1", "VI-5, Fig. 13b", POISSON, "jct_mean_s", DALLY, TIRESIAS, "-16 to -34 %",
          racks=(2, 8, 16), main=True, size=-0.16),
    Claim("P2", "VI-5, Fig. 13b", POISSON, "jct_mean_s", DALLY, TIRESIAS, "", less=False,
          racks=(4,), main=True),
    Claim("P3", "VI-5, Fig. 13b", POISSON, "jct_mean_s", DALLY, GANDIVA, "-23 to -51 %",
          main=True, size=-0.23),
    Claim("P4", "VI-5, Table III", POISSON, "jct_p50_s", DALLY, TIRESIAS, "-38 %", racks=(8,),
          size=-0.38),
    Claim("P5", "VI-5, Table III", POISSON, "jct_p95_s", DALLY, TIRESIAS, "+9 %", less=False,
          racks=(8,), size=0.09),
    Claim("P6", "VI-5, Table III", POISSON, "jct_mean_s", DALLY, MANUAL, "-43 %", racks=(8,),
          size=-0.43),
    Claim("P7", "VI-5, Table III", POISSON, "jct_p99_s", DALLY, GANDIVA, "-92 %", racks=(8,),
          size=-0.92),
    Claim("P8", "VI-5", POISSON, "jct_mean_s", TIRESIAS, TIRESIAS, "", racks=(4,), rival_racks=8),
)  # fmt: skip

METRICS = {
    "makespan_s": "makespan",
    "queue_delay_mean_s": "mean queueing delay",
    "queue_delay_p95_s": "P95 queueing delay",
    "queue_delay_p99_s": "P99 queueing delay",
    "comm_time_mean_s": "mean communication time",
    "gpu_computing_share": "computing share of the GPU time",
    "jct_mean_s": "mean JCT",
    "jct_p50_s": "median JCT",
    "jct_p95_s": "P95 JCT",
    "jct_p99_s": "P99 JCT",
}


def words(claim: Claim) -> str:
    """A claim as a sentence: `dally has less makespan than tiresias (batch)`."""
    relation = "less" if claim.less else "more"
    where = "" if claim.racks == ALL else f", {_listed(claim.racks)} racks"
    rival = f"{claim.rival} on {claim.rival_racks}" if claim.rival_racks else claim.rival
    comparison = f"{relation} {METRICS[claim.metric]} than {rival}"
    return f"{claim.policy} has {comparison} ({claim.arrivals}{where})"


def _listed(racks: tuple[int, ...]) -> str:
    return ", ".join(map(str, racks))
