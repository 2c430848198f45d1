"""Reading the bytes of a trace file, with limits so that no file can fill the memory."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from artist.errors import TraceError
from artist.io.reading import open_binary

MAX_LINE_BYTES = 2**20  # a line holds one job, which takes a few hundred bytes
MAX_FILE_BYTES = 2**33
# In memory, parsed JSON takes ten times its size on disk. The largest known JSON trace,
# Philly's log, has about 100 MiB.
MAX_JSON_BYTES = 2**29

_CHUNK_BYTES = 2**20
_JSON_STARTS = (b"[", b"{")
_PARQUET_MAGIC = b"PAR1"


def read_data(path: Path) -> bytes:
    """All bytes of a trace file (or pipe).

    Raises:
        TraceError: the file is missing, a folder, empty, not readable, or beyond a limit:
            8 GiB for a file, 512 MiB for JSON, 1 MiB for one line of text.
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
    """Whether a file is JSON, judged by its name or its first character."""
    start = data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return path.suffix == ".json" or start in _JSON_STARTS


def is_parquet(path: Path, data: bytes) -> bool:
    """Whether a file is Parquet, judged by its name or its first four bytes."""
    return path.suffix == ".parquet" or data.startswith(_PARQUET_MAGIC)


def _read(path: Path, file: BinaryIO) -> bytes:
    """All bytes of an open file, in chunks, so that a file beyond a limit is refused early."""
    chunks: list[bytes] = []
    # `line_bytes` is the length so far of the line that the last chunk left unfinished. Only the
    # first line that ends in a chunk can exceed a chunk's length; the others fit by themselves.
    size = lines = line_bytes = 0
    limit, has_lines = MAX_FILE_BYTES, True
    while chunk := file.read(_CHUNK_BYTES):
        if not chunks:
            json = is_json(path, chunk)
            limit = MAX_JSON_BYTES if json else MAX_FILE_BYTES
            has_lines = not json and not is_parquet(path, chunk)
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise TraceError(f"{path}: more than {limit >> 20} MiB; split the trace")
        if has_lines:
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
