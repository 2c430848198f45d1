"""Where packets of different jobs wait in one queue.

Flows that leave one fair-queued link come out of it in turn, no faster than it is. They cannot fill
a later link that is at least as fast, so they do not queue there for each other. On a link without
fair queueing, jobs queue for each other if their flows come from different such links or from none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from artist.network.models.patterns import Flow, SharedLink

# .958 of a shared uplink's capacity was payload while two jobs sent (ns-3, DCTCP, 1 Gbit/s), over
# the .982 that a lone job reached. Slowdowns know only the ratio.
ETA = 0.976
"""Efficiency of a link with one queue while jobs share it, where the fabric states none."""

Source = tuple[bool, int]
"""A fair-queued link, or, if there is none, the flow itself."""


def sources(links: Sequence[SharedLink], flows: Sequence[Flow]) -> list[dict[int, Source]]:
    """For each flow, by link: the first fair-queued link before it that is no faster."""
    return [
        {
            link: _source(links, flow.links[:position], links[link], number)
            for position, link in enumerate(flow.links)
        }
        for number, flow in enumerate(flows)
    ]


def _source(
    links: Sequence[SharedLink], before: Sequence[int], link: SharedLink, number: int
) -> Source:
    for index in before:
        earlier = links[index]
        if earlier.fair_queued and earlier.capacity_bytes_per_s <= link.capacity_bytes_per_s:
            return True, index
    return False, number


def queue_for_each_other(
    link: SharedLink, jobs: Iterable[int], from_where: Iterable[Source]
) -> bool:
    """Whether flows on a link, of these jobs and sources, wait for each other in one queue."""
    return not link.fair_queued and len(set(jobs)) > 1 and len(set(from_where)) > 1
