"""The sentences, table, page and JSON of a what-if."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from artist.cli.output import or_null
from artist.experiments.recorded.outcomes import Outcome
from artist.experiments.recorded.whatif import RecordedWhatIf
from artist.results.statistics.block_bootstrap import BlockDifference
from artist.results.statistics.compare_values import LEAST_REPLICATES, Verdict
from artist.results.terms.number_text import (
    DisplayUnit,
    column_unit,
    in_unit,
    listed,
    percent,
    short,
    time_text,
)
from artist.units import counted

_MOST_LOSERS = 4

Table = tuple[str, Sequence[str], Sequence[Sequence[object]]]


def answer(found: RecordedWhatIf) -> list[str]:
    """The answer in sentences.

    They tell the effect of the best change, who loses by it, the effect of other links, which jobs
    count if some are cancelled, how far to trust this, and the effect of chance.
    """
    every = found.groups()[0]
    best = min(found.outcomes, key=lambda one: found.compared(one, every).other)
    among = f" Of {len(found.outcomes)} changes, that is the shortest." * (len(found.outcomes) > 1)
    without = ""
    if best.results[0].scenario.policy != "slurm":
        without = " (without Slurm's cycles, partitions, limits and priorities)"
    first = f"{best.change}{without}: {_change_of_wait(found, best)}.{among}"
    trust = f"Trust: {found.replay.sentence()}."
    links = [text for one in found.outcomes for text in _on_links(one)]
    return [first, _who_pays(found, best), *links, *_cancelled(found), trust, _chance(found)]


def _change_of_wait(found: RecordedWhatIf, outcome: Outcome) -> str:
    compared = found.compared(outcome, found.groups()[0])
    if compared.verdict is Verdict.IDENTICAL:
        return f"the same waits; their mean is {time_text(compared.baseline)}"
    waits = f"mean wait {time_text(compared.other)} instead of {time_text(compared.baseline)}"
    return f"{waits}, {_relative(compared)}; {_certainty(found, outcome, compared)}"


def _chance(found: RecordedWhatIf) -> str:
    """How far the mean wait moves if run times change by a millisecond: the effect of chance."""
    moved = "Chance: run times up to a millisecond shorter or longer, job by job, moved"
    tries = counted(len(found.nudged), "simulation")
    every = found.groups()[0]
    moved_s, present_s = found.chance_s(every), found.compared(found.present, every).baseline
    if not moved_s:
        return f"{moved} the mean wait in none of {tries}."
    share = f" ({percent(moved_s / present_s)} %)" if present_s else ""
    return (
        f"{moved} the mean wait by up to {time_text(moved_s)}{share} in {tries}; a change of "
        "that size means nothing."
    )


def _relative(compared: BlockDifference) -> str:
    """`75 % less [-80 .. -60 %]`; an amount of time where the baseline is 0."""
    if not compared.baseline:
        return f"{time_text(abs(compared.difference))} {_more(compared)}"
    share = f"{percent(abs(compared.difference) / compared.baseline)} % {_more(compared)}"
    return f"{share}{_interval(compared)}"


def _more(compared: BlockDifference) -> str:
    return "more" if compared.difference > 0 else "less"


def _interval(compared: BlockDifference) -> str:
    """The interval of the relative change; empty if there is none, or if all days change alike."""
    low, high = compared.ratio_low, compared.ratio_high
    if not compared.baseline or not low < high:
        return ""
    return f" [{_signed(low - 1)} .. {_signed(high - 1)} %]"


def _signed(change: float) -> str:
    """A relative change in percent with its sign."""
    return f"{'-' if change < 0 else '+'}{percent(abs(change))}"


def _certainty(found: RecordedWhatIf, outcome: Outcome, compared: BlockDifference) -> str:
    """How sure a difference is, over days and over phases of Slurm's cycles."""
    if abs(compared.difference) <= found.chance_s(found.groups()[0]):
        return "no more than chance"
    same = found.same_sign(outcome)
    phases = f"so in {same} of {counted(found.replay.phases, 'phase')} of Slurm's cycles"
    days = counted(compared.blocks, found.block_name)
    if compared.verdict is Verdict.TOO_FEW:
        return f"{phases}, but over {days} only; {LEAST_REPLICATES} or more say how sure that is"
    if compared.verdict is Verdict.UNDECIDED:
        return f"{days} leave undecided whether that is so on others; {phases}"
    return f"surely {compared.verdict} over {days}, {phases}"


