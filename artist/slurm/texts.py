"""Reads the texts that Slurm's programs print: records of `scontrol show`, tables of `sacctmgr -P`.

Source: scontrol(1) and sacctmgr(1) of Slurm 22.05, and outputs recorded from it.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from artist.errors import ConfigError, shortened
from artist.io.reading import cannot_be_read, open_binary, read_text

_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_/:-]*)=(.*)", re.DOTALL)
_SETTING = re.compile(r"(\S+)\s+=\s*(.*)")
_RANGES = re.compile(r"([^\[\]]*)\[([\d,-]+)\](.*)")
_MOST_HOSTS = 1_000_000

MOST_BYTES = 256 * 2**20
"""The largest text: Slurm prints about 700 bytes per node, and as many per waiting job."""

NOTHING = ("", "(null)", "N/A", "NONE", "None", "n/a")


@dataclass(frozen=True)
class Record:
    """Keys and values of one thing, such as a node, and their place in the file."""

    place: str
    values: Mapping[str, str]

    def text(self, key: str) -> str:
        """The value; empty if there is none."""
        value = self.values.get(key, "")
        return "" if value in NOTHING else value

    def needed(self, key: str) -> str:
        """A value that must be there.

        Raises:
            ConfigError: it is missing.
        """
        if not (value := self.text(key)):
            raise ConfigError(f"{self.place}: no {key}; print the text again, whole")
        return value

    def count(self, key: str, default: int = 0) -> int:
        """A whole number, zero or more.

        Raises:
            ConfigError: the value is something else.
        """
        value = self.text(key)
        if not value:
            return default
        if not value.isdecimal() or len(value) > 12:
            raise self.error(key, "a whole number")
        return int(value)

    def error(self, key: str, expected: str) -> ConfigError:
        """An error about one value."""
        got = shortened(self.values.get(key))
        return ConfigError(f"{self.place}: {key} is {got}, expected {expected}; print it again")


def lines(path: Path) -> list[str]:
    """The lines of a text of Slurm.

    Raises:
        ConfigError: the file cannot be read.
    """
    return read_text(path, most_bytes=MOST_BYTES).splitlines()


def unpacked(path: Path) -> str:
    """The text in a file packed by gzip.

    Raises:
        ConfigError: it cannot be unpacked.
    """
    try:
        return gzip.decompress(path.read_bytes()).decode()
    except (OSError, EOFError, ValueError) as cause:
        raise ConfigError(f"{path}: cannot be unpacked ({cause}); copy it again") from cause


def records(path: Path, first: str) -> list[Record]:
    """The records that `scontrol show` prints, also with `-o`. Each begins with the key `first`.

    Raises:
        ConfigError: the file cannot be read, or does not begin with a record.
    """
    found: list[Record] = []
    values: dict[str, str] = {}
    key = ""
    for number, line in enumerate(lines(path), start=1):
        if line.lstrip().startswith("#"):
            continue
        if not found and line.startswith("No "):  # `No reservations in the system`
            continue
        for word in line.split():
            match = _KEY.fullmatch(word)
            if match is not None and match[1] == first:
                values, key = {}, ""
                found.append(Record(f"{path}:{number}", values))
            if not found:
                raise ConfigError(
                    f"{path}:{number}: begins with {shortened(word)}, expected {first}=...; give "
                    "what Slurm prints"
                )
            if match is not None and match[1] not in values:
                key = match[1]
                values[key] = match[2]
            elif key:  # a value with spaces in it
                values[key] += f" {word}"
    return found


def settings(path: Path) -> dict[str, str]:
    """The settings that `scontrol show config` prints: `KEY = VALUE`, one per line."""
    matches = (_SETTING.fullmatch(line.strip()) for line in lines(path))
    return {match[1]: match[2] for match in matches if match and match[2] not in NOTHING}


def table(path: Path, needed: tuple[str, ...]) -> list[Record]:
    """The table that `sacctmgr -P` prints: a header, and cells between bars.

    Raises:
        ConfigError: a column or a cell is missing.
    """
    return list(_rows(path, iter(lines(path)), needed, ()))


def log_rows(path: Path, needed: tuple[str, ...], kept: tuple[str, ...] = ()) -> Iterator[Record]:
    """The rows that `sacct -P` prints, one by one; only the columns `kept` if any are given.

    Raises:
        ConfigError: as `table`.
    """
    return _rows(path, _lines(path), needed, kept)


def _lines(path: Path) -> Iterator[str]:
    """The lines of a text file, one by one."""
    try:
        with open_binary(path) as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield line.decode("utf-8-sig").rstrip("\r\n")
                except UnicodeDecodeError as cause:
                    at = f"{path}:{number}"
                    raise ConfigError(f"{at}: not UTF-8 text (byte {cause.start})") from cause
    except (OSError, ValueError) as cause:
        raise ConfigError(cannot_be_read(path, cause)) from cause


def _rows(
    path: Path, rows: Iterator[str], needed: tuple[str, ...], kept: tuple[str, ...]
) -> Iterator[Record]:
    """The rows of a table of `sacctmgr -P` or `sacct -P`."""
    names = [name.strip() for name in next(rows, "").split("|")]
    for name in needed:
        if name not in names:
            raise ConfigError(
                f"{path}:1: no column {name}, expected those of sacctmgr -P ({', '.join(needed)})"
            )
    columns = [(name, x) for x, name in enumerate(names) if name in kept or not kept]
    for number, line in enumerate(rows, start=2):
        place = f"{path}:{number}"
        cells = cells_of(line, len(names), place)
        yield Record(place, {name: cells[x] for name, x in columns})


def cells_of(line: str, columns: int, place: str) -> list[str]:
    """The cells of a line of a table that Slurm printed."""
    cells = line.split("|")
    if len(cells) != columns:
        bar = ", without the column that has a | in it, such as SubmitLine"
        raise ConfigError(
            f"{place}: {len(cells)} cells, expected {columns}; print it again"
            f"{bar if len(cells) > columns else ''}"
        )
    return cells


def hosts(text: str, place: str) -> list[str]:
    """The names in a host list.

    >>> hosts("n[08-10,12],login1", "here")
    ['n08', 'n09', 'n10', 'n12', 'login1']

    Raises:
        ConfigError: a range is broken, or the list is too long.
    """
    names = [name for part in _split(text) for name in _expanded(part, place)]
    if len(names) > _MOST_HOSTS:
        raise ConfigError(f"{place}: a list of more than {_MOST_HOSTS} hosts")
    return names


def host_list(names: Sequence[str]) -> str:
    """A host list with these names in this order.

    >>> host_list(["n08", "n09", "n10", "login1"])
    'n[08-10],login1'
    """
    parts: list[str] = []
    for (before, width), group in groupby(names, _before_number):
        numbers = [name[len(before) :] for name in group]
        if not width or len(numbers) == 1:
            parts += [before + number for number in numbers]
            continue
        ranges: list[list[str]] = []
        for number in numbers:
            if ranges and int(number) == int(ranges[-1][-1]) + 1:
                ranges[-1].append(number)
            else:
                ranges.append([number])
        texts = [x[0] if len(x) == 1 else f"{x[0]}-{x[-1]}" for x in ranges]
        parts.append(f"{before}[{','.join(texts)}]")
    return ",".join(parts)


def _before_number(name: str) -> tuple[str, int]:
    """A name without the number at its end, and the digits of that number."""
    before = name.rstrip("0123456789")
    return before, len(name) - len(before)


def _split(text: str) -> Iterator[str]:
    """Split at the commas outside of brackets."""
    yield from filter(None, re.split(r",(?![^\[]*\])", text))


def _expanded(part: str, place: str) -> Iterator[str]:
    """The hosts of a list such as `n[01-16]`."""
    match = _RANGES.fullmatch(part)
    if match is None:
        if "[" in part or "]" in part:
            raise ConfigError(f"{place}: {shortened(part)} is not a list of hosts such as n[01-16]")
        yield part
        return
    before, ranges, after = match.groups()
    for one in ranges.split(","):
        low, dash, high = one.partition("-")
        high = high if dash else low
        if (
            not low.isdecimal()
            or not high.isdecimal()
            or not 0 <= int(high) - int(low) < _MOST_HOSTS
        ):
            raise ConfigError(f"{place}: {shortened(part)} is not a list of hosts such as n[01-16]")
        for number in range(int(low), int(high) + 1):
            yield from _expanded(f"{before}{number:0{len(low)}d}{after}", place)


def whole(text: str) -> str:
    """A whole number as Slurm prints it: 2K is 2,048. Empty if it is none."""
    match = _CONVERTED.fullmatch(text)
    if match is None:
        return ""
    number = float(match[1]) * 1024 ** _UNITS.index(match[2])
    return str(int(number)) if number == int(number) else ""


_UNITS = ("", "K", "M", "G", "T")
_CONVERTED = re.compile(r"(\d{1,9}(?:\.\d{1,9}(?=[KMGT]))?)([KMGT]?)", re.ASCII)
