"""Does the page about published failures say what its runs say, and do the runs still say it?"""

from __future__ import annotations

import pytest

from studies.failures.study import simulated, wording


def test_the_fastest_run_still_gives_its_row() -> None:
    of = simulated
    case = next(case for case in of.cases() if case["run"]["gpus"] == 2048)
    row = next(row for row in of.read() if row["case"] == case["name"])
    assert of.simulated(case) == row


def test_simulated_times_are_those_of_theory_and_of_the_papers_projections() -> None:
    of = simulated
    for case, row in zip(of.cases(), of.read(), strict=True):
        assert wording.off(row) < wording.SURE
        assert abs(row["ratio"] - row["daly_ratio"]) < 0.02
        said = case["published"]
        if said["how"] == "projected" and "mttf_h" in said:
            error = said["mttf_h"] * (wording.SURE / row["failures"] ** 0.5 + 0.025)
            assert abs(row["mttf_h"] - said["mttf_h"]) < error  # 0.025: the paper rounds
        assert row["ratio"] > said.get("ratio_above", 0.0)
        if "ratio" in said:
            assert row["ratio"] == pytest.approx(said["ratio"], abs=0.01)
