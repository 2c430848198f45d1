"""Prints what variants of a comparison cost, and the price of each GPU-hour that they gain."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

from artist.cli.output import or_null, print_table, print_text
from artist.experiments.comparison.costs import Amount, Priced, PriceFile
from artist.results.terms.number_text import listed, percent, short
from artist.units import counted


def print_costs(found: Sequence[Priced], costs: PriceFile, setting: str) -> None:
    """Print a row per variant."""
    unit = f" {costs.currency}".rstrip()
    rows = [
        (
            one.variant,
            short(one.per_hour),
            f"+{short(one.more_per_hour)}" if one.more_per_hour > 0 else short(one.more_per_hour),
            _interval(one.gained),
            _price(one.gained, one.more_per_hour),
            _price(one.saved, one.more_per_hour, "nothing saved"),
        )
        for one in found
    ]
    columns = (
        "price per hour",
        "more per hour",
        "GPUs gained",
        "per GPU-hour gained",
        "per hour of JCT saved",
    )
    print_table(f"costs{f' in{unit}' if unit else ''}", (setting, *columns), rows)
    print_text(
        "GPUs gained: those added, less the extra ones that jobs hold for the same work, or plus "
        f"those that they no longer hold (on average until {found[0].variant} has finished all "
        "jobs). Added GPUs count, and are paid for, whether or not jobs use them."
    )
    for one in [one for one in found if one.extra_gpu_hour][:1]:
        whole = costs.gpu_hour + one.extra_gpu_hour
        print_text(
            f"A price under settings comes on top: with {one.variant} a GPU-hour costs "
            f"{short(costs.gpu_hour)} + {short(one.extra_gpu_hour)} = {short(whole)}{unit}, for "
            f"each of all {counted(one.gpus, 'GPU')}."
        )


def costs_json(found: Sequence[Priced]) -> list[dict[str, Any]]:
    """A record per variant; NaN becomes null."""
    return [
        {
            "variant": one.variant,
            "per_hour": one.per_hour,
            "more_per_hour": one.more_per_hour,
            "gained_gpus": one.gained.mean,
            "gained_gpus_low": or_null(one.gained.low),
            "gained_gpus_high": or_null(one.gained.high),
            "per_gpu_hour_gained": or_null(one.price),
            "undecided": sorted(one.undecided),
            "jct_hours_saved_per_hour": or_null(one.saved.mean),
            "jct_hours_saved_low": or_null(one.saved.low),
            "jct_hours_saved_high": or_null(one.saved.high),
            "per_jct_hour_saved": or_null(one.saved.price(one.more_per_hour)),
            "undecided_jct": sorted(one.undecided_jct),
        }
        for one in found
    ]


def cheapest(found: Sequence[Priced], costs: PriceFile) -> str:
    """The cheapest way to gain GPU time, and the cheapest way to shorten completion times."""
    unit = f" {costs.currency}".rstrip()
    rent = f"a GPU-hour costs {short(costs.gpu_hour)}{unit}"
    jct = _cheapest_jct(found, unit)
    gaining = [one for one in found[1:] if one.gained.sure]
    free, paid = _costs_no_more(gaining, "gain{s} GPU time"), _paid(gaining)
    if not gaining:
        return f"No variant is sure to gain GPUs (added, less the extra ones held); {rent}.{jct}"
    if not paid:
        return f"{free}; {rent}.{jct}"
    best, *others = sorted(paid, key=lambda one: one.price)
    price = _price(best.gained, best.more_per_hour)
    told = f"{free}. Cheapest of the others" if free else "Cheapest GPU time"
    told += f": {best.variant}, {price}{unit} per GPU-hour gained"
    first = found[0]
    if best.gpus > first.gpus:
        told += (
            f", used or not (jobs hold {percent(best.held_share)} % of the time of its GPUs, "
            f"{percent(first.held_share)} % with {first.variant})"
        )
    if others:
        told += "; " + ", ".join(
            f"{one.variant} {_price(one.gained, one.more_per_hour)}"
            f"{' (undecided)' if one.variant in best.undecided else ''}"
            for one in others
        )
    return f"{told}; {rent}.{jct}"


def _cheapest_jct(found: Sequence[Priced], unit: str) -> str:
    """The ways to shorten completion times that cost no more, and the cheapest of the others."""
    saving = [one for one in found[1:] if one.saved.sure]
    free = _costs_no_more(saving, "finish{es} jobs sooner")
    told = f" {free}." if free else ""
    if paid := _paid(saving):
        best = min(paid, key=lambda one: one.saved.price(one.more_per_hour))
        price = _price(best.saved, best.more_per_hour)
        told += f" Each hour by which a job finishes sooner costs {price}{unit} with {best.variant}"
        if undecided := [one.variant for one in paid if one.variant in best.undecided_jct]:
            told += f", undecided against {listed(undecided)}"
        told += "."
    return told


def _paid(found: Sequence[Priced]) -> list[Priced]:
    """The variants that cost more than the baseline. What the others gain is free."""
    return [one for one in found if one.more_per_hour > 0]


def _costs_no_more(found: Sequence[Priced], gain: str) -> str:
    """Which variants gain without costing more; empty if none does."""
    names = [one.variant for one in found if one.more_per_hour <= 0]
    if not names:
        return ""
    s, es = ("s", "es") if len(names) == 1 else ("", "")
    return f"{listed(names)} cost{s} no more and {gain.format(s=s, es=es)}"


def _interval(amount: Amount) -> str:
    mean, low, high = amount
    return f"{mean:.3g}" + ("" if isnan(low) or low == high else f" [{low:.3g} .. {high:.3g}]")


def _price(amount: Amount, whole: float, none: str = "nothing gained") -> str:
    """What one of an amount costs, with its interval."""
    price = amount.price(whole)
    if whole <= 0 < amount.mean:
        return "costs no more" if amount.sure else f"costs no more, perhaps {none}"
    if isnan(price):
        return none if whole else ""
    if not amount.sure:
        return f"{short(price)}, not sure"
    low, high = amount.prices(whole)
    return short(price) if low == high else f"{short(price)} [{short(low)} .. {short(high)}]"
