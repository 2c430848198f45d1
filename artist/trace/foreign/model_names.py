"""Which models the names in a file mean: by the user's pairs, or by the names themselves.

A name means a model of the catalogue if only that is left without words that are not part of the
model (`native/model_words.py`), as in `torchvision/resnet50` and `BERT-large (SQuAD)`. A batch size
in a name, as in `ResNet-50 (batch size 64)`, is the batch per GPU, as in Gavel's job types.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from functools import cache

from artist.errors import ConfigError, shortened
from artist.registry import UnknownNameError
from artist.trace.native.model_words import batch_in, core, without_batch
from artist.workload.job import UNKNOWN_MODEL
from artist.workload.models import canonical, is_graph, is_spelled, settings


@cache
def known_model(name: str) -> bool:
    """Whether the catalogue has a model, in any spelling, or it is a folder of traces."""
    if is_graph(name):
        return True
    if not is_spelled(name):
        return False
    try:
        canonical(name)
    except UnknownNameError:
        return False
    return True


@cache
def recognised(name: str) -> str | None:
    """The model of the catalogue that a name clearly means, with its batch size; else None.

    >>> recognised("ResNet-50 (batch size 64)"), recognised("hf/bert_large_uncased")
    ('resnet50@batch=64', 'bert-large')
    """
    for spelling in (without_batch(name), core(name)):
        spec = _with_batch(spelling, name)
        if known_model(spec):
            return canonical(spec)
    return None


def meant(name: str, models: Mapping[str, str]) -> str | None:
    """The model that the user's pairs give to a name; None if they say nothing about it.

    A pair for exactly this name takes precedence, then one for the name without its batch size,
    then the first pattern that fits. The batch size in the name applies unless the pair states one.

    Raises:
        ConfigError: the model cannot be trained with the batch size in the name.
    """
    key = next((key for key in (name, without_batch(name)) if key in models), None)
    key = key or next((key for key in models if fits(key, name)), None)
    if key is None:
        return None
    spec = _with_batch(models[key], name)
    try:
        return canonical(spec)
    except UnknownNameError as cause:
        pair = shortened(f"{key}={models[key]}")
        if not known_model(models[key]):
            raise ConfigError(f"--models {pair}: {cause}") from cause
        fitting = f"{models[key]}{_joined(models[key])}batch={settings(models[key]).batch}"
        raise ConfigError(
            f"--models {pair}: the batch size in the job's model {shortened(name)} does not suit "
            f"it: {cause}; state one that does, such as --models {shlex.quote(f'{key}={fitting}')}"
        ) from cause


def fits(key: str, name: str) -> bool:
    """Whether a pair is about a name: the name itself, or a pattern in which `*` is any text.

    >>> fits("ResNet-50*", "resnet-50 (batch size 64)"), fits("ResNet", "ResNet-50")
    (True, False)
    """
    if key in (name, without_batch(name)):
        return True
    if "*" not in key or name in ("", UNKNOWN_MODEL):
        return False
    first, *middle, last = key.casefold().split("*")
    text = name.casefold()
    if not (text.startswith(first) and text.removeprefix(first).endswith(last)):
        return False
    rest = text[len(first) : len(text) - len(last)]
    for part in filter(None, middle):
        _, found, rest = rest.partition(part)
        if not found:
            return False
    return True


def none_left(keys: Iterable[str], names: Iterable[str]) -> list[str]:
    """The keys of pairs that apply to none of these names."""
    names = list(names)
    return [key for key in keys if not any(fits(key, name) for name in names)]


def _with_batch(spec: str, name: str) -> str:
    """A model with the batch size that is in a name, unless the model states one."""
    batch = batch_in(name)
    if batch is None or re.search(r"[@,]\s*batch\s*=", spec):
        return spec
    return f"{spec}{_joined(spec)}batch={batch}"


def _joined(spec: str) -> str:
    """The separator before another setting of a model."""
    return "," if "@" in spec else "@"
