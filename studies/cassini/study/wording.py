"""The values of the page, all from the rows. `page.md.j2` has the words and the tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean, median

from artist.policies.cassini.job_circle import Circle
from artist.policies.cassini.time_shifts import Solution
from artist.results.statistics.compare_values import IDENTICAL, ComparedValues
from artist.results.statistics.holm import judged_together
from studies.cassini.study import arithmetic
from studies.cassini.study.joint import JOINT
from studies.cassini.study.judging import (
    GAINS,
    HOLDS,
    NEAR_IDEAL,
    SMALLER,
    Judged,
    ceiling_of_links,
    judged_links,
    verdict,
)
from studies.cassini.study.links import (
    CENTRE,
    FIRST,
    FIRST_ONE_WAY,
    JITTER,
    JITTERS,
    LINKS,
    PACKETS,
    SNAPSHOTS,
)
from studies.cassini.study.links import RANDOM as RANDOM_OFFSETS
from studies.cassini.study.observations import CORRECTED, HERE
from studies.cassini.study.plan import (
    CASSINI,
    HOST,
    HOSTS,
    HOSTS_CELL,
    LCM,
    NO_CORRECTION,
    PAIRS,
    POLLUX_CELLS,
    RACKS_2,
    RANDOM,
    SETTINGS,
    THEMIS_CELLS,
)
from studies.cassini.study.workloads import CATALOGUE, DIVIDED, ELASTIC, MATCHED, MATCHED_MODELS
from studies.common.page import rendered, table
from studies.common.rows import Row

FIGURES = {
    "11": ((CATALOGUE, MATCHED), "poisson", RACKS_2, 1.6, 1.8),
    "12": ((DIVIDED,), "poisson", RACKS_2, 1.2, 1.6),
    "13": ((CATALOGUE, MATCHED), "dynamic", RACKS_2, 1.5, 2.2),
    "14": ((DIVIDED,), "dynamic", RACKS_2, 1.2, 1.6),
    "16": ((CATALOGUE, MATCHED), "dynamic", PAIRS, 1.4, 1.9),
}
"""Jobs, arrivals, cluster, and the paper's gains of mean and P99."""
TABLE_2 = {
    1: ("WideResNet101, VGG16", 138 + 148, 205 + 199),
    2: ("VGG19, VGG16, ResNet50", 168 + 163 + 59, 220 + 220 + 55),
    3: ("VGG19, VGG16", 166 + 168, 176 + 177),
    4: ("RoBERTa twice", 164 + 180, 210 + 208),
    5: ("BERT, VGG19, WideResNet101", 209 + 294 + 265, 213 + 292 + 266),
}
"""Jobs, and the sum of their communication times with CASSINI and with Themis, ms."""


JOINT_COLUMNS = ("unaligned", "algorithms", "centre", "ours", "search")


def page_text(rows: Sequence[Row]) -> str:
    """The page.

    Raises:
        jinja2.UndefinedError: the template asks for something that does not exist.
    """
    one = Judged(rows)
    links = judged_links(LINKS.read())
    alone = {
        CATALOGUE: list(arithmetic.alone(arithmetic.CATALOGUE_MODELS).values()),
        MATCHED: list(arithmetic.alone(MATCHED_MODELS).values()),
    }
    return rendered(
        HERE,
        runs=f"{len(rows):,}",
        table=table,
        gains_of_figures=list(gains_of_figures(one)),
        solved={"2": arithmetic.solved(arithmetic.FIG_2), "5": arithmetic.solved(arithmetic.FIG_5)},
        agrees=agrees,
        walks={"below": arithmetic.corrections(JITTER), "above": arithmetic.corrections(0.006)},
        farthest_deg=arithmetic.farthest_angle_deg(),
        cells=cells(one),
        pollux=pollux(one),
        pollux_gain=lambda arrivals, cluster, metric: of(
            one.pollux[ELASTIC, arrivals, cluster, metric],
            one.ceiling((ELASTIC, arrivals, cluster), "pollux", metric),
        ),
        table_2=table_2(links),
        hosts=hosts(one),
        settings=settings(one),
        jitter=jitter(links),
        joint=joint(JOINT.read()),
        slowed=lambda workload, arrivals, cluster: share(
            one.mean((workload, arrivals, cluster), "themis", HOST, "slowed_share")
        ),
        packets=packets(),
        gain=lambda workload, arrivals, cluster, metric: of(
            one.themis[workload, arrivals, cluster, metric],
            one.ceiling((workload, arrivals, cluster), "themis", metric),
        ),
        host_gain=lambda host, metric: of(
            one.hosts[host, metric], one.ceiling(HOSTS_CELL, host, metric)
        ),
        snapshot=lambda number, variant=FIRST: interval(links[number, variant, JITTER]),
        packet=lambda number: interval(judged_links(PACKETS.read())[number, FIRST, JITTER]),
        families=[
            judged_together(x.values()) for x in (one.themis, one.hosts, one.settings, one.pollux)
        ],
        lcm_snapped=lcm_snapped(rows),
        replicates=one.ended(""),
        fewer=one.ended(LCM),
        corrected=CORRECTED,
        sending={name: _sending(circles) for name, circles in alone.items()},
        pairs={name: _pairs(circles) for name, circles in alone.items()},
        corrections=corrections(),
        corrections_in_runs=corrections_in_runs(one),
        typical_corrections=typical_corrections(rows),
        host_slowed=lambda host: share(one.mean(HOSTS_CELL, host, HOST, "slowed_share")),
        best=best(one),
        joint_cases=len(JOINT.read()),
        lost=lambda *cell: share(one.mean(cell, "themis", HOST, "stretch_mean") - 1),
        joint_means=joint_means(JOINT.read()),
    )


