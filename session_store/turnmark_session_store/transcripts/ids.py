"""Ids that other programs made: which can stand as they are, and what stands for the others."""

from __future__ import annotations

import hashlib
import re
from typing import TypeGuard

_PLAIN_ID = re.compile(r"[\w.:=+-]{1,128}", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


def is_plain_id(value: object) -> TypeGuard[str]:
    """Returns whether an id can be part of one here; any other is hashed, or as good as none."""
    return isinstance(value, str) and _PLAIN_ID.fullmatch(value) is not None


def is_uuid(text: str | None) -> bool:
    """Returns whether an id is a UUID, and with that nobody else's."""
    return text is not None and _UUID.fullmatch(text) is not None


def hash_of(text: str, *, size_bytes: int) -> str:
    """Returns a hash of a text in hexadecimal digits, two a byte."""
    content = text.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(content, digest_size=size_bytes).hexdigest()
