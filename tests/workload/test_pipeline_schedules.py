"""Are schedules of pipelines those worked out by hand from the papers' figures?"""

from __future__ import annotations

import pytest

from artist.workload.division.staged import Pass, Schedule, passes


def text(order: list[Pass]) -> str:
    """As in `F0.1 B0.1`: microbatch and chunk."""
    return " ".join(f"{'F' if x.forward else 'B'}{x.microbatch}.{x.chunk}" for x in order)


@pytest.mark.parametrize(
    ("schedule", "stage", "stages", "chunks", "microbatches", "expected"),
    [
        (Schedule.GPIPE, 1, 2, 2, 2, "F0.1 F1.1 B0.1 B1.1"),
        (Schedule.ONE_F_ONE_B, 0, 2, 2, 3, "F0.0 F1.0 B0.0 F2.0 B1.0 B2.0"),
        (Schedule.ONE_F_ONE_B, 1, 2, 2, 3, "F0.1 B0.1 F1.1 B1.1 F2.1 B2.1"),
        # arXiv:2104.04473, section 2.2: a stage runs a chunk for as many microbatches as stages.
        (Schedule.INTERLEAVED, 1, 2, 4, 2, "F0.1 F1.1 F0.3 B0.3 F1.3 B1.3 B0.1 B1.1"),
        (Schedule.INTERLEAVED, 0, 2, 4, 2, "F0.0 F1.0 F0.2 F1.2 B0.2 B1.2 B0.0 B1.0"),
    ],
)
def test_passes_by_hand(
    schedule: Schedule, stage: int, stages: int, chunks: int, microbatches: int, expected: str
) -> None:
    assert text(passes(schedule, stage, stages, chunks, microbatches)) == expected


@pytest.mark.parametrize("schedule", Schedule)
def test_every_pass_runs_once_and_forward_first(schedule: Schedule) -> None:
    chunks = 12 if schedule is Schedule.INTERLEAVED else 4
    for stage in range(4):
        order = passes(schedule, stage, 4, chunks, 8)
        assert len(set(order)) == len(order) == 2 * 8 * chunks // 4
        for one in order:
            if not one.forward:
                assert order.index(one._replace(forward=True)) < order.index(one)
