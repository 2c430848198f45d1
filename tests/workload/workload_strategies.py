"""Strategies: arbitrary workloads that ASTRA-sim's text format can express."""

from hypothesis import strategies as st

from artist.workload.layers import Collective, Layer, Parallelism, Phase, Workload

times_us = st.floats(0, 1e6)
phases = st.builds(Phase, times_us, st.sampled_from(Collective), st.integers(0, 10**12))
names = st.text("abcxyz0123_.-", min_size=1, max_size=8)
layers = st.builds(Layer, names, phases, phases, phases, times_us)
workloads = st.builds(
    Workload,
    st.just("w"),
    st.sampled_from([Parallelism.DATA, Parallelism.MICRO]),
    st.lists(layers, min_size=1, max_size=6).map(tuple),
)
