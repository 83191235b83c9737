"""Rows of the index and the documents they stand for; every statement that writes is here."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from turnmark_memory.index_file import Database
from turnmark_memory.index_schema import BlockDoc, Kind, TopicDoc, TopicRow, TurnDoc
from turnmark_memory.search_text import fold, terms_of, time_terms
from turnmark_memory.traits import traits_of

Row = Sequence[Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

TURN_COLUMNS = (
    "label, namespace, id, session, agent, project, role, speaker_id, speaker_name, "
    "at_us, text, path, line, position, after"
)
_BLOCK_COLUMNS = "block, topic, heading, text, superseded_by, superseded_on, updated_us"


def put_turn(db: Database, doc: TurnDoc) -> None:
    """Writes a turn in place of the one with its label; one that was forgotten stays out."""
    if db.execute("SELECT 1 FROM forgotten WHERE label = ?", (doc.label,)).fetchone():
        return
    drop_turn(db, doc.label)
    named = list(dict.fromkeys(terms_of(doc.speaker_name or "")))
    terms = joined([*time_terms(doc.time), *named, *terms_of(doc.text)])
    values = (
        *(doc.label, doc.namespace, doc.id, doc.session, doc.agent, doc.project, doc.role),
        *(doc.speaker_id, doc.speaker_name, microseconds(doc.time), doc.text),
        *(doc.path, doc.line, doc.position, doc.after, int(traits_of(doc.text))),
        *(_speaker_keys(doc), joined(named), terms),
    )
    marks = ", ".join("?" * len(values))
    db.execute(
        f"INSERT INTO turn ({TURN_COLUMNS}, traits, speaker_keys, speaker_terms, terms)"
        f" VALUES ({marks})",
        values,
    )
    row = db.last_insert_rowid()
    db.execute("INSERT INTO turn_words (rowid, terms) VALUES (?, ?)", (row, terms))
    _count_speaker(db, named, 1)


def drop_turn(db: Database, label: str) -> None:
    """Erases a turn and its words; an unknown one is fine."""
    sql = "SELECT row, terms, speaker_terms FROM turn WHERE label = ?"
    found = db.execute(sql, (label,)).fetchone()
    if found is None:
        return
    row, terms, named = found
    db.execute(
        "INSERT INTO turn_words (turn_words, rowid, terms) VALUES ('delete', ?, ?)", (row, terms)
    )
    db.execute("DELETE FROM turn WHERE row = ?", (row,))
    _count_speaker(db, str(named).split(), -1)


def put_topic(db: Database, given: TopicDoc) -> None:
    """Writes a topic and its blocks in place of what was there; moved blocks leave elsewhere.

    Blocks that are as they were keep their rows: a write among the words costs more the more words
    the index has.
    """
    same = _same_rows(db, given)
    _drop_rows(db, given.topic, frozenset(same.values()))
    db.execute(
        "INSERT INTO topic VALUES (?, ?, ?, ?)",
        (given.topic, given.about, given.tokens, _microseconds_or_none(given.updated_at)),
    )
    for block in dict.fromkeys(given.links):
        db.execute("INSERT INTO link VALUES (?, ?)", (block, given.topic))
    named = terms_of(given.topic.partition("/")[2] or given.topic)
    for place, doc in enumerate(given.blocks):
        if doc.block in same:
            row = same[doc.block]
            db.execute("UPDATE block SET place = ?1 WHERE row = ?2 AND place <> ?1", (place, row))
        else:
            _put_block(db, doc, given.topic, place, named)


def drop_topic(db: Database, topic: str) -> None:
    """Takes a topic and its blocks out; an unknown one is fine."""
    _drop_rows(db, topic, frozenset())


def _drop_rows(db: Database, topic: str, kept: frozenset[int]) -> None:
    for row, terms in db.execute(
        "SELECT row, terms FROM block WHERE topic = ?", (topic,)
    ).fetchall():
        if row not in kept:
            _drop_block(db, row, terms)
    db.execute("DELETE FROM link WHERE topic = ?", (topic,))
    db.execute("DELETE FROM topic WHERE topic = ?", (topic,))


def _same_rows(db: Database, given: TopicDoc) -> dict[str, int]:
    """Returns the rows of the blocks that are in the topic already, just as they are given."""
    times = Counter(doc.block for doc in given.blocks)
    found: dict[str, int] = {}
    for doc in given.blocks:
        row = row_of_block(db, doc.block) if times[doc.block] == 1 else None
        if row is None:
            continue
        there = block_doc(db, row)
        wanted = msgspec.structs.replace(
            doc, topic=given.topic, aliases=tuple(sorted(set(doc.aliases)))
        )
        if there == wanted and (not doc.cites or _is_timed(db, row)):
            found[doc.block] = row
    return found


def _is_timed(db: Database, row: int) -> bool:
    sql = "SELECT 1 FROM block WHERE row = ? AND learnt_us IS NOT NULL"
    return db.execute(sql, (row,)).fetchone() is not None


def set_learnt(db: Database, label: str) -> None:
    """Brings the times of blocks that cite a turn in step with the turns that are left."""
    db.execute(
        """UPDATE block SET learnt_us = (SELECT max(at_us) FROM cite JOIN turn USING (label)
                                         WHERE cite.row = block.row)
           WHERE row IN (SELECT cite.row FROM cite WHERE cite.label = ?)""",
        (label,),
    )


def pieces_of_words(db: Database, kind: Kind) -> int:
    """Returns in how many places a search looks for a word: each write adds some."""
    found = db.execute(f"SELECT count(DISTINCT segid) FROM {kind}_words_idx").fetchone()
    return 0 if found is None else int(found[0])


def merge_all_words(db: Database, kind: Kind) -> None:
    """Merges what words were written in, at once."""
    db.execute(f"INSERT INTO {kind}_words ({kind}_words) VALUES ('optimize')")


def merge_words(db: Database, kind: Kind, pages: int) -> bool:
    """Merges up to `pages` pages of what words were written in; tells whether that was not all.

    A negative number begins anew, with all of it; see FTS5's command `merge`.
    """
    before = db.total_changes()
    sql = f"INSERT INTO {kind}_words ({kind}_words, rank) VALUES ('merge', ?)"
    db.execute(sql, (pages,))
    return db.total_changes() - before > 1


def turn_doc(row: Row) -> TurnDoc:
    """Returns the turn of a row of `TURN_COLUMNS`."""
    return TurnDoc(
        label=str(row[0]),
        namespace=str(row[1]),
        id=str(row[2]),
        session=str(row[3]),
        agent=str(row[4]),
        project=_text_or_none(row[5]),
        role=str(row[6]),
        speaker_id=_text_or_none(row[7]),
        speaker_name=_text_or_none(row[8]),
        time=moment(row[9]),
        text=str(row[10]),
        path=str(row[11]),
        line=row[12],
        position=row[13],
        after=_text_or_none(row[14]),
    )


def topic_row(row: Row) -> TopicRow:
    """Returns the topic of a row of `topic, about, tokens, updated_us` and the blocks' number."""
    topic, about, tokens, updated_us, blocks = row
    return TopicRow(
        topic=str(topic),
        about=str(about),
        tokens=tokens,
        updated_at=None if updated_us is None else moment(updated_us),
        blocks=blocks,
    )


