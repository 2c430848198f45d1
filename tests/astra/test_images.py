"""Are the shipped entries in the list of images valid, and mistakes named?"""

from __future__ import annotations

from pathlib import Path

import pytest

from artist.astra.programs.images import load_image, load_images
from artist.errors import ConfigError

GOOD = """
images:
  mine:
    image: mine:1
    command: [/bin/astra, --fast]
    obtain: docker build -t mine:1 .
    source: test
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "images.yaml"
    path.write_text(text)
    return path


def test_official_image() -> None:
    entry = load_image()
    assert entry.image.startswith("astrasim/astra-sim-service")
    assert entry.command[0].endswith("/bin/AstraSim_Analytical_Congestion_Unaware")
    assert entry.dialect == "astra2"


def test_all_shipped_entries_say_how_to_get_them() -> None:
    assert all(entry.obtain and entry.source for entry in load_images().values())


def test_own_file(tmp_path: Path) -> None:
    entry = load_image("mine", written(tmp_path, GOOD))
    assert entry.command == ("/bin/astra", "--fast")
    assert entry.memory == "4g"


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="did you mean 'official'"):
        load_image("oficial")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("image:", "imagee:", r"images\.yaml:\d: unknown setting 'images\.mine\.imagee'.*'image'"),
        ("source: test", "source: test\n    memry: 1g", r"images\.yaml:8: unknown setting"),
        ("/bin/astra", "bin/astra", "must be absolute"),
        ("source: test", "source: test\n    dialect: astra3", "unknown dialect"),
        ("source: test", "source: test\n    digest: latest", "hexadecimal"),
        ("source: test", "source: test\n    memory: lots", "memory"),
        ("source: test", "source: test\n    pids_limit: 1", "pids_limit"),
        ("image: mine:1", "image: --privileged", "image"),
        ("command: [/bin/astra, --fast]", "command: []", "command"),
    ],
)
def test_mistakes(old: str, new: str, why: str, tmp_path: Path) -> None:
    path = written(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(ConfigError, match=why):
        load_images(path)
