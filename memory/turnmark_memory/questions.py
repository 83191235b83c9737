"""The questions of one night: which parts of which topics a model is asked about, and its answers.

What did not change since it was tidied last is not asked about, and a night asks a bounded number
of questions; the rest waits. A question that brings no usable answer is asked again another night,
after those that were never asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Final

import anyio.to_thread
import structlog

from turnmark_events.errors import TurnmarkError
from turnmark_memory.fallen import taken_back_refs
from turnmark_memory.grounds import kept_local
from turnmark_memory.models.model import Model
from turnmark_memory.night_pass import Plan
from turnmark_memory.sameness import Resting
from turnmark_memory.shelf import Shelf
from turnmark_memory.survey import Survey, resting, survey
from turnmark_memory.tidying import Answer, tidy
from turnmark_memory.windows import Tidied, Window, windows_of
from turnmark_memory.writers.writer import WriterFailed
from turnmark_session_store import SessionStore

log = structlog.get_logger(__name__)

QUESTIONS_LIMIT: Final = 40
"""Questions in one night: what is left waits for the next one, so no night costs without bound."""

_SILENT_LIMIT: Final = 3
"""Questions in a row to which nobody answers at all; more of them tonight would be no use."""

Progress = Callable[[float, float | None, str | None], None]


class Questions:
    """Asks a model, keeps what may be done, and notes what was tidied. One use."""

    def __init__(
        self,
        store: SessionStore,
        shelf: Shelf,
        model: Model,
        tidied: Tidied,
        count: Callable[[str], int],
    ) -> None:
        self._store = store
        self._shelf = shelf
        self._model = model
        self._tidied = tidied
        self._count = count
        self._windows: list[Window] = []
        self.found = Survey(topics=(), blocks={}, linking=())
        self.plans: list[Plan] = []
        self.done: list[Window] = []
        self.failed: list[Window] = []
        self.unanswered = 0
        self.rejected = 0
        self.waiting = 0

    @property
    def asked(self) -> int:
        """The number of questions that were asked."""
        return len(self.done) + len(self.failed) + self.unanswered

    async def ask(self, progress: Progress) -> None:
        """Asks about what is due; a model that fails costs its answers, nothing else.

        Raises:
            Unavailable: if the disk fails, before anything is asked.
        """
        self.found, self._windows = await self._look()
        due = self._tidied.due(self._windows)
        if (
            due
        ):  # a disk that can't keep what comes of it must not have the same asked night by night
            await anyio.to_thread.run_sync(self._tidied.save)
        silent = 0
        for number, window in enumerate(due[:QUESTIONS_LIMIT]):
            progress(number, min(len(due), QUESTIONS_LIMIT), "parts of topics tidied")
            try:
                answer = await self._asked(window)
            except WriterFailed as error:
                log.info("tidying_failed", topic=window.topic, reason=error.reason)
                if not error.transport:
                    self.failed.append(window)
                    silent = 0
                    continue
                self.unanswered += 1
                silent += 1
                if silent == _SILENT_LIMIT:
                    break
            else:
                silent = 0
                self.done.append(window)
                self.rejected += len(answer.rejected)
                self.plans.append(answer.plan)
        self.waiting = len(due) - self.asked
        made = [(one.topic, one.about) for plan in self.plans for one in plan.abouts]
        await anyio.to_thread.run_sync(self._shelf.abouts.note, made)

    async def _asked(self, window: Window) -> Answer:
        try:
            return await tidy(self._store, self._shelf, self._model, window)
        except WriterFailed:
            raise
        except TurnmarkError as error:
            raise WriterFailed(error.message) from error
        except Exception as error:  # a model of any make may raise anything; the night goes on
            log.exception("model_broke", model=self._model.name)
            raise WriterFailed(f"{type(error).__name__} in the model") from error

    async def note(self, day: date, changed: set[str]) -> None:
        """Notes what was tidied, and what it came to: that is not asked about again either.

        `changed` are the blocks that were changed by it. A topic that something else changed
        meanwhile, or of which a part was not answered, stays due.

        Raises:
            Unavailable: if the disk fails; it is asked about again.
        """
        present = (await self._look())[1] if self.asked else self._windows
        settled = {one.digest for one in self.done}
        is_open = {
            one.topic for one in self._tidied.due(self._windows) if one.digest not in settled
        }
        known = {block.shown.block for one in self._windows for block in one.blocks} | changed
        topics = {one.topic for one in self.done} - is_open
        after = [
            one
            for one in present
            if one.topic in topics and all(block.shown.block in known for block in one.blocks)
        ]

        def note() -> None:
            if self.asked:
                self._tidied.note(
                    day,
                    done=[(one.topic, one.digest) for one in [*self.done, *after]],
                    failed=[(one.topic, one.digest) for one in self.failed],
                )
            self._tidied.keep(one.digest for one in present)

        await anyio.to_thread.run_sync(note)

    async def _look(self) -> tuple[Survey, list[Window]]:
        found = await anyio.to_thread.run_sync(survey, self._shelf)
        abouts = {row.topic: row.about for row in found.topics}
        windows: list[Window] = []
        for topic in found.blocks:
            windows += await self._windows_of(topic, abouts[topic])
        return found, windows

    async def _windows_of(self, topic: str, about: str) -> list[Window]:
        """Returns a topic's windows of what the model may be shown."""
        blocks = await anyio.to_thread.run_sync(resting, self._shelf, topic)
        blocks = await not_taken_back(self._store, blocks)
        if not self._model.is_local:
            sessions = {name for block in blocks for name in block.grounds.sessions}
            inside = await self._store.read(lambda db: kept_local(db, sessions))
            blocks = [one for one in blocks if inside.isdisjoint(one.grounds.sessions)]
        own = about if self._shelf.abouts.is_ours(topic, about) else None
        return windows_of(topic, blocks, own, self._count)


async def not_taken_back(store: SessionStore, blocks: Sequence[Resting]) -> list[Resting]:
    """Returns those of `blocks` that rest on nothing that was taken back."""
    refs = list({ref for block in blocks for ref in block.grounds.refs})
    fallen = await store.read(lambda db: taken_back_refs(db, refs))
    return [block for block in blocks if fallen.isdisjoint(block.grounds.refs)]
