"""The decoders of today, layer by layer: Llama, Mixtral, Qwen3, gpt-oss and DeepSeek-V3.

They have no biases and normalise before each part of a block. `transformers.py` says how parameters
and MACs are counted. With experts, the load is balanced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from artist.workload.architectures.operators import Operator, Role, linear, lookup
from artist.workload.architectures.transformers import head


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention in which several query heads share one head of keys and values.

    `queries` and `keys` are the widths of all their heads together. `normalised` is the width of a
    head if queries and keys are normalised, else 0.
    """

    queries: int
    keys: int
    normalised: int = 0

    def build(self, name: str, hidden: int, sequence: int) -> list[Operator]:
        """The layer of queries, keys and values, and the output layer."""
        outputs = self.queries + 2 * self.keys
        norms = hidden + 2 * self.normalised
        macs = 2 * sequence**2 * self.queries
        return [
            _layer(f"{name}.qkv", hidden, outputs, sequence, Role.COLUMN, norms=norms),
            _layer(f"{name}.attention.output", self.queries, hidden, sequence, Role.ROW, macs=macs),
        ]


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """DeepSeek's attention (arXiv:2412.19437, section 2.1.1): queries, keys and values of low rank.

    A head's queries and keys are `content` + `rotary` wide, its values `content`. The rotary part
    of the keys is common to all heads.
    """

    heads: int
    content: int = 128
    rotary: int = 64
    query_rank: int = 1536
    key_rank: int = 512

    def build(self, name: str, hidden: int, sequence: int) -> list[Operator]:
        """The layers to and from the low ranks, and the output layer."""
        values = self.heads * self.content
        queries = self.heads * (self.content + self.rotary)
        query_rank, key_rank = self.query_rank, self.key_rank
        macs = sequence**2 * (queries + values)
        column = Role.COLUMN
        return [
            _layer(f"{name}.query.down", hidden, query_rank, sequence, norms=hidden),
            _layer(f"{name}.query.up", query_rank, queries, sequence, column, norms=query_rank),
            _layer(f"{name}.key_value.down", hidden, key_rank + self.rotary, sequence),
            _layer(f"{name}.key_value.up", key_rank, 2 * values, sequence, column, norms=key_rank),
            _layer(f"{name}.attention.output", values, hidden, sequence, Role.ROW, macs=macs),
        ]


@dataclass(frozen=True, slots=True)
class Mixture:
    """Experts in place of the feed-forward layer, from block `first` on.

    A token passes `active` experts of width `inner`, and one of width `shared` if that is not 0.
    """

    active: int
    inner: int
    shared: int = 0
    first: int = 0

    def build(self, name: str, hidden: int, sequence: int, experts: int) -> list[Operator]:
        """The router, the shared expert if there is one, and the experts."""
        operators = [_layer(f"{name}.router", hidden, experts, sequence, norms=hidden)]
        if self.shared:
            operators += _feed_forward(f"{name}.shared", hidden, self.shared, sequence)
        rows = self.active * sequence
        widens, narrows = Role.FIRST_OF_EXPERT, Role.LAST_OF_EXPERT
        one = [
            _layer(f"{name}.experts.gate_up", hidden, 2 * self.inner, rows, widens),
            _layer(f"{name}.experts.down", self.inner, hidden, rows, narrows),
        ]
        many = (
            replace(x, parameters=experts * x.parameters, experts=experts, active=self.active)
            for x in one
        )
        return [*operators, *many]


@dataclass(frozen=True, slots=True)
class Decoder:
    """Sizes of a decoder. `inner` is the width of its gated feed-forward layers, if it has any."""

    layers: int
    hidden: int
    inner: int
    vocabulary: int
    attention: Attention | LatentAttention
    mixture: Mixture | None = None

    def build(self, sequence: int, experts: int = 1) -> tuple[Operator, ...]:
        """The embeddings, the blocks and the head, which has a table of its own."""
        hidden, mixture = self.hidden, self.mixture
        table = lookup("embeddings", self.vocabulary, hidden, rows=sequence)
        operators = [replace(table, role=Role.ROW)]
        for number in range(self.layers):
            name = f"h{number}"
            operators += self.attention.build(name, hidden, sequence)
            if mixture is not None and number >= mixture.first:
                operators += mixture.build(name, hidden, sequence, experts)
            else:
                operators += _feed_forward(name, hidden, self.inner, sequence, norms=hidden)
        weights = hidden + hidden * self.vocabulary
        operators.append(head(weights, hidden, self.vocabulary, sequence))
        return tuple(operators)


def _feed_forward(
    name: str, hidden: int, inner: int, sequence: int, norms: int = 0
) -> list[Operator]:
    """A gated feed-forward layer: the gate and the way up are one matrix."""
    return [
        _layer(f"{name}.gate_up", hidden, 2 * inner, sequence, Role.COLUMN, norms=norms),
        _layer(f"{name}.down", inner, hidden, sequence, Role.ROW),
    ]


def _layer(
    name: str,
    inputs: int,
    outputs: int,
    rows: int,
    role: Role = Role.WHOLE,
    *,
    norms: int = 0,
    macs: int = 0,
) -> Operator:
    """A linear layer without biases, with `norms` parameters and `macs` that count with it."""
    layer = linear(name, inputs, outputs, rows=rows, bias=False, role=role)
    return replace(layer, parameters=layer.parameters + norms, macs=layer.macs + macs)


# The sizes are those of the released models.
DECODERS = {
    # arXiv:2307.09288
    "llama2-7b": Decoder(32, 4096, 11_008, 32_000, Attention(4096, 4096)),
    "llama2-13b": Decoder(40, 5120, 13_824, 32_000, Attention(5120, 5120)),
    "llama2-70b": Decoder(80, 8192, 28_672, 32_000, Attention(8192, 1024)),
    # arXiv:2407.21783, table 3
    "llama3-8b": Decoder(32, 4096, 14_336, 128_256, Attention(4096, 1024)),
    "llama3-70b": Decoder(80, 8192, 28_672, 128_256, Attention(8192, 1024)),
    "llama3-405b": Decoder(126, 16_384, 53_248, 128_256, Attention(16_384, 1024)),
    # arXiv:2505.09388, tables 1 and 2. Heads are 128 wide.
    "qwen3-8b": Decoder(36, 4096, 12_288, 151_936, Attention(4096, 1024, 128)),
    "qwen3-32b": Decoder(64, 5120, 25_600, 151_936, Attention(8192, 1024, 128)),
    "qwen3-30b-a3b": Decoder(48, 2048, 0, 151_936, Attention(4096, 512, 128), Mixture(8, 768)),
    "qwen3-235b-a22b": Decoder(94, 4096, 0, 151_936, Attention(8192, 512, 128), Mixture(8, 1536)),
    # arXiv:2401.04088, table 1
    "mixtral-8x7b": Decoder(32, 4096, 0, 32_000, Attention(4096, 1024), Mixture(2, 14_336)),
    # arXiv:2508.10925, table 1, without biases
    "gpt-oss-120b": Decoder(36, 2880, 0, 201_088, Attention(4096, 512), Mixture(4, 2880)),
    # arXiv:2412.19437, section 4.2, without the module that predicts a second token
    "deepseek-v3": Decoder(
        61, 7168, 18_432, 129_280, LatentAttention(128), Mixture(8, 2048, shared=2048, first=3)
    ),
}
