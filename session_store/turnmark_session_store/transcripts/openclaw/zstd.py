"""Unpacks what is compressed with Zstandard, where a decoder is installed.

The standard library has one from Python 3.14 on; before that it takes a package, which the extra
`zstd` brings. Imported when it is needed: most machines never do.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_MISSING = "compressed, and no decoder is installed: turnmark's extra zstd brings one"


def unpack(packed: bytes, *, limit_bytes: int) -> bytes | str:
    """Returns the bytes, or why they can't be had; never more than `limit_bytes`."""
    decoder = _decoder()
    if decoder is None:
        return _MISSING
    module, decompressor = decoder
    try:
        found: bytes = decompressor.decompress(packed, max_length=limit_bytes)
    except (module.ZstdError, EOFError):
        return "compressed, and damaged"
    if not decompressor.eof:
        return f"compressed, and damaged or longer than {limit_bytes} bytes"
    return found


def _decoder() -> tuple[Any, Any] | None:
    """Returns a module and a new decompressor of it."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            module: Any = import_module(name)
        except ModuleNotFoundError:
            continue
        return module, module.ZstdDecompressor()
    return None
