"""Compresses as OpenClaw does, with whatever module this Python has for it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


def compressed(data: bytes) -> bytes:
    """Returns one frame."""
    name = "compression" if find_spec("compression") else "backports"
    module: Any = import_module(f"{name}.zstd")
    frame: bytes = module.compress(data)
    return frame
