"""Transformer encoders, layer by layer."""

from __future__ import annotations

from dataclasses import replace

from artist.workload.operators import Kind, Operator, linear


def bert_large() -> tuple[Operator, ...]:
    """BERT-large uncased: embeddings, 24 encoder layers and the pooler (arXiv:1810.04805).

    Sizes are those of the released uncased model (vocabulary 30,522, 512
    positions, 2 segments). A sample is a sequence of 384 tokens, as in its
    authors' recipe for SQuAD, the data set of the trace's BERT jobs.
    """
    return _encoder(layers=24, hidden=1024, vocabulary=30_522, positions=512, sequence=384)


def _encoder(
    *, layers: int, hidden: int, vocabulary: int, positions: int, sequence: int
) -> tuple[Operator, ...]:
    segments = 2
    # A look-up costs no multiplications; its gradient is sent dense. The last
    # two rows are the layer normalisation's scale and shift.
    rows = vocabulary + positions + segments + 2
    operators = [Operator("embeddings", Kind.MATMUL, rows * hidden, macs=0)]
    for number in range(layers):
        operators += _encoder_layer(f"layer{number}", hidden, sequence)
    operators.append(linear("pooler", hidden, hidden))
    return tuple(operators)


def _encoder_layer(name: str, hidden: int, sequence: int) -> list[Operator]:
    """Six layers with parameters; scores and their use count as `attention.output`."""
    output = linear(f"{name}.attention.output", hidden, hidden, rows=sequence, norm=True)
    attention_macs = 2 * sequence**2 * hidden
    return [
        *(linear(f"{name}.{x}", hidden, hidden, rows=sequence) for x in ("query", "key", "value")),
        replace(output, macs=output.macs + attention_macs),
        linear(f"{name}.intermediate", hidden, 4 * hidden, rows=sequence),
        linear(f"{name}.output", 4 * hidden, hidden, rows=sequence, norm=True),
    ]
