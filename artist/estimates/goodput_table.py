"""Goodput parameters of models, from a user's file; they make jobs elastic.

Batches are in samples, times in seconds. `artist.workload.goodput` has the equations. Parameters
follow from measured steps: alpha_c and beta_c from compute times at two batches, the others from
step times on more GPUs. The noise scale is that of McCandlish et al., *An Empirical Model of
Large-Batch Training*, 2018: the variance of gradients of single samples over their mean's square.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from artist.cluster.tree import ONE_KIND
from artist.errors import ConfigError, shortened
from artist.io.documents import Document, load_yaml
from artist.workload.goodput import Goodput
from artist.workload.job import Job, is_ranged

_Samples = Annotated[int, Field(ge=1, le=1_000_000_000)]
_Alpha = Annotated[float, Field(ge=1e-8, le=1e6)]
_Beta = Annotated[float, Field(ge=0, le=1e6)]
_Gamma = Annotated[float, Field(ge=1, le=10)]
_Noise = Annotated[float, Field(ge=0, le=1e12)]


class GoodputOfKind(Document):
    """What differs on one kind of GPUs from the rest of the row."""

    per_gpu_max: _Samples | None = Field(None, description="most samples of one pass on a GPU")
    alpha_c: _Alpha | None = None
    beta_c: _Beta | None = None
    alpha_r: _Alpha | None = None
    beta_r: _Beta | None = None
    alpha_n: _Alpha | None = None
    beta_n: _Beta | None = None
    gamma: _Gamma | None = None


class GoodputRow(Document):
    """The parameters of one model."""

    batch: _Samples = Field(description="total batch as submitted (M0), samples")
    batch_max: _Samples = Field(description="largest total batch, samples")
    per_gpu_min: _Samples = Field(1, description="fewest samples of one pass on a GPU")
    per_gpu_max: _Samples = Field(description="most samples of one pass on a GPU: its memory")
    alpha_c: _Alpha = Field(description="compute time of a pass: constant part, seconds")
    beta_c: _Beta = Field(description="compute time of a pass: per sample, seconds")
    alpha_r: _Alpha = Field(description="synchronising GPUs of one machine, seconds")
    beta_r: _Beta = Field(0.0, description="the same, per GPU beyond two, seconds")
    alpha_n: _Alpha = Field(description="synchronising GPUs of several machines, seconds")
    beta_n: _Beta = Field(0.0, description="the same, per GPU beyond two, seconds")
    gamma: _Gamma = Field(
        1.0, description="overlap of computing and synchronising: 1 none, 10 most"
    )
    noise: dict[float, _Noise] = Field(
        min_length=1,
        description="gradient noise scale, samples, by the share of iterations from which it holds",
    )
    kinds: dict[str, GoodputOfKind] = Field(
        {}, description="kind of GPUs -> what differs there; none: all kinds are alike"
    )

    @model_validator(mode="after")
    def _consistent(self) -> GoodputRow:
        of_kinds = {f" on {kind}": of.per_gpu_max for kind, of in self.kinds.items()}
        for where, most in {"": self.per_gpu_max, **of_kinds}.items():
            if most is not None and most < self.per_gpu_min:
                raise ValueError(
                    f"per_gpu_max{where} is {most}, expected at least per_gpu_min, "
                    f"{self.per_gpu_min}"
                )
        least = max(self.batch, self.per_gpu_min)
        if self.batch_max < least:
            raise ValueError(f"batch_max is {self.batch_max}, expected at least {least}")
        shares = list(self.noise)
        if shares[0] != 0 or shares != sorted(shares) or shares[-1] >= 1:
            raise ValueError(f"noise is given from {shares}, expected rising shares, 0 to below 1")
        return self

    def goodput(self, kinds: Collection[str] = ()) -> Goodput:
        """The row's parameters for the simulator, on GPUs of these kinds if the row has any."""
        values = self.model_dump(exclude={"kinds"})
        plain = Goodput(**{**values, "noise": tuple(self.noise.items())})
        if not self.kinds or not kinds:
            return plain
        of_kinds = tuple(
            (kind, replace(plain, **self.kinds[kind].model_dump(exclude_none=True)))
            for kind in kinds
        )
        return of_kinds[0][1] if len(of_kinds) == 1 else replace(plain, kinds=of_kinds)


