"""Do jobs with several measured Up phases meet on links when these phases meet, and only then?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from contentions import LINE, curve
from hypothesis import given
from hypothesis import strategies as st
from runs import job, network, rates, run
from support import intervals, on

from artist.cluster.links import Link
from artist.errors import ConfigError
from artist.network.co_located import CurvedJob, Shared, shared
from artist.network.demand.up_phases import MeasuredPhase, UpPhases, read_up_phases
from artist.network.demand.ways import Way
from artist.network.models.canonical import Model
from artist.network.models.mean import mean
from artist.network.models.phase import PhaseModel, fluid
from artist.policies.cassini.jobs_on_links import JobsOnLinks
from artist.units import GIB

LEFT, RIGHT = {0: 8, 2: 8}, {1: 8, 3: 8}
LINK = Link("rack", 0, "up", LINE / GIB)


def phases(*each: tuple[float, ...]) -> UpPhases:
    """Start, length and, if not 1, bandwidth, in shares."""
    keys = ("start", "length", "bandwidth")
    return UpPhases.of(tuple(MeasuredPhase(**dict(zip(keys, one, strict=False))) for one in each))


def sends(of: UpPhases | None, up: float = 0.5) -> CurvedJob:
    """An iteration of a second, in which a job sends for a part of it at the rate of the link."""
    down, busy = 1.0 - up, up / (1.0 - up)
    # Nothing overlaps, and bytes are all there is.
    flat = curve((1.0, 0.125), (busy, 8 * busy), (busy, 8 * busy))
    way = Way((LINK,), up * LINE / down, 1.0)  # of a second of computation
    return CurvedJob((way,), flat, down, phases=of)


def beside(*jobs: CurvedJob) -> tuple[Shared, ...]:
    return shared(jobs, fluid)


def test_one_phase_at_the_end_is_what_a_model_without_a_pattern_does() -> None:
    plain, measured = sends(None), sends(phases((0.5, 0.5)))
    for model in (fluid, PhaseModel(), mean):
        assert shared([measured, sends(None, 0.4)], model) == shared(
            [plain, sends(None, 0.4)], model
        )


def test_two_jobs_whose_two_phases_interleave_lose_nothing() -> None:
    one = phases((0.0, 0.25), (0.5, 0.25))
    other = phases((0.25, 0.25), (0.75, 0.25))
    assert [x.iteration_s for x in beside(sends(one), sends(other))] == pytest.approx([1, 1])
    # Gathered at the end of iterations that start together, both send for twice as long.
    assert [x.iteration_s for x in beside(sends(None), sends(None))] == pytest.approx([1.5, 1.5])


def test_only_the_phases_that_meet_take_longer() -> None:
    # Both start with a quarter of a second Up; the first one has another one later.
    twice = sends(phases((0.0, 0.25), (0.5, 0.25)))
    once = sends(phases((0.0, 0.25)), 0.25)
    assert [x.iteration_s for x in beside(twice, once)] == pytest.approx([1.25, 1.25])
    # Against one that sends in the first one's gaps: never.
    apart = sends(phases((0.25, 0.25)), 0.25)
    assert [x.iteration_s for x in beside(twice, apart)] == pytest.approx([1.0, 1.0])


def test_at_half_the_line_rate_two_jobs_fit_on_a_link() -> None:
    # The bytes stay, so at half the rate a quarter of a second becomes half of one.
    slow = phases((0.5, 0.5, 0.5))
    assert slow.bursts(0.25, 1.0) == ((0.5, 0.5, 0.5),)
    assert [x.iteration_s for x in beside(sends(slow, 0.25), sends(slow, 0.25))] == [1.0, 1.0]
    full = beside(sends(None, 0.25), sends(None, 0.25))
    assert [x.iteration_s for x in full] == pytest.approx([1.25, 1.25])


def test_phases_of_other_rates_carry_bytes_by_rate_and_length() -> None:
    uneven = phases((0.0, 0.2), (0.4, 0.2, 0.5))
    assert uneven.parts(0.3, 1.0) == pytest.approx((2 / 3, 1 / 3))
    # .3 s at the line rate are .4 s at these rates; .2 and .4 of the measured .6 Down come between.
    first, second = uneven.bursts(0.3, 1.0)
    assert first == pytest.approx((0.0, 0.2, 1.0))
    assert second == pytest.approx((0.4, 0.2, 0.5))
    # With more bytes than fit at these rates, the job sends all the time, and faster.
    slow = phases((0.0, 0.2, 0.8), (0.4, 0.2, 0.4))
    assert slow.rate_shares(0.72, 1.0) == pytest.approx((0.96, 0.48))
    # The line rate limits the first phase, so the second one sends the rest.
    assert uneven.rate_shares(0.9, 1.0) == pytest.approx((1.0, 0.8))
    assert uneven.parts(0.9, 1.0) == pytest.approx((5 / 9, 4 / 9))


@given(
    st.lists(st.tuples(st.floats(0.1, 1.0), st.floats(1e-3, 1.0)), min_size=1, max_size=4),
    st.floats(0.01, 1.0),
)
def test_bytes_are_those_of_the_estimate_and_no_phase_is_above_the_line_rate(
    each: list[tuple[float, float]], busy_s: float
) -> None:
    total = sum(length for length, _ in each)
    of = UpPhases(
        (1.0,) + (0.0,) * len(each), tuple(x / total for x, _ in each), tuple(x for _, x in each)
    )
    bursts = of.bursts(busy_s, 1.0)
    assert sum(x.length_s * x.rate_share for x in bursts) == pytest.approx(busy_s)
    assert max(x.rate_share for x in bursts) <= 1.0
    by_bandwidth = sorted(zip(of.bandwidths, bursts, strict=True))
    shares = [x.rate_share for _, x in by_bandwidth]
    assert shares == sorted(shares)


@pytest.mark.parametrize("model", [fluid, PhaseModel()])
@pytest.mark.parametrize("up", [0.3, 0.7, 0.9, 0.99])
def test_alone_a_job_with_phases_is_as_fast_as_without(model: Model, up: float) -> None:
    uneven = phases((0.0, 0.2), (0.4, 0.2, 0.5))
    (answer,) = shared([sends(uneven, up)], model)
    assert (answer.iteration_s, answer.alone_s) == pytest.approx((1.0, 1.0))


# -- runs --------------------------------------------------------------------------------

MODELS = "models:\n  vgg11:\n  - {start: 0, length: 0.2}\n  - {start: 0.5, length: 0.2}\n"


@pytest.fixture
def patterns(tmp_path: Path) -> str:
    file = tmp_path / "phases.yaml"
    file.write_text(f"name: two\nsource: drawn for a test\n{MODELS}")
    return str(file)


@pytest.mark.parametrize("model", ["phase", "fluid"])
def test_a_run_reads_up_phases(model: str, patterns: str) -> None:
    jobs = [job("a"), job("b", "bert-large")]
    here = network()
    with_phases = run(jobs, [LEFT, RIGHT], rates(model, here, up_phases_file=patterns), here)
    plain = run(jobs, [LEFT, RIGHT], model)
    first, before = (intervals(rows, 0)[0] for rows in (with_phases, plain))
    assert first.source == before.source
    assert first.alone_iteration_s == before.alone_iteration_s
    assert first.iteration_s != before.iteration_s
    # `mean` does not ask.
    here = network()
    of_mean = rates("mean", here, up_phases_file=patterns)
    assert run(jobs, [LEFT, RIGHT], of_mean, here) == run(jobs, [LEFT, RIGHT], "mean")


def test_cassini_sees_the_phases_on_its_circle(patterns: str) -> None:
    here = network()
    links = rates("phase", here, up_phases_file=patterns).links
    measured, plain = links.pattern(job("a"), on(LEFT)), links.pattern(job("b", "vgg16"), on(LEFT))
    known = JobsOnLinks()
    known.put(0, on(LEFT), measured)
    known.put(1, on(RIGHT), plain)
    uplink = next(iter(measured.up))
    two, one = known.use(uplink, links).circles
    assert (len(two.arcs), len(one.arcs)) == (2, 1)
    assert two.arcs[0].start_s == 0.0
    # Both halves of what is sent once without a pattern.
    up = measured.up[uplink]
    sent = up.up_s * max(up.out_bytes_per_s, up.in_bytes_per_s)
    assert sum(arc.demand * arc.length_s for arc in two.arcs) == pytest.approx(sent)
    gap = two.arcs[1].start_s - two.arcs[0].length_s
    assert gap / (two.period_s - 2 * two.arcs[0].length_s) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ({}, "models"),
        ({"vgg111": "[{start: 0, length: 0.5}]"}, "unknown model 'vgg111'"),
        ({"vgg11": "[]"}, "no phase; give one, or leave the model out"),
        ({"vgg11": "[{start: 0.9, length: 0.2}]"}, "a phase ends at 1.1 of the iteration"),
        ({"vgg11": "[{start: 0, length: 0.5}, {start: 0.4, length: 0.1}]"}, "at most 0.4, where"),
        ({"vgg11": "[{start: 0, length: 0.5, demand: 1}]"}, "demand"),
        (
            {"vgg-11": "[{start: 0, length: 0.5}]", "vgg11": "[{start: 0.5, length: 0.5}]"},
            "'vgg-11' and 'vgg11' are one model; keep the phases of one",
        ),
    ],
)
def test_a_mistake_in_a_file_of_phases_is_found(
    tmp_path: Path, models: Mapping[str, str], message: str
) -> None:
    file = tmp_path / "phases.yaml"
    rows = "".join(f"\n  {name}: {text}" for name, text in models.items()) or " {}"
    file.write_text(f"name: bad\nsource: a test\nmodels:{rows}\n")
    with pytest.raises(ConfigError, match=message):
        read_up_phases(str(file))
    with pytest.raises(ConfigError, match="no such file"):
        read_up_phases(str(tmp_path / "none.yaml"))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_up_phases(str(tmp_path))
