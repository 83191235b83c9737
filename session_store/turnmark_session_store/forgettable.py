"""Which turns somebody means who wants a turn, a session or a speaker forgotten.

Nothing here changes anything: the same questions are asked before the erasure, to show what would
go, and again for the erasure itself. Turns that are forgotten already are never named.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

import apsw

from turnmark_session_store.erase import turns_only_of
from turnmark_session_store.queries import json_keys, rows_of
from turnmark_session_store.sessions import get_session
from turnmark_session_store.walks import only_reached_from

_KEPT = "turn.id NOT IN (SELECT turn FROM forgotten_turn)"


def turns_of_session(db: apsw.Connection, name: str, *, shared: bool) -> list[int]:
    """Returns the turns that only this session reaches; with `shared` all that it reaches.

    Raises:
        NotFound: if the session is unknown.
    """
    session = get_session(db, name)
    if not shared:
        return still_kept(db, turns_only_of(db, session.id))
    rows = rows_of(
        db,
        "SELECT tip FROM branch WHERE session = ?1 AND tip IS NOT NULL"
        " UNION SELECT id FROM turn WHERE session = ?1",
        (session.id,),
    )
    return still_kept(db, only_reached_from(db, [turn for (turn,) in rows], []))


def turns_of_speaker(db: apsw.Connection, speaker: str) -> list[int]:
    """Returns the turns of the speaker with this id, or, where no id is so, with this name.

    Names are compared without regard to case and to how their characters are composed. Costs a
    look at the words' table.
    """
    by_id = rows_of(db, "SELECT turn FROM turn_words WHERE speaker_id = ?", (speaker,))
    if by_id:
        return still_kept(db, (turn for (turn,) in by_id))
    wanted = _name(speaker)
    named = rows_of(
        db, "SELECT DISTINCT speaker_name FROM turn_words WHERE speaker_name IS NOT NULL"
    )
    names = [name for (name,) in named if _name(name) == wanted]
    rows = [
        turn
        for name in names
        for (turn,) in rows_of(db, "SELECT turn FROM turn_words WHERE speaker_name = ?", (name,))
    ]
    return still_kept(db, rows)


def turns_with_the_same_words(db: apsw.Connection, turns: Sequence[int]) -> list[int]:
    """Returns `turns` and all others, in any session, that say exactly the same.

    Costs a look at every turn.
    """
    rows = rows_of(
        db,
        "SELECT turn FROM turn_words WHERE text IN (SELECT text FROM turn_words"
        " JOIN json_each(?) ON turn = value) ORDER BY turn",
        (json_keys(turns),),
    )
    return still_kept(db, [*turns, *(turn for (turn,) in rows)])


def still_kept(db: apsw.Connection, turns: Iterable[int]) -> list[int]:
    """Returns those of `turns` that were not forgotten, oldest first, each once."""
    rows = rows_of(
        db,
        "SELECT DISTINCT turn.id FROM json_each(?) JOIN turn ON turn.id = value"
        f" WHERE {_KEPT} ORDER BY turn.id",
        (json_keys(turns),),
    )
    return [turn for (turn,) in rows]


def texts_of(db: apsw.Connection, turns: Iterable[int]) -> list[str]:
    """Returns the words of `turns` as they are stored, without those that have none."""
    rows = rows_of(
        db,
        "SELECT text FROM json_each(?) JOIN turn_words ON turn = value ORDER BY turn",
        (json_keys(turns),),
    )
    return [text.decode("utf-8", "replace") for (text,) in rows]


def sessions_of(db: apsw.Connection, turns: Iterable[int]) -> list[str]:
    """Returns the sessions in which `turns` were first said, by name."""
    rows = rows_of(
        db,
        "SELECT DISTINCT name FROM json_each(?) JOIN turn ON turn.id = value"
        " JOIN session ON session.id = turn.session ORDER BY name",
        (json_keys(turns),),
    )
    return [name for (name,) in rows]


def _name(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().strip()
