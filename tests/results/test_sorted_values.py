"""Are sorted values and percentiles those of NumPy, to the last bit?"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from artist.results.statistics.sorted_values import percentile, rising

WHOLE = st.lists(st.integers(0, 2**62), max_size=20).map(lambda x: np.array(x, dtype=np.int64))


@given(st.lists(WHOLE, min_size=1, max_size=4))
def test_rising_is_what_numpy_calls_unique(columns) -> None:
    assert rising(*columns).tolist() == np.unique(np.concatenate(columns)).tolist()


@given(
    st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=50),
    st.sampled_from([0, 1, 37.5, 50, 90, 95, 99, 100]),
)
def test_a_percentile_is_that_of_numpy(values, percent) -> None:
    assert percentile(values, percent) == float(np.percentile(values, percent))
