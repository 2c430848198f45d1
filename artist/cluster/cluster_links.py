"""The fabric of a cluster file: what the links of each of its levels can do.

A fabric describes its own levels by name, such as machine and rack. A level of the file that it
does not have, such as a datacenter, gets the numbers of the fabric's outermost level, and `links`
of the cluster file may change them. `wide_area` describes what joins the units of the file's
outermost level, the regions:

- Each region has one link to a backbone, which carries `bandwidth` in each direction. All GPUs of a
  job in a region share it (`shared_by`), and with a model of contention all jobs do (`uplink`).
- `latency` is from one region to another. A Switch counts two hops, so a hop takes half of it.
"""

from __future__ import annotations

from artist.cluster.cluster_file import ClusterFile
from artist.cluster.fabric import Fabric, FabricLevel
from artist.cluster.fabric_options import with_options
from artist.cluster.uplink import Uplink
from artist.errors import ConfigError
from artist.io.documents import validate


def fabric_of_cluster(file: ClusterFile, fabric: Fabric) -> Fabric:
    """A fabric with the levels of a cluster file.

    Raises:
        ConfigError: levels of the fabric have another order, or its links do not go together.
    """
    known = {level.name: level for level in fabric.levels[:-1]}
    wanted = list(reversed(file.levels))
    outermost = fabric.levels[-1]
    shared = [name for name in fabric.level_names[:-1] if name in wanted]
    if shared != [name for name in wanted if name in known]:
        raise ConfigError(
            f"cluster {file.name!r}: levels {', '.join(file.levels)} are not in the order of "
            f"fabric {fabric.name!r}, {', '.join(reversed(fabric.level_names))}"
        )
    inside = fabric.levels[: fabric.level_names.index(wanted[0])]
    levels = [*inside, *(known.get(name) or _like(outermost, name) for name in wanted), outermost]
    if [level.name for level in levels] == list(fabric.level_names):
        same = fabric
    else:
        where = f"fabric {fabric.name!r} on the levels of cluster {file.name!r}"
        same = validate(_with_levels(fabric, levels), Fabric, where)
    changed = with_options(same, file.links)
    return _with_wide_area(changed, file)


def _like(outermost: FabricLevel, name: str) -> FabricLevel:
    """A level that the fabric does not know, with the numbers of its outermost level."""
    source = f"as level {outermost.name} of the fabric"
    return outermost.model_copy(update={"name": name, "source": source})


def _with_wide_area(fabric: Fabric, file: ClusterFile) -> Fabric:
    """The fabric with the wide-area network as outermost level, if the file describes one."""
    wide = file.wide_area
    if wide is None:
        return fabric
    *inner, regions, outermost = fabric.levels
    rate = wide.bandwidth_gib_per_s
    uplink = Uplink(rate_gib_per_s=rate, count=1, source=wide.source)
    backbone = outermost.model_copy(
        update={
            "topology": "Switch",
            "collective": "ring",
            "bandwidth_gib_per_s": rate,
            "latency_ns": wide.latency_ns / 2,
            "shared_by": regions.name,
            "pair_share": 1.0,
            "source": wide.source,
        }
    )
    levels = [*inner, regions.model_copy(update={"uplink": uplink}), backbone]
    return validate(_with_levels(fabric, levels), Fabric, f"cluster {file.name!r}, wide_area")


def _with_levels(fabric: Fabric, levels: list[FabricLevel]) -> dict[str, object]:
    return fabric.model_dump() | {"levels": [level.model_dump() for level in levels]}
