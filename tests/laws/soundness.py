"""What must be true of a store and its workspace at rest, proved from their files alone.

Each function returns the faults it found, in words; none is the good answer. They read what is on
disk and ask no daemon: open them only where nobody writes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from turnmark_memory.archive import Archive
from turnmark_memory.bases import Bases
from turnmark_memory.core_page import render_core
from turnmark_memory.index import Index
from turnmark_memory.shelf import Shelf
from turnmark_memory.topic import Block, Topic
from turnmark_memory.workspace import Workspace

_COUNTS = (
    "recordable AND NOT EXISTS (SELECT 1 FROM retired_turn WHERE turn = turn.id)"
    " AND NOT EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = turn.id)"
)
_INDEX_ROWS = (
    "SELECT label, namespace, id, session, role, text, path, line FROM turn ORDER BY label",
    "SELECT topic, about, tokens FROM topic ORDER BY topic",
    "SELECT block, topic, place, heading, text, superseded_by FROM block ORDER BY block",
    "SELECT block, cite.place, label FROM cite JOIN block USING (row) ORDER BY 1, 2",
    "SELECT alias, block FROM alias JOIN block USING (row) ORDER BY alias",
)


def store_faults(database: Path, *, all_written: bool = True) -> list[str]:
    """Returns what is wrong in the store: shape, moves, marks, and what was left open."""
    db = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return [
            *_checked(db, "PRAGMA integrity_check", {("ok",)}, "the database is damaged"),
            *_gate_faults(db),
            *_mark_faults(db),
            *(_unsettled(db) if all_written else ()),
            *_open_ends(db),
        ]
    finally:
        db.close()


def _rows(db: apsw.Connection, sql: str) -> list[Any]:
    return list(db.execute(sql))


def _checked(
    db: apsw.Connection, sql: str, wanted: set[tuple[Any, ...]], fault: str
) -> Iterator[str]:
    found = set(_rows(db, sql))
    if found != wanted:
        yield f"{fault}: {sorted(found)[:5]}"


def _none(db: apsw.Connection, fault: str, sql: str) -> Iterator[str]:
    yield from _checked(db, sql, set(), fault)


def _gate_faults(db: apsw.Connection) -> Iterator[str]:
    """Moves of a branch follow on from one another and end where its tip is; heads likewise."""
    yield from _none(
        db,
        "a move begins elsewhere than the one before ended",
        "SELECT seq, branch, old, before FROM (SELECT seq, branch, old,"
        " lag(new) OVER (PARTITION BY branch ORDER BY seq) AS before FROM event"
        " WHERE type = 'TipMoved') WHERE old IS NOT before",
    )
    yield from _none(
        db,
        "a tip is not where its last move ended",
        "SELECT branch.id, tip, event.new FROM branch LEFT JOIN event ON event.seq = (SELECT"
        " max(seq) FROM event WHERE type = 'TipMoved' AND branch = branch.id)"
        " WHERE tip IS NOT event.new",
    )
    yield from _none(
        db,
        "a head is not where its last move ended",
        "SELECT session.id, head, event.head_new FROM session LEFT JOIN event ON event.seq ="
        " (SELECT max(seq) FROM event WHERE type = 'TipMoved' AND session = session.id)"
        " WHERE head IS NOT event.head_new",
    )
    yield from _none(
        db,
        "a turn has no words though nobody forgot it",
        "SELECT id FROM turn WHERE id NOT IN (SELECT turn FROM turn_words)"
        " AND id NOT IN (SELECT turn FROM forgotten_turn)",
    )
    yield from _none(
        db,
        "a forgotten turn still has words",
        "SELECT turn FROM turn_words JOIN forgotten_turn USING (turn)",
    )


def _mark_faults(db: apsw.Connection) -> Iterator[str]:
    """Marks are closed under ancestors; a settling is said once, unless it was taken back."""
    yield from _none(
        db,
        "a settled turn comes after one that is not",
        "WITH RECURSIVE above (workspace, id) AS (SELECT workspace, turn FROM mark"
        " UNION SELECT workspace, predecessor FROM above JOIN turn USING (id)"
        " WHERE predecessor IS NOT NULL"
        " UNION SELECT workspace, parent FROM above JOIN merge_parent ON turn = above.id)"
        " SELECT above.id FROM above JOIN turn USING (id) WHERE NOT EXISTS (SELECT 1 FROM mark"
        " WHERE mark.workspace = above.workspace AND mark.turn = above.id)"
        f" AND {_COUNTS}",
    )
    yield from _none(
        db,
        "an unrecordable turn is marked",
        "SELECT turn FROM mark JOIN turn ON turn.id = mark.turn WHERE NOT recordable",
    )


def _unsettled(db: apsw.Connection) -> Iterator[str]:
    yield from _none(
        db,
        "a recordable turn of a live branch is not settled",
        "WITH RECURSIVE above (id) AS (SELECT tip FROM branch WHERE state = 'live'"
        " AND tip IS NOT NULL UNION SELECT predecessor FROM above JOIN turn USING (id)"
        " WHERE predecessor IS NOT NULL"
        " UNION SELECT parent FROM above JOIN merge_parent ON turn = above.id)"
        " SELECT above.id FROM above JOIN turn USING (id) WHERE NOT EXISTS (SELECT 1 FROM mark"
        " WHERE mark.turn = above.id AND outcome IN ('kept', 'nothing'))"
        f" AND {_COUNTS}",
    )


def _open_ends(db: apsw.Connection) -> Iterator[str]:
    yield from _none(db, "an install is open", "SELECT id FROM install WHERE closed_ms IS NULL")
    yield from _none(db, "a batch is open", "SELECT id FROM batch WHERE closed_ms IS NULL")
    yield from _none(db, "a claim is held", "SELECT workspace, root FROM claim")
    yield from _none(db, "an ended install keeps words", "SELECT id FROM install WHERE body <> x''")


def times_settled(database: Path) -> Counter[int]:
    """Returns how often `TurnsWritten` said of each turn (by integer key) that it is settled."""
    db = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows = _rows(
            db,
            "SELECT turn.id FROM event JOIN session ON session.id = event.session"
            " JOIN json_each(CAST(body AS TEXT), '$.turns') AS said"
            " JOIN turn ON turn.namespace = session.namespace AND turn.key = said.value"
            " WHERE event.type = 'TurnsWritten'",
        )
        return Counter(turn for (turn,) in rows)
    finally:
        db.close()


def workspace_faults(
    root: Path, count: Callable[[str], int], *, core_tokens: int = 2_000
) -> list[str]:
    """Returns what is wrong in a workspace: blocks, cites, sources, the core page, the index."""
    with _copied_shelf(root, count) as shelf:
        topics = {file.topic: shelf.load(file.topic) for file in shelf.workspace.topics()}
        present = {name: topic for name, topic in topics.items() if topic is not None}
        return [
            *_staging_faults(root),
            *_block_faults(shelf, present),
            *_source_faults(shelf),
            *_core_faults(shelf, present, count, core_tokens),
            *_index_faults(shelf),
        ]


@contextmanager
def _copied_shelf(root: Path, count: Callable[[str], int]) -> Iterator[Shelf]:
    with tempfile.TemporaryDirectory(prefix="tm-check-", dir=_quick_place()) as made:
        copy = Path(made) / "memory"
        shutil.copytree(root, copy, symlinks=True)
        workspace = Workspace.open(copy)
        archive = Archive(workspace)
        index = Index.open(copy / ".turnmark" / "index.db")
        bases = Bases.open(copy / ".turnmark" / "bases.db")
        try:
            yield Shelf(workspace, archive, index, count, bases)
        finally:
            bases.close()
            index.close()
            archive.close()
            workspace.close()


def _quick_place() -> str | None:
    """Returns a directory in memory where there is one: nothing here has to last."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _staging_faults(root: Path) -> Iterator[str]:
    staging = root / ".turnmark" / "staging"
    left = sorted(path.name for path in staging.iterdir()) if staging.is_dir() else []
    if left:
        yield f"the staging directory is not empty: {left}"


