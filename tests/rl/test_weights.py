"""Is a file of weights either exactly what was written, or refused in a sentence?"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from learned import SMALL, first_come, manifest_of, tree_of, untrained

from artist.errors import ArtistError, ConfigError
from artist.policies.learned.network import Array, LogitStart, best, network_of
from artist.policies.learned.task_options import TaskOptions
from artist.policies.learned.weights import digest_of, read_weights, write_weights

OPTIONS = TaskOptions()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return first_come(tmp_path / "policy.npz", OPTIONS, tree_of(SMALL))


def test_what_was_written_is_read(file: Path) -> None:
    arrays, manifest = read_weights(file)
    again = file.with_name("again.npz")
    write_weights(again, arrays, manifest)
    assert again.read_bytes() == file.read_bytes()
    assert digest_of(arrays) == manifest.digest


def test_every_truncated_file_is_refused(file: Path) -> None:
    whole = file.read_bytes()
    for size in {*range(0, len(whole), 97), len(whole) - 1}:
        file.write_bytes(whole[:size])
        with pytest.raises(
            ArtistError, match=r"policy\.npz: (not a whole \.npz file|the file is em)"
        ):
            read_weights(file)


def test_every_changed_byte_of_the_numbers_is_refused(file: Path) -> None:
    whole = bytearray(file.read_bytes())
    number = whole.rindex(np.float32(-3.0).tobytes())
    whole[number] ^= 1
    file.write_bytes(bytes(whole))
    with pytest.raises(ConfigError, match=r"not a whole \.npz file"):  # the archive has a checksum
        read_weights(file)


def changed(file: Path, **arrays: Any) -> None:
    """Write a file with other arrays but the manifest as it was."""
    old, manifest = read_weights(file)
    write_weights(file, {**old, **arrays}, manifest)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"scores.0.bias": np.ones(9, np.float32)}, "numbers have changed since"),
        ({"scores.0.bias": np.ones(8, np.float32)}, "arrays differ from those that the manifest"),
        ({"scores.0.bias": np.ones(9)}, "arrays differ from those that the manifest"),
        ({"more": np.ones(1, np.float32)}, "arrays differ from those that the manifest"),
    ],
)
def test_arrays_that_differ_from_the_manifest_are_refused(
    file: Path, arrays: dict[str, Any], words: str
) -> None:
    changed(file, **arrays)
    with pytest.raises(ConfigError, match=words):
        read_weights(file)


def test_numbers_that_are_not_finite_are_refused(file: Path) -> None:
    arrays, _ = read_weights(file)
    arrays["scores.0.bias"][0] = np.nan
    write_weights(file, arrays, manifest_of(arrays, OPTIONS))
    with pytest.raises(ConfigError, match="not finite"):
        read_weights(file)


def with_manifest(file: Path, text: Any) -> None:
    arrays, _ = read_weights(file)
    np.savez(file, manifest=text, **arrays)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (np.array("{"), "not JSON"),
        (np.array('{"format": 2}'), "its format is 2, expected 1"),
        (np.array("[]"), "its format is None"),
        (np.array('{"format": 1, "tusk": 1}'), "unknown setting 'tusk'"),
        (np.ones(3, np.float32), "has no manifest"),
    ],
)
def test_bad_manifests_are_refused(file: Path, text: Any, words: str) -> None:
    with_manifest(file, text)
    with pytest.raises(ConfigError, match=words):
        read_weights(file)


def test_nothing_in_a_file_is_executed(file: Path, tmp_path: Path) -> None:
    class Dangerous:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "executed",))

    np.savez(file, allow_pickle=True, manifest=np.array([Dangerous()], dtype=object))
    with pytest.raises(ConfigError, match="not a whole"):
        read_weights(file)
    assert not (tmp_path / "executed").exists()


def test_a_file_that_unpacks_to_very_much_is_refused_before_it_is_unpacked(file: Path) -> None:
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("scores.0.weight.npy", "w", force_zip64=True) as entry,
    ):
        for _ in range(300):
            entry.write(bytes(2**20))
    assert file.stat().st_size < 2**20
    with pytest.raises(ConfigError, match="unpacks to more than 256 MiB"):
        read_weights(file)


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ({"other.0.weight": (3, 3), "other.0.bias": (3,)}, "has no layers scores"),
        ({"scores.0.weight": (3, 4)}, "layer 0 of scores does not fit"),
        ({"scores.0.weight": (3, 4), "scores.0.bias": (4,)}, "layer 0 of scores does not fit"),
        (
            {
                "scores.0.weight": (3, 4),
                "scores.0.bias": (3,),
                "scores.1.weight": (2, 4),
                "scores.1.bias": (2,),
            },
            "layer 1 of scores does not fit",
        ),
    ],
)
def test_layers_that_do_not_fit_are_refused(shapes: dict[str, Any], words: str) -> None:
    arrays: dict[str, Array] = {name: np.ones(s, np.float32) for name, s in shapes.items()}
    with pytest.raises(ConfigError, match=f"weights p.npz: {words}"):
        network_of(arrays, "mlp", OPTIONS, "weights p.npz")


def test_a_start_of_another_length_is_refused(tmp_path: Path) -> None:
    file = untrained(tmp_path / "p.npz", LogitStart(1.0, 2.0, 3.0), OPTIONS)
    arrays, _ = read_weights(file)
    arrays["start"] = arrays["start"][:2]
    with pytest.raises(ConfigError, match="its array start has another length"):
        network_of(arrays, "shared", OPTIONS, "weights p.npz")


def test_a_network_worked_out_by_hand() -> None:
    """tanh(1 x 0.5 + 0.1) and tanh(-0.5), then 2 a + b - 1 and b."""
    arrays: dict[str, Array] = {
        "scores.0.weight": np.array([[1.0], [-1.0]], np.float32),
        "scores.0.bias": np.array([0.1, 0.0], np.float32),
        "scores.1.weight": np.array([[2.0, 1.0], [0.0, 1.0]], np.float32),
        "scores.1.bias": np.array([-1.0, 0.0], np.float32),
    }
    network = network_of(arrays, "mlp", OPTIONS, "here")
    logits = network(np.array([0.5], np.float32))
    expected = [2 * np.tanh(0.6) + np.tanh(-0.5) - 1, np.tanh(-0.5)]
    assert logits.tolist() == pytest.approx(expected, rel=1e-6)


def test_the_first_of_equal_actions_that_are_allowed_is_done() -> None:
    logits = np.array([5.0, 1.0, 3.0, 3.0], np.float32)
    assert best(logits, np.array([False, True, True, True])) == 2


def test_the_manifest_can_be_read_without_artist(file: Path) -> None:
    with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as archive:
        told = json.loads(str(archive["manifest"]))
    assert told["task"]["observation"] == "sensitivity"
