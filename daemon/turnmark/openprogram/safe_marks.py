"""Which of OpenProgram's marks may be believed.

A mark there says that a turn was handed to a writer that changed something, and its memory stops
looking at the first one. It doesn't say what was kept, is not taken off when a topic loses its
words, and survives a crash that the topics do not. So a mark alone settles nothing here. It counts
if all of this holds:

- it names the memory that is taken over, and no update of that memory was broken off;
- the evidence of the turn, where it is archived, has the words that the turn has;
- within what one batch may hold, before or behind the turn on its branch, there is a turn with such
  a mark whose archived words a topic cites: what that batch brought is still there;
- the same is true of every turn of speech before it.

All other turns are offered to the writer again (law 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from turnmark.openprogram.archive import Frame
from turnmark_session_store.fences import cut_fences
from turnmark_session_store.recordable import is_recordable, text_of
from turnmark_session_store.transcripts.openprogram.graph import SessionGraph
from turnmark_session_store.transcripts.reader import ReadSession, ReadTurn

_MARK: Final = "memory_written_scriptorium"
# A batch there has 16,000 tokens by default; at three bytes each that is what it has in any script.
_BATCH_BYTES: Final = 48_000
_FAR: Final = 1 << 60


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What the memory holds of one session's turns, by turn: archived records, and cited turns."""

    frames: Mapping[str, Frame]
    cited: frozenset[str]


def is_speech(read: ReadTurn) -> bool:
    """Tells whether memory may hold a turn, as the store will decide."""
    turn = read.turn
    spawned = turn.caller is not None and read.predecessor is None
    text = cut_fences(text_of(turn.text))
    return is_recordable(role=turn.role, kind=turn.kind, text=text, spawned=spawned)


def safe_marks(
    session: ReadSession, graph: SessionGraph, workspace: str, evidence: Evidence
) -> tuple[str, ...]:
    """Returns the turns whose marks may be believed, those before others first."""
    turns = {str(one.turn.id): one for one in session.turns}
    gone = frozenset(session.taken_back)
    speech = {key for key, one in turns.items() if key not in gone and is_speech(one)}
    marked = {
        key
        for key in speech
        if graph.nodes[key].metadata.get(_MARK) == workspace
        and _agrees(evidence.frames.get(key), graph.nodes[key].text)
    }
    held = {key for key in marked & evidence.cited if key in evidence.frames}
    near = _near(turns, held, speech)
    safe: list[str] = []
    whole: set[str | None] = {None}
    for key, one in turns.items():
        if one.predecessor not in whole:
            continue
        if key not in speech:
            whole.add(key)
        elif key in marked and near[key] <= _BATCH_BYTES:
            whole.add(key)
            safe.append(key)
    return tuple(safe)


def _agrees(frame: Frame | None, words: str) -> bool:
    """Tells whether nothing in the archive speaks against a turn's mark."""
    return frame is None or (frame.trusted and frame.words == words)


def _near(turns: Mapping[str, ReadTurn], held: set[str], speech: set[str]) -> dict[str, int]:
    """Returns how many bytes of speech lie between each turn and the next that is held."""
    sizes = {
        key: len(text_of(one.turn.text).encode()) if key in speech else 0
        for key, one in turns.items()
    }
    behind: dict[str | None, int] = {None: _FAR}
    for key, one in turns.items():
        behind[key] = 0 if key in held else behind.get(one.predecessor, _FAR) + sizes[key]
    before = dict.fromkeys(turns, _FAR)
    for key in reversed(list(turns)):
        if key in held:
            before[key] = 0
        parent = turns[key].predecessor
        if parent is not None and parent in before:
            before[parent] = min(before[parent], before[key] + sizes[parent])
    return {key: min(behind[key], before[key]) for key in turns}
