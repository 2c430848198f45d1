"""Who falls for a job: as few as possible (MAST, section 4.3)."""

from __future__ import annotations

from collections.abc import Iterable


def fewest(jobs: Iterable[tuple[int, int]], lacking: int) -> tuple[int, ...] | None:
    """Of (handle, GPUs) in the order in which they would fall, those that fall.

    The first ones until it is enough; of these, the largest until it is enough. Of equally large
    ones, the first. None if all together are too few.

    >>> fewest([(1, 4), (2, 5), (3, 12)], 10)
    (3,)
    """
    chosen: list[tuple[int, int]] = []
    missing = lacking
    for job in jobs:
        chosen.append(job)
        missing -= job[1]
        if missing <= 0:
            break
    else:
        return None
    victims = []
    for handle, gpus in sorted(chosen, key=lambda x: -x[1]):
        victims.append(handle)
        lacking -= gpus
        if lacking <= 0:
            break
    return tuple(victims)
