"""`artist cluster`: cluster files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli import options, slurm_options
from artist.cli.output import Format, note, print_facts, print_json, print_table, print_text
from artist.errors import ConfigError
from artist.units import bandwidth_texts, latency_text, ratio_text

if TYPE_CHECKING:
    from artist.cluster.fabric import Fabric

app = typer.Typer(name="cluster", help="Look at clusters and cluster files.", no_args_is_help=True)


@app.callback()
def _cluster() -> None:
    """Look at clusters and cluster files."""


@app.command()
def show(
    cluster: Annotated[
        str | None, typer.Argument(metavar="[NAME|FILE]", help="See: artist list clusters.")
    ] = None,
    racks: options.Racks = None,
    machines_per_rack: options.MachinesPerRack = None,
    gpus_per_machine: options.GpusPerMachine = None,
    fabric: options.FabricName = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the cluster: FILE.svg.")] = None,
    overwrite: options.OverwriteFiles = False,
    format_: options.FormatOption = Format.TABLE,
) -> None:
    """Show the regions, clusters, racks, machines and links of a cluster."""
    from artist.cli.cluster_outline import lines, outline
    from artist.io.writing import write_whole
    from artist.run import build_cluster, build_fabric, cluster_of
    from artist.settings import load_scenario

    flags = {
        "cluster": cluster,
        "racks": racks,
        "machines_per_rack": machines_per_rack,
        "gpus_per_machine": gpus_per_machine,
        "fabric": fabric,
    }
    scenario = load_scenario(None, flags, [])
    if plot is not None:
        _check_picture(plot, overwrite=overwrite)
    described, links = cluster_of(scenario), build_fabric(scenario)
    tree = build_cluster(scenario, links)
    if plot is not None:
        from artist.report.cluster_drawing import cluster_svg

        write_whole(plot, cluster_svg(tree, described))
        note(f"wrote {plot}")
    whole = outline(tree, described)
    name = described.file.name if described is not None else tree.text
    if format_ is Format.JSON:
        units = {level.name: len(level) for level in reversed(tree.levels[:-1])}
        facts = {"cluster": name, "gpus": tree.gpus, "units": units, "fabric": links.name}
        print_json({**facts, "links": _links(links), "tree": whole.as_data()})
        return
    print_text("\n".join(lines(whole)))
    rows = [list(row.values()) for row in _links(links)]
    print_table(f"links of cluster {name}, fabric {links.name}", _COLUMNS, rows)


@app.command("import")
def import_(
    slurm: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Folder with the output of scontrol show and sacctmgr -P show; see "
            "docs/how-to/slurm.md.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Cluster file to write: FILE.yaml.")],
    keep_names: slurm_options.KeepNames = False,
    overwrite: options.OverwriteFiles = False,
    format_: options.FormatOption = Format.TABLE,
) -> None:
    """Write a cluster file from Slurm's configuration; lists what is not understood."""
    import yaml

    from artist.cluster.cluster_file import cluster_from
    from artist.io.writing import check_new_file, write_whole
    from artist.slurm.cluster_import import cluster_document

    check_new_file(out, "--out", overwrite=overwrite)
    document = cluster_document(slurm, keep_names=keep_names)
    cluster = cluster_from(document, f"{slurm}: the imported cluster")
    write_whole(out, yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=100))
    facts = {
        "cluster": cluster.file.name,
        "gpus": cluster.gpus,
        "machines": len(cluster.kinds),
        **{key: len(document["slurm"][key]) for key in ("partitions", "qos", "accounts")},
        "not_understood": document["slurm"]["not_understood"],
    }
    if format_ is Format.TABLE:
        facts["not_understood"] = "\n".join(document["slurm"]["not_understood"])
    print_facts(str(out), facts, format_)


_COLUMNS = ("level", "bandwidth", "latency", "shared_by", "uplink")


def _links(fabric: Fabric) -> list[dict[str, Any]]:
    """A row per level, outermost first: the links inside a unit, and its uplink.

    Latency is from one unit to another, which takes two hops through a switch.
    """
    rows = []
    for level in reversed(fabric.levels):
        uplink, text = level.uplink, ""
        if uplink is not None and uplink.oversubscription is not None:
            text = ratio_text(uplink.oversubscription)
        elif uplink is not None and uplink.links_gib_per_s is not None:
            text = bandwidth_texts(uplink.links_gib_per_s)[0]
        bandwidth = bandwidth_texts(level.bandwidth_gib_per_s)[0]
        latency = latency_text(level.latency_ns * (2 if level.topology == "Switch" else 1))
        values = (level.name, bandwidth, latency, level.shared_by or "", text)
        rows.append(dict(zip(_COLUMNS, values, strict=True)))
    return rows


def _check_picture(path: Path, *, overwrite: bool) -> None:
    from artist.io.writing import check_new_file

    if path.suffix != ".svg":
        raise ConfigError(f"--plot {path}: expected a name that ends in .svg")
    check_new_file(path, "--plot", overwrite=overwrite)