def row_of_block(db: Database, block: str) -> int | None:
    """Returns the row of the block with this id, else with this alias."""
    sql = """SELECT row FROM block WHERE block = ?1
             UNION ALL SELECT row FROM alias WHERE alias = ?1 LIMIT 1"""
    found = db.execute(sql, (block.removeprefix("^"),)).fetchone()
    return None if found is None else found[0]


def turn_docs(db: Database, labels: Iterable[str]) -> list[TurnDoc]:
    """Returns the turns with these labels, in their order; unknown ones are left out."""
    sql = f"""SELECT {TURN_COLUMNS} FROM (SELECT value FROM json_each(?)) AS here
              CROSS JOIN turn ON turn.label = here.value"""
    return [turn_doc(row) for row in db.execute(sql, (_listed(labels),)).fetchall()]


def rows_of_blocks(db: Database, ids: Iterable[str]) -> list[int]:
    """Returns the rows of the blocks with these ids, aliases left aside."""
    sql = "SELECT row FROM json_each(?) AS here CROSS JOIN block ON block.block = here.value"
    return [row for (row,) in db.execute(sql, (_listed(ids),)).fetchall()]


def block_doc(db: Database, row: int) -> BlockDoc:
    """Returns the block in `row`, which must be there."""
    for _, found in block_docs(db, [row]):
        return found
    raise LookupError(row)


def block_docs(db: Database, rows: Iterable[int]) -> list[tuple[int, BlockDoc]]:
    """Returns the blocks in `rows`, in their order, each with its row; costs three statements."""
    listed = (_listed(rows),)
    sql = f"""SELECT here.value, {_BLOCK_COLUMNS} FROM json_each(?) AS here
              CROSS JOIN block ON block.row = here.value"""
    found = db.execute(sql, listed).fetchall()
    aliases = _by_row(
        db,
        """SELECT alias.row, alias FROM json_each(?) AS here
           CROSS JOIN alias ON alias.row = here.value ORDER BY alias""",
        listed,
    )
    cites = _by_row(
        db,
        """SELECT cite.row, label FROM json_each(?) AS here
           CROSS JOIN cite ON cite.row = here.value ORDER BY cite.row, place""",
        listed,
    )
    return [
        (
            row,
            BlockDoc(
                block=str(block),
                topic=str(topic),
                heading=_text_or_none(heading),
                text=str(text),
                superseded_by=_text_or_none(by),
                superseded_on=_text_or_none(on),
                updated_at=None if updated_us is None else moment(updated_us),
                aliases=tuple(aliases[row]),
                cites=tuple(cites[row]),
            ),
        )
        for row, block, topic, heading, text, by, on, updated_us in found
    ]


