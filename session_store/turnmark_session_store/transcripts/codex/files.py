"""One rollout of Codex as far as it is read: what was said in it, and which of its copies counts.

The program writes a message up to three times: as an event of the old kind, as a completed item,
and as what the model was shown (`response_item`). The events and items count, each once; the third
copy is full of what nobody said, and counts only in exchanges from before the file's first event or
item: very old files, and a few of `codex exec`, have nothing else.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from turnmark_session_store.transcripts.codex.records import (
    Meta,
    Said,
    Source,
    Words,
    event_words,
    is_scheduled,
    item_words,
    meta_of_name,
    open_envelope,
    plain_id,
    read_meta,
    record_time,
    response_words,
    spawned_threads,
)
from turnmark_session_store.transcripts.fields import count_at, mapping_at, string_at
from turnmark_session_store.transcripts.json_lines import unreadable
from turnmark_session_store.transcripts.line_file import LineFile, Look
from turnmark_session_store.transcripts.reader import ReadWarning

# Turns of another agent's session that Codex took over; that agent's own reader reads them.
_TAKEN_OVER = "external-import-turn"
_NO_ORDINAL = -1
_LARGEST_ORDINAL = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class RolledBack:
    """A record that takes back the last `exchanges` prompts and what followed them."""

    line: int
    exchanges: int


@dataclass(kw_only=True, eq=False)
class Rollout:
    """What one file holds, in the order of its lines.

    `metas` begins with the file's own; those of other threads came with copied lines. `entries` are
    the messages, with the records that take some back between them. `ordinals` holds the ordinal of
    each line from the first on, -1 where there is none; `spawns` maps the threads of sub-agents to
    the line that names them; `spawned_by` is the exchange of another thread in which this file's
    first was set off. `version` changes with all that its turns follow from.
    """

    lines: LineFile
    metas: list[Meta] = field(default_factory=list[Meta])
    entries: list[Said | RolledBack] = field(default_factory=list[Said | RolledBack])
    ordinals: array[int] = field(default_factory=lambda: array("q"))
    spawns: dict[str, int] = field(default_factory=dict[str, int])
    title: str | None = None
    version: int = 0
    segment: int = 0
    first_event_segment: int | None = None
    warnings: list[ReadWarning] = field(default_factory=list[ReadWarning])
    spawned_by: str | None = None
    _time: str = ""
    _turn: str | None = None
    _model: str | None = None
    _scheduled: bool = False
    _turns_scheduled: dict[str, bool] = field(default_factory=dict[str, bool])
    _copies: dict[tuple[str | None, str, str], Counter[Source]] = field(
        default_factory=dict[tuple[str | None, str, str], Counter[Source]]
    )

    @property
    def path(self) -> Path:
        """Returns where it is."""
        return self.lines.path

    @property
    def meta(self) -> Meta | None:
        """Returns the file's own first record, None while it is not there."""
        return self.metas[0] if self.metas else None

    @property
    def name(self) -> str:
        """Returns the file's name: a rollout keeps it wherever it is moved."""
        return self.path.name

    @property
    def family(self) -> str:
        """Returns the thread from which this one was forked, through forks of forks, else its own.

        Copied lines bring the first records of all of them along.
        """
        by_thread = {meta.thread: meta for meta in reversed(self.metas)}
        at = self.metas[0]
        while (above := by_thread.pop(at.origin or at.parent or "", None)) is not None:
            at = above
        return at.origin if at.origin is not None and at.base is None else at.thread

    def take(self, line: int, record: Mapping[str, Any]) -> None:
        """Adds the next record."""
        self._time = record_time(record, self._time)
        self._note_ordinal(line, count_at(record, "ordinal"))
        envelope = open_envelope(record)
        if envelope is None:
            return
        kind, payload = envelope
        if kind == "session_meta":
            self._take_meta(payload)
            return
        if not self.metas and (named := meta_of_name(self.name, self._time)) is not None:
            self.metas.append(named)
            self.version += 1
        match kind:
            case "turn_context":
                self._turn = string_at(payload, "turn_id") or self._turn
                self._model = string_at(payload, "model") or self._model
            case "event_msg":
                self._take_event(line, payload)
            case "response_item":
                told = mapping_at(payload, "internal_chat_message_metadata_passthrough")
                turn = string_at(told, "turn_id") or self._turn
                words = response_words(payload)
                self._say(line, words, "response", turn=turn, item=plain_id(payload, "id"))
            case "compacted":
                self._drop_summary(string_at(payload, "message") or "")
            case _:
                pass

    def ordinal_of(self, line: int) -> int | None:
        """Returns the ordinal of a line, counted from 1, None where it has none."""
        found = self.ordinals[line - 1] if 0 < line <= len(self.ordinals) else _NO_ORDINAL
        return None if found == _NO_ORDINAL else found

    def line_of(self, ordinal: int) -> int | None:
        """Returns the first line with an ordinal."""
        try:
            return self.ordinals.index(ordinal) + 1
        except ValueError:
            return None

    def counts(self, said: Said) -> bool:
        """Returns whether a message is to be taken from this copy of it."""
        first = self.first_event_segment
        return said.source != "response" or first is None or said.segment < first

    def is_open(self, said: Said) -> bool:
        """Returns whether a better copy of a message may still come."""
        return (
            said.source == "response"
            and self.first_event_segment is None
            and said.segment == self.segment
        )

    def _note_ordinal(self, line: int, ordinal: int | None) -> None:
        if ordinal is not None and ordinal <= _LARGEST_ORDINAL:
            self.ordinals.extend([_NO_ORDINAL] * (line - 1 - len(self.ordinals)))
            self.ordinals.append(ordinal)

    def _take_meta(self, payload: Mapping[str, Any]) -> None:
        meta = read_meta(payload, self._time)
        if meta is not None:
            self.metas.append(meta)
            self.version += 1

    def _take_event(self, line: int, payload: Mapping[str, Any]) -> None:
        for thread in spawned_threads(payload):
            self.spawns.setdefault(thread, line)
        match payload.get("type"):
            case "task_started" | "turn_started":
                self._begin_exchange(payload)
            case "user_message" | "agent_message":
                self._say(line, event_words(payload), "event", turn=self._turn)
            case "item_completed":
                item = mapping_at(payload, "item")
                self._say(
                    line,
                    item_words(item),
                    "item",
                    turn=string_at(payload, "turn_id") or self._turn,
                    item=plain_id(item, "id"),
                    thread=plain_id(payload, "thread_id"),
                )
            case "thread_rolled_back":
                exchanges = count_at(payload, "num_turns") or 0
                if exchanges:
                    self.entries.append(RolledBack(line=line, exchanges=exchanges))
                    self.version += 1
            case "thread_name_updated":
                own = self.metas[0].thread if self.metas else None
                if string_at(payload, "thread_id") in (own, None):
                    self.title = string_at(payload, "thread_name") or self.title
            case _:
                pass

    def _begin_exchange(self, payload: Mapping[str, Any]) -> None:
        self.segment += 1
        self._turn = string_at(payload, "turn_id")
        self._scheduled = is_scheduled(payload)
        if self._turn is not None:
            self._turns_scheduled[self._turn] = self._scheduled
        attribution = mapping_at(payload, "turn_attribution")
        self.spawned_by = self.spawned_by or string_at(attribution, "parent_turn_id")

    def _say(
        self,
        line: int,
        words: Words | None,
        source: Source,
        *,
        turn: str | None,
        item: str | None = None,
        thread: str | None = None,
    ) -> None:
        if words is None or (turn is not None and turn.startswith(_TAKEN_OVER)):
            return
        if source != "response":
            if words.phase != "plan" and self.first_event_segment is None:
                self.first_event_segment = self.segment
                self.version += 1
            if self._is_mirrored(turn, words, source):
                return
        elif self.first_event_segment is not None:
            return
        self.version += 1
        scheduled = self._scheduled if turn is None else self._turns_scheduled.get(turn, False)
        self.entries.append(
            Said(
                line=line,
                ordinal=self.ordinal_of(line),
                segment=self.segment,
                source=source,
                turn=turn,
                item=item,
                thread=thread,
                role=words.role,
                text=words.text,
                time=self._time,
                phase=words.phase,
                model=self._model if words.role == "assistant" else None,
                scheduled=scheduled and words.role == "user",
            )
        )

    def _is_mirrored(self, turn: str | None, words: Words, source: Source) -> bool:
        """Returns whether an event repeats an item of the same exchange, or an item an event."""
        counts = self._copies.setdefault((turn, words.role, words.text), Counter())
        counts[source] += 1
        return counts[source] <= max((n for s, n in counts.items() if s != source), default=0)

    def _drop_summary(self, message: str) -> None:
        """Drops the model's answer to the request for a summary, which nobody asked or heard."""
        for index in range(len(self.entries) - 1, -1, -1):
            said = self.entries[index]
            if not isinstance(said, Said) or said.source != "response":
                return
            if said.role == "assistant":
                if said.text.strip() in message:
                    del self.entries[index]
                    self.version += 1
                return


def read_rollout(path: Path) -> Rollout:
    """Reads a finished rollout, line by line; blocks on disk.

    Raises:
        Unavailable: if the file cannot be read.
    """
    lines = LineFile(path)
    rollout = Rollout(lines=lines)
    try:
        look = lines.advance(rollout.take, warn=rollout.warnings.append, restart=_never)
    except OSError as error:
        raise unreadable(path, error) from error
    if look is Look.GONE:
        raise unreadable(path, "it is gone")
    if lines.has_rest:
        number = len(lines.starts) + 1
        rest = lines.rest()
        if rest is not None:
            rollout.take(number, rest)
        else:
            reason = "no complete JSON"
            rollout.warnings.append(ReadWarning(file=str(path), line=number, reason=reason))
    return rollout


def _never() -> None:
    """Stands for what begins a file anew: one that is read once never does."""
