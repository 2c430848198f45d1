"""Ways to break a file: its bytes, its words, or the structure of its data."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import yaml

Bytes = Callable[[bytes, random.Random], bytes]

# What a cell, a number or a name may turn into by accident or ill will.
WORDS = [
    b"1e300", b"-1e300", b"1e-320", b"1000000000", b"-1", b"0", b"-0", b"nan", b"inf", b"None", b"",
    b"0x10", b"1_0", b"9" * 400, b"2020-13-01 00:00:00", b"9999-12-31 23:59:59", b"\xff\xfe",
    b"\x00", b'"', b"\t", b",", b"\r", b"[" * 50, b"{}", b"null", b"true", "\u0663".encode(),
    b"9223372036854775808", b"1e308", b"0.1e-308", b"%s%n", b"../../..", b"\xef\xbb\xbf", b"' ",
]  # fmt: skip


def flip(data: bytes, rng: random.Random) -> bytes:
    """Another byte somewhere."""
    at = rng.randrange(len(data))
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def cut(data: bytes, rng: random.Random) -> bytes:
    """The file ends too soon."""
    return data[: rng.randrange(len(data))]


def remove(data: bytes, rng: random.Random) -> bytes:
    """A few bytes are missing."""
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randrange(1, 12) :]


def double(data: bytes, rng: random.Random) -> bytes:
    """A part is repeated."""
    first, last = sorted(rng.randrange(len(data)) for _ in range(2))
    return data[:last] + data[first:last] + data[last:]


def swap_lines(data: bytes, rng: random.Random) -> bytes:
    """Two lines are swapped."""
    lines = data.split(b"\n")
    first, second = (rng.randrange(len(lines)) for _ in range(2))
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def absurd(data: bytes, rng: random.Random) -> bytes:
    """One word becomes something that it should not be."""
    marks = [i for i, byte in enumerate(data) if byte in b'\t, \n":|+/']
    if len(marks) < 2:
        return rng.choice(WORDS)
    first = rng.randrange(len(marks) - 1)
    return data[: marks[first] + 1] + rng.choice(WORDS) + data[marks[first + 1] :]


def reencode(data: bytes, rng: random.Random) -> bytes:
    """Another program saved it: other line ends, a byte order mark, another encoding."""
    text = data.decode("utf-8", "replace")
    return rng.choice(
        [
            text.replace("\n", "\r\n").encode(),
            text.replace("\n", "\r").encode(),
            b"\xef\xbb\xbf" + data,
            text.encode("utf-16"),
            text.encode("utf-32"),
            text.replace("a", "\u00e4").encode("latin-1", "replace"),
            text.replace(" ", "\u00a0").encode(),
        ]
    )


BYTE_MUTATIONS: list[Bytes] = [flip, cut, remove, double, swap_lines, absurd, absurd, absurd]


def broken_bytes(data: bytes, rng: random.Random) -> bytes:
    """One to four mutations of the bytes."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        mutate = reencode if rng.random() < 0.03 else rng.choice(BYTE_MUTATIONS)
        data = mutate(data, rng) or b" "
    return data


