"""The folder of a training: `policy.npz`, its manifest, the checkpoint and the curves."""

from __future__ import annotations

import shutil
from pathlib import Path

from artist.errors import ConfigError
from artist.io.writing import check_folder

WEIGHTS, CHECKPOINT, MANIFEST, CURVES = "policy.npz", "checkpoint.npz", "manifest.json", "curves"


def check_training_folder(out: Path, *, resume: bool, overwrite: bool) -> None:
    """Refuse a folder before a training begins. Nothing is changed.

    Raises:
        ConfigError: it holds something else, a training that is not to be replaced, or nothing to
            resume.
    """
    if resume and not (out / CHECKPOINT).is_file():
        raise ConfigError(f"--resume: {out} has no {CHECKPOINT}; leave --resume out")
    check_folder(out, "training", _is_training, overwrite=overwrite or resume)


def make_training_folder(out: Path, *, resume: bool) -> None:
    """Make the folder; what an earlier training left there goes, unless it is resumed."""
    if not resume and out.is_dir():
        for name in (WEIGHTS, CHECKPOINT, MANIFEST):
            (out / name).unlink(missing_ok=True)
        shutil.rmtree(out / CURVES, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)


def _is_training(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} <= {WEIGHTS, CHECKPOINT, MANIFEST, CURVES}