class GoodputTable(Document):
    """Goodput parameters by model, as a file has them."""

    name: str
    summary: str
    source: str = Field(min_length=1, description="who measured, and where it is published")
    models: dict[str, GoodputRow] = Field(min_length=1, description="model -> parameters")


def with_goodput(
    jobs: Sequence[Job],
    table: GoodputTable,
    gpus: int,
    where: Callable[[int], str],
    kinds: Collection[str] = (),
    *,
    ranged: bool = False,
) -> tuple[Job, ...]:
    """Make jobs of the table's models elastic, on a cluster of `gpus` GPUs; others stay the same.

    `kinds` are the cluster's kinds of GPUs. Without any, the parameters of the rows themselves
    hold.

    The compute time of a step becomes the table's. A job without a range may run on 1 GPU up to as
    many as its largest batch feeds. If the trace gives ranges (`ranged`), such a job is rigid.
    `where(i)` says where job i stands in its file.

    Raises:
        ConfigError: a job wants more GPUs than its largest batch feeds, or numbers of GPUs that no
            batch fits, or may get a kind that its row lacks; or no job is of a model of the table.
    """
    from artist.workload.models import canonical_if_known

    rows = {canonical_if_known(model): row for model, row in table.models.items()}
    kinds = [kind for kind in kinds if kind != ONE_KIND]
    known: dict[tuple[str, tuple[str, ...]], Goodput] = {}
    elastic = list(jobs)
    for index, job in enumerate(jobs):
        model = canonical_if_known(job.model)
        if model not in rows:
            continue
        accepted = tuple(kind for kind in kinds if kind in (job.gpu_kinds or kinds))
        if (model, accepted) not in known:
            row = rows[model]
            if row.kinds and (lacking := [kind for kind in accepted if kind not in row.kinds]):
                raise ConfigError(
                    f"{where(index)}: job {job.id!r} may get GPUs of kind {lacking[0]}, which "
                    f"{shortened(job.model)} in goodput {shortened(table.name)} lacks; add it to "
                    "the model's kinds"
                )
            known[model, accepted] = row.goodput(accepted)
        goodput = known[model, accepted]
        if job.gpus > goodput.gpus_max:
            raise ConfigError(
                f"{where(index)}: job {job.id!r} wants {job.gpus} GPUs, but the largest batch of "
                f"{shortened(job.model)} in goodput {shortened(table.name)}, {goodput.batch_max} "
                f"samples, feeds {goodput.gpus_max}; raise batch_max or want fewer GPUs"
            )
        own = ranged or is_ranged(job)
        least = job.gpus_min if own else 1
        most = min(job.gpus_max if own else gpus, goodput.gpus_max)
        if not any(goodput.fits(count) for count in range(least, most + 1)):
            raise ConfigError(
                f"{where(index)}: job {job.id!r} may have {least} to {most} GPUs, on which no "
                f"batch of {shortened(job.model)} in goodput {shortened(table.name)} is a whole "
                f"number of passes of {goodput.per_gpu_min} to {goodput.per_gpu_max} samples; "
                "lower per_gpu_min or raise batch_max"
            )
        elastic[index] = replace(
            job,
            compute_s=goodput.compute_s(goodput.submitted(job.gpus)),
            gpus_min=least,
            gpus_max=most,
            goodput=goodput,
        )
    if not known:
        raise ConfigError(
            f"goodput {shortened(table.name)}: no job has one of its models, such as "
            f"{shortened(min(table.models))}; name them as the trace does, such as "
            f"{shortened(min(job.model for job in jobs))}"
        )
    return tuple(elastic)


def load_goodput(file: str) -> GoodputTable:
    """Read a table of goodput parameters from its file.

    Raises:
        ConfigError: the file is missing or bad; names file and line.
    """
    return load_yaml(Path(file), GoodputTable)
