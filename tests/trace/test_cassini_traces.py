"""The workload of CASSINI's evaluation: what the paper says of it, and that a run accepts it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from statistics import median

import pytest

from artist.errors import ConfigError
from artist.trace.native.choices import ArrivalKind
from artist.trace.synthetic.cassini import DIVIDED, GPU, MICROBATCHES, TABLE_3, Table3Row, cassini
from artist.workload.job import Job
from artist.workload.models import canonical, settings


@cache
def many() -> Sequence[Job]:
    return cassini(ArrivalKind.POISSON, 2_000, 24, 0, 0.9).jobs


def test_thirteen_models_are_equally_likely() -> None:
    counts = Counter(job.model.partition("@")[0] for job in many())
    assert set(counts) == {row.model for row in TABLE_3}
    assert len(counts) == 13
    assert all(115 < count < 195 for count in counts.values())  # 154 +- 3.5 standard deviations


def test_workers_and_iterations_span_their_ranges() -> None:
    assert {job.gpus for job in many()} == set(range(1, 13))
    assert min(job.iterations for job in many()) < 205
    assert max(job.iterations for job in many()) > 995
    assert all(200 <= job.iterations <= 1000 for job in many())


@pytest.mark.parametrize("row", TABLE_3, ids=lambda row: row.model)
def test_batches_span_those_of_table_3(row: Table3Row) -> None:
    batches = {settings(job.model).batch for job in many() if job.model.startswith(f"{row.model}@")}
    ends = [settings(row.spec(batch)).batch for batch in (row.least, row.most)]
    reach = (ends[1] - ends[0]) * 0.1
    assert ends[0] <= min(batches) <= ends[0] + reach
    assert ends[1] - reach <= max(batches) <= ends[1]


def test_small_images_take_what_the_paper_measured() -> None:
    # VGG16 with 1,400 images: 300 ms an iteration, 148 of them communication (Table 2, row 1).
    row = next(row for row in TABLE_3 if row.model == "vgg16")
    assert row.spec(1400) == "vgg16@batch=29"
    times = [job.compute_s for job in many() if job.model == f"{row.spec(1400)},{GPU}"]
    assert times
    assert 0.1 < times[0] < 0.16


def test_a_snapshot_is_there_at_the_start() -> None:
    assert {job.arrival_s for job in cassini(ArrivalKind.SNAPSHOT, 9, 24, 0).jobs} == {0.0}


def test_a_dynamic_trace_has_two_sets() -> None:
    jobs = cassini(ArrivalKind.DYNAMIC, 9, 24, 0).jobs
    assert [job.arrival_s for job in jobs[:5]] == [0.0] * 5
    (later_s,) = {job.arrival_s for job in jobs[5:]}
    assert later_s == pytest.approx(median(job.ideal_s for job in jobs[:5]))


def test_the_kinds_draw_the_same_jobs() -> None:
    kinds = (cassini(ArrivalKind.SNAPSHOT, 9, 24, 3), cassini(ArrivalKind.POISSON, 9, 24, 3, 1.0))
    one, two = ([(job.model, job.gpus, job.iterations) for job in x.jobs] for x in kinds)
    assert one == two


def test_every_model_is_spelt_as_the_catalogue_reads_it() -> None:
    assert all(canonical(job.model) for job in many())


@pytest.mark.parametrize(
    ("kind", "load", "remedy"),
    [(ArrivalKind.POISSON, None, "give --load"), (ArrivalKind.SNAPSHOT, 0.9, "leave it out")],
)
def test_a_load_belongs_to_poisson_arrivals(
    kind: ArrivalKind, load: float | None, remedy: str
) -> None:
    with pytest.raises(ConfigError, match=remedy):
        cassini(kind, 9, 24, 0, load)


def test_divided_models_are_gpts_on_pairs() -> None:
    jobs = cassini(ArrivalKind.POISSON, 300, 24, 0, 0.9, divided=True).jobs
    assert {job.gpus for job in jobs} == {2, 4, 6, 8, 10, 12}
    chosen = {job.model.partition("@")[0]: settings(job.model) for job in jobs}
    assert set(chosen) == {row.model for row in DIVIDED}
    assert [(chosen[x].tensor, chosen[x].stages) for x in ("gpt1", "gpt2", "gpt3-xl")] == [
        (1, 2), (1, 2), (2, 1),
    ]  # fmt: skip
    batches = [settings(job.model).batch for job in jobs if job.model.startswith("gpt1@")]
    assert all(batch % MICROBATCHES == 0 for batch in batches)
    assert 64 <= min(batches) < 72
    assert 152 < max(batches) <= 160


def test_one_gpu_holds_no_divided_model() -> None:
    with pytest.raises(ConfigError, match="needs 2"):
        cassini(ArrivalKind.DYNAMIC, 3, 1, 0, divided=True)
