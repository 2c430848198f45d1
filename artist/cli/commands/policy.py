"""`artist policy`: writes a policy to start from, and checks policies against the contract."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from artist.cli import options
from artist.cli.output import print_text
from artist.errors import ConfigError, shortened

app = typer.Typer(name="policy", help="Write and check a policy of your own.", no_args_is_help=True)

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_PACKAGES = frozenset({"artist", "numpy", "pydantic", "pytest"})
"""Packages that a policy and its test import; a file of the same name would hide them."""


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the policy; patience writes patience.py.")],
) -> None:
    """Write a small policy to start from, NAME.py, and its test, in the working directory."""
    from artist.io.shipped import resource
    from artist.io.writing import check_file, write_whole

    class_name = _class_name(name)
    files = {Path(f"{name}.py"): "policy.py.txt", Path(f"test_{name}.py"): "test_policy.py.txt"}
    for path in files:
        check_file(path, "artist policy new:")
        if path.exists():
            raise ConfigError(f"{path}: exists already and is not overwritten; choose another name")
    for path, template in files.items():
        text = resource("templates", "policy", template).read_text(encoding="utf-8")
        write_whole(path, text.replace("@name@", name).replace("@Class@", class_name))
    policy = f"{name}.py:{class_name}"
    print_text(
        f"wrote {' and '.join(map(str, files))}; try\n"
        f"  artist policy check {policy}\n"
        f"  artist sim --policy {policy} --trace tiny-poisson --racks 1\n"
        f"  artist compare --policies las,{policy} --trace tiny-poisson --racks 1\n"
        f"  pytest test_{name}.py    (after pip install pytest)"
    )


@app.command()
def check(
    policy: Annotated[
        str, typer.Argument(metavar="FILE.py:CLASS", help="Your policy, or the name of any policy.")
    ],
    sets: options.Sets = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the jobs to try it on.")] = 0,
) -> None:
    """Check a policy against every clause of the contract."""
    from artist.policies.own_file import in_a_sentence
    from artist.run import open_policy
    from artist.settings import load_scenario
    from artist.testing import CLAUSES, check_policy, situations

    scenario = load_scenario(None, {"policy": policy}, sets or [])
    chosen, prices = scenario.policy_options, scenario.prices
    try:
        check_policy(lambda: open_policy(policy, chosen, prices=prices), seed=seed)
    except BaseException as cause:
        if error := in_a_sentence(cause, policy):
            raise error from cause
        raise
    print_text(
        f"{policy} keeps the contract: {len(situations(seed))} situations, {CLAUSES} clauses"
    )


def _class_name(name: str) -> str:
    """`my_policy` gives `MyPolicy`."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name) or name.startswith("test_"):
        raise ConfigError(
            f"artist policy new {shortened(name)}: expected a module's name, such as my_policy: "
            "lower-case letters, digits and _, starting with a letter"
        )
    if name in sys.stdlib_module_names or name in _PACKAGES:
        raise ConfigError(
            f"artist policy new {name}: {name}.py would hide the module {name!r} of that name; "
            "choose another"
        )
    return "".join(part.capitalize() for part in name.split("_") if part)
