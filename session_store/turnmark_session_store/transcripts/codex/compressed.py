"""Finds the rollouts that Codex has compressed, which are not read: a person decompresses them.

One beside which its `.jsonl` lies is read from that and counts no more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

ENDING = ".jsonl.zst"

ADVICE = "decompress what you want read, `zstd -d FILE.jsonl.zst`, and it is read from beside it"


def is_compressed(path: Path) -> bool:
    """Tells whether a path is a compressed transcript's, by its name."""
    return path.name.endswith(ENDING)


def is_unread(path: Path) -> bool:
    """Tells whether a compressed transcript is there without what was decompressed from it."""
    return path.is_file() and not path.with_suffix("").exists()


def compressed_below(places: Iterable[Path]) -> Iterator[Path]:
    """Yields the compressed transcripts below `places` that are not read; blocks on disk."""
    for place in places:
        for folder, _, names in os.walk(place):
            found = (Path(folder, name) for name in names if name.endswith(ENDING))
            yield from filter(is_unread, found)