def gains_of_figures(one: Judged) -> Iterator[list[str]]:
    """The paper's gains of mean and P99 by figure, ours, and the verdict."""
    for figure, (workloads, arrivals, cluster, *paper) in FIGURES.items():
        for workload in workloads:
            cell = (workload, arrivals, cluster)
            if cell not in THEMIS_CELLS:
                continue
            for metric, name, theirs in zip(
                ("mean_s", "p99_s"), ("mean", "P99"), paper, strict=True
            ):
                gain = one.themis[(*cell, metric)]
                said = verdict(gain, GAINS[metric])
                ours = of(gain, one.ceiling(cell, "themis", metric))
                yield [f"{figure}, {workload}", f"{name} {theirs:.1f} x", ours, said]
        if figure == "11":
            near = one.ideal[CATALOGUE, arrivals, cluster]
            holds = near.high < 1 + NEAR_IDEAL
            text = f"{interval(near)} x Ideal's mean"
            yield ["11", "CASSINI as Ideal", text, "holds" if holds else "noise"]


def corrections() -> dict[int, float]:
    """Corrections per minute and job of the snapshots of Fig. 17, with their first time-shifts."""
    rows = [x for x in LINKS.read() if x["variant"] == FIRST and float(x["jitter"]) == JITTER]
    return {
        number: fmean(float(x["corrections_per_min"]) for x in rows if x["snapshot"] == str(number))
        / len(SNAPSHOTS[number])
        for number in (1, 2, 3)
    }


def corrections_in_runs(one: Judged) -> tuple[float, float]:
    """The least and the most of all cells of Themis and of all hosts, a minute and job in turn."""
    places = [*((cell, "themis") for cell in THEMIS_CELLS), *((HOSTS_CELL, x) for x in HOSTS)]
    means = [one.mean(*place, CASSINI, "corrections_per_min") for place in places]
    known = [x for x in means if not math.isnan(x)]
    return min(known), max(known)


def typical_corrections(rows: Sequence[Row]) -> dict[str, float]:
    """The mean and the median of all runs in which jobs took turns and an agent kept them."""
    kept = [
        float(row["corrections_per_min"])
        for row in rows
        if row["corrections_per_min"] and row["setting"] != NO_CORRECTION
    ]
    return {"mean": fmean(kept), "median": median(kept)}


def cells(one: Judged) -> list[list[str]]:
    """Themis in every cell."""
    lines = []
    for cell in THEMIS_CELLS:
        gains = {metric: one.themis[(*cell, metric)] for metric in ("mean_s", "p99_s")}
        stretch = one.themis[(*cell, "stretch_mean")]
        lines.append(
            [
                *cell,
                share(one.mean(cell, "themis", HOST, "slowed_share")),
                _or_none(one.mean(cell, "themis", CASSINI, "corrections_per_min")),
                *(of(gain, one.ceiling(cell, "themis", x)) for x, gain in gains.items()),
                of(stretch, one.ceiling(cell, "themis", "stretch_mean")),
                verdict(stretch, GAINS["stretch_mean"]),
            ]
        )
    return lines


def pollux(one: Judged) -> list[list[str]]:
    """Pollux in each of its cells."""
    lines = []
    for cell in POLLUX_CELLS:
        stretch = one.pollux[(*cell, "stretch_mean")]
        lines.append(
            [
                *cell[1:],
                share(one.mean(cell, "pollux", HOST, "slowed_share")),
                _or_none(one.mean(cell, "pollux", CASSINI, "corrections_per_min")),
                *(
                    of(one.pollux[(*cell, x)], one.ceiling(cell, "pollux", x))
                    for x in ("stretch_mean", "stretch_p99")
                ),
                interval(one.pollux[(*cell, "jct_mean_s")]),
                verdict(stretch, GAINS["stretch_mean"]),
            ]
        )
    return lines


