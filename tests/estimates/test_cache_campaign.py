"""Does every command end with a right result, whatever happened to the cache?

Each case breaks a sound cache in one way, perhaps under a lock, and runs a command. The command
must end with the result that it has without a cache, or with one sentence, and touch no file but
the cache's own.
"""

from __future__ import annotations

import io
import json
import random
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

import pytest
import typer
from cache_breaking import BREAKERS, Place, locked

from artist.cli.main import application
from artist.errors import ConfigError
from artist.estimates import text_cache

LIMIT_S = 60
TRACE = """job_id,arrival_s,gpus,model,iterations,compute_s
0,0,12,alexnet,1000,0.002
1,0,9,vgg11,1000,0.002
2,5,17,alexnet,1000,0.002
"""
SIM = ("sim", "--trace", "jobs.csv", "--racks", "1", "--quiet", "--format", "json")
COMMANDS = [SIM, *(("cache", verb, "--format", "json") for verb in ("info", "verify", "clear"))]


@contextmanager
def soon() -> Iterator[None]:
    """A command that hangs fails."""

    def late(signum: int, frame: object) -> None:
        raise AssertionError(f"not done within {LIMIT_S} s")

    previous = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


class Campaign:
    """A sound cache in a folder, and the commands that are run on it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = folder / "place"
        monkeypatch.chdir(folder)
        monkeypatch.setenv("ARTIST_CACHE_DIR", str(self.root / "user"))
        monkeypatch.setattr(text_cache, "WAIT_S", 0.01)
        monkeypatch.setattr(text_cache, "MAX_STEPS", 2_000_000)
        Path("jobs.csv").write_text(TRACE)
        self.command = typer.main.get_command(application(("sim", "cache")))
        self.wanted = self.printed((*SIM, "--no-cache"))
        assert self.printed(SIM) == self.wanted
        self.place = Place(self.root, (self.root / "user/artist-estimates/cache.db").read_bytes())

    def printed(self, arguments: tuple[str, ...]) -> dict[str, object]:
        output = io.StringIO()
        with redirect_stdout(output):
            self.command.main(list(arguments), standalone_mode=False)
        facts: dict[str, object] = json.loads(output.getvalue())
        facts.pop("wall_s", None)
        return facts

    def case(self, rng: random.Random) -> str:
        """Break the cache, run a command, and say how it ended."""
        self.place.restore()
        rng.choice(BREAKERS)(rng, self.place)
        before = self.place.foreign()
        command = rng.choice(COMMANDS)
        with locked(rng, self.place), soon():
            ended = self.ended(command)
        assert self.place.foreign() == before
        with soon():
            assert self.ended(SIM) == "sim"
        assert self.place.foreign() == before
        return ended

    def ended(self, command: tuple[str, ...]) -> str:
        try:
            facts = self.printed(command)
        except ConfigError as error:
            assert command != SIM
            assert str(error).isprintable()
            return "sentence"
        assert command != SIM or facts == self.wanted
        return "sim" if command == SIM else command[1]


def run(cases: int, seed: int, campaign: Campaign) -> Counter[str]:
    ends: Counter[str] = Counter()
    for case in range(cases):
        try:
            ends[campaign.case(random.Random(f"{seed}.{case}"))] += 1
        except BaseException as cause:
            cause.add_note(f"seed {seed}, case {case}")
            raise
    return ends


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    return Campaign(tmp_path, monkeypatch)


def test_a_few_hundred_broken_caches(campaign: Campaign) -> None:
    ends = run(200, 0, campaign)
    assert ends.keys() == {"sim", "info", "verify", "clear", "sentence"}


@pytest.mark.slow
def test_many_broken_caches(campaign: Campaign) -> None:
    ends = run(5000, 1, campaign)
    assert ends.total() == 5000
    assert ends["sentence"] < 2000
