"""Jobs that read their tables over the wide-area network: a rate function around another one.

A job reads all of its tables once while it runs, an equal part in each iteration, during
computation and communication. Missing tables come over the wide-area network. So with B missing
bytes, n iterations and a share of b bytes per second,

    iteration_s = max(iteration_s of the rate function inside, B / n / b)

Each GPU of a job reads an equal part, from the home of the table if its own region lacks it. Shares
are max-min fair among the jobs that read (`wide_area.py`), and no job gets more than it wants,
B / n / iteration_s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from artist.cluster.placement import Placement
from artist.contract import JobView, Rate, RateFunction, RatesAround
from artist.data.store import Store
from artist.data.wide_area import Link, WideAreaFlow, max_min
from artist.units import Tick
from artist.workload.job import Job

SLOWED = 1e-9
"""A share that falls short by less than this part counts as enough, so rounding slows no job."""


@dataclass(slots=True)
class _ReadingJob:
    """A running job that reads from other regions."""

    inside: Rate
    """The job's rate without the reads."""
    iteration_bytes: float
    """Bytes that one iteration on these GPUs reads from other regions."""
    parts: Mapping[Link, Fraction]

    @property
    def flow(self) -> WideAreaFlow:
        """What the job wants of the regions' links."""
        return WideAreaFlow(self.parts, Fraction(self.iteration_bytes / self.inside.iteration_s))

    def rate(self, share: Fraction) -> Rate:
        """The rate of the job if it reads `share` bytes per second."""
        wants = self.flow.wants
        assert wants is not None
        if share >= wants * (1 - Fraction(SLOWED)):
            return self.inside
        return self.inside._replace(
            iteration_s=self.iteration_bytes / float(share),
            source=f"{self.inside.source}+remote-data",
        )


class RemoteReads(RatesAround):
    """Another rate function, slowed by reads over the wide-area network."""

    def __init__(self, inside: RateFunction, store: Store, capacity: Fraction) -> None:
        """`capacity` of a region's link each way, bytes per second."""
        super().__init__(inside)
        self._store, self._capacity = store, capacity
        self._readers: dict[int, _ReadingJob] = {}

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """Rates of the jobs that changed, and of jobs whose reads they speed up or slow down."""
        rates = dict(self._inside(now, running, changed))
        touched = False
        for state in changed:
            if state.handle in self._readers and (state.placement is None or state.handle in rates):
                del self._readers[state.handle]
                touched = True
        for handle, rate in rates.items():
            placement = running[handle].placement
            assert placement is not None  # running jobs have GPUs
            reader = self._reader(running[handle].job, placement, rate)
            if reader is not None:
                self._readers[handle] = reader
                touched = True
        return rates | self._shared() if touched else rates

    def _shared(self) -> dict[int, Rate]:
        readers = list(self._readers.items())
        shares = max_min([reader.flow for _, reader in readers], self._capacity)
        return {
            handle: reader.rate(share)
            for (handle, reader), share in zip(readers, shares, strict=True)
        }

    def _reader(self, job: Job, placement: Placement, rate: Rate) -> _ReadingJob | None:
        """The job's reads from other regions; None if its regions hold all of its tables."""
        if not job.tables:
            return None
        pieces = self._store.catalogue.pieces
        loads: dict[Link, Fraction] = {}
        total = Fraction(0)
        for region, gpus in self._store.gpus_by_region(placement).items():
            for piece in self._store.missing(job, region):
                load = Fraction(pieces[piece].size_bytes * gpus, placement.gpus)
                total += load
                for link in ((pieces[piece].regions[0], False), (region, True)):
                    loads[link] = loads.get(link, Fraction(0)) + load
        if not total:
            return None
        parts = {link: load / total for link, load in loads.items()}
        return _ReadingJob(rate, float(total) / job.iterations * rate.worth, parts)
