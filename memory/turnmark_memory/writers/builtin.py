"""The built-in writer: no model, no network, the same answer for the same batch.

It keeps what users state (`statements.py`), what was agreed to, answered or found (`exchanges.py`),
tells it in the third person or quotes it (`telling.py`), files it (`filing.py`), adds a cite where
memory says it already and supersedes what holds no longer (`desk.py`). A block never holds a word
that no turn supports, but for names, dates and the few words of a frame.
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio.to_thread

from turnmark_memory.apply import NEW_BLOCK
from turnmark_memory.model import Add, Answer, Batch, Edit, Edits, Nothing, Retire
from turnmark_memory.writers.desk import edits_of
from turnmark_memory.writers.reading import said_in

_NOTHING_STATED = "no turn states anything worth keeping"
_NOTHING_NEW = "memory already holds all that the turns state"


class BuiltinWriter:
    """Writes without a model; see the module. Works in a thread beside the event loop."""

    name = "builtin/2"

    async def write(self, batch: Batch) -> Answer:
        """Returns the edits that `batch` asks for. Never fails, whatever the text is."""
        return await anyio.to_thread.run_sync(self.distil, batch)

    async def repair(self, batch: Batch, answer: Answer, reasons: Sequence[str]) -> Answer:
        """Returns what changes nothing that was shown: additions, and the ends among them."""
        del answer, reasons
        return await anyio.to_thread.run_sync(self._added, batch)

    def distil(self, batch: Batch) -> Answer:
        """Does what `write` does, blocking: about 0.5 ms of CPU a turn."""
        said = list(said_in(batch))
        edits = tuple(edits_of(said, batch.blocks, batch.beside))
        if edits:
            return Edits(edits=edits)
        return Nothing(reason=_NOTHING_NEW if said else _NOTHING_STATED)

    def _added(self, batch: Batch) -> Answer:
        answer = self.distil(batch)
        if isinstance(answer, Nothing):
            return answer
        own = tuple(edit for edit in answer.edits if _is_of_own(edit))
        return Edits(edits=own) if own else Nothing(reason=_NOTHING_NEW)


def _is_of_own(edit: Edit) -> bool:
    """Returns whether an edit adds a block, or ends one that the same answer adds."""
    return isinstance(edit, Add) or (isinstance(edit, Retire) and edit.block.startswith(NEW_BLOCK))
