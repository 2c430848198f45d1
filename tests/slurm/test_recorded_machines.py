"""Do jobs get the machines that a recorded Slurm gave them, if as many GPUs were free?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from recordings import SLURM, needs_slurm

from artist.experiments.recorded.recording import moment_of, read_recording
from artist.experiments.recorded.replay import replayed
from artist.slurm.texts import hosts

pytestmark = needs_slurm

Stay = tuple[int, int, Counter[str]]
"""From which second until which a job held GPUs, and how many of each machine."""


def held_before(stays: Iterable[Stay], at_s: int) -> Counter[str]:
    """The GPUs held before the jobs start that start in a second."""
    held = Counter[str]()
    for start_s, end_s, gpus in stays:
        if start_s < at_s < end_s:
            held += gpus
    return held


@pytest.mark.parametrize("session", ["topology", "fifo-backfill"])
def test_machines_are_those_of_slurm_where_as_many_gpus_are_free(
    session: str, tmp_path: Path
) -> None:
    recording = read_recording(SLURM / session, tmp_path, keep_names=True)
    gpus = {x.id: x.gpus for x in recording.jobs}
    recorded = dict[str, Stay]()
    for id_, (record, *others) in recording.runs.items():
        assert not others
        start_s, end_s = moment_of(record, "Start"), moment_of(record, "End")
        assert start_s is not None and end_s is not None
        names = hosts(record.text("NodeList"), record.place)
        each = Counter(dict.fromkeys(names, gpus[id_] // len(names)))
        recorded[id_] = int(start_s - recording.epoch_s), int(end_s - recording.epoch_s), each
    agree = equal = 0
    for result in replayed(recording, phases=8).results:
        simulated = dict[str, Stay]()
        jobs = result.tables["jobs"]
        ends = dict(zip(jobs["job_id"], jobs["finish_s"], strict=True))
        stays = result.tables["placements"]
        for id_, start_s, placement in zip(
            stays["job_id"], stays["start_s"], stays["placement"], strict=True
        ):
            each = Counter()
            for part in str(placement).split():
                machine, _, count = part.partition(":")
                each[f"n{int(machine) + 1:03}"] = int(count or 1)
            simulated[str(id_)] = int(start_s), int(ends[id_]), each
        for id_, (start_s, _, machines) in simulated.items():
            held = held_before(simulated.values(), start_s)
            if held and held == held_before(recorded.values(), recorded[id_][0]):
                agree += 1
                equal += machines == recorded[id_][2]
    assert agree >= 50
    assert equal >= 0.9 * agree, f"{equal} of {agree}"
