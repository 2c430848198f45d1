"""The section of the page that lists jobs: its controls and its empty table.

The page's script `jobs.js` fills the table. It shows rows page by page, so thousands of jobs need
no more elements than ten do.
"""

from __future__ import annotations

from artist.report.markup import Html, join, tag

_HOW = (
    "Every job, the largest slowdown first. Click a heading to sort by it; open a job to see its "
    "stays and why it waited. Slowdown is completion time relative to the job's time alone. "
    "Restarts count preemptions and migrations. Placements are the shapes of its GPUs in the order "
    "of time: + separates sockets, a comma machines, / racks."
)

_SOURCE = (
    "jobs.parquet: model, gpus, arrival_s, queue_delay_s, run_s, jct_s, alone_s, preemptions + "
    "migrations; placements.parquet: level, signature; waits.parquet: cause"
)

_SIZES = ("10", "25", "100")


def jobs_section() -> Html:
    """Heading, controls, table and the line that says what the page leaves out."""
    selects = [
        tag("label", text, tag("select", id=f"jobs-{name}"))
        for name, text in (
            ("run", "Run"), ("model", "Model"), ("tier", "Tier"), ("cause", "Waited because"),
            ("restarts", "Restarted"),
        )
    ]  # fmt: skip
    search = tag("label", "Job", Html('<input type="search" id="jobs-search" placeholder="id">'))
    sizes = [tag("option", size, value=size) for size in _SIZES]
    pages = [
        tag("button", text, type="button", id=f"jobs-{name}", aria_label=label)
        for name, text, label in (
            ("back", "\u2190", "Previous page of jobs"), ("on", "\u2192", "Next page of jobs"),
        )
    ]  # fmt: skip
    return join([
        tag("h2", "Jobs", id="jobs"),
        tag("p", _HOW),
        tag(
            "div",
            tag("div", search, *selects, class_="pickers"),
            tag("div", id="jobs-table", class_="scroll", tabindex="0", role="group",
                aria_label="Jobs"),
            tag("div", tag("p", id="jobs-count", role="status"), *pages,
                tag("label", "Rows", tag("select", *sizes, id="jobs-rows")), class_="pickers"),
            tag("p", id="jobs-left-out", class_="note"),
            tag("p", _SOURCE, class_="source"),
            class_="panel",
        ),
    ])  # fmt: skip
