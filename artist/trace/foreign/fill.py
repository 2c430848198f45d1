"""Filling in what a trace does not tell: models and steps. Each rule is stated and seeded.

Rules for the model of a job that has none, and for a name that the catalogue lacks:

| rule | model |
|---|---|
| uniform | any of the six of Dally's workloads, with equal chance |
| mix | drawn as Dally's batch workload has them for that number of GPUs |
| keep | none: the job runs only without communication (`--backend none`) |
| a model's name | that model |

The six, not the whole catalogue: a seed must mean the same when that grows. With
`uniform` and `mix` every job without a model draws one; a name that the
catalogue lacks draws one for all its jobs, `uniform`ly.

A run time without iterations becomes steps as long as the model's in Dally's
workloads, the geometric middle of their range (a second for other models): as many
as come closest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np

from artist.errors import UnknownNameError
from artist.rng import stream
from artist.trace.native.schemas import UNKNOWN_MODEL
from artist.trace.synthetic.families import BATCH, COMPUTE_S
from artist.workload.models import canonical, catalogue

KEEP, UNIFORM, MIX = "keep", "uniform", "mix"

_SIX = tuple(COMPUTE_S)

_OTHER_STEP_S = 1.0


def check_rule(rule: str) -> None:
    """Refuse a rule that is none.

    Raises:
        UnknownNameError: neither a rule nor a model.
    """
    if rule not in (KEEP, UNIFORM, MIX) and not known_model(rule):
        rules = (KEEP, UNIFORM, MIX, *catalogue)
        raise UnknownNameError("model rule", rule, rules, f"one of {', '.join(rules)}")


def fill_models(
    models: Sequence[str], gpus: Sequence[int], rule: str, seed: int
) -> tuple[list[str], tuple[str, ...]]:
    """A model for each job, and what was filled in or replaced, with the number of jobs.

    `models` are the names in the file, empty (or `unknown`) where it has none.
    """
    check_rule(rule)
    filled = [name if name != UNKNOWN_MODEL else "" for name in models]
    empty = [index for index, name in enumerate(filled) if not name]
    lacking = Counter(name for name in filled if name and not known_model(name))
    if rule == KEEP:
        named = [name or UNKNOWN_MODEL for name in filled]
        return named, (f"model (none, needs --backend none): {len(empty)} jobs",) * bool(empty)
    for index, model in zip(empty, _draws(empty, gpus, rule, seed), strict=True):
        filled[index] = model
    stands_for = {name: _stand_in(name, rule, seed) for name in sorted(lacking)}
    return [stands_for.get(name, name) for name in filled], _notes(
        rule, seed, len(empty), lacking, stands_for
    )


def steps(run_s: float, model: str) -> int:
    """As many iterations of the model as come closest to a run time, at least one."""
    return max(1, round(run_s / _step_s(model)))


@cache
def known_model(name: str) -> bool:
    """Whether the catalogue has a model, by any spelling."""
    try:
        canonical(name)
    except UnknownNameError:
        return False
    return True


@cache
def _step_s(model: str) -> float:
    """Compute seconds of one iteration."""
    range_s = COMPUTE_S.get(canonical(model)) if known_model(model) else None
    return math.sqrt(range_s[0] * range_s[1]) if range_s else _OTHER_STEP_S


def _draws(jobs: list[int], gpus: Sequence[int], rule: str, seed: int) -> list[str]:
    """A model for each of the jobs that have none."""
    if rule not in (UNIFORM, MIX):
        return [canonical(rule)] * len(jobs)
    rng = stream(seed, f"trace.model.{rule}")
    if rule == UNIFORM:
        return [_SIX[i] for i in rng.integers(len(_SIX), size=len(jobs)).tolist()]
    shares = rng.random(len(jobs)).tolist()
    return [_mixed(gpus[job], share) for job, share in zip(jobs, shares, strict=True)]


def _mixed(gpus: int, share: float) -> str:
    """The model at a cumulative share of Dally's batch, for the next smaller demand it has."""
    demand = max((d for d in BATCH.demands if d.gpus <= gpus), key=lambda d: d.gpus)
    cumulative = np.cumsum(list(demand.jobs_by_model.values())) / demand.jobs
    index = int(np.searchsorted(cumulative, share, side="right"))
    return list(demand.jobs_by_model)[index]


def _stand_in(name: str, rule: str, seed: int) -> str:
    if rule not in (UNIFORM, MIX):
        return canonical(rule)
    return _SIX[int(stream(seed, f"trace.model.name.{name}").integers(len(_SIX)))]


def _notes(
    rule: str, seed: int, empty: int, lacking: Counter[str], stands_for: dict[str, str]
) -> tuple[str, ...]:
    how = {
        UNIFORM: f"uniform over Dally's six, seed {seed}",
        MIX: f"as in Dally's batch for its number of GPUs, seed {seed}",
    }.get(rule, f"always {rule}")
    notes = []
    if empty:
        notes.append(f"model ({how}): {empty} jobs")
    if lacking:
        some = [f"{name} by {stands_for[name]}" for name, _ in lacking.most_common(4)]
        more = f" and {len(lacking) - 4} more" if len(lacking) > 4 else ""
        how = f"always {rule}" if rule not in (UNIFORM, MIX) else f"seed {seed}"
        notes.append(
            f"model that the catalogue lacks ({', '.join(some)}{more}; {how}): "
            f"{lacking.total()} jobs"
        )
    return tuple(notes)
