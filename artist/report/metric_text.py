"""Metrics and their differences with intervals, as tables and sentences write them."""

from __future__ import annotations

from math import isnan

from artist.results.statistics.compare_values import TOO_FEW, ComparedValues
from artist.results.statistics.holm import undecided_together
from artist.results.terms.glossary import find, unit_after
from artist.results.terms.number_text import HOUR, DisplayUnit, gpu_hours_text, short, time_text

JOINTLY = " jointly"
_SECONDS = DisplayUnit(1.0, "s")


def value_text(metric: str, value: float, unit: DisplayUnit | None = None) -> str:
    """A metric with a suitable unit: `26.9 h`, `14.0 %`. `unit` is for times."""
    term = find(metric)
    if metric.endswith("_share"):
        return f"{100 * value:.1f} %"
    if term is not None and term.unit == "s":
        return time_text(value, unit)
    if term is not None and term.unit == "GPU-s":
        return gpu_hours_text(value)
    return f"{short(value)}{unit_after(metric)}"


def interval_text(metric: str, compared: ComparedValues, time_unit: DisplayUnit = _SECONDS) -> str:
    """`-6.4 % [-9.2 .. -3.6]`, or a difference if there is no ratio; times are in `time_unit`.

    A comparison that is undecided only because it is judged together with others has its joint
    interval. With too few replicates for a verdict there is no interval.
    """
    if compared.verdict == "identical":
        return ""
    jointly = undecided_together(compared) and not isnan(compared.joint_low)
    ends = (compared.low, compared.high)
    if jointly:
        ends = (compared.joint_low, compared.joint_high)
    if isnan(compared.ratio):
        units = {" s": (time_unit.seconds, f" {time_unit.name}"), " GPU-s": (HOUR, " GPU-h")}
        size, unit = units.get(unit_after(metric), (1.0, unit_after(metric)))
        middle, *ends_text = (_signed(value / size) for value in (compared.difference, *ends))
    else:
        unit = " %"
        middle, *ends_text = (_change(value) for value in (compared.ratio, *ends))
    if isnan(compared.low) or compared.verdict == TOO_FEW:
        return f"{middle}{unit}"
    return f"{middle}{unit} [{' .. '.join(ends_text)}{JOINTLY if jointly else ''}]"


def _change(ratio: float) -> str:
    """A ratio as a change in percent with its sign."""
    value = 100 * (ratio - 1)
    text = f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.1f}"
    return "0.0" if text in ("-0.0", "+0.0") else text


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{short(abs(value))}"
