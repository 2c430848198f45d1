"""Expressions 1 to 3 and 7 to 9 of Figure 4.

    w_read    sum of bytes that jobs read across regions / bytes that they read         (1)
  + w_gpu     sum over region r, kind k of s(r, k) sum over priority p of
              w_p (demand(r, k, p) / demand(k, p) - supply(r, k) / supply(k))^2         (2, 7)
  + w_storage sum over r of (stored(r) / stored - storage(r) / storage)^2               (3, 9)
  + w_overload sum over r of max(0, urgent(r) / supply(r) - full)                       ours

    s(r, k) = sigmoid(max(0, (demand(r, k) - supply(r, k)) / supply(r, k)))             (8)

The last term is not in Figure 4. Squares of shares weigh little in a small region, and the largest
ratio, by which the paper judges plans (section 5.6), is often that of a small one.

Two readings differ from the paper's text. The sigmoid's argument is relative: in GPU hours the
sigmoid would be a step. And demand(k, p) counts all jobs, also those in no region: otherwise a plan
could look balanced by leaving most jobs without a region.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from artist.warehouse.instance import PRIORITIES, Floats, Instance, Ints
from artist.warehouse.warehouse_schema import PlanOptions


@dataclass(frozen=True)
class WarehouseObjective:
    """The terms for one warehouse and one set of weights."""

    instance: Instance
    options: PlanOptions

    @cached_property
    def w_read(self) -> float:
        """Cost of a byte that is read across regions."""
        return self.options.w_read / self.instance.all_read_bytes

    @cached_property
    def _w_priority(self) -> Floats:
        urgent = np.arange(PRIORITIES) < self.options.urgent
        return np.where(urgent, self.options.w_urgent, self.options.w_other)

    @cached_property
    def per_demand(self) -> Floats:
        """[K, P] 1 / demand, 0 where nothing is demanded."""
        demand = self.instance.demand
        return np.divide(1.0, demand, out=np.zeros_like(demand), where=demand > 0)

    @cached_property
    def weight(self) -> Floats:
        """[K, P] weights of the squares; 0 where nothing is demanded."""
        weighted: Floats = self._w_priority * (self.instance.demand > 0)
        return weighted

    @cached_property
    def supply_share(self) -> Floats:
        """[R, K] each region's share of the supply of a kind."""
        total = self.instance.supply.sum(axis=0)
        share: Floats = self.instance.supply / np.where(total > 0, total, 1.0)
        return share

    def gpu(self, demand: Floats, regions: Ints) -> Floats:
        """[...] cost of GPU demand [..., K, P] in regions [...], overload included."""
        share = self.supply_share[regions][..., None]
        uneven = (self.weight * (demand * self.per_demand - share) ** 2).sum(axis=-1)
        supply = self.instance.supply[regions]
        excess = np.maximum(0.0, demand.sum(axis=-1) - supply)
        # Any demand for a kind of GPU that a region lacks is an infinite overload.
        none = np.where(excess > 0, np.inf, 0.0)
        over = np.divide(excess, supply, out=none, where=supply > 0)
        cost: Floats = self.options.w_gpu * (uneven / (1.0 + np.exp(-over))).sum(axis=-1)
        return cost + self.overload(demand, regions)

    @cached_property
    def all_supply(self) -> Floats:
        """[R] GPU hours of all kinds."""
        supply: Floats = self.instance.supply.sum(axis=1)
        return supply

    def overload(self, demand: Floats, regions: Ints) -> Floats:
        """[...] cost of high-priority demand [..., K, P] above supply, all kinds together."""
        urgent = demand[..., : self.options.urgent].sum(axis=(-1, -2))
        ratio = urgent / self.all_supply[regions]
        excess = np.maximum(0.0, ratio - self.options.full)
        cost: Floats = self.options.w_overload * excess
        return cost

    @cached_property
    def storage_share(self) -> Floats:
        """[R] each region's share of all storage."""
        storage = self.instance.storage.astype(float)
        share: Floats = storage / storage.sum()
        return share

    @cached_property
    def all_bytes(self) -> float:
        """Bytes of all tables."""
        return float(self.instance.size.sum())

    def stored(self, used: Ints, regions: Ints) -> Floats:
        """[...] cost of stored bytes [...] in regions [...]."""
        uneven = used / self.all_bytes - self.storage_share[regions]
        cost: Floats = self.options.w_storage * uneven**2
        return cost
