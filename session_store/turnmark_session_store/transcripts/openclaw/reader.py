"""Reads the transcripts of OpenClaw: databases since 2026.8, files before that.

A session is a conversation from one reset to the next, under the name of its first transcript;
which transcripts are one session tells `windows.py`, what is read of a database
`tables.py`, of files `files.py`. Who said a message, and what of it, tells
`words.py`. Ids are global; why, tells `entries.py`.

Choices that the transcripts leave open:

- A window whose reason is `rewind` is a take-back. The program writes that word for one act alone:
  a person picks a message of theirs and takes it back, with all that came after, to say it anew.
  The window begins with a copy of everything, then a record of where to go on. What was said
  behind that point on the line that was left is taken back, except where something live goes on
  from it: a fork, or the same session after a switch back that is seen before the words were taken
  back. Once they were, a switch brings them back no more than any other reading does; a client can.
- A `leaf` record is none, and neither are `switch` and a second prompt under the same entry: they
  say where the agent stands. All branches stay live.
- A session in `memory_session_tombstones` was taken out of memory by the user. Its words are not
  read, and what was read before is taken back, but for turns that another transcript holds as
  well, or that something live goes on from: a person can have those forgotten.
- A transcript that was deleted or archived at the source takes nothing back.
- `reset` and `rollover` begin a new session and no fork; the first turn's metadata names the one
  before (`previous_session`).
- What sub-agents, scheduled jobs and mail hooks are told is of kind `runtime`, unless the message
  says that a person wrote it; so is a bare command such as `/new`. The metadata names where third
  parties wrote from (`external`).
- A message's sender stands in a field of it where several people write. A direct chat names the
  one person that it is with; that is a name without an id.
- An answer that says that there is none (`NO_REPLY`) is no turn, and neither is the copy of an
  answer that notes its delivery.
- A transcript that was moved into an archive (`session_transcript_archives`, or one for cold ones)
  is not read: nothing says there in which directory it began, and so whose rules it falls under.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from turnmark_events.errors import Unavailable
from turnmark_session_store.transcripts.database_file import (
    MAGIC,
    begins_as_database,
    read_database,
)
from turnmark_session_store.transcripts.database_live import finished_sessions
from turnmark_session_store.transcripts.json_lines import parse_line
from turnmark_session_store.transcripts.openclaw.database import AGENTS, OpenClawDatabaseReader
from turnmark_session_store.transcripts.openclaw.entries import read_header
from turnmark_session_store.transcripts.openclaw.files import (
    FOLDER,
    facts_of,
    families_of,
    name_of,
    read_file,
)
from turnmark_session_store.transcripts.openclaw.sessions import AGENT, SessionWriter
from turnmark_session_store.transcripts.openclaw.set import Transcript
from turnmark_session_store.transcripts.openclaw.tables import is_own
from turnmark_session_store.transcripts.reader import (
    ReadSession,
    SkippingReader,
    is_within,
    predecessors_first,
)

# What the program writes into its transcripts and pi, whose grammar it is, does not.
_OWN_MARKS = (b'"__openclaw"', b'"openclaw:', b'"customType":"model-snapshot"')


class OpenClawReader(SkippingReader):
    """Reads finished transcripts of OpenClaw; a `Reader`.

    Sessions that began in one of `skip_directories` are passed over: turnmark's own writer works
    there, and memory must not feed on itself.
    """

    agent = AGENT

    def __init__(self, *, skip_directories: Sequence[Path] = ()) -> None:
        super().__init__(skip_directories=skip_directories)
        self._databases = OpenClawDatabaseReader()

    def recognises(self, path: Path, head: bytes) -> bool:
        """Returns whether a database has OpenClaw's tables, or a file its transcripts' records.

        A short transcript may hold nothing but what pi writes as well; then the folder tells.
        """
        if head.startswith(MAGIC):
            return _is_own_database(path)
        if name_of(path) is None or not _begins_transcript(head):
            return False
        in_place = path.parent.name == FOLDER and path.parent.parent.parent.name == AGENTS
        return in_place or any(mark in head for mark in _OWN_MARKS)

    def read(self, paths: Sequence[Path]) -> Iterator[ReadSession]:
        """Yields the sessions of a set; holds the words of a family of transcripts in memory.

        A transcript that stands in a database and in a file is read in the database.

        Raises:
            Unavailable: if a file or a database cannot be read.
        """
        files: list[Path] = []
        seen: set[str] = set()
        for path in sorted(set(paths)):
            if begins_as_database(path):
                for read in finished_sessions(
                    self._databases, path, skip_directories=self._skip_directories
                ):
                    seen.add(read.session)
                    yield read
            else:
                files.append(path)
        yield from self._of_files(files, seen)

    def _of_files(self, paths: Sequence[Path], seen: set[str]) -> Iterator[ReadSession]:
        read = (read_file(path, facts) for path, facts in facts_of(paths).items())
        own = [one for one in read if not self._is_passed_over(one, seen)]
        families = map(SessionWriter, families_of(own))
        yield from predecessors_first(one for family in families for one in family.sessions())

    def _is_passed_over(self, transcript: Transcript, seen: set[str]) -> bool:
        cwd = transcript.header.cwd if transcript.header is not None else None
        return transcript.facts.session in seen or is_within(cwd, self._skip_directories)


def _is_own_database(path: Path) -> bool:
    try:
        return read_database(path, is_own)
    except Unavailable:
        return False


def _begins_transcript(head: bytes) -> bool:
    """Returns whether the first line is a header as pi and OpenClaw write it."""
    line, newline, _ = head.partition(b"\n")
    record = parse_line(line)
    return isinstance(record, dict) and read_header(record) is not None and bool(newline)
