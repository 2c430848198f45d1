"""`artist doctor`: says what works on this machine, and how to repair what does not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial

from artist.cli.options import FormatOption
from artist.cli.output import Format, print_json, print_table
from artist.errors import ArtistError


def doctor(format_: FormatOption = Format.TABLE) -> None:
    """Check the core, cache, fabrics, Docker engine and every image; changes nothing."""
    from artist.astra.programs.images import load_images
    from artist.cluster.fabric import fabric_names

    checks: list[tuple[str, Callable[[], str]]] = [
        ("core", _core),
        ("in-process backend", _analytical),
        ("cache of estimates", _cache),
        ("Docker engine", _engine),
    ]
    checks += [(f"fabric {name}", partial(_fabric, name)) for name in fabric_names()]
    checks += [(f"image {name}", partial(_image, name)) for name in load_images()]
    rows = [_try(name, check) for name, check in checks]
    if format_ is Format.JSON:
        print_json([dict(zip(("check", "ok", "detail"), row, strict=True)) for row in rows])
    else:
        shown = [(name, "ok" if ok else "no", detail) for name, ok, detail in rows]
        print_table("what works here", ("check", "", "detail"), shown)


def _try(name: str, check: Callable[[], str]) -> tuple[str, bool, str]:
    try:
        return name, True, check()
    except ArtistError as error:
        return name, False, str(error)


def _core() -> str:
    from artist.engine.compiled_core import core

    return core()


def _analytical() -> str:
    from artist.cluster.fabric import load_fabric
    from artist.estimates.latency_service import LatencyService
    from artist.run import open_backend
    from artist.workload.models import workload

    service = LatencyService(load_fabric("dally2025"), open_backend("analytical"), workload)
    return f"resnet50 on 4+4: {service.estimate('resnet50', (4, 4)).finish_ns} ns"


def _cache() -> str:
    from artist.estimates.cache import DiskStore, cache_dir

    with closing(DiskStore(cache_dir())) as store:
        facts = store.info()
        return f"{facts['entries']} entries in {facts['folder']}"


def _fabric(name: str) -> str:
    from artist.cluster.fabric import load_fabric
    from artist.cluster.links import oversubscription_text

    ratios = oversubscription_text(load_fabric(name))
    return f"oversubscription {ratios}" if ratios else "states no uplinks"


def _engine() -> str:
    from artist.astra.programs.docker_client import DockerEngine

    return f"version {DockerEngine().version()}"


def _image(name: str) -> str:
    from artist.astra.programs.docker_client import DockerEngine
    from artist.astra.programs.images import OWN_MODEL, load_image

    entry = load_image(name)
    image_id = DockerEngine().image_id(entry)
    return f"{image_id}: {OWN_MODEL}" if entry.is_artist else image_id
