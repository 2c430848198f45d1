"""What the regions of a cluster did: how many jobs each ran, and how long those waited."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from statistics import fmean
from typing import TYPE_CHECKING

from artist.errors import one_line
from artist.results.terms.number_text import FEW_DAYS, time_text, time_unit
from artist.units import counted

if TYPE_CHECKING:
    from artist.config import Scenario
    from artist.results.terms.columns import Table

MOST_REGIONS = 8
"""More are counted, not named."""


def regions_sentence(scenario: Scenario, jobs: Table, placements: Table) -> str:
    """`Jobs by region: north ran 13 (mean wait 2 h), ...`; empty if the cluster has no regions.

    `jobs` and `placements` are the tables of the run. A job that was in several regions counts in
    each.
    """
    from artist.run import build_cluster, build_fabric
    from artist.run.hardware import cluster_of

    tree, cluster = build_cluster(scenario, build_fabric(scenario)), cluster_of(scenario)
    if not tree.wide_area or cluster is None:
        return ""
    level = tree.root - 1
    names = cluster.names[tree.level_names[level]]
    ran: dict[int, set[str]] = defaultdict(set)
    for job, text in zip(placements["job_id"], placements["placement"], strict=True):
        for part in text.split():
            ran[tree.ancestor(0, int(part.partition(":")[0]), level)].add(job)
    wait_s = dict(zip(jobs["job_id"], map(float, jobs["queue_delay_s"]), strict=True))
    means_s = {one: round(fmean(wait_s[job] for job in sorted(ran[one])), 3) for one in ran}
    unit = time_unit(max(means_s.values(), default=0.0), days=FEW_DAYS)
    told = []
    for one, name in enumerate(names[:MOST_REGIONS]):
        wait = f" (mean wait {time_text(means_s[one], unit)})" if one in ran else ""
        told.append(f"{one_line(name, 40)} ran {len(ran[one]):,}{wait}")
    rest = len(names) - len(told)
    more = f" and {counted(rest, 'other region')} the rest" if rest > 0 else ""
    times = Counter(itertools.chain.from_iterable(ran.values()))
    several = sum(count > 1 for count in times.values())
    also = f"; {counted(several, 'job')} ran in several" if several else ""
    return f"Jobs by region: {', '.join(told)}{more}{also}."
