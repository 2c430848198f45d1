"""Transformers, layer by layer: the original one, the encoders BERT, RoBERTa, CamemBERT and XLM,
and the decoders Transformer-XL, GPT-1, GPT-2, GPT-3 and GPTs with experts. Later ones are in
`decoders.py`.

Parameter counts are those of the released models. A sample is one sequence. The attention scores
and their product with the values, 2 sequence^2 hidden MACs, are counted with the output layer of
the attention. As usual, the half that a causal mask hides is counted too.

The last normalisation of a decoder and its output layer form one operator, `head`. If the output
layer shares its table with the embeddings, the parameters of the table are counted with the
embeddings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from artist.workload.architectures.operators import Operator, OperatorKind, Role, linear, lookup


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


ENCODERS = {
    # arXiv:1810.04805, uncased.
    "bert-large": Encoder(24, 1024, vocabulary=30_522, positions=512, segments=2),
    "bert-base": Encoder(12, 768, vocabulary=30_522, positions=512, segments=2),
    # arXiv:1907.11692. Two of the 514 positions are for padding.
    "roberta-base": Encoder(12, 768, vocabulary=50_265, positions=514),
    "roberta-large": Encoder(24, 1024, vocabulary=50_265, positions=514),
    # RoBERTa for French (arXiv:1911.03894).
    "camembert": Encoder(12, 768, vocabulary=32_005, positions=514),
    # 100 languages, 200,000 word pieces (arXiv:1901.07291; sizes arXiv:1911.02116).
    "xlm": Encoder(16, 1280, vocabulary=200_000, positions=512, segments=0, pooler=False),
}


def transformer(sequence: int) -> tuple[Operator, ...]:
    """The base Transformer (arXiv:1706.03762, table 3), translating Multi30k as Gavel's jobs do.

    The vocabularies are those of words that occur more than five times: 2,911 English and 3,149
    German ones (logs of the recipe, github.com/jadore801120/attention-is-all-you-need-pytorch). The
    output layer shares the German table. A sample is a pair of sentences, each of `sequence` words.
    """
    hidden = 512
    operators = [lookup("source", 2911, hidden, rows=sequence)]
    for number in range(6):
        operators += _encoder_layer(f"encoder{number}", hidden, sequence)
    operators.append(lookup("target", 3149, hidden, rows=sequence))
    for number in range(6):
        name = f"decoder{number}"
        # The first four layers are the attention: to the sentence itself, then to the source.
        operators += _encoder_layer(f"{name}.self", hidden, sequence)[:4]
        operators += _encoder_layer(f"{name}", hidden, sequence)
    operators.append(head(0, hidden, 3149, sequence))
    return tuple(operators)


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


@dataclass(frozen=True, slots=True)
class Gpt:
    """Sizes of a GPT. Every `experts_every`-th block has experts; 0 means no block has.

    GPT-1 normalises after each layer, so it has no `final_norm` before the head.
    """

    layers: int
    hidden: int
    vocabulary: int = 50_257
    positions: int = 1024
    experts_every: int = 0
    final_norm: bool = True

    def build(self, sequence: int, experts: int = 1) -> tuple[Operator, ...]:
        """The embeddings, the blocks and the head, whose table is that of the embeddings."""
        hidden = self.hidden
        rows = self.vocabulary + self.positions
        operators = [replace(lookup("embeddings", rows, hidden, rows=sequence), role=Role.ROW)]
        for number in range(self.layers):
            every = self.experts_every
            operators += _attention(f"h{number}", hidden, sequence)
            if every and number % every == every - 1:
                operators += _experts(f"h{number}", hidden, sequence, experts)
            else:
                operators += _feed_forward(f"h{number}", hidden, sequence)
        weights = 2 * hidden if self.final_norm else 0
        operators.append(head(weights, hidden, self.vocabulary, sequence))
        return tuple(operators)


def transformer_xl(sequence: int = 150) -> tuple[Operator, ...]:
    """Transformer-XL base for WikiText-103 (arXiv:1901.02860 and its released recipe).

    Its memory is as long as a segment. Of the adaptive softmax, only the first cluster (20,000
    words and three entries for the other clusters) counts as arithmetic. The tables of softmax
    and embeddings are shared.
    """
    layers, hidden, inner, vocabulary, clusters = 16, 410, 2100, 267_735, 3
    # All layers share the two biases of relative attention: `extra` parameters, counted once.
    operators = [lookup("embeddings", vocabulary, hidden, rows=sequence, extra=2 * hidden)]
    for number in range(layers):
        operators += _recurrent_layer(f"layer{number}", hidden, inner, sequence)
    weights = (hidden + 1) * clusters + vocabulary
    macs = sequence * hidden * (20_000 + clusters)
    outputs = sequence * (20_000 + clusters)
    sizes = (sequence * hidden, outputs)
    softmax = Operator("softmax", OperatorKind.MATMUL, weights, macs, *sizes, rows=sequence)
    return (*operators, softmax)


GPTS = {
    # Radford et al. 2018, section 4.1. Vocabulary: the released model.
    "gpt1": Gpt(12, 768, 40_478, 512, final_norm=False),
    # Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", table 2.
    # Vocabulary and positions: the released models.
    "gpt2": Gpt(12, 768),
    "gpt2-medium": Gpt(24, 1024),
    "gpt2-large": Gpt(36, 1280),
    "gpt2-xl": Gpt(48, 1600),
    # Experts in every other block, one per token (arXiv:2101.03961).
    "gpt2-moe": Gpt(12, 768, experts_every=2),
    # The 350M+MoE-128 of DeepSpeed-MoE: experts in every other block (arXiv:2201.05596).
    "gpt-moe-128": Gpt(24, 1024, positions=2048, experts_every=2),
    # arXiv:2005.14165, table 2.1, with GPT-2's vocabulary.
    "gpt3-xl": Gpt(24, 2048, positions=2048),
    "gpt3-175b": Gpt(96, 12_288, positions=2048),
}


def _recurrent_layer(name: str, hidden: int, inner: int, sequence: int) -> list[Operator]:
    """One layer of Transformer-XL, whose memory is the segment before this one."""
    # Keys, values and relative positions cover the memory and the segment.
    span = 2 * sequence
    query = linear(f"{name}.query", hidden, hidden, rows=sequence, bias=False)
    output = linear(f"{name}.attention.output", hidden, hidden, rows=sequence, bias=False)
    # The scores of contents, the scores of positions, and the product with the values.
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


def _attention(name: str, hidden: int, sequence: int) -> list[Operator]:
    """The attention of a GPT block. The normalisation before it counts with its first layer."""
    qkv = linear(f"{name}.qkv", hidden, 3 * hidden, rows=sequence, role=Role.COLUMN)
    output = linear(f"{name}.attention.output", hidden, hidden, rows=sequence, role=Role.ROW)
    return [
        replace(qkv, parameters=qkv.parameters + 2 * hidden),
        replace(output, macs=output.macs + 2 * sequence**2 * hidden),
    ]


def _feed_forward(name: str, hidden: int, sequence: int) -> list[Operator]:
    """The feed-forward part of a GPT block, with the normalisation before it."""
    up = linear(f"{name}.up", hidden, 4 * hidden, rows=sequence, role=Role.COLUMN)
    down = linear(f"{name}.down", 4 * hidden, hidden, rows=sequence, role=Role.ROW)
    return [replace(up, parameters=up.parameters + 2 * hidden), down]


def _experts(name: str, hidden: int, sequence: int, experts: int) -> list[Operator]:
    """A router with the normalisation before it, then `experts` feed-forward parts."""
    router = linear(f"{name}.router", hidden, experts, rows=sequence, bias=False)
    first, last = Role.FIRST_OF_EXPERT, Role.LAST_OF_EXPERT
    one = [
        linear(f"{name}.experts.up", hidden, 4 * hidden, rows=sequence, role=first),
        linear(f"{name}.experts.down", 4 * hidden, hidden, rows=sequence, role=last),
    ]
    many = [replace(x, parameters=experts * x.parameters, experts=experts) for x in one]
    return [replace(router, parameters=router.parameters + 2 * hidden), *many]


def head(parameters: int, hidden: int, vocabulary: int, sequence: int) -> Operator:
    """The last normalisation and the output layer."""
    macs = sequence * hidden * vocabulary
    sizes = (sequence * hidden, sequence * vocabulary)
    kind, role = OperatorKind.MATMUL, Role.COLUMN
    return Operator("head", kind, parameters, macs, *sizes, role, rows=sequence)
