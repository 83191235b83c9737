"""The events of a demo: read as they come, none missed, each said in a line."""

from __future__ import annotations

from turnmark.client_sync import SyncClient
from turnmark.commands.wording import count
from turnmark_events.types import CoreRebuilt, Event, TipMoved, TurnsWritten

_NOTHING = "nothing"


class Watcher:
    """A subscriber on a connection of its own, as any other program would be one."""

    def __init__(self, client: SyncClient) -> None:
        self._client = client
        self._stream = client.subscribe(policy="lossless")
        self.first = self._stream.seq + 1
        self.seen: list[Event] = []

    def new_events(self) -> list[Event]:
        """Returns the events of everything that was answered before this call.

        A second subscription says how far the daemon is: events are published before the answer
        to the call that caused them. Blocks until the first one has brought all up to there.
        """
        with self._client.subscribe() as fence:
            last = fence.seq
        found: list[Event] = []
        while self._stream.seq < last:
            found.append(next(self._stream))
        self.seen += found
        return found

    def missed(self) -> list[int]:
        """Returns the numbers of events that did not come."""
        seen = {event.seq for event in self.seen}
        return [seq for seq in range(self.first, self._stream.seq + 1) if seq not in seen]


class EventWording:
    """Says events with the names of branches in place of their ids."""

    def __init__(self, client: SyncClient) -> None:
        self._client = client
        self._names: dict[str, str] = {}

    def line(self, event: Event) -> str:
        """Returns what happened."""
        if isinstance(event, TipMoved):
            return f"{_kind(event)} ({event.cause}) · {self._moved(event)}"
        if isinstance(event, TurnsWritten):
            return f"{_kind(event)} ({event.outcome}) · {self._written(event)}"
        if isinstance(event, CoreRebuilt):
            left_out = f", {count(len(event.left_out), 'block')} left out" if event.left_out else ""
            return f"{_kind(event)} · core.md: {count(event.tokens, 'token')}{left_out}"
        return _kind(event)

    def _moved(self, event: TipMoved) -> str:
        branch = self._branch(event.session, event.branch)
        tip = _arrow(event.old, event.new)
        return f"tip of {branch}: {tip} · head: {_arrow(event.head_old, event.head_new)}"

    def _written(self, event: TurnsWritten) -> str:
        first, last = event.turns[0], event.turns[-1]
        span = first if first == last else f"{first} … {last}"
        turns = f"{self._branch(event.session, event.branch)}: "
        turns += f"{count(len(event.turns), 'turn')} ({span})"
        if event.outcome == "kept":
            return f"{turns} → {count(len(event.blocks), 'block')}, revision {event.revision}"
        return f"{turns}, {event.reason}" if event.reason else turns

    def _branch(self, session: str, branch: str) -> str:
        if branch not in self._names:
            shown = self._client.call("session.show", {"session": session})
            self._names |= {row["branch"]: row["name"] or "" for row in shown["branches"]}
        return f"{session}/{self._names.get(branch) or branch}"


def _kind(event: Event) -> str:
    return f"#{event.seq} {type(event).__name__}"


def _arrow(old: str | None, new: str | None) -> str:
    """Returns the way from one turn to another; a tip or head that stays has none."""
    return f"stays at {new or _NOTHING}" if old == new else f"{old or _NOTHING} → {new or _NOTHING}"
