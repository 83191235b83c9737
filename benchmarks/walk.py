"""The unwritten suffix of a hundred turns, in stores of a thousand, a hundred thousand, a million.

Run: python benchmarks/walk.py [--sizes 1000,100000,1000000]

The time must follow the suffix and not the store: the last line prints the ratio of the largest
store's median to the smallest's, whose goal is at most 1.5.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import apsw

from turnmark_session_store.database import open_reader, open_writer
from turnmark_session_store.walks import unwritten

_SUFFIX = 100
_LINE = 1_000
_SAMPLES = 300

_FILL = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
INSERT INTO turn (id, namespace, key, session, predecessor, root, role, kind, recordable, predicate,
    digest, tokens, masked, time_ms, created_ms)
SELECT i, 1, 't' || i, 1, CASE WHEN i % ?2 = 1 THEN NULL ELSE i - 1 END, i - (i - 1) % ?2,
    CASE i % 2 WHEN 1 THEN 'user' ELSE 'assistant' END, 'turn', 1, 1, x'00', 40, 0, 0, 0 FROM n
"""


def fill(db: apsw.Connection, size: int) -> None:
    """Makes conversations of a thousand turns, all but the last hundred of each settled."""
    db.execute(
        "INSERT INTO namespace VALUES (1, 'n'); INSERT INTO workspace (id, name) VALUES (1, 'w');"
        "INSERT INTO session (id, name, agent, created_ms, updated_ms) VALUES (1, 's', 'a', 0, 0)"
    )
    with db:
        db.execute(_FILL, (size, _LINE))
        db.execute(
            "INSERT INTO mark SELECT 1, id, 'kept', NULL, 'w', 1, 0 FROM turn"
            " WHERE (id - 1) % ? < ? - ?",
            (_LINE, _LINE, _SUFFIX),
        )


def walk_ms(db: apsw.Connection, size: int) -> float:
    """Returns the median milliseconds of a walk from the tips of many conversations."""
    taken: list[float] = []
    conversations = size // _LINE
    for number in range(_SAMPLES):
        tip = (number * 7_919 % conversations + 1) * _LINE
        begun = time.perf_counter()
        found = unwritten(db, 1, [tip])
        taken.append((time.perf_counter() - begun) * 1_000)
        if len(found) != _SUFFIX:
            raise SystemExit(f"the walk found {len(found)} turns instead of {_SUFFIX}")
    return median(taken)


def main() -> None:
    """Prints one line a store, and the ratio."""
    parser = argparse.ArgumentParser(description="the walk in growing stores")
    parser.add_argument("--sizes", default="1000,100000,1000000", help="turns of each store")
    sizes = [int(size) for size in parser.parse_args().sizes.split(",")]
    medians: list[float] = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "sessions.db"
            writer = open_writer(path)
            fill(writer, size)
            reader = open_reader(path)
            walk_ms(reader, size)  # once for the page cache
            medians.append(walk_ms(reader, size))
            reader.close()
            writer.close()
        print(f"{size:10,} turns: the last {_SUFFIX} in {medians[-1]:.3f} ms")
    print(f"largest to smallest: {medians[-1] / medians[0]:.2f} (goal: at most 1.5)")


if __name__ == "__main__":
    main()
