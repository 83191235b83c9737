"""The SQL of the derived index, and the structs that go in and come out.

Nothing here is migrated: a file of another `SCHEMA_VERSION` is thrown away and built anew from
`sources/` and `topics/`. The full-text tables hold no text of their own (`content=`): what a turn
or a block says lies once in its table, and erasing it there and in its table's words erases it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

Kind = Literal["turn", "block"]

APPLICATION_ID = 0x746D6978
"""`tmix`: keeps a database of another program from being taken for an index and replaced."""

SCHEMA_VERSION = 6

PRAGMAS = (
    "PRAGMA journal_mode = wal",
    "PRAGMA synchronous = normal",  # derived: a power cut may cost the last writes, not the file
    "PRAGMA secure_delete = on",  # what was forgotten must not stay in free pages
    "PRAGMA journal_size_limit = 16777216",
)

# AUTOINCREMENT: a row's number is never given again, so what came after a row is what is new.
# `size` is kept by triggers: to count a million rows after each write would cost 40 ms.
SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE size (kind TEXT PRIMARY KEY, documents INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO size VALUES ('turn', 0), ('block', 0);
CREATE TABLE turn (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    label TEXT NOT NULL UNIQUE,
    namespace TEXT NOT NULL,
    id TEXT NOT NULL,
    session TEXT NOT NULL,
    agent TEXT NOT NULL,
    project TEXT,
    role TEXT NOT NULL,
    speaker_id TEXT,
    speaker_name TEXT,
    at_us INTEGER NOT NULL,
    text TEXT NOT NULL,
    path TEXT NOT NULL,
    line INTEGER NOT NULL,
    position INTEGER NOT NULL,
    after TEXT,
    traits INTEGER NOT NULL,
    speaker_keys TEXT NOT NULL,
    speaker_terms TEXT NOT NULL,
    terms TEXT NOT NULL
);
CREATE INDEX turn_by_place ON turn (session, position);
CREATE INDEX turn_by_id ON turn (id);
CREATE INDEX turn_by_predecessor ON turn (after) WHERE after IS NOT NULL;
CREATE TABLE forgotten (label TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE speaker (term TEXT PRIMARY KEY, turns INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE topic (
    topic TEXT PRIMARY KEY,
    about TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    updated_us INTEGER
) WITHOUT ROWID;
CREATE TABLE block (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    block TEXT NOT NULL UNIQUE,
    topic TEXT NOT NULL,
    place INTEGER NOT NULL,
    heading TEXT,
    text TEXT NOT NULL,
    superseded_by TEXT,
    superseded_on TEXT,
    updated_us INTEGER,
    learnt_us INTEGER,
    terms TEXT NOT NULL
);
CREATE INDEX block_by_topic ON block (topic, place);
CREATE INDEX block_by_time ON block (learnt_us) WHERE learnt_us IS NOT NULL;
CREATE INDEX block_by_successor ON block (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE TABLE link (
    block TEXT NOT NULL,
    topic TEXT NOT NULL,
    PRIMARY KEY (block, topic)
) WITHOUT ROWID;
CREATE INDEX link_by_topic ON link (topic);
CREATE TABLE alias (alias TEXT PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX alias_by_block ON alias (row);
CREATE TABLE cite (
    row INTEGER NOT NULL,
    place INTEGER NOT NULL,
    label TEXT NOT NULL,
    PRIMARY KEY (row, place)
) WITHOUT ROWID;
CREATE INDEX cite_by_label ON cite (label);
CREATE TRIGGER turn_added AFTER INSERT ON turn BEGIN
    UPDATE size SET documents = documents + 1 WHERE kind = 'turn';
END;
CREATE TRIGGER turn_dropped AFTER DELETE ON turn BEGIN
    UPDATE size SET documents = documents - 1 WHERE kind = 'turn';
END;
CREATE TRIGGER block_added AFTER INSERT ON block BEGIN
    UPDATE size SET documents = documents + 1 WHERE kind = 'block';
END;
CREATE TRIGGER block_dropped AFTER DELETE ON block BEGIN
    UPDATE size SET documents = documents - 1 WHERE kind = 'block';
END;
CREATE VIRTUAL TABLE turn_words USING fts5(
    terms, content='turn', content_rowid='row', tokenize='ascii'
);
CREATE VIRTUAL TABLE block_words USING fts5(
    terms, content='block', content_rowid='row', tokenize='ascii'
);
CREATE VIRTUAL TABLE turn_vocabulary USING fts5vocab(turn_words, row);
CREATE VIRTUAL TABLE block_vocabulary USING fts5vocab(block_words, row);
INSERT INTO turn_words (turn_words, rank) VALUES ('secure-delete', 1);
INSERT INTO block_words (block_words, rank) VALUES ('secure-delete', 1);
"""


