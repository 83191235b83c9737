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

from collections.abc import Iterator, Sequence
from pathlib import Path

from turnmark_session_store.transcripts.json_lines import begins_with
from turnmark_session_store.transcripts.pi.files import (
    LINES_LOOKED_AT,
    Transcript,
    is_own_header,
    read_transcript,
)
from turnmark_session_store.transcripts.pi.sessions import AGENT, SessionWriter
from turnmark_session_store.transcripts.pi.set import TranscriptSet
from turnmark_session_store.transcripts.reader import ReadSession, SkippingReader, is_within


class PiReader(SkippingReader):
    """Reads finished transcripts of pi; a `Reader`.

    Sessions that began in one of `skip_directories` are passed over with what was forked from
    them: turnmark's own writer works there, and memory must not feed on itself.
    """

    agent = AGENT

    def recognises(self, path: Path, head: bytes) -> bool:
        """Returns whether a file begins with the header of a session."""
        return path.suffix == ".jsonl" and begins_with(head, is_own_header, lines=LINES_LOOKED_AT)

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
