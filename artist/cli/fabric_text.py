"""What `artist explain FABRIC` prints: what each level grants, in the units that people use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from artist.cli.options import load_scenario
from artist.cli.output import print_table, print_text
from artist.cluster.fabric import Fabric
from artist.cluster.fabric_options import changes_text
from artist.cluster.links import usual_oversubscriptions
from artist.cluster.uplink import ROUTINGS, Uplink
from artist.errors import ConfigError, shortened
from artist.run import build_fabric
from artist.units import bandwidth_texts, latency_text, ratio_text
from artist.workload.gpus import assumed_in_words

_COLUMNS = (
    "level",
    "topology",
    "bandwidth per direction",
    "",
    "",
    "of",
    "latency per hop",
    "oversubscription",
)


def print_fabric(name: str, sets: Sequence[str]) -> None:
    """Print the levels of a fabric with these changes (`fabric.LEVEL.KEY=VALUE`), and its sources.

    Raises:
        ConfigError: a change is none of a fabric, or the fabric cannot have it.
    """
    for text in sets:
        if not text.startswith("fabric."):
            raise ConfigError(f"--set {shortened(text)}: expected fabric.LEVEL.KEY=VALUE here")
    scenario = load_scenario(None, {"fabric": name}, sets)
    fabric, changes = build_fabric(scenario), changes_text(scenario.fabric_options)
    heading = f"fabric {fabric.name}{f' with {changes}' if changes else ''}: {fabric.summary}"
    print_table(heading, _COLUMNS, list(_rows(fabric)))
    if any(level.uplink is not None for level in fabric.levels):
        print_text(
            "Oversubscription: what the GPUs of a unit can send at once, divided by what its "
            "uplink carries, with 8 GPUs in a machine and 8 machines in a rack."
        )
    for level in fabric.levels:
        for sentence in () if level.uplink is None else _of_uplink(level.name, level.uplink):
            print_text(sentence)
    for sentence in () if changes else _more_outside(fabric):
        print_text(sentence)
    if fabric.machine is not None and fabric.machine.kind is not None:
        print_text(_gpu(fabric.machine.kind))
    print_table("sources", ("level", "source"), [(one.name, one.source) for one in fabric.levels])
    if fabric.system.rings == "one":
        print_text(
            "One ring passes all GPUs of a job (rings: one), so one flow gets all of a unit's "
            "bandwidth."
        )
    if fabric.calibration:
        print_text(f"Models are calibrated by {fabric.calibration} (--calibration auto).")


def _rows(fabric: Fabric) -> Iterator[tuple[str, ...]]:
    """A row of the table for each level."""
    flow = "flow" if fabric.system.rings == "one" else "GPU"
    for level, ratio in zip(fabric.levels, usual_oversubscriptions(fabric), strict=True):
        yield (
            level.name,
            level.topology,
            *bandwidth_texts(level.bandwidth_gib_per_s),
            f"a {level.shared_by or flow}",
            latency_text(level.latency_ns),
            "" if ratio is None else ratio_text(ratio),
        )


def _of_uplink(level: str, uplink: Uplink) -> Iterator[str]:
    """The share of an uplink that jobs on it get together, and the link that a connection takes."""
    if (eta := uplink.eta or 1.0) < 1:
        share = f"{100 * eta:g} %"
        yield f"Jobs that share an uplink of a {level} get {share} of what it carries (eta)."
    if uplink.routed_links > 1:
        pairs = uplink.queue_pairs or 1
        who = f"each of {pairs} queue pairs of a" if pairs > 1 else "each"
        yield (
            f"Under a model of contention, {who} connection out of a {level} takes one of "
            f"{uplink.routed_links} links: {ROUTINGS[uplink.routing or 'pooled']}."
        )


def _more_outside(fabric: Fabric) -> Iterator[str]:
    """Say where a level has more bandwidth than the one inside it, which looks like a mistake."""
    for inner, outer in pairwise(fabric.levels):
        alike = inner.shared_by is None and outer.shared_by is None
        if alike and outer.bandwidth_gib_per_s > inner.bandwidth_gib_per_s:
            yield (
                f"Level {outer.name} has more bandwidth than {inner.name} inside it, and a hop "
                f"takes {latency_text(outer.latency_ns)} there, not "
                f"{latency_text(inner.latency_ns)}. That is what their sources say."
            )


def _gpu(kind: str) -> str:
    """The kind of GPU of its machines, and the GPU whose compute times models have."""
    assumed = assumed_in_words({kind})
    return f"Its GPUs are {kind.upper()}{f'; models have {assumed}' if assumed else ''}."
