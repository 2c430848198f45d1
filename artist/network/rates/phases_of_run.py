"""`phase` and `fluid` for the jobs of a run: where in its iteration is each job now?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from artist.contract import JobView, Turn
from artist.network.models.canonical import Model
from artist.network.models.patterns import InTurn
from artist.network.rates.network_of_run import TurnsOfRun
from artist.network.rates.placed_job import PlacedJob
from artist.network.rates.uplinks import Uplinks
from artist.network.sharing import CurvedJob, shared
from artist.units import TICKS_PER_S, Tick


class Phases:
    """A solver that asks an event simulation, from present phases on."""

    def __init__(
        self,
        name: str,
        model: Model,
        most_jobs: int,
        uplinks: Uplinks,
        eta: float,
        turns: TurnsOfRun,
    ) -> None:
        self.name, self.most_jobs = name, most_jobs
        self._turns = turns
        self._model, self._uplinks, self._eta = model, uplinks, eta

    def shares(
        self, jobs: Sequence[PlacedJob], running: Mapping[int, JobView], now: Tick
    ) -> Mapping[int, float]:
        """Shares of joined jobs from now on."""
        since = _common_start(jobs)
        # Numbers of groups grow for ever; equal answers must have equal ones.
        groups: dict[int, int] = {}
        curved = [
            replace(
                self._uplinks.curved(placed),
                offset_s=_start_s(placed.turn, now if since is None else since)
                if placed.turn is not None
                else self._offset_s(placed, running[placed.handle], now),
                turn=_in_turn(placed.turn, groups),
            )
            for placed in jobs
        ]
        answers = shared(curved, self._model, eta=self._eta, fair_queued=self._uplinks.fair_queued)
        for placed, answer in zip(jobs, answers, strict=True):
            if placed.turn is not None:
                self._turns.takes(placed.handle, now, answer.corrections_per_min)
            else:
                self._turns.ends(placed.handle, now)
        return {placed.handle: answer.share for placed, answer in zip(jobs, answers, strict=True)}

    def _offset_s(self, placed: PlacedJob, view: JobView, now: Tick) -> float:
        """As `Member.offset_s`. A job that stands still goes on where it stopped."""
        still_s = max(view.productive_from - now, 0) / TICKS_PER_S
        return still_s - alone_s(self._uplinks.curved(placed), placed.share, view.phase(now))


def _common_start(jobs: Sequence[PlacedJob]) -> Tick | None:
    """The first start of jobs that all take turns with each other; None if some do not.

    Then the answer does not depend on the present time, so it is known the next time.
    """
    turns = [placed.turn for placed in jobs]
    first = turns[0]
    if first is None or any(turn is None or turn.group != first.group for turn in turns):
        return None
    return min(turn.start for turn in turns if turn is not None)


def _start_s(turn: Turn, since: Tick) -> float:
    """When a job's iterations start, counted from a tick: the first time."""
    return (turn.start - since) % turn.period / TICKS_PER_S


def _in_turn(turn: Turn | None, groups: dict[int, int]) -> InTurn | None:
    if turn is None:
        return None
    group = groups.setdefault(turn.group, len(groups))
    slack_s = None if turn.slack is None else turn.slack / TICKS_PER_S
    return InTurn(group, turn.period / TICKS_PER_S, slack_s)


def alone_s(curved: CurvedJob, share: float, phase: float) -> float:
    """How long a job that is alone takes to where one with a share is in its iteration.

    The Down time comes first. In the rest both have sent the same part of their bytes.
    """
    iteration_s, busy_s = curved.iteration_s(share), curved.busy_s(share)
    down_s = max(iteration_s - busy_s, 0.0)
    into_s = phase * iteration_s
    if into_s <= down_s:
        return into_s
    sent = (into_s - down_s) / (iteration_s - down_s)
    alone_down_s = max(curved.iteration_s(1.0) - curved.busy_s(1.0), 0.0)
    return alone_down_s + sent * (curved.iteration_s(1.0) - alone_down_s)
