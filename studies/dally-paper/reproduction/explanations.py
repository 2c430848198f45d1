"""The tables that explain verdicts: one cause each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from evidence import Cell, Evidence, together
from formatting import interval, seconds, share, table
from pairs import RACKS, Pair
from sources import DRAWN
from values import HEADINGS, POLICIES

from artist.results.statistics.compare_values import ComparedValues

SHAPES = (
    "4+4,4+4",
    "2,2,2,2,2,2,2,2",
    "4+4,4+3,1",
    "4+4/4+4",
    "4+4,4+4,4+4,4+4,4+4,4+4",
    "3+3,3+3,3+3,3+3,3+3,3+3,3+3,3+3",
    "4+4,4+4,4+4,4+4,4+3,4+2,2,1",
    "4+4,4+4,4+4/4+4,4+4,4+4",
    "4+4,4+4,4+4,4+4,4+4/4+4",
)
"""Placements of 16 and of 48 GPUs: even and uneven, in a rack and across racks."""


SWITCHED = ("makespan_s", "jct_mean_s", "queue_delay_mean_s", "comm_time_mean_s")
"""The metrics of the tables of pairs."""
STREAMED = ("jct_mean_s", "jct_p95_s", "comm_time_mean_s")
"""The metrics of the table of load."""


def switched(evidence: Evidence, pairs: Sequence[Pair]) -> Mapping[tuple[str, str], ComparedValues]:
    """What changes from the second cell of a pair to its first, by words and metric."""
    present = {
        words: (cell, base)
        for words, cell, base in pairs
        if evidence.has(cell) and evidence.has(base)
    }
    single = {
        (words, metric): evidence.difference(*pair, metric)
        for words, pair in present.items()
        for metric in SWITCHED
    }
    families = {words: (cell.trace, cell.racks) for words, (cell, _) in present.items()}
    return together(single, lambda key: families[key[0]])


def against(evidence: Evidence, pairs: Sequence[Pair]) -> str:
    """What changes from the second cell of a pair to its first."""
    judged = switched(evidence, pairs)
    return table(
        ["what is switched", *(HEADINGS[metric] for metric in SWITCHED)],
        (
            [words, *(interval(judged[words, metric]) for metric in SWITCHED)]
            for words in dict.fromkeys(words for words, _ in judged)
        ),
    )


def slowdown(signature: str) -> float:
    """How long MobileNetV3 communicates on a placement, per computing time (recorded latencies)."""
    from artist import latency

    backend = "recorded:studies/dally-paper/recorded.csv"
    settings = {"fabric": "dally2025", "system": {"uneven": "flat"}}
    estimate = latency("mobilenetv3", signature, backend=backend, **settings)
    return estimate.comm_ratio


def shapes() -> str:
    """What the shape of a placement costs."""
    return table(
        ["placement of MobileNetV3", "communication / computing"],
        ([f"`{signature}`", f"{slowdown(signature):,.1f}"] for signature in SHAPES),
    )


def tail(evidence: Evidence) -> str:
    """The placement of the last job to finish: medians over the drawn traces, batch."""
    rows = []
    for study, racks, policy in product(("default", "recorded"), (2, 8), POLICIES):
        cell = Cell(study, DRAWN["batch"], racks, policy)
        if not evidence.has(cell):
            continue
        runs = list(evidence.rows(cell).values())
        uneven = sum(row.values["last_job_even"] == "False" for row in runs)
        levels = [row.values["last_job_level"] for row in runs]
        rows.append(
            [
                f"{study}, {racks} racks, {policy}",
                seconds(evidence.middle(cell, "makespan_s")),
                seconds(evidence.middle(cell, "jct_p99_s")),
                f"{evidence.middle(cell, 'last_job_slowdown'):,.1f}",
                f"{levels.count('rack')} / {levels.count('network')} of {len(runs)}",
                f"{uneven} of {len(runs)}",
            ]
        )
    return table(
        ["run", "makespan", "P99 JCT", "last job: run time / ideal", "its GPUs in a rack / across",
         "uneven"],
        rows,
    )  # fmt: skip


def streams(evidence: Evidence) -> Mapping[tuple[int, str, str], ComparedValues]:
    """Dally against a rival on a stream, by jobs per hour, rival and metric."""
    single = {}
    for rate, rival, metric in product((10, 40), ("tiresias", "gandiva"), STREAMED):
        cell = stream(rate)
        if evidence.has(cell.of(policy=rival)):
            single[rate, rival, metric] = evidence.difference(cell, cell.of(policy=rival), metric)
    return together(single, lambda key: key[0])


def stream(rate: int) -> Cell:
    """Dally on the batch's jobs as a Poisson stream on 8 racks."""
    return Cell("load", DRAWN["batch"], 8, "dally", f"arrivals=poisson:{rate}")