class TurnDoc(msgspec.Struct, frozen=True, kw_only=True):
    """One archived turn: what was said, by whom, when, and where the evidence stands.

    `path` and `line` (from 1) point into the workspace; `position` orders the turns of a session.
    `after` is the label of the turn that this one was said after, empty for a first one, None
    where nobody noted it: then `position` tells.
    """

    label: str
    namespace: str
    id: str
    session: str
    agent: str
    project: str | None
    role: str
    speaker_id: str | None
    speaker_name: str | None
    time: datetime
    text: str
    path: str
    line: int
    position: int
    after: str | None = None

    @property
    def speaker(self) -> str:
        """The name that people know the speaker by: name, else id, else role."""
        return self.speaker_name or self.speaker_id or self.role


class BlockDoc(msgspec.Struct, frozen=True, kw_only=True):
    """One block of a topic; `cites` are labels, `text` is without ids and footnotes."""

    block: str
    topic: str
    text: str
    aliases: tuple[str, ...] = ()
    heading: str | None = None
    cites: tuple[str, ...] = ()
    superseded_by: str | None = None
    superseded_on: str | None = None
    updated_at: datetime | None = None


class TopicDoc(msgspec.Struct, frozen=True, kw_only=True):
    """One topic with its blocks in the order of the file, as a rebuild takes it.

    `links` are the ids of blocks that something in its file links to or embeds.
    """

    topic: str
    about: str
    tokens: int
    blocks: tuple[BlockDoc, ...]
    updated_at: datetime | None = None
    links: tuple[str, ...] = ()


class LearntRow(msgspec.Struct, frozen=True, kw_only=True):
    """One block as a timeline shows it: `learnt_us` is the time of the newest turn it cites."""

    block: str
    topic: str
    text: str
    learnt_us: int
    superseded_by: str | None


class TopicRow(msgspec.Struct, frozen=True, kw_only=True):
    """One topic as a list shows it; `blocks` is their number."""

    topic: str
    about: str
    blocks: int
    tokens: int
    updated_at: datetime | None


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How much the index holds."""

    turns: int
    blocks: int
    topics: int


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """What hits must satisfy; None does not filter.

    `since_us` is inclusive, `until_us` exclusive, in microseconds since 1970. `speaker` is an id,
    a name or (where a turn has neither) a role, folded. `topic` is a path or a folder, folded.
    A block satisfies `since_us`, `until_us`, `speaker` and `project` if one and the same turn that
    it cites does; a turn satisfies `topic` if a block there cites it.
    """

    since_us: int | None = None
    until_us: int | None = None
    speaker: str | None = None
    topic: str | None = None
    project: str | None = None
    history: bool = False


class Found(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One candidate of a search: `score` is BM25, larger is better, 0 for a neighbour.

    `ref` is a label or a block id, `terms` the document's terms between blanks. `session` is a
    turn's session or a block's topic; `speaker_terms` (those of its speaker's name), `role` and
    `traits` (see `traits.Trait`) are a turn's only.
    """

    row: int
    ref: str
    score: float
    terms: str
    at_us: int
    session: str = ""
    speaker_terms: str = ""
    role: str = ""
    traits: int = 0
