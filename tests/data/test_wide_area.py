"""Do flows between regions share links max-min, and do copies end when they must?"""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artist.data.wide_area import Copies, Copy, WideAreaFlow, max_min
from artist.units import TICKS_PER_S

GB = 10**9
ONE = Fraction(1)


def flow(source: int, target: int, wants: int | None = None) -> WideAreaFlow:
    parts = {(source, False): ONE, (target, True): ONE}
    return WideAreaFlow(parts, None if wants is None else Fraction(wants))


@pytest.mark.parametrize(
    ("begun", "ends_s"),
    [
        pytest.param([(0, 30, 0, 1)], [30], id="bytes over bandwidth"),
        pytest.param([(0, 30, 0, 1), (0, 30, 0, 2)], [60, 60], id="two out of one region"),
        pytest.param([(0, 30, 0, 1), (0, 30, 2, 1)], [60, 60], id="two into one region"),
        pytest.param([(0, 30, 0, 1), (0, 30, 1, 0), (0, 30, 2, 3)], [30] * 3, id="other links"),
        # They share until 20 s. Then the second has 20 GB left and the whole link.
        pytest.param([(0, 10, 0, 1), (0, 30, 0, 1)], [20, 40], id="the rest goes to others"),
        # At 10 s the first has 20 GB left. Both run at half speed until 50 s, with 10 GB left.
        pytest.param([(0, 30, 0, 1), (10, 30, 0, 2)], [50, 60], id="one begins later"),
        # At 20 s 20 GB and 10 GB are left, at half speed.
        pytest.param([(0, 40, 0, 1), (20, 10, 0, 1)], [50, 40], id="between the same regions"),
    ],
)
def test_copies_share_links_of_a_gigabyte_per_second_from_their_beginnings_on(
    begun: list[tuple[int, int, int, int]], ends_s: list[float]
) -> None:
    """A copy is its beginning in seconds, its gigabytes, its source and its target."""
    copies = Copies(Fraction(GB))
    for at_s, size_gb, source, target in begun:
        now = at_s * TICKS_PER_S
        assert copies.advance(now) == []
        copies.begin([Copy((0,), size_gb * GB, source, target, 0, now)], now)
    copies.advance(10**15)
    assert [copy.end for copy in copies.made] == [end_s * TICKS_PER_S for end_s in ends_s]


def test_max_min_gives_the_unbound_what_the_bound_leave() -> None:
    """Three flows into region 1 get a third; the one from region 0 to 2 gets the rest of 0."""
    flows = [flow(0, 1), flow(2, 1), flow(3, 1), flow(0, 4)]
    third = Fraction(GB, 3)
    assert max_min(flows, Fraction(GB)) == [third, third, third, GB - third]


def test_no_flow_gets_more_than_it_wants() -> None:
    assert max_min([flow(0, 1, wants=GB // 5), flow(0, 2)], Fraction(GB)) == [GB // 5, 4 * GB // 5]


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(4, 7), st.none() | st.integers(1, 200)),
        min_size=1,
        max_size=12,
    )
)
def test_shares_are_lawful_and_no_flow_could_get_more_without_a_loss(
    drawn: list[tuple[int, int, int | None]],
) -> None:
    """A flow that gets less than it wants crosses a full link on which none has more (max-min)."""
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
