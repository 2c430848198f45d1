"""Transformer encoders, layer by layer: BERT, RoBERTa, CamemBERT and XLM.

Parameter counts are those of the released models. A sample is one sequence. The attention scores
and their product with the values, 2 sequence^2 hidden MACs, are counted with the output layer of
the attention.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from artist.workload.operators import Operator, Role, linear, lookup


@dataclass(frozen=True, slots=True)
class Encoder:
    """Sizes of an encoder. `segments` is the number of rows of BERT's segment table."""

    layers: int
    hidden: int
    vocabulary: int
    positions: int
    segments: int = 1
    pooler: bool = True

    def build(self, sequence: int) -> tuple[Operator, ...]:
        """The embeddings with their normalisation, the layers, and the pooler if there is one."""
        # The last two rows are the scale and the shift of the layer normalisation.
        rows = self.vocabulary + self.positions + self.segments + 2
        operators = [lookup("embeddings", rows, self.hidden, rows=sequence)]
        for number in range(self.layers):
            operators += _encoder_layer(f"layer{number}", self.hidden, sequence)
        if self.pooler:
            operators.append(linear("pooler", self.hidden, self.hidden))
        return tuple(operators)


def bert_large(sequence: int = 384) -> tuple[Operator, ...]:
    """BERT-large uncased: embeddings, 24 encoder layers and the pooler (arXiv:1810.04805).

    The authors' recipe for SQuAD has sequences of 384 tokens. The BERT jobs of Dally's workloads
    train on that data set.
    """
    sizes = Encoder(layers=24, hidden=1024, vocabulary=30_522, positions=512, segments=2)
    return sizes.build(sequence)


def bert_base(sequence: int = 384) -> tuple[Operator, ...]:
    """BERT-base uncased (arXiv:1810.04805), with the sequences of the authors' SQuAD recipe."""
    sizes = Encoder(layers=12, hidden=768, vocabulary=30_522, positions=512, segments=2)
    return sizes.build(sequence)


def roberta_base(sequence: int = 512) -> tuple[Operator, ...]:
    """RoBERTa-base (arXiv:1907.11692). Two of its 514 positions are for padding."""
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


def _encoder_layer(name: str, hidden: int, sequence: int) -> list[Operator]:
    """The six layers with parameters of one encoder layer."""
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
