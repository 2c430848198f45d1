"""`artist trace`: checks, describes, converts and generates traces."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli import options
from artist.cli.commands.trace_synth import Overwrite, Seed, synth
from artist.cli.output import Format, note, print_facts, print_json, print_table
from artist.errors import TraceError, one_line
from artist.trace.native.choices import Fractional, Rules

if TYPE_CHECKING:
    from artist.trace.native.trace import Trace
    from artist.trace.proposal import Proposal

app = typer.Typer(
    name="trace", help="Check, describe, convert and generate traces.", no_args_is_help=True
)

Source = Annotated[str, typer.Argument(metavar="NAME|FILE", help="A built-in trace or a file.")]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="FORMAT",
        help="Format of the file (default: recognized from its content).",
    ),
]
Parts = Annotated[Fractional, typer.Option(help="What to do with jobs that use part of a GPU.")]
KeepNames = Annotated[
    bool, typer.Option("--keep-names", help="Keep the user names of a Slurm log.")
]
TimeZone = Annotated[
    str | None,
    typer.Option(metavar="AREA/CITY", help="Time zone of a Slurm log (default: none)."),
]
JobTable = Annotated[
    Path | None, typer.Option(help="PAI's pai_job_table.csv: users and submission times.")
]


@app.command()
def validate(
    context: typer.Context,
    source: Source,
    from_: From = None,
    seed: Seed = 0,
    columns: options.Columns = None,
    units: options.Units = None,
    models: options.Models = None,
    model_rule: options.ModelRule = None,
    fractional: Parts = Fractional.ERROR,
    job_table: JobTable = None,
    format_: options.FormatOption = Format.TABLE,
) -> None:
    """Read a trace; the first problem is an error with file and line."""
    from artist.trace.stats import validate

    trace = _open(context.params, Rules(seed, None, fractional, job_table))
    _, refused = _as_in_runs(trace)
    _print_facts("valid only for --backend none" if refused else "valid", validate(trace), format_)
    if refused:
        note(refused)


@app.command()
def stats(
    context: typer.Context,
    source: Source,
    from_: From = None,
    seed: Seed = 0,
    columns: options.Columns = None,
    units: options.Units = None,
    models: options.Models = None,
    model_rule: options.ModelRule = None,
    fractional: Parts = Fractional.ERROR,
    job_table: JobTable = None,
    format_: options.FormatOption = Format.TABLE,
) -> None:
    """Describe a trace: counts, GPU-hours, ideal run times, what was filled in or dropped."""
    from artist.trace.stats import stats

    trace = _open(context.params, Rules(seed, None, fractional, job_table))
    in_runs, refused = _as_in_runs(trace)
    _print_facts(source, {**stats(trace), "in_runs": in_runs}, format_)
    if refused:
        note(refused)


@app.command()
def convert(
    context: typer.Context,
    source: Source,
    out: Annotated[Path, typer.Option(help="File to write: .csv, .parquet or .swf.")],
    from_: From = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="native, simple or swf (default: by the file's name)."),
    ] = None,
    seed: Seed = 0,
    columns: options.Columns = None,
    units: options.Units = None,
    models: options.Models = None,
    model_rule: options.ModelRule = None,
    fractional: Parts = Fractional.ERROR,
    job_table: JobTable = None,
    keep_names: KeepNames = False,
    time_zone: TimeZone = None,
    overwrite: Overwrite = False,
    format_: options.FormatOption = Format.TABLE,
) -> None:
    """Write a trace in another format; reports what was filled in, dropped and lost."""
    from artist.io.writing import check_new_file
    from artist.trace.native.writer import output_format, write_trace

    chosen = output_format(out, to)
    check_new_file(out, "--out", overwrite=overwrite)
    rules = Rules(seed, None, fractional, job_table, keep_names=keep_names, time_zone=time_zone)
    trace = _open(context.params, rules)
    lost = write_trace(trace, out, chosen)
    facts = {
        "from": trace.format,
        "to": chosen,
        "jobs": len(trace.jobs),
        "mapped": list(trace.mapped),
        "filled": list(trace.filled),
        "dropped": dict(trace.dropped),
        "lost": list(lost),
        "warnings": list(trace.warnings),
    }
    _print_facts(str(out), facts, format_)


@app.command()
def columns(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A trace with its own columns.")],
    from_: From = None,
    columns: options.Columns = None,
    units: options.Units = None,
    models: options.Models = None,
    model_rule: options.ModelRule = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Write the proposal; flags take precedence.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing mapping file.")
    ] = False,
    format_: options.FormatOption = Format.TABLE,
) -> None:
    """Propose what FILE's columns, units and models mean; write it to FILE.columns.yaml.

    Without flags, print a proposal. With --accept, write it; flags take precedence. With flags
    alone, write only those. artist reads FILE.columns.yaml with FILE.
    """
    from artist.trace.native.mapping import TraceMapping, mapping_for
    from artist.trace.proposal import accepted, propose
    from artist.trace.read import bad_cells, write_mapping

    given = options.given_of(context.params)
    if not accept and (given or from_):
        with _all_bad_cells(source, given):
            path = write_mapping(source, from_, given, overwrite=overwrite)
    else:
        mapping, _ = mapping_for(source, **given)
        proposal = propose(source, mapping, from_ or mapping.format)
        whole, format_id, comments, remarks = accepted(proposal, mapping)
        _print_proposal(source, proposal, format_, accept=accept)
        if not accept and not proposal.missing:
            for sentence in bad_cells(source, TraceMapping(**whole, format=format_id)):
                note(sentence)
        if accept and proposal.missing:
            raise TraceError(f"{source}: {_missing(proposal)}")
        if accept and proposal.nameless():
            raise TraceError(
                f"{source}: {', '.join(proposal.nameless())} is only guessed, so nothing is "
                f"written; if it is right, add --columns {_pairs(proposal)}"
            )
        if not accept or not (proposal.entries or given):
            return
        if not whole and format_id is None:
            note("all of it is guessed, so nothing is written; name the models with --models")
            return
        with _all_bad_cells(source, whole):
            path = write_mapping(
                source,
                from_ or format_id,
                whole,
                overwrite=overwrite,
                comments=comments,
                remarks=remarks,
            )
    trace = _open({"source": str(source), "from_": None}, Rules())
    _print_facts(str(path), {"jobs": len(trace.jobs), "mapped": list(trace.mapped)}, Format.TABLE)


@contextmanager
def _all_bad_cells(source: Path, given: Mapping[str, Any]) -> Iterator[None]:
    """If an error names the first column with bad cells, first note the other ones."""
    from artist.trace.native.mapping import mapping_for
    from artist.trace.native.table import CellError
    from artist.trace.read import bad_cells

    try:
        yield
    except CellError as first:
        for sentence in bad_cells(source, mapping_for(source, **given)[0]):
            if sentence != str(first):
                note(sentence)
        raise


app.command()(synth)


def _open(parameters: Mapping[str, Any], rules: Rules) -> Trace:
    """The trace that a command's parameters name. Notes on stderr what was drawn at random."""
    from artist.trace.named import Given, open_trace

    given = Given(**options.given_of(parameters))
    source, format_ = parameters["source"], parameters["from_"]
    trace = open_trace(source, rules.seed, format_=format_, rules=rules, given=given)
    # The rest is printed on stdout.
    options.say_what_was_read(trace, quiet=True)
    return trace


