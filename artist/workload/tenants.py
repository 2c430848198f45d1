"""Tenants: the teams that share a cluster, and how many GPUs each may have at its priority.

    tenants:
      ads: 64                       # a quota in GPUs
      search: {quota: 32, weight: 2}
      video: {quota: {h100: 16, a100: 64}}    # by kind of GPUs, for policies that read kinds

A job above its tenant's quota still runs, but with the lowest priority (MAST, section 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from artist.errors import ConfigError, did_you_mean, shortened
from artist.io.documents import Document, Positive, load_yaml


class Tenant(Document):
    """One tenant. A bare number is its quota."""

    quota: int = Field(
        ge=0,
        description="GPUs that it may use at its jobs' own priorities; or GPUs by kind",
    )
    by_kind: dict[str, Annotated[int, Field(ge=0)]] | None = Field(
        default=None, description="of its quota, GPUs by kind; kinds that are not named have none"
    )
    # MAST, section 4.2, equation 11, has no weights: all tenants are alike.
    weight: Positive = Field(
        default=1.0,
        description="use that is fair relative to others', in the credit of waiting jobs",
    )

    @model_validator(mode="before")
    @classmethod
    def _bare_quota(cls, value: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            return {"quota": value}
        if isinstance(value, Mapping) and isinstance(parts := value.get("quota"), Mapping):
            whole = [x for x in parts.values() if isinstance(x, int) and not isinstance(x, bool)]
            return {**value, "quota": sum(max(0, x) for x in whole), "by_kind": dict(parts)}
        return value

    @model_validator(mode="after")
    def _sum_of_kinds(self) -> Self:
        if self.by_kind is not None and sum(self.by_kind.values()) != self.quota:
            raise ValueError("a quota by kind is the sum of its kinds; give quota: {KIND: GPUS}")
        return self


class Tenants(Document):
    """A file of tenants: `tenants: {NAME: QUOTA}`."""

    tenants: dict[str, Tenant] = Field(description="tenant -> quota, or quota and weight")


NO_TENANTS: Mapping[str, Tenant] = {}


def load_tenants(given: Mapping[str, Tenant] | str | None) -> Mapping[str, Tenant]:
    """The tenants of a scenario, from itself or from a file; none if it names none.

    Raises:
        ConfigError: the file cannot be read or is not valid.
    """
    if given is None:
        return {}
    return load_yaml(Path(given), Tenants).tenants if isinstance(given, str) else given


def check_quotas(
    tenants: Mapping[str, Tenant], gpus: int, by_kind: Mapping[str, int] | None = None
) -> None:
    """Refuse a quota that no cluster of `gpus` GPUs can honour; `by_kind`: its GPUs by kind.

    Raises:
        ConfigError: names the first such tenant.
    """
    for name, tenant in tenants.items():
        if tenant.quota > gpus:
            raise ConfigError(
                f"tenants: the quota of {shortened(name)} is {tenant.quota} GPUs, but the cluster "
                f"has {gpus}; give at most {gpus} or enlarge the cluster"
            )
        for kind, quota in (tenant.by_kind or {}).items():
            there = {} if by_kind is None else by_kind
            if kind not in there:
                hint = did_you_mean(kind, list(there))
                raise ConfigError(
                    f"tenants: {shortened(name)} has a quota of GPUs of kind {shortened(kind)}, "
                    f"which the cluster lacks ({hint})"
                )
            if quota > there[kind]:
                raise ConfigError(
                    f"tenants: the quota of {shortened(name)} is {quota} GPUs of kind {kind}, but "
                    f"the cluster has {there[kind]}; give at most {there[kind]}"
                )
