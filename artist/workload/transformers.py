"""Transformer encoders and the recurrent Transformer-XL, layer by layer.

Counts are those of the released models. A sample is one sequence. Scores and their
use, 2 sequence^2 hidden multiply-accumulates, count with the attention's output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from artist.workload.operators import Kind, Operator, Role, linear, lookup


@dataclass(frozen=True, slots=True)
class Encoder:
    """Sizes of an encoder. `segments` are the rows of BERT's segment table."""

    layers: int
    hidden: int
    vocabulary: int
    positions: int
    segments: int = 1
    pooler: bool = True

    def build(self, sequence: int) -> tuple[Operator, ...]:
        """Embeddings with their normalisation, the layers and the pooler."""
        # The last two rows are the layer normalisation's scale and shift.
        rows = self.vocabulary + self.positions + self.segments + 2
        operators = [lookup("embeddings", rows, self.hidden, rows=sequence)]
        for number in range(self.layers):
            operators += _encoder_layer(f"layer{number}", self.hidden, sequence)
        if self.pooler:
            operators.append(linear("pooler", self.hidden, self.hidden))
        return tuple(operators)


def bert_large(sequence: int = 384) -> tuple[Operator, ...]:
    """BERT-large uncased: embeddings, 24 encoder layers and the pooler (arXiv:1810.04805).

    A sequence of 384 tokens is that of its authors' recipe for SQuAD, the data set of the
    trace's BERT jobs.
    """
    sizes = Encoder(layers=24, hidden=1024, vocabulary=30_522, positions=512, segments=2)
    return sizes.build(sequence)


def roberta_base(sequence: int = 512) -> tuple[Operator, ...]:
    """RoBERTa-base (arXiv:1907.11692); two of its 514 positions are for padding."""
    return Encoder(layers=12, hidden=768, vocabulary=50_265, positions=514).build(sequence)


def roberta_large(sequence: int = 512) -> tuple[Operator, ...]:
    """RoBERTa-large (arXiv:1907.11692)."""
    return Encoder(layers=24, hidden=1024, vocabulary=50_265, positions=514).build(sequence)


def camembert(sequence: int = 512) -> tuple[Operator, ...]:
    """CamemBERT-base: RoBERTa for French (arXiv:1911.03894)."""
    return Encoder(layers=12, hidden=768, vocabulary=32_005, positions=514).build(sequence)


def xlm(sequence: int = 256) -> tuple[Operator, ...]:
    """XLM-100: 100 languages, 200,000 word pieces (arXiv:1901.07291; sizes arXiv:1911.02116)."""
    sizes = Encoder(
        layers=16, hidden=1280, vocabulary=200_000, positions=512, segments=0, pooler=False
    )
    return sizes.build(sequence)


def transformer_xl(sequence: int = 150) -> tuple[Operator, ...]:
    """Transformer-XL base for WikiText-103, with a memory as long as the segment
    (arXiv:1901.02860 and its released recipe).

    Of the adaptive softmax only the first cluster (20,000 words and three for the
    rest) is counted as arithmetic; the tables are tied.
    """
    layers, hidden, inner, vocabulary, clusters = 16, 410, 2100, 267_735, 3
    # The two biases of relative attention are shared by all layers.
    operators = [lookup("embeddings", vocabulary, hidden, rows=sequence, extra=2 * hidden)]
    for number in range(layers):
        operators += _recurrent_layer(f"layer{number}", hidden, inner, sequence)
    weights = (hidden + 1) * clusters + vocabulary
    macs = sequence * hidden * (20_000 + clusters)
    outputs = sequence * (20_000 + clusters)
    operators.append(
        Operator("softmax", Kind.MATMUL, weights, macs, sequence * hidden, outputs, rows=sequence)
    )
    return tuple(operators)


def _encoder_layer(name: str, hidden: int, sequence: int) -> list[Operator]:
    """Six layers with parameters."""
    row, column = Role.ROW, Role.COLUMN
    output = linear(f"{name}.attention.output", hidden, hidden, rows=sequence, norm=True, role=row)
    attention_macs = 2 * sequence**2 * hidden
    return [
        *(
            linear(f"{name}.{x}", hidden, hidden, rows=sequence, role=column)
            for x in ("query", "key", "value")
        ),
        replace(output, macs=output.macs + attention_macs),
        linear(f"{name}.intermediate", hidden, 4 * hidden, rows=sequence, role=column),
        linear(f"{name}.output", 4 * hidden, hidden, rows=sequence, norm=True, role=row),
    ]


def _recurrent_layer(name: str, hidden: int, inner: int, sequence: int) -> list[Operator]:
    """Keys, values and relative positions span memory and segment, twice the sequence."""
    span = 2 * sequence
    query = linear(f"{name}.query", hidden, hidden, rows=sequence, bias=False)
    output = linear(f"{name}.attention.output", hidden, hidden, rows=sequence, bias=False)
    # Content and position scores, and the use of the values.
    attention_macs = 3 * sequence * span * hidden
    return [
        query,
        linear(f"{name}.key_value", hidden, 2 * hidden, rows=span, bias=False),
        linear(f"{name}.position", hidden, hidden, rows=span, bias=False),
        replace(
            output, macs=output.macs + attention_macs, parameters=output.parameters + 2 * hidden
        ),
        linear(f"{name}.intermediate", hidden, inner, rows=sequence),
        linear(f"{name}.output", inner, hidden, rows=sequence, norm=True),
    ]
