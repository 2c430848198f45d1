"""Does an output replace only what it may, appear whole, and clean up after killed commands?"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from artist.errors import ConfigError
from artist.io import writing
from artist.io.partials import FORMER, PARTIAL, is_partial, partial_path, remove_leftovers
from artist.io.writing import check_file, check_folder, whole_folder, write_whole

# A process that dies while it writes; it prints the temporary names that it leaves.
DYING = """
import os, sys
from pathlib import Path
from artist.io.partials import FORMER, partial_path
out = Path(sys.argv[1])
half, former = partial_path(out), partial_path(out, FORMER)
half.write_text("half")
if len(sys.argv) > 2:
    (former / out.name).mkdir(parents=True)
    (former / out.name / "row").write_text("earlier")
os.kill(os.getpid(), 9)
"""


def killed_writer(out: Path, *more: str) -> None:
    subprocess.run([sys.executable, "-c", DYING, out, *more], check=False)


def foreign(folder: Path) -> Path | None:
    return next((path for path in sorted(folder.iterdir()) if path.name != "row"), None)


@pytest.fixture(params=["link", "dangling", "pipe", "device", "socket"])
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "special"
    if request.param == "link":
        (tmp_path / "target").write_text("years of work")
        path.symlink_to("target")
    elif request.param == "dangling":
        path.symlink_to("nowhere")
    elif request.param == "pipe":
        os.mkfifo(path)
    elif request.param == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(path))
    else:
        try:
            os.mknod(path, 0o20666, os.makedev(1, 3))  # as /dev/null
        except PermissionError:
            pytest.skip("only root makes devices")
    return path


def test_links_pipes_and_devices_are_never_replaced(special: Path) -> None:
    before, names = special.lstat(), sorted(special.parent.iterdir())
    with pytest.raises(ConfigError, match="special: is a"):
        check_file(special, "-o")
    with pytest.raises(ConfigError, match="special: is a"):
        write_whole(special, "text")
    with pytest.raises(ConfigError, match="special: is a"):
        check_folder(special, "run directory", foreign, overwrite=True)
    assert special.lstat() == before
    assert sorted(special.parent.iterdir()) == names


def test_a_link_that_appears_during_the_writing_stays(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(ConfigError, match="symbolic link"), writing.whole_file(out) as partial:
        partial.write_text("text")
        out.symlink_to("nowhere")
    assert out.is_symlink()
    assert list(tmp_path.iterdir()) == [out]


def test_a_plain_file_is_replaced(tmp_path: Path) -> None:
    for text in ("first", "second"):
        write_whole(tmp_path / "out", text)
    assert (tmp_path / "out").read_text() == "second"


def test_content_is_on_the_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, str]] = []
    replace, rename, fsync = Path.replace, Path.rename, os.fsync

    def synced(descriptor: int) -> None:
        done.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))
        fsync(descriptor)

    def renamed(method):
        return lambda path, to: (done.append(("rename", path.name)), method(path, to))[1]

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed(replace))
    monkeypatch.setattr(Path, "rename", renamed(rename))
    write_whole(tmp_path / "file", "text")
    with whole_folder(tmp_path / "folder", overwrite=False) as scratch:
        (scratch / "row").write_text("text")
    (_, one), (_, same), (_, parent), *more = done
    assert [step for step, _ in done] == [
        "sync",
        "rename",
        "sync",
        "sync",
        "sync",
        "rename",
        "sync",
    ]
    assert one == same and is_partial(Path(one)) and parent == tmp_path.name
    assert [name for _, name in more] == ["row", scratch.name, scratch.name, tmp_path.name]


def test_leftovers_of_a_killed_writer_are_removed_by_the_next(tmp_path: Path) -> None:
    killed_writer(tmp_path / "out")
    assert len(list(tmp_path.iterdir())) == 1
    write_whole(tmp_path / "other", "text")
    assert len(list(tmp_path.iterdir())) == 2
    write_whole(tmp_path / "out", "text")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "out"]


def test_files_that_may_be_in_use_or_belong_to_others_stay(tmp_path: Path) -> None:
    kept = [
        partial_path(tmp_path / "out"),  # of this process, which lives
        tmp_path / ".out.0123456789abcdef-1-1-0.partial",  # of another machine
        tmp_path / ".out.1.partial",
        tmp_path / ".out.swp",
    ]
    for path in kept:
        path.write_text("mine")
    write_whole(tmp_path / "out", "text")
    assert all(path.read_text() == "mine" for path in kept)


def test_a_folder_that_was_about_to_be_replaced_comes_back(tmp_path: Path) -> None:
    out = tmp_path / "run"
    killed_writer(out, "replacing")
    assert not out.exists()
    remove_leftovers(out)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (out / "row").read_text() == "earlier"
    killed_writer(out, "replacing")
    (out / "row").write_text("newer")
    remove_leftovers(out)
    assert (out / "row").read_text() == "newer"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_an_interruption_leaves_the_earlier_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    with whole_folder(out, overwrite=True) as scratch:
        (scratch / "row").write_text("earlier")
    rename = Path.rename

    def interrupted(path: Path, to: Path) -> Path:
        if path.name.endswith(PARTIAL):
            raise KeyboardInterrupt
        return rename(path, to)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), whole_folder(out, overwrite=True) as scratch:
        (scratch / "row").write_text("newer")
    assert (out / "row").read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [out]


def test_a_folder_is_replaced_only_when_asked_and_only_if_it_is_one(tmp_path: Path) -> None:
    out = tmp_path / "run"
    for overwrite in (False, True):
        check_folder(out, "run directory", foreign, overwrite=overwrite)
    out.mkdir()
    check_folder(out, "run directory", foreign, overwrite=False)
    (out / "row").write_text("earlier")
    with pytest.raises(ConfigError, match=rf"^{out}: holds a run directory already.*--over"):
        check_folder(out, "run directory", foreign, overwrite=False)
    check_folder(out, "run directory", foreign, overwrite=True)
    (out / "row").rename(out / "thesis.tex")
    for overwrite in (False, True):
        with pytest.raises(
            ConfigError, match=r"is not a run directory \(artist did not write thesi"
        ):
            check_folder(out, "run directory", foreign, overwrite=overwrite)


def test_what_another_process_wrote_meanwhile_stays(tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    with (
        pytest.raises(ConfigError, match="another process has written there meanwhile"),
        whole_folder(out, overwrite=False) as scratch,
    ):
        (scratch / "row").write_text("mine")
        (out / "row").write_text("theirs")
    assert (out / "row").read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [out]


def test_leftovers_of_a_name_that_begins_alike_stay(tmp_path: Path) -> None:
    one, other = (tmp_path / f"{'r' * 60}{end}" for end in "ab")
    killed_writer(other, "replacing")
    before = set(tmp_path.iterdir())
    remove_leftovers(one)
    assert set(tmp_path.iterdir()) == before
    remove_leftovers(other)
    assert (other / "row").read_text() == "earlier"


def test_temporary_names_fit_any_file_system_and_are_known_again(tmp_path: Path) -> None:
    for kind in (PARTIAL, FORMER):
        path = partial_path(tmp_path / ("\u4e16" * 80), kind)
        assert len(path.name.encode()) <= 255
        assert is_partial(path)
    assert not is_partial(tmp_path / ".notes.partial")
