"""Models with sparse inputs, layer by layer: DLRM (categories), GraphSAGE (a graph) and Recoder
(the items that users chose).
"""

from __future__ import annotations

from itertools import pairwise

from artist.workload.architectures.operators import Operator, linear, lookup

# Distinct values of the 26 categorical features of the Criteo Kaggle data set
# (arXiv:1906.00091, its released preprocessing).
_CRITEO_ROWS = (
    1460, 583, 10_131_227, 2_202_608, 305, 24, 12_517, 633, 3, 93_145, 5683, 8_351_593, 3194, 27,
    14_992, 5_461_306, 10, 5652, 2173, 4, 7_046_547, 18, 15, 286_181, 105, 142_572,
)  # fmt: skip


def dlrm() -> tuple[Operator, ...]:
    """DLRM for Criteo Kaggle with vectors of 16 (arXiv:1906.00091 and its benchmark script).

    Every GPU holds all tables, and their gradients are sent dense, so that the only collective
    is an all-reduce. A sample is one click.
    """
    width = 16
    bottom = (13, 512, 256, 64, width)
    # The inputs of the top: the dot products of all pairs among the 26 feature vectors and the
    # output of the bottom, and that output itself.
    vectors = len(_CRITEO_ROWS) + 1
    top = (vectors * (vectors - 1) // 2 + width, 512, 256, 1)
    return (
        *(lookup(f"table{i}", rows, width) for i, rows in enumerate(_CRITEO_ROWS)),
        *_perceptron("bottom", bottom),
        *_perceptron("top", top),
    )


def graphsage() -> tuple[Operator, ...]:
    """GraphSAGE with the mean of sampled neighbours, for Reddit (arXiv:1706.02216).

    Two layers of 256; 602 features and 41 classes; 25 and 10 sampled neighbours. A sample is one
    labelled node. A node and the mean of its neighbours have separate weights. The host gathers
    the features, as usual, so that this takes no time here.
    """
    features, hidden, classes, neighbours = 602, 256, 41, 25
    # The first layer is computed for the node and for its sampled neighbours.
    nodes = 1 + neighbours
    return (
        linear("layer1.neighbours", features, hidden, rows=nodes),
        linear("layer1.self", features, hidden, rows=nodes, bias=False),
        linear("layer2.neighbours", hidden, classes),
        linear("layer2.self", hidden, classes, bias=False),
    )


def recoder() -> tuple[Operator, ...]:
    """Recoder's autoencoder for MovieLens-20M, the model of Gavel's recommendation jobs.

    One layer of 200 between inputs and outputs, with dense gradients (Gavel's script). 20,108 items
    (arXiv:1802.05814, table 1). A sample is one user. With the hundreds of users of a batch nearly
    every item occurs, so all items are computed.
    """
    items, hidden = 20_108, 200
    return (linear("encoder", items, hidden), linear("decoder", hidden, items))


def _perceptron(name: str, widths: tuple[int, ...]) -> list[Operator]:
    """Fully connected layers of these widths, from input to output."""
    return [
        linear(f"{name}{i}", inputs, outputs)
        for i, (inputs, outputs) in enumerate(pairwise(widths))
    ]
