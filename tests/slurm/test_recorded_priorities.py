"""Are usage, factors and priorities those that sshare and sprio printed during a session?"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from datetime import UTC, datetime

from recordings import SLURM, needs_slurm
from support import job

from artist.cluster.cluster_file import cluster_from
from artist.cluster.tree import nested
from artist.engine.job_state import JobState
from artist.policies.slurm.machines import Machines
from artist.policies.slurm.priority import FACTORS, Priorities
from artist.policies.slurm.request import Request, RequestReader
from artist.policies.slurm.settings import settings_of
from artist.slurm.cluster_import import cluster_document
from artist.slurm.texts import settings
from artist.units import TICKS_PER_S

SESSION = SLURM / "shares"
pytestmark = needs_slurm
PERIOD_S = 60


def moment_s(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def samples(name: str) -> dict[int, list[list[str]]]:
    """What a program printed, by the time of the sample."""
    found: dict[int, list[list[str]]] = {}
    with gzip.open(SESSION / f"{name}.txt.gz", "rt") as file:
        for line in file:
            at, *cells = line.rstrip("\n").split("|")
            found.setdefault(moment_s(at), []).append(cells)
    return found


class Session:
    """The recorded jobs, and the usage and factors that follow from when they ran."""

    def __init__(self) -> None:
        cluster = cluster_from(cluster_document(SESSION, keep_names=True), "session")
        facts = cluster.file.slurm
        assert facts is not None
        tree = nested(("machine", "network"), cluster.machines, cluster.kinds)
        machines = Machines(tree, cluster.names["machine"], facts)
        self.priorities = Priorities(settings_of(facts), machines, facts)
        self.shares = self.priorities.fair_share
        reader = RequestReader(machines, {qos.name: qos for qos in facts.qos})
        self.runs: list[tuple[int, int, Request]] = []
        with (SESSION / "sacct_short.txt").open(newline="") as file:
            for row in csv.DictReader(file, delimiter="|"):
                if "." not in row["JobID"]:
                    self._note(row, reader)
        # The thread of the decay began a second after slurmctld.
        self.begun_s = 1 + moment_s(settings(SESSION / "config.txt")["BOOT_TIME"])
        self.calculated_s = self.begun_s
        self.shares.rank(self.begun_s)

    def _note(self, row: dict[str, str], reader: RequestReader) -> None:
        tres = dict(x.split("=") for x in row["ReqTRES"].split(","))
        hints = {
            "hint_partition": row["Partition"],
            "hint_qos": row["QOS"],
            "hint_nodes": tres["node"],
            "hint_cpus": tres["cpu"],
        }
        asked = job(
            row["JobID"], int(tres["gres/gpu"]), 1, hints=hints, user=row["User"],
            tenant=row["Account"],
        )  # fmt: skip
        waiting = JobState(asked, int(row["JobID"]), moment_s(row["Eligible"]) * TICKS_PER_S)
        request = reader.request(waiting)
        self.runs.append((moment_s(row["Start"]), moment_s(row["End"]), request))

    def until(self, moments_s: list[int]) -> Iterator[int]:
        """Let time pass: jobs end, and every period usage decays. Yields at each moment."""
        ends = [(end_s, 0, start_s, request) for start_s, end_s, request in self.runs]
        last_s = max(moments_s)
        strikes = range(self.begun_s + PERIOD_S, last_s, PERIOD_S)
        events = [
            *ends,
            *((at, 1, 0, None) for at in strikes),
            *((at, 2, 0, None) for at in moments_s),
        ]
        for at_s, kind, start_s, request in sorted(events, key=lambda x: x[:2]):
            if request is not None:
                self._use(request, start_s, at_s)
            elif kind == 1:
                self.shares.decay(at_s)
                for start, end_s, running in self.runs:
                    if start <= at_s < end_s:
                        self._use(running, start, at_s)
                self.shares.rank(at_s)
                self.calculated_s = at_s
            else:
                yield at_s

    def _use(self, request: Request, start_s: int, end_s: int) -> None:
        billed = self.priorities.billed(request)
        self.shares.use(request.association, billed, start_s, end_s)


def test_usage_and_fair_share_are_those_of_sshare() -> None:
    session, printed = Session(), samples("sshare")
    usages, factors = [], []
    # The accounts were made within the first period, and had no factors before the next.
    for at_s in session.until([x for x in printed if x > session.begun_s + 2 * PERIOD_S]):
        for account, user, *cells in printed[at_s]:
            whose = account.strip(), user
            if user:
                usage = session.shares.users[whose].usage
                usages.append(abs(usage - float(cells[2])) <= 1)
                factors.append(abs(session.shares.factors[whose] - float(cells[5])) < 1e-6)
    assert all(factors)
    assert len(factors) > 400
    # sshare may have looked in the second in which usage was computed.
    assert sum(usages) >= 0.98 * len(usages)


def test_priorities_are_those_of_sprio() -> None:
    session, printed = Session(), samples("sprio")
    requests = {request.job.id: request for _, _, request in session.runs}
    compared = 0
    for at_s in session.until([x for x in printed if x > session.begun_s + 2 * PERIOD_S]):
        for id_, priority, *given in printed[at_s]:
            factors = session.priorities.factors(requests[id_], session.calculated_s)
            session.priorities.set(requests[id_], session.calculated_s)
            assert requests[id_].priority == int(priority)
            assert [round(factors[name]) for name in FACTORS[:5]] == [int(x) for x in given]
            compared += 1
    assert compared > 200
