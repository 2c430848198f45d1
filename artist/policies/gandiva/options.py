"""Options of Gandiva."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from artist.io.documents import Lease
from artist.policies.options import SharingOptions
from artist.policies.shared.placers import PlacerName


class GandivaOptions(SharingOptions):
    """Options of Gandiva."""

    # The lease of the other policies. The paper's quantum is 60 s (section 4.1).
    quantum_s: Lease = Field(default=3600.0, description="length of a time slice, seconds")
    migrate: bool = Field(default=True, description="migrate running jobs to better places")
    # Our choice: 3 free GPUs of 4. We could not find a number in the paper's text.
    fragmented_share: float = Field(
        default=0.75, gt=0, le=1, description="free share at which a busy machine is emptied"
    )
    placement: Literal["affinity"] | PlacerName = Field(
        default="affinity", description="by affinity (the paper's), or one placer for all jobs"
    )
    # Off: the Dally paper, which compares with Gandiva, has no shared GPUs. The Gandiva paper has
    # them (sections 3.2 and 4.2).
    packing: bool = Field(
        default=False, description="while jobs wait, try two jobs on the same GPUs"
    )
