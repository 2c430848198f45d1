"""Do flows between regions share links max-min, and do copies end when they must?"""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from artist.data.wide_area import Copies, Copy, WideAreaFlow, max_min
from artist.units import TICKS_PER_S

GB = 10**9
ONE = Fraction(1)


def flow(source: int, target: int, wants: int | None = None) -> WideAreaFlow:
    parts = {(source, False): ONE, (target, True): ONE}
    return WideAreaFlow(parts, None if wants is None else Fraction(wants))


def copy(size_gb: int, source: int, target: int, start: int = 0) -> Copy:
    return Copy((0,), size_gb * GB, source, target, 0, start)


def ends_s(copies: Copies) -> list[float]:
    copies.advance(10**15)
    return [0 if one.end is None else one.end / TICKS_PER_S for one in copies.made]


def test_a_lone_copy_takes_bytes_over_bandwidth() -> None:
    copies = Copies(Fraction(2 * GB))
    copies.begin([copy(30, 0, 1)], 0)
    assert ends_s(copies) == [15]


def test_two_copies_out_of_or_into_one_region_halve_each_other() -> None:
    for second in (copy(30, 0, 2), copy(30, 2, 1)):
        copies = Copies(Fraction(GB))
        copies.begin([copy(30, 0, 1), second], 0)
        assert ends_s(copies) == [60, 60]


def test_copies_on_different_links_and_directions_do_not_meet() -> None:
    copies = Copies(Fraction(GB))
    copies.begin([copy(30, 0, 1), copy(30, 1, 0), copy(30, 2, 3)], 0)
    assert ends_s(copies) == [30, 30, 30]


def test_what_a_finished_copy_leaves_goes_to_the_others() -> None:
    """10 GB and 30 GB share until 20 s; then the second has 20 GB left and the whole link."""
    copies = Copies(Fraction(GB))
    copies.begin([copy(10, 0, 1), copy(30, 0, 1)], 0)
    assert ends_s(copies) == [20, 40]


def test_a_copy_that_begins_later_shares_from_then_on() -> None:
    """At 10 s the first has 20 GB left. Both run at half speed: 50 s, and 10 GB more until 60."""
    copies = Copies(Fraction(GB))
    copies.begin([copy(30, 0, 1)], 0)
    later = 10 * TICKS_PER_S
    assert copies.advance(later) == []
    copies.begin([copy(30, 0, 2, start=later)], later)
    assert ends_s(copies) == [50, 60]


def test_a_copy_joins_others_between_the_same_regions() -> None:
    """At 20 s 20 GB and 10 GB are left, at half speed: the second ends at 40 s, the first at 50."""
    copies = Copies(Fraction(GB))
    copies.begin([copy(40, 0, 1)], 0)
    later = 20 * TICKS_PER_S
    assert copies.advance(later) == []
    copies.begin([copy(10, 0, 1, start=later)], later)
    assert ends_s(copies) == [50, 40]


def test_max_min_gives_the_unbound_what_the_bound_leave() -> None:
    """Three flows into region 1 get a third; the one from region 0 to 2 gets the rest of 0."""
    flows = [flow(0, 1), flow(2, 1), flow(3, 1), flow(0, 4)]
    third = Fraction(GB, 3)
    assert max_min(flows, Fraction(GB)) == [third, third, third, GB - third]


def test_nobody_gets_more_than_it_wants() -> None:
    assert max_min([flow(0, 1, wants=GB // 5), flow(0, 2)], Fraction(GB)) == [GB // 5, 4 * GB // 5]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(4, 7), st.none() | st.integers(1, 200)),
        min_size=1,
        max_size=12,
    )
)
def test_shares_are_lawful_and_nobody_could_get_more_without_a_loss(
    drawn: list[tuple[int, int, int | None]],
) -> None:
    """Who does not get what it wants crosses a full link on which nobody has more (max-min)."""
    flows, capacity = [flow(*one) for one in drawn], Fraction(100)
    rates = max_min(flows, capacity)
    on = {
        link: [rate for one, rate in zip(flows, rates, strict=True) if link in one.parts]
        for one in flows
        for link in one.parts
    }
    assert all(sum(shares) <= capacity for shares in on.values())
    for one, rate in zip(flows, rates, strict=True):
        assert one.wants is None or rate <= one.wants
        if rate != one.wants:
            assert any(sum(on[x]) == capacity and rate == max(on[x]) for x in one.parts)
