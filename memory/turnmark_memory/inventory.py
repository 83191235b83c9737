"""An inventory of a workspace: what its files hold, read without its lock, all of it once.

A daemon may be at work meanwhile: what it is in the middle of can look like a fault.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import msgspec

from turnmark_memory.core_page import render_core
from turnmark_memory.index_schema import SCHEMA_VERSION as INDEX_VERSION
from turnmark_memory.revisions import RevisionRecord
from turnmark_memory.source_line import FORGOTTEN_LINE, ArchivedTurn, decode_line
from turnmark_memory.topic import Block, Topic
from turnmark_memory.topic_format import parse
from turnmark_memory.topic_path import CORE
from turnmark_memory.workspace import (
    INDEX_FILE,
    REVISION_FILE,
    REVISIONS,
    SOURCES,
    TOPICS,
    RevisionStamp,
    topic_of,
)
from turnmark_session_store.queries import rows_of, value_of


class SourceSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One readable line of the archive."""

    path: str
    line: int
    turn: ArchivedTurn


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """What the files of a workspace hold; `odd_lines` are source lines that can't be read."""

    root: Path
    topics: dict[str, Topic]
    sources: list[SourceSeen]
    odd_lines: list[str]
    torn: list[str]
    retired: frozenset[str]
    revision: int | None


def take_inventory(root: Path) -> Inventory:
    """Reads the topics, the sources and the records of a workspace. Costs what they are large."""
    sources: list[SourceSeen] = []
    odd: list[str] = []
    torn: list[str] = []
    for path in files_below(root / SOURCES, ".jsonl"):
        name = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
            turn = decode_line(line)
            if turn is not None and line.endswith(b"\n"):
                sources.append(SourceSeen(path=name, line=number, turn=turn))
            elif not line.endswith(b"\n"):
                torn.append(f"{name}:{number}")
            elif line != FORGOTTEN_LINE:
                odd.append(f"{name}:{number}")
    return Inventory(
        root=root,
        topics=dict(_topics(root)),
        sources=sources,
        odd_lines=odd,
        torn=torn,
        retired=frozenset(_retired(root)),
        revision=revision_at(root),
    )


def _topics(root: Path) -> Iterator[tuple[str, Topic]]:
    for path in files_below(root / TOPICS, ".md"):
        yield topic_of(path.relative_to(root).as_posix()), parse(path.read_bytes())


def _retired(root: Path) -> Iterator[str]:
    """Yields the blocks that some revision took out, or whose words were forgotten."""
    decoder = msgspec.json.Decoder(RevisionRecord)
    for path in files_below(root / REVISIONS, ".json"):
        try:
            record = decoder.decode(path.read_bytes())
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue  # such a revision can't be undone; that is said where somebody wants it
        yield from (change.block for change in record.changes if change.after is None)


def files_below(root: Path, ending: str) -> list[Path]:
    """Returns the files below a directory whose names end like that; no links, none that hide."""
    return sorted(
        Path(directory, name)
        for directory, _, names in os.walk(root)
        for name in names
        if name.endswith(ending)
        and not name.startswith(".")
        and not Path(directory, name).is_symlink()
    )


def revision_at(root: Path) -> int | None:
    """Returns the revision that a workspace's files say they are of, None where they can't."""
    try:
        content = (root / REVISION_FILE).read_bytes()
        return msgspec.json.decode(content, type=RevisionStamp).revision
    except FileNotFoundError:
        return 0
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


class Indexed(msgspec.Struct, frozen=True, kw_only=True):
    """What an index holds: topic and words of each block, and the labels of its turns."""

    blocks: dict[str, tuple[str, str]]
    labels: set[str]


def indexed(root: Path) -> Indexed | None:
    """Returns what the index of a workspace holds, None where there is none.

    Raises:
        apsw.Error: if it can't be read, or is of another version.
    """
    path = root / INDEX_FILE
    if not path.exists():
        return None
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        version = value_of(db, "PRAGMA user_version")
        if version != INDEX_VERSION:
            raise apsw.SQLError(f"it has version {version}, this turnmark makes {INDEX_VERSION}")
        rows = rows_of(db, "SELECT block, topic, text FROM block")
        labels = rows_of(db, "SELECT label FROM turn")
    finally:
        db.close()
    return Indexed(
        blocks={block: (topic, text) for block, topic, text in rows},
        labels={label for (label,) in labels},
    )


def indexed_blocks(root: Path) -> dict[str, tuple[str, str]]:
    """Returns topic and words of each block in the index, none where it can't be read."""
    try:
        found = indexed(root)
    except apsw.Error:
        return {}
    return {} if found is None else found.blocks


def rendered_core(seen: Inventory, *, core_tokens: int, count: Callable[[str], int]) -> bytes:
    """Returns the bytes that `core.md` should have.

    A paragraph whose id waits to be written to a person's file is found by its words.
    """
    path = seen.root / TOPICS / f"{CORE}.md"
    source = path.read_bytes() if path.exists() else b""
    waiting = indexed_blocks(seen.root)

    def load(topic: str, block: str) -> Block | None:
        found = seen.topics.get(topic)
        if found is None:
            return None
        nameless = (
            one
            for one in found.blocks()
            if one.id is None and waiting.get(block) == (topic, one.text)
        )
        return found.block(block) or next(nameless, None)

    return render_core(source, load, core_tokens, count).text.encode()