def table_2(links: dict[tuple[int, str, float], ComparedValues]) -> list[list[str]]:
    """The snapshots of Table 2 on one link."""
    lines = []
    rows = LINKS.read()
    for number, (jobs, cassini_ms, themis_ms) in TABLE_2.items():
        solution = arithmetic.solved(SNAPSHOTS[number])
        gain = links[number, FIRST, JITTER]
        paper = themis_ms / cassini_ms
        lines.append(
            [
                f"{number} {jobs}",
                f"{arithmetic.PAPER_SCORES[number]:.1f}",
                f"{solution.score:.2f}, {arithmetic.score_at_paper(number):.2f}",
                _score_verdict(number, solution.score),
                f"{arithmetic.at_random(number):.2f}",
                _excess(number, solution.score),
                f"{paper:.2f}",
                of(gain, ceiling_of_links(rows, number, FIRST)),
                interval(links[number, CENTRE, JITTER]),
                of(
                    links[number, FIRST_ONE_WAY, JITTER],
                    ceiling_of_links(rows, number, FIRST_ONE_WAY),
                ),
                _sign(paper, gain),
            ]
        )
    return lines


def packets() -> list[list[str]]:
    """Snapshots packet by packet, beside the same seeds of `phase`."""
    rows, ours = PACKETS.read(), LINKS.read()
    compared = judged_links(rows)
    lines = []
    for number in sorted({int(row["snapshot"]) for row in rows}):
        of_packets = [row for row in rows if row["snapshot"] == str(number)]
        seeds = {row["seed"] for row in of_packets}
        of_phase = [
            row
            for row in ours
            if (row["snapshot"], row["jitter"]) == (str(number), str(JITTER))
            and row["seed"] in seeds
        ]
        phase = judged_links(of_phase)
        lines.append(
            [
                f"{number} {TABLE_2[number][0]}",
                str(len(seeds)),
                *(
                    _stretch(some, variant)
                    for variant in (RANDOM_OFFSETS, FIRST)
                    for some in (of_packets, of_phase)
                ),
                of(compared[number, FIRST, JITTER], ceiling_of_links(of_packets, number, FIRST)),
                of(phase[number, FIRST, JITTER], ceiling_of_links(of_phase, number, FIRST)),
                f"{TABLE_2[number][2] / TABLE_2[number][1]:.2f}",
            ]
        )
    return lines


def _stretch(rows: Sequence[Row], variant: str) -> str:
    return f"{fmean(float(row['stretch']) for row in rows if row['variant'] == variant):.3f}"


def _score_verdict(number: int, best: float) -> str:
    """Within .1 of the paper's, and its time-shifts within .03 of the best."""
    near = abs(best - arithmetic.PAPER_SCORES[number]) <= 0.1
    lost = round(best, 2) - round(arithmetic.score_at_paper(number), 2)
    return "holds" if near and lost <= 0.03 + 1e-9 else "off"


def _excess(number: int, best: float) -> str:
    """Bytes that find no room, at random phases over those at the best shifts (eq. 1)."""
    left = 1 - best
    return f"{(1 - arithmetic.at_random(number)) / left:.1f}" if left > 0.005 else "all"


def _sign(paper: float, gain: ComparedValues) -> str:
    """Of snapshots only the sign of the gain is asked; below 2 % the paper has none."""
    said = verdict(gain, 1.0)
    if paper < 1.02:
        return {"no difference": "holds", "holds": "gains more"}.get(said, said)
    return said


def hosts(one: Judged) -> list[list[str]]:
    """CASSINI around every host."""
    lines = []
    for host in ("themis", *HOSTS, RANDOM):
        means = [
            one.mean(HOSTS_CELL, host, CASSINI, metric)
            for metric in ("choices", "score", "moved", "links", "cycles", "corrections_per_min")
        ]
        choices, score, moved, full, cycles, corrected = means
        lines.append(
            [
                host,
                str(len(one.cell(HOSTS_CELL, host, CASSINI))),
                share(one.mean(HOSTS_CELL, host, HOST, "slowed_share")),
                f"{choices:.1f}",
                "-" if math.isnan(score) else f"{score:.2f}",
                "-" if math.isnan(moved) else share(moved),
                *("-" if math.isnan(x) else f"{x:.1f}" for x in (full, cycles, corrected)),
                *(
                    of(one.hosts[host, x], one.ceiling(HOSTS_CELL, host, x))
                    for x in ("stretch_mean", "stretch_p99")
                ),
                interval(one.hosts[host, "jct_mean_s"]),
                verdict(one.hosts[host, "stretch_mean"], GAINS["stretch_mean"]),
            ]
        )
    return lines


