"""Reads the transcripts of Claude Code.

One JSONL file a session, and one for each sub-agent. Ids are uuids, so the namespace is the
agent's: a turn that a branch, a resumed session or a fork copied is the same turn wherever it
stands. How rows become turns is told in `graph.py`, who said them in `words.py`,
how sessions are told apart in `set.py`.

Choices that the files leave open:

- A sub-agent is a session of its own, `<session>.agent-<agent id>`; its caller is the turn that
  spawned it. The task is the first turn there. Without a known caller the task is `runtime`.
- A record that retracts others (`retractedMessageUuids`, `supersedesUuids`) takes their turns back;
  what hangs from them hangs from the turn above, so that they can be retired.
- A compaction's summary is a turn of kind `summary` and a root; what follows hangs where its
  `parentUuid` says. `logicalParentUuid` is never a parent.
- Nothing is taken back because a later prompt stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from turnmark_session_store.transcripts.claude_code.files import read_transcript
from turnmark_session_store.transcripts.claude_code.sessions import AGENT, SessionWriter
from turnmark_session_store.transcripts.claude_code.set import TranscriptSet
from turnmark_session_store.transcripts.json_lines import begins_with
from turnmark_session_store.transcripts.reader import ReadSession, SkippingReader

# Records before the first message carry no parent; these types occur in no other agent's files.
_OWN_TYPES = (
    "file-history-snapshot",
    "queue-operation",
    "permission-mode",
    "last-prompt",
    "custom-title",
    "ai-title",
)
# A first record may be longer than what is looked at.
_CUT_MARKS = (b'"parentUuid"', b'"sessionId"')
# How many lines at the start are looked at: facts about the session stand before the messages.
_LINES_LOOKED_AT = 50


class ClaudeCodeReader(SkippingReader):
    """Reads finished transcripts of Claude Code; a `Reader`.

    Sessions that began in one of `skip_directories` are passed over with their sub-agents:
    turnmark's own writer works there, and memory must not feed on itself.
    """

    agent = AGENT

    def recognises(self, path: Path, head: bytes) -> bool:
        """Returns whether the first lines hold a record as only Claude Code writes it."""
        return path.suffix == ".jsonl" and begins_with(
            head, _is_own, lines=_LINES_LOOKED_AT, cut_marks=_CUT_MARKS
        )

    def read(self, paths: Sequence[Path]) -> Iterator[ReadSession]:
        """Yields the sessions of a set of files; holds the words of the whole set in memory.

        Raises:
            Unavailable: if a file cannot be read.
        """
        files = [read_transcript(path) for path in sorted(set(paths))]
        skipped = {f.session for f in files if f.is_within(self._skip_directories)}
        kept = [
            f
            for f in files
            if not f.is_within(self._skip_directories)
            and not (f.agent_id is not None and f.session in skipped)
        ]
        yield from SessionWriter(TranscriptSet(kept)).sessions()


def _is_own(record: Mapping[str, Any]) -> bool:
    if "parentUuid" in record and "uuid" in record:
        return True
    kind = record.get("type")
    return kind in _OWN_TYPES or (kind == "summary" and "leafUuid" in record)
