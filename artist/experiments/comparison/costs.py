"""What the variants of a comparison cost, and the price of each GPU-hour that they gain.

A **price file** says what a GPU costs for an hour, and what each setting costs on top:

    currency: EUR
    gpu_hour: 2.00
    settings:
      fabric.network.bandwidth=x2: {gpu_hour: 0.15}
      restart_s=5: {once: 200000, years: 4}

More racks or machines need no price of their own: each GPU costs `gpu_hour`, used or not. A
variant **gains GPU time** in two ways: its cluster has more GPUs, or its jobs hold GPUs for less
time, since they communicate, restart or lose less. In the time T in which the first variant
finishes all jobs, with G GPUs and H GPU-hours held,

    gained GPUs = G - G_first + (H_first - H) / T
    price of a GPU-hour gained = (price per hour - price per hour of the first) / gained GPUs

So both ways have the same scale as `gpu_hour`. Gained GPU time counts even if no job uses it.
Whether jobs need it shows in the price of an hour of completion time. With n jobs:

    job-hours saved per hour = n (mean JCT of the first - mean JCT) / T
    price of an hour of JCT saved = (price per hour - price per hour of the first) / that

If two variants a and b cost more, a is surely cheaper if the interval of

    gained by a x more per hour of b - gained by b x more per hour of a

lies above 0, on the same replicates. Otherwise the two are undecided.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
from pydantic import Field, model_validator

from artist.config import SIZES
from artist.errors import ConfigError
from artist.experiments.comparison.comparison_result import Comparison
from artist.io.documents import Document, NonNegative, Positive, load_yaml
from artist.results.statistics.compare_values import clusters_of
from artist.results.statistics.paired_input import do_not_vary
from artist.results.statistics.replicate_means import replicate_mean

_HOURS_PER_YEAR = 8766.0

_FREE = ("policy", *SIZES, "tree", "cluster", "arrivals", "jobs", "trace")
"""Settings that need no price: software, the work, and sizes, which the price of a GPU covers."""


class Price(Document):
    """The cost of a setting; parts that are not given are 0."""

    gpu_hour: NonNegative = Field(
        default=0.0,
        description="for each GPU of the cluster, an hour, on top of the file's gpu_hour",
    )
    hour: NonNegative = Field(default=0.0, description="for the whole cluster, an hour")
    once: NonNegative = Field(default=0.0, description="once, for the whole cluster")
    years: Positive | None = Field(default=None, description="how long the purchase is used")

    @model_validator(mode="after")
    def _lifetime(self) -> Price:
        if self.once and self.years is None:
            raise ValueError("once needs years: how long will it be used?")
        return self

    def per_hour(self, gpus: int) -> float:
        """The cost of an hour of a cluster with this number of GPUs."""
        lasting = self.once / (self.years * _HOURS_PER_YEAR) if self.years else 0.0
        return self.gpu_hour * gpus + self.hour + lasting


class PriceFile(Document):
    """A price file."""

    currency: str = Field(default="", max_length=10, description="for tables, such as EUR")
    gpu_hour: NonNegative = Field(description="a GPU with its share of the machine, for an hour")
    settings: dict[str, Price] = Field(
        default_factory=dict,
        description="SETTING=VALUE, as in --vary -> what that value costs on top",
    )


class Amount(NamedTuple):
    """A mean over replicates, with Student's interval (NaN with fewer than two replicates)."""

    mean: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Whether the amount is surely above 0."""
        return self.low > 0

    def price(self, whole: float) -> float:
        """The price of one unit if the amount costs `whole`; NaN if either is not positive."""
        return whole / self.mean if self.mean > 0 and whole > 0 else math.nan

    def prices(self, whole: float) -> tuple[float, float]:
        """The interval of the price; only for an amount that is `sure`."""
        ends = whole / self.high, whole / self.low
        return min(ends), max(ends)


@dataclass(frozen=True, slots=True)
class Priced:
    """The cost of a variant, compared with the first one."""

    variant: str
    per_hour: float
    more_per_hour: float
    gained: Amount
    """GPUs."""
    saved: Amount
    """Hours of completion time saved per hour, summed over jobs; NaN if the jobs differ."""
    gpus: int
    held_share: float
    """The share of its GPU time until the makespan that jobs hold, on average."""
    extra_gpu_hour: float
    """What its settings add to the price of a GPU-hour."""
    undecided: frozenset[str] = frozenset()
    """The variants whose price of a GPU-hour gained is neither surely higher nor lower."""
    undecided_jct: frozenset[str] = frozenset()
    """The same for the price of an hour of completion time saved."""

    @property
    def price(self) -> float:
        """The price of a GPU-hour gained; NaN if none is gained, or if it costs no more."""
        return self.gained.price(self.more_per_hour)

    @property
    def prices(self) -> tuple[float, float]:
        """The interval of that price; only where the gain is sure."""
        return self.gained.prices(self.more_per_hour)


def load_costs(path: Path) -> PriceFile:
    """Read a price file.

    Raises:
        ConfigError: unreadable, unknown key or bad value; names file and line.
    """
    return load_yaml(path, PriceFile)


def check_prices(points: Sequence[Mapping[str, str]], costs: PriceFile) -> None:
    """Refuse price files without the price of a variant's setting. The first variant needs none.

    Raises:
        ConfigError: names the first setting without a price.
    """
    for point in points[1:]:
        for key, value in point.items():
            setting = f"{key}={value}"
            if setting not in costs.settings and key.partition(".")[0] not in _FREE:
                raise ConfigError(
                    f"--costs: no price of {setting}; add it under settings, as {{}} if it costs "
                    "nothing"
                )


def with_prices(comparison: Comparison, costs: PriceFile) -> Comparison:
    """The same comparison with what each variant costs per hour."""
    prices = {variant: _per_hour(comparison, variant, costs) for variant in comparison.variants}
    return replace(comparison, per_hour=prices)


def priced(comparison: Comparison, costs: PriceFile) -> list[Priced]:
    """What each variant costs and gains; the first one comes first and gains nothing."""
    first = comparison.variants[0]
    prices = {variant: _per_hour(comparison, variant, costs) for variant in comparison.variants}
    gains = {variant: _gained(comparison, variant) for variant in comparison.variants}
    savings = {variant: _saved(comparison, variant) for variant in comparison.variants}
    more = {variant: price - prices[first] for variant, price in prices.items()}
    found = []
    for variant in comparison.variants:
        added = sum(one.gpu_hour for one in _on_top(comparison, variant, costs))
        found.append(
            Priced(
                variant,
                prices[variant],
                more[variant],
                _amount(gains[variant], comparison),
                _amount(savings[variant], comparison),
                comparison.gpus[variant],
                _held_share(comparison, variant),
                added,
                _undecided(variant, gains, more, comparison),
                _undecided(variant, savings, more, comparison),
            )
        )
    return found


def _undecided(
    variant: str,
    amounts: Mapping[str, Sequence[float]],
    more: Mapping[str, float],
    comparison: Comparison,
) -> frozenset[str]:
    """The other variants that cost more and whose price is not surely different from its own."""

    def differs(other: str) -> bool:
        own = np.array(amounts[variant]) * more[other]
        apart = _amount((own - np.array(amounts[other]) * more[variant]).tolist(), comparison)
        rounding = 1e-9 * float(np.abs(own).mean())
        return apart.low > rounding or apart.high < -rounding

    if more[variant] <= 0:
        return frozenset()
    others = (other for other, price in more.items() if other != variant and price > 0)
    return frozenset(other for other in others if not differs(other))


def _gained(comparison: Comparison, variant: str) -> list[float]:
    """GPUs gained, on each replicate."""
    first = comparison.variants[0]
    return [
        comparison.gpus[variant] - comparison.gpus[first] + (before - now) / hours
        for before, now, hours in zip(
            comparison.held_gpu_h[first],
            comparison.held_gpu_h[variant],
            comparison.makespan_h[first],
            strict=True,
        )
    ]


def _saved(comparison: Comparison, variant: str) -> list[float]:
    """Job-hours saved per hour on each replicate; NaN if the variant has other jobs."""
    first = comparison.variants[0]
    jobs = comparison.jobs[first]
    other_trace = comparison.traces[variant] != comparison.traces[first]
    if comparison.cancelled or other_trace or comparison.jobs[variant] != jobs:
        return [math.nan] * len(comparison.replicates)
    before, now = (
        np.sum([*comparison.parts[one].values()], axis=0) / 3600 for one in (first, variant)
    )
    rates: list[float] = (jobs * (before - now) / np.array(comparison.makespan_h[first])).tolist()
    return rates


def _amount(values: Sequence[float], comparison: Comparison) -> Amount:
    clusters = clusters_of(comparison.replicates)
    mean, low, high = replicate_mean(values, clusters, comparison.level, geometric=False)
    if len(values) > 1 and do_not_vary(np.array(values)):
        low = high = mean
    return Amount(mean, low, high)


def _held_share(comparison: Comparison, variant: str) -> float:
    pairs = zip(comparison.held_gpu_h[variant], comparison.makespan_h[variant], strict=True)
    return fmean(held / hours for held, hours in pairs) / comparison.gpus[variant]


def _on_top(comparison: Comparison, variant: str, costs: PriceFile) -> list[Price]:
    """What the settings of a variant cost on top of its GPUs."""
    told = [f"{key}={value}" for key, value in comparison.points[variant].items()]
    return [costs.settings[one] for one in told if one in costs.settings]


def _per_hour(comparison: Comparison, variant: str, costs: PriceFile) -> float:
    gpus = comparison.gpus[variant]
    extra = [one.per_hour(gpus) for one in _on_top(comparison, variant, costs)]
    return costs.gpu_hour * gpus + sum(extra)