def _by_row(db: Database, sql: str, bound: tuple[str]) -> defaultdict[int, list[str]]:
    found: defaultdict[int, list[str]] = defaultdict(list)
    for row, value in db.execute(sql, bound).fetchall():
        found[row].append(str(value))
    return found


def _listed(values: Iterable[object]) -> str:
    return msgspec.json.encode(list(values)).decode()


def cites_of_row(db: Database, row: int) -> tuple[str, ...]:
    """Returns the labels that the block in `row` cites, in their order."""
    found = db.execute("SELECT label FROM cite WHERE row = ? ORDER BY place", (row,)).fetchall()
    return tuple(str(label) for (label,) in found)


def successors_of_turns(db: Database, labels: Iterable[str]) -> dict[str, str]:
    """Maps turns that no block rests on any more to the block that stands for their blocks now."""
    sql = """WITH RECURSIVE
        named (name, row) AS (SELECT block, row FROM block UNION ALL SELECT alias, row FROM alias),
        later (label, name) AS (
            SELECT label, max(superseded_by) FROM cite JOIN block USING (row)
            WHERE label IN (SELECT value FROM json_each(?))
            GROUP BY label HAVING count(superseded_by) = count(*)
            UNION
            SELECT label, superseded_by FROM later JOIN named USING (name) JOIN block USING (row)
            WHERE superseded_by IS NOT NULL
        )
        SELECT label, block FROM later JOIN named USING (name) JOIN block USING (row)
        WHERE superseded_by IS NULL"""
    rows = db.execute(sql, (_listed(labels),))
    return {str(label): str(block) for label, block in rows.fetchall()}


def joined(terms: Sequence[str]) -> str:
    """Returns terms between blanks, so that `" term " in` finds one."""
    return f" {' '.join(terms)} " if terms else " "


def microseconds(at: datetime) -> int:
    """Returns an aware time as microseconds since 1970, exactly."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def moment(at_us: int) -> datetime:
    """Returns the aware time in UTC of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=at_us)


def _put_block(db: Database, doc: BlockDoc, topic: str, place: int, named: list[str]) -> None:
    sql = "SELECT row, terms FROM block WHERE block = ?"
    for row, terms in db.execute(sql, (doc.block,)).fetchall():
        _drop_block(db, row, terms)
    terms = joined([*named, *terms_of(doc.heading or ""), *terms_of(doc.text)])
    db.execute(
        """INSERT INTO block (block, topic, heading, text, superseded_by, superseded_on,
                              updated_us, place, terms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)""",
        (
            *(doc.block, topic, doc.heading, doc.text, doc.superseded_by, doc.superseded_on),
            *(_microseconds_or_none(doc.updated_at), place, terms),
        ),
    )
    row = db.last_insert_rowid()
    db.execute("INSERT INTO block_words (rowid, terms) VALUES (?, ?)", (row, terms))
    for alias in doc.aliases:
        db.execute("INSERT OR REPLACE INTO alias VALUES (?, ?)", (alias, row))
    for at, label in enumerate(doc.cites):
        db.execute("INSERT INTO cite VALUES (?, ?, ?)", (row, at, label))
    db.execute(
        """UPDATE block SET learnt_us = (SELECT max(at_us) FROM cite JOIN turn USING (label)
                                         WHERE cite.row = block.row) WHERE row = ?""",
        (row,),
    )


def _drop_block(db: Database, row: int, terms: str) -> None:
    db.execute(
        "INSERT INTO block_words (block_words, rowid, terms) VALUES ('delete', ?, ?)", (row, terms)
    )
    for table in ("block", "alias", "cite"):
        db.execute(f"DELETE FROM {table} WHERE row = ?", (row,))


def _count_speaker(db: Database, named: Sequence[str], by: int) -> None:
    for term in dict.fromkeys(named):
        db.execute(
            "INSERT INTO speaker VALUES (?1, ?2) ON CONFLICT DO UPDATE SET turns = turns + ?2",
            (term, by),
        )
        if by < 0:
            db.execute("DELETE FROM speaker WHERE term = ? AND turns <= 0", (term,))


def _speaker_keys(doc: TurnDoc) -> str:
    """Returns what a speaker can be asked for by, one a line; without id and name the role."""
    keys = [fold(key) for key in (doc.speaker_id, doc.speaker_name) if key]
    return "".join(f"\n{key.replace(chr(10), ' ')}" for key in keys or [doc.role]) + "\n"


def _microseconds_or_none(at: datetime | None) -> int | None:
    return None if at is None else microseconds(at)


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)
