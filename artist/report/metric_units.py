"""In which unit the page's words and tables show a metric: that of the charts of its quantity."""

from __future__ import annotations

from artist.report.figure import DAY, HOUR
from artist.report.grouping import Study
from artist.report.quantities import Quantity, Unit
from artist.results.terms.glossary import Term
from artist.results.terms.number_text import plain, short

# By the beginning of the metric's name.
_QUANTITIES = (
    ("makespan_", Quantity.TIME),
    ("jct_", Quantity.JCT),
    ("compute_", Quantity.JCT),
    ("preemption_time_", Quantity.JCT),
    ("queue_delay_", Quantity.WAITING),
    ("comm_", Quantity.COMMUNICATION),
)
_TIMES = (Unit(DAY, "d"), Unit(HOUR, "h"), Unit(60.0, "min"), Unit(1.0, "s"))
_MILLISECONDS = Unit(1e-3, "ms")
_GPU_HOURS = Unit(3600.0, "GPU-hours")


def metric_unit(study: Study, metric: str, written: str) -> Unit:
    """The unit of a metric whose unit in `summary.json` is `written`."""
    for start, quantity in _QUANTITIES:
        if metric.startswith(start) and written == "s":
            return study.units[quantity]
    if metric.startswith("iteration_time_"):
        return _MILLISECONDS
    return _GPU_HOURS if written == "GPU-s" else Unit(1.0, written)


def term_unit(study: Study, term: Term) -> Unit:
    """The unit of a metric of the glossary."""
    return metric_unit(study, term.name, term.unit)


def in_words(study: Study, metric: str, value: float) -> str:
    """A metric with its unit, e.g. `3.5 h`, `81.3 %` or `1,234`.

    A time that is less than a tenth of the page's unit has a smaller one: 1.6 h, not 0.067 d.
    """
    if metric.endswith("_share"):
        return f"{100 * value:.1f} %"
    if not metric.endswith("_s"):
        return plain(value)
    seconds, name = metric_unit(study, metric, "s")
    if 0 < value < 0.1 * seconds:
        seconds, name = next((unit for unit in _TIMES if unit.seconds <= value), _TIMES[-1])
    return f"{short(value / seconds)} {name}"
