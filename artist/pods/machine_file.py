"""Machine files: groups of machines with their CPU, memory and GPUs, and the source of the data."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from artist.cluster.mig import Mode
from artist.io.documents import Document, load_yaml
from artist.registry import named_document
from artist.units import CORE_MILLI, MOST_CORES

MOST_MACHINES = 1_000_000
MOST_GPUS = 16
"""GPUs of one machine; the largest on the market have 16."""
MOST_MILLI = MOST_CORES * CORE_MILLI
"""Thousandths of cores, and MiB of memory (a petabyte). Sums over all machines fit into 64 bits."""

Amount = Annotated[int, Field(ge=0, le=MOST_MILLI)]


class MachineGroup(Document):
    """Machines that are alike."""

    count: int = Field(ge=1, le=MOST_MACHINES)
    cpu_milli: Amount = Field(description="thousandths of a core")
    memory_mib: Amount
    gpus: int = Field(ge=0, le=MOST_GPUS)
    kind: str = Field(default="", pattern=r"^[^|,\s]*$", description="of the GPUs, such as V100")
    mig: Mode | None = Field(default=None, description="the GPUs are in MIG mode, and of this sort")


class MachineFile(Document):
    """The machines of a cluster, in the order in which they are numbered."""

    name: str = Field(min_length=1)
    summary: str
    source: str = Field(min_length=1, description="where the numbers come from")
    machines: tuple[MachineGroup, ...] = Field(min_length=1)

    @property
    def count(self) -> int:
        """How many machines there are."""
        return sum(group.count for group in self.machines)

    @property
    def capacity_milli(self) -> int:
        """Thousandths of GPUs of all machines."""
        return 1000 * sum(group.count * group.gpus for group in self.machines)

    @model_validator(mode="after")
    def _some_gpus_and_not_too_many_machines(self) -> Self:
        if self.count > MOST_MACHINES:
            raise ValueError(f"has {self.count:,} machines, expected at most {MOST_MACHINES:,}")
        if not any(group.gpus for group in self.machines):
            raise ValueError("no machine has a GPU, expected at least one")
        return self


def load_machines(name: str) -> MachineFile:
    """A machine file by its path or by its name (`named_document`).

    Raises:
        ConfigError: the name is unknown, or the file is bad; names file and line.
    """
    return load_yaml(named_document("machines", name, "machine file"), MachineFile)
