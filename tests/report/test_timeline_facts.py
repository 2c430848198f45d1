"""Does the timeline tell which GPUs a job shares?"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import artist.report

TIMELINE = Path(artist.report.__file__).parent / "assets" / "timeline.js"


@pytest.mark.skipif(not shutil.which("node"), reason="needs a JavaScript engine: node")
@pytest.mark.parametrize(
    ("sharers", "width", "told"),
    [(None, 4, "4"), ([1], 4, "4"), ([3], 4 / 3, "4, shared by 3 jobs")],
)
def test_shared_gpus_are_shown_as_shared(
    sharers: list[int] | None, width: float, told: str
) -> None:
    run = {
        "place": [0], "places": [[7, 0, width]], "job": [0], "jobs": ["a"], "models": ["vgg16"],
        "model": [0], "kind": [0], "kinds": [[0], [0], [1.0]], "shapes": ["4"], "ended": [0],
        "endings": ["it finished"], "ends": [2], "length": [2], "step": 1.0, "sharers": sharers,
    }  # fmt: skip
    script = (
        f"{TIMELINE.read_text()}; const run = {json.dumps(run)}; run.levelOf = () => 'machine';"
        "console.log(JSON.stringify(placementFacts(run, 0)))"
    )
    ran = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True)
    facts = json.loads(ran.stdout)
    assert (facts["gpus"], facts["placement"]) == (told, "7:4")