# YAML for values that no setting should have; they are pasted in as they stand here.
VALUES = [
    "0", "-0", "-0.0", "-1", "1e308", "1e309", "-1e308", "1e-320", ".nan", ".inf", "-.inf", "1",
    "2", "3", "7", "8", "1000000000", "1000000000000", "9223372036854775808", "1" + "0" * 400,
    "9" * 5000, "0x" + "f" * 6000, "0b", "0o8", "0.1", "1_000", "12:30:45", "2001-01-01",
    "2001-99-99", "true", "no", "null", "~", '""', '" "', "a", '"' + "a" * 3000 + '"', '"\\0"',
    '"\\ud800"', '"\\n\\e[31m"', '"\u202e\U0001f600"', "../../etc/passwd", "/dev/zero", "/dev/tty",
    "/", ".", "..", "{}", "[]", "[[[[[[1]]]]]]", "[" * 60 + "]" * 60, "[" * 3000 + "]" * 3000,
    "{a: {b: {c: 1}}}", "{1: 2}", "{null: null}", "? [a]", "!!int ''", "!!float ''", "!!bool x",
    "!!timestamp x", "!!binary '*'", "!!set {a}", "!!omap [a: 1]", "!!python/object:os.system x",
    "!!str 5", "&a [*a]", "*missing", "<<", "|", ">-", "@x", "`x`", "%x", "- - -", "name.yaml",
    "none", "auto", "nan", "poisson:1e-9", "poisson:1e9", "poisson:0", "recorded:/dev/zero",
    "recorded:", "fifo", "dally", "4+4,8/2", "[1, 2]", "[[8, 8], [8]]", "[[[4, 4]]]", "[true]",
]  # fmt: skip


def broken_yaml(data: Any, rng: random.Random) -> bytes:
    """One to three mutations of the structure, written as YAML; sometimes its bytes too."""
    data = copy.deepcopy(data)
    pasted: dict[str, str] = {}
    for _ in range(rng.choice((1, 1, 2, 3))):
        _mutate(data, rng, pasted)
    text = yaml.safe_dump(data, sort_keys=False, default_flow_style=rng.random() < 0.2)
    for mark, value in pasted.items():
        text = text.replace(mark, value)
    if rng.random() < 0.1:
        text = _bomb(rng) + text
    data = text.encode("utf-8", "surrogatepass")
    return broken_bytes(data, rng) if rng.random() < 0.2 else data


def _mutate(data: Any, rng: random.Random, pasted: dict[str, str]) -> None:
    places = list(_places(data))
    if not places:
        return
    holder, key = rng.choice(places)
    mark = f"pasted{len(pasted)}x"
    action = rng.random()
    if action < 0.6:
        pasted[mark] = rng.choice(VALUES)
        holder[key] = mark
    elif action < 0.7:
        del holder[key]
    elif action < 0.8 and isinstance(holder, dict):
        pasted[mark] = rng.choice([*VALUES[:60], f"{key}s", str(key)[1:] or "x"])
        holder[mark] = holder.pop(key)
    elif action < 0.9:
        other, where = rng.choice(places)
        holder[key] = copy.deepcopy(other[where])
    elif isinstance(holder, list):
        holder.extend(copy.deepcopy(holder) * rng.choice((1, 30)))
    else:
        pasted[mark] = str(key)  # the same key twice
        holder[mark] = holder[key]


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    inner = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in inner:
        yield data, key
        yield from _places(value)


def _bomb(rng: random.Random) -> str:
    """Aliases of aliases: few bytes that stand for billions of values."""
    depth, width = rng.choice(((9, 9), (30, 2), (200, 1), (3, 3)))
    lines = ["summary: &z0 [x]"]
    lines += [f"b{i}: &z{i} [{', '.join([f'*z{i - 1}'] * width)}]" for i in range(1, depth)]
    return rng.choice(["\n".join(lines) + "\n", "tree: " + lines[0][9:] + "\n"])


def broken_json(data: Any, rng: random.Random) -> bytes:
    """As `broken_yaml`, for JSON; what is pasted is any JSON or none."""
    data = copy.deepcopy(data)
    pasted: dict[str, str] = {}
    for _ in range(rng.choice((1, 1, 2, 3))):
        _mutate(data, rng, pasted)
    text = json.dumps(data)
    for mark, value in pasted.items():
        value = {".nan": "NaN", ".inf": "Infinity", "-.inf": "-Infinity", "~": "null"}.get(
            value, value
        )
        quoted = value if rng.random() < 0.7 else json.dumps(value)
        text = text.replace(f'"{mark}"', quoted)
    data = text.encode("utf-8", "surrogatepass")
    return broken_bytes(data, rng) if rng.random() < 0.2 else data
