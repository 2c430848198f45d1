"""Do sorting keys have the order of the exact values, and are keys of equal values equal?"""

from __future__ import annotations

from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from artist.policies.shared.ratios import exact_key
from artist.units import exact_ticks

WHOLE = st.integers(-(10**25), 10**25)
ABOVE_ZERO = st.integers(1, 10**25)


@given(WHOLE, ABOVE_ZERO, WHOLE, ABOVE_ZERO)
@example(10**24 + 1, 10**24, 10**24, 10**24 - 1)
def test_keys_are_in_the_order_of_the_ratios(num: int, den: int, num2: int, den2: int) -> None:
    one, two = Fraction(num, den), Fraction(num2, den2)
    assert (exact_key(num, den) < exact_key(num2, den2)) == (one < two)
    assert (exact_key(num, den) <= exact_key(num2, den2)) == (one <= two)
    assert (exact_key(num, den) == exact_key(num2, den2)) == (one == two)


@given(WHOLE, ABOVE_ZERO, ABOVE_ZERO)
@example(1, 3, 7)
def test_equal_ratios_have_equal_keys(num: int, den: int, times: int) -> None:
    one, two = exact_key(num, den), exact_key(times * num, times * den)
    assert one == two
    assert not one < two
    assert hash(one) == hash(two)
    assert (-one[1], 1) < (-two[1], 2)


@given(st.floats(1e-9, 1e9))
def test_exact_ticks_are_the_decimal_number_in_lowest_terms(seconds: float) -> None:
    value = Fraction(repr(seconds)) * 10**9
    assert exact_ticks(seconds) == value.as_integer_ratio()


def test_three_times_a_tenth_is_three_tenths() -> None:
    tenth, three = exact_ticks(0.1), exact_ticks(0.3)
    assert exact_key(3 * tenth[0], tenth[1]) == exact_key(*three)
