"""Makes of a finished file of lines what a crash, a bad disk or another program may make of it."""

from __future__ import annotations

import json
import random
from typing import Any


def spoilt(chance: random.Random, data: bytes) -> bytes:
    """Some of the lines, some of them changed, the last perhaps torn."""
    found = data.splitlines(keepends=True)
    for _ in range(chance.choice((0, 1, 3))):
        at = chance.randrange(len(found))
        line = found.pop(at)
        what = chance.randrange(4)
        if what == 1:
            found.insert(chance.randint(0, len(found)), line)
        elif what == 2:
            found[at:at] = [line, line]
        elif what == 3:
            record = json.loads(line)
            spoil(chance, record)
            found.insert(at, json.dumps(record).encode() + b"\n")
        if not found:
            return b""
    return b"".join(found)


def spoil(chance: random.Random, record: dict[str, Any]) -> None:
    """Puts what can't be in the place of one value, at any depth."""
    key = chance.choice(sorted(record))
    inner = record[key]
    if isinstance(inner, dict) and inner and chance.random() < 0.8:
        spoil(chance, inner)
    else:
        record[key] = chance.choice((None, 7, -1, 2**70, 1e300, "", "x", [], [None], {}, True))
