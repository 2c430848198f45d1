"""Campaigns of broken files: each file must end in a result or in one named error, and soon.

`make fuzz` runs the long campaigns: FUZZ_CASES files of each kind, with the seed FUZZ_SEED.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kinds import Kind

from artist.errors import ArtistError

CASES = int(os.environ.get("FUZZ_CASES", "400"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
LIMIT_S = 20
MEMORY_MIB = 2048
MOST_FAILURES = 30


@contextmanager
def soon(limit_s: float = LIMIT_S) -> Iterator[None]:
    """A reader or run that takes too long fails."""

    def late(signum: int, frame: object) -> None:
        raise AssertionError(f"not done within {limit_s} s of processor time")

    previous = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


def check(kind: Kind, folder: Path, data: bytes) -> bool:
    """Let artist use one file. Returns whether it could. Errors other than `ArtistError` escape."""
    path = folder / kind.name
    path.write_bytes(data)
    try:
        with soon():
            kind.read(path)
    except ArtistError as error:
        message = str(error)
        assert message and message.isprintable(), repr(message)
        assert len(message) <= 1600, f"{len(message)} characters: {message[:300]}"
        assert 1 <= error.exit_code <= 255
        return False
    return True


def campaign(kind: Kind, folder: Path, cases: int, seed: int) -> int:
    """Let artist use `cases` broken files; returns how many it could still use.

    Raises:
        AssertionError: lists each different failure with the smallest file that causes it.
    """
    good = 0
    failures: dict[str, tuple[int, bytes]] = {}
    for case in range(cases):
        data = kind.broken(random.Random(f"{seed}.{case}"))
        try:
            good += check(kind, folder, data)
        except Exception as error:  # noqa: BLE001 - all of them are findings
            where = traceback.extract_tb(error.__traceback__)[-1]
            name = f"{type(error).__name__} {str(error)[:200]} ({where.filename}:{where.lineno})"
            key = f"{type(error).__name__}{where.filename}{where.lineno}"
            known = failures.get(key, (0, b"", ""))
            if not known[2] or len(data) < len(known[1]):
                failures[key] = (case, data, name)
            if len(failures) > MOST_FAILURES:
                break
    assert not failures, f"{kind.id}, seed {seed}:\n" + "\n".join(
        f"{name}\n  case {case}: {data[:1500]!r}" for case, data, name in failures.values()
    )
    used_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    assert used_mib < MEMORY_MIB, f"{kind.id}, seed {seed}: {used_mib:.0f} MiB"
    return good
