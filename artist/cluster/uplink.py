"""The physical links that lead out of a unit, and how connections share them."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from artist.cluster.with_units import Rate, WithUnits, with_unit
from artist.io.documents import Positive

Routing = Literal["pooled", "ecmp", "static"]

ROUTINGS: dict[Routing, str] = {
    "pooled": "as if they were one, which ideal spraying of packets makes them (default)",
    "ecmp": "a hash puts each connection on one",
    "static": "each connection is put on the one with the least traffic",
}
"""How connections share parallel links.

If every connection sprays its packets evenly over n equal links, each link carries 1/n of each
connection with 1/n of the capacity, so max-min shares are those of one link that is n times as
fast. That is why ideal spraying is `pooled` and needs no setting of its own. Real spraying and
adaptive routing come close (Dixit et al., On the Impact of Packet Spraying in Data Center Networks,
INFOCOM 2013), at the price of reordered packets, which the models here leave out.
"""

MOST_LINKS = 1024
"""The most routed links of a unit. The largest switch chip, Broadcom's Tomahawk 6 with 102.4
Tbit/s, has 1,024 lanes of 100 Gbit/s for all its ports."""


class Uplink(WithUnits):
    """The physical links from one unit of a level to its parent.

    They are stated as links (`rate`, `count`), or as `oversubscription` for units of any size.
    """

    TAKE_UNITS: ClassVar[tuple[str, ...]] = ("rate",)

    rate: Rate = with_unit("rate")
    rate_gib_per_s: Positive | None = Field(
        default=None, description="rate of one link and direction, GiB/s"
    )
    count: int | None = Field(default=None, ge=1, description="links per unit")
    oversubscription: Positive | None = Field(
        default=None,
        description="instead: what a unit's GPUs can send, divided by what its links carry: "
        "2 for 2:1",
    )
    routing: Routing | None = Field(
        default=None,
        description="how connections share the links. "
        + "; ".join(f"{name}: {what}" for name, what in ROUTINGS.items()),
    )
    queue_pairs: int | None = Field(
        default=None, ge=1, le=64, description="of a connection, each put on a link (default 1)"
    )
    eta: Positive | None = Field(
        default=None, le=1, description="share of the capacity that is used while jobs share it"
    )
    source: str = Field(description="where the numbers come from")

    @model_validator(mode="after")
    def _stated_once(self) -> Uplink:
        rate, count = self.rate_gib_per_s, self.count
        if self.oversubscription is None:
            wrong = None in (rate, count)
        else:
            wrong = rate is not None or (count is None) != (self.routing is None)
        if wrong:
            raise ValueError(
                "give rate and count, or oversubscription in place of both; with routing, "
                "oversubscription and count"
            )
        if self.queue_pairs is not None and self.routing in (None, "pooled"):
            raise ValueError(
                "queue_pairs has no effect without routing; give routing ecmp or static too"
            )
        if self.routed_links > MOST_LINKS:
            raise ValueError(
                f"{self.routed_links} links with routing {self.routing}, expected at most "
                f"{MOST_LINKS}; give fewer links, or routing pooled"
            )
        return self

    @model_serializer(mode="wrap")
    def _given(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Dump only stated settings, so that digests stay the same when uplinks get new ones."""
        return {key: value for key, value in serialise(self).items() if value is not None}

    @property
    def links_gib_per_s(self) -> float | None:
        """Capacity of a unit's links together, one direction, GiB/s; None if stated as a ratio."""
        if self.rate_gib_per_s is None or self.count is None:
            return None
        return self.rate_gib_per_s * self.count

    @property
    def routed_links(self) -> int:
        """The number of links on which a connection may be put; 1 if they are pooled."""
        return 1 if self.count is None or self.routing in (None, "pooled") else self.count
