"""Reads the sessions of opencode.

They lie in one SQLite database, `opencode.db`, in tables that changed twice (`tables.py`);
before that in a JSON file for each message and part, and `opencode export` writes one session into
one file (`files.py`). What becomes of a message tells `records.py`, how sessions
hang together `chain.py` and `set.py`; `live.py` follows databases.

Choices that the stores leave open:

- Ids of messages are global, but a fork's copies have other ones and nothing points back. So a turn
  is known by when it was made, by whom, and its words, which copies keep, and the ids of all
  sessions are one namespace: `chain.py` tells more. Both branches are kept, the turns
  before them once.
- A session that several stores hold is read from the one that is to be believed most: newer tables,
  older ones, an export, files. They are never mixed: what an old store still has may have been
  taken back since.
- What a person undoes is behind a marker of the session, and deleted with the next prompt. The
  marker is a record that it was taken back, and so is what the log says of a deleted message; its
  words are read out of the log, where it has them. A message that is gone without a record was not
  taken back, and one that a fork goes on from stands. What is done again after it was taken back
  stays so here: only a client restores.
- One message is one turn, whose texts are those parts that somebody said. Calls of tools, thoughts,
  and messages without words are none; summaries and answers that were stopped keep their place and
  are no evidence.
- Messages follow each other by their times, as the program itself orders them, whatever they name
  as the question that they answer.
- What stands in a sub-agent's session as a user's is its caller's, and never a person's.
- An answer that is written at this moment is left out; of an unfinished one from before, what there
  is of it counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from turnmark_events.errors import Unavailable
from turnmark_session_store.transcripts.database_file import (
    MAGIC,
    Database,
    begins_as_database,
    read_database,
)
from turnmark_session_store.transcripts.live import Patience
from turnmark_session_store.transcripts.opencode.chain import (
    NOTHING_IS_OPEN,
    Open,
    SessionRecord,
    best_of_each,
    without_program,
    without_sessions,
)
from turnmark_session_store.transcripts.opencode.files import (
    Storage,
    is_export,
    is_stored,
    place_of,
    read_export,
)
from turnmark_session_store.transcripts.opencode.sessions import AGENT, SessionWriter
from turnmark_session_store.transcripts.opencode.set import SessionSet
from turnmark_session_store.transcripts.opencode.tables import (
    has_sessions,
    read_session,
    session_rows,
)
from turnmark_session_store.transcripts.reader import ReadSession, SkippingReader, is_within

_LOG_ENDINGS = ("-wal", "-shm", "-journal")


class OpencodeReader(SkippingReader):
    """Reads opencode's databases, files and exports; a `Reader`.

    Sessions that began in one of `skip_directories` are passed over with their sub-agents:
    turnmark's own writer works there, and memory must not feed on itself.
    """

    agent = AGENT

    def recognises(self, path: Path, head: bytes) -> bool:
        """Returns whether a file is one of opencode's; looks into databases, on disk."""
        if head.startswith(MAGIC):
            return not path.name.endswith(_LOG_ENDINGS) and _is_own_database(path)
        return is_export(path, head) or is_stored(path, head)

    def read(self, paths: Sequence[Path]) -> Iterator[ReadSession]:
        """Yields the sessions of a set of files; holds the words of the whole set in memory.

        Of a file of the old storage all of its session is read, with the files that lie there.

        Raises:
            Unavailable: if a file cannot be read.
        """
        records = best_of_each(list(_records_in(sorted(set(paths)))))
        left_out = {one.id for one in records if is_within(one.project, self._skip_directories)}
        answered = round((time.time() - Patience().orphan_seconds) * 1000)
        resolved = SessionSet(
            without_sessions(without_program(records), left_out),
            open_since=Open(typed_ms=NOTHING_IS_OPEN.typed_ms, answered_ms=answered),
        )
        yield from SessionWriter(resolved).sessions()


def _records_in(paths: Iterable[Path]) -> Iterator[SessionRecord]:
    stored: dict[Path, dict[Path, None]] = {}
    for path in paths:
        place = place_of(path)
        if begins_as_database(path):
            yield from read_database(path, _all_of)
        elif place is None:
            yield read_export(path)
        else:
            own = Storage(place.base).session_file_of(place, path)
            if own is not None:
                stored.setdefault(place.base, {})[own] = None
    for base, files in stored.items():
        yield from Storage(base).sessions(files)


def _all_of(db: Database) -> list[SessionRecord]:
    return [read_session(db, row) for row in session_rows(db).values()]


def _is_own_database(path: Path) -> bool:
    try:
        return read_database(path, has_sessions)
    except Unavailable:
        return False  # nobody's that can be known
