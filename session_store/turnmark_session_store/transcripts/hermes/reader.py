"""Reads the sessions of Hermes: one SQLite database a profile, or the files of older versions.

Choices that the rows leave open:

- A turn is told by its role, words and time, within its family: ids of rows change with each copy.
- Rows that were rewound (neither active nor compacted) are taken back: the row is a record of the
  agent that says so. Hermes can bring them back; here they stay taken back, as nothing that is read
  restores a turn. What is said behind them hangs from the last turn that held.
- Rows that a compaction archived were said, once, however often they were written again.
- A session that goes on behind a compaction, and a branch, are forks of what they go on from; a
  session that followed a reset is one of its own. Without its origin a session begins with a root.
- What sub-agents are told is of kind `runtime`; their caller is the turn whose call of a tool names
  the task. All that a schedule set off is `runtime`, and so is what the program asks the model for
  its own memory, with the answer.
- The speaker is the session's user where one person talks. In a group no field says who wrote a
  row; the name that stands before the text stays what it is, a part of the text.
- What the bot overheard in a group was said by people: a turn, with `observed` in its metadata.
- Summaries, lists of tasks, tools' rows and what the model was shown besides are none. Behind a
  command for a skill only what was typed with it is kept.
- A row whose words are edited where it stands is another turn; nothing tells of it by itself.
- Where a session is in the database and in an older version's files, the database counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from turnmark_events.errors import Unavailable
from turnmark_session_store.transcripts.database_file import (
    MAGIC,
    Database,
    begins_as_database,
    read_database,
)
from turnmark_session_store.transcripts.database_live import finished_sessions
from turnmark_session_store.transcripts.hermes.database import DATABASE, HermesDatabaseReader
from turnmark_session_store.transcripts.hermes.files import is_hermes_file, read_hermes_files
from turnmark_session_store.transcripts.hermes.records import is_hermes
from turnmark_session_store.transcripts.hermes.sessions import AGENT
from turnmark_session_store.transcripts.reader import ReadSession, SkippingReader


class HermesReader(SkippingReader):
    """Reads finished sessions of Hermes; a `Reader`.

    Sessions that began in one of `skip_directories` are left out: turnmark's own writer works
    there, and memory must not feed on itself.
    """

    agent = AGENT

    def recognises(self, path: Path, head: bytes) -> bool:
        """Returns whether a file is a database with Hermes' tables, or an older version's file.

        Raises:
            Unavailable: if it has the name of Hermes' database and can't be read; one of any other
                name is then another program's.
        """
        if not head.startswith(MAGIC):
            return is_hermes_file(path, head)
        try:
            return read_database(path, is_hermes)
        except Unavailable:
            if path.name == DATABASE:
                raise
            return False

    def read(self, paths: Sequence[Path]) -> Iterator[ReadSession]:
        """Yields the sessions of databases, then those that are in files alone.

        Raises:
            Unavailable: if one can't be read.
        """
        databases, files = _sorted_out(paths)
        live, own = HermesDatabaseReader(), self._skip_directories
        seen: set[str] = set()
        for path in databases:
            for session in finished_sessions(live, path, skip_directories=own):
                if session.session not in seen:
                    yield session
                    seen.add(session.session)
            if files and own:  # an older version's file doesn't say where its session began
                seen |= read_database(path, self._left_out)
        yield from read_hermes_files(files, without=seen)

    def _left_out(self, db: Database) -> set[str]:
        """Returns the sessions of a database that are none of a person's."""
        conversations = HermesDatabaseReader().conversations(db)
        within = (one.sessions_within(self._skip_directories) for one in conversations)
        return set[str]().union(*within)


def _sorted_out(paths: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Returns the databases, then the other files."""
    databases: list[Path] = []
    files: list[Path] = []
    for path in sorted(set(paths)):
        (databases if begins_as_database(path) else files).append(path)
    return databases, files
