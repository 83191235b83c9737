"""Reads the transcripts of pi.

One JSONL file a session, a tree of entries: `entries.py` tells how it becomes turns and what
their ids are, `words.py` who said them, `files.py` what else a file holds, `set.py` how
forks share what they begin with.

Choices that the files leave open:

- Where the session is moved to an older entry, all that it leaves stays live: nothing is taken back
  by it. The head is where the session is, which may be inside a branch until the next prompt.
- Summaries of branches and compactions, commands that a person ran in a shell, and what extensions
  put in are no turns; an edit of the model's context changes nothing that was said.
- An answer that was broken off is of kind `runtime`, one that ended in an error of kind `error`;
  without words they are none.
- What a sub-agent is told is of kind `runtime`; such sessions lie in a folder that has the name of
  their parent's file, or is one of those in which extensions keep them.
- Several files with the id of one session are that session.
- A session that only names another as its parent, without copying from it, begins with a root.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from turnmark_session_store.transcripts.pi.files import Transcript, read_transcript
from turnmark_session_store.transcripts.pi.sessions import AGENT, SessionWriter
from turnmark_session_store.transcripts.pi.set import TranscriptSet
from turnmark_session_store.transcripts.reader import ReadSession, SkippingReader, is_within

# The program and what is built on it write a header first, or one line about the session.
_LINES_LOOKED_AT = 3
_NEWEST_TREE = 3
_MUTATIONS = 4


class PiReader(SkippingReader):
    """Reads finished transcripts of pi; a `Reader`.

    Sessions that began in one of `skip_directories` are passed over with what was forked from
    them: turnmark's own writer works there, and memory must not feed on itself.
    """

    agent = AGENT

    def recognises(self, path: Path, head: bytes) -> bool:
        """Returns whether a file begins with the header of a session."""
        if path.suffix != ".jsonl":
            return False
        return any(map(_is_own_header, head.split(b"\n")[:_LINES_LOOKED_AT]))

    def read(self, paths: Sequence[Path]) -> Iterator[ReadSession]:
        """Yields the sessions of a set of files; holds the words of the whole set in memory.

        Raises:
            Unavailable: if a file cannot be read.
        """
        files = [read_transcript(path) for path in sorted(set(paths))]
        yield from SessionWriter(TranscriptSet(self._without_own(files))).sessions()

    def _without_own(self, files: Sequence[Transcript]) -> list[Transcript]:
        own = {one.session for one in files if is_within(one.project, self._skip_directories)}
        while more := {
            one.session for one in files if one.parent in own and one.session not in own
        }:
            own |= more
        return [one for one in files if one.session not in own]


def is_own_header(record: Mapping[str, Any]) -> bool:
    """Returns whether a record is the header of a session of pi, of any version."""
    if not isinstance(record.get("id"), str):
        return False
    if record.get("kind") == "header":
        return _MUTATIONS in (record.get("version"), record.get("v"))
    version = record.get("version", 1)
    is_known = isinstance(version, int) and 1 <= version <= _NEWEST_TREE
    return record.get("type") == "session" and is_known and "timestamp" in record


def _is_own_header(line: bytes) -> bool:
    try:
        parsed = json.loads(line.strip(b"\0\r ").decode(errors="replace"))
    except (ValueError, RecursionError):
        return False
    return isinstance(parsed, dict) and is_own_header(cast("dict[str, Any]", parsed))
