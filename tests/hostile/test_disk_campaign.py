"""Does a sweep on a disk of any size keep what fits, say what does not, and go on with more room?

`DISKS` and `DISK_SEED` set how many disks are tried, and which sizes.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_outputs import ended

DISKS = int(os.environ.get("DISKS", "6"))
SEED = int(os.environ.get("DISK_SEED", "1"))
EXPERIMENT = """name: e
version: 1
base: {trace: tiny-batch, racks: 1}
grid: {policy: [fifo, las, srtf, dally, srsf]}
"""


@pytest.mark.slow
def test_sweeps_on_full_disks(start, disk, tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text(EXPERIMENT)
    ended(start("sweep", "e.yaml", "--out", "undisturbed"), 0)
    table = (tmp_path / "undisturbed" / "results.csv").read_bytes()
    sizes = random.Random(SEED)
    for _ in range(DISKS):
        size_kib = sizes.randrange(8, 400, 4)
        with _unmounted(disk(f"size={size_kib}k")) as full:
            # Whatever is full, cache and all, the sweep tells it in one sentence.
            cache = {"PATH": os.environ["PATH"], "HOME": str(full), "ARTIST_CACHE_DIR": str(full)}
            sweep = ("sweep", "e.yaml", "--workers", "2", "--out", full / "out")
            process = start(*sweep, env=cache)
            _, errors = process.communicate(timeout=120)
            assert "Traceback" not in errors, f"{size_kib} KiB: {errors}"
            assert process.returncode in (0, 2), f"{size_kib} KiB: {errors}"
            if process.returncode:
                assert "No space left" in errors, f"{size_kib} KiB: {errors}"
            kept = {
                path: (path / "manifest.json").read_bytes()
                for path in (full / "out").glob("runs/[!.]*")
            }
            left = [path for path in full.glob("out/**/.*") if path.name != ".lock"]
            assert not left, f"{size_kib} KiB: {left}"
            subprocess.run(["mount", "-o", "remount,size=4m", full], check=True)
            ended(start(*sweep, "--resume", env=cache), 0)
            assert (full / "out" / "results.csv").read_bytes() == table
            assert all((path / "manifest.json").read_bytes() == data for path, data in kept.items())


@contextmanager
def _unmounted(folder: Path) -> Iterator[Path]:
    """Free the memory of a disk before the next one is made."""
    yield folder
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
