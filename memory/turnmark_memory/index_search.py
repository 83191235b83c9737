"""Searching the index: which terms to look for, under which conditions, and what comes back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import json

from turnmark_memory.index_file import Database
from turnmark_memory.index_rows import Row
from turnmark_memory.index_schema import Filters, Found, Kind
from turnmark_memory.search_text import match_any

_MOST_MATCHES = 3_000
"""Documents that a search may have to score. Above, the most frequent terms are not looked for
(they still count in the coverage): scoring costs about 1 us a match, and a term that many
documents share tells them apart least. Source: benchmarks/recall_scale.py."""

_MOST_TERMS = 48
"""Terms looked for in one search, the rarest first; a long question has more than it needs."""

_FREQUENT = 200
"""Frequencies from here on outlast a write: to count one walks the list of its documents, and off
by a few it still says the same. Smaller ones are counted anew after each write, because a word
that came in just now must be found."""

_REMEMBERED_FREQUENCIES = 50_000

_REMEMBERED_ROWS = 50_000
"""Rows of lists kept between two writes, 2 MB: a recall and a context of one turn ask the same."""

_STALE_GROWTH = 1.1
"""Remembered frequencies are counted anew after the documents grew or shrank by this factor."""

_TURN_FOUND = """turn.row, label, {score}, turn.terms, at_us, session, speaker_terms, role,
    traits"""
_BLOCK_FOUND = """block.row, block, {score}, block.terms, block.topic,
    coalesce(learnt_us,
             (SELECT max(at_us) FROM cite JOIN turn USING (label) WHERE cite.row = block.row),
             updated_us, 0)"""

# CROSS JOIN: the words come first, whatever the planner believes about a condition.
_SEARCH: dict[Kind, str] = {
    "turn": f"""SELECT {_TURN_FOUND.format(score="-turn_words.rank")}
        FROM turn_words CROSS JOIN turn ON turn.row = turn_words.rowid
        WHERE turn_words MATCH :match {{where}} ORDER BY turn_words.rank LIMIT :k""",
    "block": f"""SELECT {_BLOCK_FOUND.format(score="-block_words.rank")}
        FROM block_words CROSS JOIN block ON block.row = block_words.rowid
        WHERE block_words MATCH :match {{where}} ORDER BY block_words.rank LIMIT :k""",
}

_NAMED: dict[Kind, str] = {
    "turn": f"""SELECT {_TURN_FOUND.format(score="0.0")}
        FROM json_each(:refs) AS here CROSS JOIN turn ON turn.{{name}} = here.value
        WHERE 1 {{where}}""",
    "block": f"""SELECT {_BLOCK_FOUND.format(score="0.0")}
        FROM json_each(:refs) AS here CROSS JOIN block ON block.{{name}} = here.value
        WHERE 1 {{where}}""",
}

# Where nobody noted what a turn was said after, the lines of its session tell.
_BESIDE = """SELECT here.value,
    CASE WHEN given.after IS NOT NULL
        THEN (SELECT other.row FROM turn AS other WHERE other.label = given.after)
        ELSE (SELECT other.row FROM turn AS other
              WHERE other.session = given.session AND other.position < given.position
              ORDER BY other.position DESC LIMIT 1)
        END,
    coalesce(
        (SELECT other.row FROM turn AS other
         WHERE other.after = given.label ORDER BY other.session, other.position LIMIT 1),
        (SELECT other.row FROM turn AS other
         WHERE other.session = given.session AND other.position > given.position
             AND other.after IS NULL
         ORDER BY other.position LIMIT 1)
    )
    FROM json_each(?) AS here CROSS JOIN turn AS given ON given.row = here.value"""

_OF_TURN = {
    "since_us": "turn.at_us >= :since_us",
    "until_us": "turn.at_us < :until_us",
    "speaker": "instr(turn.speaker_keys, char(10) || :speaker || char(10))",
    "project": "turn.project = :project",
}
_TOPIC = "substr(fold(block.topic) || '/', 1, length(:topic) + 1) = :topic || '/'"


_ROWS = json.Decoder(list[int])


class Frequencies:
    """In how many documents of one kind terms stand, remembered until a write may change it.

    And in which: to list the documents of a rare term tells how many there are as well.
    """

    def __init__(self) -> None:
        self._frequent: dict[str, int] = {}
        self._size_then = 0
        self._writes = -1  # after how many of them the rest was counted
        self._rare: dict[str, int] = {}
        self._rows: dict[tuple[str, int], list[int]] = {}
        self._kept = 0

    def of(
        self,
        db: Database,
        kind: Kind,
        terms: Iterable[str],
        *,
        size: int,
        writes: int,
        listed: int = 0,
    ) -> dict[str, int]:
        """Returns the frequency of each of `terms`, after `writes` writes, of `size` documents.

        Up to `listed` documents of a term that is not known yet are listed, as `rows` will be
        asked for them.
        """
        frequent = self._frequent
        grown = not self._size_then / _STALE_GROWTH <= size <= self._size_then * _STALE_GROWTH
        if grown or len(frequent) > _REMEMBERED_FREQUENCIES:
            frequent = self._frequent = {}
            self._size_then = size
        self._forget_before(writes)
        rare = self._rare
        found: dict[str, int] = {}
        for term in terms:
            count = frequent.get(term)
            if count is None:
                count = rare.get(term)
            if count is None:
                count = self._counted(db, kind, term, writes, listed)
                (frequent if count >= _FREQUENT else rare)[term] = count
            found[term] = count
        return found

    def rows(self, db: Database, kind: Kind, term: str, *, writes: int, limit: int) -> list[int]:
        """Returns the newest rows that have a term, after `writes` writes."""
        self._forget_before(writes)
        kept = self._rows
        found = kept.get((term, limit))
        if found is None:
            found = newest_rows(db, kind, match_any([term]), limit)
            if self._kept + len(found) <= _REMEMBERED_ROWS:
                self._kept += len(found)
                kept[term, limit] = found
        return found

    def _counted(self, db: Database, kind: Kind, term: str, writes: int, listed: int) -> int:
        if listed:
            rows = self.rows(db, kind, term, writes=writes, limit=listed)
            if len(rows) < listed:
                return len(rows)
        return _count(db, kind, term)

    def _forget_before(self, writes: int) -> None:
        """A reader beside may still fill what is replaced here; nobody asks that again."""
        if self._writes != writes or len(self._rare) > _REMEMBERED_FREQUENCIES:
            self._rare, self._rows, self._kept = {}, {}, 0
            self._writes = writes


def affordable(frequencies: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Returns the terms to look for, the rarest first, and those that documents have at all.

    At least one is looked for, however frequent.
    """
    present = rarest(frequencies)
    chosen: list[str] = []
    matches = 0
    for term in present:
        matches += frequencies[term]
        if chosen and matches > _MOST_MATCHES:
            break
        chosen.append(term)
    return chosen, present


