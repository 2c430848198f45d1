"""The four tables of a warehouse, and the options of planning. `artist schema warehouse`.

A warehouse is a folder with `tables.parquet`, `regions.parquet`, `demand.parquet` and
`applications.parquet`. Each class below is one row of one of them.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from artist.io.documents import Document
from artist.warehouse.solver import Solver as Solver


class TableRow(Document):
    """A table. All of its partitions have one home (section 3.1)."""

    table: str = Field(min_length=1)
    size_bytes: int = Field(gt=0)
    home: str = Field(description="The region where its data is made now.")


class RegionRow(Document):
    """A region: what it can store, and the GPU hours that it offers in the time planned for."""

    region: str = Field(min_length=1)
    storage_bytes: int = Field(gt=0)
    kinds: tuple[str, ...] = Field(description="Kinds of GPUs.")
    supply_gpu_h: tuple[float, ...] = Field(description="GPU hours of each kind.")


class DemandRow(Document):
    """A job that recurs, or several alike: what it reads and needs in the time planned for."""

    job: str = Field(min_length=1)
    application: str = ""
    kind: str = Field(default="", description="Of its GPUs; empty for analytics without GPUs.")
    priority: int = Field(default=7, ge=1, le=7, description="1 is the highest.")
    gpu_h: float = Field(default=0, ge=0)
    cpu_h: float = Field(default=0, ge=0)
    tables: tuple[str, ...] = Field(min_length=1)


class ApplicationRow(Document):
    """The CPU hours that an application may use in a region. Without a row there is no limit."""

    application: str = Field(min_length=1)
    region: str
    cpu_h: float = Field(ge=0)


class Warehouse(Document):
    """The rows of the four files, by the names of the files."""

    tables: tuple[TableRow, ...]
    regions: tuple[RegionRow, ...]
    demand: tuple[DemandRow, ...]
    applications: tuple[ApplicationRow, ...] = ()


class Replicas(StrEnum):
    """Which replicas are added to homes (section 3.5)."""

    NONE = "none"
    NEEDED = "needed"
    ALL = "all"


class PlanOptions(Document):
    """Weights and limits of Figure 4. The paper publishes none of them."""

    w_read: float = Field(default=0.1, ge=0, description="w1: bytes read across regions.")
    w_gpu: float = Field(default=1.0, ge=0, description="w2: GPU demand against supply.")
    w_storage: float = Field(default=0.01, ge=0, description="w3: storage demand against supply.")
    urgent: int = Field(default=3, ge=1, le=7, description="The last high priority.")
    w_urgent: float = Field(default=1.0, ge=0, description="w_P of high priorities.")
    w_other: float = Field(default=0.1, ge=0, description="w_P of other priorities.")
    w_overload: float = Field(
        default=0.2, ge=0, description="High-priority demand above supply; 0: Figure 4 alone."
    )
    # 0.98: the largest ratio of the paper's V1 (section 5.6).
    full: float = Field(
        default=0.98, gt=0, description="Demand over supply that is not an overload."
    )
    home_share: float | None = Field(
        default=None, ge=0, le=1, description="Threshold of (6), a share; none: that of the start."
    )
    quota: float = Field(default=1.0, gt=0, le=1, description="Bytes moved a day, share of all.")
    days: int = Field(default=30, ge=1, description="Days to plan for; each is one pass.")
    min_gain: float = Field(
        default=1e-4,
        ge=0,
        description="Stop after a day that gains less than this share of the objective.",
    )
    enough: float = Field(
        default=1e-3,
        ge=0,
        lt=1,
        description="Stop when no more than this share of the first objective is left.",
    )
    limit_s: float | None = Field(default=None, gt=0, description="Wall time; none: no limit.")
    replicas: Replicas = Replicas.ALL
    hot_share: float = Field(
        default=0.1, ge=0, le=1, description="Part of free storage for replicas of hot tables."
    )