_NO_LOSER = "No account or user waits longer, by more than chance, in every phase of Slurm's cycles"


def _who_pays(found: RecordedWhatIf, outcome: Outcome) -> str:
    """Who waits longer after a change, and the GPU-hours that are gained or lost."""
    losses = found.losses(outcome)
    worse = _NO_LOSER + ("" if found.finish.all() else " (of jobs that finish)")
    if losses:
        more_s = {x.who: x.changed_s - x.present_s for x in losses[:_MOST_LOSERS]}
        unit = column_unit(more_s.values())
        named = listed([f"{who} (+{in_unit(by_s, unit)})" for who, by_s in more_s.items()])
        rest = len(losses) - _MOST_LOSERS
        worse = f"Worse off: {named}" + (f", and {rest} more" if rest > 0 else "")
    present, changed = found.gpu_hours(found.present), found.gpu_hours(outcome)
    gained = changed[0] - present[0]
    hours = f"{short(abs(gained))} GPU-hours {'more' if gained > 0 else 'less'}"
    done = f"{hours if gained else 'as many GPU-hours'} are done when the last job arrives"
    lost = changed[1] - present[1]
    also = f", {short(abs(lost))} {'more' if lost > 0 else 'less'} are lost" if lost else ""
    return f"{worse}; {done}{also}."


def _on_links(outcome: Outcome) -> list[str]:
    """How other links change run times, and for how much of the GPU time that is known."""
    links = outcome.links
    if links is None:
        return []
    rest = "; all others keep their run times" if links.known < 1 else ""
    takes = (
        f"which take {percent(abs(links.change))} % {'more' if links.change > 0 else 'less'}"
        if links.change
        else "which stay as they are"
    )
    count = len(links.stopped)
    limits = f" {counted(count, 'job')} would run into time limits and be lost." if count else ""
    return [
        f"{outcome.change}: models are known of jobs with {percent(links.known)} % of the "
        f"GPU-hours, {takes}{rest}.{limits}"
    ]


def _cancelled(found: RecordedWhatIf) -> list[str]:
    """How many jobs are cancelled per phase, and how many waits count; nothing if none are."""
    if found.finish.all():
        return []
    outcomes = {"at present": found.present, **{f"under {x.change}": x for x in found.outcomes}}
    counts = [
        f"{short(float(x.cancelled.sum(axis=1).mean()))} {how}" for how, x in outcomes.items()
    ]
    left = int(found.finish.sum())
    jobs = "1 job that finishes" if left == 1 else f"{left:,} jobs that finish"
    return [f"Cancelled per phase: {listed(counts)}; waits are of the {jobs} in all cases."]


def table(found: RecordedWhatIf) -> Table:
    """At most twelve rows: mean waits by size, account and hour, and GPU-hours done."""
    every = [
        (group, [found.compared(one, group) for one in found.outcomes]) for group in found.groups()
    ]
    means_s = (mean_s for _, row in every for x in row for mean_s in (x.baseline, x.other))
    unit = column_unit(means_s)
    rows: list[list[object]] = []
    for group, row in every:
        present, cells = in_unit(row[0].baseline, unit), [_cell(x, unit) for x in row]
        rows.append([group.name, int(group.jobs.sum()), present, *cells])
    done = [found.gpu_hours(x)[0] for x in (found.present, *found.outcomes)]
    signed = [f"{short(x)} ({x - done[0]:+.3g})" for x in done[1:]]
    rows.append(["GPU-hours when the last job arrives", "", short(done[0]), *signed])
    blocks = len({*found.blocks.tolist()})
    days = counted(blocks, found.block_name)
    title = f"mean waits over {days} in {counted(found.replay.phases, 'phase')}"
    if blocks >= LEAST_REPLICATES:
        title += (
            f"; in brackets 95 % of the changes when {found.block_name}s are drawn with "
            f"replacement (few {found.block_name}s that differ much hold about 90 %)"
        )
    return title, ("", "jobs", "present", *(x.change for x in found.outcomes)), rows


