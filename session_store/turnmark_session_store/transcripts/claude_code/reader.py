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

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from turnmark_session_store.transcripts.claude_code.files import read_file
from turnmark_session_store.transcripts.claude_code.sessions import AGENT, SessionWriter
from turnmark_session_store.transcripts.claude_code.set import TranscriptSet
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
        if path.suffix != ".jsonl":
            return False
        lines = head.split(b"\n")[:_LINES_LOOKED_AT]
        return any(_is_own(line) for line in lines)

    def read(self, paths: Sequence[Path]) -> Iterator[ReadSession]:
        """Yields the sessions of a set of files; holds the words of the whole set in memory.

        Raises:
            Unavailable: if a file cannot be read.
        """
        files = [read_file(path) for path in sorted(set(paths))]
        skipped = {f.session for f in files if f.is_within(self._skip_directories)}
        kept = [
            f
            for f in files
            if not f.is_within(self._skip_directories)
            and not (f.agent_id is not None and f.session in skipped)
        ]
        yield from SessionWriter(TranscriptSet(kept)).sessions()


def _is_own(line: bytes) -> bool:
    try:
        parsed = json.loads(line.strip(b"\0\r ").decode(errors="replace"))
    except (ValueError, RecursionError):
        # The head may end inside a long first line.
        return b'"parentUuid"' in line and b'"sessionId"' in line
    if not isinstance(parsed, dict):
        return False
    record = cast("dict[str, Any]", parsed)
    if "parentUuid" in record and "uuid" in record:
        return True
    kind = record.get("type")
    return kind in _OWN_TYPES or (kind == "summary" and "leafUuid" in record)