def _print_proposal(source: Path, proposal: Proposal, format_: Format, *, accept: bool) -> None:
    """Print the proposed entries; note on stderr what lacks one and what to do next."""
    if format_ is Format.JSON:
        print_json({**proposal._asdict(), "entries": [x._asdict() for x in proposal.entries]})
    elif proposal.entries:
        columns = ("section", "name", "value", "confidence", "why")
        print_table(f"{source} ({proposal.format})", columns, proposal.entries)
    if not proposal.entries:
        note(f"{source}: nothing to propose; it is read as it is ({proposal.format})")
    elif not accept:
        command = f"artist trace columns {shlex.quote(str(source))} --accept"
        if proposal.missing:
            note(_missing(proposal))
        if proposal.missing or proposal.nameless():
            command += f" --columns {_pairs(proposal)}"
        for name in proposal.of_unknown_day():
            command += f" --units {name}=day-first (or month-first)"
        note(f"write it with {command}; flags given with it take precedence")
    if proposal.unread:
        note(f"columns that are not read: {one_line(', '.join(proposal.unread), most=400)}")
    if proposal.unknown:
        names = one_line(", ".join(proposal.unknown), most=400)
        note(
            f"no model of the catalogue is near {names}; say which they are with --models "
            "NAME=MODEL, or give all jobs without a known model one with --model-rule MODEL"
        )


def _missing(proposal: Proposal) -> str:
    """Which columns have no entry, and what to do, in words."""
    return (
        f"no column looks like {', '.join(proposal.missing)} of the {proposal.format} format; name "
        f"{'them' if len(proposal.missing) > 1 else 'it'} with --columns {_pairs(proposal)}"
    )


def _pairs(proposal: Proposal) -> str:
    """The value of `--columns` for the entries that are missing or need confirmation."""
    pairs = {**dict.fromkeys(proposal.missing, "COLUMN"), **proposal.nameless()}
    return shlex.quote(",".join(f"{name}={column}" for name, column in pairs.items()))


def _as_in_runs(trace: Trace) -> tuple[list[str], str]:
    """How `artist sim` divides jobs that state no axes, and why it would refuse the trace."""
    from artist.trace.divided import with_axes
    from artist.trace.native.trace import check_models

    try:
        check_models(trace)
        divided = with_axes(trace, "published")
    except TraceError as refusal:
        return [], f"note: artist sim will refuse this trace: {refusal}"
    return [text for text in divided.filled if text not in trace.filled], ""


def _print_facts(title: str, facts: Mapping[str, object], format_: Format) -> None:
    """Print facts. In a table, a list has one line per element, with semicolons between."""
    if format_ is Format.TABLE:
        facts = {
            key: ";\n".join(map(str, value)) if isinstance(value, list) else value
            for key, value in facts.items()
        }
    print_facts(title, facts, format_)
