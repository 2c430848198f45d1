"""Do jobs that take turns keep them, at which pace, and what is lost if they do not?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from artist.network.models.patterns import Contention, Flow, InTurn, Member, Pattern, SharedLink
from artist.network.models.phase import FLUID, PhaseModel, PhaseSettings, phase, settled
from artist.network.models.turns import TurnsNow, iterations_in_turn

LINK = SharedLink(100.0)
EXACT = replace(FLUID, jitter=0.0)


def member(
    period_s: float, up_s: float, offset_s: float, slack: float | None = 0.05, group: int = 0
) -> Member:
    """A job that fills the link while it is Up."""
    pattern = Pattern.simple(period_s - up_s, 100.0 * up_s, Flow((0,), 100.0))
    turn = InTurn(group, period_s, None if slack is None else slack * period_s)
    return Member(pattern, offset_s, turn=turn)


def two_vgg16(slack: float | None) -> Contention:
    """CASSINI's snapshot 3 made exact: half of 300 ms each."""
    return Contention((LINK,), (member(0.3, 0.14, 0.0, slack), member(0.3, 0.14, 0.15, slack)))


def test_a_job_that_is_ahead_waits_for_the_latest() -> None:
    turns = TurnsNow([member(1.0, 0.5, 0.0), member(1.0, 0.5, 0.5), member(1.0, 0.5, 0.0, group=1)])
    assert turns.wait_s(0, 0, 0.5 + 0.2) == 0.0  # .2 s late, and the latest
    assert turns.wait_s(1, 0, 1.0 + 0.151) == 0.0  # .049 s ahead of it: within the slack
    assert turns.wait_s(1, 1, 2.0 + 0.149) == pytest.approx(0.051)
    assert turns.wait_s(2, 0, 0.5) == 0.0  # of another group
    assert turns.corrections == [0, 1, 0]


def test_turns_without_jitter_are_as_fast_as_in_isolation() -> None:
    for slowed in settled(two_vgg16(0.05), EXACT):
        assert slowed.slowdown == pytest.approx(1.0, abs=1e-9)
        assert slowed.corrections_per_min == 0.0


@pytest.mark.parametrize("jitter", [0.005, 0.01])
def test_with_jitter_an_agent_keeps_the_gain_and_without_it_is_lost(jitter: float) -> None:
    model = replace(FLUID, jitter=jitter)
    kept, lost = (settled(two_vgg16(slack), model) for slack in (0.05, None))
    assert max(x.slowdown for x in kept) < 1.03
    assert max(x.slowdown for x in lost) > max(x.slowdown for x in kept) + 0.01


def test_corrections_are_a_few_a_minute_at_half_a_percent() -> None:
    # Fig. 17 has under two a minute. Two jobs drift against each other, so each is corrected less
    # often than one that drifts against a clock, and both together more often.
    slowed = settled(two_vgg16(0.05), FLUID)
    assert 0.5 < sum(x.corrections_per_min for x in slowed) < 6.0


def test_a_correction_acts_before_the_job_sends() -> None:
    # Three jobs leave 3 % of the circle free. A job that sends too early meets the one before it,
    # which is then late in turn: corrections an iteration later do not end (1.08, 40 a minute).
    up_s = 0.097
    jobs = tuple(member(0.3, up_s, index * 0.1) for index in range(3))
    for slowed in settled(Contention((LINK,), jobs), PhaseSettings()):
        assert slowed.slowdown < 1.03
        assert slowed.corrections_per_min < 15


def test_a_group_goes_at_the_pace_of_its_slowest() -> None:
    # Periods of 100 and 104 ms are one turn: the faster job waits.
    jobs = (member(0.100, 0.02, 0.0), member(0.104, 0.02, 0.05))
    turn = InTurn(0, 0.102, 0.005)
    jobs = (replace(jobs[0], turn=turn), replace(jobs[1], turn=turn))
    fast, slow = settled(Contention((LINK,), jobs), EXACT)
    assert slow.iteration_s == pytest.approx(0.104, rel=1e-6)
    assert fast.iteration_s == pytest.approx(0.104, rel=2e-3)
    assert fast.corrections_per_min > 60


def test_jitter_follows_from_the_seed() -> None:
    def iterations(seed: int) -> list[float]:
        return [x.iteration_s for x in settled(two_vgg16(0.05), replace(FLUID, seed=seed))]

    assert iterations(3) == iterations(3) != iterations(4)


def test_equal_turns_are_simulated_once_whatever_their_order() -> None:
    model = PhaseModel(FLUID)
    contention = Contention((LINK,), (member(0.3, 0.1, 0.0), member(0.3, 0.14, 0.15)))
    one, two = model(contention)
    swapped = model(Contention((LINK,), contention.members[::-1]))
    assert (swapped[1], swapped[0]) == (one, two)
    assert model.simulated == 1


def test_turns_do_not_move_the_random_numbers_of_other_jobs() -> None:
    # Their text, from which the numbers follow, is that of before there were turns.
    plain = Member(Pattern.simple(0.1, 10.0, Flow((0,), 100.0)))
    assert "turn" not in repr(plain)
    jobs = Contention((LINK,), (plain, replace(plain, offset_s=0.05)))
    assert [x.corrections_per_min for x in phase(jobs)] == [0.0, 0.0]


def test_many_jobs_are_simulated_for_a_shorter_time() -> None:
    assert [iterations_in_turn(jobs, 64) for jobs in (2, 4, 8, 32)] == [256, 256, 128, 64]
