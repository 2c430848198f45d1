"""Transformers, layer by layer: the original one, the encoders BERT, RoBERTa, CamemBERT and XLM,
and the decoders Transformer-XL, GPT-1, GPT-2, GPT-3, GPTs with experts, and Llama.

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
    operators.append(_head(0, hidden, 3149, sequence))
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

    GPT-1 normalises behind each layer, and so not once more before the head (`final_norm`).
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
        operators.append(_head(weights, hidden, self.vocabulary, sequence))
        return tuple(operators)


@dataclass(frozen=True, slots=True)
class Llama:
    """Sizes of a Llama. It has no biases. `inner` is the width of its gated feed-forward layer."""

    layers: int
    hidden: int
    inner: int
    vocabulary: int
    heads_per_key: int = 1
    """Number of query heads that share one head of keys and values."""

    def build(self, sequence: int) -> tuple[Operator, ...]:
        """The embeddings, the blocks and the head, which has a table of its own."""
        hidden, keys = self.hidden, self.hidden // self.heads_per_key
        table = replace(lookup("embeddings", self.vocabulary, hidden, rows=sequence), role=Role.ROW)
        operators = [table]
        for number in range(self.layers):
            name = f"h{number}"
            qkv = _no_bias(f"{name}.qkv", hidden, hidden + 2 * keys, sequence, Role.COLUMN, hidden)
            output = _no_bias(f"{name}.attention.output", hidden, hidden, sequence, Role.ROW)
            macs = output.macs + 2 * sequence**2 * hidden
            operators += [
                qkv,
                replace(output, macs=macs),
                _no_bias(f"{name}.gate_up", hidden, 2 * self.inner, sequence, Role.COLUMN, hidden),
                _no_bias(f"{name}.down", self.inner, hidden, sequence, Role.ROW),
            ]
        weights = hidden + hidden * self.vocabulary
        operators.append(_head(weights, hidden, self.vocabulary, sequence))
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

# Llama 2 (arXiv:2307.09288) and 3 (arXiv:2407.21783), with the sizes of the released models.
LLAMA = {
    "llama2-7b": Llama(32, 4096, 11_008, 32_000),
    "llama2-13b": Llama(40, 5120, 13_824, 32_000),
    "llama2-70b": Llama(80, 8192, 28_672, 32_000, heads_per_key=8),
    "llama3-8b": Llama(32, 4096, 14_336, 128_256, heads_per_key=4),
}


def _recurrent_layer(name: str, hidden: int, inner: int, sequence: int) -> list[Operator]:
    """One layer of Transformer-XL."""
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
    one = [
        linear(f"{name}.experts.up", hidden, 4 * hidden, rows=sequence, role=Role.EXPERT),
        linear(f"{name}.experts.down", 4 * hidden, hidden, rows=sequence, role=Role.EXPERT),
    ]
    many = [replace(x, parameters=experts * x.parameters, experts=experts) for x in one]
    return [replace(router, parameters=router.parameters + 2 * hidden), *many]


def _no_bias(
    name: str, inputs: int, outputs: int, sequence: int, role: Role, extra: int = 0
) -> Operator:
    """A linear layer without biases; `extra` parameters are of the normalisation before it."""
    layer = linear(name, inputs, outputs, rows=sequence, bias=False, role=role)
    return replace(layer, parameters=layer.parameters + extra)


def _head(parameters: int, hidden: int, vocabulary: int, sequence: int) -> Operator:
    """The last normalisation and the output layer."""
    macs = sequence * hidden * vocabulary
    sizes = (sequence * hidden, sequence * vocabulary)
    kind, role = OperatorKind.MATMUL, Role.COLUMN
    return Operator("head", kind, parameters, macs, *sizes, role, rows=sequence)
