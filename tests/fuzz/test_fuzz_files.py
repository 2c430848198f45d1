"""Broken files of every kind end in a result or one named error, and soon."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from campaign import CASES, SEED, campaign, check
from folder_kinds import OPTIONAL, folder_kinds
from kinds import kinds

from artist.errors import ArtistError

KINDS = kinds() | folder_kinds()


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, where names in the files lead nowhere."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "files").mkdir()
    return tmp_path / "files"


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_broken_files(empty: Path, kind: str) -> None:
    cases = 60 if kind.startswith(("run-", "read-")) else 40  # few of these can still be used
    assert 0 < campaign(KINDS[kind], empty, cases, seed=0) < cases


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_broken_files(empty: Path, kind: str) -> None:
    assert 0 < campaign(KINDS[kind], empty, CASES, SEED) < CASES


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in OPTIONAL])
def test_a_path_that_is_not_a_file_is_refused(empty: Path, kind: str) -> None:
    """A folder, a pipe that nobody writes to, a device, a link to itself, nothing at all."""
    path = empty / KINDS[kind].name
    check(KINDS[kind], empty, b"")

    def refused() -> bool:
        try:
            KINDS[kind].read(path)
        except ArtistError as error:
            return path.name in str(error)
        return False

    for make in (
        path.mkdir,
        lambda: os.mkfifo(path),
        lambda: path.symlink_to("/dev/zero"),
        lambda: path.symlink_to(path),
        lambda: None,
    ):
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
        make()
        assert refused(), make
