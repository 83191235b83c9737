"""Files of one JSON object a line, as programs write them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def lines(*records: Record | str) -> bytes:
    """Records as a program writes them; strings are lines as they are."""
    texts = (r if isinstance(r, str) else json.dumps(r, ensure_ascii=False) for r in records)
    return "".join(f"{text}\n" for text in texts).encode("utf-8", "surrogatepass")


def write(path: Path, records: Iterable[Record | str]) -> Path:
    """Writes a transcript."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(*records))
    return path
