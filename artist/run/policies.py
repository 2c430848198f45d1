"""From a policy's name and options to the policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from artist.config import Scenario
from artist.contract import Options, Policy
from artist.errors import ArtistError, ConfigError, shortened
from artist.io.documents import validate
from artist.policies.lease_and_tables import check_jobs_per_gpu, check_lease
from artist.policies.option_places import (
    ESTIMATES,
    MOST_WRAPPERS,
    about_unknown,
    entry_of,
    with_host_options,
)
from artist.policies.own_file import cannot_be_made, is_in_a_file, is_of_a_file
from artist.registry import Entry
from artist.rng import FIRST_DRAWS, Draws
from artist.run.hardware import cluster_of
from artist.workload.tenants import NO_TENANTS, Tenant, load_tenants

if TYPE_CHECKING:
    from artist.cluster.cluster_file import Cluster


def build_policy(scenario: Scenario) -> Policy:
    """The scenario's policy with its options.

    Raises:
        ConfigError: unknown name or option.
    """
    draws = Draws(scenario.seed, scenario.permutation)
    tenants = load_tenants(scenario.tenants)
    return open_policy(
        scenario.policy,
        scenario.policy_options,
        draws,
        tenants,
        lambda: cluster_of(scenario),
        scenario.prices,
    )


def open_policy(
    name: str,
    options: Mapping[str, Any],
    draws: Draws = FIRST_DRAWS,
    tenants: Mapping[str, Tenant] = NO_TENANTS,
    cluster: Callable[[], Cluster | None] = lambda: None,
    prices: Mapping[str, float] | float | None = None,
) -> Policy:
    """A policy by name, with its preset and options: `NAME`, `FILE.py:CLASS` or `WRAPPER(NAME)`.

    The options of the policy inside a wrapper are under the key `host`. Options that only this
    policy has may also be given directly (`artist/policies/option_places.py`). Wrapper and host get
    the same `draws`, `tenants`, `cluster` (the cluster file) and `prices` (of GPU-hours), each if
    its constructor has a parameter of that name.

    Raises:
        ConfigError: unknown name or option, brackets where there is nothing to wrap, or a file that
            holds no such policy.
        PolicyError: the policy's lease or `jobs_per_gpu` is not a whole number, or out of range.
    """
    if name.count("(") > MOST_WRAPPERS:
        raise ConfigError(f"policy {shortened(name)}: more than {MOST_WRAPPERS} wrappers")
    outer, bracket, inner = name.partition("(")
    entry = entry_of(outer.strip())
    closed = inner.endswith(")") and inner[:-1].strip()
    if entry.wraps != bool(bracket) or (bracket and not closed):
        raise ConfigError(f"policy {name!r}: write {entry.usage}")
    if not isinstance(options, Mapping):
        raise ConfigError(
            f"options of policy {name!r}: got {shortened(options)}, expected KEY=VALUE"
        )
    chosen = {**entry.preset, **options}
    host_name = inner[:-1] if entry.wraps else entry.host
    host: tuple[Policy, ...] = ()
    if host_name:
        chosen = with_host_options(entry, host_name, chosen)
        host = (open_policy(host_name, chosen.pop("host", {}), draws, tenants, cluster, prices),)
    offered: dict[str, Callable[[], Any]] = {
        "draws": lambda: draws, "tenants": lambda: tenants, "cluster": cluster,
        "prices": lambda: prices,
    }  # fmt: skip
    try:
        return _made(entry, chosen, host, offered)
    except ArtistError:
        raise
    except BaseException as cause:
        if is_in_a_file(entry.id) and is_of_a_file(cause):
            raise cannot_be_made(cause, entry.id) from cause
        raise


def _made(
    entry: Entry,
    chosen: Mapping[str, Any],
    host: tuple[Policy, ...],
    offered: Mapping[str, Callable[[], Any]],
) -> Policy:
    """The policy of a row of the table. A class without `Options` gets none."""
    implementation = entry.load()
    model = getattr(implementation, "Options", None)
    _refuse_former_options(chosen, model or Options)
    if ESTIMATES in chosen and ESTIMATES not in (model or Options).model_fields:
        about = about_unknown(ESTIMATES, ())
        raise ConfigError(f"policy {entry.id}: unknown setting '{ESTIMATES}': {about}")
    settings = validate(chosen, model or Options, f"policy {entry.id}")
    asked = signature(implementation).parameters
    taken = {name: make() for name, make in offered.items() if name in asked}
    if any(getattr(inside, "jobs_per_gpu", 1) > 1 for inside in host):
        raise ConfigError(
            f"policy {entry.id}: a wrapper decides where jobs lie, and the policy inside lets jobs "
            "share GPUs; leave the wrapper or the sharing out"
        )
    policy: Policy = implementation(*((settings,) if model else ()), *host, **taken)
    if not hasattr(policy, "lease"):
        raise ConfigError(
            f"policy {entry.id} has no lease; derive it from artist.contract.BasePolicy"
        )
    check_lease(policy, entry.id)
    check_jobs_per_gpu(policy, entry.id)
    return policy


def _refuse_former_options(chosen: Mapping[str, Any], options: type[Options]) -> None:
    """Refuse options that policies once had, and say what replaces them."""
    if "seed" in chosen and "seed" not in options.model_fields:
        raise ConfigError(
            f"policy.seed={shortened(chosen['seed'])}: policies draw from the scenario's seed and "
            "permutation; set seed or permutation instead"
        )
    if "prices" in chosen and "prices" not in options.model_fields:
        raise ConfigError("policy.prices: prices belong to the scenario; set prices instead")
