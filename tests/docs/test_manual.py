"""Can the manual be written, and does it explain every column, key, command and policy?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import artist
from artist.results.terms.columns import TABLES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def manual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("manual")
    command = [sys.executable, ROOT / "docs" / "generate.py", folder]
    subprocess.run(command, check=True)
    return folder


def test_every_column_and_every_key_is_explained() -> None:
    from artist.results.terms import glossary

    scenario = artist.Scenario(
        racks=1, trace="tiny-poisson", contention="mean", failures="meta-rsc"
    )
    result = artist.simulate(scenario, cache=False, links=True)
    tables = {name: list(columns) for name, columns in result.tables.items()}
    tables["copies"] = [term.name for term in TABLES["copies"]]  # only with data: tests/data
    tables["wait_causes"] = [term.name for term in TABLES["wait_causes"]]  # test_waits.py
    tables["above_rate"] = [term.name for term in TABLES["above_rate"]]  # test_links_table.py
    for name in ("turns", "circles"):
        tables[name] = [term.name for term in TABLES[name]]  # tests/policies/cassini
    for name in ("tenants", "tenant_use", "priorities", "queue", "passes"):
        tables[name] = [term.name for term in TABLES[name]]  # tests/results/test_tenants.py
    for name in (name for name in TABLES if name.startswith("data_")):
        tables[name] = [term.name for term in TABLES[name]]  # tests/warehouse/test_measured.py
    tables["gpu_kinds"] = [term.name for term in TABLES["gpu_kinds"]]  # tests/estimates
    tables["placements"].insert(5, "gpu_kind")
    tables["placements"].insert(2, "gpu_share")  # tests/engine/test_gpu_shares.py
    tables["jobs"].insert(tables["jobs"].index("gpus_max") + 1, "gpu_share")
    # tests/results/test_shared_gpus.py
    tables["placements"].insert(tables["placements"].index("ended") + 1, "beside")
    tables["placements"].insert(tables["placements"].index("beside") + 1, "batch")
    # tests/results/test_links_table.py
    tables["jobs"].insert(tables["jobs"].index("contention_lost_s") + 1, "contention_own_s")
    own = tables["placements"].index("alone_iteration_s") + 1
    tables["placements"].insert(own, "own_iteration_s")
    # tests/report/test_communication_of_elastic_jobs.py
    tables["placements"].insert(own + 1, "compute_iteration_s")
    # tests/slurm/test_slurm_preemption.py
    tables["jobs"].insert(tables["jobs"].index("contention_own_s") + 1, "cancelled")
    # tests/results/test_metrics.py
    tables["jobs"].insert(tables["jobs"].index("cancelled") + 1, "first_start_s")
    tables["jobs"] += ["slowed_s", "tenant", "priority"]  # slowed_s: tests/failures
    tables["placements"] += ["slow_unit", "class"]
    assert {name: [term.name for term in terms] for name, terms in TABLES.items()} == tables
    told = {"policy", "trace", "cluster", "gpus", "seed"}
    assert {key for key in result.summary if glossary.find(key) is None} == told


def test_every_command_is_on_the_page(manual: Path) -> None:
    from artist.cli.main import COMMANDS

    page = (manual / "commands.md").read_text()
    for name in COMMANDS:
        assert f"\n## artist {name}\n" in page or f"\n## artist {name} " in page


def test_every_policy_is_on_the_page_with_its_options(manual: Path) -> None:
    from artist.policies.table import POLICIES

    page = (manual / "policies.md").read_text()
    for entry in POLICIES:
        assert f"`{entry.id}`" in page
