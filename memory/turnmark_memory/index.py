"""The derived index: every archived turn and every block, found by words, labels and ids.

One SQLite file of its own (`.turnmark/index.db`). It is derived: missing, damaged, of another
schema or of another revision than the workspace, it is built anew from `sources/` and `topics/`
with `rebuild`, never repaired; deleting it loses nothing.

Every function here blocks and may be called from any thread. Writers exclude each other; readers
go on beside them and see the state before or after a write, never a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec
import structlog

from turnmark_memory.index_file import DamagedIndex, Database, IndexFile
from turnmark_memory.index_likely import MANY, MOST_LISTED, likely
from turnmark_memory.index_rows import (
    TURN_COLUMNS,
    Row,
    block_doc,
    block_docs,
    cites_of_row,
    drop_topic,
    drop_turn,
    merge_all_words,
    merge_words,
    pieces_of_words,
    put_topic,
    put_turn,
    row_of_block,
    rows_of_blocks,
    set_learnt,
    successors_of_turns,
    topic_row,
    turn_doc,
    turn_docs,
)
from turnmark_memory.index_schema import (
    BlockDoc,
    Counts,
    Filters,
    Found,
    Kind,
    LearntRow,
    TopicDoc,
    TopicRow,
    TurnDoc,
)
from turnmark_memory.index_search import (
    Frequencies,
    affordable,
    beside,
    documents,
    documents_at,
    is_narrow,
    narrowed,
    search,
)

log = structlog.get_logger(__name__)


_KINDS: tuple[Kind, ...] = ("turn", "block")

_MERGED_PAGES = 1_000
"""Pages merged in one transaction: a tenth of a second, which other writes wait for."""


class LiveBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A block that holds now: when its newest source was said, and in how many sessions."""

    block: str
    topic: str
    text: str
    learnt_us: int | None
    sessions: int


class FiledRow(msgspec.Struct, frozen=True, kw_only=True):
    """How often blocks of `topic` cite what one speaker (id, else name) said in one session."""

    topic: str
    session: str
    speaker: str | None
    cites: int