def load(evidence: Evidence) -> str:
    """Poisson streams of the batch's jobs on 8 racks."""
    judged = streams(evidence)
    rows = [
        [
            f"{rate} jobs per hour: dally against {rival}",
            share(waiting(evidence, stream(rate))),
            *(interval(judged[rate, rival, metric]) for metric in STREAMED),
        ]
        for rate, rival in dict.fromkeys((rate, rival) for rate, rival, _ in judged)
    ]
    return table(
        ["stream", "dally's queueing / JCT", "mean JCT", "P95 JCT", "mean communication"], rows
    )


def order(evidence: Evidence) -> str:
    """One drawn trace in several machine orders: range over median."""
    rows = []
    for policy in ("dally", "tiresias"):
        cell = Cell("order", DRAWN["batch"], 8, policy)
        if not evidence.has(cell):
            continue
        row = [f"8 racks, {policy}"]
        for metric in ("makespan_s", "jct_mean_s", "jct_p95_s", "comm_time_mean_s"):
            values, middle = evidence.values(cell, metric), evidence.middle(cell, metric)
            row.append(f"{min(values) / middle:.2f} .. {max(values) / middle:.2f}")
        rows.append(row)
    return table(["run", "makespan", "mean JCT", "P95 JCT", "mean communication"], rows)


def waiting(evidence: Evidence, cell: Cell) -> float:
    """The share of a job's completion time that it waits, medians of means."""
    return evidence.middle(cell, "queue_delay_mean_s") / evidence.middle(cell, "jct_mean_s")


def congestion(evidence: Evidence) -> str:
    """How congested each cluster is: the share of a job's completion time that it waits."""
    rows = []
    for arrivals, policy in product(DRAWN, _RIVALS):
        cells = [Cell("recorded", DRAWN[arrivals], racks, policy) for racks in RACKS]
        shares = (share(waiting(evidence, cell)) if evidence.has(cell) else "" for cell in cells)
        rows.append([f"{arrivals}, {policy}", *shares])
    return table(["queueing / JCT", *(f"{racks} racks" for racks in RACKS)], rows)


def communicating(evidence: Evidence, cell: Cell) -> float:
    """Communication time over computing time, medians of means."""
    spent = evidence.middle(cell, "comm_time_mean_s")
    return spent / evidence.middle(cell, "compute_time_mean_s")


def communication(evidence: Evidence) -> str:
    """How long jobs communicate on H100 machines, per computing time."""
    rows = []
    for arrivals, policy in product(DRAWN, _RIVALS):
        cells = [Cell("h100", DRAWN[arrivals], racks, policy) for racks in RACKS]
        shares = (share(communicating(evidence, cell)) for cell in cells)
        rows.append([f"{arrivals}, {policy}", *shares])
    return table(["communication / computing", *(f"{racks} racks" for racks in RACKS)], rows)


def fabrics(evidence: Evidence) -> str:
    """How much there is to communicate in each regime on 8 racks, and what that decides."""
    cells = [Cell(study, DRAWN[arrivals], 8, "dally") for study, arrivals in _ON_8_RACKS]
    cells = [cell for cell in cells if evidence.has(cell.of(policy="gandiva"))]
    single = {
        (dally, index): evidence.difference(dally.of(policy=policy), dally.of(policy=rival), metric)
        for dally in cells
        for index, (policy, rival, metric) in enumerate(_DECIDED)
    }
    judged = together(single, lambda key: key[0])
    arrivals_of = {trace: arrivals for arrivals, trace in DRAWN.items()}
    rows = [
        [
            f"{dally.study}, {arrivals_of[dally.trace]}",
            share(communicating(evidence, dally)),
            *(interval(judged[dally, index]) for index in range(len(_DECIDED))),
        ]
        for dally in cells
    ]
    return table(
        ["study", "dally's communication / compute", "no-wait for fully-consolidated: JCT",
         "dally for tiresias: JCT", "makespan", "dally for gandiva: JCT"],
        rows,
    )  # fmt: skip


_RIVALS = ("dally", "tiresias", "gandiva")
_FABRICS = (
    "default",
    "flat",
    "machine-column",
    "bucketed",
    "one-ring",
    "h100",
    "recorded",
    "no-communication",
)
_ON_8_RACKS = tuple(product(_FABRICS, DRAWN))
_DECIDED = (
    ("dally-no-wait", "dally-fully-consolidated", "jct_mean_s"),
    ("dally", "tiresias", "jct_mean_s"),
    ("dally", "tiresias", "makespan_s"),
    ("dally", "gandiva", "jct_mean_s"),
)
"""Policy, rival and metric of the columns of the table of fabrics."""
