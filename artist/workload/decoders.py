"""Transformer decoders: GPT-2, GPT-3, GPT-2 with experts, and Llama.

A sample is one sequence. Scores and their use, 2 sequence^2 hidden multiply-accumulates,
count with the attention's output (the causal half is not left out, as is usual). The
output layer's arithmetic counts with the last normalisation; where its table is that of
the embeddings, so does its gradient there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from artist.workload.operators import Kind, Operator, Role, linear, lookup


@dataclass(frozen=True, slots=True)
class Gpt:
    """Sizes of a GPT. Every `every`-th block has experts instead of one feed-forward."""

    layers: int
    hidden: int
    vocabulary: int = 50_257
    positions: int = 1024
    every: int = 0

    def build(self, sequence: int, experts: int = 1) -> tuple[Operator, ...]:
        """Embeddings, blocks, last normalisation with the (tied) output layer."""
        hidden = self.hidden
        rows = self.vocabulary + self.positions
        operators = [replace(lookup("embeddings", rows, hidden, rows=sequence), role=Role.ROW)]
        for number in range(self.layers):
            moe = self.every and number % self.every == self.every - 1
            operators += _attention(f"h{number}", hidden, sequence)
            if moe:
                operators += _experts(f"h{number}", hidden, sequence, experts)
            else:
                operators += _feed_forward(f"h{number}", hidden, sequence)
        operators.append(_head(2 * hidden, hidden, self.vocabulary, sequence))
        return tuple(operators)


@dataclass(frozen=True, slots=True)
class Llama:
    """Sizes of a Llama: no biases, gated feed-forward of `inner`, `groups` of shared keys."""

    layers: int
    hidden: int
    inner: int
    vocabulary: int
    shared: int = 1
    """Query heads per head of keys and values."""

    def build(self, sequence: int) -> tuple[Operator, ...]:
        """Embeddings, blocks, last normalisation with an output layer of its own."""
        hidden, keys = self.hidden, self.hidden // self.shared
        table = replace(lookup("embeddings", self.vocabulary, hidden, rows=sequence), role=Role.ROW)
        operators = [table]
        for number in range(self.layers):
            name = f"h{number}"
            qkv = _plain(f"{name}.qkv", hidden, hidden + 2 * keys, sequence, Role.COLUMN, hidden)
            output = _plain(f"{name}.attention.output", hidden, hidden, sequence, Role.ROW)
            macs = output.macs + 2 * sequence**2 * hidden
            operators += [
                qkv,
                replace(output, macs=macs),
                _plain(f"{name}.gate_up", hidden, 2 * self.inner, sequence, Role.COLUMN, hidden),
                _plain(f"{name}.down", self.inner, hidden, sequence, Role.ROW),
            ]
        weights = hidden + hidden * self.vocabulary
        operators.append(_head(weights, hidden, self.vocabulary, sequence))
        return tuple(operators)


_GPT2 = {
    "gpt2": Gpt(12, 768),
    "gpt2-medium": Gpt(24, 1024),
    "gpt2-large": Gpt(36, 1280),
    "gpt2-xl": Gpt(48, 1600),
}


def gpt2(size: str) -> Callable[..., tuple[Operator, ...]]:
    """GPT-2 of a size (Radford et al. 2019, "Language Models are Unsupervised Multitask
    Learners", table 2; the released models' vocabulary and positions)."""

    def build(sequence: int = 1024) -> tuple[Operator, ...]:
        return _GPT2[size].build(sequence)

    return build


def gpt3(sequence: int = 2048) -> tuple[Operator, ...]:
    """GPT-3 175B (arXiv:2005.14165, table 2.1), with GPT-2's vocabulary."""
    return Gpt(96, 12_288, positions=2048).build(sequence)


def gpt2_moe(sequence: int = 1024, experts: int = 8) -> tuple[Operator, ...]:
    """GPT-2 small, experts in every other block, one expert per token (arXiv:2101.03961)."""
    return Gpt(12, 768, every=2).build(sequence, experts)


def gpt_moe(sequence: int = 2048, experts: int = 128) -> tuple[Operator, ...]:
    """The 350M+MoE-128 of DeepSpeed-MoE: experts in every other block (arXiv:2201.05596)."""
    return Gpt(24, 1024, positions=2048, every=2).build(sequence, experts)


_LLAMA = {
    "llama2-7b": Llama(32, 4096, 11_008, 32_000),
    "llama2-13b": Llama(40, 5120, 13_824, 32_000),
    "llama2-70b": Llama(80, 8192, 28_672, 32_000, shared=8),
    "llama3-8b": Llama(32, 4096, 14_336, 128_256, shared=4),
}


def llama(size: str) -> Callable[..., tuple[Operator, ...]]:
    """Llama 2 (arXiv:2307.09288) or 3 (arXiv:2407.21783) of a size, as released."""

    def build(sequence: int = 4096) -> tuple[Operator, ...]:
        return _LLAMA[size].build(sequence)

    return build


def _attention(name: str, hidden: int, sequence: int) -> list[Operator]:
    """The normalisation before the block counts with its first layer."""
    qkv = linear(f"{name}.qkv", hidden, 3 * hidden, rows=sequence, role=Role.COLUMN)
    output = linear(f"{name}.attention.output", hidden, hidden, rows=sequence, role=Role.ROW)
    return [
        replace(qkv, parameters=qkv.parameters + 2 * hidden),
        replace(output, macs=output.macs + 2 * sequence**2 * hidden),
    ]


def _feed_forward(name: str, hidden: int, sequence: int) -> list[Operator]:
    up = linear(f"{name}.up", hidden, 4 * hidden, rows=sequence, role=Role.COLUMN)
    down = linear(f"{name}.down", 4 * hidden, hidden, rows=sequence, role=Role.ROW)
    return [replace(up, parameters=up.parameters + 2 * hidden), down]


def _experts(name: str, hidden: int, sequence: int, experts: int) -> list[Operator]:
    """A router with the normalisation, then as many feed-forwards as there are experts."""
    router = linear(f"{name}.router", hidden, experts, rows=sequence, bias=False)
    one = [
        linear(f"{name}.experts.up", hidden, 4 * hidden, rows=sequence, role=Role.EXPERT),
        linear(f"{name}.experts.down", 4 * hidden, hidden, rows=sequence, role=Role.EXPERT),
    ]
    many = [replace(x, parameters=experts * x.parameters, experts=experts) for x in one]
    return [replace(router, parameters=router.parameters + 2 * hidden), *many]


def _plain(
    name: str, inputs: int, outputs: int, sequence: int, role: Role, extra: int = 0
) -> Operator:
    """Without biases; `extra` parameters of the normalisation before it."""
    found = linear(name, inputs, outputs, rows=sequence, bias=False, role=role)
    return replace(found, parameters=found.parameters + extra)


def _head(parameters: int, hidden: int, vocabulary: int, sequence: int) -> Operator:
    macs = sequence * hidden * vocabulary
    sizes = (sequence * hidden, sequence * vocabulary)
    return Operator("head", Kind.MATMUL, parameters, macs, *sizes, Role.COLUMN, rows=sequence)
