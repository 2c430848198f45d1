"""Does every run keep the invariants and end soon, whatever is switched on together?

Policies in wrappers, kinds and regions, elastic jobs, shares of GPUs, tenants, failures with
checkpoints, contention, packing, CPU cores and memory meet as they are drawn. Every event of a run
is checked. Unsupported combinations are refused as the user's mistake, in one sentence.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from campaign import SEED, soon
from random_scenarios import random_scenario

import artist
from artist.config import Scenario
from artist.errors import ConfigError, TraceError

SCENARIOS = int(os.environ.get("SCENARIOS", "300"))
LIMIT_S = 60


@pytest.mark.slow
def test_whatever_is_switched_on_together_ends_lawfully_or_is_refused(tmp_path: Path) -> None:
    ran = 0
    for seed in range(SEED, SEED + SCENARIOS):
        settings = random_scenario(seed, tmp_path)
        try:
            with soon(LIMIT_S):
                result = artist.simulate(Scenario(**settings), check=True, cache=False)
        except (ConfigError, TraceError) as error:
            assert "\n" not in str(error), (settings, error)
            continue
        except Exception as error:
            raise AssertionError(settings) from error
        ran += 1
        assert result.summary["jobs_finished"] == len(result.table("jobs")), settings
    assert ran > 0.7 * SCENARIOS  # most combinations make sense