def rarest(frequencies: Mapping[str, int]) -> list[str]:
    """Returns the terms that documents have at all, the rarest first, as many as are looked for."""
    present = sorted((t for t, n in frequencies.items() if n), key=lambda t: (frequencies[t], t))
    return present[:_MOST_TERMS]


def search(db: Database, kind: Kind, terms: Sequence[str], k: int, filters: Filters) -> list[Found]:
    """Returns up to `k` documents with at least one of `terms`, best BM25 first."""
    conditions = _turn_conditions(filters) if kind == "turn" else _block_conditions(filters)
    where = "".join(f" AND {condition}" for condition in conditions)
    bound = {"match": match_any(terms), "k": k, **_bindings(filters)}
    make = _found_turn if kind == "turn" else _found_block
    return [make(row) for row in db.execute(_SEARCH[kind].format(where=where), bound).fetchall()]


def documents(db: Database, kind: Kind, refs: Iterable[str], filters: Filters) -> list[Found]:
    """Returns those of `refs`, labels or ids, that satisfy `filters`, with score 0."""
    return _named(db, kind, "label" if kind == "turn" else "block", list(refs), filters)


def documents_at(db: Database, kind: Kind, rows: Sequence[int], filters: Filters) -> list[Found]:
    """Returns the documents in those of `rows` that satisfy `filters`, in order, with score 0."""
    return _named(db, kind, "row", rows, filters)


def _named(
    db: Database, kind: Kind, name: str, refs: Sequence[str | int], filters: Filters
) -> list[Found]:
    conditions = _turn_conditions(filters) if kind == "turn" else _block_conditions(filters)
    where = "".join(f" AND {condition}" for condition in conditions)
    bound = {"refs": json.encode(refs).decode(), **_bindings(filters)}
    make = _found_turn if kind == "turn" else _found_block
    sql = _NAMED[kind].format(name=name, where=where)
    return [make(row) for row in db.execute(sql, bound).fetchall()]


