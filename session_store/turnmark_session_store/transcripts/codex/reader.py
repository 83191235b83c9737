"""Reads the transcripts of Codex CLI, which it calls rollouts.

One JSONL file a thread, and another one for each revert of it. A thread is a session under its own
id, a sub-agent's thread one with a caller. Ids are global: which, and why, tells `chain.py`;
which copy of a message counts `files.py`, who said it `words.py`, how files rest on
each other `set.py`.

Choices that the files leave open:

- All that the model says to the person is a turn, commentary between its calls of tools as well as
  the final answer and a plan: it was said and heard, and in many an exchange commentary is the only
  answer. The phase is noted in the metadata. What it thinks, and summaries, are none.
- `thread_rolled_back` is a take-back: a record that says how many prompts were withdrawn. They and
  what followed them are taken back, except where a fork goes on from them; a fork's record takes
  back no turn of its origin.
- A file of a reverted thread is none. Its first record only says behind which turn it goes on, in
  the very words of a fork's, and the turns behind that stay where they were. So both lines are
  live: a second prompt under the same predecessor is a fork. The head is in the newest file.
- A file whose history lies in a file that is not there begins with a root that lost its
  predecessor.
- What sub-agents and scheduled exchanges are told is of kind `runtime`, also where its caller is
  not known: the turn is the same turn whichever files are read together.
- Threads in which the program talks to itself (reviews, compaction, its own memory, titles) and
  exchanges that were taken over from another agent's sessions are passed over: that agent's own
  reader reads them.
- Compressed rollouts (`.jsonl.zst`) are not read; `compressed.py` finds them, to say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from turnmark_session_store.transcripts.codex.chain import Chain
from turnmark_session_store.transcripts.codex.files import Rollout, read_rollout
from turnmark_session_store.transcripts.codex.sessions import AGENT, SessionWriter
from turnmark_session_store.transcripts.codex.set import (
    RolloutSet,
    keep_one_of_each,
    origins_of,
)
from turnmark_session_store.transcripts.json_lines import begins_with
from turnmark_session_store.transcripts.reader import ReadSession, SkippingReader, is_within

# Records with a payload are of these types in no other agent's files.
_OWN_TYPES = ("session_meta", "turn_context", "response_item", "event_msg")
# A first record may be longer than what is looked at.
_CUT_MARKS = (b'"session_meta"', b'"payload"', b'"timestamp"')
_LINES_LOOKED_AT = 20


class CodexReader(SkippingReader):
    """Reads finished rollouts of Codex; a `Reader`.

    Threads that began in one of `skip_directories` are passed over with their sub-agents:
    turnmark's own writer works there, and memory must not feed on itself.
    """

    agent = AGENT

    def recognises(self, path: Path, head: bytes) -> bool:
        """Returns whether the first lines hold a record as only Codex writes it."""
        return path.suffix == ".jsonl" and begins_with(
            head, _is_own, lines=_LINES_LOOKED_AT, cut_marks=_CUT_MARKS
        )

    def read(self, paths: Sequence[Path]) -> Iterator[ReadSession]:
        """Yields the sessions of a set of files; holds the words of the whole set in memory.

        Raises:
            Unavailable: if a file cannot be read.
        """
        kept = self._without_own([read_rollout(path) for path in sorted(set(paths))])
        resolved = RolloutSet(keep_one_of_each(map(Chain, kept)))
        yield from SessionWriter(resolved).sessions()

    def _without_own(self, rollouts: Sequence[Rollout]) -> list[Rollout]:
        """Leaves out the skipped threads and, through all their generations, what they spawned."""
        own = {
            meta.thread
            for rollout in rollouts
            for meta in rollout.metas[:1]
            if is_within(meta.cwd, self._skip_directories)
        }
        while more := {
            meta.thread
            for rollout in rollouts
            for meta in rollout.metas[:1]
            if meta.thread not in own and (meta.parent in own or own & origins_of(rollout))
        }:
            own |= more
        return [one for one in rollouts if not one.metas or one.metas[0].thread not in own]


def _is_own(record: Mapping[str, Any]) -> bool:
    if record.get("type") in _OWN_TYPES and isinstance(record.get("payload"), dict):
        return True
    return "type" not in record and {"id", "timestamp", "instructions"} <= record.keys()