def blocks_of(topics: Iterable[Topic]) -> list[Block]:
    """Returns the blocks of topics that stand, superseded ones left out."""
    return [block for topic in topics for block in topic.blocks() if block.superseded_by is None]


def _block_faults(shelf: Shelf, topics: dict[str, Topic]) -> Iterator[str]:
    blocks = blocks_of(topics.values())
    ids = Counter(block.id for block in blocks)
    yield from (f"the block {name} stands {n} times" for name, n in ids.items() if n > 1)
    words = Counter(block.text for block in blocks)
    yield from (f"{text!r} stands {n} times" for text, n in words.items() if n > 1)
    for block in blocks:
        if len(set(block.cites)) < len(block.cites):
            yield f"the block {block.id} cites a turn twice"
        yield from (
            f"the cite {label} of {block.id} leads nowhere"
            for label in block.cites
            if shelf.archive.read(label) is None
        )
    for name, topic in topics.items():
        yield from (f"{name}:{one.line}: {one.problem}" for one in topic.warnings)


def _source_faults(shelf: Shelf) -> Iterator[str]:
    turns = Counter((turn.namespace, turn.id) for _, turn in shelf.archive.scan())
    yield from (f"the turn {turn} is archived {n} times" for turn, n in turns.items() if n > 1)


def _core_faults(
    shelf: Shelf, topics: dict[str, Topic], count: Callable[[str], int], core_tokens: int
) -> Iterator[str]:
    def load(topic: str, block: str) -> Block | None:
        found = topics.get(topic)
        return None if found is None else found.block(block)

    page = render_core(shelf.read("core") or b"", load, core_tokens, count)
    there = shelf.workspace.tree.read("core.md")
    if (there or b"").decode() != page.text:
        yield f"core.md is not its render:\n{there!r}\n{page.text!r}"


def _index_faults(shelf: Shelf) -> Iterator[str]:
    before = _index_rows(shelf)
    stamp = shelf.index.revision
    revision = getattr(shelf.workspace.revision(), "revision", None)
    if stamp != revision:
        yield f"the index shows revision {stamp}, the workspace {revision}"
    shelf.rebuild(revision or 0)
    for sql, old, new in zip(_INDEX_ROWS, before, _index_rows(shelf), strict=True):
        if old != new:
            yield f"the index differs from the files ({sql}): {set(old) ^ set(new)}"


def _index_rows(shelf: Shelf) -> list[list[Any]]:
    path = shelf.workspace.root / ".turnmark" / "index.db"
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return [list(db.execute(sql)) for sql in _INDEX_ROWS]
    finally:
        db.close()


def places_with(root: Path, words: str) -> list[str]:
    """Returns the files below `root` that hold `words`, packed or not."""
    wanted = words.encode()
    return [
        str(file.relative_to(root))
        for file in sorted(root.rglob("*"))
        if file.is_file() and (wanted in file.read_bytes() or _is_packed_in(file, wanted))
    ]


def _is_packed_in(file: Path, words: bytes) -> bool:
    """Tells whether what memory saw of topics, which it keeps packed, has these words."""
    if file.name != "bases.db":
        return False
    db = apsw.Connection(str(file))
    try:
        kept = [blob for row in db.execute("SELECT content, view FROM base") for blob in row]
        return any(words in zlib.decompress(blob) for blob in kept if blob is not None)
    finally:
        db.close()
