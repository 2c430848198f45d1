"""The bytes of a trace file, refused before they can fill the memory."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from artist.errors import TraceError
from artist.io.reading import open_binary

MAX_LINE_BYTES = 2**20  # a job on one line takes some hundred bytes
MAX_FILE_BYTES = 2**33
# A parsed JSON takes ten times its size; Philly's log, the largest known, has some 100 MiB.
MAX_JSON_BYTES = 2**29

_CHUNK_BYTES = 2**20
_JSON_STARTS = (b"[", b"{")
_PARQUET_MAGIC = b"PAR1"


def read_data(path: Path) -> bytes:
    """All bytes of a trace file (or pipe).

    Raises:
        TraceError: the file is missing, a folder, empty, not readable, or larger
            than any trace: 8 GiB, 512 MiB of JSON, 1 MiB on one line of text.
    """
    try:
        with open_binary(path) as file:
            data = _read(path, file)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceError(f"{path}: cannot be read ({reason}); give a readable file") from error
    if not data or data.isspace():
        raise TraceError(f"{path}: the file is empty; give one with data in it")
    return data


def is_json(path: Path, data: bytes) -> bool:
    """Whether a file is meant as JSON, by its name or its first character."""
    return path.suffix == ".json" or data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (
        _JSON_STARTS
    )


def is_parquet(path: Path, data: bytes) -> bool:
    """Whether a file is meant as Parquet, by its name or its magic number."""
    return path.suffix == ".parquet" or data.startswith(_PARQUET_MAGIC)


def _read(path: Path, file: BinaryIO) -> bytes:
    chunks: list[bytes] = []
    size = lines = line_bytes = 0
    limit, of_lines = MAX_FILE_BYTES, True
    while chunk := file.read(_CHUNK_BYTES):
        if not chunks:
            json = is_json(path, chunk)
            limit = MAX_JSON_BYTES if json else MAX_FILE_BYTES
            of_lines = not json and not is_parquet(path, chunk)
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise TraceError(f"{path}: more than {limit >> 20} MiB; split the trace")
        if of_lines:
            first = chunk.find(b"\n")
            line_bytes += len(chunk) if first < 0 else first
            if line_bytes > MAX_LINE_BYTES:
                raise TraceError(
                    f"{path}:{lines + 1}: a line of more than {MAX_LINE_BYTES >> 20} MiB, expected "
                    "a job a line; give a text file of jobs"
                )
            if first >= 0:
                lines += chunk.count(b"\n")
                line_bytes = len(chunk) - chunk.rfind(b"\n") - 1
    return b"".join(chunks)