def narrowed(db: Database, kind: Kind, limit: int, filters: Filters) -> list[str]:
    """Returns the labels or ids of up to `limit` documents that satisfy `filters`, newest first."""
    conditions = _turn_conditions(filters) if kind == "turn" else _block_conditions(filters)
    where = "".join(f" AND {condition}" for condition in conditions)
    name = "label" if kind == "turn" else "block"
    sql = f"SELECT {name} FROM {kind} WHERE 1 {where} ORDER BY row DESC LIMIT :limit"
    found = db.execute(sql, {"limit": limit, **_bindings(filters)}).fetchall()
    return [str(ref) for (ref,) in found]


def is_narrow(filters: Filters) -> bool:
    """Tells whether the filters leave out documents for another reason than being superseded."""
    return bool(_bindings(filters))


def beside(db: Database, rows: Iterable[int]) -> dict[int, tuple[int | None, int | None]]:
    """Returns, by row of a turn, the rows of the turns before and after it.

    Those are on the same branch: of several that follow a turn, the first archived.
    """
    found = db.execute(_BESIDE, (json.encode(list(rows)).decode(),)).fetchall()
    return {row: (before, after) for row, before, after in found}


def newest_rows(db: Database, kind: Kind, match: str, limit: int) -> list[int]:
    """Returns the rows that match, the newest ones where there are more than `limit`.

    A list is stored from the oldest on, and to read it from its end takes a third longer. It comes
    as one JSON text, which is ten times as fast as rows.
    """
    rows = _rows(db, kind, match, "", limit)
    return rows if len(rows) < limit else _rows(db, kind, match, "ORDER BY rowid DESC", limit)


def _rows(db: Database, kind: Kind, match: str, order: str, limit: int) -> list[int]:
    found = db.execute(
        f"""SELECT json_group_array(rowid) FROM (
                SELECT rowid FROM {kind}_words WHERE {kind}_words MATCH ? {order} LIMIT ?)""",
        (match, limit),
    ).fetchone()
    return [] if found is None else _ROWS.decode(found[0])


def _count(db: Database, kind: Kind, term: str) -> int:
    found = db.execute(f"SELECT doc FROM {kind}_vocabulary WHERE term = ?", (term,)).fetchone()
    return int(found[0]) if found else 0


def _bindings(filters: Filters) -> dict[str, str | int]:
    given = {
        "since_us": filters.since_us,
        "until_us": filters.until_us,
        "speaker": filters.speaker,
        "topic": filters.topic,
        "project": filters.project,
    }
    return {name: value for name, value in given.items() if value is not None}


def _turn_conditions(filters: Filters) -> list[str]:
    given = _bindings(filters)
    found = [condition for name, condition in _OF_TURN.items() if name in given]
    if "topic" in given:
        found.append(
            "EXISTS (SELECT 1 FROM cite JOIN block USING (row)"
            f" WHERE cite.label = turn.label AND {_TOPIC})"
        )
    return found


def _block_conditions(filters: Filters) -> list[str]:
    given = _bindings(filters)
    found = [] if filters.history else ["superseded_by IS NULL AND superseded_on IS NULL"]
    if "topic" in given:
        found.append(_TOPIC)
    of_turn = [condition for name, condition in _OF_TURN.items() if name in given]
    if of_turn:
        cited = "SELECT 1 FROM cite JOIN turn USING (label) WHERE cite.row = block.row"
        found.append(f"(EXISTS ({cited} AND {' AND '.join(of_turn)}){_or_uncited(given)})")
    return found


def _or_uncited(given: Mapping[str, object]) -> str:
    """A person's block has no turns to ask: it goes by the time it was written alone."""
    if "speaker" in given or "project" in given:
        return ""
    times = [_OF_TURN[name] for name in ("since_us", "until_us") if name in given]
    own = " AND ".join(times).replace("turn.at_us", "block.updated_us")
    return f" OR (NOT EXISTS (SELECT 1 FROM cite WHERE cite.row = block.row) AND {own})"


def _found_turn(row: Row) -> Found:
    number, ref, score, terms, at_us, session, speaker_terms, role, traits = row
    return Found(
        row=number,
        ref=ref,
        score=score,
        terms=terms,
        at_us=at_us,
        session=session,
        speaker_terms=speaker_terms,
        role=role,
        traits=traits,
    )


def _found_block(row: Row) -> Found:
    number, ref, score, terms, topic, at_us = row
    return Found(row=number, ref=ref, score=score, terms=terms, session=topic, at_us=at_us)
