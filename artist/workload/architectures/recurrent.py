"""Recurrent networks, layer by layer: the LSTM language model.

The steps of a recurrent layer follow one another. The times here are those of its arithmetic, as if
all positions were computed together, so that a GPU takes longer in practice.
"""

from __future__ import annotations

from dataclasses import replace

from artist.workload.architectures.operators import Operator, linear, lookup


def lstm(sequence: int) -> tuple[Operator, ...]:
    """The word-level LSTM for WikiText-2, a model of PyTorch's examples and of Gavel's workloads.

    Two layers of 200 and word vectors of 200 (the defaults of the script); 33,278 words
    (arXiv:1609.07843, table 1). The tables of embeddings and output layer are not shared. A
    sample is a stretch of `sequence` words.
    """
    hidden, vocabulary = 200, 33_278
    # The four gates see the input and the last output. PyTorch has a bias for each of the two.
    gates = linear("", 2 * hidden, 4 * hidden, rows=sequence)
    gates = replace(gates, parameters=gates.parameters + 4 * hidden)
    return (
        lookup("embeddings", vocabulary, hidden, rows=sequence),
        replace(gates, name="lstm0"),
        replace(gates, name="lstm1"),
        linear("head", hidden, vocabulary, rows=sequence),
    )
