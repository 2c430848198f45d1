"""Filling in the models and steps that a trace lacks.

Every rule is stated in the trace, and random draws depend on the seed alone. A rule says which
model a job gets if it has none, or if the catalogue lacks the model's name and the name does not
say what it means (`model_names.py`):

| rule | model |
|---|---|
| uniform | any of the six models of Dally's workloads, with equal chance |
| mix | drawn from the models of Dally's batch workload for that number of GPUs |
| keep | none: the job runs only without communication (`--backend none`) |
| a model's name | that model |

With `uniform` and `mix`, each job without a model gets a draw of its own. A name that the
catalogue lacks gets one draw for all its jobs, whatever their batch sizes, uniformly from the six.
Draws use these six and not the whole catalogue, so that a seed gives the same trace when the
catalogue grows.

A run time without iterations becomes steps. A step is as long as the steps of that model in
Dally's workloads (the geometric mean of the ends of their range), or 1 s for other models. The
number of steps is the one that comes closest to the run time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from artist.errors import ConfigError, nearest, shortened
from artist.registry import UnknownNameError
from artist.rng import stream
from artist.trace.foreign.model_names import known_model, meant, none_left, recognised
from artist.trace.native.choices import Rules
from artist.trace.native.model_words import without_batch
from artist.trace.native.trace import Trace
from artist.trace.synthetic.families import BATCH, COMPUTE_S, Floats
from artist.units import counted
from artist.workload.job import UNKNOWN_MODEL
from artist.workload.models import canonical, catalogue

KEEP, UNIFORM, MIX = "keep", "uniform", "mix"

_SIX = tuple(COMPUTE_S)

_OTHER_STEP_S = 1.0

_MOST_NAMED = 8


def check_rules(rules: Rules) -> None:
    """Refuse a rule that is neither known nor a model, and models that the catalogue lacks.

    Raises:
        ConfigError: names it, and a known one that is close to it.
    """
    rule = rules.model
    if rule is not None and rule not in (KEEP, UNIFORM, MIX) and not known_model(rule):
        known = (KEEP, UNIFORM, MIX, *catalogue)
        raise UnknownNameError("model rule", rule, known, f"one of {', '.join(known)}")
    for name, model in rules.models.items():
        try:
            canonical(model)
        except ConfigError as cause:
            raise ConfigError(f"--models {shortened(f'{name}={model}')}: {cause}") from cause


class FilledModels(NamedTuple):
    """A model for each job, and notes on what was filled in.

    `named` are notes on the meaning of names in the file; `drawn` are the `notes` on random draws.
    """

    models: list[str]
    named: tuple[str, ...]
    notes: tuple[str, ...]
    drawn: tuple[str, ...] = ()


def with_models(trace: Trace, rules: Rules) -> Trace:
    """A trace of one of artist's own formats, with the models that the rules give its jobs."""
    rule = rules.model or KEEP
    models = [job.model for job in trace.jobs]
    if rule == KEEP and not rules.models and all(map(known_model, {*models})):
        return trace
    filled = fill_models(models, [job.gpus for job in trace.jobs], replace(rules, model=rule))
    jobs = (
        job if model == job.model else replace(job, model=model)
        for job, model in zip(trace.jobs, filled.models, strict=True)
    )
    # The reader of an own format has already reported which jobs need --backend none.
    notes, warnings = () if rule == KEEP else filled.notes, trace.warnings
    if rule != KEEP:
        warnings = tuple(text for text in warnings if "without a model" not in text)
    return replace(
        trace,
        jobs=tuple(jobs),
        filled=(*filled.named, *notes),
        drawn=filled.drawn,
        warnings=warnings,
    )


def fill_models(models: Sequence[str], gpus: Sequence[int], rules: Rules) -> FilledModels:
    """A model for each job, and notes on what was filled in or replaced, with numbers of jobs.

    `models` are the names in the file: empty or `unknown` for a job without a model. Without a
    rule it is `uniform`.

    Raises:
        ConfigError: a name that no job has although the rules require it, or a batch size in a
            name with which its model cannot be trained.
    """
    rule, seed = rules.model or UNIFORM, rules.seed
    jobs = Counter(models)
    _check_named(jobs, rules)
    by_hand = {name: spec for name in jobs if (spec := meant(name, rules.models))}
    by_name = {
        name: spec
        for name in jobs
        if name not in by_hand and not known_model(name) and (spec := recognised(name))
    }
    named = (
        *_named_by_hand(jobs, by_hand, rules.models),
        *_pairs("model recognised by its name", jobs, by_name),
    )
    specs = {UNKNOWN_MODEL: "", **by_name, **by_hand}
    filled = [specs.get(name, name) for name in models]
    empty = [index for index, name in enumerate(filled) if not name]
    if rule == KEEP:
        kept = [name or UNKNOWN_MODEL for name in filled]
        none = (
            (f"model (none, needs --backend none): {counted(len(empty), 'job')}",) if empty else ()
        )
        return FilledModels(kept, named, none)
    for index, model in zip(empty, _draws(empty, gpus, rule, seed), strict=True):
        filled[index] = model
    lacking = {name: without_batch(name) for name in {*filled} if not known_model(name)}
    stand_ins = {name: _stand_in(base, rule, seed) for name, base in lacking.items()}
    replaced = Counter(lacking[name] for name in filled if name in lacking)
    by_base = {base: stand_ins[name] for name, base in lacking.items()}
    notes = _notes(rule, seed, len(empty), replaced, by_base)
    chosen = [stand_ins.get(name, name) for name in filled]
    drawn = notes if rule in (UNIFORM, MIX) else ()
    if rules.model is not None and not notes:
        notes = (no_effect(rule),)
    return FilledModels(chosen, named, notes, drawn)


