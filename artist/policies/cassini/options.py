"""Options of CASSINI around a host policy. The host's own ones stand under `host`."""

from __future__ import annotations

from pydantic import Field, field_validator

from artist.contract import Options
from artist.policies.cassini.candidates import MOST_CANDIDATES
from artist.policies.cassini.loops import Loops
from artist.policies.cassini.time_shifts import SolverOptions
from artist.policies.cassini.unified import ANGLE_DEG, DRIFT, Choice, Periods


class CassiniOptions(Options):
    """Options of CASSINI."""

    # Section 5.1: up to 10 placement candidates.
    candidates: int = Field(
        default=MOST_CANDIDATES,
        ge=1,
        le=MOST_CANDIDATES,
        description="placements of equal counts that are scored; 1 keeps the host's",
    )
    # Section 5.1.
    angle_deg: int = Field(
        default=ANGLE_DEG, description="precision of rotations, degrees; a divisor of 360"
    )
    # The paper's values are first feasible angles (decision 21).
    choose: Choice = Field(
        default=Choice.FIRST, description="which of equally good time-shifts: first or centre"
    )
    # Algorithm 2 discards candidates with loops, which leaves none in a busy cluster (decision 21).
    loops: Loops = Field(
        default=Loops.MERGE,
        description="merge: candidates with the fewest loops, whose least harmful links are "
        "dropped; discard: none with loops",
    )
    # The paper has no threshold (-1). Jobs that take turns wait for the slowest. On 587 random
    # links with two or three jobs, turns on all made iterations longer on average. On those that
    # gain .03 or more they made them shorter (decision 22).
    least_gain: float = Field(
        default=0.03,
        ge=-1,
        le=1,
        description="jobs of a link take turns only if that raises its score over random phases by "
        "so much, less what they lose by waiting for the slowest",
    )
    # Whole milliseconds have common multiples of minutes (decision 21).
    periods: Periods = Field(
        default=Periods.SNAP,
        description="snap ratios of periods, or take the lcm of milliseconds; where that has more "
        "than a million angles, they are snapped",
    )
    # Section 5.7 has an agent that corrects, by 5 %.
    drift_correction: bool = Field(
        default=True,
        description="an agent keeps the time-shifts: a job that is ahead by more than 5 % of its "
        "iteration waits for the others",
    )

    @field_validator("angle_deg")
    @classmethod
    def _divides_a_circle(cls, angle_deg: int) -> int:
        if angle_deg < 1 or 360 % angle_deg:
            raise ValueError("expected a whole divisor of 360 degrees")
        return angle_deg

    def solver(self, seed: int) -> SolverOptions:
        """How links are solved."""
        return SolverOptions(self.angle_deg, self.periods, self.choose, seed)

    @property
    def slack(self) -> float | None:
        """Share of an iteration that a job may be ahead."""
        return DRIFT if self.drift_correction else None