def _cell(compared: BlockDifference, unit: DisplayUnit) -> str:
    if compared.verdict is Verdict.IDENTICAL:
        return "the same"
    mean = in_unit(compared.other, unit)
    if not compared.baseline:
        return mean
    change = f"{_signed(compared.difference / compared.baseline)} %{_interval(compared)}"
    return f"{mean} ({change})"


def page(found: RecordedWhatIf, folder: str) -> str:
    """One page in Markdown."""
    title, columns, rows = table(found)
    lines = [f"# What if: {folder}", "", *(f"{sentence}\n" for sentence in answer(found))]
    lines += [
        "## Mean waits",
        "",
        f"Over {title.partition(' over ')[2]}.",
        "",
        _line(columns),
        _line(["---"] * len(columns)),
    ]
    lines += [_line(row) for row in rows]
    for outcome in found.outcomes:
        lines += [
            "",
            f"## {outcome.change}",
            "",
            _sentence(_change_of_wait(found, outcome)),
        ]
        for text in _on_links(outcome):
            lines += ["", text]
        if losses := found.losses(outcome):
            unit = column_unit(mean_s for x in losses for mean_s in (x.present_s, x.changed_s))
            lines += ["", _line(("worse off", "jobs", "present", "changed")), _line(["---"] * 4)]
            lines += [
                _line((x.who, x.jobs, in_unit(x.present_s, unit), in_unit(x.changed_s, unit)))
                for x in losses
            ]
        else:
            lines += ["", f"{_NO_LOSER}."]
    lines += ["", "## What this rests on", "", f"- {found.replay.sentence()}"]
    lines += [f"- {sentence}" for sentence in found.assumed]
    lines += [f"- not modelled: {what}" for what in found.replay.not_modelled]
    return "\n".join(lines) + "\n"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |"


def as_json(found: RecordedWhatIf) -> dict[str, Any]:
    """Everything, in seconds and GPU-hours; null where few days give no interval."""
    changes = []
    for outcome in found.outcomes:
        done, lost = found.gpu_hours(outcome)
        changes.append(
            {
                "change": outcome.change,
                "waits": [
                    {"jobs": group.name, "count": int(group.jobs.sum())}
                    | _facts(found.compared(outcome, group))
                    for group in found.groups()
                ],
                "jobs_cancelled": float(outcome.cancelled.sum(axis=1).mean()),
                "phases_that_agree": found.same_sign(outcome),
                "gpu_hours_done": done,
                "gpu_hours_lost": lost,
                "links": None if outcome.links is None else {
                    "share_of_gpu_hours_known": outcome.links.known,
                    "change_of_these": outcome.links.change,
                },
                "worse_off": [
                    {"who": x.who, "jobs": x.jobs, "present_s": x.present_s,
                     "changed_s": x.changed_s}
                    for x in found.losses(outcome)
                ],
            }
        )  # fmt: skip
    done, lost = found.gpu_hours(found.present)
    return {
        "answer": answer(found),
        "present": {"gpu_hours_done": done, "gpu_hours_lost": lost},
        "moved_by_chance_s": found.chance_s(found.groups()[0]),
        "changes": changes,
        "replay": found.replay.facts(),
        "assumed": list(found.assumed),
        "not_modelled": list(found.replay.not_modelled),
    }


def _facts(compared: BlockDifference) -> dict[str, Any]:
    """A comparison's numbers for JSON."""
    return {
        "present_s": compared.baseline,
        "changed_s": compared.other,
        "difference_s": compared.difference,
        "low_s": or_null(compared.low),
        "high_s": or_null(compared.high),
        "ratio_low": or_null(compared.ratio_low),
        "ratio_high": or_null(compared.ratio_high),
        "verdict": str(compared.verdict),
        "blocks": compared.blocks,
    }