def settings(one: Judged) -> list[list[str]]:
    """Themis with CASSINI under other settings."""
    return [
        [
            setting or "default (jitter .5 %, first, snapped)",
            str(one.ended(setting)),
            _or_none(one.mean(HOSTS_CELL, "themis", CASSINI, "corrections_per_min", setting)),
            *(
                of(one.settings[setting, x], one.ceiling(HOSTS_CELL, "themis", x, setting))
                for x in ("stretch_mean", "stretch_p99", "mean_s")
            ),
        ]
        for setting in ("", *SETTINGS)
        if one.ended(setting)
    ]


def jitter(links: dict[tuple[int, str, float], ComparedValues]) -> list[list[str]]:
    """Gains on one link over jitter, `first` and `centre`."""
    rows = LINKS.read()
    lines = []
    for x in JITTERS:
        corrected = [
            fmean(
                float(row["corrections_per_min"])
                for row in rows
                if (int(row["snapshot"]), row["variant"], float(row["jitter"])) == (s, FIRST, x)
            )
            for s in (1, 3)
        ]
        gains = [
            f"{links[s, variant, x].ratio:.2f}" for s in (1, 2, 3, 4) for variant in (FIRST, CENTRE)
        ]
        lines.append([f"{100 * x:g} %", *gains, *(f"{n:.1f}" for n in corrected)])
    return lines


def joint(rows: Sequence[Row]) -> list[list[str]]:
    """The algorithms against the search, by the number of jobs and by loops."""
    groups = {
        "every score 1": [x for x in rows if float(x["score"]) > 1 - 1e-9],
        "some score below 1": [x for x in rows if float(x["score"]) <= 1 - 1e-9],
        **{f"{jobs} jobs": [x for x in rows if x["jobs"] == str(jobs)] for jobs in (2, 3, 4)},
        "without loops": [x for x in rows if x["cycles"] == "0"],
        "with loops": [x for x in rows if x["cycles"] != "0"],
        "all": list(rows),
    }
    lines = []
    for name, some in groups.items():
        if not some:
            continue
        means = [fmean(float(x[column]) for x in some) for column in JOINT_COLUMNS]
        lost = [float(x["algorithms"]) / float(x["search"]) - 1 for x in some]
        worse = sum(float(x["algorithms"]) > float(x["unaligned"]) for x in some)
        lines.append(
            [name, str(len(some)), *(f"{x:.3f}" for x in means), share(max(lost)), str(worse)]
        )
    return lines


def joint_means(rows: Sequence[Row]) -> dict[str, str]:
    """The means of all cases."""
    return {column: f"{fmean(float(x[column]) for x in rows):.3f}" for column in JOINT_COLUMNS}


def _or_none(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1f}"


def _sending(circles: Sequence[Circle]) -> dict[str, str]:
    least, middle, most = (f"{100 * x:.0f}" for x in arithmetic.sending(circles))
    return {"least": least, "median": middle, "most": most}


def _pairs(circles: Sequence[Circle]) -> dict[str, str]:
    count, good, score, random = arithmetic.pairs(circles)
    return {
        "all": str(count),
        "good": str(good),
        "score": f"{score:.2f}",
        "random": f"{random:.2f}",
    }


def best(one: Judged) -> str:
    """The host whose mean stretch surely gains most, and how much."""
    gains = {host: one.hosts[host, "stretch_mean"] for host in ("themis", *HOSTS)}
    sure = [
        host for host in gains if verdict(gains[host], GAINS["stretch_mean"]) in (HOLDS, SMALLER)
    ]
    if not sure:
        return "none surely"
    host = max(sure, key=lambda x: gains[x].ratio)
    return f"{host}, {of(gains[host], one.ceiling(HOSTS_CELL, host, 'stretch_mean'))}"


def lcm_snapped(rows: Sequence[Row]) -> int:
    """In how many runs some common multiple had too many angles, so that periods were snapped."""
    return sum(row["setting"] == LCM and float(row["snapped"] or 0) > 0 for row in rows)


def interval(gain: ComparedValues) -> str:
    """A ratio with its 95 % interval."""
    if gain.verdict == IDENTICAL:
        return "1"
    return f"{gain.ratio:.3f} [{gain.low:.3f} .. {gain.high:.3f}]"


def of(gain: ComparedValues, ceiling: float) -> str:
    """A gain, and its ceiling: the gain if no job slowed another one."""
    return f"{interval(gain)} of {ceiling:.3f}"


def share(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:.0f} %" if value >= 0.0995 or value < 0.0005 else f"{100 * value:.1f} %"


def agrees(solution: Solution, paper_s: float, within: float) -> bool:
    """Whether the score is 1, and the second job's time-shift about that of the paper."""
    return solution.score > 0.999 and abs(solution.shifts_s[1] / paper_s - 1) < within
