"""Writes calibrations and fabrics to `./astra_configs`, where artist looks first; draws fits."""

from __future__ import annotations

from pathlib import Path

import yaml

from artist.calibrate.fit_fabric import FabricFit
from artist.errors import ConfigError
from artist.io.documents import Document
from artist.io.figures import new_figure, save_figure
from artist.io.reading import exists
from artist.io.writing import write_whole

USER_FOLDER = Path("astra_configs")


def document_file(folder: str, name: str, *, overwrite: bool) -> Path:
    """`./astra_configs/FOLDER/NAME.yaml`, if it may be written; checked before the fit.

    Raises:
        ConfigError: `name` is not a plain file name, or the file exists and not `overwrite`.
    """
    if not name or name != Path(name).name or name.startswith("."):
        raise ConfigError(f"name {name!r}: give a plain file name without folders")
    path = USER_FOLDER / folder / f"{name}.yaml"
    if exists(path) and not overwrite:
        raise ConfigError(
            f"{path}: exists already; choose another name, or replace it with --overwrite"
        )
    return path


def write_document(document: Document, path: Path, header: str) -> None:
    """Write a calibration or a fabric as YAML.

    `header` becomes comment lines at the top.

    Raises:
        ConfigError: the file cannot be written.
    """
    data = document.model_dump(mode="json", exclude_none=True)
    body = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
    comment = "".join(f"# {line}\n" for line in header.splitlines())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise ConfigError(f"{path}: cannot be written ({cause.strerror or cause})") from cause
    write_whole(path, comment + body)


def plot_fabric(fit: FabricFit, path: Path) -> None:
    """Draw the measured times over the size, the fitted line and its confidence band.

    Raises:
        ConfigError: matplotlib is missing, or the file cannot be written.
    """
    sizes = sorted({size for size, _ in fit.log.points()})
    alpha, beta = fit.line.alpha_us, fit.line.beta_us_per_byte
    figure = new_figure()
    axes = figure.add_subplot()
    axes.loglog(*zip(*fit.log.points(), strict=True), "o", ms=4, label="measured")
    axes.loglog(sizes, [fit.line.time_us(size) for size in sizes], "-", label="alpha + beta S")
    low = [max(alpha.low, 1e-3) + max(beta.low, 0) * size for size in sizes]
    high = [alpha.high + beta.high * size for size in sizes]
    axes.fill_between(sizes, low, high, alpha=0.25, label="99 % confidence")
    level = fit.level
    axes.set_title(
        f"{fit.log.operation} on {level.placement}: {level.bandwidth_gib_per_s.value:.4g} GiB/s, "
        f"{level.latency_ns.value:.4g} ns"
    )
    axes.set_xlabel("size, bytes")
    axes.set_ylabel("time, us")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    save_figure(figure, path)
