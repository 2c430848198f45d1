"""The command line with a policy that never ends, for tests that interrupt it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from artist.cli.main import main
from artist.contract import BasePolicy, ClusterView, Decision, Options, Start, Wake
from artist.policies.shared.placers import placer
from artist.policies.table import POLICIES
from artist.registry import Entry
from artist.units import ticks

FIRST_JOBS = 3


class Endless(BasePolicy):
    """Runs the first jobs, says so on stderr, and then asks to be asked again every second."""

    Options = Options

    def __init__(self, _options: Options) -> None:
        self._finished = 0

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Start one job at a time. After the first jobs, start none."""
        self._finished += len(view.finished)
        wake = Wake(view.now + ticks(1))
        if self._finished < FIRST_JOBS:
            if view.running:
                return ()
            job = next(iter(view.waiting.values()))
            placement = placer("pack").place(view.free.copy(), job.job.gpus)
            assert placement is not None
            return (Start(job.handle, placement),)
        if view.finished:
            sys.stderr.write("endless\n")
            sys.stderr.flush()
        return (wake,)


if __name__ == "__main__":
    POLICIES.add(Entry("endless", "endless:Endless", "never finishes"))
    main()
