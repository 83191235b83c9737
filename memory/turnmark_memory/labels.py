"""Names that memory gives: labels of sources (`s-…`) and ids of blocks (`b-…`).

Both are prefixes of a BLAKE2b digest, so the same turn has the same label on every machine and a
redone install gives the same ids. A clash is resolved by the caller, who knows what is taken: a
label grows by a digit, a block id is derived again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import blake2b
from typing import Final

# Twelve hex digits: a clash is expected at some 16 million sources, and then costs one digit.
LABEL_DIGITS: Final = 12
BLOCK_DIGITS: Final = 8

LABEL_PATTERN: Final = rf"s-[0-9a-f]{{{LABEL_DIGITS},}}"
BLOCK_PATTERN: Final = rf"b-[0-9a-f]{{{BLOCK_DIGITS},}}"

_LABEL = re.compile(LABEL_PATTERN)
_BLOCK = re.compile(BLOCK_PATTERN)
_SEPARATOR: Final = "\x00"


def label_of(namespace: str, id: str, length: int = LABEL_DIGITS) -> str:  # noqa: A002 -- a turn's key is (namespace, id)
    """Returns the label of the turn (`namespace`, `id`), with `length` hex digits (12 to 64)."""
    key = f"{namespace}{_SEPARATOR}{id}".encode("utf-8", "surrogatepass")
    return f"s-{blake2b(key, digest_size=32).hexdigest()[:length]}"


def block_id_of(*parts: str) -> str:
    """Returns the block id derived from `parts`: equal parts, equal id."""
    joined = _SEPARATOR.join(parts).encode("utf-8", "surrogatepass")
    return f"b-{blake2b(joined, digest_size=BLOCK_DIGITS // 2).hexdigest()}"


def free_block_id(is_taken: Callable[[str], bool], *parts: str) -> str:
    """Returns the first id derived from `parts` that isn't taken.

    Deterministic: the n-th clash appends `n` to the parts.
    """
    candidate, clashes = block_id_of(*parts), 0
    while is_taken(candidate):
        clashes += 1
        candidate = block_id_of(*parts, str(clashes))
    return candidate


def is_label(name: str) -> bool:
    """Tells whether `name` has the form of a source's label."""
    return _LABEL.fullmatch(name) is not None


def is_block_id(name: str) -> bool:
    """Tells whether `name` has the form of a block's id (without `^`)."""
    return _BLOCK.fullmatch(name) is not None