class Index:
    """The index of one workspace: `open` it, compare `revision`, `rebuild` where it differs."""

    def __init__(self, path: Path) -> None:
        self._file = IndexFile(path)
        self._frequencies = _no_frequencies()
        self._sizes: dict[Kind, tuple[int, int]] = {}

    @classmethod
    def open(cls, path: Path) -> Index:
        """Returns the index at `path`; one that can't be used is replaced by an empty one.

        Raises:
            Unavailable: if `path` can't be written, or is another program's database.
        """
        return cls(path)

    def close(self) -> None:
        """Closes the file; a read that is going on in another thread ends as it would have."""
        self._file.close()

    @property
    def revision(self) -> int | None:
        """The workspace's revision that the index shows; None: never built, so rebuild."""
        found = self._one("SELECT value FROM meta WHERE key = 'revision'")
        return None if found is None else int(found[0])

    @revision.setter
    def revision(self, number: int) -> None:
        with self._file.writing() as db:
            _stamp(db, number)

    @property
    def is_damaged(self) -> bool:
        """Tells whether something of it could not be read, and it was not rebuilt since."""
        return self._file.is_damaged

    def add_turns(self, docs: Iterable[TurnDoc]) -> None:
        """Adds turns, or replaces them by label, in one transaction; forgotten ones stay out."""
        with self._file.writing() as db:
            for doc in docs:
                put_turn(db, doc)

    def set_topic(
        self,
        topic: str,
        about: str,
        tokens: int,
        docs: Sequence[BlockDoc],
        *,
        updated_at: datetime | None = None,
        links: Sequence[str] = (),
    ) -> None:
        """Makes `docs`, in their order, the blocks of `topic`; costs what the topic is long.

        A block that stood in another topic leaves it.
        """
        given = TopicDoc(
            topic=topic,
            about=about,
            tokens=tokens,
            blocks=tuple(docs),
            updated_at=updated_at,
            links=tuple(links),
        )
        with self._file.writing() as db:
            put_topic(db, given)

    def remove_topic(self, topic: str) -> None:
        """Takes a topic and its blocks out; an unknown one is fine."""
        with self._file.writing() as db:
            drop_topic(db, topic)

    def forget(self, labels: Iterable[str]) -> None:
        """Erases turns, also from the free pages and the log of the file, and keeps them out.

        Raises:
            Busy: if a long read keeps the log from being emptied; forget them again then.
        """
        with self._file.writing() as db:
            for label in labels:
                drop_turn(db, label)
                set_learnt(db, label)
                db.execute("INSERT OR IGNORE INTO forgotten VALUES (?)", (label,))
        self._file.truncate_log()

    def rebuild(
        self,
        turns: Iterable[TurnDoc],
        topics: Iterable[TopicDoc],
        revision: int,
        *,
        forgotten: Iterable[str] = (),
    ) -> None:
        """Builds the whole index in a file beside and puts it in place of the present one.

        Reads see the old one until then; other writes wait. If it fails the old one stays. What
        was forgotten stays so, as far as the present file can be read.
        """
        kept = {*forgotten, *self._forgotten()}
        with self._file.replacing() as db:
            db.executemany(
                "INSERT OR IGNORE INTO forgotten VALUES (?)", ((f,) for f in sorted(kept))
            )
            for turn in turns:
                put_turn(db, turn)
            for topic in topics:
                put_topic(db, topic)
            for kind in _KINDS:
                merge_all_words(db, kind)
            _stamp(db, revision)
        self._frequencies = _no_frequencies()
        log.info("index_rebuilt", revision=revision, turns=self.size("turn"))

    def compact(self) -> None:
        """Merges what words were written in since: a search by words takes a tenth less after it.

        A third of a second for 100,000 turns, in steps between which others write; nothing where
        nothing was written.
        """
        for kind in _KINDS:
            with self._file.reading() as db:
                pages, is_left = -_MERGED_PAGES, pieces_of_words(db, kind) > 1
            while is_left:
                with self._file.writing() as db:
                    is_left = merge_words(db, kind, pages)
                pages = _MERGED_PAGES

    def turn(self, label: str) -> TurnDoc | None:
        """Returns the turn with this label."""
        found = self._one(f"SELECT {TURN_COLUMNS} FROM turn WHERE label = ?", label)
        return None if found is None else turn_doc(found)

    def turns_of_id(self, turn: str, namespace: str | None = None) -> list[TurnDoc]:
        """Returns the turns with this id: one per namespace, or that of `namespace`."""
        sql = f"""SELECT {TURN_COLUMNS} FROM turn
                  WHERE id = ?1 AND (?2 IS NULL OR namespace = ?2) ORDER BY namespace"""
        return [turn_doc(row) for row in self._all(sql, turn, namespace)]

    def block(self, block: str) -> BlockDoc | None:
        """Returns the block with this id or alias, `^` in front or not."""
        with self._file.reading() as db:
            row = row_of_block(db, block)
            return None if row is None else block_doc(db, row)

    def turns(self, labels: Iterable[str]) -> dict[str, TurnDoc]:
        """Returns the turns with these labels, by label; unknown ones are left out."""
        with self._file.reading() as db:
            return {turn.label: turn for turn in turn_docs(db, labels)}

    def blocks(self, ids: Iterable[str]) -> dict[str, BlockDoc]:
        """Returns the blocks with these ids, by id; unknown ones are left out."""
        with self._file.reading() as db:
            return {block.block: block for _, block in block_docs(db, rows_of_blocks(db, ids))}

    def where(self, block: str) -> str | None:
        """Returns the topic that a block (id or alias) stands in."""
        with self._file.reading() as db:
            row = row_of_block(db, block)
            sql = "SELECT topic FROM block WHERE row = ?"
            found = None if row is None else db.execute(sql, (row,)).fetchone()
        return None if found is None else str(found[0])

    def cites(self, block: str) -> tuple[str, ...]:
        """Returns the labels that a block (id or alias) cites, in their order."""
        with self._file.reading() as db:
            row = row_of_block(db, block)
            return () if row is None else cites_of_row(db, row)

    def successors(self, labels: Iterable[str]) -> dict[str, str]:
        """Maps turns all of whose blocks are superseded to the block that holds instead."""
        with self._file.reading() as db:
            return successors_of_turns(db, labels)

    def blocks_citing(self, label: str) -> list[str]:
        """Returns the ids of the blocks that cite a turn, superseded ones too, sorted."""
        sql = "SELECT DISTINCT block FROM cite JOIN block USING (row) WHERE label = ? ORDER BY 1"
        return [str(row[0]) for row in self._all(sql, label)]

    def blocks_of(self, topic: str) -> list[BlockDoc]:
        """Returns the blocks of a topic in the order of its file."""
        sql = "SELECT row FROM block WHERE topic = ? ORDER BY place"
        with self._file.reading() as db:
            rows = db.execute(sql, (topic,)).fetchall()
            return [block for _, block in block_docs(db, (row for (row,) in rows))]

    def newest_of(self, topic: str, limit: int) -> list[BlockDoc]:
        """Returns up to `limit` blocks of a topic that hold now, newest evidence first.

        What cites nothing is older than all that does.
        """
        sql = """SELECT row FROM block WHERE topic = ? AND superseded_by IS NULL
                 ORDER BY coalesce(learnt_us, 0) DESC, place DESC LIMIT ?"""
        with self._file.reading() as db:
            rows = [int(row) for (row,) in db.execute(sql, (topic, limit)).fetchall()]
            docs = dict(block_docs(db, rows))
        return [docs[row] for row in rows]

    def superseded_by(self, block: str) -> list[str]:
        """Returns the ids of the blocks that this one superseded, sorted."""
        sql = "SELECT block FROM block WHERE superseded_by = ? ORDER BY 1"
        return [str(row[0]) for row in self._all(sql, block)]

    def live_blocks(self) -> list[LiveBlock]:
        """Returns every block that holds now, by topic and place; costs a look at all of them."""
        sql = """SELECT block, topic, text, learnt_us,
                        (SELECT count(DISTINCT session) FROM cite JOIN turn USING (label)
                         WHERE cite.row = block.row)
                 FROM block WHERE superseded_by IS NULL ORDER BY topic, place"""
        return [
            LiveBlock(
                block=str(block),
                topic=str(topic),
                text=str(text),
                learnt_us=learnt_us,
                sessions=sessions,
            )
            for block, topic, text, learnt_us, sessions in self._all(sql)
        ]

    def filed(self, turns: int, session: str | None = None) -> list[FiledRow]:
        """Returns where blocks stand that hold now and cite one of the newest `turns`.

        Of one session or, without it, of all; costs a look at so many turns and their blocks.
        """
        newest = (
            "WHERE session = ?2 ORDER BY position DESC"
            if session is not None
            else "ORDER BY row DESC"
        )
        sql = f"""SELECT topic, session, coalesce(speaker_id, speaker_name), count(*)
                  FROM (SELECT label, session, speaker_id, speaker_name FROM turn
                        {newest} LIMIT ?1)
                  JOIN cite USING (label) JOIN block USING (row)
                  WHERE superseded_by IS NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""
        bound = (turns,) if session is None else (turns, session)
        return [
            FiledRow(topic=str(topic), session=str(said_in), speaker=speaker, cites=cites)
            for topic, said_in, speaker, cites in self._all(sql, *bound)
        ]

    def linking_topics(self) -> list[str]:
        """Returns the topics in whose files something links to a block or embeds it, sorted."""
        return [str(row[0]) for row in self._all("SELECT DISTINCT topic FROM link ORDER BY 1")]

    def topics_linking(self, block: str) -> list[str]:
        """Returns the topics in whose files something links to a block or embeds it, sorted."""
        sql = "SELECT topic FROM link WHERE block = ? ORDER BY 1"
        return [str(row[0]) for row in self._all(sql, block)]

    def learnt_in(self, topic: str) -> list[LearntRow]:
        """Returns a topic's blocks that cite a turn, in its order, with when they were learnt."""
        sql = f"""SELECT {_LEARNT} FROM block WHERE topic = ? AND learnt_us IS NOT NULL
                  ORDER BY place, block"""
        return [_learnt_row(row) for row in self._all(sql, topic)]

    def learnt_from(self, label: str) -> list[int]:
        """Returns when the blocks that cite a turn were learnt, in microseconds since 1970."""
        sql = """SELECT learnt_us FROM block JOIN cite USING (row)
                 WHERE label = ? AND learnt_us IS NOT NULL"""
        return [int(row[0]) for row in self._all(sql, label)]

    def learnt_between(self, since_us: int, until_us: int, limit: int) -> list[LearntRow]:
        """Returns the first `limit` blocks learnt from `since_us` up to before `until_us`."""
        sql = f"""SELECT {_LEARNT} FROM block WHERE learnt_us >= ? AND learnt_us < ?
                  ORDER BY learnt_us, topic, place, block LIMIT ?"""
        return [_learnt_row(row) for row in self._all(sql, since_us, until_us, limit)]

    def learnt_steps(self, step_us: int) -> list[int]:
        """Returns, in order, the steps of that length since 1970 in which a block was learnt."""
        sql = """SELECT DISTINCT (learnt_us - ((learnt_us % ?1) + ?1) % ?1) / ?1 FROM block
                 WHERE learnt_us IS NOT NULL ORDER BY 1"""
        return [int(row[0]) for row in self._all(sql, step_us)]

    def topics(self, *, after: str = "", limit: int = -1) -> list[TopicRow]:
        """Returns the topics after the path `after`, sorted by path; all without `limit`."""
        sql = """SELECT topic, about, tokens, updated_us,
                        (SELECT count(*) FROM block WHERE block.topic = topic.topic)
                 FROM topic WHERE topic > ? ORDER BY topic LIMIT ?"""
        return [topic_row(row) for row in self._all(sql, after, limit)]

    def abouts(self, limit: int) -> list[tuple[str, str]]:
        """Returns the first `limit` topics, sorted by path, each with what it is about."""
        sql = "SELECT topic, about FROM topic ORDER BY topic LIMIT ?"
        return [(str(topic), str(about)) for topic, about in self._all(sql, limit)]

    @property
    def exchanges(self) -> int:
        """Counts the rebuilds since it was opened; rows from before one say nothing after it."""
        return self._file.exchanges

    def on_change(self, listener: Callable[[], None]) -> None:
        """Lets `listener` be called after each write, in the thread that wrote.

        It must return at once and touch nothing of the index.
        """
        self._file.on_change = listener

    def turns_from(self, row: int, limit: int, *, upwards: bool) -> list[tuple[int, TurnDoc]]:
        """Returns up to `limit` turns beyond a row, nearest first; later ones have higher rows."""
        sql = f"""SELECT row, {TURN_COLUMNS} FROM turn WHERE row {">" if upwards else "<"} ?
                  ORDER BY row {"ASC" if upwards else "DESC"} LIMIT ?"""
        return [(int(found[0]), turn_doc(found[1:])) for found in self._all(sql, row, limit)]

    def blocks_from(self, row: int, limit: int, *, upwards: bool) -> list[tuple[int, BlockDoc]]:
        """Returns up to `limit` blocks beyond a row; a changed block has a new row."""
        sql = f"""SELECT row FROM block WHERE row {">" if upwards else "<"} ?
                  ORDER BY row {"ASC" if upwards else "DESC"} LIMIT ?"""
        with self._file.reading() as db:
            rows = [int(found[0]) for found in db.execute(sql, (row, limit)).fetchall()]
            return block_docs(db, rows)

    def last_row(self, kind: Kind) -> int:
        """Returns the highest row of a kind, 0 where there is none."""
        found = self._one(f"SELECT coalesce(max(row), 0) FROM {kind}")
        return 0 if found is None else int(found[0])

    def neighbours(self, label: str) -> tuple[TurnDoc | None, TurnDoc | None]:
        """Returns the turns before and after this one in its session."""
        found = self._one("SELECT row FROM turn WHERE label = ?", label)
        if found is None:
            return None, None
        before, after = self.beside([int(found[0])])[int(found[0])]
        return self._turn_at(before), self._turn_at(after)

    def counts(self) -> Counts:
        """Returns how much the index holds."""
        found = self._one("SELECT count(*) FROM topic")
        topics = 0 if found is None else int(found[0])
        return Counts(turns=self.size("turn"), blocks=self.size("block"), topics=topics)

    def is_forgotten(self, label: str) -> bool:
        """Tells whether the turn with this label was erased on request."""
        return self._one("SELECT 1 FROM forgotten WHERE label = ?", label) is not None

    def search(self, kind: Kind, terms: Sequence[str], k: int, filters: Filters) -> list[Found]:
        """Returns up to `k` documents that have at least one of `terms`, best BM25 first."""
        chosen, present = affordable(self.frequencies(kind, terms))
        if not chosen:
            return []
        with self._file.reading() as db:
            found = search(db, kind, chosen, k, filters)
            if len(found) < k and len(chosen) < len(present) and is_narrow(filters):
                # What was left out may be all that the documents behind the filter have.
                found = search(db, kind, present, k, filters)
        return found

    def likely(self, kind: Kind, terms: Sequence[str], k: int, filters: Filters) -> list[Found]:
        """Returns up to `k` documents that `terms` speak for, as candidates for a closer look.

        Among few documents that is what BM25 says, among many the rarity of the terms they have.
        """
        if self.size(kind) <= MANY:
            return self.search(kind, terms, k, filters)
        size, writes, counted = self.size(kind), self._file.writes, self._frequencies[kind]
        with self._file.reading() as db:
            counts = counted.of(db, kind, terms, size=size, writes=writes, listed=MOST_LISTED)
            rows = partial(counted.rows, db, kind, writes=writes, limit=MOST_LISTED)
            found = likely(db, kind, counts, rows, size, k, filters)
        if len(found) < k and is_narrow(filters):
            # What was not listed may be all that the documents behind the filter have.
            known = {one.row for one in found}
            more = self.search(kind, terms, k, filters)
            found += [one for one in more if one.row not in known][: k - len(found)]
        return found

    def found(self, kind: Kind, refs: Iterable[str], filters: Filters) -> list[Found]:
        """Returns those documents of `refs` (labels or ids) that satisfy `filters`, score 0."""
        with self._file.reading() as db:
            return documents(db, kind, refs, filters)

    def narrowed(self, kind: Kind, limit: int, filters: Filters) -> list[str]:
        """Returns up to `limit` labels or ids that satisfy `filters`; none if all documents do."""
        if not is_narrow(filters):
            return []
        with self._file.reading() as db:
            return narrowed(db, kind, limit, filters)

    def found_at(self, kind: Kind, rows: Sequence[int], filters: Filters) -> list[Found]:
        """Returns the documents in those of `rows` that satisfy `filters`, score 0."""
        if not rows:
            return []
        with self._file.reading() as db:
            return documents_at(db, kind, rows, filters)

    def beside(self, rows: Iterable[int]) -> dict[int, tuple[int | None, int | None]]:
        """Returns, by row of a turn, the rows of the turns before and after it."""
        with self._file.reading() as db:
            return beside(db, rows)

    def frequencies(self, kind: Kind, terms: Iterable[str]) -> dict[str, int]:
        """Returns in how many documents each of `terms` stands; large ones are not quite fresh."""
        size, writes = self.size(kind), self._file.writes
        with self._file.reading() as db:
            return self._frequencies[kind].of(db, kind, terms, size=size, writes=writes)

    def size(self, kind: Kind) -> int:
        """Returns the number of documents of a kind; asked once after each write."""
        writes, size = self._sizes.get(kind, (-1, 0))
        if writes != self._file.writes:
            writes = self._file.writes
            found = self._one("SELECT documents FROM size WHERE kind = ?", kind)
            size = 0 if found is None else int(found[0])
            self._sizes[kind] = (writes, size)
        return size

    def speaker_terms(self, terms: Iterable[str]) -> frozenset[str]:
        """Returns those of `terms` that are part of a speaker's name."""
        sql = "SELECT 1 FROM speaker WHERE term = ?"
        with self._file.reading() as db:
            return frozenset(term for term in terms if db.execute(sql, (term,)).fetchone())

    def _turn_at(self, row: int | None) -> TurnDoc | None:
        found = self._one(f"SELECT {TURN_COLUMNS} FROM turn WHERE row = ?", row)
        return None if found is None else turn_doc(found)

    def _forgotten(self) -> list[str]:
        try:
            return [str(row[0]) for row in self._all("SELECT label FROM forgotten")]
        except DamagedIndex:
            return []

    def _one(self, sql: str, *bound: object) -> Row | None:
        with self._file.reading() as db:
            return db.execute(sql, bound).fetchone()

    def _all(self, sql: str, *bound: object) -> list[Row]:
        with self._file.reading() as db:
            return list(db.execute(sql, bound).fetchall())


def _no_frequencies() -> dict[Kind, Frequencies]:
    return {"turn": Frequencies(), "block": Frequencies()}


_LEARNT = "block, topic, text, learnt_us, superseded_by"


def _learnt_row(row: Row) -> LearntRow:
    block, topic, text, learnt_us, superseded_by = row
    return LearntRow(
        block=str(block),
        topic=str(topic),
        text=str(text),
        learnt_us=learnt_us,
        superseded_by=None if superseded_by is None else str(superseded_by),
    )


def _stamp(db: Database, revision: int) -> None:
    db.execute("INSERT OR REPLACE INTO meta VALUES ('revision', ?)", (revision,))
