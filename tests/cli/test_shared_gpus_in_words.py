"""Do commands say which jobs shared GPUs, and show runs in which some did?"""

from __future__ import annotations

from pathlib import Path

import artist as library


def test_commands_say_who_shared_gpus(artist, tmp_path: Path) -> None:
    packing = ("--set", "policy.packing=true", "--set", "policy.quantum_s=600")
    shown = artist(
        "sim", "--policy", "gandiva", "--jobs", "60", "--racks", "1", *packing,
        "--set", "interference=h200", "--out", "run", code=0,
    )  # fmt: skip
    assert "Several jobs shared a GPU in" in shown.stdout
    rows = library.load(tmp_path / "run").tables["placements"]
    job, other = next(
        (name, beside[0])
        for name, beside in zip(rows["job_id"], rows["beside"], strict=True)
        if len(beside)
    )
    assert f" beside job {other}, tier" in artist("why", "run", job).stdout
    assert artist("report", "run", "--out", "page.html").returncode == 0
