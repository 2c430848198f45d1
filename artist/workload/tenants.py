"""Tenants: the teams that share a cluster, and how many GPUs each may have at its priority.

    tenants:
      ads: 64                       # a quota in GPUs
      search: {quota: 32, weight: 2}

A job above its tenant's quota still runs, but with the lowest priority (MAST, section 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from artist.errors import ConfigError, shortened
from artist.io.documents import Document, load_yaml
from artist.io.fields import Positive


class Tenant(Document):
    """One tenant. A bare number is its quota."""

    quota: int = Field(ge=0, description="GPUs that it may use at its jobs' own priorities")
    # MAST, section 4.2, equation 11, has no weights: all tenants are alike.
    weight: Positive = Field(default=1.0, description="its share of the cluster beside others'")

    @model_validator(mode="before")
    @classmethod
    def _bare_quota(cls, value: Any) -> Any:
        return {"quota": value} if isinstance(value, int) and not isinstance(value, bool) else value


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


def check_quotas(tenants: Mapping[str, Tenant], gpus: int) -> None:
    """Refuse a quota that no cluster of `gpus` GPUs can honour.

    Raises:
        ConfigError: names the first such tenant.
    """
    for name, tenant in tenants.items():
        if tenant.quota > gpus:
            raise ConfigError(
                f"tenants: the quota of {shortened(name)} is {tenant.quota} GPUs, but the cluster "
                f"has {gpus}; give at most {gpus} or enlarge the cluster"
            )
