"""What the name of a model in a file holds besides the model: a batch size, a data set, a library.

`foreign/model_names.py` compares the rest with the catalogue, which this module does not load.
"""

from __future__ import annotations

import re

# `(batch size 64)`, `batch_size=64`, `bs64`; not `global batch size 512`, which is of all GPUs.
_BATCH = re.compile(
    r"(?<![a-z])(?<!global[ _-])(?<!total[ _-])(?:batch(?:[ _-]?size)?|bs)[ _=:-]*"
    r"([0-9]{1,7})(?![0-9])",
    re.IGNORECASE,
)

# Words in names that are not part of the model: data sets, libraries, tasks.
_BESIDES = frozenset({
    "imagenet", "imagenet1k", "ilsvrc", "cifar10", "cifar100", "squad", "glue", "mnli", "wikitext",
    "wikitext2", "wikitext103", "multi30k", "criteo", "openwebtext", "pytorch", "torch",
    "torchvision", "tensorflow", "tf", "hf", "huggingface", "transformers", "model", "net",
    "network", "training", "train", "trainer", "pretraining", "pretrain", "pretrained",
    "finetuning", "finetune", "finetuned", "ft", "ddp", "dp", "distributed", "cased", "uncased",
    "chat", "instruct", "v1", "v1.5",
})  # fmt: skip


def batch_in(name: str) -> int | None:
    """The batch size in a name; None if there is none.

    >>> batch_in("ResNet-50 (batch size 64)"), batch_in("global batch size 512")
    (64, None)
    """
    batch = _BATCH.search(name)
    return int(batch[1]) if batch else None


def without_batch(name: str) -> str:
    """A name without the batch size in it.

    >>> without_batch("ResNet-50 (batch size 64)"), without_batch("bert_bs8_squad")
    ('ResNet-50', 'bert_squad')
    """
    batch = _BATCH.search(name)
    if batch is None:
        return name
    before, after = name[: batch.start()], name[batch.end() :]
    return (before.rstrip(" _,;:/@([-") + after.lstrip(")]")).strip() or name


def core(name: str) -> str:
    """A name without its owner, its batch size, and words that are not part of the model.

    >>> core("hf/bert_large_uncased"), core("ResNet-50 (batch size 64)")
    ('bertlarge', 'ResNet50')
    """
    words = _words(without_batch(name).rpartition("/")[2])
    return "".join(word for word in words if word.casefold() not in _BESIDES)


def says_more(name: str) -> bool:
    """Whether a name holds more than the model, so that only its `core` may be known."""
    return core(name) != "".join(_words(name))


def _words(name: str) -> list[str]:
    return re.split(r"[\s_()\[\],;:+-]+", name)
