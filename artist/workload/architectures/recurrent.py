"""Recurrent networks, layer by layer: the LSTM language model, and the agent of A3C.

The steps of a recurrent layer follow one another. The times here are those of its arithmetic, as if
all positions were computed together, so that a GPU takes longer in practice.
"""

from __future__ import annotations

from dataclasses import replace

from artist.workload.architectures.operators import Conv, Image, Operator, linear, lookup


def lstm(sequence: int) -> tuple[Operator, ...]:
    """The word-level LSTM for WikiText-2, a model of PyTorch's examples and of Gavel's workloads.

    Two layers of 200 and word vectors of 200 (the defaults of the script); 33,278 words
    (arXiv:1609.07843, table 1). The tables of embeddings and output layer are not shared. A
    sample is a stretch of `sequence` words.
    """
    hidden, vocabulary = 200, 33_278
    gates = _gates(hidden, rows=sequence)
    return (
        lookup("embeddings", vocabulary, hidden, rows=sequence),
        replace(gates, name="lstm0"),
        replace(gates, name="lstm1"),
        linear("head", hidden, vocabulary, rows=sequence),
    )


def a3c() -> tuple[Operator, ...]:
    """The agent of A3C with an LSTM for an Atari game of 6 actions, Pong (arXiv:1602.01783).

    Section 8: two convolutions, a layer of 256, 256 LSTM cells, and outputs for the policy and the
    value. A sample is a step of the game: the last four frames of 84 x 84 (arXiv:1312.5602).
    """
    hidden, actions = 256, 6
    first = Conv(16, kernel=8, stride=4, padding=0, norm=False, bias=True)
    second = Conv(32, kernel=4, stride=2, padding=0, norm=False, bias=True)
    frames = Image(channels=4, side=84)
    seen = second.output(first.output(frames))
    return (
        first.operator("conv1", frames),
        second.operator("conv2", first.output(frames)),
        linear("fc", seen.elements, hidden),
        replace(_gates(hidden), name="lstm"),
        linear("policy", hidden, actions),
        linear("value", hidden, 1),
    )


def _gates(hidden: int, rows: int = 1) -> Operator:
    """The four gates of an LSTM whose input is as wide as its output.

    They see the input and the last output. PyTorch has a bias for each of the two.
    """
    gates = linear("", 2 * hidden, 4 * hidden, rows=rows)
    return replace(gates, parameters=gates.parameters + 4 * hidden)
