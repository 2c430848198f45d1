"""The table of models of contention: one row each, read by `artist list contention`.

A row names a function with three arguments: the text after the colon of `--contention NAME:TEXT`,
the options that a user gave (`--set contention.KEY=VALUE`), and the run's network. It returns a
`RateFunction`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from artist.contract import RateFunction
from artist.network.rates.network_of_run import NetworkOfRun
from artist.registry import Entry, Registry

CONTENTION = Registry(
    "model of contention",
    "artist list contention",
    [
        Entry(
            "none",
            "artist.network.rates.network_of_run:lone_rates",
            "jobs do not slow each other down: a level's communication costs the same however "
            "many use it",
            "Mahajan et al., NSDI 2020 (Themis); Sharma et al., 2025 (Dally)",
        ),
        Entry(
            "mean",
            "artist.network.rates.contended_rates:mean_rates",
            "max-min shares at random phases: for whole runs",
            "Baskett et al., JACM 1975",
        ),
        Entry(
            "phase",
            "artist.network.rates.contended_rates:phase_rates",
            "event simulation from present phases, with the variation of packets",
            "Rajasekaran et al., NSDI 2024 (CASSINI)",
        ),
        Entry(
            "fluid",
            "artist.network.rates.contended_rates:fluid_rates",
            "event simulation from present phases, with exact max-min shares",
            "Bertsekas and Gallager, Data Networks, 1992",
        ),
        Entry(
            "table",
            "artist.network.rates.pair_table:table_rates",
            "table:FILE looks slowdowns of pairs up: model, beside, slowdown",
            "Ryu and Eo, contention-aware scheduling with reinforcement learning, eq. 1",
        ),
    ],
)


def open_contention(name: str, options: Mapping[str, Any], network: NetworkOfRun) -> RateFunction:
    """The rate function of a model of contention, `NAME` or `table:FILE`.

    Raises:
        ConfigError: unknown name or option, or a network without what the model needs.
        TraceError: the file is not a table of slowdowns.
    """
    kind, _, argument = name.partition(":")
    rates: RateFunction = CONTENTION[kind].load()(argument, options, network)
    return rates
