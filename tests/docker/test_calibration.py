"""Does calibration through a container agree with the one computed in process?"""

from __future__ import annotations

import pytest

from artist.astra.programs.docker_client import DockerEngine
from artist.astra.programs.images import load_image
from artist.calibrate.fit_models import FittedModel, calibrate
from artist.calibrate.measurements import default_measurements
from artist.cluster.fabric import load_fabric
from artist.errors import BackendError
from artist.run import open_backend

pytestmark = pytest.mark.docker


def fitted(backend: str) -> list[FittedModel]:
    figures, fabric, answering = (
        default_measurements(),
        load_fabric("dally2025"),
        open_backend(backend),
    )
    return [calibrate(model, figures, fabric, answering) for model in figures.models()]


def test_all_models_are_calibrated_through_a_container_as_in_process() -> None:
    try:
        DockerEngine().image_id(load_image("local"))
    except BackendError as missing:
        pytest.skip(str(missing))
    through = fitted("astra-docker:local")
    assert through == fitted("analytical")
    assert len(through) == 6
    assert all(one.error <= 0.01 for one in through)
