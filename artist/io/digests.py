"""Digests that identify inputs: SHA-256, written as `sha256:` and 64 hexadecimal digits."""

from __future__ import annotations

import hashlib

PREFIX = "sha256:"


def sha256(content: bytes | str) -> str:
    """The digest of bytes, or of a text encoded as UTF-8."""
    data = content.encode() if isinstance(content, str) else content
    return PREFIX + hashlib.sha256(data).hexdigest()


def pseudonym(name: str) -> str:
    """What a user is called instead of their name, the same in every file.

    It hides names from readers, but not from those who have a list of the users.

    >>> pseudonym("ann")
    'user-4201c49a'
    """
    return f"user-{sha256(f'artist user {name}').removeprefix(PREFIX)[:8]}"
