"""Is the canonical form the same whatever the names, even where jobs are hard to tell apart?"""

from __future__ import annotations

from random import Random

import pytest
from contentions import LINE, on_one_link, shuffled
from contentions import line_rate as pattern

from artist.network.models.canonical import canonical, components, contention_that_binds
from artist.network.models.mean import mean
from artist.network.models.patterns import Contention, Flow, Member, Pattern, SharedLink
from artist.network.models.phase import PhaseSettings, phase


def circle(jobs: int, distinct: int = 1) -> Contention:
    """Job i sends over links i and i + 1; the last job closes the circle."""
    members = tuple(
        Member(
            Pattern.simple(1.0 + index % distinct, LINE, Flow((index, (index + 1) % jobs), LINE))
        )
        for index in range(jobs)
    )
    return Contention((SharedLink(LINE),) * jobs, members)


CASES = [circle(3), circle(8), circle(9, 3), on_one_link(*[Member(pattern(0.7, 0.3))] * 9)]


@pytest.mark.parametrize("contention", CASES)
def test_form_answers_and_noise_are_the_same_under_other_names(contention: Contention) -> None:
    few = PhaseSettings(iterations=10)
    expected, drawn = mean(contention), phase(contention, few)
    for seed in range(4):
        other, jobs = shuffled(contention, Random(seed))
        assert canonical(other).contention == canonical(contention).contention
    assert mean(other) == tuple(expected[job] for job in jobs)
    assert phase(other, few) == tuple(drawn[job] for job in jobs)


def test_jobs_that_differ_have_different_forms() -> None:
    assert canonical(circle(8)).contention != canonical(circle(8, 2)).contention
    two = [Member(pattern(0.7, 0.3)), Member(pattern(0.7, 0.3), 0.1)]
    assert (
        canonical(on_one_link(*two)).contention != canonical(on_one_link(two[0], two[0])).contention
    )


def test_the_order_says_where_jobs_were() -> None:
    contention = on_one_link(Member(pattern(0.7, 0.3)), Member(pattern(0.2, 0.3)))
    form, order, _ = canonical(contention)
    for place, job in enumerate(order):
        assert form.members[place].pattern.steps == contention.members[job].pattern.steps


def test_links_that_hold_no_job_back_are_left_out() -> None:
    # Link 1 is crossed by one flow that is faster than it: it becomes the flow's cap. Link 2 can
    # carry all that two flows send.
    links = (SharedLink(1.0), SharedLink(0.25), SharedLink(5.0))
    flows = (Flow((0, 1, 2), 1.0), Flow((0, 2), 2.0))
    members = tuple(Member(Pattern.simple(1.0, 1.0, flow)) for flow in flows)
    binding = contention_that_binds(Contention(links, members))
    assert binding.links == (SharedLink(1.0),)
    assert [member.pattern.flows for member in binding.members] == [
        (Flow((0,), 0.25),), (Flow((0,), 2.0),),
    ]  # fmt: skip


def test_components_are_joined_by_links_that_two_jobs_cross() -> None:
    def member(*links: int) -> Member:
        return Member(Pattern.simple(1.0, 1.0, Flow(links, 1.0)))

    links = (SharedLink(1.0),) * 6
    contention = Contention(
        links, (member(0), member(3, 4), member(1), member(0, 1), member(5), member(4, 2))
    )
    assert components(contention) == [[0, 2, 3], [1, 5], [4]]
