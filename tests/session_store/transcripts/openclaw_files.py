"""Made-up transcripts of OpenClaw in files, as it wrote them up to 2026.7."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

from session_store.transcripts.json_records import lines
from session_store.transcripts.openclaw_gateway import EPOCH_MS, WORDS
from session_store.transcripts.written_files import Write, WrittenFiles
from turnmark_session_store.times import to_rfc3339

Event = dict[str, Any]
FOLDER = "agents/main/sessions"


def header(session: str, second: float = 0, **fields: Any) -> Event:
    """The first line of a file."""
    at = to_rfc3339(EPOCH_MS + round(second * 1_000))
    shape = {"type": "session", "version": 3, "id": session, "timestamp": at}
    return {**shape, "cwd": "/home/robin/clawd", **fields}


def entry(entry_id: str, parent: str | None, second: float, kind: str, **fields: Any) -> Event:
    """Any other line."""
    at = to_rfc3339(EPOCH_MS + round(second * 1_000))
    return {"type": kind, "id": entry_id, "parentId": parent, "timestamp": at, **fields}


def message(
    entry_id: str, parent: str | None, second: float, role: str, text: str, **fields: Any
) -> Event:
    """What somebody said."""
    content = [{"type": "text", "text": text}]
    said = {"role": role, "content": content, "timestamp": EPOCH_MS + round(second * 1_000) - 100}
    return entry(entry_id, parent, second, "message", message={**said, **fields})


def write(path: Path, *events: Event) -> Path:
    """Writes a file, and returns where."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(*events))
    return path


class OpenClawRecording(WrittenFiles):
    """Transcripts while they are written: people talk, the program moves, copies and shortens."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance
        self.events: dict[str, list[Event]] = {}
        self.leaves: dict[str, str | None] = {}
        self._second = 0.0

    def play(self, steps: int) -> None:
        """Plays that many things."""
        self._begin()
        for _ in range(steps):
            name = self.chance.choice(list(self.events))
            happens = (self.exchange, self.navigate, self.fork, self.shorten)
            self.chance.choices(happens, weights=(8, 2, 1, 1))[0](name)

    def exchange(self, name: str) -> None:
        """A message, perhaps a tool, and an answer."""
        self._say(name, "user")
        if self.chance.random() < 0.4:
            self._write(name, self._next(name, "message", message={"role": "toolResult"}))
        self._say(name, "assistant")

    def navigate(self, name: str) -> None:
        """The program goes on from an older entry."""
        entries = [one["id"] for one in self.events[name][1:] if one["type"] != "leaf"]
        if entries:
            target = self.chance.choice(entries)
            self._write(name, self._next(name, "leaf", targetId=target))
            self.leaves[name] = target
            self.exchange(name)

    def fork(self, name: str) -> None:
        """All entries again in another file, which names the path of this one."""
        if len(self.events) < 4:
            other = self._begin(parentSession=f"/elsewhere/agents/main/sessions/{name}.jsonl")
            for event in self.events[name][1:]:
                self._write(other, copy.deepcopy(event))
            self.leaves[other] = self.leaves[name]
            self.exchange(other)

    def shorten(self, name: str) -> None:
        """The last entries again beside themselves, under other ids."""
        by_id = {one["id"]: one for one in self.events[name][1:]}
        at, path = self.leaves[name], list[Event]()
        while at is not None and len(path) < 4:
            path.append(by_id[at])
            at = by_id[at]["parentId"]
        for event in reversed(path):
            again = self._next(name, event["type"])
            again = {**copy.deepcopy(event), **{k: again[k] for k in ("id", "timestamp")}}
            self._write(name, {**again, "parentId": at})
            at = self.leaves[name] = again["id"]

    def _begin(self, **fields: Any) -> str:
        self._second += 1
        name = f"{self.chance.getrandbits(128):032x}"
        self.events[name], self.leaves[name] = [], None
        self._write(name, header(name, self._second, **fields))
        return name

    def _say(self, name: str, role: str) -> None:
        text = " ".join(self.chance.choices(WORDS, k=3))
        event = self._next(name, "message")
        said = message(event["id"], event["parentId"], self._second, role, text)
        self._write(name, said)
        self.leaves[name] = event["id"]

    def _next(self, name: str, kind: str, **fields: Any) -> Event:
        self._second += 1
        entry_id = f"{self.chance.getrandbits(32):08x}"
        return entry(entry_id, self.leaves[name], self._second, kind, **fields)

    def _write(self, name: str, event: Event) -> None:
        self.events[name].append(event)
        if event["type"] not in ("session", "leaf"):
            self.leaves[name] = event["id"]
        self.written.append(Write(f"{FOLDER}/{name}.jsonl", lines(event)))