def no_effect(rule: str) -> str:
    """The note that a rule had no effect, since every job has a known model."""
    return f"nothing by --model-rule {rule}: every job has a model that the catalogue knows"


def _check_named(jobs: Counter[str], rules: Rules) -> None:
    """Refuse a name of a model that is required and that no job has."""
    names = [name for name in jobs if name]
    lacking = none_left(sorted(rules.required), names)
    if lacking:
        name = lacking[0]
        known = ", ".join(map(shortened, names[:_MOST_NAMED])) or "none"
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        near = nearest(name, names)
        raise ConfigError(
            f"--models {shortened(f'{name}={rules.models[name]}')}: no job has the model "
            f"{shortened(name)}{f'; did you mean {shortened(near)}?' if near else ''}; the models "
            f"of the trace are: {known}{more}"
        )


def _named_by_hand(
    jobs: Counter[str], by_hand: Mapping[str, str], models: Mapping[str, str]
) -> tuple[str, ...]:
    """At most one note on what `--models` did, including names that no job has."""
    unused = {key: models[key] for key in none_left(models, jobs)}
    return _pairs("model", jobs, {**by_hand, **unused})


def _pairs(what: str, jobs: Counter[str], specs: Mapping[str, str]) -> tuple[str, ...]:
    pairs = [
        f"{shortened(name)} is {spec}: {counted(jobs[name], 'job')}" for name, spec in specs.items()
    ]
    more = f"; and {len(pairs) - _MOST_NAMED} more" if len(pairs) > _MOST_NAMED else ""
    return (f"{what} ({'; '.join(pairs[:_MOST_NAMED])}{more})",) if pairs else ()


def steps(run_s: float, model: str) -> int:
    """The number of iterations of the model that comes closest to a run time, at least one."""
    return max(1, round(run_s / _step_s(model)))


@cache
def _step_s(model: str) -> float:
    """Compute time of one iteration, in seconds."""
    range_s = COMPUTE_S.get(canonical(model)) if known_model(model) else None
    return math.sqrt(range_s[0] * range_s[1]) if range_s else _OTHER_STEP_S


def _draws(jobs: list[int], gpus: Sequence[int], rule: str, seed: int) -> list[str]:
    """A model for each of these jobs, which lack one; `gpus` lists the GPUs of all jobs."""
    if rule not in (UNIFORM, MIX):
        return [canonical(rule)] * len(jobs)
    rng = stream(seed, f"trace.model.{rule}")
    if rule == UNIFORM:
        return [_SIX[i] for i in rng.integers(len(_SIX), size=len(jobs)).tolist()]
    shares = rng.random(len(jobs)).tolist()
    return [_mixed(gpus[job], share) for job, share in zip(jobs, shares, strict=True)]


def _mixed(gpus: int, share: float) -> str:
    """The model at cumulative share `share` among the batch's jobs of this demand.

    If the batch has no job of `gpus` GPUs, the next smaller demand is used.
    """
    models, cumulative = _models_by_demand(max(x.gpus for x in BATCH.cells if x.gpus <= gpus))
    return models[int(np.searchsorted(cumulative, share, side="right"))]


@cache
def _models_by_demand(gpus: int) -> tuple[tuple[str, ...], Floats]:
    """The models of the batch's jobs of this demand, with their cumulative shares."""
    jobs = {cell.model: cell.jobs for cell in BATCH.cells if cell.gpus == gpus}
    cumulative = np.cumsum(list(jobs.values()))
    return tuple(jobs), cumulative / cumulative[-1]


def _stand_in(name: str, rule: str, seed: int) -> str:
    """The model that replaces a name which the catalogue lacks."""
    if rule not in (UNIFORM, MIX):
        return canonical(rule)
    return _SIX[int(stream(seed, f"trace.model.name.{name}").integers(len(_SIX)))]


def _notes(
    rule: str, seed: int, empty: int, lacking: Counter[str], stand_ins: dict[str, str]
) -> tuple[str, ...]:
    """What was filled in (`empty` jobs) and what was replaced (`lacking` names), in words."""
    how = {
        UNIFORM: f"uniform over Dally's six, seed {seed}",
        MIX: f"as in Dally's batch for its number of GPUs, seed {seed}",
    }.get(rule, f"always {rule}")
    notes = []
    if empty:
        notes.append(f"model ({how}): {counted(empty, 'job')}")
    if lacking:
        some = [f"{name} by {stand_ins[name]}" for name, _ in lacking.most_common(4)]
        more = f" and {len(lacking) - 4} more" if len(lacking) > 4 else ""
        how = f"always {rule}" if rule not in (UNIFORM, MIX) else f"seed {seed}"
        notes.append(
            f"model that the catalogue lacks ({', '.join(some)}{more}; {how}): "
            f"{counted(lacking.total(), 'job')}"
        )
    return tuple(notes)
